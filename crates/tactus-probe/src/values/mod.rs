//! Measurements that yield values: one file each, one line in the table. They run in a [`crate::worker`], as loads do,
//! and never on a lane: they allocate, fork and take signals.

mod disturbance;
mod repeat;

use std::cell::OnceCell;
use std::io;
use std::sync::atomic::AtomicU64;

use tactus_measure::refuse;
use tactus_model::catalogue::Item;
use tactus_model::catalogue::Measure;
use tactus_model::message::{Activity, Note, Refusal, What};
use tactus_model::outcome::Point;
use tactus_model::scheduling::Policy;
use tactus_model::{CpuSet, outcome};

use crate::sys::{self, SchedAttr, Shared};
use crate::work::{Pace, Work, die_with, over, tell_note};

/// A measurement that yields values.
pub trait Measurement: Sync {
    /// The word of the plan.
    fn name(&self) -> &'static str;

    /// Prepares the measurement before its process is forked: the session is then its parent's parent.
    fn prepare(&self) {}

    /// Whether an item of it uses every CPU of the activity, rather than the first alone.
    fn uses_all_cpus(&self) -> bool {
        false
    }

    /// The work of its process, if it does not repeat [`Measurement::items`]: it then reports its values itself.
    fn own_work(&self, _: &Activity, _: Pace, _: &'static Shared) -> Option<Result<Work, Refusal>> {
        None
    }

    /// Its items, in the order of the catalogue, with the function that prepares each. The measuring process calls it,
    /// on its CPU.
    fn items(&self) -> &'static [(Item, Make)];

    /// Whether the plan asks for an item: an item that needs a program of the user is left out if the plan names none.
    fn asks_for(&self, _: &Item, _: &Measure) -> bool {
        true
    }

    /// Items after all others that no program can measure, and why.
    fn elsewhere(&self) -> (&'static [Item], &'static str) {
        (&[], "")
    }

    /// Its items that are curves, after the others.
    fn curves(&self) -> &'static [(Item, Curve)] {
        &[]
    }
}

/// Makes an item ready to be measured.
pub type Make = fn(&Place<'_>) -> io::Result<Bench>;

/// Makes an item ready that has a value for each of several points, in their order.
pub type Curve = fn(&Place<'_>) -> io::Result<Vec<(Point, Bench)>>;

/// The measurement, its CPUs and its end.
pub struct Place<'a> {
    /// The plan's table.
    pub measure: &'a Measure,
    /// The CPUs of the activity. Its process is on the first.
    pub cpus: &'a CpuSet,
    /// Not 0: the measurement is over.
    pub finish: &'static AtomicU64,
    /// Memory that may be taken, in bytes, once it has been asked for: the items' memory does not change this limit.
    pub free: OnceCell<u64>,
}

impl<'a> Place<'a> {
    pub const fn new(measure: &'a Measure, cpus: &'a CpuSet, finish: &'static AtomicU64) -> Self {
        Self { measure, cpus, finish, free: OnceCell::new() }
    }
}

/// An item that is ready.
pub struct Bench {
    /// Runs the operation this many times and returns the time in ns that belongs to the value; `None`: it was
    /// disturbed on another CPU.
    pub run: Box<dyn FnMut(u64) -> io::Result<Option<u64>>>,
    /// Work before each batch that is not part of it.
    pub warm: Option<Box<dyn FnMut()>>,
    /// The meaning of one operation.
    pub of: Operation,
    /// Other processes on the same CPU whose time also counts for the item.
    pub partners: Vec<u32>,
    /// Other processes may have the CPU for one part in this many of its time; above that, the batch is dropped.
    pub taken: u64,
    /// How long a batch is to take, in ns.
    pub batch_ns: u64,
    /// One operation takes seconds: it is a batch without a warm-up. The other items get at least half of the time, and
    /// continue if it fails.
    pub long: bool,
}

/// The meaning of an operation's time.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// It is the value of this many equal parts.
    Parts(u32),
    /// It carries this many bytes.
    Bytes(u32),
    /// The value is the number of operations in a second.
    Count,
    /// It takes this many cycles of the processor's clock; the clock rate is the value.
    Cycles(u32),
    /// It returns its value, in thousandths, instead of a time.
    Said,
}

impl Bench {
    fn warm(&mut self) {
        if let Some(warm) = &mut self.warm {
            warm();
        }
    }

    /// Whether a batch is so long that reading the clocks does not matter. Its CPU time decides: time of other tasks
    /// makes it no longer. If the kernel reports too little CPU time, the elapsed time decides.
    const fn is_enough(&self, took: u64, had: u64) -> bool {
        had >= self.batch_ns / 2 || took >= self.batch_ns * LONGEST
    }
}

