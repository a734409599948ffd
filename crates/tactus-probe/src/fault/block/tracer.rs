//! A block by one of the kernel's tracers. hwlat looks for what firmware takes from a CPU and for that
//! keeps interrupts off for `width` of every `window`; osnoise does the same for `runtime` of every
//! `period`, with interrupts or preemption off where its options say so.
//!
//! The tracer runs in an instance of tracefs of its own, which has its own CPUs and is gone at the end;
//! what is common to all instances is put back. Where another hwlat, osnoise or timerlat runs its
//! settings are not touched. The kernel's threads are of ordinary priority: they are put above the
//! measuring ones, else a busy CPU would never be blocked.

use std::fs;
use std::io::ErrorKind;

use tactus_model::CpuSet;
use tactus_model::catalogue::fault::Off;
use tactus_model::undo::block::{self, HWLAT, IRQ_DISABLE, OSNOISE, PREEMPT_DISABLE, Shared, WORKLOAD};
use tactus_model::undo::{MARKER, Undo};

use super::{No, Wanted, no};
use crate::fault::{Count, Disturbance, Held};
use crate::sys::{self, SchedAttr};
use crate::tracefs::{self, at, read, wrong};
use crate::work::promise;

/// A tracer and what it changed.
struct Tracer {
    which: &'static block::Tracer,
    /// Its instance, below tracefs.
    instance: String,
    /// It is there.
    claimed: bool,
    cpus: CpuSet,
    above: u32,
    /// Files below tracefs and what they said, in the order in which they were written.
    former: Vec<(Shared, String)>,
    /// Its lines have the time of CLOCK_MONOTONIC.
    timed: bool,
}

/// By the hwlat tracer, with interrupts off.
pub(super) fn hwlat(wanted: &Wanted<'_>) -> Result<Disturbance, No> {
    if wanted.off == Off::Preemption {
        return no(false, &["the hwlat tracer keeps interrupts off, not preemption alone"]);
    }
    let mut tracer = Tracer::claim(&HWLAT, wanted)?;
    match read(Shared::MODE.path()) {
        Ok(modes) => {
            let mode = block::mode(&modes).unwrap_or("round-robin").to_owned();
            tracer.change(Shared::MODE, mode, "per-cpu")?;
        }
        // Before Linux 5.15 it goes from one CPU to the next.
        Err(_) if wanted.cpus.len() == 1 => {}
        Err(_) => return no(false, &["the hwlat tracer of this kernel blocks one CPU at a time"]),
    }
    tracer.times(wanted)?;
    tracer.own("tracing_cpumask", &tactus_model::change::to_mask(wanted.cpus))?;
    tracer.ready()
}

/// By the osnoise tracer, with interrupts or preemption off.
pub(super) fn osnoise(wanted: &Wanted<'_>) -> Result<Disturbance, No> {
    let mut tracer = Tracer::claim(&OSNOISE, wanted)?;
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
    tracer.times(wanted)?;
    tracer.ready()
}

fn has(words: &str, wanted: &str) -> bool {
    words.split_whitespace().any(|word| word == wanted)
}

fn write(path: &str, value: &str) -> Result<(), String> {
    let path = at(path);
    fs::write(&path, value).map_err(|error| wrong(&[&path, ": ", value].concat(), &error))
}

/// The tracers of this kernel.
pub(super) fn tracers() -> Result<String, String> {
    tracefs::read_first("available_tracers")
}

impl Tracer {
    /// Makes its instance, in which nothing runs yet.
    fn claim(which: &'static block::Tracer, wanted: &Wanted<'_>) -> Result<Self, No> {
        let tracers = tracers()?;
        let name = which.name;
        if !has(&tracers, name) {
            return no(false, &["this kernel has no ", name, " tracer (it has ", &tracers, ")"]);
        }
        // Made before the others are looked at: of two runs that begin at once at least one finds the other.
        let run = std::env::var(MARKER).unwrap_or_default();
        let own = which.instance(&run);
        let path = at(&own);
        if let Err(error) = fs::create_dir(&path) {
            return no(error.kind() == ErrorKind::AlreadyExists, &[&wrong(&path, &error)]);
        }
        promise(&Undo::RemoveEmpty(path.into()));
        let (cpus, above) = (wanted.cpus.clone(), wanted.above);
        let mut tracer =
            Self { which, instance: own, claimed: true, cpus, above, former: Vec::new(), timed: false };
        tracer.alone()?;
        tracer.own("tracing_on", "0")?;
        tracer.timed = tracer.own("trace_clock", "mono").is_ok();
        Ok(tracer)
    }

