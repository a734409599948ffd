//! The files that tactus makes on a system, and their text, line by line. They decide which text of a journal may be
//! put back into one of them. Their readers run as root, and some of them run what they read.

use tactus_audit::settable::{has_drop_in, is_file, is_kernel_parameter, is_module_parameter, is_settable};
use tactus_model::CpuSet;
use tactus_model::change::Target;
use tactus_model::cmdline::Cmdline;

/// The first line of every file of ours.
pub const MARK: &str = "# Written by tactus tune; `tactus tune revert` removes it.";
/// The file for Debian's GRUB.
pub const GRUB: &str = "/etc/default/grub.d/50-tactus.cfg";
/// The file for modprobe.
pub const MODPROBE: &str = "/etc/modprobe.d/tactus.conf";
/// The file for systemd-sysctl.
pub const SYSCTL: &str = "/etc/sysctl.d/90-tactus.conf";
/// The file for systemd-tmpfiles.
pub const TMPFILES: &str = "/etc/tmpfiles.d/tactus.conf";
/// A drop-in of systemd's, and the environment that it names.
pub const DROP_IN: [&str; 2] = ["50-tactus.conf", "50-tactus.env"];
const SYSTEM: &str = "/etc/systemd/system.conf.d";
const UNITS: &str = "/etc/systemd/system/";

/// Our profile of TuneD's.
pub const PROFILE: &str = "tactus";
/// Where TuneD looks for profiles, and where since 2.24.
pub const PROFILES: [&str; 2] = ["/etc/tuned", "/etc/tuned/profiles"];

/// Where drop-ins of a unit lie, `system.conf` among them.
pub fn drop_in_dir(unit: &str) -> String {
    if unit == "system.conf" { SYSTEM.to_owned() } else { format!("{UNITS}{unit}.d") }
}

/// Our profile's file, below one of [`PROFILES`].
pub fn profile(dir: &str) -> String {
    format!("{dir}/{PROFILE}/tuned.conf")
}

/// Whether a file is one of ours.
pub(super) fn is_own_file(path: &str) -> bool {
    let is_drop_in = |(dir, file): (&str, &str)| {
        let unit = dir.strip_prefix(UNITS).and_then(|unit| unit.strip_suffix(".d"));
        DROP_IN.contains(&file) && (dir == SYSTEM || unit.is_some_and(has_drop_in))
    };
    [GRUB, MODPROBE, SYSCTL, TMPFILES].contains(&path)
        || PROFILES.iter().any(|dir| path == profile(dir))
        || path.rsplit_once('/').is_some_and(is_drop_in)
}

/// Whether tactus writes such a text to this file.
pub(super) fn is_own_text(path: &str, text: &str) -> bool {
    let Some(lines) = text.strip_prefix(MARK).and_then(|rest| rest.strip_prefix('\n')) else { return false };
    let printable = |line: &str| line.chars().all(|c| c == '\t' || !c.is_control());
    let all = |is_line: fn(&str) -> bool| {
        lines.lines().all(|line| printable(line) && (is_nothing(line) || is_line(line)))
    };
    let (dir, file) = path.rsplit_once('/').unwrap_or_default();
    match path {
        GRUB => all(is_grub),
        MODPROBE => all(is_modprobe),
        SYSCTL => all(is_sysctl),
        TMPFILES => all(is_tmpfiles),
        _ if PROFILES.iter().any(|dir| path == profile(dir)) => {
            is_sections(lines, |section, key, value| printable(value) && is_tuned(section, key, value))
        }
        _ if file == DROP_IN[1] => all(is_environment),
        _ => is_sections(lines, |section, key, value| printable(value) && is_unit(dir, section, key, value)),
    }
}

/// Whether words for the kernel's command line contain only parameters that tactus sets. Words after `--` go to the
/// first process.
pub(super) fn is_command_line(text: &str) -> bool {
    let own = Cmdline::parse(text).parameters().iter().all(|parameter| is_kernel_parameter(&parameter.name));
    own && text.split_whitespace().all(|word| word != "--")
}

/// An empty line, or a comment that does not continue on the next line.
fn is_nothing(line: &str) -> bool {
    (line.is_empty() || line.starts_with('#')) && !line.ends_with('\\')
}

