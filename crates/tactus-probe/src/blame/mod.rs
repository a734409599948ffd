//! Records who has the CPU while a wake-up is late: by BPF, else by an instance of tracefs, else by counters of /proc,
//! which only give candidates. The measuring thread does nothing for it. The session, which takes in its samples, asks
//! when one of them is among the largest.

mod counters;
mod functions;
mod outside;
mod program;
mod record;
mod ring;
mod text;
mod tracefs;
mod tracepoints;
mod types;

use std::rc::Rc;

use tactus_measure::series::Witness;
use tactus_model::CpuSet;
use tactus_model::message::{Note, Unknowable};
use tactus_model::trace::{Source, Trace};

use self::counters::Counters;
pub use self::outside::{Out, Outside};
pub use self::ring::Kept;
use self::tracefs::Instance;
pub use self::tracepoints::Tracepoints;

const HINT: &str = "it needs BPF: a kernel with CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS, and root; in a \
container the capabilities BPF and PERFMON, and no seccomp filter that hides bpf(2). Or it needs a writable \
tracefs";

/// The source of the records, as long as it lives.
pub enum Blame {
    /// The kernel's tracepoints, by BPF.
    Bpf(Tracepoints),
    /// The same in tracefs.
    Tracefs(Instance),
    /// Counters.
    Proc(Counters),
}

impl Blame {
    /// Begins for these CPUs, with this source alone or with the first that works. `wakes`: the measured thread sleeps
    /// by itself, so its wake-ups matter. Also returns a note on the sources that failed, and why.
    pub fn begin(cpus: &CpuSet, wakes: bool, by: Option<Source>) -> (Option<Rc<Self>>, Option<Note>) {
        let mut why = Vec::new();
        for source in [Source::Bpf, Source::Tracefs, Source::Proc] {
            if by.is_some_and(|only| only != source) {
                continue;
            }
            let begun = match source {
                Source::Bpf => Tracepoints::begin(cpus, wakes).map(Self::Bpf),
                Source::Tracefs => Instance::begin(cpus, wakes).map(Self::Tracefs),
                Source::Proc => Counters::begin(cpus).map(Self::Proc),
            };
            match begun {
                Ok(blame) => {
                    let why = why.join("; ");
                    let note = match source {
                        Source::Bpf => None,
                        Source::Tracefs => Some(Note::side_effect(
                            [
                                "tracefs records the tasks on the CPU during large latencies, to the \
                                 microsecond, in a separate instance that is removed at the end",
                                colon(&why),
                                &why,
                            ]
                            .concat(),
                        )),
                        Source::Proc => Some(Note::obstacle(
                            [
                                "the tasks on the CPU during large latencies are not visible here, and \
                                 counters of /proc name only candidates",
                                colon(&why),
                                &why,
                            ]
                            .concat(),
                            HINT,
                        )),
                    };
                    return (Some(Rc::new(blame)), note);
                }
                Err(reason) => why.push([source.word(), ": ", &reason].concat()),
            }
        }
        let text =
            ["the tasks on the CPU during large latencies are not visible here: ", &why.join("; ")].concat();
        (None, Some(Note::unknowable(Unknowable::Blame, text, HINT)))
    }

    fn cpu(&self, cpu: u32) -> Option<usize> {
        let cpus = match self {
            Self::Bpf(tracepoints) => tracepoints.cpus(),
            Self::Tracefs(instance) => instance.cpus(),
            Self::Proc(counters) => counters.cpus(),
        };
        cpus.iter().position(|own| *own == cpu)
    }
}

fn colon(why: &str) -> &'static str {
    if why.is_empty() { "" } else { ": " }
}

/// The records of one CPU.
pub struct OfCpu {
    blame: Rc<Blame>,
    place: usize,
}

impl OfCpu {
    /// `None`: it is not one of those CPUs.
    pub fn of(blame: &Rc<Blame>, cpu: u32) -> Option<Self> {
        let place = blame.cpu(cpu)?;
        Some(Self { blame: Rc::clone(blame), place })
    }
}

impl Witness for OfCpu {
    fn look(&self) {
        if let Blame::Proc(counters) = &*self.blame {
            counters.look();
        }
    }

    fn between(&self, due: u64, seen: u64) -> Trace {
        match &*self.blame {
            Blame::Bpf(tracepoints) => tracepoints.between(self.place, due, seen),
            Blame::Tracefs(instance) => instance.between(self.place, due, seen),
            Blame::Proc(counters) => counters.between(self.place, due, seen),
        }
    }
}
