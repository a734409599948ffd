//! The jailhouse command: its arguments, and the meaning of its refusals.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tactus_system::guardian::Guardian;
use tactus_system::{Invocation, System};

use super::cells;
use super::driver_log;
use super::preconditions::mapping_remark;
use crate::StartError;

/// How long a command may take; `cell linux` reads and copies a kernel.
const PATIENCE: Duration = Duration::from_secs(60);

/// The command on this machine.
#[derive(Clone)]
pub struct Jailhouse {
    /// The machine.
    pub system: Arc<dyn System>,
    program: String,
    /// The mark of every process of the run.
    marker: Option<(&'static str, String)>,
}

/// A refusal of the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The words that it was given.
    pub words: Vec<String>,
    /// Its own words.
    pub said: String,
    /// The lines of its driver in the kernel's log meanwhile.
    pub logged: Vec<String>,
}

impl Jailhouse {
    /// `program`: a name or a path that has been found.
    pub fn new(system: &dyn System, program: &str) -> Self {
        let found = system.find_program(program).map(|path| path.display().to_string());
        Self { system: system.share(), program: found.unwrap_or_else(|| program.to_owned()), marker: None }
    }

    /// The same for a run.
    pub fn of_run(mut self, guardian: &Guardian) -> Self {
        let (name, id) = guardian.marker();
        self.marker = Some((name, id.to_owned()));
        self
    }

    /// The whole command line.
    pub fn words(&self, arguments: &[&str]) -> Vec<String> {
        std::iter::once(self.program.as_str()).chain(arguments.iter().copied()).map(str::to_owned).collect()
    }

    /// The program.
    pub fn program(&self) -> PathBuf {
        PathBuf::from(&self.program)
    }

    /// Runs it.
    ///
    /// # Errors
    /// When it could not be run, or did not do what it was told.
    pub fn run(&self, arguments: &[&str]) -> Result<String, Refused> {
        let words = self.words(arguments);
        // To enable and to make a cell is what the driver has words about.
        let tells = matches!(arguments, ["enable", ..] | ["cell", "create" | "linux", ..]);
        let log = || if tells { driver_log::read(&*self.system) } else { String::new() };
        let earlier = log();
        let mut command = Invocation::new(words.clone()).within(PATIENCE);
        if let Some((name, id)) = &self.marker {
            command = command.with_env((name, id));
        }
        match self.system.run(&command) {
            Ok(finished) if finished.success() => Ok(finished.text()),
            Ok(finished) => {
                let said = finished.words();
                let code = finished.code.map_or("a signal".to_owned(), |code| format!("exit code {code}"));
                let said = if said.is_empty() { format!("it ended with {code}") } else { said };
                Err(Refused { words, said, logged: driver_log::since(&earlier, &log()) })
            }
            Err(error) => Err(Refused { words, said: error.to_string(), logged: Vec::new() }),
        }
    }

    /// A refusal with what can be done about it.
    pub fn explain(&self, refused: &Refused) -> StartError {
        let said = &refused.said;
        // The driver's own words are more precise than the error's number.
        let logged = refused.logged.iter().rev().find_map(|line| meaning(DRIVER, line));
        let hint = logged.or_else(|| meaning(COMMAND, said)).map(str::to_owned);
        let hint = hint.or_else(|| said.contains("Operation not permitted").then(|| self.locked()));
        let mut hint = hint.unwrap_or_else(|| {
            "check the kernel's messages (dmesg) and the hypervisor's (jailhouse console)".into()
        });
        let all = || refused.logged.iter().map(String::as_str).chain([said.as_str()]);
        if all().any(|words| MAPPING.iter().any(|mapping| words.contains(mapping)))
            && let Some(remark) = mapping_remark(&*self.system)
        {
            hint = format!("{hint}; {remark}");
        }
        if said.contains("Cannot allocate memory") {
            hint = format!("{hint}; {}", pools(&*self.system));
        }
        let words = &refused.words[1..];
        let mut reason = format!("`jailhouse {}` said: {said}", words.join(" "));
        if !refused.logged.is_empty() {
            reason = format!("{reason}; its driver said: {}", refused.logged.join("; "));
        }
        StartError { reason, hint: Some(hint) }
    }

