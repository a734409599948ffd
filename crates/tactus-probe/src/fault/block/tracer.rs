//! A block by one of two kernel tracers. The tracer hwlat looks for time that firmware takes from a CPU, and for that
//! keeps interrupts off for `width` of every `window`. The tracer osnoise does the same for `runtime` of every
//! `period`, with interrupts or preemption off as its options say.
//!
//! The tracer runs in a separate instance of tracefs with its own CPUs, which is removed at the end. Settings shared by
//! all instances are restored. If another hwlat, osnoise or timerlat runs, its settings are not changed. The kernel's
//! threads have ordinary priority. They are raised above the measuring threads, because otherwise a busy CPU would
//! never be blocked.

use tactus_model::CpuSet;
use tactus_model::catalogue::fault::Off;
use tactus_model::undo::block::{
    self, HWLAT, HWLAT_TIMES, IRQ_DISABLE, OSNOISE, OSNOISE_TIMES, PREEMPT_DISABLE, Shared, WORKLOAD,
};

use super::{No, Wanted, no};
use crate::fault::{Count, Disturbance, Held};
use crate::tracefs::read;
use crate::tracer::{Tracer, has, write};

/// By the hwlat tracer, with interrupts off.
pub(super) fn hwlat(wanted: &Wanted<'_>) -> Result<Disturbance, No> {
    if wanted.off == Off::Preemption {
        return no(false, &["the hwlat tracer turns interrupts off, not only preemption"]);
    }
    let mut blocking = Blocking::claim(&HWLAT, wanted)?;
    match read(Shared::MODE.path()) {
        Ok(modes) => {
            let mode = block::mode(&modes).unwrap_or("round-robin").to_owned();
            blocking.tracer.change(Shared::MODE, mode, "per-cpu")?;
        }
        // Before Linux 5.15 it goes from one CPU to the next.
        Err(_) if wanted.cpus.len() == 1 => {}
        Err(_) => return no(false, &["the hwlat tracer of this kernel blocks one CPU at a time"]),
    }
    blocking.times(HWLAT_TIMES, wanted)?;
    blocking.tracer.own("tracing_cpumask", &tactus_model::change::to_mask(wanted.cpus))?;
    blocking.ready()
}

/// By the osnoise tracer, with interrupts or preemption off.
pub(super) fn osnoise(wanted: &Wanted<'_>) -> Result<Disturbance, No> {
    let mut blocking = Blocking::claim(&OSNOISE, wanted)?;
    let tracer = &mut blocking.tracer;
    let options = read(Shared::OPTIONS.path()).unwrap_or_default();
    let needed = if wanted.off == Off::Interrupts { IRQ_DISABLE } else { PREEMPT_DISABLE };
    for option in [IRQ_DISABLE, PREEMPT_DISABLE, WORKLOAD] {
        let on = option == needed || option == WORKLOAD;
        let not = ["NO_", option].concat();
        let (is_on, is_off) = (has(&options, option), has(&options, &not));
        match (on, is_on, is_off) {
            (true, false, true) => tracer.change(Shared::OPTIONS, not, option)?,
            (false, true, _) => tracer.change(Shared::OPTIONS, option.to_owned(), &not)?,
            (true, false, false) if option == needed => {
                return no(false, &["the osnoise tracer of this kernel has no option ", option]);
            }
            _ => {}
        }
    }
    // At a limit it would stop.
    for limit in Shared::STOPS {
        tracer.set(limit, "0")?;
    }
    tracer.set(Shared::CPUS, &wanted.cpus.to_string())?;
    blocking.times(OSNOISE_TIMES, wanted)?;
    blocking.ready()
}

/// A tracer that blocks.
struct Blocking {
    tracer: Tracer,
    cpus: CpuSet,
    above: u32,
    /// Its lines have the time of CLOCK_MONOTONIC.
    timed: bool,
}

impl Blocking {
    /// Makes its instance, in which nothing runs yet.
    fn claim(which: &'static block::Tracer, wanted: &Wanted<'_>) -> Result<Self, No> {
        let tracer = Tracer::claim(which)?;
        let timed = tracer.own("trace_clock", "mono").is_ok();
        Ok(Self { tracer, cpus: wanted.cpus.clone(), above: wanted.above, timed })
    }

    fn ready(self) -> Result<Disturbance, No> {
        let name = self.tracer.which.name;
        self.tracer.own("current_tracer", name)?;
        Ok(Disturbance {
            way: [name, " tracer"].concat(),
            works: Vec::new(),
            longest: &[],
            held: Some(Box::new(self)),
            made: None,
        })
    }

