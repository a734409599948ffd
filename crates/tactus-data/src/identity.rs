//! The identity of a bundle's run, and of its machine.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};
use tactus_model::bundle::{Machine, Manifest};

/// The property that identified a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    /// By its mainboard.
    Hardware,
    /// By its installed system.
    Installation,
    /// By its name alone, which others may have as well.
    Name,
}

impl Identity {
    /// In a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Hardware => "hardware",
            Self::Installation => "installation",
            Self::Name => "name",
        }
    }
}

/// The first 64 bits of SHA-256, in hex.
fn short(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // No two lists of parts are one text.
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Longest name, number or word that a machine says of itself, in bytes: host names have 64.
pub const MOST_NAME: usize = 256;

/// The beginning of a text, of at most `most` bytes.
#[must_use]
pub fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// Longest name in a sentence, in bytes.
pub const MOST_SAID: usize = 64;
/// Most names, and most machines, that are listed.
const MOST_NAMED: usize = 10;

/// Remarks about machines that have several names each, by their keys.
#[must_use]
pub fn copies(names: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let several: Vec<&BTreeSet<&str>> = names.values().filter(|names| names.len() > 1).collect();
    let more = |all: usize, words: &str| match all.saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} {words}"),
    };
    let of = |names: &&BTreeSet<&str>| {
        let named: Vec<&str> = names.iter().take(MOST_NAMED).map(|name| cut(name, MOST_SAID)).collect();
        format!("one machine, or copies of one image: {}{}", named.join(", "), more(names.len(), "others"))
    };
    let mut said: Vec<String> = several.iter().take(MOST_NAMED).map(of).collect();
    if let (Some(last), true) = (said.last_mut(), several.len() > MOST_NAMED) {
        *last += &more(several.len(), "more machines, or copies, with several names");
    }
    said
}

/// A machine with names of limited length: a manifest may come from a stranger.
#[must_use]
pub fn cut_machine(machine: &Machine) -> Machine {
    let short = |text: &Option<String>| text.as_deref().map(|text| cut(text, MOST_NAME).to_owned());
    Machine {
        name: cut(&machine.name, MOST_NAME).to_owned(),
        id: short(&machine.id),
        hardware: short(&machine.hardware),
        bios: short(&machine.bios),
        microcode: short(&machine.microcode),
        ..machine.clone()
    }
}

/// The key of a run: of the machine as it named itself, the plan, and the start. A continued run keeps it.
#[must_use]
pub fn run_key(manifest: &Manifest) -> String {
    let Machine { name, id, hardware, .. } = &manifest.machine;
    let (id, hardware) = (id.as_deref().unwrap_or_default(), hardware.as_deref().unwrap_or_default());
    short(&[hardware, id, name, &manifest.plan, &manifest.started])
}

/// A digest of a manifest, with its files and their checksums, in a few digits.
#[must_use]
pub fn content_key(manifest: &Manifest) -> String {
    short(&[&serde_json::to_string(manifest).unwrap_or_default()])
}

/// The machines that are known: each by its key, with the mainboards and installed systems under which it was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// By mainboard.
    hardware: BTreeMap<String, String>,
    /// By installed system: keys, with the mainboard if it is known.
    installed: BTreeMap<String, BTreeMap<String, Option<String>>>,
}

impl Known {
    /// Takes note of a machine.
    pub fn add(&mut self, key: &str, installation: Option<&str>, hardware: Option<&str>) {
        if let Some(hardware) = hardware {
            self.hardware.entry(hardware.to_owned()).or_insert_with(|| key.to_owned());
        }
        if let Some(installation) = installation {
            let of = self.installed.entry(installation.to_owned()).or_default();
            let own = of.entry(key.to_owned()).or_default();
            if own.is_none() {
                *own = hardware.map(str::to_owned);
            }
        }
    }

