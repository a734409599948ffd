//! The statistics of RTC-Testbench: the log of its reference, and its messages in JSON (MQTT, UDP). Its round trips are
//! read; the one-way times depend on two clocks.

use std::collections::BTreeMap;
use std::io::Read;

use serde::Deserialize;

use super::conditions::Conditions;
use super::recording::{Rows, Stated};
use super::text::{Lines, MOST_IDLE, short, too_idle};
use super::{ImportError, Recording, Values, runs};

/// The most traffic classes: there are nine, and a name can be chosen.
const MOST_CLASSES: usize = 64;

/// The totals of a traffic class. Times in us.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Totals {
    sent: u64,
    received: u64,
    /// Minimum and maximum of the round trips; `None` without any.
    bounds: Option<(u64, u64)>,
    mean: Option<f64>,
    outliers: Option<u64>,
    /// Frames out of order, of wrong contents, of a wrong id.
    errors: Option<u64>,
}

impl Totals {
    /// Whether these can be totals of the same run, taken later.
    fn follows(&self, before: &Self) -> bool {
        let bounds = match (before.bounds, self.bounds) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(before), Some(own)) => own.0 <= before.0 && own.1 >= before.1,
        };
        let same = before.received == self.received && before.bounds != self.bounds;
        bounds && !same && before.sent <= self.sent && before.received <= self.received
    }
}

/// Minimum and maximum. Before its first value the minimum is the largest number there is.
fn bounds(min: u64, max: u64) -> Result<Option<(u64, u64)>, String> {
    match (min, max) {
        (u64::MAX, 0) => Ok(None),
        (min, max) if min <= max => Ok(Some((min, max))),
        _ => Err(format!("the smallest round trip is {min} us, but the largest is {max} us")),
    }
}

/// Whether a line is one of its log.
pub(super) fn is_line(line: &str) -> bool {
    line.contains("]: [INFO]: ") && line.contains("RttMin=") && line.contains("Sent=")
}

/// Reads the log.
pub(super) fn log<R: Read>(lines: Lines<R>) -> Result<Vec<Recording>, ImportError> {
    runs::each(lines, one)
}

/// The time before a line, `[1779189233.471340708]: [INFO]: `, and what stands behind it.
fn stamped(line: &str) -> Option<(u64, &str)> {
    let (stamp, rest) = line.trim_start().strip_prefix('[')?.split_once("]: [")?;
    // The ns are filled with blanks.
    let (seconds, ns) = stamp.split_once('.')?;
    let (seconds, ns): (u64, u64) = (seconds.trim().parse().ok()?, ns.trim().parse().ok()?);
    let at_ns = seconds.checked_mul(1_000_000_000)?.checked_add(ns)?;
    Some((at_ns, rest.split_once("]: ")?.1))
}

/// The fields of a class that are read.
const FIELDS: [&str; 6] = ["Sent", "Received", "RttMin", "RttMax", "RttAvg", "RttOutliers"];

/// The classes of a line, in its order.
fn classes(text: &str) -> Option<Result<Vec<(String, Totals)>, String>> {
    let mut found: Vec<(String, BTreeMap<&str, &str>)> = Vec::new();
    for field in text.split('|').map(str::trim).filter(|field| !field.is_empty()) {
        let (key, value) = field.split_once('=')?;
        let value = value.trim_end_matches(" [us]");
        if let Some(name) = key.strip_suffix("Sent") {
            if found.len() == MOST_CLASSES {
                return Some(Err("more traffic classes than possible".into()));
            }
            found.push((name.to_owned(), BTreeMap::new()));
        }
        let (name, fields) = found.last_mut()?;
        let field = key.strip_prefix(name.as_str())?;
        if FIELDS.contains(&field) {
            fields.insert(field, value);
        }
    }
    let totals = |(name, fields): (String, BTreeMap<&str, &str>)| {
        let number = |field: &str| -> Option<u64> { fields.get(field)?.parse().ok() };
        let wrong = || format!("`{}` has no sound `Sent`, `Received`, `RttMin` and `RttMax`", short(&name));
        let (sent, received) = number("Sent").zip(number("Received")).ok_or_else(wrong)?;
        let (min, max) = number("RttMin").zip(number("RttMax")).ok_or_else(wrong)?;
        let mean = fields.get("RttAvg").and_then(|mean| mean.parse::<f64>().ok());
        let bounds = bounds(min, max)?;
        let outliers = number("RttOutliers");
        Ok((name, Totals { sent, received, bounds, mean, outliers, errors: None }))
    };
    Some(found.into_iter().map(totals).collect())
}

