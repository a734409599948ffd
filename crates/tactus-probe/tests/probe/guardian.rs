//! The guardian, started as tactus starts it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tactus_model::undo::{Entry, MARKER, Undo};

use crate::common::PROBE;

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tactus-watch-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn guardian(journal: &Path, marker: &str) -> Child {
    Command::new(PROBE)
        .args(["guardian", "--marker", marker, "--journal"])
        .arg(journal)
        // Even if the run forgets to take its own mark away.
        .env(MARKER, marker)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn sleeper(marker: &str) -> Child {
    Command::new("sleep").arg("600").env(MARKER, marker).spawn().unwrap()
}

fn undo(id: u64, how: Undo) -> String {
    serde_json::to_string(&Entry::Undo { id, how }).unwrap() + "\n"
}

#[test]
fn when_the_pipe_closes_children_end_and_everything_is_undone() {
    let place = Place::new("closes");
    let journal = place.file("journal");
    let mut ours = sleeper("closes-ours");
    let mut other = sleeper("closes-other");
    let (file, kept, value) = (place.file("file"), place.file("kept"), place.file("value"));
    fs::write(&value, "changed").unwrap();
    fs::write(&file, "x").unwrap();
    fs::write(&kept, "x").unwrap();
    let lines = undo(0, Undo::KillMarked("closes-ours".into()))
        + &undo(1, Undo::Remove(file.clone()))
        + &undo(2, Undo::Remove(kept.clone()))
        + &(serde_json::to_string(&Entry::Done { id: 2 }).unwrap() + "\n")
        + &undo(3, Undo::Write { path: value.clone(), value: "before".into() });
    fs::write(&journal, &lines).unwrap();
    let mut guardian = guardian(&journal, "closes-ours");
    guardian.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert_eq!(
        guardian.wait().unwrap().code(),
        Some(0),
        "it ended by itself, although it was started with the mark"
    );
    assert!(!ours.wait().unwrap().success());
    assert!(other.try_wait().unwrap().is_none(), "another run's process lives");
    assert!(!file.exists() && kept.exists() && !journal.exists());
    assert_eq!(fs::read_to_string(&value).unwrap(), "before");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_worker_is_given_time_to_undo_and_is_killed_when_it_takes_more() {
    let place = Place::new("worker");
    let (journal, undone) = (place.file("journal"), place.file("undone"));
    let script = "n=0; while [ $n -lt 60000 ]; do n=$((n+1)); done; echo > undone; while :; do :; done";
    fs::write(place.file("worker"), script).unwrap();
    fs::write(&journal, "").unwrap();
    let mut session = sleeper("worker-run");
    // Its second word is what a worker's is.
    let mut worker =
        Command::new("sh").arg("worker").current_dir(&place.0).env(MARKER, "worker-run").spawn().unwrap();
    let mut guardian = guardian(&journal, "worker-run");
    drop(guardian.stdin.take());
    assert!(!session.wait().unwrap().success());
    while !undone.exists() {
        assert!(worker.try_wait().unwrap().is_none(), "it was killed before it had undone everything");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(!worker.wait().unwrap().success());
    assert_eq!(guardian.wait().unwrap().code(), Some(0));
}

#[test]
fn signals_that_end_a_run_do_not_end_its_guardian() {
    let place = Place::new("signals");
    let (journal, file) = (place.file("journal"), place.file("file"));
    fs::write(&file, "x").unwrap();
    fs::write(&journal, undo(0, Undo::Remove(file.clone()))).unwrap();
    let mut guardian = guardian(&journal, "signals");
    let pid = rustix::process::Pid::from_child(&guardian);
    // It ignores the signals from some moment on: its `status` shows when.
    let ignores = || {
        let status = fs::read_to_string(format!("/proc/{}/status", guardian.id())).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
        let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
        // All of them: a shell may have had some ignored from the beginning.
        [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].iter().all(|signal| mask >> (signal - 1) & 1 == 1)
    };
    while !ignores() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM, rustix::process::Signal::HUP]
    {
        rustix::process::kill_process(pid, signal).unwrap();
    }
    assert!(guardian.try_wait().unwrap().is_none() && file.exists());
    drop(guardian.stdin.take());
    assert_eq!(guardian.wait().unwrap().code(), Some(0));
    assert!(!file.exists() && !journal.exists());
}

#[test]
fn a_journal_left_by_a_power_cut_is_undone_by_the_next_command() {
    let place = Place::new("cut");
    let (journal, file) = (place.file("journal"), place.file("file"));
    fs::write(&file, "x").unwrap();
    fs::write(&journal, undo(0, Undo::Remove(file.clone())) + "{\"undo\":{\"id\":1,").unwrap();
    let code = || {
        Command::new(PROBE)
            .args(["undo", "--journal"])
            .arg(&journal)
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .code()
    };
    assert_eq!(code(), Some(0));
    assert!(!file.exists() && !journal.exists());
    assert_eq!(code(), Some(2), "there is no journal any more");
}

#[test]
fn wrong_arguments_are_named() {
    for (arguments, words) in
        [(vec!["dance"], "dance"), (vec!["guardian"], "--journal"), (vec!["undo", "--now"], "--now")]
    {
        let output = Command::new(PROBE).args(&arguments).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(words) && said.contains("hint:"), "{said}");
    }
}