/// A shell reads it: within double quotes `"`, `$`, `` ` `` and `\` stand for themselves behind `\` only.
fn is_grub(line: &str) -> bool {
    let quoted = line.strip_prefix("GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX ");
    let Some(quoted) = quoted.and_then(|rest| rest.strip_suffix('"')) else { return false };
    let (mut plain, mut rest) = (String::new(), quoted.chars());
    while let Some(c) = rest.next() {
        match c {
            '"' | '$' | '`' => return false,
            '\\' => match rest.next() {
                Some(c @ ('"' | '$' | '`' | '\\')) => plain.push(c),
                _ => return false,
            },
            c => plain.push(c),
        }
    }
    is_command_line(&plain)
}

/// modprobe.d(5): `install` and `remove` are commands.
fn is_modprobe(line: &str) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    let ["options", module, assignment] = words[..] else { return false };
    is_assignment(module, assignment)
}

fn is_assignment(module: &str, assignment: &str) -> bool {
    let parts = assignment.split_once('=');
    parts.is_some_and(|(parameter, value)| is_module_parameter(module, parameter) && is_word(value))
}

fn is_sysctl(line: &str) -> bool {
    line.split_once(" = ").is_some_and(|(name, _)| is_file(&format!("/proc/sys/{name}")))
}

fn is_tmpfiles(line: &str) -> bool {
    let parts = line.strip_prefix("w ").and_then(|rest| rest.split_once(" - - - - "));
    parts.is_some_and(|(path, _)| is_file(path))
}

/// Whether a line is one of irqbalance's environment, as systemd sets it.
fn is_environment(line: &str) -> bool {
    line.strip_prefix("IRQBALANCE_BANNED_CPULIST=").is_some_and(|cpus| cpus.parse::<CpuSet>().is_ok())
}

/// A drop-in of a unit, or of the service manager, in this directory.
fn is_unit(dir: &str, section: &str, key: &str, value: &str) -> bool {
    let unit = if dir == drop_in_dir("system.conf") {
        "system.conf"
    } else {
        let name = dir.rsplit('/').next().unwrap_or_default();
        name.strip_suffix(".d").unwrap_or_default()
    };
    let sets = |key: &str| {
        is_settable(&Target::DropIn { unit: unit.into(), section: section.into(), key: key.into() })
    };
    match key {
        "EnvironmentFile" => sets("Environment") && value == format!("{dir}/{}", DROP_IN[1]),
        "Environment" => false,
        _ => sets(key) && value.parse::<CpuSet>().is_ok(),
    }
}

/// Our profile of TuneD's, which runs scripts (`[script]`) and what stands in a value as `${f:exec:...}`.
fn is_tuned(section: &str, key: &str, value: &str) -> bool {
    if value.contains('$') {
        return false;
    }
    match (section, key) {
        ("main", "summary") => value.starts_with("tactus: "),
        ("scheduler", "isolated_cores") | ("systemd", "cpu_affinity") | ("irqbalance", "banned_cpus") => {
            value.parse::<CpuSet>().is_ok()
        }
        ("scheduler", group) => group.starts_with("group."),
        ("sysctl", name) => is_file(&format!("/proc/sys/{}", name.replace('.', "/"))),
        ("sysfs", path) => is_file(path),
        ("modules", module) => value.split(' ').all(|assignment| is_assignment(module, assignment)),
        ("bootloader", key) => {
            key == format!("cmdline_{PROFILE}") && value.strip_prefix('+').is_some_and(is_command_line)
        }
        _ => false,
    }
}

/// Whether every line is a section's head, or assigns what may be assigned in its section.
fn is_sections(lines: &str, may: impl Fn(&str, &str, &str) -> bool) -> bool {
    let mut section = "";
    lines.lines().all(|line| {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name;
            return true;
        }
        is_nothing(line) || line.split_once('=').is_some_and(|(key, value)| may(section, key, value))
    })
}

