//! By BPF: programs at the kernel's tracepoints run on each measured CPU. They record which thread leaves it and which
//! interrupts begin and end there, into memory that this process reads.
//!
//! Programs and memory live as long as their descriptors, which this process alone has; no file of tracefs is needed.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use tactus_model::CpuSet;
use tactus_model::trace::{EventKind, Trace, VECTORS};

use super::functions::Functions;
use super::outside::{Out, Outside};
use super::program::{HEAD, Of, RECORD, program};
use super::ring::{Kept, Ring};
use super::types::Types;
use crate::bpf::why::{self, Place, Step};
use crate::sys::bpf::{self, Mapped};

/// Limit of the records of a ring: half a second of a CPU with 15000 interrupts in that time. The session reads every
/// 100 ms.
const MOST_RECORDS: usize = 1 << 15;
/// The fewest that are of use.
const FEWEST_RECORDS: usize = 1 << 10;
/// Limit of the CPUs that have a ring: each event of the last one makes this many comparisons.
const MOST_CPUS: usize = 64;

/// The records, written as long as it lives.
pub struct Tracepoints {
    /// The first to go: nothing is written any more.
    _attached: Vec<OwnedFd>,
    memory: Mapped,
    cpus: Vec<u32>,
    words: usize,
    /// Whether threads that leave and enter guests are recorded.
    guests: bool,
    /// The names of functions, if timers are recorded.
    functions: Option<Functions>,
}

/// When virtual CPUs leave their guests and enter them. The thread that runs the program is the virtual CPU's.
const GUESTS: [(&CStr, EventKind); 2] =
    [(c"kvm_exit", EventKind::GuestLeft), (c"kvm_entry", EventKind::GuestEntered)];

impl Tracepoints {
    /// Begins for these CPUs. `wakes`: also with when threads that were last on them are woken.
    ///
    /// # Errors
    /// Why it cannot be known.
    pub fn begin(cpus: &CpuSet, wakes: bool) -> Result<Self, String> {
        Self::try_begin(cpus, Some(wakes), &[])
    }

    /// Begins with which threads have these CPUs, and when virtual CPUs leave their guests and enter them there.
    ///
    /// # Errors
    /// Why it cannot be known.
    pub fn threads(cpus: &CpuSet) -> Result<Self, String> {
        Self::try_begin(cpus, None, &GUESTS)
    }

    /// The thread that had a CPU until another thread came to it: [`Ring::kept_from`].
    pub fn kept_from(&self, cpu: u32, thread: u32, most: u64, from: u64, until: u64) -> Option<Kept> {
        let place = self.cpus.iter().position(|own| *own == cpu)?;
        self.ring(place).kept_from(thread.into(), most, from, until)
    }

    /// The activity of a CPU between two moments, by its place among those for which it was begun.
    pub fn between(&self, place: usize, due: u64, seen: u64) -> Trace {
        self.ring(place).between(due, seen, |address| self.functions.as_ref()?.name(address))
    }

