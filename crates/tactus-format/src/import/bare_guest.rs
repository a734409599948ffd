//! The output of tactus's guest without an operating system on a serial line, alone on a machine: frames of
//! the wire (docs/design/wire.md), between any other output on that line.

use std::io::{BufRead, BufReader, Read};

use tactus_model::buckets::Counts;
use tactus_model::facts::{Facts, Reading};
use tactus_model::latency::Totals;
use tactus_model::message::{Done, End, FromProbe, Stage, Tick, Trial};
use tactus_model::wire::{Decoder, Item, MAX_FRAME};

use super::recording::MOST_NS;
use super::text::{MOST_IDLE, too_idle};
use super::{ImportError, Recording, Series, Values};

/// The longest line that is read at once, in bytes; the rest of a longer one is the next.
const LONGEST: u64 = 1 << 20;
/// The most measurements that one recording may have.
const MOST_RUNS: usize = 256;
/// The prefix of the facts that the guest reports about its machine. Other names are dropped, so that an
/// endless line fills no memory.
const OWN: &str = "bare:";
/// Most facts that are kept.
const MOST_FACTS: usize = 64;

/// Whether a recording begins so: with a frame among its first lines.
pub(super) fn is_one(beginning: &[u8]) -> bool {
    let is_frame = |line: &[u8]| {
        line.len() < MAX_FRAME + 256
            && line.windows(5).any(|word| word == b"{\"q\":")
            && line.trim_ascii_end().ends_with(b"\"}")
            && line.windows(6).any(|word| word == b",\"c\":\"")
    };
    beginning.split(|byte| *byte == b'\n').any(is_frame)
}

/// Reads one.
pub(super) fn read(input: impl Read) -> Result<Vec<Recording>, ImportError> {
    let (mut input, mut decoder) = (BufReader::new(input), Decoder::default());
    let (mut runs, mut line, mut number, mut idle) = (Vec::<Run>::new(), Vec::new(), 0, 0);
    loop {
        line.clear();
        let wrong = |what: String| ImportError::line(number + 1, what);
        let read = input.by_ref().take(LONGEST).read_until(b'\n', &mut line);
        let items: Vec<Item<FromProbe>> = match read.map_err(|error| wrong(error.to_string()))? {
            0 => decoder.finish(),
            _ => decoder.feed(&line),
        };
        idle += u64::from(!items.iter().any(|item| matches!(item, Item::Message(_))));
        if idle > MOST_IDLE {
            return Err(wrong(too_idle()));
        }
        for item in items {
            take(&mut runs, item).map_err(wrong)?;
        }
        if line.is_empty() {
            break;
        }
        number += u64::from(line.ends_with(b"\n"));
    }
    runs.into_iter().filter_map(|run| run.recording().transpose()).collect()
}

fn take(runs: &mut Vec<Run>, item: Item<FromProbe>) -> Result<(), String> {
    if let Item::Message(FromProbe::Hello(hello)) = &item {
        if runs.len() == MOST_RUNS {
            return Err(format!("more than {MOST_RUNS} measurements: cut the recording into several files"));
        }
        let instrument = format!("tactus-bare-guest {}", hello.version.chars().take(40).collect::<String>());
        runs.push(Run { instrument, ..Run::default() });
        return Ok(());
    }
    // Data on a line before the first measurement does not belong to it.
    let Some(run) = runs.last_mut() else { return Ok(()) };
    match item {
        Item::Lost(frames) => run.lost = run.lost.saturating_add(frames),
        Item::Message(message) => run.message(message)?,
        Item::Foreign(_) | Item::Unknown(_) => {}
    }
    Ok(())
}

/// A measurement, as far as it has been read.
#[derive(Default)]
struct Run {
    instrument: String,
    facts: Facts,
    trials: Vec<Trial>,
    counts: Counts,
    missed: Counts,
    /// The number of latencies in the ticks that arrived.
    arrived: u64,
    total: Option<Totals>,
    done: Option<Done>,
    refused: Option<String>,
    measured_ns: u64,
    /// Frames that did not arrive.
    lost: u64,
}

impl Run {
    fn message(&mut self, message: FromProbe) -> Result<(), String> {
        match message {
            FromProbe::Facts { readings, .. } => {
                let room = MOST_FACTS.saturating_sub(self.facts.0.len());
                let own = readings.0.into_iter().filter(|(name, _)| name.starts_with(OWN));
                self.facts.0.extend(own.take(room));
            }
            // The first of each stage; the others fall through to what is not kept.
            FromProbe::Trial(trial) if self.trials.iter().all(|known| known.stage != trial.stage) => {
                self.trials.push(trial);
            }
            FromProbe::Tick(tick) => self.tick(&tick)?,
            FromProbe::Total(total) => {
                self.total = Some(total.total);
                self.measured_ns = total.at_ns;
            }
            FromProbe::Refused(refusal) => self.refused = Some(refusal.reason),
            FromProbe::Done(done) => self.done = Some(done),
            _ => {}
        }
        Ok(())
    }

