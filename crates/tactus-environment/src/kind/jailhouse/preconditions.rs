//! Preconditions of a cell: each with its name and its remedy.

use std::path::{Path, PathBuf};

use tactus_model::cmdline::Cmdline;
use tactus_system::System;

use super::cells::{SYSFS, enabled};
use super::config::{self, Config};
use super::options::Options;
use crate::Usable;

/// An obstacle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    pub reason: String,
    pub remedy: String,
}

impl From<Obstacle> for Usable {
    fn from(obstacle: Obstacle) -> Self {
        Self::No { reason: obstacle.reason, remedy: obstacle.remedy }
    }
}

fn obstacle(reason: impl Into<String>, remedy: impl Into<String>) -> Result<(), Obstacle> {
    Err(Obstacle { reason: reason.into(), remedy: remedy.into() })
}

/// Checks what the machine must have for any plan.
///
/// # Errors
/// The first thing that is missing.
pub fn machine(command: &str, system: &dyn System) -> Result<(), Obstacle> {
    if system.find_program(command).is_none() {
        return obstacle(
            format!("Jailhouse is not installed (there is no command {command})"),
            "build and install Jailhouse for this kernel (make; make install in its sources)",
        );
    }
    helper(command, system)?;
    if !system.is_root() {
        return obstacle("a cell needs root", "run tactus as root (sudo)");
    }
    if enabled(system) == Some(true) {
        return Ok(());
    }
    processor(system)?;
    if !system.exists(Path::new(SYSFS)) && !system.exists(Path::new("/dev/jailhouse")) {
        let remark = mapping_remark(system).map(|remark| format!("; {remark}")).unwrap_or_default();
        return obstacle(
            "Jailhouse's driver is not loaded",
            format!("modprobe jailhouse (or insmod driver/jailhouse.ko of its build){remark}"),
        );
    }
    Ok(())
}

/// The program that `jailhouse cell linux` runs.
const HELPER: &str = "jailhouse-cell-linux";

/// Whether the helper is there, and what runs it. The command looks for it beside itself, in the directory that it was
/// built with, and along the path.
fn helper(command: &str, system: &dyn System) -> Result<(), Obstacle> {
    let Some(program) = system.find_program(command) else { return Ok(()) };
    let beside = program.parent().map(Path::to_owned);
    let usual = ["/usr/local/libexec/jailhouse", "/usr/libexec/jailhouse"].map(PathBuf::from);
    let dirs = beside.into_iter().chain(built_in(&system.read(&program).unwrap_or_default())).chain(usual);
    let found = dirs
        .map(|dir| dir.join(HELPER))
        .find(|path| system.exists(path))
        .or_else(|| system.find_program(HELPER));
    let Some(found) = found else {
        return obstacle(
            format!("`{command} cell linux` lacks its helper {HELPER}"),
            "install it with Jailhouse's tools (make install in its sources), or copy it beside the command",
        );
    };
    let script = system.read(&found).unwrap_or_default();
    match interpreter(&script).filter(|name| system.find_program(name).is_none()) {
        Some(name) => obstacle(
            format!("{} needs {name}, which is not installed", found.display()),
            format!("install {name}"),
        ),
        None => Ok(()),
    }
}

/// Directories called `jailhouse` that a program was built with, by the words in it.
fn built_in(program: &[u8]) -> Vec<PathBuf> {
    let words = program.split(|byte| *byte == 0).filter(|word| word.len() < 200);
    let dirs = words.filter(|word| word.starts_with(b"/") && word.ends_with(b"/jailhouse"));
    dirs.filter_map(|dir| std::str::from_utf8(dir).ok()).map(PathBuf::from).collect()
}

/// The program that runs a script: `python3` in `#!/usr/bin/python3` and in `#!/usr/bin/env python3`.
fn interpreter(script: &[u8]) -> Option<String> {
    let line = script.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_whitespace();
    let program = words.next()?.rsplit('/').next()?;
    let name = if program == "env" { words.next()? } else { program };
    Some(name.to_owned())
}

/// The processor must have virtualization, and no other hypervisor may use it.
fn processor(system: &dyn System) -> Result<(), Obstacle> {
    let info = system.text("/proc/cpuinfo").unwrap_or_default();
    let flags =
        info.lines().find_map(|line| line.strip_prefix("flags")?.split_once(':')).map(|(_, flags)| flags);
    if let Some(flags) = flags {
        let has = |name: &str| flags.split(' ').any(|flag| flag == name);
        if has("vmx") || has("svm") {
            return Ok(());
        }
        return match has("hypervisor") {
            true => obstacle(
                "this machine is itself virtual, and its processor has no VT-x or SVM",
                "run it on hardware, or give the machine nested virtualization",
            ),
            false => obstacle("the processor has no VT-x or SVM", "switch virtualization on in the firmware"),
        };
    }
    let arm = info.contains("CPU implementer");
    if arm && system.exists(Path::new("/dev/kvm")) {
        return obstacle("KVM holds the processor's hypervisor mode (EL2)", "boot with kvm-arm.mode=none");
    }
    Ok(())
}

