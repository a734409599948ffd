//! The files of jitterdebugger: `results.json`, `samples.raw`, and the table that jittersamples makes of the
//! samples.

use std::collections::BTreeMap;
use std::io::{BufReader, ErrorKind, Read};

use super::json::Document;
use super::recording::{Rows, Stated};
use super::text::{Lines, MOST_IDLE, NO_UNIT, decimal, short, too_idle};
use super::{ImportError, Recording, Values, rt_tests, runs};
use crate::lines::{MOST_THREADS, plain};

/// Bytes of a sample: CPU (4), seconds (8), ns (8), value (8); little endian, packed.
const SAMPLE: usize = 28;
const SECOND_NS: u64 = 1_000_000_000;

/// Reads `results.json`. Its histogram leaves out values of 1 ms and more; its count has them.
pub(super) fn results(document: Document) -> Result<Vec<Recording>, ImportError> {
    let mut recording = Recording::of("jitterdebugger", Values::Wakeups);
    let machine = document.sysinfo;
    let unit_ns = machine.as_ref().and_then(|machine| machine.resolution_in_ns).unwrap_or(1_000);
    if !matches!(unit_ns, 1 | 1_000) {
        return Err(ImportError::whole(format!("resolution_in_ns is {unit_ns}, but must be 1 or 1000")));
    }
    for (cpu, thread) in &document.cpu.map_or_else(Vec::new, |threads| threads.0) {
        let wrong = |what: String| ImportError::whole(format!("CPU {cpu}: {what}"));
        let stated = rt_tests::stated(thread, unit_ns).map_err(wrong)?;
        if stated.cycles.is_none() {
            return Err(wrong("it does not contain the number of values".into()));
        }
        let series = rt_tests::rows(thread, unit_ns).and_then(|rows| rows.series(stated)).map_err(wrong)?;
        recording.series.push(series.at(*cpu, Some(*cpu)));
    }
    if let Some(machine) = machine {
        recording.node = machine.nodename;
        recording.kernel =
            machine.release.map(|release| format!("{release} {}", machine.version.unwrap_or_default()));
    }
    recording.remark();
    Ok(vec![recording])
}

/// Samples one by one.
struct Samples {
    unit_ns: Option<u64>,
    by_cpu: BTreeMap<u32, Rows>,
    /// When the first and the last one were, in ns.
    span: Option<(u64, u64)>,
}

impl Samples {
    fn new(unit_ns: Option<u64>) -> Self {
        Self { unit_ns, by_cpu: BTreeMap::new(), span: None }
    }

    fn add(&mut self, cpu: u64, at_ns: u64, value: u64) -> Result<(), String> {
        // The time since the machine was started: some of it has passed before the first sample.
        if at_ns == 0 {
            return Err("a sample of the moment 0: nothing was measured then".into());
        }
        let value_ns =
            value.checked_mul(self.unit_ns.unwrap_or(1_000)).ok_or(format!("{value} is not a latency"))?;
        let cpu =
            u32::try_from(cpu).ok().filter(|cpu| *cpu < 4096).ok_or(format!("CPU {cpu} is impossible"))?;
        if self.by_cpu.len() >= MOST_THREADS as usize && !self.by_cpu.contains_key(&cpu) {
            return Err(format!("samples of more than {MOST_THREADS} CPUs are impossible"));
        }
        let (first, last) = self.span.unwrap_or((at_ns, at_ns));
        self.span = Some((first.min(at_ns), last.max(at_ns)));
        self.by_cpu.entry(cpu).or_default().add(value_ns, 1)
    }

    fn recording(self, from: &str) -> Result<Vec<Recording>, ImportError> {
        let mut recording = Recording::of(format!("jitterdebugger ({from})"), Values::Wakeups);
        for (cpu, rows) in self.by_cpu {
            let series = rows.series(Stated::default()).map_err(ImportError::whole)?;
            recording.series.push(series.at(cpu, Some(cpu)));
        }
        recording.duration_ns = self.span.map(|(first, last)| last - first);
        if self.unit_ns.is_none() {
            recording.notes.push(NO_UNIT.into());
        }
        Ok(vec![recording])
    }
}

/// Whether bytes are samples: all of them have plausible values.
pub(super) fn is_raw(beginning: &[u8]) -> bool {
    let (samples, rest) = beginning.as_chunks::<SAMPLE>();
    let sound = |sample: &[u8; SAMPLE]| {
        let (cpu, s, ns, value) = fields(sample);
        cpu < 4096 && s < 1 << 34 && ns < SECOND_NS && value < 1 << 40
    };
    // A cut sample is reported when it is read.
    !samples.is_empty() && samples.iter().all(sound) && rest.len() < SAMPLE
}

fn fields(sample: &[u8; SAMPLE]) -> (u64, u64, u64, u64) {
    let number = |from: usize, to: usize| {
        sample[from..to].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    };
    (number(0, 4), number(4, 12), number(12, 20), number(20, 28))
}

