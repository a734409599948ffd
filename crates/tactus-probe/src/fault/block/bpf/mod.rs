//! A block by a BPF program at the clock of performance events of each CPU: a kernel timer that fires in hard interrupt
//! context, with interrupts off, also on PREEMPT_RT. The program stays there until the length is over, and records when
//! each block began and how long it was.
//!
//! It uses no module and no tracer, and changes no setting of the kernel. Program, memory and clock live as long as
//! their descriptors, which this process alone has: when the process ends, so does the block.

mod awake;
mod lost;
mod program;
mod record;
mod trial;

use std::io::{Error, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};

use tactus_model::CpuSet;
use tactus_model::catalogue::fault::Off;
use tactus_model::lot::Lots;

use self::awake::Awake;
use self::lost::Lookout;
use self::program::{Program, TYPES, program};
use self::record::{Record, WORDS};
use super::{No, Wanted, no};
use crate::bpf::why::{Place, Step, reason};
use crate::fault::{Count, Disturbance, Held};
use crate::sys::{self, bpf, perf};

/// Longest time between two ticks of the clocks of a drawn block, in ns. A worker waits for up to three of them before it
/// begins, and its session waits for 10 s.
const TICK: u64 = 1_000_000_000;

/// Limit of the verifier's messages on a program, in bytes.
const SAID: usize = 64 * 1_024;

const HINT: &str = "run it as root; a container needs two more capabilities, which its table in the plan \
gives it: engine = { capabilities = [\"BPF\", \"PERFMON\"] }";

/// The block of one CPU.
struct OnCpu {
    cpu: u32,
    program: OwnedFd,
    record: Record,
}

/// The clocks, with which their programs end, and what these have recorded.
struct Clocks {
    clocks: Vec<OwnedFd>,
    on: Vec<(u32, Record)>,
    /// Of the CPUs whose programs did not run in the trial while they idled, and these.
    awake: Vec<Awake>,
    kept: CpuSet,
    /// For those whose programs cease to.
    lookout: Option<Lookout>,
    /// How often, and for how long, in ns.
    every: u64,
    length: u64,
    lots: Option<Lots>,
}

pub(super) fn prepare(wanted: &Wanted<'_>) -> Result<Disturbance, No> {
    if wanted.off == Off::Preemption {
        return no(false, &["a BPF program turns interrupts off, not only preemption"]);
    }
    let failed = |step, error: Error, said: &str| {
        let hint = (error.kind() == ErrorKind::PermissionDenied).then_some(HINT);
        No { why: reason(step, &error, said, &Place::here()), busy: false, hint }
    };
    let mut blocks = Vec::new();
    for cpu in wanted.cpus.iter() {
        let (memory, words) = bpf::memory(WORDS).map_err(|error| failed(Step::Memory, error, ""))?;
        let types = bpf::types(&TYPES).map_err(|error| failed(Step::Types, error, ""))?;
        let Program { instructions, functions } = program(memory.as_raw_fd());
        let load = |said: &mut [u8]| {
            bpf::program(bpf::Kind::PerfEvent, &instructions, Some((&types, &functions)), said)
        };
        let program = load(&mut []).map_err(|error| {
            // Loaded again for the reason: the verifier only gives it on request.
            let mut said = vec![0; SAID];
            let _ = load(&mut said);
            failed(Step::Program, error, said.split(|byte| *byte == 0).next().map_or("", utf8))
        })?;
        blocks.push(OnCpu { cpu, program, record: Record::new(words) });
    }
    let clocks = |every| -> Result<Vec<OwnedFd>, No> {
        let on = |block: &OnCpu| {
            let clock = perf::cpu_clock(block.cpu, every).map_err(|error| failed(Step::Clock, error, ""))?;
            bpf::run_at(&clock, &block.program).map_err(|error| failed(Step::Attach, error, ""))?;
            Ok(clock)
        };
        blocks.iter().map(on).collect()
    };
    let tried = clocks(trial::EVERY)?;
    begin(&tried)?;
    let on: Vec<(u32, Record)> = blocks.iter().map(|block| (block.cpu, block.record)).collect();
    let (awake, kept) = trial::run(&on).or_else(|(cpu, times)| {
        let ran = if times == 0 { "never ran" } else { "hardly ever ran" };
        no(false, &["a BPF program was accepted, but ", ran, " on CPU ", &cpu.to_string()])
    })?;
    drop(tried);
    let lots = wanted.rhythm.lots();
    let clocks = Clocks {
        clocks: clocks(lots.map_or(wanted.every, tick))?,
        on,
        awake,
        kept,
        lookout: None,
        every: wanted.every,
        length: wanted.length,
        lots,
    };
    clocks.on.iter().for_each(|(_, record)| record.begin(wanted.length, lots));
    Ok(Disturbance {
        way: way(&clocks.kept),
        works: Vec::new(),
        longest: &[],
        held: Some(Box::new(clocks)),
        made: None,
    })
}

/// The way in which it is carried out, with the CPUs that are kept from idling.
fn way(kept: &CpuSet) -> String {
    match kept.len() {
        0 => "BPF program".to_owned(),
        1 => ["BPF program, CPU ", &kept.to_string(), " kept from idling"].concat(),
        _ => ["BPF program, CPUs ", &kept.to_string(), " kept from idling"].concat(),
    }
}

fn begin(clocks: &[OwnedFd]) -> Result<(), String> {
    let begun = clocks.iter().try_for_each(bpf::enable);
    begun.map_err(|error| ["a clock of performance events does not start: ", &error.to_string()].concat())
}

/// The time between two ticks where the moments are drawn, in ns: a part of the period, or an equal share of a long part. Then
/// the first tick in the drawn part is the block.
const fn tick(lots: Lots) -> u64 {
    lots.part_ns / lots.part_ns.div_ceil(TICK)
}