fn is_word(value: &str) -> bool {
    !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric() || "_.,:-+".contains(c))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lines that our files contain, and lines that they must not contain.
    #[test]
    fn only_lines_that_tactus_writes_are_put_back_into_its_own_files() {
        let unit = "/etc/systemd/system/irqbalance.service.d/50-tactus.conf";
        let env = "/etc/systemd/system/irqbalance.service.d/50-tactus.env";
        let tuned = "/etc/tuned/tactus/tuned.conf";
        let file = format!("[Service]\nEnvironmentFile={env}");
        for (path, good, bad) in [
            (
                GRUB,
                "#   isolcpus=1 (isolcpus)\nGRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX isolcpus=1 nosoftlockup\"",
                &[
                    "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX isolcpus=$(id)\"",
                    "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX isolcpus=1\"; id; : \"\"",
                    "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX init=/tmp/own\"",
                    "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX isolcpus=1 -- /tmp/own\"",
                    "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX isolcpus=1\\\"",
                    "GRUB_DEFAULT=own",
                    "id",
                ][..],
            ),
            (
                MODPROBE,
                "# kvmclock-sync\noptions kvm kvmclock_periodic_sync=0",
                &[
                    "install kvm /tmp/own",
                    "options kvm kvmclock_periodic_sync=0 x=1",
                    "options kvm other=1",
                    "# a\\\ninstall kvm /tmp/own",
                ],
            ),
            (
                SYSCTL,
                "vm/swappiness = 10\nkernel/printk = 3 4 1 7",
                &[
                    "kernel/core_pattern = |/tmp/own",
                    "kernel/../kernel/core_pattern = |/tmp/own",
                    "vm/swappiness",
                ],
            ),
            (
                TMPFILES,
                "w /sys/kernel/mm/transparent_hugepage/enabled - - - - never",
                &["f /etc/cron.d/own - - - - x", "w /sys/kernel/uevent_helper - - - - /tmp/own"],
            ),
            (
                env,
                "IRQBALANCE_BANNED_CPULIST=2-7",
                &["LD_PRELOAD=/tmp/own.so", "IRQBALANCE_BANNED_CPULIST=/tmp"],
            ),
            (
                unit,
                file.as_str(),
                &[
                    "[Service]\nExecStartPre=/tmp/own",
                    "[Service]\nEnvironment=LD_PRELOAD=/tmp/own.so",
                    "[Service]\nEnvironmentFile=/tmp/own",
                    "[Unit]\nOnFailure=own.service",
                ],
            ),
            (
                tuned,
                "[main]\nsummary=tactus: realtime on CPUs 1\n\n[sysctl]\nvm.swappiness=10\n\n[scheduler]\n\
                 isolated_cores=1\ngroup.rcuc=0:f:4:*:^\\[rcuc\n\n[bootloader]\ncmdline_tactus=+isolcpus=1",
                &[
                    "[script]\nscript=/tmp/own.sh",
                    "[main]\ninclude=/tmp/own",
                    "[sysctl]\nvm.swappiness=${f:exec:/tmp/own}",
                    "[sysctl]\nkernel.core_pattern=|/tmp/own",
                    "[bootloader]\ncmdline_tactus=+init=/tmp/own",
                    "[modules]\nkvm=+r,nested=1",
                ],
            ),
        ] {
            assert!(is_own_text(path, &format!("{MARK}\n{good}\n")), "{path}: {good}");
            assert!(!is_own_text(path, &format!("{good}\n")), "{path}: without its first line");
            for bad in bad {
                assert!(!is_own_text(path, &format!("{MARK}\n{good}\n{bad}\n")), "{path}: {bad}");
            }
        }
    }

    proptest! {
        /// GRUB's shell reads one assignment from any accepted text, and no text causes a panic.
        #[test]
        fn no_text_that_is_put_back_has_a_command_in_it(
            line in r#"(GRUB_CMDLINE_LINUX="\$GRUB_CMDLINE_LINUX )?(isolcpus=1| |nohz=|\\\\|\\\$|\\"|\\`|\$|`|"|;id|\n){0,9}"?"#,
            any in ".{0,80}",
            place in 0_usize..7,
        ) {
            let places = [GRUB, MODPROBE, SYSCTL, TMPFILES, "/etc/tuned/tactus/tuned.conf",
                "/etc/systemd/system/irqbalance.service.d/50-tactus.conf",
                "/etc/systemd/system.conf.d/50-tactus.env"];
            let _ = is_own_text(places[place], &format!("{MARK}\n{any}\n{line}\n"));
            let text = format!("{MARK}\n{line}\n");
            if is_own_text(GRUB, &text) {
                let escaped = text.replace("\\\\", "").replace("\\\"", "").replace("\\$", "").replace("\\`", "");
                for line in escaped.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
                    prop_assert!(!line.contains('`') && line.matches('$').count() == 1, "{line}");
                    prop_assert!(line.matches('"').count() == 2 && line.ends_with('"'), "{line}");
                }
            }
        }
    }
}
