//! Programs of this machine for a guest that is made of files: they and the libraries that they need, at
//! the paths that they have here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tactus_model::plan;
use tactus_system::{Invocation, System};

use super::cannot;
use crate::{OptionError, StartError};

/// A file, by its path.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

/// The names in the key `programs`.
///
/// # Errors
/// When it is no list of names.
pub fn named(spec: &plan::Environment) -> Result<Vec<&str>, OptionError> {
    let wrong = |value: &serde_json::Value| OptionError {
        key: "programs".into(),
        message: format!("`programs` cannot be {value}"),
        hint: "a list of names or paths, as [\"crun\"]".into(),
    };
    let Some(value) = spec.options.get("programs") else { return Ok(Vec::new()) };
    let list = value.as_array().ok_or_else(|| wrong(value))?;
    list.iter().map(|name| name.as_str().filter(|name| !name.is_empty()).ok_or_else(|| wrong(name))).collect()
}

/// Programs with everything that they need to run.
///
/// # Errors
/// When one of them is not installed, or cannot be read.
pub fn collect(names: &[&str], system: &dyn System) -> Result<Files, StartError> {
    let mut files = Files::new();
    for name in names {
        let path = system.find_program(name).ok_or_else(|| StartError {
            reason: format!("{name} is not installed, but the guest needs it"),
            hint: Some(format!("install {name}, or leave it out of `programs`")),
        })?;
        let libraries = Invocation::new(["ldd".to_owned(), path.display().to_string()]);
        let libraries = system.run(&libraries).map_err(|error| cannot("its libraries are unknown", error))?;
        // A static program has none, and ldd says so by failing.
        let libraries = if libraries.success() { needed(&libraries.text()) } else { Vec::new() };
        for file in libraries.into_iter().chain([path]) {
            let bytes = system.read(&file).map_err(|error| cannot(&file.display().to_string(), error))?;
            files.insert(file, bytes);
        }
    }
    Ok(files)
}

/// The directories above some files, those above others first.
pub fn directories(files: &Files) -> Vec<PathBuf> {
    let all = files.keys().flat_map(|path| path.ancestors().skip(1)).filter(|dir| dir.parent().is_some());
    let all: std::collections::BTreeSet<&Path> = all.collect();
    all.into_iter().map(Path::to_owned).collect()
}

/// The libraries in what ldd(1) said. Pure.
fn needed(said: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let place = line.split_once("=>").map_or(line, |(_, place)| place);
        let path = place.trim().split(" (").next().unwrap_or_default();
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    said.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tactus_system::Memory;

    use super::*;

    /// The output of Debian 12's ldd for crun.
    const CRUN: &str = "	linux-vdso.so.1 (0x00007fa8d3d50000)
	libsystemd.so.0 => /lib/x86_64-linux-gnu/libsystemd.so.0 (0x00007fa8d3bf6000)
	libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007fa8d39dc000)
	libgone.so.1 => not found
	/lib64/ld-linux-x86-64.so.2 (0x00007fa8d3d52000)
";

    #[test]
    fn a_program_comes_with_its_libraries_and_their_directories() {
        let machine = Memory::new()
            .program("crun")
            .answer(&["ldd"], 0, CRUN, "")
            .file("/lib/x86_64-linux-gnu/libsystemd.so.0", "s")
            .file("/lib/x86_64-linux-gnu/libc.so.6", "c")
            .file("/lib64/ld-linux-x86-64.so.2", "l");
        let path = machine.find_program("crun").unwrap();
        let machine = machine.file(path.clone(), "crun");
        let files = collect(&["crun"], &machine).unwrap();
        assert_eq!(files.len(), 4, "{:?}", files.keys());
        assert_eq!(files[&path], b"crun");
        let directories = directories(&files);
        let at = |dir: &str| directories.iter().position(|other| other == Path::new(dir)).unwrap();
        assert!(at("/lib") < at("/lib/x86_64-linux-gnu"), "{directories:?}");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = collect(&["crun"], &Memory::new()).unwrap_err();
        assert!(error.reason.starts_with("crun is not installed") && error.hint.is_some(), "{error:?}");
    }

    #[test]
    fn only_a_list_of_names_is_one() {
        let spec = |value: serde_json::Value| plan::Environment {
            options: [("programs".to_owned(), value)].into_iter().collect(),
            ..plan::Environment::default()
        };
        assert_eq!(named(&spec(serde_json::json!(["crun", "/bin/sh"]))).unwrap(), ["crun", "/bin/sh"]);
        for wrong in [serde_json::json!("crun"), serde_json::json!([3]), serde_json::json!([""])] {
            assert_eq!(named(&spec(wrong)).unwrap_err().key, "programs");
        }
    }

    proptest! {
        #[test]
        fn whatever_ldd_says_is_read(said in "[ \ta-z/=>().\n]{0,200}") {
            prop_assert!(needed(&said).iter().all(|path| path.is_absolute()));
        }
    }
}
