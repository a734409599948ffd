//! Loads, faults and measurements of values run in separate processes, beside the one that measures latency. Their
//! forks, memory and signals cannot reach the measuring threads, and the end of one process ends everything.
//!
//! The session starts `tactus-probe worker JSON` and exchanges lines with it. The worker says `ready` (or `refused
//! JSON`), is told `go`, says `running`, is told `stop`, says `rounds N LONGEST WAY`. Its workers are forked before it
//! says `ready`. They die with it (PR_SET_PDEATHSIG), it dies with the session, and the end of its stdin also ends it.
//! A measurement of values may send `value JSON` and `note JSON` at any time. When told to stop, it first sends its
//! last values and where the time went (`breakdown JSON`). A fault with random times then sends them as `at TIMES`.
//!
//! A worker that changes the kernel (`block`, `timerlat`) does not die with the session: at the end of its stdin it
//! first restores its changes. It announces each change before it makes it, as `undo JSON`. If it is killed, the
//! session starts another worker that restores them. If both are killed at once, the guardian of the run restores them,
//! or the guest with that kernel ends.
#![expect(clippy::print_stdout, reason = "a process of the probe speaks to the one that has started it")]

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, waitpgid};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tactus_model::catalogue::{Fault, Load};
use tactus_model::lot::LOAD_ON_NS;
use tactus_model::message::{Activity, Injected, Note, Refusal, What};
use tactus_model::outcome::breakdown::Breakdown;
use tactus_model::outcome::{ValueResult, take_value};
use tactus_model::undo::Undo;
use tactus_model::windows::Moments;

use crate::fault::{Count, Disturbance, Held, Made};
use crate::sys::Shared;
use crate::work::{Pace, die_with, over};
use crate::{answer, fault, keeper, load, memory, sys, timerlat, values};

/// The argument that makes a process a worker.
pub const ARGUMENT: &str = tactus_model::undo::WORKER;
/// How long a worker may take for an answer, in s.
pub const PATIENCE_S: i64 = 10;
/// How long the first round of a load is waited for: shorter than [`PATIENCE_S`].
const FIRST_ROUND: Duration = Duration::from_secs(2);
/// How long one that yields values may take to say its last ones: shorter than [`PATIENCE_S`].
const FINISHING: Duration = Duration::from_secs(8);
/// How long a worker that changed the kernel may take to restore it.
const UNDOING: Duration = Duration::from_secs(10);

/// The task with which a worker is started.
#[derive(Debug, Serialize, Deserialize)]
struct Task {
    activity: Activity,
    /// Priority above the measuring threads.
    above: u32,
    /// For how long, and how often, the session measures.
    pace: Pace,
    /// Process id of the session.
    parent: u32,
    /// Whether it must enable huge pages again.
    #[serde(default)]
    huge_pages: bool,
    /// The changes of a killed worker, in the order in which it made them. A worker with such a list only restores
    /// those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    back: Vec<Undo>,
}

/// The session's side of a worker. Dropping it ends it with all its workers.
pub struct Worker {
    activity: Activity,
    name: &'static str,
    child: Child,
    say: Option<ChildStdin>,
    hear: BufReader<ChildStdout>,
    over: bool,
    /// The undos of the changes that it has announced and not reported as restored.
    undos: Vec<Undo>,
    /// Values that were said and not taken.
    values: Vec<ValueResult>,
    /// The CPU time by kind, once it is over.
    breakdowns: Vec<Breakdown>,
    /// Notes that were said and not taken.
    notes: Vec<Note>,
    /// Answers that were not waited for.
    answers: VecDeque<String>,
    /// The times of its faults or loads.
    at: Moments,
}

