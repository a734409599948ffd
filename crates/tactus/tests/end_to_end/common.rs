//! Common parts of the end-to-end tests: the real command, and a look at its leftovers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The command, without a terminal and without what the tester's shell says.
pub fn tactus() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tactus"));
    command.stdin(Stdio::null()).env_remove("NO_COLOR").env("LC_ALL", "C.UTF-8");
    of_this_test(&mut command);
    command
}

/// Marks a command, and everything that it starts, as this test's: other tests and other users have runs on this machine,
/// too. Its lock is the test's as well: tests take turns among themselves, or do not disturb each other.
pub fn of_this_test(command: &mut Command) -> &mut Command {
    command.env("TACTUS_LOCK", lock()).env(TESTED_BY, this_test())
}

const TESTED_BY: &str = "TACTUS_TESTED_BY";

/// The process of the tests, and the test in it.
fn this_test() -> String {
    format!("{} {}", std::process::id(), lock())
}

fn lock() -> String {
    let test = std::thread::current().name().unwrap_or("test").to_owned();
    let end = test.len().saturating_sub(80);
    test[end..].to_owned()
}

/// A copy of the program in `place` that every user may start. Another process makes it. If this one had the file
/// open for writing, children that other tests fork meanwhile would have it open, too, and it could not be started
/// ("Text file busy").
pub fn copied_into(place: &Path) -> PathBuf {
    let program = place.join("tactus");
    let (made, other) = (env!("CARGO_BIN_EXE_tactus"), &program);
    let copied = Command::new("cp").arg("--remove-destination").arg(made).arg(other).status();
    assert!(copied.expect("cp").success());
    program
}

/// Runs it to its end.
pub fn output(command: &mut Command) -> Output {
    command.output().expect("tactus starts")
}

/// A command that runs in the background, without output.
pub fn started(command: &mut Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("tactus starts")
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Its JSON output; on failure the panic has all of its output.
pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}\nstdout: {}\nstderr: {}", stdout(output), stderr(output)))
}

/// A process of this machine.
#[derive(Clone)]
pub struct Process {
    pub pid: u32,
    words: Vec<String>,
    environment: Vec<String>,
}

impl Process {
    /// All of them.
    fn all() -> impl Iterator<Item = Self> {
        let processes = fs::read_dir("/proc").expect("/proc").flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let parts = |path: String| {
            let text = String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
            text.split_terminator('\0').map(str::to_owned).collect()
        };
        pids.map(move |pid: u32| Self {
            pid,
            words: parts(format!("/proc/{pid}/cmdline")),
            environment: parts(format!("/proc/{pid}/environ")),
        })
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.environment.iter().find_map(|own| own.strip_prefix(name)?.strip_prefix('='))
    }

    /// The id of the run that it is the guardian of: its journal is called so.
    fn guards(&self) -> Option<&str> {
        let journal = self.words.iter().position(|word| word == "--journal")?;
        let name = Path::new(self.words.get(journal + 1)?).file_stem()?.to_str();
        name.filter(|_| self.words.get(1).is_some_and(|word| word == "guardian"))
    }

    /// Whether a process started it, or one that that one started.
    pub fn descends_from(&self, other: u32) -> bool {
        let parent = |pid: &u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            stat.rsplit(')').next()?.split_ascii_whitespace().nth(1)?.parse::<u32>().ok()
        };
        std::iter::successors(Some(self.pid), parent).take(100).any(|pid| pid == other)
    }

    /// A process that loses its environment on the way (a job of sshd or of Slurm) is at least a process of these
    /// tests.
    fn is_of_this_test(&self) -> bool {
        match self.variable(TESTED_BY) {
            Some(test) => test == this_test(),
            None => self.descends_from(std::process::id()),
        }
    }
}

impl std::fmt::Display for Process {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} {}", self.pid, self.words.join(" "))
    }
}

/// The ids of runs that other tests and other users make on this machine: a run exists as long as its guardian.
fn others() -> Vec<String> {
    let guardians = Process::all().filter(|process| !process.is_of_this_test());
    guardians.filter_map(|process| process.guards().map(str::to_owned)).collect()
}

/// Processes of runs of this test: those that carry a mark.
pub fn marked() -> Vec<Process> {
    let others = others();
    let is_others = |id: &str| {
        others
            .iter()
            .any(|own| id.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('-')))
    };
    let is_own = |process: &Process| {
        let of_a_run = process.variable("TACTUS_RUN").is_some_and(|id| !is_others(id));
        of_a_run && process.variable(TESTED_BY).is_none_or(|test| test == this_test())
    };
    Process::all().filter(is_own).collect()
}

/// Guardians, which have no mark and end after their run, because they take back changes last.
fn guardians() -> Vec<String> {
    let guardians = Process::all().filter(|process| process.guards().is_some() && process.is_of_this_test());
    guardians.map(|process| process.to_string()).collect()
}