/// Reads `samples.raw`.
pub(super) fn raw(input: impl Read, unit_ns: Option<u64>) -> Result<Vec<Recording>, ImportError> {
    let mut input = BufReader::new(input);
    let mut samples = Samples::new(unit_ns);
    let mut at = 0;
    loop {
        let mut sample = [0; SAMPLE];
        let mut filled = 0;
        while filled < SAMPLE {
            match input.read(&mut sample[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(ImportError::byte(at, error.to_string())),
            }
        }
        if filled == 0 {
            return samples.recording("samples.raw");
        }
        if filled < SAMPLE {
            return Err(ImportError::byte(
                at,
                format!("a sample has {SAMPLE} bytes, but this one {filled}: it is cut"),
            ));
        }
        let (cpu, s, ns, value) = fields(&sample);
        let time = s.checked_mul(SECOND_NS).and_then(|s| s.checked_add(ns)).filter(|_| ns < SECOND_NS);
        let Some(time) = time else {
            return Err(ImportError::byte(at, "its numbers cannot be those of a sample"));
        };
        samples.add(cpu, time, value).map_err(|what| ImportError::byte(at, what))?;
        at += SAMPLE as u64;
    }
}

/// `0;3933.705479258;46`
fn sample(line: &str) -> Option<(u64, u64, u64)> {
    let mut fields = line.split(';').map(str::trim);
    let (cpu, time, value) = (fields.next()?, fields.next()?, fields.next()?);
    let (_, fraction) = time.split_once('.')?;
    let whole = fields.next().is_none() && fraction.len() == 9;
    whole.then_some((cpu.parse().ok()?, decimal(time, SECOND_NS)?, value.parse().ok()?))
}

/// Whether a line is one of its table.
pub(super) fn is_csv(line: &str) -> bool {
    sample(line).is_some()
}

/// Reads the table.
pub(super) fn csv<R: Read>(mut lines: Lines<R>, unit_ns: Option<u64>) -> Result<Vec<Recording>, ImportError> {
    let mut samples = Samples::new(unit_ns);
    while let Some(line) = lines.next()? {
        let Some((cpu, at_ns, value)) = sample(line) else {
            let what = format!("not CPU;seconds.nanoseconds;value: `{}`", short(line));
            return Err(lines.error(what));
        };
        samples.add(cpu, at_ns, value).map_err(|what| lines.error(what))?;
    }
    samples.recording("samples.csv")
}

/// `T: 0 (15873) A: 0 C:       134 Min:         8 Avg:   16.01 Max:       153`: CPU, count, minimum, mean in ns, maximum.
fn live(line: &str) -> Option<(u32, u64, u64, u64, u64)> {
    let line = plain(line);
    let rest = &line[line.find("T:")?..];
    let number = |name: &str| rest.split_once(name)?.1.split_whitespace().next();
    let parse = |name: &str| number(name)?.parse::<u64>().ok();
    let cpu = u32::try_from(parse(" A:")?).ok().filter(|cpu| *cpu < 4096)?;
    let (cycles, mean) = (parse(" C:")?, decimal(number(" Avg:")?, 1_000)?);
    Some((cpu, cycles, parse(" Min:")?, mean, parse(" Max:")?))
}

/// Whether a line is one that `-v` prints while it measures.
pub(super) fn is_live(line: &str) -> bool {
    live(line).is_some()
}

/// Reads the lines of `-v`.
pub(super) fn verbose<R: Read>(lines: Lines<R>) -> Result<Vec<Recording>, ImportError> {
    runs::each(lines, live_run)
}

fn live_run<R: Read>(lines: &mut Lines<R>) -> Result<Vec<Recording>, ImportError> {
    // Count, minimum, mean and maximum.
    let mut by_cpu: BTreeMap<u32, (u64, u64, u64, u64)> = BTreeMap::new();
    let mut idle = 0;
    while let Some(line) = lines.next()? {
        if let Some((cpu, cycles, min, mean, max)) = live(line).filter(|(_, cycles, ..)| *cycles > 0) {
            // The totals of a run only grow.
            let grows = by_cpu.get(&cpu).is_none_or(|(before, least, _, most)| {
                let same = *before == cycles && (*least, *most) != (min, max);
                *before <= cycles && *least >= min && *most <= max && !same
            });
            if !grows {
                lines.again();
                break;
            }
            by_cpu.insert(cpu, (cycles, min, mean, max));
            if by_cpu.len() > MOST_THREADS as usize {
                return Err(lines.error("more CPUs than possible"));
            }
            continue;
        }
        if plain(line).trim_start().starts_with("T:") && live(line).is_none() {
            let what = format!("cut or damaged: `{}`", short(line));
            return Err(lines.error(what));
        }
        idle += 1;
        if idle > MOST_IDLE {
            return Err(lines.error(too_idle()));
        }
    }
    let mut recording = Recording::of("jitterdebugger (-v)", Values::Wakeups);
    for (cpu, (cycles, min, mean, max)) in by_cpu {
        let wrong = |what: String| ImportError::whole(format!("CPU {cpu}: {what}"));
        let us =
            |value: u64| value.checked_mul(1_000).ok_or_else(|| wrong(format!("{value} is not a latency")));
        let stated = Stated {
            cycles: Some(cycles),
            min: Some(us(min)?),
            mean: Some(tactus_model::number::float(mean)),
            max: Some(us(max)?),
            ..Stated::default()
        };
        recording.series.push(Rows::default().series(stated).map_err(wrong)?.at(cpu, Some(cpu)));
    }
    recording.notes.push("it has totals but no histogram: quantiles are unknown".into());
    Ok(vec![recording])
}