/// An item without a partner whose operation is its value.
fn alone(mut run: impl FnMut(u64) -> io::Result<u64> + 'static) -> Bench {
    Bench {
        run: Box::new(move |batch| run(batch).map(Some)),
        warm: None,
        of: Operation::Parts(1),
        partners: Vec::new(),
        taken: TAKEN,
        batch_ns: BATCH_NS,
        long: false,
    }
}

/// How long a batch takes where nothing says otherwise.
const BATCH_NS: u64 = 1_000_000;
/// A batch that takes this many times its planned time is not made longer, whatever CPU time it had.
const LONGEST: u64 = 16;
/// Planned time of a batch of an operation that gives the CPU away, in ns. Each time another task may run, and a batch
/// of twenty would be lost with one of them. Reading the clock is still less than a thousandth of it.
const SHORT_BATCH_NS: u64 = 50_000;
/// Other tasks may have the CPU for one part in this many of a batch.
const TAKEN: u64 = 50;
/// The same if the kernel does a part of the work in interrupts, whose time many kernels count for no process.
const TAKEN_BY_INTERRUPTS: u64 = 2;

/// How long something takes, in ns.
fn timed(what: impl FnOnce() -> io::Result<()>) -> io::Result<u64> {
    let begin = sys::now();
    what()?;
    Ok(sys::now() - begin)
}

/// A process beside this one, which ends with it.
fn partner(work: impl FnOnce() -> io::Result<()>) -> io::Result<u32> {
    let me = std::process::id();
    let pid = sys::fork(|| {
        if die_with(me) {
            // That the other end is gone is how it ends.
            let _ = work();
        }
    })?;
    u32::try_from(pid).map_err(io::Error::other)
}

/// The files of this directory, each with its measurement.
macro_rules! measurements {
    ($($file:ident::$name:ident),+) => {
        $(mod $file;)+

        /// Every one of this probe.
        pub static MEASUREMENTS: &[&dyn Measurement] = &[$(&$file::$name),+];
    };
}

measurements! { os::Os, exits::Exits, cpu::Cpu, memory::Memory, network::Network }

/// The measurement of a plan's table; `None`: it yields latencies, or is unknown here.
pub fn find(measure: &Measure) -> Option<&'static dyn Measurement> {
    MEASUREMENTS.iter().copied().find(|entry| entry.name() == measure.kind())
}

/// The work of the process of a measurement, until `finish` is not 0.
///
/// # Errors
/// When this probe lacks the measurement, or may not schedule it as requested.
pub fn work(activity: &Activity, pace: Pace, finish: &'static Shared) -> Result<Work, Refusal> {
    let found = match &activity.what {
        What::Measure { measure, priority, policy, .. } => {
            find(measure).map(|it| (it, measure, *priority, *policy))
        }
        What::Load(_) | What::Fault(_) => None,
    };
    let (Some((entry, measure, priority, policy)), Some(cpu)) = (found, activity.cpus.first()) else {
        return Err(Refusal { reason: "this probe has no such measurement".into(), hint: None });
    };
    let attr = match policy {
        Policy::Fifo => SchedAttr::fifo(priority),
        Policy::Rr => SchedAttr::rr(priority),
        Policy::Other => SchedAttr::other(),
        Policy::Deadline => {
            let reason = format!("{} has no period for SCHED_DEADLINE", entry.name());
            return Err(Refusal { reason, hint: Some("use fifo or other".into()) });
        }
    };
    let tried = sys::set_scheduler(attr).and_then(|()| sys::set_scheduler(SchedAttr::other()));
    tried.map_err(|error| refuse::scheduling(policy, priority, cpu, &error))?;
    if policy == Policy::Other {
        refuse::kept_nice(0).iter().for_each(tell_note);
    }
    if activity.cpus.len() > 1 && !entry.uses_all_cpus() {
        let text = format!("`{}` is measured on CPU {cpu}, the first of {}", entry.name(), activity.cpus);
        tell_note(&Note::info(text));
    }
    entry.prepare();
    let own = entry.own_work(activity, pace, finish).transpose()?;
    let (measure, cpus) = (measure.clone(), activity.cpus.clone());
    Ok(Box::new(move |rounds| {
        let place = if own.is_some() { cpus.clone() } else { CpuSet::one(cpu) };
        let placed = sys::set_affinity(&place).and_then(|()| sys::set_scheduler(attr));
        if let Err(error) = placed {
            over(&format!("{policy} on CPU {cpu}: {error}"));
        }
        if let Some(own) = own {
            return own(rounds);
        }
        repeat::run(entry, &Place::new(&measure, &cpus, &finish.0), pace, rounds);
    }))
}