/// Checks what the plan's options need on this machine.
///
/// # Errors
/// The first thing that is missing.
pub fn plan(options: &Options<'_>, system: &dyn System) -> Result<(), Obstacle> {
    let Some(cell) = options.cell else {
        return obstacle("no cell is given", "give its configuration: cell = \"/path/of/a.cell\"");
    };
    if options.kernel.is_none() {
        return obstacle(
            "no kernel is given to run in the cell",
            "give a kernel: kernel = \"/path/of/Image\"",
        );
    }
    match read(cell, "cell configuration", system)? {
        Some(Config::Cell { .. }) => {}
        Some(Config::System { .. }) => {
            return obstacle(
                format!("{cell} is the configuration of a system, not of a cell"),
                "it belongs in `system`; `cell` is for the inmate's",
            );
        }
        None => {
            return obstacle(
                format!("{cell} is not a configuration of Jailhouse"),
                "give the .cell file of the cell",
            );
        }
    }
    let files = [("kernel", options.kernel.filter(|path| path.contains('/'))), ("dtb", options.dtb)];
    for (key, path) in files.into_iter().filter_map(|(key, path)| Some((key, path?))) {
        if !system.exists(Path::new(path)) {
            return obstacle(
                format!("{path}: no such file"),
                format!("`{key}` names a file of this machine"),
            );
        }
    }
    let arm = system.text("/proc/cpuinfo").is_some_and(|info| info.contains("CPU implementer"));
    if arm && options.kernel.is_some() && options.dtb.is_none() {
        return obstacle(
            "a Linux inmate on Arm needs a device tree",
            "give its path: dtb = \"/path/of/inmate.dtb\"",
        );
    }
    if enabled(system) == Some(true) {
        return Ok(());
    }
    if !options.enable {
        return obstacle(
            "Jailhouse is not enabled",
            "enable it (jailhouse enable SYSTEM.cell), or leave out `enable = false`",
        );
    }
    let Some(path) = options.system else {
        return obstacle(
            "Jailhouse is not enabled",
            "give the system configuration: system = \"/path/of/a.cell\"",
        );
    };
    match read(path, "system configuration", system)? {
        Some(Config::System { start, size }) => memory(start, size, system),
        Some(Config::Cell { name }) => obstacle(
            format!("{path} is the configuration of the cell {name}, not of a system"),
            "give the root cell's configuration",
        ),
        None => obstacle(
            format!("{path} is not a configuration of Jailhouse"),
            "give the .cell file of the system",
        ),
    }
}

fn read(path: &str, what: &str, system: &dyn System) -> Result<Option<Config>, Obstacle> {
    match system.read(Path::new(path)) {
        Ok(bytes) => Ok(config::parse(&bytes)),
        Err(error) => obstacle(format!("{what} {path}: {error}"), "give the path of a file of this machine")
            .map(|()| None),
    }
}

/// Whether the hypervisor's memory has been kept from the kernel.
fn memory(start: u64, size: u64, system: &dyn System) -> Result<(), Obstacle> {
    let end = start.saturating_add(size);
    let table = system.text("/proc/iomem").unwrap_or_default();
    // Without privilege every address is shown as 0.
    let ranges: Vec<(bool, u64, u64, &str)> =
        table.lines().filter_map(range).filter(|(_, _, last, _)| *last > 0).collect();
    let last_byte = end.saturating_sub(1);
    let in_use = || {
        let mut memory = ranges.iter().filter(|(_, _, _, what)| what.eq_ignore_ascii_case("System RAM"));
        memory.any(|(_, first, last, _)| *first <= last_byte && *last >= start)
    };
    // The kernel's own reservations are listed there as well: only one that covers the whole range was made for the
    // hypervisor.
    let set_aside = || {
        let mut reserved = ranges.iter().filter(|(_, _, _, what)| what.eq_ignore_ascii_case("reserved"));
        reserved.any(|(_, first, last, _)| *first <= start && *last >= last_byte)
    };
    let remedy = format!(
        "boot with memmap={size:#x}${start:#x} (x86), with mem= up to where the cells' memory begins, or with a \
reserved-memory node in the device tree"
    );
    if !ranges.is_empty() {
        return match in_use() && !set_aside() {
            true => obstacle(
                format!("the hypervisor's memory, {start:#x} to {last_byte:#x}, is in use by this kernel"),
                remedy,
            ),
            false => Ok(()),
        };
    }
    let cmdline = Cmdline::parse(&system.text("/proc/cmdline").unwrap_or_default());
    let reserved = system.list(Path::new("/proc/device-tree/reserved-memory")).unwrap_or_default();
    // Every such node has properties beside its children.
    let children = reserved
        .iter()
        .any(|path| path.to_string_lossy().contains('@') || path.to_string_lossy().contains("jailhouse"));
    match cmdline.has("mem") || cmdline.has("memmap") || children {
        true => Ok(()),
        false => obstacle("no memory is reserved for the hypervisor and its cells", remedy),
    }
}