    /// Whether nobody else runs it, or is about to.
    fn alone(&self) -> Result<(), No> {
        let mut places = vec![(String::new(), false)];
        for entry in fs::read_dir(at("instances")).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let place = ["instances/", &name].concat();
            if place != self.instance {
                places.push(([&place, "/"].concat(), self.which.is_ours(&name)));
            }
        }
        for (place, blocks) in places {
            let current = read(&[&*place, "current_tracer"].concat()).unwrap_or_default();
            // hwlat and osnoise get along with each other; timerlat shares its settings with osnoise.
            let name = self.which.name;
            if blocks || current == name || name == "osnoise" && current == "timerlat" {
                return no(true, &["the ", name, " tracer is in use in ", &at(&place)]);
            }
        }
        Ok(())
    }

    fn ready(self) -> Result<Disturbance, No> {
        self.own("current_tracer", self.which.name)?;
        Ok(Disturbance {
            way: [self.which.name, " tracer"].concat(),
            works: Vec::new(),
            longest: &[],
            held: Some(Box::new(self)),
            made: None,
        })
    }

    /// A file of the instance.
    fn path(&self, file: &str) -> String {
        [&*self.instance, "/", file].concat()
    }

    /// Writes a file of the instance.
    fn own(&self, file: &str, value: &str) -> Result<(), String> {
        write(&self.path(file), value)
    }

    /// Writes a file that all instances share; `former` is what puts it back.
    fn change(&mut self, file: Shared, former: String, value: &str) -> Result<(), String> {
        self.keep(file, former);
        write(file.path(), value)
    }

    /// Keeps what puts a file back, here and with whoever outlives this process.
    fn keep(&mut self, file: Shared, former: String) {
        promise(&Undo::Write { path: at(file.path()).into(), value: former.clone() });
        self.former.push((file, former));
    }

    fn set(&mut self, file: Shared, value: &str) -> Result<(), String> {
        let former = read(file.path())?;
        if former == value { Ok(()) } else { self.change(file, former, value) }
    }

    /// Sets how long and how often it blocks, of which the first must never be above the second.
    fn times(&mut self, wanted: &Wanted<'_>) -> Result<(), String> {
        let [inner, outer] = self.which.times;
        let (was_inner, was_outer) = (read(inner.path())?, read(outer.path())?);
        // Put back from the last to the first.
        self.keep(inner, was_inner);
        self.keep(outer, was_outer);
        self.change(inner, "1".to_owned(), "1")?;
        write(outer.path(), &(wanted.every / 1_000).to_string())?;
        write(inner.path(), &(wanted.length / 1_000).to_string())
    }

    /// What osnoise wrote down: a line for each time.
    fn samples(&self) -> Option<Count> {
        let (mut times, mut lost) = (0, 0);
        for cpu in self.cpus.iter() {
            let stats = read(&self.path(&["per_cpu/cpu", &cpu.to_string(), "/stats"].concat())).ok()?;
            times += number(&stats, "entries:")?;
            lost += number(&stats, "overrun:")?;
        }
        let trace = read(&self.path("trace")).ok()?;
        let longest = trace.lines().filter_map(runtime).max();
        // What was overwritten may have been longer, and is not told when it was.
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

impl Held for Tracer {
    fn begin(&mut self) -> Result<(), String> {
        self.own("tracing_on", "1")?;
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Ok(thread) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            let comm = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            let cpu = comm.trim().strip_prefix(self.which.threads).and_then(|cpu| cpu.parse::<u32>().ok());
            if cpu.is_some_and(|cpu| self.cpus.contains(cpu)) {
                // Where it is refused, blocks come late on a busy CPU, and are blocks all the same.
                let _ = sys::set_scheduler_of(thread, SchedAttr::fifo(self.above));
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<Count, String> {
        if !std::mem::take(&mut self.claimed) {
            return Ok(Count::default());
        }
        let stopped = self.own("tracing_on", "0");
        // hwlat only writes down what it found, and counts nothing.
        let count = if self.which.name == OSNOISE.name { self.samples() } else { None };
        // Its threads end here. The instance goes last: as long as it is there, others know what is left.
        let mut result = stopped.and(self.own("current_tracer", "nop"));
        while let Some((file, former)) = self.former.pop() {
            result = result.and(write(file.path(), &former));
        }
        let path = at(&self.instance);
        let removed = fs::remove_dir(&path).map_err(|error| wrong(&path, &error));
        result.and(removed).map(|()| count.unwrap_or_default())
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // Whoever could be told has been.
        let _ = self.end();
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
