//! Speaks for an instrument that is no probe: its lines on one side, the protocol of a probe on the other.
//! It only listens: nothing is ever said to the instrument.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tactus_format::lines::{self, Format, Reading};
use tactus_model::Nanos;
use tactus_model::catalogue::Measure;
use tactus_model::facts::Facts;
use tactus_model::message::{
    Activity, Done, End, FromProbe, Hello, Job, Note, PROTOCOL, Proven, Refusal, ToProbe, What,
};
use tactus_model::wire::{Decoder, Encoder, Item};

use super::collect::{Collector, Rules};
use super::source::{Source, Splitter};
use crate::Stream;
use crate::support::DOUBLED;

/// How long an instrument may take to its last words after it was told to end.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How often the line is looked at when nothing else is due.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Lines that come within this time after the measurement began may be older than it. A line that was open before
/// holds unread output, and a follower (`jailhouse console -f`) prints its whole ring first, with output of cells
/// that ended long ago. Old output comes at once; a driver that is polled ten times a second brings the last of it a
/// little later.
const OLDER: Duration = Duration::from_millis(300);
/// Lines that are kept to say what came instead.
const KEPT: usize = 8;

/// An instrument that writes lines.
pub trait Instrument: Send {
    /// Opens the source of its bytes. The instrument must not begin before this call. Called once.
    ///
    /// # Errors
    /// Why there is no source, in words.
    fn begin(&mut self) -> Result<Source, String>;

    /// Whether its line may begin with what was written before the measurement. A cyclictest that begins with it has
    /// nothing older to say.
    fn has_a_past(&self) -> bool {
        true
    }

    /// Tells it to end; `false` if it cannot be told.
    fn finish(&mut self) -> bool;

    /// Whether it has come to its own good end, once its line has ended.
    fn ended_well(&mut self) -> bool;
}

/// The description of the lines before they come.
#[derive(Clone, Debug)]
pub struct About {
    /// The format.
    pub format: Format,
    /// Where they come from, in words.
    pub from: String,
    /// One unit of the lines, in ns.
    pub unit_ns: u64,
    /// CPUs that the plan names.
    pub cpus: Vec<u32>,
}

/// The last lines, to say why it ended.
pub type Words = Arc<Mutex<Vec<String>>>;

enum Input {
    Order(ToProbe),
    Gone,
}

/// Begins to translate; returns the stream of the probe that it plays.
///
/// # Errors
/// Those of a socket pair.
pub fn translate(about: About, instrument: Box<dyn Instrument>, words: Words) -> std::io::Result<Stream> {
    let (ours, theirs) = UnixStream::pair()?;
    let (orders, to) = channel();
    let listening = ours.try_clone()?;
    std::thread::spawn(move || listen(listening, &orders));
    let writer = theirs.try_clone()?;
    std::thread::spawn(move || {
        let said = Said { to: ours, encoder: Encoder::new() };
        let mut translator = Translator { about, instrument, words, said, orders: to, source: None };
        // An error means that the other side has gone: there is nothing left to do.
        let _ = translator.serve();
        let _ = translator.said.to.shutdown(std::net::Shutdown::Both);
    });
    Ok(Stream { reader: Box::new(theirs), writer: Box::new(writer) })
}

fn listen(mut from: UnixStream, orders: &Sender<Input>) {
    let mut decoder = Decoder::new();
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        for item in decoder.feed(&buffer[..read]) {
            if let Item::Message(order) = item
                && orders.send(Input::Order(order)).is_err()
            {
                return;
            }
        }
    }
    let _ = orders.send(Input::Gone);
}

struct Said {
    to: UnixStream,
    encoder: Encoder,
}

impl Said {
    fn say(&mut self, message: &FromProbe) -> std::io::Result<()> {
        let bytes = self.encoder.encode(message)?;
        self.to.write_all(&bytes)
    }
}

struct Translator {
    about: About,
    instrument: Box<dyn Instrument>,
    words: Words,
    said: Said,
    orders: Receiver<Input>,
    source: Option<Source>,
}

fn refusal(reason: impl Into<String>, hint: &str) -> Refusal {
    Refusal { reason: reason.into(), hint: Some(hint.into()) }
}

