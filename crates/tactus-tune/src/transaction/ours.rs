//! The steps that tactus makes. A journal names steps to take back, and is not a program: an unknown step was written
//! by another program, and is reported and not made.

use tactus_audit::settable;

use super::Action;
use super::own_files::{PROFILE, is_command_line, is_own_file, is_own_text};

/// Whether tactus makes such a step.
pub fn is_ours(action: &Action) -> bool {
    match action {
        Action::Write { path, former, linked, .. } => {
            let linked = linked.as_ref().is_none_or(|(path, former)| is_value_of(path, former));
            is_value_of(path, former) && linked
        }
        Action::Install { path, former, .. } => {
            is_own_file(path) && former.as_ref().is_none_or(|text| is_own_text(path, text))
        }
        Action::Run { now, back } => [now, back].into_iter().flatten().all(|words| is_command(words)),
        Action::Service { unit, .. } => settable::is_service(unit),
        Action::TunedProfile { former, then, .. } => [former, then].iter().all(|names| is_tuned(names)),
        Action::Schedule { .. } | Action::Place { .. } => true,
    }
}

/// Whether a text may be what a setting of the kernel's reads: one line.
fn is_value_of(path: &str, text: &str) -> bool {
    let line = text.strip_suffix('\n').unwrap_or(text);
    settable::is_file(path) && line.chars().all(|c| c == '\t' || !c.is_control())
}

/// Names of TuneD's profiles, which are directories below its own, and no option of `tuned-adm`'s.
fn is_tuned(names: &str) -> bool {
    let is_name = |name: &str| !name.starts_with(['-', '.']) && !name.contains('/');
    names.split(' ').all(is_name) && !names.contains(char::is_control)
}

/// Whether the command makes another program read files of ours, or is grubby.
fn is_command(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["update-grub"] | ["systemctl", "daemon-reload"] | ["tuned-adm", "profile", PROFILE] => true,
        ["systemctl", "try-restart", unit] => settable::has_drop_in(unit),
        ["grubby", "--update-kernel=ALL", option] => {
            let words = option.strip_prefix("--args=").or_else(|| option.strip_prefix("--remove-args="));
            words.is_some_and(is_command_line)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::change::Form;
    use tactus_system::{Memory, System};

    use super::super::own_files::{MARK, SYSCTL};
    use super::*;
    use crate::transaction::{Entry, Log, Undone, undo};

    fn install(path: &str) -> Action {
        Action::Install { path: path.into(), former: Some("theirs\n".into()), then: "ours\n".into() }
    }

    fn first(path: &str) -> Action {
        Action::Install { path: path.into(), former: None, then: "ours\n".into() }
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
            write("/proc/sys/kernel/core_pattern", None),
            write("/proc/sys/kernel/modprobe", None),
            write("/sys/kernel/uevent_helper", None),
            write("/proc/sysrq-trigger", None),
            write("/proc/sys/vm/dirty_ratio", Some("/proc/sysrq-trigger")),
            Action::Write {
                path: "/proc/sys/kernel/printk".into(),
                form: Form::Words,
                former: "4\n4\n".into(),
                then: "1".into(),
                linked: None,
            },
            Action::Install {
                path: SYSCTL.into(),
                former: Some(format!("{MARK}\nkernel/core_pattern = |/tmp/own\n")),
                then: "ours\n".into(),
            },
            install(SYSCTL),
            run(&["grubby", "--update-kernel=ALL", "--args=init=/tmp/own"]),
            run(&["systemctl", "try-restart", "own.service"]),
            service("--root=/tmp"),
            service("own.service"),
            service("../own"),
            profile("--help"),
            profile("../../tmp/own"),
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
            first("/etc/systemd/system/irqbalance.service.d/50-tactus.env"),
            first("/etc/tuned/profiles/tactus/tuned.conf"),
            run(&["grubby", "--update-kernel=ALL", "--remove-args=isolcpus=1 nohz_full=1"]),
            write("/proc/sys/vm/dirty_ratio", Some("/proc/sys/vm/dirty_bytes")),
            write("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", None),
            service("stalld.service"),
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
