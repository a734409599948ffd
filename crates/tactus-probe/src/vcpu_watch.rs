//! `tactus-probe watch`: observes from the host the threads that run a guest's virtual CPUs, and injects the fault
//! `hold-vcpu`.
//!
//! Each thread's scheduling record (`/proc/TID/schedstat`: time on a CPU, time that it waited for one, how often it
//! came to one) and state are read at intervals. The record contains the sum of all waits that ended since the last
//! look; the output gives the least that one of them took. Lines on stdout:
//!
//! ```text
//! watching                    the holds are ready as well; or: refused WHY
//! waited CPU UNTIL NS         a wait for a CPU of at least NS, which ended within the look that ended at UNTIL
//! kept CPU UNTIL NS ID NAME   the same, if known: when it came to its CPU, and the thread that had it meanwhile
//! blind WHY                   why the `kept` lines are missing
//! outside CPU UNTIL NS        it had its CPU for NS and was out of its guest, until it entered that
//! stopped CPU UNTIL NS        it was stopped (by a tracer) for NS until then
//! held CPU FROM TO            the fault kept it off its CPU
//! total CPU NS                at the end: the sum of its waits
//! ```
//!
//! CPU is the guest's number, times are CLOCK_MONOTONIC in ns. The end of stdin ends it. A thread that is held by
//! ptrace(2) continues when its tracer is gone, however that ended.
#![expect(clippy::print_stdout, reason = "a process of the probe speaks to the one that has started it")]

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use tactus_measure::thread::make_fifo;
use tactus_model::CpuSet;
use tactus_model::lot::Lots;

use crate::blame::{Kept, Out, Outside, Tracepoints};
use crate::sys;

/// The argument that makes a process a watch.
pub const ARGUMENT: &str = "watch";
/// The least waiting time within a look that is reported, in ns.
const WORTH_TELLING_NS: u64 = 100_000;
/// How long after an event its record is there at the latest, in ns.
const WRITTEN_NS: u64 = 2_000_000;
/// Priority of the task that holds a vCPU.
const ABOVE_ALL: u32 = 99;

/// A thread to watch.
struct Watched {
    cpu: u32,
    thread: u32,
    /// The machine's CPU to which it is pinned, if the thread that has it is to be reported.
    on: Option<u32>,
    schedstat: File,
    stat: File,
    first: Waited,
    before: Waited,
    /// Since when it has been seen stopped.
    stopped: Option<u64>,
    /// Its time outside of the guest, by KVM.
    outside: Outside,
    looked: u64,
}

/// The contents of a thread's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waited {
    /// Time that it waited for a CPU, in ns.
    ns: u64,
    /// How often it came to one.
    times: u64,
}

impl Waited {
    /// A lower bound of the longest wait since `before`. The waits ended within `look_ns`, and all but the first of
    /// them also began in it.
    const fn longest_since(self, before: Self, look_ns: u64) -> u64 {
        let (all, times) = (self.ns.saturating_sub(before.ns), self.times.saturating_sub(before.times));
        if times <= 1 {
            return all;
        }
        let (even, first) = (all / times, all.saturating_sub(look_ns));
        if even > first { even } else { first }
    }
}

/// A fault to carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hold {
    cpu: u32,
    thread: u32,
    on: u32,
    traced: bool,
    length: u64,
    every: u64,
    /// Seed of the random times of the fault.
    seed: u64,
}

/// Watches until stdin ends. `words`: `every=NS`, `thread=CPU:TID[:ON]`, `hold=CPU:TID:ON:fifo|ptrace:LENGTH:EVERY:SEED`.
pub fn main(words: &[String]) -> u8 {
    match begin(words) {
        Ok((every, watched)) => {
            let cpus: CpuSet = watched.iter().filter_map(|thread| thread.on).collect();
            let blame = if cpus.is_empty() { None } else { Some(Tracepoints::threads(&cpus)) };
            if let Some(Err(why)) = &blame {
                println!("blind {why}");
            }
            println!("watching");
            look(every, watched, blame.and_then(Result::ok).as_ref());
            0
        }
        Err(why) => {
            println!("refused {why}");
            2
        }
    }
}