impl Worker {
    /// Starts the worker of a load, of a fault or of a measurement that yields values; its workers then wait.
    ///
    /// # Errors
    /// Why it cannot be done here.
    pub fn start(activity: &Activity, above: u32, pace: Pace) -> Result<Self, Refusal> {
        let name = activity.what.kind();
        let failed =
            |what: String| Refusal { reason: format!("`{name}` could not be started: {what}"), hint: None };
        let (activity, parent) = (activity.clone(), std::process::id());
        let huge_pages = memory::are_huge_pages_forbidden();
        let task = Task { activity: activity.clone(), above, pace, parent, huge_pages, back: Vec::new() };
        let mut child = task.start().map_err(|error| failed(format!("/proc/self/exe: {error}")))?;
        let say = child.stdin.take();
        let Some(hear) = child.stdout.take() else { return Err(failed("it has no output".into())) };
        let hear = BufReader::new(hear);
        let mut worker = Self {
            activity,
            name,
            child,
            say,
            hear,
            over: false,
            undos: Vec::new(),
            values: Vec::new(),
            breakdowns: Vec::new(),
            notes: Vec::new(),
            answers: VecDeque::new(),
            at: Moments::default(),
        };
        let line = worker.answer().map_err(|error| failed(error.to_string()))?;
        if line == "ready" {
            return Ok(worker);
        }
        match line.strip_prefix("refused ").and_then(|json| serde_json::from_str(json).ok()) {
            Some(refusal) => {
                worker.undos.clear();
                Err(refusal)
            }
            None => Err(failed(format!("it sent `{line}`"))),
        }
    }

    /// Whether it measures: the measurement cannot continue without it.
    pub const fn measures(&self) -> bool {
        matches!(self.activity.what, What::Measure { .. })
    }

    /// Whether it is a load.
    pub const fn loads(&self) -> bool {
        matches!(self.activity.what, What::Load(_))
    }

    /// The number of its activity.
    pub const fn activity(&self) -> u32 {
        self.activity.id
    }

    /// Values that it has said since the last time.
    pub fn take_values(&mut self) -> Vec<ValueResult> {
        std::mem::take(&mut self.values)
    }

    /// Notes that it has said since the last time.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// Reads its messages, without waiting.
    pub fn listen(&mut self) {
        while self.has_said(0) && self.line().is_ok() {}
    }