    /// The key of a machine, and the kind of identity behind it.
    ///
    /// The mainboard tells machines apart that were cloned from one image, but only root may read it. A run
    /// of an ordinary user belongs to the machine with the same installed system, if exactly one has that.
    #[must_use]
    pub fn key(&self, machine: &Machine) -> (String, Identity) {
        let identity = match (&machine.hardware, &machine.id) {
            (Some(_), _) => Identity::Hardware,
            (None, Some(_)) => Identity::Installation,
            (None, None) => Identity::Name,
        };
        let by_hardware = machine.hardware.as_ref().and_then(|hardware| self.hardware.get(hardware));
        let of = machine.id.as_ref().and_then(|id| self.installed.get(id));
        let by_installation = || match (of, &machine.hardware) {
            (Some(of), None) if of.len() == 1 => of.keys().next(),
            // Seen so far by those alone who may not read the mainboard.
            (Some(of), Some(_)) if of.len() == 1 => {
                of.iter().find_map(|(key, hardware)| hardware.is_none().then_some(key))
            }
            _ => None,
        };
        let key = by_hardware.or_else(by_installation).cloned().unwrap_or_else(|| match identity {
            Identity::Hardware => short(&["hardware", machine.hardware.as_deref().unwrap_or_default()]),
            Identity::Installation => short(&["installation", machine.id.as_deref().unwrap_or_default()]),
            Identity::Name => named(&machine.name),
        });
        (key, identity)
    }
}

/// The key of a machine of which nothing but a name is known, if that.
pub(crate) fn named(name: &str) -> String {
    format!("name:{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(name: &str, id: Option<&str>, hardware: Option<&str>) -> Machine {
        Machine {
            name: name.into(),
            id: id.map(str::to_owned),
            hardware: hardware.map(str::to_owned),
            ..Machine::default()
        }
    }

    /// The keys that machines get, one after the other.
    fn keys(machines: &[Machine]) -> Vec<String> {
        let mut known = Known::default();
        let key = |machine: &Machine| {
            let (key, _) = known.key(machine);
            known.add(&key, machine.id.as_deref(), machine.hardware.as_deref());
            key
        };
        machines.iter().map(key).collect()
    }

    fn hardware(number: &str) -> String {
        short(&["hardware", number])
    }

    fn installed(number: &str) -> String {
        short(&["installation", number])
    }

    #[test]
    fn a_machine_that_root_and_a_user_measured_is_one_in_either_order() {
        let (root, user) = (machine("a", Some("i"), Some("h")), machine("a", Some("i"), None));
        assert_eq!(
            keys(&[root.clone(), user.clone(), root.clone()]),
            [hardware("h"), hardware("h"), hardware("h")]
        );
        assert_eq!(
            keys(&[user.clone(), root.clone(), user]),
            [installed("i"), installed("i"), installed("i")]
        );
    }

    #[test]
    fn clones_of_one_image_are_as_many_machines_as_there_are_mainboards() {
        let of = |number| machine("a", Some("i"), number);
        let wanted = [hardware("h1"), hardware("h2"), installed("i"), hardware("h2")];
        assert_eq!(keys(&[of(Some("h1")), of(Some("h2")), of(None), of(Some("h2"))]), wanted);
    }

    #[test]
    fn two_machines_of_one_name_are_two_and_without_an_identity_they_are_one() {
        let named = keys(&[machine("vm", Some("i1"), None), machine("vm", Some("i2"), None)]);
        assert_eq!(named, [installed("i1"), installed("i2")]);
        assert_eq!(keys(&[machine("vm", None, None), machine("vm", None, None)]), ["name:vm", "name:vm"]);
        let known = Known::default();
        assert_eq!(known.key(&machine("vm", None, None)).1.word(), "name");
    }

    #[test]
    fn parts_of_a_key_do_not_run_into_each_other() {
        assert_ne!(short(&["ab", "c"]), short(&["a", "bc"]));
        assert_eq!(short(&["a"]).len(), 16);
    }
}