fn begin(words: &[String]) -> Result<(u64, Vec<Watched>), String> {
    let mut every = 10_000_000;
    let (mut watched, mut holds) = (Vec::new(), Vec::new());
    for word in words {
        let wrong = || format!("`{word}` is not a word of a watch");
        let (key, value) = word.split_once('=').ok_or_else(wrong)?;
        match key {
            "every" => every = value.parse().ok().filter(|every| *every > 0).ok_or_else(wrong)?,
            "thread" => {
                let mut numbers = value.split(':').map(|number| number.parse::<u32>().ok());
                let (Some(Some(cpu)), Some(Some(thread)), on @ (None | Some(Some(_)))) =
                    (numbers.next(), numbers.next(), numbers.next())
                else {
                    return Err(wrong());
                };
                let opened = Watched::open(cpu, thread, on.flatten());
                watched.push(opened.map_err(|error| format!("thread {thread}: {error}"))?);
            }
            "hold" => holds.push(Hold::parse(value).ok_or_else(wrong)?),
            _ => return Err(wrong()),
        }
    }
    for hold in holds {
        hold.start()?;
    }
    Ok((every, watched))
}

impl Watched {
    fn open(cpu: u32, thread: u32, on: Option<u32>) -> io::Result<Self> {
        let open = |name: &str| File::open(format!("/proc/{thread}/{name}"));
        let (schedstat, stat) = (open("schedstat")?, open("stat")?);
        let first = waited(&schedstat).ok_or_else(|| io::Error::other("its schedstat cannot be read"))?;
        let (outside, looked) = (Outside::new(thread.into()), sys::now());
        Ok(Self { cpu, thread, on, schedstat, stat, first, before: first, stopped: None, outside, looked })
    }

    fn look(&mut self, last: u64, now: u64, blame: Option<&Tracepoints>) {
        if let Some(waited) = waited(&self.schedstat) {
            let longest = waited.longest_since(self.before, now.saturating_sub(last));
            self.before = waited;
            if longest >= WORTH_TELLING_NS {
                let kept = || blame?.kept_from(self.on?, self.thread, longest, last, now);
                match kept().filter(|kept| kept.ns >= longest / 2) {
                    Some(Kept { until, ns, by }) => println!("kept {} {until} {ns} {by}", self.cpu),
                    None => println!("waited {} {now} {longest}", self.cpu),
                }
            }
        }
        // Records begun before this time are complete.
        let until = now.saturating_sub(WRITTEN_NS);
        if let (Some(blame), Some(on)) = (blame, self.on)
            && until > self.looked
        {
            let out = blame.outside(on, &mut self.outside, self.looked, until);
            self.looked = until + 1;
            if let Some(Out { until, ns }) = out.filter(|out| out.ns >= WORTH_TELLING_NS) {
                println!("outside {} {until} {ns}", self.cpu);
            }
        }
        match (is_stopped(&self.stat), self.stopped) {
            (true, None) => self.stopped = Some(last),
            (false, Some(since)) => {
                println!("stopped {} {now} {}", self.cpu, now.saturating_sub(since));
                self.stopped = None;
            }
            _ => {}
        }
    }
}

/// The time that a thread has waited for a CPU (Documentation/scheduler/sched-stats.rst: the second and third number of
/// /proc/PID/schedstat; a wait is added when it is over).
fn waited(schedstat: &File) -> Option<Waited> {
    let mut buffer = [0; 128];
    let length = schedstat.read_at(&mut buffer, 0).ok()?;
    let text = std::str::from_utf8(&buffer[..length]).ok()?;
    let mut numbers = text.split_ascii_whitespace().skip(1).map(str::parse);
    Some(Waited { ns: numbers.next()?.ok()?, times: numbers.next()?.ok()? })
}

/// Whether a thread's state is `t`: stopped by a tracer (proc_pid_stat(5)).
fn is_stopped(stat: &File) -> bool {
    let mut buffer = [0; 128];
    let Ok(length) = stat.read_at(&mut buffer, 0) else { return false };
    let state = buffer[..length].iter().rposition(|byte| *byte == b')').and_then(|at| buffer.get(at + 2));
    state == Some(&b't')
}

fn look(every: u64, mut watched: Vec<Watched>, blame: Option<&Tracepoints>) {
    let stdin = io::stdin();
    let pause = Timespec {
        tv_sec: i64::try_from(every / 1_000_000_000).unwrap_or(1),
        tv_nsec: i64::try_from(every % 1_000_000_000).unwrap_or(0),
    };
    let mut last = sys::now();
    loop {
        let mut descriptors = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
        // Whatever stands there, its end or a word: it is over.
        if poll(&mut descriptors, Some(&pause)).is_ok_and(|ready| ready > 0) {
            break;
        }
        let now = sys::now();
        watched.iter_mut().for_each(|thread| thread.look(last, now, blame));
        last = now;
    }
    let now = sys::now();
    for thread in &mut watched {
        thread.look(last, now, blame);
        println!("total {} {}", thread.cpu, thread.before.ns - thread.first.ns);
    }
}