    /// Lets the workers begin and waits until they have.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn go(&mut self) -> Result<(), String> {
        match self.ask("go") {
            Ok(line) if line == "running" => Ok(()),
            Ok(line) => Err(format!("`{}` did not begin: it sent `{line}`", self.name)),
            Err(error) => Err(format!("`{}` did not begin: {error}", self.name)),
        }
    }

    /// If it has ended by itself: that, in words, once.
    pub fn ended(&mut self) -> Option<String> {
        if self.over {
            return None;
        }
        let status = self.child.try_wait().ok()??;
        self.over = true;
        let words = self.answer().unwrap_or_default();
        let reason = words.strip_prefix("over ").map_or_else(|| status.to_string(), str::to_owned);
        // Its changes would stay in the kernel. A tracer cannot be ended before its readers have ended.
        let back = if timerlat::traces(&self.activity) { None } else { self.put_back() };
        let back = match back {
            None => "",
            Some(true) => "; its changes are reverted",
            Some(false) => "; NOT EVERYTHING THAT IT CHANGED COULD BE PUT BACK",
        };
        Some(["`", self.name, "` ended before its time: ", &reason, back].concat())
    }

    /// Has another worker restore its changes, if it has ended without doing so. Returns whether that succeeded; `None`
    /// if there were none.
    fn put_back(&mut self) -> Option<bool> {
        if self.undos.is_empty() {
            return None;
        }
        let back = std::mem::take(&mut self.undos);
        let (activity, pace) = (self.activity.clone(), Pace::default());
        let task = Task { activity, above: 0, pace, parent: 0, huge_pages: false, back };
        let Ok(mut child) = task.start() else { return Some(false) };
        // Its output is not used, and must not block it.
        drop((child.stdin.take(), child.stdout.take()));
        Some(child.wait().is_ok_and(|status| status.success()))
    }

    /// Stops a load, or lets it continue: all its processes, also those of programs.
    pub fn let_run(&self, on: bool) {
        if let (What::Load(_), Some(group)) = (&self.activity.what, self.group()) {
            let _ = kill_process_group(group, if on { Signal::CONT } else { Signal::STOP });
        }
    }

    /// The report on a load that is let run and stopped in turn.
    pub fn let_run_at(&self, at: Vec<u64>) -> Option<Injected> {
        let Activity { id, cpus, what: What::Load(load), .. } = &self.activity else { return None };
        Some(Injected {
            activity: *id,
            kind: load.kind().to_owned(),
            way: "SIGSTOP, SIGCONT".to_owned(),
            cpus: cpus.clone(),
            length_ns: LOAD_ON_NS,
            every_ns: 2 * LOAD_ON_NS,
            times: Some(at.len() as u64),
            longest_ns: None,
            at: Moments::of(at.into_iter()),
        })
    }

    fn group(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// Ends it with all its workers, lets it restore its changes, and returns its result.
    ///
    /// # Errors
    /// The failure, in words: its result is then unknown.
    pub fn stop(mut self) -> Result<Ended, String> {
        if self.over {
            return Ok(Ended::Before);
        }
        self.let_run(true);
        let line = self.ask("stop").map_err(|error| format!("`{}` did not stop: {error}", self.name))?;
        let Some(said) = line.strip_prefix("rounds ") else {
            return Err(format!("`{}` did not end well: {line}", self.name));
        };
        self.undos.clear();
        let mut words = said.splitn(3, ' ');
        let mut number = || words.next().and_then(|word| word.parse().ok());
        let (times, longest_ns) = (number(), number());
        let way = words.next().unwrap_or_default().to_owned();
        let Activity { id, cpus, what, .. } = &self.activity;
        let fault = match what {
            What::Fault(fault) => fault,
            What::Load(_) => return Ok(Ended::Load(*id, times.unwrap_or(0))),
            What::Measure { .. } => {
                let breakdowns = std::mem::take(&mut self.breakdowns);
                return Ok(Ended::Values(self.take_values(), breakdowns, self.take_notes()));
            }
        };
        let (length_ns, every_ns) = fault.size();
        let (kind, cpus) = (fault.kind().to_owned(), cpus.clone());
        let at = std::mem::take(&mut self.at);
        Ok(Ended::Fault(Injected {
            activity: *id,
            kind,
            way,
            cpus,
            length_ns,
            every_ns,
            times,
            longest_ns,
            at,
        }))
    }

    fn ask(&mut self, word: &str) -> io::Result<String> {
        let say = self.say.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(say, "{word}")?;
        self.answer()
    }

    fn answer(&mut self) -> io::Result<String> {
        loop {
            if let Some(answer) = self.answers.pop_front() {
                return Ok(answer);
            }
            if !self.has_said(PATIENCE_S) {
                let why = format!("no answer within {PATIENCE_S} s");
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            self.line()?;
        }
    }

    /// Whether there is something to read, or will be within this many seconds.
    fn has_said(&self, within_s: i64) -> bool {
        let limit = Timespec { tv_sec: within_s, tv_nsec: 0 };
        let mut descriptors = [PollFd::from_borrowed_fd(self.hear.get_ref().as_fd(), PollFlags::IN)];
        !self.hear.buffer().is_empty() || poll(&mut descriptors, Some(&limit)).is_ok_and(|ready| ready > 0)
    }

    /// Takes in one line: a line that is not an answer is kept until it is asked for.
    fn line(&mut self) -> io::Result<()> {
        fn json<T: DeserializeOwned>(line: &str, word: &str) -> Option<T> {
            serde_json::from_str(line.strip_prefix(word)?).ok()
        }
        let mut line = String::new();
        if self.hear.read_line(&mut line)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended without a message"));
        }
        let line = line.trim_end();
        if let Some(value) = json(line, "value ") {
            take_value(&mut self.values, value);
        } else if let Some(breakdown) = json(line, "breakdown ") {
            self.breakdowns.push(breakdown);
        } else if let Some(note) = json(line, "note ") {
            self.notes.push(note);
        } else if let Some(undo) = json(line, "undo ") {
            self.undos.push(undo);
        } else if let Some(at) = line.strip_prefix("at ") {
            self.at = Moments::try_from(at.to_owned()).unwrap_or_default();
        } else {
            self.answers.push_back(line.to_owned());
        }
        Ok(())
    }
}

/// The result of a worker.
pub enum Ended {
    /// A load: its activity and its rounds.
    Load(u32, u64),
    /// Its last values, where the time went meanwhile, and the notes on them.
    Values(Vec<ValueResult>, Vec<Breakdown>, Vec<Note>),
    /// A fault; its changes are restored.
    Fault(Injected),
    /// It ended before its time, which has been reported.
    Before,
}

