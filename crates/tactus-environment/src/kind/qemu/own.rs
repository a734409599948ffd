//! A QEMU of the user's own build, and arguments of his: what A/B tests of QEMU itself take.

use serde_json::Value;
use tactus_model::plan;
use tactus_system::System;

use crate::support;
use crate::{OptionError, OptionKey, Usable};

/// The key of the program.
pub const PROGRAM: OptionKey = OptionKey {
    name: "qemu",
    about: "the QEMU to start, as a path or a name on the PATH; default: qemu-system of the guest's \
        architecture",
};
/// The key of the arguments.
pub const ARGUMENTS: OptionKey = OptionKey {
    name: "qemu_arguments",
    about: "arguments added to QEMU's command line, as [\"-global\", \"kvm-pit.lost_tick_policy=discard\"]; \
arguments that tactus sets itself are refused; default: none",
};

/// Options that tactus sets itself, and that QEMU takes once.
const SET: &[&str] = &[
    "accel",
    "append",
    "cpu",
    "display",
    "enable-kvm",
    "initrd",
    "kernel",
    "M",
    "m",
    "machine",
    "mon",
    "name",
    "no-reboot",
    "no-user-config",
    "nodefaults",
    "overcommit",
    "qmp",
    "qmp-pretty",
    "sandbox",
    "serial",
    "smp",
];

/// Options by which QEMU would leave, stop or serve somebody else.
const REFUSED: &[&str] =
    &["daemonize", "S", "incoming", "loadvm", "pidfile", "runas", "chroot", "monitor", "gdb", "s"];

/// The program and the arguments that the user gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own {
    program: Option<String>,
    arguments: Vec<String>,
}

impl Own {
    /// Reads them from a plan.
    ///
    /// # Errors
    /// A value of another kind; an option that is tactus's own.
    pub fn of(spec: &plan::Environment) -> Result<Self, OptionError> {
        let program = support::text(spec, PROGRAM.name, "a path, or a name on the PATH")?;
        let wrong = |message: String, hint: &str| OptionError {
            key: ARGUMENTS.name.into(),
            message,
            hint: hint.into(),
        };
        if program.is_some_and(|program| program.is_empty() || program.starts_with('-')) {
            return Err(OptionError {
                key: PROGRAM.name.into(),
                message: "`qemu` is not a program".into(),
                hint: "write a path, as in qemu = \"/opt/qemu/bin/qemu-system-x86_64\"".into(),
            });
        }
        let list = match spec.options.get(ARGUMENTS.name) {
            None => Vec::new(),
            Some(Value::Array(list)) => list.clone(),
            Some(other) => {
                return Err(wrong(
                    format!("`qemu_arguments` is {other}"),
                    "write a list of texts, one per argument",
                ));
            }
        };
        let mut arguments = Vec::new();
        for word in list {
            let Value::String(word) = word else {
                return Err(wrong(
                    format!("`{word}` is not text"),
                    "write a list of texts, one per argument",
                ));
            };
            if let Some(option) = word.strip_prefix('-') {
                // QEMU takes one dash and two.
                let option = option.trim_start_matches('-');
                if SET.contains(&option) {
                    return Err(wrong(
                        format!("`{word}` is set by tactus itself"),
                        "leave it out; cpus, memory, accel, kernel and cmdline have their own keys",
                    ));
                }
                if REFUSED.contains(&option) {
                    return Err(wrong(
                        format!("`{word}` cannot be used for a measured guest"),
                        "leave it out: tactus starts, watches and ends QEMU itself",
                    ));
                }
            }
            arguments.push(word);
        }
        Ok(Self { program: program.map(str::to_owned), arguments })
    }

    /// QEMU's words with this program and these arguments.
    pub fn put(&self, mut words: Vec<String>) -> Vec<String> {
        if let (Some(program), Some(first)) = (&self.program, words.first_mut()) {
            first.clone_from(program);
        }
        words.extend(self.arguments.iter().cloned());
        words
    }

    /// The obstacle that its program is missing; `None` if it exists, or none is named.
    pub fn missing(&self, system: &dyn System) -> Option<Usable> {
        let program = self.program.as_ref().filter(|program| system.find_program(program).is_none())?;
        Some(Usable::No {
            reason: format!("there is no program {program}"),
            remedy: "name one in `qemu`, or leave it out".into(),
        })
    }

    /// Whether a program is named.
    pub const fn names_program(&self) -> bool {
        self.program.is_some()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(options: &[(&str, Value)]) -> plan::Environment {
        let options = options.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        plan::Environment { kind: "qemu".into(), options, ..plan::Environment::default() }
    }

    #[test]
    fn a_program_and_arguments_of_the_users_are_put_behind_tactuss() {
        let own = Own::of(&spec(&[
            ("qemu", json!("/opt/qemu/bin/qemu-system-x86_64")),
            (
                "qemu_arguments",
                json!(["-global", "kvm-pit.lost_tick_policy=discard", "-device", "virtio-rng-pci"]),
            ),
        ]))
        .unwrap();
        let words = own.put(vec!["qemu-system-x86_64".into(), "-m".into(), "512M".into()]);
        assert_eq!(words[0], "/opt/qemu/bin/qemu-system-x86_64");
        assert_eq!(words[3..], ["-global", "kvm-pit.lost_tick_policy=discard", "-device", "virtio-rng-pci"]);
        assert_eq!(Own::of(&spec(&[])).unwrap().put(vec!["q".into()]), ["q"]);
    }

    #[test]
    fn what_tactus_sets_itself_is_refused_by_name() {
        for word in ["-smp", "--smp", "-machine", "-kernel", "-daemonize", "-sandbox", "-S"] {
            let error = Own::of(&spec(&[("qemu_arguments", json!([word, "x"]))])).unwrap_err();
            assert!(error.message.contains(word) && !error.hint.is_empty(), "{error:?}");
        }
        for (key, value) in [
            ("qemu_arguments", json!("-smp 2")),
            ("qemu_arguments", json!([7])),
            ("qemu", json!(7)),
            ("qemu", json!("-x")),
        ] {
            assert_eq!(Own::of(&spec(&[(key, value)])).unwrap_err().key, key);
        }
    }
}
