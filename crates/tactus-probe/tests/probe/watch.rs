//! The watch over threads that run virtual CPUs: a thread that it holds runs on, however the watch ends.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{PROBE, skipped};

const PATIENCE: Duration = Duration::from_secs(30);

/// A process that never rests, as a virtual CPU may.
struct Busy(Child);

impl Busy {
    fn start() -> Self {
        Self(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
    }

    /// A number of /proc/PID/stat, counted from the one after the name.
    fn field(&self, at: usize) -> String {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        stat.rsplit(')').next().unwrap().split_ascii_whitespace().nth(at).unwrap().to_owned()
    }

    fn state(&self) -> String {
        self.field(0)
    }

    /// Whether it runs: its state says so, and its time on a CPU (field 14 of all) grows.
    fn runs_again(&self) {
        let until = Instant::now() + PATIENCE;
        let before: u64 = self.field(11).parse().unwrap();
        while self.state() != "R" || self.field(11).parse::<u64>().unwrap() < before + 5 {
            assert!(Instant::now() < until, "it is {} and has run {before} ticks", self.state());
            std::thread::sleep(Duration::from_millis(10));
        }
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        assert!(status.contains("TracerPid:\t0\n"), "{status}");
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A watch that holds a thread for most of the time.
struct Watch {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Watch {
    fn start(busy: &Busy, by: &str, length_ms: u64, every_ms: u64) -> Self {
        let cpu = fs::read_to_string("/proc/self/status").unwrap();
        let cpu = cpu.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
        let cpu = cpu.split([',', '-']).next().unwrap();
        let pid = busy.0.id();
        let hold = format!("hold=0:{pid}:{cpu}:{by}:{length_ms}000000:{every_ms}000000:1");
        let mut child = Command::new(PROBE)
            .args(["watch", "every=10000000", &format!("thread=0:{pid}"), &hold])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut watch = Self { child, stdin, stdout };
        assert_eq!(watch.line(), "watching");
        watch
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Threads of it that have a real-time policy.
    fn fifo(&self) -> usize {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap().flatten();
        let stats = tasks.filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
        stats
            .filter(|stat| stat.rsplit(')').next().unwrap().split_ascii_whitespace().nth(38) == Some("1"))
            .count()
    }
}

fn await_state(busy: &Busy, wanted: &str) {
    let until = Instant::now() + PATIENCE;
    while busy.state() != wanted {
        assert!(Instant::now() < until, "it is {} and never {wanted}", busy.state());
    }
}

#[test]
fn a_thread_that_is_held_by_ptrace_runs_on_when_the_watch_is_killed_with_9() {
    let busy = Busy::start();
    let mut watch = Watch::start(&busy, "ptrace", 2_000, 2_010);
    await_state(&busy, "t");
    watch.child.kill().unwrap();
    watch.child.wait().unwrap();
    busy.runs_again();
}

#[test]
fn a_held_thread_continues_when_the_watch_is_told_to_end_and_when_its_caller_has_gone() {
    let busy = Busy::start();
    let mut watch = Watch::start(&busy, "ptrace", 2_000, 2_010);
    await_state(&busy, "t");
    // The end of its stdin, as when tactus is killed.
    drop(watch.stdin.take());
    assert!(watch.child.wait().unwrap().success());
    busy.runs_again();
    let mut said = String::new();
    watch.stdout.read_to_string(&mut said).unwrap();
    assert!(said.contains("total 0 "), "{said}");
}

#[test]
fn a_hold_by_a_fifo_task_ends_with_the_watch_and_leaves_no_such_task() {
    let busy = Busy::start();
    let mut watch = Watch::start(&busy, "fifo", 20, 100);
    if watch.fifo() == 0 {
        return skipped("SCHED_FIFO is not allowed here");
    }
    while !watch.line().starts_with("held 0 ") {}
    watch.child.kill().unwrap();
    watch.child.wait().unwrap();
    let gone = !fs::exists(format!("/proc/{}/task", watch.child.id())).unwrap();
    assert!(gone, "a killed process has no threads");
    busy.runs_again();
}
