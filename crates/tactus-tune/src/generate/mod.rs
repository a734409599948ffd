//! Generators: settings that are made elsewhere than at run time, written out in full. Each generator uses the same
//! isolation and the same changes as `tune plan`, touches nothing, and says in comments which check each line
//! answers.
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
mod purpose;
mod request;
#[cfg(test)]
mod testing;

generators! { grub, tuned, libvirt, qemu, docker, podman, nova, kubernetes, kubernetes_job, kubevirt }

pub use comment::of_check;
pub use error::GenerateError;
pub use memory::{Page, Size};
pub use output::{File, Output};
pub use placement::Placement;
pub use purpose::Purpose;
pub use request::{Accel, GenerateRequest, GuestOptions};

/// A generator.
pub struct Generator {
    /// Its word.
    pub name: &'static str,
    /// Its files, in a paragraph, for `tactus explain`.
    pub about: &'static str,
    /// The purpose of its files.
    pub purpose: Purpose,
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

    use super::testing::{machine, three};
    use super::*;

    /// The text of its files, without line breaks and the marks of comments.
    fn flat(output: &Output) -> String {
        let text: Vec<&str> = output.files.iter().map(|file| file.text.as_str()).collect();
        let words = text.iter().flat_map(|text| text.split_whitespace()).filter(|word| *word != "#");
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_guest_says_why_its_first_vcpu_has_the_policy_it_has() {
        // If each vCPU has a CPU for itself, the first is FIFO like the others; if other threads may share its CPU,
        // it is not.
        let own = "vCPU 0";
        let leaves_out =
            "Nova and KubeVirt leave vCPU 0 out, since their emulator threads may share its CPU.";
        for (name, says) in [
            ("libvirt", [own, leaves_out]),
            ("qemu", [own, leaves_out]),
            ("nova", ["hw:cpu_realtime_mask=^0", "emulator threads may share its CPU"]),
            ("kubevirt", ["mask: \"1", "virt-launcher's own threads may share their CPUs"]),
        ] {
            let [(_, intel), ..] = three();
            let text = flat(&intel.generate(find(name).unwrap()).unwrap());
            assert!(says.iter().all(|words| text.contains(words)), "{name}: {text}");
        }
    }

    #[test]
    fn the_vcpus_of_which_it_is_said_are_those_that_are_fifo() {
        let [(_, intel), ..] = three();
        let text = |name: &str| flat(&intel.generate(find(name).unwrap()).unwrap());
        assert!(text("libvirt").contains("<vcpusched vcpus='0-2' scheduler='fifo' priority='1'/>"));
        assert!(text("kubevirt").contains("mask: \"1,2\""), "{}", text("kubevirt"));
    }

    #[test]
    fn no_guest_is_put_on_cores_of_two_kinds_without_a_word() {
        let hybrid = machine("x86_64", "GenuineIntel")
            .cpus(8, false, 1)
            .fact("/sys/devices/cpu_core/cpus", "0-3")
            .fact("/sys/devices/cpu_atom/cpus", "4-7")
            .isolate("1-7");
        let mut heard = 0;
        for generator in GENERATORS.iter().filter(|one| !["grub", "tuned"].contains(&one.name)) {
            let notes = |vcpus| {
                hybrid.clone().options(|wanted| wanted.vcpus = vcpus).generate(generator).unwrap().notes
            };
            let says = |notes: &[String]| notes.iter().any(|note| note.starts_with("hybrid processor: "));
            assert!(says(&notes(Some(6))), "{}: {:?}", generator.name, notes(Some(6)));
            heard += 1;
        }
        assert_eq!(heard, GENERATORS.len() - 2);
    }

    #[test]
    fn every_generator_has_its_file_and_its_words() {
        for (module, generator) in MODULES.iter().zip(GENERATORS) {
            assert_eq!(module.replace('_', "-"), generator.name);
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
