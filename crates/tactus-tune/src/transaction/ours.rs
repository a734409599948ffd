//! Which steps tactus makes. A journal names steps to take back, and is no program: what else it names is somebody else's
//! word, and is said and not done.

use super::Action;

/// What Debian's GRUB reads.
pub const GRUB: &str = "/etc/default/grub.d/50-tactus.cfg";
/// What modprobe reads.
pub const MODPROBE: &str = "/etc/modprobe.d/tactus.conf";
/// What systemd-sysctl reads.
pub const SYSCTL: &str = "/etc/sysctl.d/90-tactus.conf";
/// What systemd-tmpfiles reads.
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

/// Whether tactus makes such a step.
pub fn is_ours(action: &Action) -> bool {
    match action {
        Action::Write { path, linked, .. } => {
            is_setting(path) && linked.as_ref().is_none_or(|(path, _)| is_setting(path))
        }
        Action::Install { path, .. } => is_file(path),
        Action::Run { now, back } => [now, back].into_iter().flatten().all(|words| is_command(words)),
        Action::Service { unit, .. } => is_unit(unit),
        Action::TunedProfile { former, then, .. } => ![former, then].iter().any(|name| name.starts_with('-')),
        Action::Schedule { .. } | Action::Place { .. } => true,
    }
}

/// A file of the kernel's, by its own path.
fn is_setting(path: &str) -> bool {
    ["/proc/", "/sys/"].iter().any(|root| path.starts_with(root)) && !path.split('/').any(|part| part == "..")
}

fn is_file(path: &str) -> bool {
    let is_drop_in = |(dir, file): (&str, &str)| {
        let unit = dir.strip_prefix(UNITS).and_then(|unit| unit.strip_suffix(".d"));
        DROP_IN.contains(&file) && (dir == SYSTEM || unit.is_some_and(is_unit))
    };
    [GRUB, MODPROBE, SYSCTL, TMPFILES].contains(&path)
        || PROFILES.iter().any(|dir| path == profile(dir))
        || path.rsplit_once('/').is_some_and(is_drop_in)
}

/// A name that systemctl takes for a unit, and a path for one part of it.
fn is_unit(unit: &str) -> bool {
    !unit.is_empty() && !unit.starts_with(['-', '.']) && !unit.contains(['/', '\0'])
}

/// What makes others read files of ours, and grubby.
fn is_command(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["update-grub"] | ["systemctl", "daemon-reload"] | ["tuned-adm", "profile", PROFILE] => true,
        ["systemctl", "try-restart", unit] => is_unit(unit),
        ["grubby", "--update-kernel=ALL", option] => {
            option.starts_with("--args=") || option.starts_with("--remove-args=")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::change::Form;
    use tactus_system::{Memory, System};

    use super::*;
    use crate::transaction::{Entry, Log, Undone, undo};

    fn install(path: &str) -> Action {
        Action::Install { path: path.into(), former: Some("theirs\n".into()), then: "ours\n".into() }
    }

    fn run(words: &[&str]) -> Action {
        Action::Run { now: None, back: Some(words.iter().map(|word| (*word).to_owned()).collect()) }
    }

    fn write(path: &str, linked: Option<&str>) -> Action {
        Action::Write {
            path: path.into(),
            form: Form::Plain,
            former: "0\n".into(),
            then: "1".into(),
            linked: linked.map(|path| (path.into(), "1\n".into())),
        }
    }

    fn service(unit: &str) -> Action {
        Action::Service { unit: unit.into(), former: "active".into(), then: "inactive".into() }
    }

    fn profile(former: &str) -> Action {
        Action::TunedProfile { former: former.into(), automatic: false, then: "tactus".into() }
    }

    #[test]
    fn what_tactus_never_does_is_said_and_not_taken_back_whoever_wrote_it_into_the_journal() {
        let foreign = [
            run(&["touch", "/etc/cron.d/own"]),
            run(&["sh", "-c", "id"]),
            run(&["update-grub", "--output=/etc/shadow"]),
            run(&["systemctl", "start", "own.service"]),
            run(&["systemctl", "try-restart", "--root=/tmp"]),
            run(&["grubby", "--update-kernel=ALL", "--set-default=/tmp/kernel"]),
            run(&[]),
            install("/etc/sysctl.d/../../root/.ssh/authorized_keys"),
            install("/etc/cron.d/tactus.conf"),
            install("/etc/systemd/system/../../cron.d/50-tactus.conf"),
            install("/etc/systemd/system/a/../b.d/50-tactus.conf"),
            install("/etc/systemd/system/own.service"),
            write("/etc/passwd", None),
            write("/proc/sys/../../etc/passwd", None),
            write("/proc/sys/vm/dirty_ratio", Some("/etc/passwd")),
            service("--root=/tmp"),
            service("../own"),
            profile("--help"),
        ];
        for action in foreign {
            let machine =
                Memory::new().root().file("/etc/cron.d/tactus.conf", "ours\n").file("/etc/passwd", "1\n");
            let entry = Entry { id: 0, boot: "this".into(), action, reads: None, unfinished: false };
            let undone = undo(&machine, &entry, "this", true);
            assert!(
                matches!(&undone, Undone::Failed(why) if why.word.contains("never")),
                "{entry:?}: {undone:?}"
            );
            assert_eq!(machine.text("/etc/passwd").as_deref(), Some("1\n"), "{entry:?}");
            assert_eq!(machine.text("/etc/cron.d/tactus.conf").as_deref(), Some("ours\n"), "{entry:?}");
        }
    }

    #[test]
    fn every_step_that_releases_have_written_down_is_known() {
        let own = [
            install("/etc/systemd/system/irqbalance.service.d/50-tactus.env"),
            install("/etc/tuned/profiles/tactus/tuned.conf"),
            run(&["grubby", "--update-kernel=ALL", "--remove-args=isolcpus=1 nohz_full=1"]),
            write("/proc/sys/vm/dirty_ratio", Some("/proc/sys/vm/dirty_bytes")),
            write("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", None),
            service("irqbalance.service"),
            profile(""),
            profile("throughput-performance powersave"),
        ];
        let kept = Log::parse(include_str!("../tests/journal-of-format-1.jsonl")).unwrap();
        assert!(kept.entries.len() > 10);
        for action in own.iter().chain(kept.entries.iter().map(|entry| &entry.action)) {
            assert!(is_ours(action), "{action:?}");
        }
    }
}
