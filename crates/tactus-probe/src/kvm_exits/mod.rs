//! `tactus-probe exits`: why the virtual CPUs of a guest left it, how often, and for how long. BPF programs at KVM's
//! tracepoints `kvm_exit` and `kvm_entry` write it into memory that this process shares with them. No file of tracefs is
//! written to; programs, memory and events live as long as their descriptors, which this process alone has: whatever
//! ends it ends the counting.
//!
//! Lines on stdout; the end of stdin ends it:
//!
//! ```text
//! counting                                or: refused WHY
//! counted NS                              at the end: for how long
//! exit CPU ISA REASON COUNT NS LONGEST    for each reason of each virtual CPU
//! users                                   where it is known which of them went on to user space
//! user CPU REASON COUNT NS LONGEST        for each reason of each virtual CPU, KVM_EXIT_* of linux/kvm.h
//! ```
//!
//! CPU is the guest's number, REASON KVM's for the set of instructions ISA (1: VMX, 2: SVM), NS the time from the exits
//! to the entries after them. An exit that is not over is not in it. Of those that went on to user space (`kvm_userspace_exit`)
//! NS is the time that was spent there: until KVM takes up the guest's registers again (`kvm_fpu`).
#![expect(clippy::print_stdout, reason = "a process of the probe speaks to the one that has started it")]

mod program;
mod record;
mod tracepoint;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use self::program::{Says, entered, left};
use self::record::{Kind, MOST_THREADS, Record, WORDS};
use self::tracepoint::Tracepoint;
use crate::bpf::why::{self, Place, Step};
use crate::sys::{self, bpf, perf};

/// The argument that makes a process one that counts exits.
pub const ARGUMENT: &str = "exits";

/// Counts the times between two tracepoints until it is dropped.
struct Counter {
    /// When, in ns.
    began: u64,
    events: Vec<OwnedFd>,
    threads: Vec<(u32, Record)>,
}

/// The counters of all exits, and of those to user space if the kernel reports them.
struct Counters {
    all: Counter,
    users: Option<Counter>,
}

/// Counts until stdin ends. `words`: `thread=CPU:TID`.
pub fn main(words: &[String]) -> u8 {
    match begin(words) {
        Ok(counters) => {
            println!("counting");
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            counters.end();
            0
        }
        Err(why) => {
            println!("refused {why}");
            2
        }
    }
}

fn begin(words: &[String]) -> Result<Counters, String> {
    let threads = threads(words).ok_or("its words are not thread=CPU:TID")?;
    if threads.len() > MOST_THREADS {
        return Err(["more than ", &MOST_THREADS.to_string(), " virtual CPUs"].concat());
    }
    if !threads.iter().any(|(_, thread)| runs_by_kvm(*thread)) {
        return Err(
            "KVM runs none of its virtual CPUs: it is emulated, or runs under another hypervisor".to_owned()
        );
    }
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    if namespace.to_str() != Some(FIRST_NAMESPACE) {
        return Err("KVM uses other thread numbers than this pid namespace".to_owned());
    }
    let exit = Tracepoint::of("kvm/kvm_exit")?;
    let entry = Tracepoint::of("kvm/kvm_entry")?;
    let (Some(reason), Some(isa)) = (exit.field("exit_reason", 4), exit.field("isa", 4)) else {
        return Err("this kernel's tracepoint kvm_exit names no exit_reason (it does on x86)".to_owned());
    };
    let users =
        to_user().map(|(exit, says, back)| count(threads.clone(), (&exit, says), &back)).transpose()?;
    Ok(Counters { all: count(threads, (&exit, Says::Exit { reason, isa }), &entry)?, users })
}

/// The tracepoints between which a virtual CPU is in user space. The second fires when a processor's registers change
/// from user space's to the guest's, and when they change back. The first follows the change to user space, so the next
/// second one is the change to the guest.
fn to_user() -> Option<(Tracepoint, Says, Tracepoint)> {
    let exit = Tracepoint::of("kvm/kvm_userspace_exit").ok()?;
    let says = Says::ToUser { reason: exit.field("reason", 4)?, error: exit.field("errno", 4)? };
    Some((exit, says, Tracepoint::of("kvm/kvm_fpu").ok()?))
}

/// Counts from the one tracepoint to the other, by threads and by the reason that the first says.
fn count(
    threads: Vec<(u32, u32)>,
    (exit, says): (&Tracepoint, Says),
    entry: &Tracepoint,
) -> Result<Counter, String> {
    let failed = |step, error: io::Error| why::reason(step, &error, "", &Place::here());
    let (memory, words) = bpf::memory(threads.len() * WORDS).map_err(|error| failed(Step::Counter, error))?;
    let own: Vec<u32> = threads.iter().map(|(_, thread)| *thread).collect();
    let map = memory.as_raw_fd();
    let cpu = sys::affinity().ok().and_then(|cpus| cpus.first()).unwrap_or(0);
    let place = |at: &Tracepoint, instructions: &[u64]| {
        let program = bpf::program(bpf::Kind::Tracepoint, instructions, None, &mut [])
            .map_err(|error| failed(Step::Counter, error))?;
        let event = perf::tracepoint(cpu, at.id).map_err(|error| failed(Step::Tracepoint, error))?;
        bpf::run_at(&event, &program).map_err(|error| failed(Step::Attach, error))?;
        Ok::<_, String>(event)
    };
    let began = sys::now();
    let events = vec![place(entry, &entered(map, &own))?, place(exit, &left(map, &own, says))?];
    let records = words.chunks_exact(WORDS).map(Record::new);
    let threads = threads.into_iter().map(|(cpu, _)| cpu).zip(records).collect();
    Ok(Counter { began, events, threads })
}