    /// The CPUs that have rings.
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    fn ring(&self, place: usize) -> Ring<'_> {
        Ring::new(&self.memory.words()[place * self.words..][..self.words])
    }

    /// The time of a thread outside of its guest on a CPU between two moments, for [`Outside`]; `None`: exits of guests
    /// are not recorded. Call it some ms after the later moment.
    pub fn outside(&self, cpu: u32, outside: &mut Outside, from: u64, until: u64) -> Option<Out> {
        let place = self.cpus.iter().position(|own| *own == cpu).filter(|_| self.guests)?;
        let (records, whole) = self.ring(place).records(from, until);
        outside.take(&records, whole)
    }

    /// `interrupts`: with interrupts and timers, and with wake-ups if it says so.
    fn try_begin(
        cpus: &CpuSet,
        interrupts: Option<bool>,
        guests: &[(&CStr, EventKind)],
    ) -> Result<Self, String> {
        let (interrupts, wakes) = (interrupts.is_some(), interrupts == Some(true));
        let cpus: Vec<u32> = cpus.iter().collect();
        if cpus.len() > MOST_CPUS {
            return Err(["more than ", &MOST_CPUS.to_string(), " CPUs"].concat());
        }
        let failed = |step, error: &io::Error| why::reason(step, error, "", &Place::here());
        let mut records = MOST_RECORDS;
        let (map, memory) = loop {
            match Mapped::new(cpus.len() * (HEAD + records * RECORD)) {
                Ok(made) => break made,
                Err(error)
                    if records == FEWEST_RECORDS || error.kind() == io::ErrorKind::PermissionDenied =>
                {
                    return Err(failed(Step::Counter, &error));
                }
                // A map is not as large on every kernel.
                Err(_) => records /= 2,
            }
        };
        let mut attached = Vec::new();
        let mut attach = |name: &CStr, what| {
            let program = program(map.as_raw_fd(), &cpus, records, what);
            let program = bpf::program(bpf::Kind::RawTracepoint, &program, None, &mut [])
                .map_err(|error| failed(Step::Counter, &error))?;
            match bpf::run_at_tracepoint(name, &program) {
                Ok(at) => {
                    attached.push(at);
                    Ok(())
                }
                Err(error) => Err(failed(Step::Attach, &error)),
            }
        };
        // This tracepoint is required; the others depend on the kernel. A kernel before 5.18 does not tell why a thread
        // leaves, and refuses a program that asks.
        attach(c"sched_switch", (EventKind::Sleeps, Of::Current))
            .or_else(|_| attach(c"sched_switch", (EventKind::Leaves, Of::Current)))?;
        let pairs: &[_] = &[
            (c"irq_handler_entry", EventKind::InterruptBegins),
            (c"irq_handler_exit", EventKind::InterruptEnds),
            (c"softirq_entry", EventKind::SoftBegins),
            (c"softirq_exit", EventKind::SoftEnds),
        ];
        for (name, kind) in pairs.iter().filter(|_| interrupts) {
            attach(name, (*kind, Of::Argument))?;
        }
        // Fields of kernel structures are read only at the offsets that this kernel gives.
        let types = if interrupts { Types::of_kernel() } else { None };
        let offset = |structure: &str, path: &[&str]| types.as_ref()?.offset(structure, path);
        // Timers are recorded only if they have names; otherwise their time belongs to the interrupt. Their returns are
        // not recorded: each program makes a wake-up longer.
        let functions = types.as_ref().and_then(|_| Functions::new().ok());
        let timers = [
            (c"hrtimer_expire_entry", "hrtimer", offset("hrtimer", &["node", "expires"])),
            (c"timer_expire_entry", "timer_list", None),
        ];
        for (name, structure, expires) in timers.iter().filter(|_| functions.is_some()) {
            if let Some(function) = offset(structure, &["function"]) {
                let _ = attach(name, (EventKind::Timer, Of::Timer { function, expires: *expires }));
            }
        }
        if wakes {
            // Until Linux 5.15 some kernels had it in the thread's own structure.
            let cpu =
                offset("task_struct", &["thread_info", "cpu"]).or_else(|| offset("task_struct", &["cpu"]));
            if let (Some(pid), Some(cpu)) = (offset("task_struct", &["pid"]), cpu) {
                let _ = attach(c"sched_waking", (EventKind::Woken, Of::Thread { pid, cpu }));
            }
        }
        for (number, name) in (0..).zip(VECTORS).filter(|_| interrupts) {
            for (end, kind) in [("_entry\0", EventKind::VectorBegins), ("_exit\0", EventKind::VectorEnds)] {
                let name = [name, end].concat();
                if let Ok(name) = CStr::from_bytes_with_nul(name.as_bytes()) {
                    let _ = attach(name, (kind, Of::Number(number)));
                }
            }
        }
        // Only with KVM, and only both together: one alone proves nothing.
        let guests =
            !interrupts && guests.iter().all(|(name, kind)| attach(name, (*kind, Of::Current)).is_ok());
        let words = HEAD + records * RECORD;
        Ok(Self { _attached: attached, memory, cpus, words, guests, functions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys;

    #[test]
    fn who_sleeps_is_seen_to_leave_and_another_to_run_until_it_is_woken() {
        let allowed = sys::affinity().unwrap();
        let cpu = allowed.first().unwrap();
        sys::set_affinity(&CpuSet::one(cpu)).unwrap();
        let tracepoints = match Tracepoints::begin(&CpuSet::one(cpu), true) {
            Ok(tracepoints) => tracepoints,
            Err(why) => return eprintln!("SKIPPED: {why}"),
        };
        let began = sys::now();
        let due = began + 5_000_000;
        sys::sleep_until(due);
        let seen = sys::now();
        sys::sleep_until(seen + 20_000_000);
        let trace = tracepoints.between(0, began, seen);
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        let left: Vec<&String> = trace
            .events()
            .filter(|(_, kind, _)| kind.is_switch())
            .map(|(_, _, thread)| &trace.threads[usize::try_from(thread).unwrap()])
            .collect();
        let own = [&own.to_string(), " "].concat();
        assert!(left[0].starts_with(&own), "{left:?}");
        assert!(left.len() > 2, "somebody left for it, too: {left:?}");
        assert!(left.last().unwrap().starts_with(&own), "it had the CPU at the end: {left:?}");
        assert!(trace.events().all(|(_, kind, _)| kind != EventKind::Lost), "{trace:?}");
        let after = trace.events().filter(|(at, _, _)| *at > seen - began).count();
        assert_eq!(after, 1, "{trace:?}");
        if tracepoints.functions.is_some() {
            // The first says that it could run before.
            let woken = trace.events().filter(|(at, kind, _)| *at > 0 && *kind == EventKind::Woken).last();
            let (at, _, late) = woken.expect("it is woken");
            // Its timer was due no earlier than it was to wake, and before it did.
            assert!(at - late >= due - began && at <= seen - began, "{trace:?}");
        }
        sys::set_affinity(&allowed).unwrap();
    }

    #[test]
    fn the_timer_that_wakes_a_thread_is_seen_by_the_name_of_its_function() {
        let allowed = sys::affinity().unwrap();
        let cpu = allowed.first().unwrap();
        sys::set_affinity(&CpuSet::one(cpu)).unwrap();
        let tracepoints = match Tracepoints::begin(&CpuSet::one(cpu), true) {
            Ok(tracepoints) if tracepoints.functions.is_some() => tracepoints,
            Ok(_) => return eprintln!("SKIPPED: this kernel names no functions to BPF"),
            Err(why) => return eprintln!("SKIPPED: {why}"),
        };
        let began = sys::now();
        sys::sleep_until(began + 5_000_000);
        let seen = sys::now();
        sys::sleep_until(seen + 20_000_000);
        let trace = tracepoints.between(0, began, seen);
        assert!(trace.timers.iter().any(|function| function == "hrtimer_wakeup"), "{trace:?}");
        assert!(trace.events().any(|(_, kind, _)| kind == EventKind::Timer), "{trace:?}");
        sys::set_affinity(&allowed).unwrap();
    }

    /// Any two tracepoints that a thread comes to by turns will do: KVM's are there only where KVM is, and on some machines
    /// one of them is never come to.
    #[test]
    fn a_thread_is_outside_between_two_tracepoints_as_long_as_it_has_the_cpu() {
        const BUSY: u64 = 3_000_000;
        let allowed = sys::affinity().unwrap();
        let cpu = allowed.first().unwrap();
        sys::set_affinity(&CpuSet::one(cpu)).unwrap();
        // The thread leaves "the guest" at the end of a call, and enters it at the beginning of the next.
        let calls = [(c"sys_exit", EventKind::GuestLeft), (c"sys_enter", EventKind::GuestEntered)];
        let tracepoints = match Tracepoints::try_begin(&CpuSet::one(cpu), None, &calls) {
            Ok(tracepoints) if tracepoints.guests => tracepoints,
            Ok(_) => return eprintln!("SKIPPED: this kernel has no tracepoints of system calls"),
            Err(why) => return eprintln!("SKIPPED: {why}"),
        };
        let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let from = sys::now();
        sys::sleep_until(from + 1_000_000);
        let busy = sys::own_time() + BUSY;
        while sys::own_time() < busy {}
        sys::sleep_until(sys::now() + 1_000_000);
        let until = sys::now();
        sys::sleep_until(until + 20_000_000);
        // The time outside of a thread that does not exist is unknown.
        let mut nobody = Outside::new(u64::MAX >> 8);
        assert_eq!(tracepoints.outside(cpu, &mut nobody, from, until), None);
        // A reading of the thread's CPU clock is a call as well: the thread is outside for the sum of the times
        // between.
        let mut outside = Outside::new(own.into());
        let out = tracepoints.outside(cpu, &mut outside, from, until);
        assert!(out.is_some_and(|out| out.ns > 0 && out.until <= until && out.ns < until - from), "{out:?}");
        sys::set_affinity(&allowed).unwrap();
    }
}
