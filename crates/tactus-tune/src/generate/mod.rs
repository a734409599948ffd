//! Generators: what a machine is told elsewhere than at run time, written down in full. Each takes the
//! same isolation and the same changes as `tune plan`, touches nothing, and says in comments which
//! check each line answers.
//!
//! One file per generator, one word in the table below.

/// Declares the modules of the generators and their one table. Each has a `pub static ENTRY`.
macro_rules! generators {
    ($($module:ident),+ $(,)?) => {
        $(pub mod $module;)+
        /// Every generator.
        pub static GENERATORS: &[&Generator] = &[$(&$module::ENTRY),+];
        #[cfg(test)]
        const MODULES: &[&str] = &[$(stringify!($module)),+];
    };
}

mod comment;
mod container;
mod error;
mod guest;
mod memory;
mod output;
mod placement;
mod request;
#[cfg(test)]
mod testing;

generators! { grub, tuned, libvirt, qemu, docker, podman, nova, kubernetes, kubevirt }

pub use comment::of_check;
pub use error::GenerateError;
pub use memory::{Page, Size};
pub use output::{File, Output};
pub use placement::Placement;
pub use request::{Accel, GenerateRequest, GuestOptions};

/// A generator.
pub struct Generator {
    /// Its word.
    pub name: &'static str,
    /// What it writes, in a paragraph, for `tactus explain`.
    pub about: &'static str,
    /// Writes it.
    pub generate: fn(&GenerateRequest<'_>) -> Result<Output, GenerateError>,
}

/// The generator of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Generator> {
    GENERATORS.iter().copied().find(|generator| generator.name == name)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tactus_system::{Real, System};

    use super::*;

    #[test]
    fn every_generator_has_its_file_and_its_words() {
        for (module, generator) in MODULES.iter().zip(GENERATORS) {
            assert_eq!(*module, generator.name);
            assert!(generator.about.len() > 80 && generator.about.ends_with('.'), "{}", generator.name);
            assert!(find(generator.name).is_some());
        }
        // A file with an entry is in the table.
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/generate");
        for path in Real.list(&dir).unwrap() {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = Real.text(path.to_str().unwrap()).unwrap_or_default();
            let has = text.contains("\npub static ENTRY: Generator");
            assert!(!has || MODULES.contains(&name.as_str()), "{name}");
        }
    }
}