impl Translator {
    fn serve(&mut self) -> std::io::Result<()> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.said.say(&FromProbe::Hello(Hello {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").into(),
            arch: "unknown".into(),
            pid: 0,
            monotonic_ns: 0,
            realtime_ns: ns(now),
            can: vec!["timer".into()],
        }))?;
        let mut facts = Facts::default();
        facts.keep("line:from", self.about.from.as_str());
        facts.keep("line:format", format!("{:?}", self.about.format).to_lowercase());
        self.said.say(&FromProbe::Facts { readings: facts, last: true })?;
        loop {
            match self.orders.recv() {
                Ok(Input::Order(ToProbe::Job(job))) => {
                    if !self.job(&job)? {
                        return Ok(());
                    }
                }
                Ok(Input::Order(ToProbe::Quit) | Input::Gone) | Err(_) => return Ok(()),
                Ok(Input::Order(_)) => {}
            }
        }
    }

    /// One job; `false` when the conversation ended with it.
    fn job(&mut self, job: &Job) -> std::io::Result<bool> {
        let rules = match self.rules(job) {
            Ok(rules) => rules,
            Err(refusal) => {
                self.said.say(&FromProbe::Refused(refusal))?;
                return Ok(true);
            }
        };
        self.said.say(&FromProbe::Note(Note::info(format!(
            "read from {}: tactus did not measure, and cannot prove anything about it",
            self.about.from
        ))))?;
        self.said.say(&FromProbe::Ready)?;
        loop {
            match self.orders.recv() {
                // An instrument is not a probe, and cannot prove anything.
                Ok(Input::Order(ToProbe::Prove)) => self.said.say(&FromProbe::Proven(Proven::default()))?,
                Ok(Input::Order(ToProbe::Go)) => break,
                Ok(Input::Order(ToProbe::Stop)) => {
                    let done = Done {
                        end: End::Stopped,
                        reason: None,
                        measured_ns: 0,
                        load_rounds: Vec::new(),
                        jump_ns: 0,
                    };
                    self.said.say(&FromProbe::Done(done))?;
                    return Ok(true);
                }
                Ok(Input::Order(ToProbe::Quit) | Input::Gone) | Err(_) => return Ok(false),
                Ok(Input::Order(_)) => {}
            }
        }
        let source = match self.source.take() {
            Some(source) => Ok(source),
            None => self.instrument.begin(),
        };
        match source {
            Ok(source) => self.measure(job, rules, source),
            Err(why) => {
                let done = Done {
                    end: End::Failed,
                    reason: Some(why),
                    measured_ns: 0,
                    load_rounds: Vec::new(),
                    jump_ns: 0,
                };
                self.said.say(&FromProbe::Done(done))?;
                Ok(true)
            }
        }
    }

    fn rules(&self, job: &Job) -> Result<Rules, Refusal> {
        let only = "the other end is not a probe: tactus reads its lines, and cannot tell it anything";
        let [Activity { id, what: What::Measure { measure: Measure::Timer(_), priority, .. }, .. }] =
            &job.activities[..]
        else {
            return Err(refusal(
                only,
                "measure `timer` in it, once; put loads and faults in other \
                environments",
            ));
        };
        if !job.changes.is_empty() {
            return Err(refusal(only, "leave out the settings"));
        }
        Ok(Rules {
            activity: *id,
            cpus: self.about.cpus.clone(),
            priority: *priority,
            unit_ns: self.about.unit_ns,
        })
    }

    fn measure(&mut self, job: &Job, rules: Rules, mut source: Source) -> std::io::Result<bool> {
        let mut collector = Collector::new(rules);
        let older = match self.instrument.has_a_past() {
            true => source.skip_older(OLDER),
            false => Vec::new(),
        };
        let mut splitter = Splitter::default();
        let began = Instant::now();
        let (mut next_tick, mut stopping, mut farewell) = (job.tick_ns, None::<Instant>, false);
        let mut ended = None;
        let (end, over) = loop {
            let at = ns(began.elapsed());
            match self.orders.try_recv() {
                Ok(Input::Order(ToProbe::Stop)) if ended.is_none() => ended = Some(End::Stopped),
                Ok(Input::Order(ToProbe::Quit) | Input::Gone) => {
                    farewell = true;
                    ended = Some(End::Stopped);
                }
                _ => {}
            }
            if at >= job.duration_ns {
                ended = ended.or(Some(End::Complete));
            }
            if let (Some(end), None) = (ended, stopping) {
                // A histogram comes only when its instrument has been told to end.
                if !self.instrument.finish() {
                    break (end, false);
                }
                stopping = Some(Instant::now());
            }
            if let (Some(end), Some(since)) = (ended, stopping)
                && since.elapsed() > LAST_WORDS
            {
                break (end, false);
            }
            if at >= next_tick {
                self.report(&mut collector, at)?;
                next_tick = at - at % job.tick_ns + job.tick_ns;
            }
            let due = next_tick.min(job.duration_ns).saturating_sub(at);
            match source.next(Duration::from_nanos(due).min(POLL_INTERVAL)) {
                Ok(Some(bytes)) => {
                    let at = ns(began.elapsed());
                    for line in splitter.feed(&bytes) {
                        self.line(&mut collector, &line, at);
                    }
                }
                Ok(None) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    break (ended.unwrap_or(End::Complete), true);
                }
            }
        };
        let measured_ns = ns(began.elapsed()).min(job.duration_ns);
        self.report(&mut collector, measured_ns)?;
        let readings = Splitter::default().feed(&older);
        let readings = readings.iter().filter(|line| lines::read(self.about.format, line).is_some()).count();
        if readings > 0 {
            let when = OLDER.as_millis();
            let text = format!(
                "{readings} readings of the first {when} ms are left out: they were made before the \
                 measurement"
            );
            self.said.say(&FromProbe::Note(Note::info(text)))?;
        }
        for note in remarks(&collector, self.about.format, planned(job)) {
            self.said.say(&FromProbe::Note(note))?;
        }
        let seconds = Duration::from_nanos(measured_ns).as_secs_f64();
        let cut = over && ended.is_none() && !self.instrument.ended_well() && !collector.finished;
        let reason = if collector.is_empty() {
            let heard = self.heard();
            let doubled =
                if heard.lines().any(lines::is_doubled) { format!("; {DOUBLED}") } else { String::new() };
            let heard = if heard.is_empty() { "nothing at all".into() } else { heard };
            Some(format!("{} sent nothing readable; it sent: {heard}{doubled}", self.about.from))
        } else if cut {
            Some(format!("{} ended after {seconds:.1} s: {}", self.about.from, self.heard()))
        } else {
            None
        };
        if over && reason.is_none() && ended.is_none() {
            let text = format!("{} ended by itself after {seconds:.1} s", self.about.from);
            self.said.say(&FromProbe::Note(Note::info(text)))?;
        }
        let end = if reason.is_some() { End::Failed } else { end };
        self.said.say(&FromProbe::Done(Done {
            end,
            reason,
            measured_ns,
            load_rounds: Vec::new(),
            jump_ns: 0,
        }))?;
        if !over {
            self.source = Some(source);
        }
        Ok(!farewell)
    }

    fn line(&mut self, collector: &mut Collector, line: &str, at_ns: u64) {
        match lines::read(self.about.format, line) {
            // The rows of a histogram are too many to be last words.
            Some(Reading::Bucket(value, counts)) => collector.take(Reading::Bucket(value, counts), at_ns),
            reading => {
                let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
                if words.len() == KEPT {
                    words.remove(0);
                }
                words.push(line.trim_end().chars().take(200).collect());
                if let Some(reading) = reading {
                    collector.take(reading, at_ns);
                }
            }
        }
    }

    fn heard(&self) -> String {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        words.iter().filter(|line| !line.is_empty()).cloned().collect::<Vec<_>>().join("\n")
    }

    fn report(&mut self, collector: &mut Collector, at_ns: u64) -> std::io::Result<()> {
        let ticks = collector.tick(at_ns);
        if ticks.is_empty() {
            // This shows the reader that somebody listens. It is not a frame, and carries no data.
            return self.said.to.write_all(b"listening\n");
        }
        for (tick, outliers) in ticks {
            self.said.say(&FromProbe::Tick(tick))?;
            for outlier in outliers {
                self.said.say(&FromProbe::Outlier(outlier))?;
            }
        }
        Ok(())
    }
}

