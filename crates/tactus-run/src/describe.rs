//! The machine as a bundle names it, and the job that a run is a part of.

use tactus_model::bundle::{Job, Machine};
use tactus_system::System;

use crate::machine_id;

/// The user's name for the machine, where several have one host name, or a container has another one.
const NAME: &str = "TACTUS_MACHINE";
/// The longest name, in characters.
const LONGEST: usize = 64;
/// Engines by the variable in which they tell a job its number, each in its own documents. `TACTUS_JOB` is for all
/// others, as `kubernetes:lab/host-7`.
const ENGINES: [(&str, &str); 6] = [
    ("slurm", "SLURM_JOB_ID"),
    ("pbs", "PBS_JOBID"),
    ("lsf", "LSB_JOBID"),
    ("gitlab", "CI_JOB_ID"),
    ("github", "GITHUB_RUN_ID"),
    ("jenkins", "BUILD_TAG"),
];

/// The machine in one line's worth of facts.
#[must_use]
pub fn describe(system: &dyn System) -> Machine {
    let text = |path: &str| system.text(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    let field = |path: &str, key: &str, separator: char| {
        text(path)
            .lines()
            .filter_map(|line| line.split_once(separator))
            .find(|(found, _)| found.trim() == key)
            .map(|(_, value)| value.trim().trim_matches('"').to_owned())
            .unwrap_or_default()
    };
    let firmware: Vec<String> = ["bios_vendor", "bios_version", "bios_date"]
        .iter()
        .map(|name| text(&format!("/sys/class/dmi/id/{name}")))
        .filter(|value| !value.is_empty())
        .collect();
    Machine {
        name: said(system, NAME).unwrap_or_else(|| text("/proc/sys/kernel/hostname")),
        processor: field("/proc/cpuinfo", "model name", ':'),
        cpus: text("/sys/devices/system/cpu/online"),
        kernel: format!("{} {}", text("/proc/sys/kernel/osrelease"), text("/proc/sys/kernel/version")),
        system: field("/etc/os-release", "PRETTY_NAME", '='),
        id: machine_id::installed(system),
        hardware: machine_id::hardware(system),
        bios: Some(firmware.join(" ")).filter(|words| !words.is_empty()),
        microcode: Some(field("/proc/cpuinfo", "microcode", ':')).filter(|version| !version.is_empty()),
    }
}

/// The job that this process is a part of, where an engine says so.
#[must_use]
pub fn job(system: &dyn System) -> Option<Job> {
    if let Some((engine, id)) = said(system, "TACTUS_JOB").as_deref().and_then(|job| job.split_once(':')) {
        return Some(Job { engine: engine.into(), id: id.into() });
    }
    ENGINES
        .iter()
        .find_map(|(engine, variable)| Some(Job { engine: (*engine).into(), id: said(system, variable)? }))
}

/// The value of a variable, without control sequences for a terminal.
fn said(system: &dyn System, variable: &str) -> Option<String> {
    let value = system.variable(variable)?;
    let plain: String = value.trim().chars().filter(|letter| !letter.is_control()).take(LONGEST).collect();
    Some(plain).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;

    fn server() -> Memory {
        Memory::new()
            .file("/proc/sys/kernel/hostname", "node7\n")
            .file("/proc/cpuinfo", "model name\t: EPYC\nmicrocode\t: 0xa201025\nmodel name\t: another\n")
            .file("/sys/class/dmi/id/bios_vendor", "Maker\n")
            .file("/sys/class/dmi/id/bios_version", "2.1\n")
            .file("/sys/class/dmi/id/bios_date", "01/02/2026\n")
    }

    #[test]
    fn firmware_and_microcode_are_told_and_what_is_not_there_is_not() {
        let machine = describe(&server());
        assert_eq!(machine.name, "node7");
        assert_eq!(machine.bios.as_deref(), Some("Maker 2.1 01/02/2026"));
        assert_eq!(machine.microcode.as_deref(), Some("0xa201025"));
        let bare = describe(&Memory::new());
        assert_eq!((bare.bios, bare.microcode, bare.id, bare.hardware), (None, None, None, None));
    }

    #[test]
    fn the_users_name_of_a_machine_counts_and_carries_no_commands_for_a_terminal() {
        let named = |name: &str| describe(&server().set(NAME, name)).name;
        assert_eq!(named(" rack 3, left "), "rack 3, left");
        assert_eq!(named("a\x1b[2Jb\n"), "a[2Jb");
        assert_eq!(named(&"x".repeat(1000)).len(), LONGEST);
        assert_eq!(named("  "), "node7", "no name is none");
    }

    #[test]
    fn the_job_is_that_of_the_engine_or_the_one_that_is_said() {
        let of =
            |name: &str, value: &str| job(&Memory::new().set(name, value)).map(|job| (job.engine, job.id));
        assert_eq!(of("SLURM_JOB_ID", "4711"), Some(("slurm".into(), "4711".into())));
        assert_eq!(of("TACTUS_JOB", "kubernetes:lab/n1"), Some(("kubernetes".into(), "lab/n1".into())));
        assert_eq!(of("TACTUS_JOB", "nothing"), None);
        assert_eq!(of("SLURM_JOB_ID", ""), None);
        let both = Memory::new().set("SLURM_JOB_ID", "1").set("TACTUS_JOB", "own:2");
        assert_eq!(job(&both).unwrap().engine, "own", "what the user says counts");
    }
}