    /// The cells that do not permit it, with the remedy.
    fn locked(&self) -> String {
        let all = cells::all(&*self.system);
        let locked: Vec<String> = all
            .iter()
            .filter(|cell| cell.state == cells::State::Locked)
            .map(cells::Cell::to_string)
            .collect();
        if locked.is_empty() {
            return "a cell refused: try again, or first stop its program (jailhouse cell shutdown NAME)"
                .into();
        }
        format!(
            "{} allows no cell to be made or ended: run `jailhouse cell shutdown` on it, again if it refuses \
                the first time",
            locked.join("; ")
        )
    }
}

/// The meaning of an error's words: the first that it contains.
fn meaning(known: &[(&str, &'static str)], said: &str) -> Option<&'static str> {
    known.iter().find(|(words, _)| said.contains(words)).map(|(_, meaning)| *meaning)
}

const NOT_SET_ASIDE: &str =
    "no memory is reserved for the hypervisor: boot with mem= or memmap=, or a reserved-memory node";
/// Messages when memory could not be mapped, or not for code.
const MAPPING: [&str; 2] =
    ["JAILHOUSE_ENABLE: Cannot allocate memory", "Unable to map RAM reserved for hypervisor"];

/// Messages of the driver.
const DRIVER: &[(&str, &str)] = &[
    ("request_mem_region failed for hypervisor memory", NOT_SET_ASIDE),
    (
        "Configuration revision mismatch",
        "the configuration is of another revision of Jailhouse: compile it with the sources of the driver",
    ),
    ("Not a system configuration", "give the root cell's configuration, not an inmate's"),
    ("Missing hypervisor image", "the hypervisor's image is missing: /lib/firmware/jailhouse*.bin"),
];

/// Messages of the command and its helpers.
const COMMAND: &[(&str, &str)] = &[
    (
        "execvp: No such file or directory",
        "`jailhouse cell linux` did not find its helper: install jailhouse-cell-linux and python3",
    ),
    (
        "ModuleNotFoundError",
        "the helper lacks a module of Python: install Jailhouse's own package (pyjailhouse) and the complete \
library of Python 3, including ctypes",
    ),
    (
        "ImportError",
        "the helper lacks a part of Python: install Jailhouse's own package (pyjailhouse) and the complete \
library of Python 3, including ctypes",
    ),
    (
        "No space found to load all images",
        "kernel, initramfs and device tree do not fit into the memory regions of the cell's configuration \
(give the cell more memory), or the kernel image cannot be booted (Image, bzImage)",
    ),
    ("Unsupported DTB version", "`dtb` is not a compiled device tree: dtc -O dtb -o inmate.dtb inmate.dts"),
    ("opening /dev/jailhouse", "load Jailhouse's driver: modprobe jailhouse (insmod jailhouse.ko)"),
    ("opening ", "give the path of an existing file"),
    (
        "JAILHOUSE_ENABLE: Device or resource busy",
        "Jailhouse is already enabled, or something else (KVM with a running machine, an IOMMU in use) holds \
            what it needs",
    ),
    (
        "JAILHOUSE_ENABLE: Invalid argument",
        "it is not a system configuration (the root cell's, not an inmate's), or is of another revision of \
Jailhouse or for other CPUs. Or no memory is reserved for the hypervisor (mem=, memmap=, a reserved-memory \
node)",
    ),
    ("JAILHOUSE_ENABLE: Cannot allocate memory", "the hypervisor's memory could not be mapped"),
    (
        "JAILHOUSE_ENABLE: No such device",
        "the processor lacks a feature that Jailhouse needs: jailhouse hardware check",
    ),
    ("JAILHOUSE_ENABLE: No such file", "the hypervisor's image is missing: /lib/firmware/jailhouse*.bin"),
    ("JAILHOUSE_DISABLE: Invalid argument", "Jailhouse is not enabled"),
    (
        "JAILHOUSE_CELL_CREATE: Invalid argument",
        "Jailhouse is not enabled, or this is not a cell configuration of this revision of Jailhouse",
    ),
    (
        "JAILHOUSE_CELL_CREATE: File exists",
        "a cell of that name exists: jailhouse cell list, jailhouse cell destroy",
    ),
    (
        "JAILHOUSE_CELL_CREATE: Device or resource busy",
        "another cell has a CPU that it needs, or the root cell does not have it: jailhouse cell list",
    ),
    ("JAILHOUSE_CELL_CREATE: Cannot allocate memory", "Jailhouse's page pool is used up"),
    ("No such file or directory", "there is no cell of that name: jailhouse cell list"),
];

/// How much of Jailhouse's two pools of pages is used.
fn pools(system: &dyn System) -> String {
    let of = |file: &str| system.text(&format!("{}/{file}", cells::SYSFS)).unwrap_or_else(|| "?".into());
    let pool = |name: &str| {
        format!(
            "{name} {} of {} pages",
            of(&format!("{name}_pool_used")).trim(),
            of(&format!("{name}_pool_size")).trim()
        )
    };
    format!("used: {}, {}", pool("mem"), pool("remap"))
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;

    /// Every refusal in the transcripts: the command and what it said.
    fn refusals() -> Vec<(Vec<String>, String)> {
        let texts = [
            include_str!("../../../tests/fixtures/jailhouse/root-cell-shell.txt"),
            include_str!("../../../tests/fixtures/jailhouse/root-cell-shell-locked-and-linux.txt"),
        ];
        let mut found = Vec::new();
        for text in texts {
            let lines: Vec<&str> = text.lines().collect();
            for three in lines.windows(3).filter(|three| three[2] == "[rc=1]") {
                if let Some(words) = three[0].strip_prefix("# jailhouse ") {
                    found.push((words.split(' ').map(str::to_owned).collect(), three[1].to_owned()));
                }
            }
        }
        found
    }

    #[test]
    fn every_refusal_of_a_real_one_is_told_with_its_remedy() {
        let refusals = refusals();
        assert!(refusals.len() >= 12, "{refusals:?}");
        for (words, said) in refusals {
            let machine = Memory::new().program("jailhouse").answer(
                &["/usr/bin/jailhouse"],
                1,
                "",
                &format!("{said}\n"),
            );
            let jailhouse = Jailhouse::new(&machine, "jailhouse");
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let error = jailhouse.explain(&jailhouse.run(&words).unwrap_err());
            assert_eq!(error.reason, format!("`jailhouse {}` said: {said}", words.join(" ")));
            let hint = error.hint.unwrap();
            let ordinary = hint.starts_with("check the kernel's messages");
            // Tools beside the driver: nothing of theirs is used.
            assert_eq!(
                ordinary,
                said.starts_with("read(console)") || said.starts_with("Unsupported arch"),
                "{said}: {hint}"
            );
        }
    }

    #[test]
    fn the_cell_that_forbids_it_is_named() {
        let machine = Memory::new()
            .file("/sys/devices/jailhouse/cells/1/name", "inmate-active")
            .file("/sys/devices/jailhouse/cells/1/state", "running/locked")
            .file("/sys/devices/jailhouse/cells/1/cpus_assigned_list", "1");
        let jailhouse = Jailhouse::new(&machine, "jailhouse");
        let refused = Refused {
            words: jailhouse.words(&["cell", "create", "x.cell"]),
            said: "JAILHOUSE_CELL_CREATE: Operation not permitted".into(),
            logged: Vec::new(),
        };
        let hint = jailhouse.explain(&refused).hint.unwrap();
        assert!(hint.starts_with("cell 1 (inmate-active): running/locked, CPUs 1 allows no cell"), "{hint}");
        let refused = Refused { said: "JAILHOUSE_CELL_CREATE: Cannot allocate memory".into(), ..refused };
        let machine = machine
            .file("/sys/devices/jailhouse/mem_pool_used", "990")
            .file("/sys/devices/jailhouse/mem_pool_size", "994")
            .file("/sys/devices/jailhouse/remap_pool_used", "144")
            .file("/sys/devices/jailhouse/remap_pool_size", "131072");
        let hint = Jailhouse::new(&machine, "jailhouse").explain(&refused).hint.unwrap();
        assert!(hint.contains("mem 990 of 994 pages, remap 144 of 131072 pages"), "{hint}");
    }

    fn refused(said: &str) -> Refused {
        Refused { words: vec!["jailhouse".into()], said: said.into(), logged: Vec::new() }
    }

    #[test]
    fn only_memory_that_could_not_be_mapped_is_laid_to_the_newer_kernel() {
        let machine = Memory::new().file("/proc/sys/kernel/osrelease", "6.1.0-56-arm64\n");
        let jailhouse = Jailhouse::new(&machine, "jailhouse");
        let hint = |said: &str| jailhouse.explain(&refused(said)).hint.unwrap();
        assert!(hint("JAILHOUSE_ENABLE: Cannot allocate memory").contains("8491502f787c"));
        for other in [
            "JAILHOUSE_ENABLE: Invalid argument",
            "JAILHOUSE_ENABLE: No such file or directory",
            "JAILHOUSE_CELL_CREATE: File exists",
        ] {
            assert!(!hint(other).contains("8491502f787c"), "{other}");
        }
    }

    #[test]
    fn what_the_driver_logged_meanwhile_is_quoted_and_decides_what_an_error_means() {
        let jailhouse = Jailhouse::new(&Memory::new(), "jailhouse");
        let logged = [
            "request_mem_region failed for hypervisor memory.",
            "Did you reserve the memory with \"memmap=\" or \"mem=\"?",
        ];
        let refused_with = |logged: &[&str]| Refused {
            words: jailhouse.words(&["enable", "/c/system.cell"]),
            said: "JAILHOUSE_ENABLE: Invalid argument".into(),
            logged: logged.iter().map(|line| (*line).to_owned()).collect(),
        };
        let error = jailhouse.explain(&refused_with(&logged));
        assert_eq!(
            error.reason,
            "`jailhouse enable /c/system.cell` said: JAILHOUSE_ENABLE: Invalid argument; its driver said: \
request_mem_region failed for hypervisor memory.; Did you reserve the memory with \"memmap=\" or \"mem=\"?"
        );
        assert_eq!(error.hint.as_deref(), Some(NOT_SET_ASIDE));
        let revision = refused_with(&["Configuration revision mismatch"]);
        assert!(jailhouse.explain(&revision).hint.unwrap().contains("another revision"));
    }

    #[test]
    fn what_the_helper_of_a_linux_cell_says_has_a_meaning() {
        let jailhouse = Jailhouse::new(&Memory::new(), "jailhouse");
        for (said, means) in [
            ("execvp: No such file or directory", "jailhouse-cell-linux and python3"),
            ("ModuleNotFoundError: No module named 'pyjailhouse'", "pyjailhouse"),
            ("ImportError: No module named _ctypes", "ctypes"),
            ("RuntimeError: No space found to load all images", "do not fit"),
            ("Unsupported DTB version 0", "dtc -O dtb"),
        ] {
            let hint = jailhouse.explain(&refused(said)).hint.unwrap();
            assert!(hint.contains(means) && !hint.contains("no cell of that name"), "{said}: {hint}");
        }
    }
}