/// The interval of a job, in ns.
fn planned(job: &Job) -> u64 {
    match job.activities.first().map(|activity| &activity.what) {
        Some(What::Measure { interval_ns, .. }) => *interval_ns,
        _ => 0,
    }
}

/// Notes for the reader of such numbers.
fn remarks(collector: &Collector, format: Format, planned_ns: u64) -> Vec<Note> {
    let mut notes = Vec::new();
    if let Some(interval_ns) = collector.interval_ns.filter(|interval_ns| *interval_ns != planned_ns) {
        let text = format!(
            "it measured every {}, not every {} as in the plan",
            Nanos(interval_ns),
            Nanos(planned_ns)
        );
        notes.push(Note::obstacle(text, "give both the same interval"));
    }
    if !collector.is_empty() && !collector.has_distribution() {
        notes.push(Note::obstacle(
            "its status contains only minimum, mean and maximum: quantiles are unknown",
            "let cyclictest print a histogram at its end (`-h 400 -q`), or every value (`-v`)",
        ));
    }
    if collector.older && !collector.finished {
        notes.push(Note::obstacle(
            "it began before this scenario: its minimum, mean and maximum are of all that time",
            "start it with the scenario: `command`, with its `format`",
        ));
    }
    if format == Format::Cyclictest && !collector.is_empty() {
        notes.push(Note::info(
            "cyclictest numbers its threads without their CPUs: the n-th thread is shown as the n-th CPU of \
                the plan",
        ));
    }
    notes
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