/// Whether an activity changes the kernel, and so must not be killed.
const fn undoes(activity: &Activity) -> bool {
    matches!(activity.what, What::Fault(Fault::Block(_))) || timerlat::traces(activity)
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.say.take());
        let until = Instant::now() + UNDOING;
        while undoes(&self.activity) && Instant::now() < until && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(2));
        }
        let ended = self.child.try_wait();
        let Some(group) = self.group() else { return };
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
        // Workers whose parent has died are this process's children now (it is a subreaper). Waiting until no child is
        // left proves that all have ended.
        while waitpgid(group, WaitOptions::empty()).is_ok() {}
        // A worker that ended by itself has restored its changes.
        if !matches!(ended, Ok(Some(status)) if status.success()) {
            self.put_back();
        }
    }
}

impl Task {
    fn start(&self) -> io::Result<Child> {
        Command::new("/proc/self/exe")
            .arg0("tactus-probe")
            .args([ARGUMENT, &serde_json::to_string(self)?])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
    }
}

/// Makes this process the one that inherits the orphans below it.
pub fn adopt_orphans() {
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// The worker's side of `tactus-probe worker JSON`. Returns its exit code.
pub fn main(task: &str) -> u8 {
    if let Some(code) = keeper::main(task) {
        return code;
    }
    let Ok(task) = serde_json::from_str::<Task>(task) else {
        crate::stderr::say!("tactus-probe: worker: the task cannot be read");
        return 2;
    };
    // Started as /proc/self/exe it is called `exe`.
    sys::set_name(&["tactus-", task.activity.what.kind()].concat());
    if task.huge_pages {
        memory::allow_huge_pages();
    }
    if undoes(&task.activity) {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
            sys::on_signal(signal, sys::OnSignal::Ignore);
        }
        if !task.back.is_empty() {
            return fault::block::put_back(&task.back);
        }
    } else if !die_with(task.parent) {
        return 2;
    }
    let ready = match &task.activity.what {
        What::Measure { .. } if !(answer::answers(&task.activity) || timerlat::traces(&task.activity)) => {
            measurement(&task)
        }
        _ => disturbance(&task).map(|disturbance| (disturbance, None)),
    };
    let (disturbance, finish) = match ready {
        Ok(ready) => ready,
        Err(refusal) => {
            println!("refused {}", serde_json::to_string(&refusal).unwrap_or_default());
            return 2;
        }
    };
    // A program of the user may end before its first round. That is reported later, and is not an answer to `go`.
    let loads = matches!(&task.activity.what, What::Load(load) if !matches!(load, Load::Command(_)));
    match supervise(disturbance, finish, loads) {
        Ok(()) => 0,
        Err(error) => {
            crate::stderr::say!("tactus-probe: worker: {error}");
            2
        }
    }
}

/// The work that yields values, and the flag that tells it to finish.
fn measurement(task: &Task) -> Result<(Disturbance, Option<&'static Shared>), Refusal> {
    let none = |error: io::Error| Refusal { reason: format!("no memory to share: {error}"), hint: None };
    let finish = sys::shared(1).map_err(none)?.first();
    let works = match finish {
        Some(finish) => vec![values::work(&task.activity, task.pace, finish)?],
        None => Vec::new(),
    };
    Ok((Disturbance { way: String::new(), works, longest: &[], held: None, made: None }, finish))
}

