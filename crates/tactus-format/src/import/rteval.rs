//! rteval's `summary.xml`: what its cyclictest, or its timerlat, measured on each CPU.

use std::io::Read;

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::recording::{Rows, Stated};
use super::text::{decimal, short};
use super::{ImportError, Recording, Values, json};
use crate::lines::MOST_THREADS;

/// Deepest nesting that is read.
const DEEPEST: usize = 64;

/// A CPU whose numbers are being read.
#[derive(Default)]
struct Core {
    cpu: u32,
    priority: Option<u32>,
    rows: Rows,
    stated: Stated,
}

/// Reads one.
pub(super) fn read(input: impl Read) -> Result<Vec<Recording>, ImportError> {
    let bytes = json::whole(input)?;
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        ImportError::byte(u64::try_from(error.valid_up_to()).unwrap_or(u64::MAX), "not UTF-8")
    })?;
    let mut reader = Reader::from_str(text);
    let mut path: Vec<String> = Vec::new();
    let mut recording: Option<Recording> = None;
    let mut command = None;
    let mut core: Option<Core> = None;
    let mut around = Around::default();
    loop {
        let before = reader.buffer_position();
        let wrong = |what: String| ImportError::byte(before, what);
        let event = reader.read_event();
        let event = event.map_err(|error| ImportError::byte(reader.error_position(), error.to_string()))?;
        match event {
            Event::Start(start) => {
                let name = String::from_utf8_lossy(start.local_name().as_ref()).into_owned();
                open(&name, &start, &mut recording, &mut command, &mut core).map_err(wrong)?;
                around.open(&name, &start).map_err(wrong)?;
                path.push(name);
                if path.len() > DEEPEST {
                    return Err(wrong(format!("elements are nested deeper than {DEEPEST}")));
                }
            }
            Event::Empty(start) => {
                let name = String::from_utf8_lossy(start.local_name().as_ref()).into_owned();
                open(&name, &start, &mut recording, &mut command, &mut core).map_err(wrong)?;
                around.open(&name, &start).map_err(wrong)?;
            }
            Event::Text(text) => {
                if let (Some(core), Some(name)) = (&mut core, path.last()) {
                    let text = text.decode().map_err(|error| wrong(error.to_string()))?;
                    figure(core, name, text.trim()).map_err(wrong)?;
                } else if let Some(name) = path.last() {
                    around.text(name, text.decode().map_err(|error| wrong(error.to_string()))?.trim());
                }
            }
            Event::End(_) => {
                if path.pop().as_deref() == Some("core")
                    && let (Some(done), Some(recording)) = (core.take(), &mut recording)
                {
                    let cpu = done.cpu;
                    if done.stated.cycles.is_none() {
                        recording.notes.push(format!(
                            "CPU {cpu}: rteval left its statistics out, as it does where values were beyond its \
histogram: those are not in the file, nor is their maximum"
                        ));
                    }
                    let series =
                        done.rows.series(done.stated).map_err(|what| wrong(format!("CPU {cpu}: {what}")))?;
                    let mut series = series.at(cpu, Some(cpu));
                    series.priority = done.priority;
                    if recording.series.iter().any(|one| one.cpu == series.cpu) {
                        return Err(wrong(format!("CPU {cpu} appears twice in it")));
                    }
                    recording.series.push(series);
                    if recording.series.len() > MOST_THREADS as usize {
                        return Err(wrong("it has more CPUs than possible".into()));
                    }
                }
            }
            Event::Eof if path.is_empty() => break,
            Event::Eof => return Err(wrong(format!("the file ends within <{}>", short(&path.join("/"))))),
            Event::DocType(_) => return Err(wrong("a DOCTYPE is not read".into())),
            _ => {}
        }
    }
    let mut recording = recording.ok_or_else(|| {
        ImportError::whole("it has no element <cyclictest> or <timerlat>")
            .hint("rteval measures with one of them: its other modules have no latencies")
    })?;
    match command {
        // `-p` of rtla is a period.
        Some(command) if command.starts_with("rtla") => recording.command = Some(command),
        Some(command) => recording.called(&command),
        None => {}
    }
    around.tell(&mut recording);
    recording.remark();
    Ok(vec![recording])
}

/// The facts about the run and its machine.
#[derive(Default)]
struct Around {
    duration_ns: Option<u64>,
    abort: Option<String>,
    measured_us: Option<u64>,
    node: Option<String>,
    kernel: Option<String>,
    conditions: Vec<String>,
}