fn one<R: Read>(lines: &mut Lines<R>) -> Result<Vec<Recording>, ImportError> {
    let mut last: Vec<(String, Totals)> = Vec::new();
    let mut conditions = Conditions::default();
    let (mut span, mut idle): (Option<(u64, u64)>, u64) = (None, 0);
    while let Some(line) = lines.next()? {
        let damaged = || format!("cut or damaged: `{}`", short(line));
        if is_line(line) || line.contains("RttMin=") {
            let found = stamped(line).and_then(|(at_ns, text)| Some((at_ns, classes(text)?)));
            let (at_ns, found) = found.ok_or_else(damaged).map_err(|what| lines.error(what))?;
            let found = found.map_err(|what| lines.error(what))?;
            if found.is_empty() || found.len() > MOST_CLASSES {
                return Err(lines.error("no traffic class, or more than possible"));
            }
            // The statistics are set to zero by SIGUSR1: that begins a run, too.
            let same_classes =
                found.len() == last.len() && found.iter().zip(&last).all(|(own, before)| own.0 == before.0);
            let follows = same_classes
                && span.is_none_or(|(_, before)| before <= at_ns)
                && found.iter().zip(&last).all(|(own, before)| own.1.follows(&before.1));
            if !last.is_empty() && !follows {
                lines.again();
                break;
            }
            span = Some((span.map_or(at_ns, |(first, _)| first), at_ns));
            last = found;
            continue;
        }
        let errors = [": [ERROR]: ", ": [WARNING]: "].into_iter().find_map(|level| line.split_once(level));
        if let Some((_, said)) = errors {
            conditions.say(short(said));
        }
        idle += 1;
        if idle > MOST_IDLE {
            return Err(lines.error(too_idle()));
        }
    }
    let mut recording = recording(&last)?;
    // The time from its first line to its last. The first interval is unknown.
    recording.duration_ns = span.map(|(first, last)| last - first).filter(|ns| *ns > 0);
    conditions.tell(&mut recording);
    Ok(vec![recording])
}

/// The recording of such totals.
fn recording(classes: &[(String, Totals)]) -> Result<Recording, ImportError> {
    let mut recording = Recording::of("RTC-Testbench", Values::Wakeups);
    for (number, (name, totals)) in (0..).zip(classes) {
        let wrong = |what: String| ImportError::whole(format!("{}: {what}", short(name)));
        let us =
            |value: u64| value.checked_mul(1_000).ok_or_else(|| wrong(format!("{value} us is impossible")));
        let mut said = format!(
            "thread {number} is the traffic class `{}`: {} frames sent, {} received",
            short(name),
            totals.sent,
            totals.received
        );
        if let Some(outliers) = totals.outliers {
            said += &format!(", {outliers} round trips longer than two cycles");
        }
        if let Some(errors) = totals.errors {
            said += &format!(", {errors} frames out of order, damaged or of a wrong id");
        }
        recording.notes.push(said);
        let Some((min, max)) = totals.bounds else {
            recording.notes.push(format!("thread {number}: it has no round trip"));
            continue;
        };
        if totals.received == 0 {
            return Err(wrong("it has round trips, but no frame was received".into()));
        }
        let stated = Stated {
            cycles: Some(totals.received),
            min: Some(us(min)?),
            mean: totals.mean.filter(|mean| mean.is_finite()).map(|mean| mean * 1_000.0),
            max: Some(us(max)?),
            ..Stated::default()
        };
        recording.series.push(Rows::default().series(stated).map_err(wrong)?.at(number, None));
    }
    if recording.series.is_empty() {
        let what = "it has no round trip: only the reference of RTC-Testbench measures them, not its mirror";
        return Err(ImportError::whole(what).hint("import the log of the reference"));
    }
    recording.notes.push(
        "each value is a round trip of a frame, from the reference to the mirror and back; the mirror answers in its next \
cycle"
            .into(),
    );
    recording.notes.push("it has totals but no histogram: quantiles are unknown".into());
    Ok(recording)
}

/// A message.
#[derive(Deserialize)]
pub(super) struct Message {
    #[serde(rename = "Timestamp")]
    at_ns: Option<u64>,
    #[serde(rename = "MeasurementName")]
    name: String,
    stats: Stats,
}

#[derive(Deserialize)]
struct Stats {
    #[serde(rename = "TCName")]
    class: String,
    #[serde(rename = "FramesSent")]
    sent: u64,
    #[serde(rename = "FramesReceived")]
    received: u64,
    #[serde(rename = "RoundTripMin", alias = "RoundTripTimeMin", alias = "RoundTripTime")]
    min: u64,
    #[serde(rename = "RoundTripMax")]
    max: u64,
    #[serde(rename = "RoundTripAv")]
    mean: f64,
    #[serde(rename = "RoundTripOutliers")]
    outliers: Option<u64>,
    #[serde(rename = "OutofOrderErrors")]
    out_of_order: Option<u64>,
    #[serde(rename = "PayloadErrors")]
    payload: Option<u64>,
    #[serde(rename = "FrameIdErrors")]
    frame_id: Option<u64>,
}