/// Waits until workers that were told to finish have done so.
fn finished(workers: &mut Vec<i32>) {
    let until = Instant::now() + FINISHING;
    while !workers.is_empty() && Instant::now() < until {
        workers.retain(|pid| {
            !matches!(rustix::process::waitpid(Pid::from_raw(*pid), WaitOptions::NOHANG), Ok(Some(_)))
        });
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn disturbance(task: &Task) -> Result<Disturbance, Refusal> {
    let activity = &task.activity;
    let cpus = &activity.cpus;
    let works = match &activity.what {
        What::Load(what) => load::works(what, cpus)?,
        What::Fault(what) => {
            return fault::prepare(what, cpus, task.above, task.pace.seed);
        }
        What::Measure { .. } if answer::answers(activity) => answer::works(activity)?,
        What::Measure { .. } if timerlat::traces(activity) => return timerlat::prepare(activity),
        What::Measure { measure, .. } => {
            let reason = format!("`{}` cannot run beside a measurement", measure.kind());
            return Err(Refusal { reason, hint: None });
        }
    };
    Ok(Disturbance { way: String::new(), works, longest: &[], held: None, made: None })
}

/// Waits for the first round of a load, so that the measurement runs under load. A load that never makes one does not
/// block the measurement, and is reported when it has ended.
fn await_first(rounds: &[Shared]) {
    let until = Instant::now() + FIRST_ROUND;
    while Instant::now() < until && rounds.iter().all(|rounds| rounds.0.load(Ordering::Relaxed) == 0) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn supervise(disturbance: Disturbance, finish: Option<&Shared>, loads: bool) -> io::Result<()> {
    let Disturbance { way, works, longest, mut held, made } = disturbance;
    let rounds = sys::shared::<Shared>(works.len())?;
    let me = std::process::id();
    // Workers wait for the end of this pipe: it comes when this process closes its last writing end.
    let (gate, hold) = rustix::pipe::pipe()?;
    let mut hold: Option<OwnedFd> = Some(hold);
    let mut workers = Vec::new();
    for (work, rounds) in works.into_iter().zip(rounds) {
        workers.push(sys::fork(|| {
            drop(hold.take());
            if die_with(me) && rustix::io::read(&gate, &mut [0; 1]).is_ok() {
                work(&rounds.0);
                if finish.is_none_or(|finish| finish.0.load(Ordering::Relaxed) == 0) {
                    over("one of its workers could not continue");
                }
            }
        })?);
    }
    // A session that has gone shows itself as the end of its orders, not as an error of these answers.
    let tell = |words: &str| drop(writeln!(io::stdout(), "{words}"));
    tell("ready");
    let mut orders = BufReader::new(File::from(io::stdin().as_fd().try_clone_to_owned()?));
    let mut line = String::new();
    while matches!(orders.by_ref().take(64).read_line(&mut line), Ok(1..)) {
        match line.trim_end() {
            "go" => {
                drop(hold.take());
                if loads {
                    await_first(rounds);
                }
                match held.as_mut().map_or(Ok(()), |held| held.begin()) {
                    Ok(()) => tell("running"),
                    Err(words) => tell(&words),
                }
            }
            "stop" => {
                if let Some(finish) = finish {
                    finish.0.store(1, Ordering::Relaxed);
                    finished(&mut workers);
                }
                let count = match &mut held {
                    Some(held) => end(held.as_mut(), &mut workers),
                    None => Ok(Count::default()),
                };
                let sum: u64 = rounds.iter().map(|rounds| rounds.0.load(Ordering::Relaxed)).sum();
                let most = longest.iter().map(|longest| longest.0.load(Ordering::Relaxed)).max();
                match count {
                    Ok(count) => {
                        let at = made.map_or(count.at, Made::times);
                        if !at.is_empty() {
                            tell(&["at ", &String::from(Moments::of(at.into_iter()))].concat());
                        }
                        let number = |n: Option<u64>| n.map_or("-".to_owned(), |n| n.to_string());
                        let times = count.times.or((!rounds.is_empty()).then_some(sum));
                        let most = count.longest_ns.or(most.filter(|most| *most > 0));
                        let way = count.way.as_ref().unwrap_or(&way);
                        tell(&format!("rounds {} {} {way}", number(times), number(most)));
                    }
                    Err(words) => tell(&words.replace('\n', " ")),
                }
            }
            other => crate::stderr::say!("tactus-probe: worker: `{other}` is not an order"),
        }
        line.clear();
    }
    if let Some(mut held) = held {
        // With it ended its workers. Its own end says that everything is as it was.
        return end(held.as_mut(), &mut workers).map(drop).map_err(io::Error::other);
    }
    // The session is gone: so is everything here, this process included.
    let _ = rustix::process::kill_current_process_group(Signal::KILL);
    Ok(())
}

/// Ends what disturbs in the kernel, once no worker uses it any more.
fn end(held: &mut dyn Held, workers: &mut Vec<i32>) -> Result<Count, String> {
    for pid in workers.drain(..).filter_map(Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
        let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
    }
    held.end()
}
