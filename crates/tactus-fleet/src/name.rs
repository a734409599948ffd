//! Names of machines, which are other people's bytes: as names of files, and in shell scripts.

use sha2::{Digest, Sha256};

/// The longest name of a file, in bytes: suffixes and directories of others must still fit.
const LONGEST: usize = 100;

/// The longest name of a machine that a bundle keeps, in characters.
const LONGEST_TOLD: usize = 64;

/// The name of a machine as a file name. Letters, digits and `_` stay, and within the name also `-` and `.`; every
/// other byte becomes `=` and its two hexadecimal digits. Two names never become one; none leads elsewhere, is
/// hidden, or is an option. A long name ends with its SHA-256.
#[must_use]
pub fn file_name(machine: &str) -> String {
    let mut name = String::new();
    for (at, byte) in machine.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => name.push(byte.into()),
            b'-' | b'.' if at > 0 => name.push(byte.into()),
            _ => name.push_str(&format!("={byte:02X}")),
        }
    }
    if name.is_empty() {
        // No other name becomes this: `=` is followed by digits.
        return "=".into();
    }
    if name.len() <= LONGEST {
        return name;
    }
    // Nor this: an encoded `=` is `=3D`.
    format!("{}=-{}", &name[..LONGEST - 34], &sha256(machine.as_bytes())[..32])
}

/// A word for a POSIX shell, which takes nothing in it for anything but itself.
#[must_use]
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// SHA-256, in hex.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    hex(Sha256::new_with_prefix(bytes))
}

/// A hash, in hex.
pub fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The name of a machine as its job gets it in `TACTUS_MACHINE`, and as its bundle keeps it: without control
/// characters, and no longer than a bundle keeps names. A long one ends with its SHA-256, so that cutting never makes
/// two names equal.
pub fn as_told(machine: &str) -> String {
    let plain = || machine.trim().chars().filter(|letter| !letter.is_control());
    if plain().count() <= LONGEST_TOLD {
        return plain().collect();
    }
    let begin: String = plain().take(LONGEST_TOLD - 33).collect();
    format!("{begin}-{}", &sha256(machine.as_bytes())[..32])
}

/// A name that clients of engines take for one machine and nothing else: no list, no range, no pattern, no option.
pub fn is_plain(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !name.is_empty() && name.len() <= 253 && !name.starts_with(['-', '.']) && name.bytes().all(inner)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::{Component, Path};
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    /// Names that somebody may give a machine.
    const HOSTILE: [&str; 12] = [
        "../../x",
        "/etc/passwd",
        "$(id)",
        "`id`",
        "a\nb",
        "-w",
        ".hidden",
        "..",
        "",
        "n[1-4]",
        "a'; id; '",
        "=2E",
    ];

    #[test]
    fn ordinary_names_stay_as_they_are() {
        for name in ["n1", "node-7.lab.example.org", "rack_3"] {
            assert_eq!(file_name(name), name);
        }
    }

    #[test]
    fn machines_whose_long_names_begin_alike_are_told_apart_in_their_bundles() {
        let [one, two] = ["1", "2"].map(|end| as_told(&format!("{}{end}", "n".repeat(80))));
        assert_ne!(one, two);
        assert_eq!((one.len(), two.len()), (LONGEST_TOLD, LONGEST_TOLD), "a run cuts nothing of it");
        assert_eq!(as_told(&"n".repeat(64)), "n".repeat(64));
    }

    #[test]
    fn a_hostile_name_is_a_file_of_this_directory_and_no_option() {
        for name in HOSTILE {
            let file = file_name(name);
            let parts: Vec<_> = Path::new(&file).components().collect();
            assert!(matches!(parts[..], [Component::Normal(_)]), "{name:?}: {file}");
            assert!(!file.starts_with(['-', '.']) && !file.contains(['/', '\n', '\0']), "{name:?}: {file}");
        }
        assert_eq!(file_name("../../x"), "=2E.=2F..=2Fx");
    }

    #[test]
    fn a_shell_takes_no_hostile_name_for_more_than_a_word() {
        #[expect(clippy::disallowed_methods, reason = "a real shell")]
        for name in HOSTILE {
            let said =
                Command::new("sh").args(["-c", &format!("printf %s {}", quoted(name))]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&said.stdout), name);
        }
    }

    #[test]
    fn lists_patterns_and_options_are_no_plain_names() {
        for name in HOSTILE.iter().filter(|name| **name != "a") {
            assert!(!is_plain(name), "{name:?}");
        }
        for name in ["a,b", "n[1-2]", "~x", "all:!b", "a b", "{{ x }}", "é"] {
            assert!(!is_plain(name), "{name:?}");
        }
        assert!(is_plain("n1.lab-2_x"));
    }

    proptest! {
        #[test]
        fn two_names_never_become_one(names in proptest::collection::vec("(?s).{0,120}", 2..6)) {
            let mut seen = BTreeMap::new();
            for name in names {
                let file = file_name(&name);
                prop_assert!(file.len() <= LONGEST);
                if let Some(other) = seen.insert(file, name.clone()) {
                    prop_assert_eq!(other, name);
                }
            }
        }
    }
}