    fn tick(&mut self, tick: &Tick) -> Result<(), String> {
        if tick.series.kind != "interrupt" || tick.series.cpu != 0 || tick.series.thread != 0 {
            return Err(format!(
                "a tick of `{}`: only the timer of the guest without an operating system can be read",
                tick.series.to_string().chars().take(60).collect::<String>()
            ));
        }
        let sparse = |error| format!("tick {}: {error}", tick.n);
        let counted = tick.counts.buckets().map_err(sparse)?.iter().map(|(_, count)| count).sum::<u64>();
        if counted > tick.now.cycles {
            return Err(format!("tick {}: it counts {counted} latencies of {}", tick.n, tick.now.cycles));
        }
        self.counts.add_sparse(&tick.counts).map_err(sparse)?;
        self.missed.add_sparse(&tick.missed).map_err(sparse)?;
        self.arrived = self.arrived.saturating_add(tick.now.cycles);
        self.total = Some(tick.total);
        self.measured_ns = tick.at_ns;
        Ok(())
    }

    /// The recording; `None` if it began and measured nothing.
    fn recording(self) -> Result<Option<Recording>, ImportError> {
        if let Some(reason) = self.refused {
            return Err(ImportError::whole(format!("nothing was measured: {reason}")));
        }
        let Some(totals) = self.total.filter(|totals| totals.cycles > 0) else { return Ok(None) };
        let sum = |each: u64| u128::from(each) * u128::from(totals.cycles);
        let mean_is_within = (sum(totals.min_ns)..=sum(totals.max_ns)).contains(&u128::from(totals.sum_ns));
        if totals.max_ns > MOST_NS || self.arrived > totals.cycles || !mean_is_within {
            return Err(ImportError::whole("its totals contradict each other"));
        }
        let text = |name: &str| match self.facts.0.get(name) {
            Some(Reading::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        let mut recording = Recording::of(&*self.instrument, Values::Interrupts);
        recording.interval_ns = text("bare:interval-ns").and_then(|ns| ns.parse().ok());
        recording.duration_ns = Some(self.measured_ns);
        recording.counts_missed = true;
        let mut note = |text: String| recording.notes.push(text);
        note(match text("bare:hypervisor") {
            Some(name) => format!("it ran in a virtual machine, whose hypervisor is called `{name}`"),
            None => "it ran on a processor that names no hypervisor".into(),
        });
        let known = |name| text(name).unwrap_or("not said");
        note(format!(
            "its interrupts came from the timer of the {} ({}); the time stamp counter was timed by {}",
            known("bare:interrupt-controller"),
            known("bare:timer"),
            known("bare:clock")
        ));
        for (stage, when) in [(Stage::Before, "before"), (Stage::After, "after")] {
            let control = self.trials.iter().find(|trial| trial.stage == stage).map(Trial::control);
            note(match control.and_then(|own| Some((own.injected()?, own.seen()?, own.passed))) {
                Some((injected, seen, passed)) => format!(
                    "{when} measuring it kept interrupts off for {injected} ns; its instrument {} {seen} ns",
                    if passed { "saw" } else { "did not see all of it, but" },
                ),
                None => format!("its self-test {when} measuring was not passed"),
            });
        }
        if self.lost > 0 {
            note(format!("{} frames were lost on the line", self.lost));
        }
        if self.arrived < totals.cycles {
            note(format!(
                "of {} latencies the sizes of {} were lost on the line: minimum, mean and maximum are of all, quantiles are \
not",
                totals.cycles,
                totals.cycles - self.arrived
            ));
        }
        match &self.done {
            None => note("the recording ends before the measurement did".into()),
            Some(Done { end: End::Complete, .. }) => {}
            Some(Done { reason, .. }) => {
                note(format!("it was stopped early: {}", reason.as_deref().unwrap_or("no reason is given")));
            }
        }
        let series = Series {
            thread: 0,
            cpu: Some(0),
            totals,
            knows_min: true,
            counts: self.counts.pack(),
            missed: self.missed.pack(),
            ..Series::default()
        };
        recording.series.push(series);
        Ok(Some(recording))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_tells_of_its_machine_for_ever_fills_no_memory() {
        let mut run = Run::default();
        for n in 0..10_000 {
            let readings = ["bare:", "x:"].map(|own| (format!("{own}{n}"), Reading::Text("y".into())));
            let readings = Facts(readings.into_iter().collect());
            run.message(FromProbe::Facts { readings, last: false }).unwrap();
        }
        assert_eq!(run.facts.0.len(), MOST_FACTS);
        assert!(run.facts.0.keys().all(|name| name.starts_with(OWN)));
    }
}