/// The pid namespace of the machine (PROC_PID_INIT_INO), in which KVM's tracepoints number threads.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

fn threads(words: &[String]) -> Option<Vec<(u32, u32)>> {
    let thread = |word: &String| {
        let (cpu, thread) = word.strip_prefix("thread=")?.split_once(':')?;
        Some((cpu.parse().ok()?, thread.parse().ok()?))
    };
    words.iter().map(thread).collect()
}

/// Whether a thread's process has virtual CPUs of KVM.
fn runs_by_kvm(thread: u32) -> bool {
    let open = std::fs::read_dir(["/proc/", &thread.to_string(), "/fd"].concat()).into_iter().flatten();
    let mut files = open.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    files.any(|file| file.to_string_lossy().starts_with("anon_inode:kvm-vcpu"))
}

impl Counters {
    /// Ends it and prints the counts.
    fn end(self) {
        let began = self.all.began;
        let (all, users) = (self.all.end(), self.users.map(Counter::end));
        println!("counted {}", sys::now() - began);
        for (cpu, record) in all {
            record.kinds(|reason, Kind { count, ns, longest_ns }| {
                println!("exit {cpu} {} {reason} {count} {ns} {longest_ns}", record.isa());
            });
        }
        let Some(users) = users else { return };
        println!("users");
        for (cpu, record) in users {
            record.kinds(|reason, Kind { count, ns, longest_ns }| {
                println!("user {cpu} {reason} {count} {ns} {longest_ns}");
            });
        }
    }
}

impl Counter {
    /// Ends it.
    fn end(self) -> Vec<(u32, Record)> {
        drop(self.events);
        self.threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_read_whole_or_not_at_all() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(threads(&words(&["thread=0:7", "thread=1:9"])), Some(vec![(0, 7), (1, 9)]));
        for wrong in ["thread=0", "thread=0:x", "thread=:7", "7", "thread=0:-1"] {
            assert_eq!(threads(&words(&["thread=0:7", wrong])), None, "{wrong}");
        }
    }

    /// Any two tracepoints will do: KVM has its own only where the processor has them.
    #[test]
    fn what_lies_between_two_tracepoints_is_counted_for_its_thread_by_what_the_first_says() {
        const TIMES: u64 = 50;
        const PAUSE: u64 = 100_000;
        let tracepoint = |name| Tracepoint::of(name);
        let enter = tracepoint("raw_syscalls/sys_enter");
        let (Ok(enter), Ok(exit)) = (enter, tracepoint("raw_syscalls/sys_exit")) else {
            return eprintln!("SKIPPED: this kernel has no tracepoints of system calls, or this is not root");
        };
        // The number of the call, and the lower half of its first argument: CLOCK_MONOTONIC (1) of clock_nanosleep.
        let (call, first) = (enter.field("id", 8).unwrap(), enter.field("id", 8).unwrap() + 8);
        let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let other = std::process::id();
        let says = Says::Exit { reason: call, isa: first };
        let counter = match count(vec![(3, other), (7, own)], (&enter, says), &exit) {
            Ok(counter) => counter,
            Err(why) => return eprintln!("SKIPPED: {why}"),
        };
        for _ in 0..TIMES {
            sys::sleep_until(sys::now() + PAUSE);
        }
        let number = usize::try_from(libc::SYS_clock_nanosleep).unwrap();
        let (cpu, record) = counter.threads[1];
        let kind = record.of(number);
        assert_eq!((cpu, record.isa()), (7, 1));
        assert!(kind.count >= TIMES && kind.count < 2 * TIMES, "{}", kind.count);
        assert!(kind.ns > 0 && kind.longest_ns <= kind.ns && kind.ns <= kind.count * kind.longest_ns);
        // A pause may be shorter once: at least one of them was as long as planned.
        assert!(kind.longest_ns > PAUSE / 2 && kind.ns <= sys::now() - counter.began);
        // Nothing is counted once it has ended.
        drop(counter.events);
        let before = record.of(number).count;
        let _ = sys::sleep_until(sys::now() + PAUSE);
        assert_eq!(record.of(number).count, before);
    }

    #[test]
    fn what_kvm_does_not_run_is_not_counted() {
        let own = ["thread=0:", &std::process::id().to_string()].concat();
        assert!(begin(&[own]).err().unwrap().contains("KVM runs none"));
        assert!(begin(&[]).is_err());
    }
}