impl Operation {
    /// The value of `batch` operations that took `ns`.
    fn value(self, unit: outcome::Unit, batch: u64, ns: u64) -> Option<f64> {
        use outcome::{Quantity, Unit};
        use tactus_model::number::float;
        let quantity = match self {
            Self::Parts(parts) => {
                Quantity { value: float(ns) / float(batch) / f64::from(parts), unit: Unit::Ns }
            }
            Self::Bytes(bytes) => {
                let value = f64::from(bytes) * float(batch) / float(ns.max(1));
                Quantity { value, unit: Unit::GigabytesPerSecond }
            }
            // Whatever it is counted by.
            Self::Count => Quantity { value: float(batch) / float(ns.max(1)) * 1e9, unit },
            Self::Said => Quantity { value: float(ns) / 1e3, unit },
            Self::Cycles(cycles) => {
                let value = f64::from(cycles) * float(batch) / float(ns.max(1)) * 1e3;
                Quantity { value, unit: Unit::Megahertz }
            }
        };
        quantity.number_in(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tactus_model::catalogue::measure::{self, MEASURES};
    use tactus_model::outcome::Unit;

    static FINISH: AtomicU64 = AtomicU64::new(0);

    /// The shortest of several times of `batch` operations.
    fn shortest(bench: &mut Bench, batch: u64) -> f64 {
        let times = (0..10).filter_map(|_| {
            bench.warm();
            (bench.run)(batch).unwrap()
        });
        tactus_model::number::float(times.min().unwrap())
    }

    #[test]
    fn no_loop_is_optimised_away_twice_as_many_operations_take_about_twice_as_long() {
        let small = measure::Memory { sizes: Some("4KiB..64KiB".parse().unwrap()) };
        let all: [(&dyn Measurement, Measure, usize); 3] = [
            (&cpu::Cpu, Measure::Cpu(measure::Cpu::default()), usize::MAX),
            (&memory::Memory, Measure::Memory(small), usize::MAX),
            // The others are the kernel's work.
            (&os::Os, Measure::Os(measure::Os::default()), 2),
        ];
        let cpus = CpuSet::one(0);
        for (entry, measure, first) in &all {
            let place = Place::new(measure, &cpus, &FINISH);
            let asked = entry.items().iter().take(*first).filter(|(item, _)| entry.asks_for(item, measure));
            let mut benches: Vec<(&str, Bench)> =
                asked.map(|(item, make)| (item.name, make(&place).unwrap())).collect();
            for (item, make) in entry.curves().iter().filter(|_| *first == usize::MAX) {
                // There may be no such pages.
                benches.extend(
                    make(&place).unwrap_or_default().into_iter().map(|(_, bench)| (item.name, bench)),
                );
            }
            for (name, mut bench) in benches {
                // One item says how long it would take at 1 MHz: at least a thousand times longer than on any real
                // processor.
                let enough = if name == measure::cpu::MIX_PER_MHZ.name { 50_000_000.0 } else { 50_000.0 };
                let mut batch = 1;
                while shortest(&mut bench, batch) < enough {
                    batch *= 2;
                    assert!(batch < 1 << 30, "{name}: {batch} operations take no time");
                }
                let mut ratios: Vec<f64> =
                    (0..9).map(|_| shortest(&mut bench, 2 * batch) / shortest(&mut bench, batch)).collect();
                // Their median: among several of nothing at all one is about two by chance.
                ratios.sort_by(f64::total_cmp);
                let about_two = (1.5..2.7).contains(&ratios[4]);
                assert!(about_two, "{name}: twice as many as {batch} take {ratios:?} times as long");
            }
        }
    }

    #[test]
    fn the_items_of_a_measurement_are_those_of_its_entry_in_the_catalogue() {
        for entry in MEASUREMENTS.iter().filter(|entry| !entry.items().is_empty()) {
            let word = MEASURES.iter().find(|word| word.name == entry.name()).unwrap();
            let curves = entry.curves().iter().map(|(item, _)| item.name);
            let elsewhere = entry.elsewhere().0.iter().map(|item| item.name);
            let own = entry.items().iter().map(|(item, _)| item.name).chain(curves).chain(elsewhere);
            let own: Vec<&str> = own.collect();
            assert_eq!(own, word.items.iter().map(|item| item.name).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_value_is_the_time_of_a_part_or_the_bytes_of_a_time() {
        assert_eq!(Operation::Parts(2).value(Unit::Ns, 10, 4_000), Some(200.0));
        assert_eq!(Operation::Parts(1).value(Unit::Us, 10, 40_000), Some(4.0));
        assert_eq!(Operation::Bytes(1_000).value(Unit::MegabytesPerSecond, 10, 10_000), Some(1_000.0));
        assert_eq!(Operation::Parts(1).value(Unit::MegabytesPerSecond, 1, 1), None);
        assert_eq!(Operation::Count.value(Unit::PerSecond, 10, 1_000_000), Some(10_000.0));
        assert_eq!(Operation::Said.value(Unit::PerSecond, 1, 24_301_337), Some(24_301.337));
        assert_eq!(Operation::Cycles(1_000).value(Unit::Megahertz, 3, 1_000), Some(3_000.0));
    }
}