impl Hold {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (cpu, thread, on) = (number()?, number()?, number()?);
        let by = parts.next()?;
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (length, every, seed) = (number()?, number()?, number()?);
        let small = |n: u64| u32::try_from(n).ok();
        let traced = match by {
            "fifo" => false,
            "ptrace" => true,
            _ => return None,
        };
        let hold =
            Self { cpu: small(cpu)?, thread: small(thread)?, on: small(on)?, traced, length, every, seed };
        (length > 0 && every > length && parts.next().is_none()).then_some(hold)
    }

    /// Starts the thread that carries it out, for as long as this process lives.
    fn start(self) -> Result<(), String> {
        let (sender, receiver) = tactus_measure::channel::channel();
        let carry = move || {
            let ready = if self.traced {
                sys::stop_thread(self.thread).and_then(|stopped| sys::resume_thread(self.thread, stopped))
            } else {
                make_fifo(self.on, ABOVE_ALL).map_err(|refusal| io::Error::other(refusal.reason))
            };
            let fit = ready.is_ok();
            sender.send(ready);
            if fit {
                self.carry_out();
            }
        };
        std::thread::Builder::new()
            .name("hold-vcpu".into())
            .stack_size(128 * 1024)
            .spawn(carry)
            .map_err(|error| format!("no thread could be started: {error}"))?;
        let ready = receiver.receive().unwrap_or_else(|| Err(io::ErrorKind::BrokenPipe.into()));
        ready.map_err(|error| error.to_string())
    }

    fn carry_out(&self) {
        let lots = Lots::of_fault(self.length, self.every, self.seed);
        let mut due = lots.next(sys::now() + self.every / 2);
        loop {
            sys::sleep_until(due);
            let stopped = self.traced.then(|| sys::stop_thread(self.thread));
            let from = sys::now();
            if let Some(stopped) = stopped {
                // The thread has gone, and with it the reason to hold it.
                let Ok(stopped) = stopped else { return };
                sys::sleep_until(from + self.length);
                let _ = sys::resume_thread(self.thread, stopped);
            } else {
                while sys::now() < from + self.length {}
            }
            let to = sys::now();
            println!("held {} {from} {to}", self.cpu);
            due = lots.next(to.max((due / self.every + 1) * self.every));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_is_read_whole_or_not_at_all() {
        let hold = Hold::parse("1:4242:3:ptrace:50000000:1000000000:7").unwrap();
        assert_eq!((hold.cpu, hold.thread, hold.on, hold.traced, hold.seed), (1, 4242, 3, true, 7));
        for wrong in [
            "",
            "1:2:3:fifo:5",
            "1:2:3:fifo:5:5:1",
            "1:2:3:fifo:1:5",
            "1:2:3:fifo:0:5:1",
            "1:2:3:magic:1:5:1",
            "1:2:3:fifo:1:5:x",
            "1:2:3:fifo:1:5:6:7",
            "a:2:3:fifo:1:5:1",
        ] {
            assert_eq!(Hold::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_told_of_several_waits_is_one_of_them_and_no_longer_than_that() {
        let before = Waited { ns: 1_000, times: 7 };
        let longest = |ns, times| Waited { ns, times }.longest_since(before, 10_000);
        assert_eq!(longest(51_000, 8), 50_000, "one");
        assert_eq!(longest(51_000, 12), 40_000, "all but the first lie within the look");
        assert_eq!(longest(9_000, 11), 2_000, "the mean is no longer than the longest");
        assert_eq!(longest(1_000, 7), 0);
        // It still waits: its record has not changed since the last look.
        assert_eq!(longest(900, 7), 0);
    }

    #[test]
    fn the_record_of_this_thread_can_be_read() {
        let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let mut watched = Watched::open(0, thread, None).unwrap();
        assert!(!is_stopped(&watched.stat));
        watched.look(sys::now(), sys::now(), None);
        assert!(watched.before.ns >= watched.first.ns && watched.before.times >= watched.first.times);
        assert!(Watched::open(0, u32::MAX / 2, Some(0)).is_err());
    }
}
