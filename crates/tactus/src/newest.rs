//! The bundle that is meant where none is named: the newest of this directory.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use tactus_bundle::limits;
use tactus_system::System;

use crate::exit::Failure;
use crate::say::say;

/// Entries of the directory that are looked at.
const MOST: usize = 10_000;

/// What is asked of a manifest.
#[derive(Deserialize)]
struct Begun {
    started: String,
    #[serde(default, rename = "sittings")]
    sessions: Vec<Sat>,
}

#[derive(Deserialize)]
struct Sat {
    started: String,
}

/// The bundle that was named, else the newest below the working directory, which is said.
pub fn bundle(named: Option<&Path>, system: &dyn System) -> Result<PathBuf, Failure> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    let found = newest(Path::new("."), system).ok_or_else(|| {
        Failure::say("there is no bundle in this directory", "name one, or make one: `tactus run --quick`")
    })?;
    say(format_args!("bundle: {}", found.display()));
    Ok(found)
}

/// The directory below `dir` whose manifest says that it was begun last; of those that say the same, the last by name.
fn newest(dir: &Path, system: &dyn System) -> Option<PathBuf> {
    let mut entries = system.list(dir).ok()?;
    entries.truncate(MOST);
    let begun = |path: PathBuf| Some((begun(&path, system)?.started.parse().ok()?, path));
    let found: Option<(jiff::Timestamp, PathBuf)> = entries.into_iter().filter_map(begun).max();
    let (_, path) = found?;
    Some(path.strip_prefix(".").map(Path::to_owned).unwrap_or(path))
}

/// When somebody began to write this bundle, or to go on with it.
pub fn session(bundle: &Path, system: &dyn System) -> Option<jiff::Timestamp> {
    let begun = begun(bundle, system)?;
    begun.sessions.last().map_or(begun.started.as_str(), |last| last.started.as_str()).parse().ok()
}

fn begun(bundle: &Path, system: &dyn System) -> Option<Begun> {
    let bytes = system.read_regular(&bundle.join("manifest.json"), limits::PLAN).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use tactus_system::Real;

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "the test makes the directories")]
    fn with(entries: &[(&str, &str)]) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        for (name, manifest) in entries {
            std::fs::create_dir(dir.path().join(name)).unwrap();
            std::fs::write(dir.path().join(name).join("manifest.json"), manifest).unwrap();
        }
        std::fs::write(dir.path().join("tactus-file"), "no directory").unwrap();
        let found = newest(dir.path(), &Real)?;
        Some(found.file_name().unwrap().to_string_lossy().into_owned())
    }

    #[test]
    fn the_bundle_that_was_begun_last_is_the_newest_whatever_its_name_and_its_zone() {
        let found = with(&[
            ("z-first", r#"{"started": "2026-03-01T10:00:00Z"}"#),
            ("a-last", r#"{"started": "2026-03-01T12:00:00+01:00"}"#),
            ("m-between", r#"{"started": "2026-03-01T10:30:00Z"}"#),
        ]);
        assert_eq!(found.as_deref(), Some("a-last"));
    }

    #[test]
    fn what_is_no_bundle_is_none() {
        assert_eq!(with(&[]), None);
        let found = with(&[
            ("cut", r#"{"started": "2026-03-0"#),
            ("other", "{}"),
            ("never", r#"{"started": "soon"}"#),
        ]);
        assert_eq!(found, None);
        assert!(newest(Path::new("/nonexistent"), &Real).is_none());
    }
}
