//! What the end-to-end tests share: the real command, and a look at what it leaves behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The command, without a terminal and without what the tester's shell says.
pub fn tactus() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tactus"));
    command.stdin(Stdio::null()).env_remove("NO_COLOR").env("LC_ALL", "C.UTF-8");
    command.env("TACTUS_LOCK", lock());
    command
}

/// The lock of this test alone: tests take turns among themselves, or know that they do not disturb each other.
pub fn lock() -> String {
    let test = std::thread::current().name().unwrap_or("test").to_owned();
    let end = test.len().saturating_sub(80);
    test[end..].to_owned()
}

/// A copy of the program that anybody may start, in `place`. Another process makes it: a file that this one has open for
/// writing is held by each child that another test forks meanwhile, and cannot be started ("Text file busy").
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

/// A command that goes on, whose words nobody reads.
pub fn started(command: &mut Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("tactus starts")
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What it printed as JSON; on failure with everything it said.
pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}\nstdout: {}\nstderr: {}", stdout(output), stderr(output)))
}

/// Processes of any run: those that carry its mark.
pub fn marked() -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environ.windows(b"TACTUS_RUN=".len()).any(|w| w == b"TACTUS_RUN=") {
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let text = String::from_utf8_lossy(&command).replace('\0', " ");
            found.push(format!("{} {text}", entry.file_name().to_string_lossy()));
        }
    }
    found
}

/// Guardians, which carry no mark and outlive their run: what they take back, they take back last.
fn guardians() -> Vec<String> {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let commands = processes.map(|entry| fs::read(entry.path().join("cmdline")).unwrap_or_default());
    commands
        .filter(|command| command.split(|byte| *byte == 0).nth(1) == Some(b"guardian"))
        .map(|command| String::from_utf8_lossy(&command).replace('\0', " "))
        .collect()
}

/// Mounts and cgroups with our name.
pub fn mounts_and_cgroups() -> Vec<String> {
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

/// Waits until nothing of any run is left; says what is, if it stays.
pub fn nothing_is_left() {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let left: Vec<String> = marked().into_iter().chain(guardians()).chain(mounts_and_cgroups()).collect();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < until, "left behind: {left:#?}");
        std::thread::sleep(Duration::from_millis(100));
    }
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
/// or it looks at the whole machine in the middle. A test that measures is no test without real-time scheduling.
pub fn alone() -> Option<RwLockWriteGuard<'static, ()>> {
    let turn = TURN.write().unwrap_or_else(PoisonError::into_inner);
    may_measure().then_some(turn)
}

/// The machine for a test and others like it, which judge nothing that they would disturb.
pub fn beside_others() -> Beside {
    Beside(Some(TURN.read().unwrap_or_else(PoisonError::into_inner)))
}

/// The same, if real-time scheduling is allowed here.
pub fn measures_beside_others() -> Option<Beside> {
    let turn = beside_others();
    may_measure().then_some(turn)
}

/// A turn beside others.
pub struct Beside(Option<RwLockReadGuard<'static, ()>>);

impl Beside {
    /// Waits until nothing of any run is left, when the others have ended as well: what is left is one's whose turn
    /// it was.
    pub fn leaves_nothing(&mut self) {
        self.0 = None;
        let alone = TURN.write().unwrap_or_else(PoisonError::into_inner);
        nothing_is_left();
        drop(alone);
        *self = beside_others();
    }
}

fn may_measure() -> bool {
    static ALLOWED: OnceLock<Result<(), String>> = OnceLock::new();
    let allowed = ALLOWED.get_or_init(|| {
        let out = output(tactus().args(["measure", "-D", "1", "--json", "--no-control"]));
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