/// When the clocks are started, in ns: a little into a tick's share of a part, as [`Lots::due`] is into a part. Then each tick
/// is, and no block reaches into the next part by chance.
const fn start(lots: Lots, now: u64) -> u64 {
    let (into, tick) = (now % lots.every_ns % lots.part_ns, tick(lots));
    now - into + (into / tick + 2) * tick + tick / 20
}

fn utf8(said: &[u8]) -> &str {
    std::str::from_utf8(said).unwrap_or_default()
}

impl Held for Clocks {
    fn begin(&mut self) -> Result<(), String> {
        if let Some(lots) = self.lots {
            let start = start(lots, sys::now());
            // Of the period in which they start, some parts have passed: it would not draw from all.
            self.on.iter().for_each(|(_, record)| record.skip(start / lots.every_ns));
            sys::sleep_until(start);
        }
        begin(&self.clocks)?;
        let others = self.on.iter().copied().filter(|(cpu, _)| !self.kept.contains(*cpu)).collect();
        // A drawn block may be due at the very end of its period.
        let late = self.length + self.lots.map_or(0, |lots| lots.every_ns);
        let lookout = Lookout::start(others, self.every, late);
        self.lookout =
            Some(lookout.map_err(|error| ["no thread besides the blocks: ", &error.to_string()].concat())?);
        Ok(())
    }

    fn end(&mut self) -> Result<Count, String> {
        // A clock that is closed has ended on its CPU, and so has its last block.
        self.clocks.clear();
        self.awake.clear();
        let silent = self.lookout.take().map(Lookout::end).unwrap_or_default();
        silent.iter().for_each(|cpu| self.kept.insert(cpu));
        let times = self.on.iter().map(|(_, record)| record.count()).sum();
        let longest_ns = self.on.iter().filter_map(|(_, record)| record.longest()).max();
        // On all CPUs at the same moments.
        let first = self.on.first().filter(|_| self.lots.is_some());
        let at = first.map(|(_, record)| record.began()).unwrap_or_default();
        Ok(Count { times: Some(times), longest_ns, at, way: Some(way(&self.kept)) })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tactus_model::catalogue::fault::{Block, BlockWay};

    use super::*;
    use crate::fault::{Fault, prepare};

    const MS: u64 = 1_000_000;
    const S: u64 = 1_000 * MS;

    #[test]
    fn a_worker_answers_within_three_ticks_however_long_the_period_is() {
        for every in [200 * MS, S, 10 * S, 50 * S, 110 * S, 3_600 * S + 7] {
            let lots = Lots::of_fault(MS, every, 7);
            let tick = tick(lots);
            assert!(tick <= TICK && tick <= lots.part_ns, "{every}: {tick}");
            for now in [0, 1, every / 3, every - 1, 7 * every, 7 * every + 6 * lots.part_ns + 5] {
                let start = start(lots, now);
                assert!(start > now && start - now <= 3 * tick, "{every}, {now}: {start}");
            }
        }
    }

    #[test]
    fn the_first_tick_in_each_part_of_a_long_period_is_a_little_into_it() {
        for every in [200 * MS, S, 50 * S, 110 * S + 3_000, 600 * S] {
            let lots = Lots::of_fault(MS, every, 7);
            let (tick, start) = (tick(lots), start(lots, 5 * every + lots.part_ns / 3));
            let ticks = (1..).map(|count| start + count * tick).take_while(|at| *at < 8 * every);
            let mut first = std::collections::BTreeMap::new();
            ticks.for_each(|at| _ = first.entry((at / every, at % every / lots.part_ns)).or_insert(at));
            let whole = first.iter().filter(|((period, _), _)| *period > 5);
            assert_eq!(whole.clone().count(), 20, "{every}: a tick in each part of two periods");
            for (part, at) in whole {
                let into = at % every % lots.part_ns;
                assert!(into > 0 && into < tick / 10, "{every}, {part:?}: {into}");
            }
        }
    }

    /// On the kernel of this machine: the program draws as [`Lots`] does.
    #[test]
    fn a_drawn_block_comes_once_in_each_period_in_the_part_that_its_seed_names() {
        let (length, every, seed) = (MS, 200 * MS, 7);
        let block = Block {
            length: tactus_model::Nanos(length),
            every: tactus_model::Nanos(every),
            emulated: None,
            off: None,
            way: Some(BlockWay::Bpf),
        };
        let cpus = CpuSet::one(sys::affinity().unwrap().first().unwrap());
        let mut held = match prepare(&Fault::Block(block), &cpus, 99, Some(seed)) {
            Ok(disturbance) => disturbance.held.unwrap(),
            Err(refusal) => return println!("SKIPPED: no BPF program can block here: {}", refusal.reason),
        };
        held.begin().unwrap();
        std::thread::sleep(Duration::from_secs(5));
        let at = held.end().unwrap().at;
        assert!(at.len() >= 15, "24 periods: {at:?}");
        let lots = Lots::of_fault(length, every, seed);
        let periods: Vec<u64> = at.iter().map(|at| at / every).collect();
        assert!(periods.is_sorted_by(|one, next| one < next), "{periods:?}");
        // Where something else holds the CPU at a part's end, a tick comes late.
        let in_place = |at: &&u64| **at % every / lots.part_ns == lots.place(**at / every);
        assert_eq!(at.iter().filter(in_place).count(), at.len(), "{at:?}");
        let early = |at: &&u64| **at % lots.part_ns < lots.part_ns / 2;
        assert!(at.iter().filter(early).count() * 2 >= at.len(), "a little into the part: {at:?}");
    }
}
