//! Errors in a plan that was made of options are reported for the option. Pure.

use tactus_run::plan::PlanError;

use crate::exit::Failure;

/// The options that become keys of a plan, by the name of the command in [`PlanError::file`].
const OPTIONS: &[(&str, &[(&str, &str)])] = &[
    ("tactus cyclictest", &[("cpus", "--affinity")]),
    ("tactus oslat", &[("cpus", "--cpu-list"), ("priority", "--rtprio")]),
    ("tactus ", &[("kernel", "--kernel"), ("cmdline", "--cmdline"), ("load", "--load"), ("to", "--to")]),
    (
        "tactus ",
        &[
            ("card", "--card"),
            ("pci", "--pci"),
            ("qemu", "--qemu"),
            ("qemu_arguments", "--qemu-arg"),
            ("file", "--file"),
            ("break", "--breaktrace"),
        ],
    ),
    ("tactus ", &[("cpus", "--cpus"), ("policy", "--policy"), ("restart", "--restart")]),
    ("tactus ", &[("priority", "--priority"), ("interval", "--interval"), ("duration", "--duration")]),
    (
        "this machine",
        &[
            ("cpus", "--cpus"),
            ("load", "--load"),
            ("interval", "--interval"),
            ("duration", "--duration"),
            ("restart", "--restart"),
        ],
    ),
];

/// The option that has become a key: `scenario[0].activity[0].cpus`.
fn option(command: &str, key: &str) -> Option<&'static str> {
    let last = key.rsplit('.').next().unwrap_or(key);
    let last = last.split('[').next().unwrap_or(last);
    let own = OPTIONS.iter().filter(|(begins, _)| command.starts_with(begins));
    own.flat_map(|(_, keys)| keys.iter()).find(|(known, _)| *known == last).map(|(_, option)| *option)
}

/// The failure of an error, with the option in place of a key that the user has not written.
pub fn named(error: PlanError) -> Failure {
    let Some(option) = error.key.as_deref().and_then(|key| option(&error.file, key)) else {
        return error.into();
    };
    Failure::say(format!("{option}: {}", error.message), error.hint.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_was_an_option_is_called_by_it() {
        for (command, key, says) in [
            ("tactus measure", "scenario[0].activity[0].cpus", Some("--cpus")),
            ("tactus measure", "scenario[0].priority", Some("--priority")),
            ("tactus measure", "scenario[0].load[0]", Some("--load")),
            ("tactus oslat", "scenario[0].activity[0].cpus", Some("--cpu-list")),
            ("tactus cyclictest", "scenario[0].activity[0].cpus", Some("--affinity")),
            ("this machine", "scenario[1].interval", Some("--interval")),
            ("this machine", "scenario[0].activity[0].cpus", Some("--cpus")),
            ("this machine", "environment.qemu.kernel", None),
            ("tactus measure", "environment.qemu.image", None),
        ] {
            assert_eq!(option(command, key), says, "{command}: {key}");
        }
    }
}
