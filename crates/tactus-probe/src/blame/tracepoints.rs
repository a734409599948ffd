//! By BPF: programs at the kernel's tracepoints write down, for each CPU that is measured, which thread leaves it and which
//! interrupts begin and end there, into memory that this process reads.
//!
//! Programs and memory live as long as their descriptors, which this process alone has; no file of tracefs is needed.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use tactus_model::CpuSet;
use tactus_model::trace::{EventKind, Trace, VECTORS};

use super::program::{HEAD, RECORD, program};
use super::ring::{Kept, Ring};
use crate::bpf::why::{self, Place, Step};
use crate::sys::bpf::{self, Mapped};

/// Records of a ring, at most: what a CPU does in half a second that is interrupted 15000 times in it. The session reads
/// every 100 ms.
const MOST_RECORDS: usize = 1 << 15;
/// The fewest that are of use.
const FEWEST_RECORDS: usize = 1 << 10;
/// CPUs that have a ring: so many comparisons are made at each event of the last one.
const MOST_CPUS: usize = 64;

/// What is written down as long as it lives.
pub struct Tracepoints {
    /// The first to go: nothing is written any more.
    _attached: Vec<OwnedFd>,
    memory: Mapped,
    cpus: Vec<u32>,
    words: usize,
}

impl Tracepoints {
    /// Begins for these CPUs.
    ///
    /// # Errors
    /// Why it cannot be known.
    pub fn begin(cpus: &CpuSet) -> Result<Self, String> {
        Self::try_begin(cpus, true)
    }

    /// Begins with which threads have these CPUs, and no more.
    ///
    /// # Errors
    /// Why it cannot be known.
    pub fn threads(cpus: &CpuSet) -> Result<Self, String> {
        Self::try_begin(cpus, false)
    }

    /// Who had a CPU until a thread came to it: [`Ring::kept_from`].
    pub fn kept_from(&self, cpu: u32, thread: u32, most: u64, from: u64, until: u64) -> Option<Kept> {
        let place = self.cpus.iter().position(|own| *own == cpu)?;
        self.ring(place).kept_from(thread.into(), most, from, until)
    }

    /// What a CPU did between two moments, by its place among those that it was begun for.
    pub fn between(&self, place: usize, due: u64, seen: u64) -> Trace {
        self.ring(place).between(due, seen)
    }

    /// Whose rings there are.
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    fn ring(&self, place: usize) -> Ring<'_> {
        Ring::new(&self.memory.words()[place * self.words..][..self.words])
    }

    fn try_begin(cpus: &CpuSet, interrupts: bool) -> Result<Self, String> {
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
        let mut attach = |name: &CStr, kind, number| {
            let program = program(map.as_raw_fd(), &cpus, records, kind, number);
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
        // Without this one nothing is known; of the others each kernel has those that it has. One before 5.18 does not say
        // why a thread leaves, and refuses who asks.
        attach(c"sched_switch", EventKind::Sleeps, None)
            .or_else(|_| attach(c"sched_switch", EventKind::Leaves, None))?;
        let pairs: &[_] = &[
            (c"irq_handler_entry", EventKind::InterruptBegins, None),
            (c"irq_handler_exit", EventKind::InterruptEnds, None),
            (c"softirq_entry", EventKind::SoftBegins, None),
            (c"softirq_exit", EventKind::SoftEnds, None),
        ];
        for (name, kind, number) in pairs.iter().filter(|_| interrupts) {
            attach(name, *kind, *number)?;
        }
        for (number, name) in (0..).zip(VECTORS).filter(|_| interrupts) {
            for (end, kind) in [("_entry\0", EventKind::VectorBegins), ("_exit\0", EventKind::VectorEnds)] {
                let name = [name, end].concat();
                if let Ok(name) = CStr::from_bytes_with_nul(name.as_bytes()) {
                    let _ = attach(name, kind, Some(number));
                }
            }
        }
        let words = HEAD + records * RECORD;
        Ok(Self { _attached: attached, memory, cpus, words })
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
        let tracepoints = match Tracepoints::begin(&CpuSet::one(cpu)) {
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
        assert!(left[0].starts_with(&[&own.to_string(), " "].concat()), "{left:?}");
        assert!(left.len() > 1, "somebody left for it, too: {left:?}");
        assert!(
            trace.events().all(|(at, kind, _)| at <= seen - began && kind != EventKind::Lost),
            "{trace:?}"
        );
        sys::set_affinity(&allowed).unwrap();
    }
}