impl Stats {
    fn totals(&self) -> Result<Totals, String> {
        let errors = [self.out_of_order, self.payload, self.frame_id];
        let known = errors.iter().any(Option::is_some);
        Ok(Totals {
            sent: self.sent,
            received: self.received,
            bounds: bounds(self.min, self.max)?,
            mean: Some(self.mean),
            outliers: self.outliers,
            errors: known.then(|| errors.into_iter().flatten().fold(0, u64::saturating_add)),
        })
    }
}

/// The messages of a class so far.
struct Class {
    /// The totals if each message has those since the beginning.
    last: Totals,
    /// Whether they can be that.
    grows: bool,
    /// The same if each message has those of its interval.
    all: Totals,
    /// The largest counts of a message.
    least: Totals,
    sum: f64,
}

impl Class {
    fn of(own: Totals) -> Self {
        Self { last: own, grows: true, all: own, least: own, sum: sum(&own) }
    }

    fn add(&mut self, own: Totals) {
        let more = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        self.grows &= own.follows(&self.last);
        self.sum += sum(&own);
        self.all.sent = self.all.sent.saturating_add(own.sent);
        self.all.received = self.all.received.saturating_add(own.received);
        self.all.outliers = more(self.all.outliers, own.outliers);
        self.all.errors = more(self.all.errors, own.errors);
        self.all.bounds = match (self.all.bounds, own.bounds) {
            (Some(before), Some(own)) => Some((before.0.min(own.0), before.1.max(own.1))),
            (before, own) => before.or(own),
        };
        self.least = Totals {
            sent: self.least.sent.max(own.sent),
            received: self.least.received.max(own.received),
            bounds: self.all.bounds,
            mean: None,
            outliers: self.least.outliers.max(own.outliers),
            errors: self.least.errors.max(own.errors),
        };
        self.last = own;
    }
}

/// The sum of the round trips.
fn sum(totals: &Totals) -> f64 {
    totals.mean.unwrap_or(0.0) * tactus_model::number::float(totals.received)
}

/// Messages in JSON. `by_interval`: each has the statistics of its interval. Otherwise those since the beginning, if they
/// grow.
pub(super) fn messages(messages: &[Message], by_interval: bool) -> Result<Vec<Recording>, ImportError> {
    let mut classes: Vec<((String, String), Class)> = Vec::new();
    let mut span: Option<(u64, u64)> = None;
    for (number, message) in messages.iter().enumerate() {
        let wrong = |what: String| ImportError::whole(format!("message {}: {what}", number + 1));
        let own = message.stats.totals().map_err(wrong)?;
        let key = (message.name.clone(), message.stats.class.clone());
        if let Some(at_ns) = message.at_ns.filter(|at_ns| *at_ns > 0) {
            span = Some(span.map_or((at_ns, at_ns), |(first, last)| (first.min(at_ns), last.max(at_ns))));
        }
        match classes.iter().position(|(known, _)| *known == key) {
            Some(at) => classes[at].1.add(own),
            None if classes.len() < MOST_CLASSES => classes.push((key, Class::of(own))),
            None => return Err(wrong("more traffic classes than possible".into())),
        }
    }
    let several = classes.iter().any(|((name, _), _)| *name != classes[0].0.0);
    let mut notes = Vec::new();
    let mut totals = |((name, class), found): &((String, String), Class)| {
        let name = if several { format!("{name} {class}") } else { class.clone() };
        let totals = match (by_interval, found.grows) {
            (false, true) => found.last,
            (true, _) => {
                let received = tactus_model::number::float(found.all.received.max(1));
                Totals { mean: Some(found.sum / received), ..found.all }
            }
            // Whether the counts add up is unknown: the least are taken.
            (false, false) => {
                notes.push(format!(
                    "{}: its messages do not say whether they count from the beginning or their interval \
                     alone: the counts shown are the smallest possible",
                    short(&name)
                ));
                found.least
            }
        };
        (name, totals)
    };
    let totals: Vec<(String, Totals)> = classes.iter().map(&mut totals).collect();
    let mut recording = recording(&totals)?;
    recording.duration_ns = span.map(|(first, last)| last - first).filter(|ns| *ns > 0);
    recording.notes.extend(notes);
    if let Some(message) = messages.first() {
        recording.conditions.push(format!("measurement {}", short(&message.name)));
    }
    Ok(vec![recording])
}