    /// Sets how long and how often it blocks, of which the first must never be above the second.
    fn times(&mut self, [inner, outer]: [Shared; 2], wanted: &Wanted<'_>) -> Result<(), String> {
        let tracer = &mut self.tracer;
        let (was_inner, was_outer) = (read(inner.path())?, read(outer.path())?);
        // Put back from the last to the first.
        tracer.keep(inner, was_inner);
        tracer.keep(outer, was_outer);
        tracer.change(inner, "1".to_owned(), "1")?;
        write(outer.path(), &(wanted.every / 1_000).to_string())?;
        write(inner.path(), &(wanted.length / 1_000).to_string())
    }

    /// The samples of osnoise: a line for each time.
    fn samples(&self) -> Option<Count> {
        let (mut times, mut lost) = (0, 0);
        for cpu in self.cpus.iter() {
            let stats =
                read(&self.tracer.path(&["per_cpu/cpu", &cpu.to_string(), "/stats"].concat())).ok()?;
            times += number(&stats, "entries:")?;
            lost += number(&stats, "overrun:")?;
        }
        let trace = read(&self.tracer.path("trace")).ok()?;
        let longest = trace.lines().filter_map(runtime).max();
        // An overwritten sample may have been longer, and its time is unknown.
        let at = if lost == 0 && self.timed { began(&trace) } else { Vec::new() };
        Some(Count { times: Some(times + lost), longest_ns: longest.filter(|_| lost == 0), at, way: None })
    }
}

/// The number after a word at the beginning of a line.
fn number(text: &str, word: &str) -> Option<u64> {
    text.lines().find_map(|line| line.trim().strip_prefix(word))?.trim().parse().ok()
}

/// How long the osnoise tracer ran, in ns, from a line of its trace: the first number after the time
/// stamp, in us.
fn runtime(line: &str) -> Option<u64> {
    if line.starts_with('#') {
        return None;
    }
    let us: u64 = line.split(": ").nth(1)?.split_whitespace().next()?.parse().ok()?;
    us.checked_mul(1_000)
}

/// When the osnoise tracer began each of its runs, in ns, where its trace has the time of CLOCK_MONOTONIC: a line is
/// written at the end of a run.
fn began(trace: &str) -> Vec<u64> {
    let one = |line: &str| {
        let ended = line.split(": ").next()?.rsplit(' ').next()?;
        let (seconds, fraction) = ended.split_once('.')?;
        let (seconds, micros): (u64, u64) = (seconds.parse().ok()?, fraction.parse().ok()?);
        let ended = seconds.checked_mul(1_000_000)?.checked_add(micros)?.checked_mul(1_000)?;
        ended.checked_sub(runtime(line)?)
    };
    trace.lines().filter_map(one).collect()
}

impl Held for Blocking {
    fn begin(&mut self) -> Result<(), String> {
        self.tracer.own("tracing_on", "1")?;
        // If this fails, blocks come late on a busy CPU, but still come.
        let _ = self.tracer.schedule(&self.cpus, self.above);
        Ok(())
    }

    fn end(&mut self) -> Result<Count, String> {
        if !self.tracer.is_claimed() {
            return Ok(Count::default());
        }
        let stopped = self.tracer.own("tracing_on", "0");
        // hwlat only records its findings, and has no count.
        let count = if self.tracer.which.name == OSNOISE.name { self.samples() } else { None };
        let ended = self.tracer.end();
        stopped.and(ended).map(|()| count.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.1 wrote it.
    const TRACE: &str = include_str!("../../../tests/fixtures/osnoise.trace");
    const STATS: &str = "entries: 6\noverrun: 0\ncommit overrun: 0\nbytes: 448\n";

    #[test]
    fn the_longest_run_is_read_from_the_trace() {
        assert_eq!(TRACE.lines().filter_map(runtime).max(), Some(50_000_000));
        assert_eq!(TRACE.lines().filter_map(runtime).count(), 6);
        let began = began(TRACE);
        assert_eq!(began.len(), 6);
        assert!(began.windows(2).all(|pair| pair[1] - pair[0] > 50_000_000), "{began:?}");
        assert_eq!((number(STATS, "entries:"), number(STATS, "overrun:")), (Some(6), Some(0)));
        assert_eq!(number(STATS, "missing:"), None);
    }

    proptest::proptest! {
        #[test]
        fn no_line_makes_the_reader_panic(line in ".{0,80}") {
            let _ = runtime(&line);
            let _ = runtime(&format!("x-1 [000] ....... 1.0: {line}"));
            let _ = began(&format!("x-1 [000] ....... {line}: 5 5"));
            let _ = number(&line, "entries:");
        }
    }
}
