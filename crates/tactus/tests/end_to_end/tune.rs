//! `tactus tune` on this machine: its settings are taken back to the byte, also when it is killed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{alone, output, skipped, stderr, stdout, tactus};

/// The settings that are made and compared; none of them can harm a machine for a moment.
const ONLY: &str = "swap,vmstat-interval,dirty-writeback,rt-throttling,timer-migration,hung-task,thp,\
                    workqueue-cpumask,irq-default-affinity,irq-affinity";
const FILES: [&str; 12] = [
    "/proc/sys/vm/swappiness",
    "/proc/sys/vm/stat_interval",
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/dirty_bytes",
    "/proc/sys/vm/dirty_background_ratio",
    "/proc/sys/vm/dirty_background_bytes",
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/sys/kernel/timer_migration",
    "/proc/sys/kernel/hung_task_timeout_secs",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/devices/virtual/workqueue/cpumask",
    "/proc/irq/default_smp_affinity",
];

fn state() -> BTreeMap<String, String> {
    let irqs = fs::read_dir("/proc/irq").into_iter().flatten().flatten();
    let irqs = irqs.map(|entry| entry.path().join("smp_affinity_list").display().to_string());
    let files = FILES.into_iter().map(str::to_owned).chain(irqs);
    files.filter_map(|path| Some((path.clone(), fs::read_to_string(&path).ok()?))).collect()
}

fn tune(dir: &Path, words: &[&str]) -> Command {
    let mut command = tactus();
    command.env("TACTUS_CACHE_DIR", dir).arg("tune").args(words);
    command
}

fn apply(dir: &Path) -> Command {
    tune(dir, &["apply", "--profile", "realtime", "--isolate", "1", "--only", ONLY])
}

/// Applies the profile.
fn applied(dir: &Path) {
    let applied = output(&mut apply(dir));
    assert_eq!(applied.status.code(), Some(0), "{}{}", stdout(&applied), stderr(&applied));
}

/// Reverts the applied settings, which ends with this code.
fn reverted(dir: &Path, code: i32) -> Output {
    let reverted = output(&mut tune(dir, &["revert"]));
    assert_eq!(reverted.status.code(), Some(code), "{}{}", stdout(&reverted), stderr(&reverted));
    reverted
}

/// Root on a machine with a CPU to isolate and no TuneD at work.
fn possible() -> bool {
    let root = fs::metadata("/proc/self").is_ok_and(|found| std::os::unix::fs::MetadataExt::uid(&found) == 0);
    let two = Path::new("/sys/devices/system/cpu/cpu1").exists();
    let good = root && two && !Path::new("/run/tuned/tuned.pid").exists();
    if !good {
        skipped("root, a second CPU and no TuneD are needed");
    }
    good
}

#[test]
fn what_is_applied_is_verified_and_taken_back_to_the_byte() {
    let _alone = alone();
    if !possible() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let before = state();
    applied(dir.path());
    assert_eq!(fs::read_to_string(FILES[0]).unwrap(), "10\n");
    let other = output(&mut tune(dir.path(), &["apply", "--profile", "cpu-partitioning", "--isolate", "1"]));
    assert_eq!(other.status.code(), Some(2));
    assert!(stderr(&other).contains("is applied"), "{}", stderr(&other));
    reverted(dir.path(), 0);
    assert_eq!(state(), before);
}

#[test]
fn a_kill_in_the_middle_of_an_apply_is_taken_back_by_the_next_call() {
    let _alone = alone();
    if !possible() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let before = state();
    let journal = dir.path().join("lib/tune/journal.jsonl");
    for pause in [0, 1, 2, 4, 8] {
        let mut child = apply(dir.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while fs::metadata(&journal).is_ok_and(|found| found.len() == 0) || !journal.exists() {
            assert!(Instant::now() < until && child.try_wait().unwrap().is_none(), "no journal is written");
            std::thread::sleep(Duration::from_micros(200));
        }
        std::thread::sleep(Duration::from_millis(pause));
        child.kill().unwrap();
        child.wait().unwrap();
        let reverted = reverted(dir.path(), 0);
        assert_eq!(state(), before, "{}", stderr(&reverted));
        assert!(!journal.exists());
    }
}

#[test]
fn a_journal_whose_first_line_cannot_be_read_is_named_and_its_steps_are_taken_back() {
    let _alone = alone();
    if !possible() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let before = state();
    applied(dir.path());
    let journal = dir.path().join("lib/tune/journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, text.replacen("begin", "?????", 1)).unwrap();
    let verified = output(&mut tune(dir.path(), &["verify"]));
    assert_eq!(verified.status.code(), Some(2));
    let said = stderr(&verified);
    assert!(said.contains("line 1 of") && said.contains("`tactus tune revert` reverts"), "{said}");
    let reverted = reverted(dir.path(), 1);
    assert!(stderr(&reverted).contains("line 1 of") && stderr(&reverted).contains("journal.damaged"));
    assert_eq!(state(), before, "{}", stderr(&reverted));
    assert!(!journal.exists() && journal.with_file_name("journal.damaged").exists());
}

#[test]
fn isolation_that_is_impossible_is_refused_with_a_hint() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    // Every command refuses alike.
    for (isolate, says) in [("0", "CPU"), ("2-4000", "not online; this system has ")] {
        let said: Vec<String> = [
            tune(dir.path(), &["plan", "--profile", "realtime", "--isolate", isolate]),
            tune(dir.path(), &["diff", "realtime", "cpu-partitioning", "--isolate", isolate]),
            tune(dir.path(), &["apply", "--profile", "realtime", "--isolate", isolate]),
            {
                let mut generate = tactus();
                generate.args(["tune", "files", "grub", "--profile", "realtime", "--isolate", isolate]);
                generate
            },
        ]
        .iter_mut()
        .map(|command| {
            let refused = output(command);
            assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
            assert!(stdout(&refused).is_empty(), "{}", stdout(&refused));
            stderr(&refused)
        })
        .collect();
        assert!(said[0].contains(&format!("--isolate {isolate}: ")) && said[0].contains(says), "{}", said[0]);
        assert!(said[0].contains("hint: "), "{}", said[0]);
        assert!(said.iter().all(|other| *other == said[0]), "{said:#?}");
    }
    let unknown = output(&mut tune(dir.path(), &["plan", "--profile", "fast"]));
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("use one of realtime, "), "{}", stderr(&unknown));
}
