//! Runs on a failing disk: one that fills, and one that cannot be written any more.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::common::{
    alone, await_tick, ended, json, measures_beside_others, nothing_is_left, output, skipped, stderr, tactus,
};

/// A separate file system.
struct Disk(tempfile::TempDir);

impl Disk {
    /// A disk in memory of this size, as mount(8) takes it, that is soon full; `None`: nothing can be mounted here,
    /// which is printed.
    fn of(size: &str) -> Option<Self> {
        Self::mounted(&["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
    }

    /// One of 16 MiB that its kernel can give up; none, as above.
    fn that_can_fail() -> Option<Self> {
        let image = tempfile::NamedTempFile::new().unwrap();
        image.as_file().set_len(16 << 20).unwrap();
        let made = output(Command::new("mkfs.ext4").arg("-q").arg(image.path()));
        assert!(made.status.success(), "{}", stderr(&made));
        // The mount holds the image, also when it has no name any more.
        Self::mounted(&["-o", "loop", image.path().to_str().unwrap()])
    }

    fn mounted(words: &[&str]) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mounted = output(Command::new("mount").args(words).arg(dir.path()));
        if !mounted.status.success() {
            skipped(&format!("mount {}: {}", words.join(" "), stderr(&mounted)));
            return None;
        }
        Some(Self(dir))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// The kernel's reaction to a disk that it cannot trust any more: nothing is written to it from now on.
    fn fails(&self) {
        let failed = output(Command::new("mount").args(["-o", "remount,abort"]).arg(self.path()));
        assert!(failed.status.success(), "{}", stderr(&failed));
    }

    /// Fails if a process holds a file of it open.
    fn unmount(self) {
        let unmounted = output(Command::new("umount").arg(self.path()));
        assert!(unmounted.status.success(), "the run holds its bundle open: {}", stderr(&unmounted));
    }
}

/// A run of one row of this machine, for `duration`; `then` acts on its disk once it measures. Returns how it ended,
/// and its messages.
fn measured(out: &Path, duration: &str, then: impl FnOnce()) -> (Option<i32>, String) {
    let said = tempfile::NamedTempFile::new().unwrap();
    let mut command = tactus();
    command.args(["run", "--duration", duration, "--only", "host idle", "--out"]).arg(out);
    command.stdout(Stdio::null()).stderr(said.reopen().unwrap());
    let mut child = command.spawn().expect("tactus starts");
    await_tick(out);
    then();
    let code = ended(&mut child, Duration::from_secs(60));
    (code, fs::read_to_string(said.path()).unwrap())
}

fn shown(out: &Path) -> Output {
    output(tactus().arg("report").arg(out).args(["--json", "--damaged"]))
}

#[test]
fn a_full_disk_ends_the_run_by_name_and_what_was_written_opens() {
    let Some(_turn) = measures_beside_others() else { return };
    let Some(disk) = Disk::of("64k") else { return };
    let out = disk.path().join("bundle");
    let mut command = tactus();
    command.args(["run", "--duration", "20s", "--only", "host idle", "--out"]).arg(&out);
    let result = output(&mut command);
    let said = stderr(&result);
    let opened = shown(&out);
    disk.unmount();
    assert_eq!(result.status.code(), Some(2), "{said}");
    assert!(said.contains("No space left") && said.contains("hint:"), "{said}");
    assert_eq!(json(&opened)["status"], "interrupted");
    nothing_is_left();
}

#[test]
fn a_disk_that_cannot_be_written_any_more_ends_the_run_by_name_and_what_was_written_opens() {
    let Some(_turn) = measures_beside_others() else { return };
    let Some(disk) = Disk::that_can_fail() else { return };
    let out = disk.path().join("bundle");
    let (code, said) = measured(&out, "20s", || disk.fails());
    let opened = shown(&out);
    disk.unmount();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("Read-only file system") && said.contains("hint:"), "{said}");
    let opened = json(&opened);
    assert_eq!(opened["status"], "interrupted", "{opened:#}");
    assert!(opened["scenarios"][0]["all"]["cycles"].as_u64().unwrap() > 0, "{opened:#}");
    nothing_is_left();
}

#[test]
fn a_disk_that_fills_while_it_is_measured_costs_no_count_and_the_run_says_so() {
    let Some(_alone) = alone() else { return };
    let Some(disk) = Disk::of("6m") else { return };
    let out = disk.path().join("bundle");
    let (code, said) = measured(&out, "8s", || {
        let mut bytes = 4 << 20;
        while bytes > 0 {
            let filled = disk.path().join(format!("filled-{bytes}"));
            if fs::write(&filled, vec![1; bytes]).is_err() {
                fs::remove_file(&filled).unwrap();
            }
            bytes /= 2;
        }
    });
    let shown = json(&shown(&out));
    let export = output(tactus().args(["convert", "--to", "cyclictest-json"]).arg(&out));
    disk.unmount();
    assert!(matches!(code, Some(0 | 1 | 3)), "{code:?}: {said}");
    assert!(said.contains("full: recording over time pauses"), "{said}");
    assert_eq!(shown["status"], "complete", "{said}");
    let own = &shown["scenarios"][0]["all"];
    let (cycles, overruns) = (own["cycles"].as_u64().unwrap(), own["overruns"].as_u64().unwrap());
    // Of 8 s every period is there: measured, or missed.
    let interval = shown["scenarios"][0]["interval_ns"].as_u64().unwrap_or(200_000);
    assert!((cycles + overruns).abs_diff(8_000_000_000 / interval) < 2_000, "{own:#}");
    assert_eq!(own["corrected"]["lost"], 0, "the histograms have all of it: {own:#}");
    assert!(export.status.success(), "{}", stderr(&export));
    nothing_is_left();
}