/// The guardian of a run that a test has started, once it runs; `None`: the run ends without one.
pub fn guardian_of(run: &mut Child) -> Option<Process> {
    loop {
        let found = Process::all().find(|own| own.guards().is_some() && own.descends_from(run.id()));
        if found.is_some() || run.try_wait().expect("wait").is_some() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Mounts and cgroups with our name.
pub fn mounts_and_cgroups() -> Vec<String> {
    let others = others();
    let mut found = all_mounts_and_cgroups();
    found.retain(|place| !others.iter().any(|id| place.contains(id)));
    found
}

/// Whether what has this name is of a run that another test or another user makes.
pub fn is_of_others(name: &str) -> bool {
    others().iter().any(|id| name.contains(id))
}

fn all_mounts_and_cgroups() -> Vec<String> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let mut found: Vec<String> =
        mounts.lines().filter(|line| line.contains("tactus")).map(str::to_owned).collect();
    let mut open = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().contains("tactus") {
                    found.push(entry.path().display().to_string());
                }
                open.push(entry.path());
            }
        }
    }
    found
}

/// Waits until nothing of any run of this test is left; says what is, if it stays.
pub fn nothing_is_left() {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let processes = marked().into_iter().map(|process| process.to_string());
        let left: Vec<String> = processes.chain(guardians()).chain(mounts_and_cgroups()).collect();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < until, "left behind: {left:#?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Sends a signal to a process that is there.
pub fn kill(process: u32, signal: Signal) {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, signal).expect("the process is there");
}

/// Waits until a file holds `text`.
pub fn await_text(path: &Path, text: &str) {
    let until = Instant::now() + Duration::from_secs(120);
    while !fs::read_to_string(path).is_ok_and(|found| found.contains(text)) {
        assert!(Instant::now() < until, "{} never said `{text}`", path.display());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// How a command that was started ends; `None`: by a signal.
pub fn ended(child: &mut Child, within: Duration) -> Option<i32> {
    let until = Instant::now() + within;
    loop {
        if let Some(status) = child.try_wait().expect("wait") {
            return status.code();
        }
        assert!(Instant::now() < until, "the run goes on");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until a row of a bundle has a tick.
pub fn await_tick(bundle: &Path) {
    let rows = || fs::read_dir(bundle.join("scenarios")).into_iter().flatten().flatten();
    // A heading, and a line that is whole.
    let ticks = |row: fs::DirEntry| fs::read_to_string(row.path().join("ticks.csv")).unwrap_or_default();
    let until = Instant::now() + Duration::from_secs(120);
    while !rows().map(ticks).any(|text| text.matches('\n').count() > 1) {
        assert!(Instant::now() < until, "{} never had a tick", bundle.display());
        std::thread::sleep(Duration::from_millis(50));
    }
}

static TURN: RwLock<()> = RwLock::new(());

/// The machine for one test, if real-time scheduling is allowed here: others would disturb what it judges, or it them,
/// or it compares the whole machine with what it was. A test that measures is no test without real-time scheduling.
pub fn alone() -> Option<RwLockWriteGuard<'static, ()>> {
    let turn = TURN.write().unwrap_or_else(PoisonError::into_inner);
    may_measure().then_some(turn)
}

/// The machine for a test and others like it, which judge nothing that they would disturb.
pub fn beside_others() -> RwLockReadGuard<'static, ()> {
    TURN.read().unwrap_or_else(PoisonError::into_inner)
}

/// The same, if real-time scheduling is allowed here.
pub fn measures_beside_others() -> Option<RwLockReadGuard<'static, ()>> {
    let turn = beside_others();
    may_measure().then_some(turn)
}

fn may_measure() -> bool {
    static ALLOWED: OnceLock<Result<(), String>> = OnceLock::new();
    let allowed = ALLOWED.get_or_init(|| {
        let out = output(tactus().args(["measure", "-D", "1", "--json", "--no-self-test"]));
        if out.status.code() == Some(0) { Ok(()) } else { Err(stderr(&out)) }
    });
    allowed.as_ref().inspect_err(|why| skipped(why)).is_ok()
}

/// Says loudly that a test was not done; where everything must be there, it is a failure.
#[expect(clippy::print_stderr, reason = "a test that could not be done says so")]
pub fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
    assert!(std::env::var_os("TACTUS_TEST_ALL").is_none(), "skipped although TACTUS_TEST_ALL is set: {why}");
}

/// Whether a guest without an operating system can be started here; where not, that is said.
pub fn bare_is_usable() -> bool {
    let document = json(&output(tactus().args(["environments", "--json"])));
    let usable = |entry: &Value| entry["kind"] == "bare" && entry["usable"] == true;
    let usable = document.as_array().unwrap().iter().any(usable);
    if !usable {
        skipped("no guest without an operating system can be started here");
    }
    usable
}