impl Around {
    fn open(&mut self, name: &str, start: &BytesStart<'_>) -> Result<(), String> {
        let number = |name: &str| -> Result<Option<u64>, String> {
            Ok(attribute(start, name)?.and_then(|number| number.parse().ok()))
        };
        match name {
            "run_info" => {
                let mut seconds = Some(0_u64);
                for (part, most) in [("days", 1), ("hours", 24), ("minutes", 60), ("seconds", 60)] {
                    let own = number(part)?;
                    seconds =
                        seconds.zip(own).and_then(|(so_far, own)| so_far.checked_mul(most)?.checked_add(own));
                }
                self.duration_ns = seconds.and_then(|seconds| seconds.checked_mul(1_000_000_000));
            }
            "abort_report" => {
                let reason = attribute(start, "reason")?.unwrap_or_else(|| "no reason is given".into());
                self.abort.get_or_insert(format!("rteval stopped it: {}", short(&reason)));
            }
            "breaktrace" => {
                self.measured_us = number("measured_latency")?;
                let threshold = number("latency_threshold")?;
                let threshold = threshold.map_or_else(String::new, |us| format!(" above {us} us"));
                self.abort = Some(format!("rteval's breaktrace: a latency{threshold}"));
            }
            "loads" => {
                if let Some(load) = attribute(start, "load_average")? {
                    self.conditions.push(format!("load average {}", short(&load)));
                }
            }
            "kernel" => {
                if let Some(rt) = attribute(start, "is_RT")? {
                    self.conditions
                        .push(format!("kernel with PREEMPT_RT: {}", if rt == "1" { "yes" } else { "no" }));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn text(&mut self, name: &str, text: &str) {
        let place = match name {
            "node" => &mut self.node,
            "kernel" => &mut self.kernel,
            "date"
                if !text.is_empty()
                    && !self.conditions.iter().any(|said| said.starts_with("measured on ")) =>
            {
                return self.conditions.push(format!("measured on {}", short(text)));
            }
            _ => return,
        };
        if !text.is_empty() && place.is_none() {
            *place = Some(short(text));
        }
    }

    fn tell(self, recording: &mut Recording) {
        (recording.node, recording.kernel, recording.duration_ns) =
            (self.node, self.kernel, self.duration_ns);
        recording.conditions.extend(self.conditions);
        if let Some(said) = self.abort {
            let value_ns = self.measured_us.and_then(|us| us.checked_mul(1_000));
            let before = recording.series.iter().map(|series| series.totals.max_ns).max();
            recording.ended(None, value_ns, said);
            if value_ns > before {
                recording.notes.push(
                    "the file does not contain the CPU of the latency that ended it: it is counted with the \
CPU that had the largest"
                        .into(),
                );
            }
        }
    }
}

/// Handles the beginning of an element.
fn open(
    name: &str,
    start: &BytesStart<'_>,
    recording: &mut Option<Recording>,
    command: &mut Option<String>,
    core: &mut Option<Core>,
) -> Result<(), String> {
    match name {
        "cyclictest" | "timerlat" => {
            if recording.is_some() {
                return Err(format!("a second <{name}>"));
            }
            *recording = Some(Recording::of(format!("rteval ({name})"), Values::Wakeups));
            *command = attribute(start, "command_line")?;
        }
        "core" if recording.is_some() && core.is_none() => {
            let cpu = attribute(start, "id")?.and_then(|id| id.parse().ok());
            let cpu = cpu.filter(|cpu| *cpu < 4096).ok_or("<core> has no sound `id`")?;
            let priority = attribute(start, "priority")?.and_then(|priority| priority.parse().ok());
            *core =
                Some(Core { cpu, priority: priority.filter(|priority| *priority < 100), ..Core::default() });
        }
        "core" if core.is_some() => return Err("a <core> within a <core>".into()),
        "bucket" => {
            if let Some(core) = core {
                let number = |name: &str| -> Result<u64, String> {
                    let text = attribute(start, name)?.ok_or(format!("<bucket> has no `{name}`"))?;
                    text.parse().map_err(|_| format!("`{name}` of a <bucket> is `{}`", short(&text)))
                };
                let (index, count) = (number("index")?, number("value")?);
                let value_ns = index.checked_mul(1_000).ok_or("a bucket is longer than any measurement")?;
                core.rows.add(value_ns, count)?;
            }
        }
        "minimum" | "maximum" | "mean" if core.is_some() => {
            if let Some(unit) = attribute(start, "unit")?.filter(|unit| unit != "us") {
                return Err(format!("<{name}> is in `{}`, but should be in us", short(&unit)));
            }
        }
        _ => {}
    }
    Ok(())
}

/// The text of an element.
fn figure(core: &mut Core, name: &str, text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    let wrong = || format!("<{name}> is `{}`, which is impossible", short(text));
    let time = || decimal(text, 1_000).ok_or_else(wrong);
    let stated = &mut core.stated;
    match name {
        "samples" => stated.cycles = Some(text.parse().map_err(|_| wrong())?),
        "minimum" => stated.min = Some(time()?),
        "maximum" => stated.max = Some(time()?),
        "mean" => stated.mean = Some(tactus_model::number::float(time()?)),
        _ => {}
    }
    Ok(())
}

/// An attribute's text.
fn attribute(start: &BytesStart<'_>, name: &str) -> Result<Option<String>, String> {
    let found = start.try_get_attribute(name).map_err(|error| error.to_string())?;
    let text = |value: quick_xml::events::attributes::Attribute<'_>| {
        value.normalized_value(XmlVersion::Implicit1_0).map(std::borrow::Cow::into_owned)
    };
    found.map(text).transpose().map_err(|error| error.to_string())
}