/// A line of /proc/iomem: whether it lies within another, first and last byte, and what is there.
fn range(line: &str) -> Option<(bool, u64, u64, &str)> {
    let (range, what) = line.split_once(" : ")?;
    let (first, last) = range.trim_start().split_once('-')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    Some((line.starts_with(' '), number(first)?, number(last)?, what.trim()))
}

/// Since Linux 5.15 memory is never mapped executable by ioremap(), on which Jailhouse's driver relied.
pub fn mapping_remark(system: &dyn System) -> Option<String> {
    let release = system.text("/proc/sys/kernel/osrelease")?;
    let mut numbers = release.split(['.', '-']).map_while(|number| number.trim().parse::<u32>().ok());
    let version = (numbers.next()?, numbers.next()?);
    (version >= (5, 15)).then(|| {
        format!(
            "this kernel ({}) maps no executable memory for drivers (since 5.15, commit 8491502f787c): \
Jailhouse's driver needs the matching change, else `enable` fails or the kernel oopses",
            release.trim()
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tactus_model::plan::Environment as Spec;
    use tactus_system::Memory;

    use super::*;

    const ARM: &str = "processor\t: 0\nCPU implementer\t: 0x41\n";

    /// With the command and its helper, as root.
    fn installed() -> Memory {
        Memory::new().root().program("jailhouse").file(format!("/usr/libexec/jailhouse/{HELPER}"), "")
    }

    fn intel(flags: &str) -> Memory {
        installed().file("/proc/cpuinfo", format!("flags\t\t: fpu {flags} lm\n"))
    }

    fn reason(result: Result<(), Obstacle>) -> String {
        let obstacle = result.unwrap_err();
        assert!(!obstacle.remedy.is_empty());
        format!("{}; {}", obstacle.reason, obstacle.remedy)
    }

    #[test]
    fn what_the_machine_lacks_is_named_in_turn() {
        let of = |system: &Memory| reason(machine("jailhouse", system));
        assert!(of(&Memory::new()).contains("not installed"));
        let bare = Memory::new().program("jailhouse");
        assert!(of(&bare).contains("lacks its helper jailhouse-cell-linux"));
        let helped = bare.clone().file(format!("/opt/j/jailhouse/{HELPER}"), "#!/usr/bin/env python3\n");
        let built = |machine: Memory| {
            machine.file("/usr/bin/jailhouse", "\x7fELF\0PATH=%s:%s:%s\0/opt/j/jailhouse\0")
        };
        assert!(of(&helped).contains("lacks its helper"), "nothing says that it is looked for there");
        assert!(
            of(&built(helped.clone())).contains("needs python3, which is not installed; install python3")
        );
        assert!(of(&built(helped.program("python3"))).contains("root"));
        assert!(of(&intel("hypervisor")).contains("itself virtual"));
        assert!(of(&intel("sse")).contains("no VT-x or SVM; switch virtualization on"));
        assert!(of(&intel("vmx")).contains("driver is not loaded; modprobe"));
        let newer = of(&intel("vmx").file("/proc/sys/kernel/osrelease", "6.1.0-56-amd64"));
        assert!(newer.contains("6.1.0-56-amd64") && newer.contains("5.15"), "{newer}");
        let older = of(&intel("svm").file("/proc/sys/kernel/osrelease", "5.10.0-rc1+"));
        assert!(!older.contains("5.15"), "{older}");
        let arm = installed().file("/proc/cpuinfo", ARM).device("/dev/kvm");
        assert!(of(&arm).contains("EL2") && of(&arm).contains("kvm-arm.mode=none"));
    }

    #[test]
    fn a_machine_with_its_driver_or_already_enabled_will_do() {
        let loaded = intel("vmx").file("/sys/devices/jailhouse/enabled", "0\n");
        assert_eq!(machine("jailhouse", &loaded), Ok(()));
        let enabled = intel("").file("/sys/devices/jailhouse/enabled", "1\n");
        assert_eq!(machine("jailhouse", &enabled), Ok(()));
        let arm = installed().file("/proc/cpuinfo", ARM).device("/dev/jailhouse");
        assert_eq!(machine("jailhouse", &arm), Ok(()));
    }

    fn cell(head: &str, name: &str) -> Vec<u8> {
        let mut bytes = format!("{head}\x0d\0{name}").into_bytes();
        bytes.resize(128, 0);
        bytes
    }

    fn system_at(start: u64, size: u64) -> Vec<u8> {
        let mut bytes = b"JHSYST\x0d\0\0\0\0\0".to_vec();
        [start, start, size, 0].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes
    }

    /// A machine of 1 GiB whose last quarter is kept from the kernel.
    fn board() -> Memory {
        Memory::new()
            .file("/proc/cpuinfo", ARM)
            .file("/proc/iomem", "09000000-09000fff : pl011@9000000\n40000000-6fffffff : System RAM\n  6b200000-6f1fffff : reserved\n")
            .file("/c/demo.cell", cell("JHCELL", "demo"))
            .file("/c/system.cell", system_at(0x7fc0_0000, 0x40_0000))
            .file("/c/low.cell", system_at(0x5000_0000, 0x40_0000))
            .file("/c/junk.cell", "junk")
            .file("/c/Image", "")
            .file("/c/demo.dtb", "")
    }

    #[test]
    fn what_the_plan_gives_is_looked_at_before_anything_is_enabled() {
        let of = |options: serde_json::Value| {
            let options = serde_json::from_value(options).unwrap();
            let spec = Spec { kind: "jailhouse".into(), options, ..Spec::default() };
            plan(&Options::of(&spec).unwrap(), &board())
        };
        let good = json!({"system": "/c/system.cell", "cell": "/c/demo.cell", "kernel": "/c/Image", "dtb": "/c/demo.dtb"});
        assert_eq!(of(good.clone()), Ok(()));
        for (key, value, why) in [
            ("system", json!(null), "not enabled; give the system configuration"),
            ("system", json!("/c/nosuch.cell"), "system configuration /c/nosuch.cell"),
            ("system", json!("/c/demo.cell"), "of the cell demo, not of a system"),
            ("system", json!("/c/junk.cell"), "not a configuration of Jailhouse"),
            (
                "system",
                json!("/c/low.cell"),
                "0x50000000 to 0x503fffff, is in use by this kernel; boot with memmap=0x400000$0x50000000",
            ),
            ("cell", json!(null), "no cell is given"),
            ("cell", json!("/c/system.cell"), "of a system, not of a cell"),
            ("cell", json!("/c/junk.cell"), "not a configuration of Jailhouse"),
            ("kernel", json!(null), "no kernel is given to run"),
            ("kernel", json!("/c/nosuch"), "/c/nosuch: no such file; `kernel`"),
            ("dtb", json!(null), "needs a device tree"),
            ("enable", json!(false), "not enabled; enable it"),
        ] {
            let mut options = good.clone();
            match value.is_null() {
                true => drop(options.as_object_mut().unwrap().remove(key)),
                false => options[key] = value,
            }
            let said = reason(of(options));
            assert!(said.contains(why), "{key}: {said}");
        }
    }

    #[test]
    fn memory_that_is_set_aside_is_seen_with_and_without_addresses() {
        let (start, size) = (0x4100_0000, 0x40_0000);
        let of = |machine: Memory| memory(start, size, &machine).is_ok();
        let hidden = "00000000-00000000 : System RAM\n";
        assert!(!of(Memory::new().file("/proc/iomem", hidden)));
        assert!(of(Memory::new().file("/proc/cmdline", "quiet memmap=66M$0x41000000")));
        assert!(of(Memory::new().file("/proc/cmdline", "mem=768M")));
        assert!(of(Memory::new().file("/proc/device-tree/reserved-memory/jailhouse@41000000/reg", "")));
        assert!(!of(Memory::new().file("/proc/device-tree/reserved-memory/ranges", "")));
        let reserved = "40000000-7fffffff : System RAM\n  41000000-413fffff : reserved\n";
        assert!(of(Memory::new().file("/proc/iomem", reserved)));
    }

    #[test]
    fn the_kernels_own_reservations_at_the_top_of_memory_are_not_the_hypervisors() {
        // A board that was booted without `mem=`, as it said so.
        let forgotten = "40000000-7fffffff : System RAM\n  7ab80000-7fbfffff : reserved\n\
  7fc4d000-7fd4dfff : reserved\n  7fdfd000-7fffffff : reserved\n";
        let refused =
            memory(0x7fc0_0000, 0x40_0000, &Memory::new().file("/proc/iomem", forgotten)).unwrap_err();
        assert_eq!(
            refused.reason,
            "the hypervisor's memory, 0x7fc00000 to 0x7fffffff, is in use by this kernel"
        );
        let around = "40000000-7fffffff : System RAM\n  7fb00000-7fffffff : reserved\n";
        assert_eq!(memory(0x7fc0_0000, 0x40_0000, &Memory::new().file("/proc/iomem", around)), Ok(()));
    }
}
