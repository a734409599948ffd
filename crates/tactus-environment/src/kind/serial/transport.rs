//! A line that is open from the beginning: to a probe, or to an instrument that already writes.

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tactus_model::Evidence;
use tactus_model::facts::Facts;
use tactus_model::message::ToProbe;
use tactus_model::wire::Encoder;
use tactus_system::{Child, System, last_lines};

use super::local::{invocation, kill};
use super::source::{self, Source};
use super::translator::{About, Instrument, Words, translate};
use super::{Carries, Spec, Way};
use crate::support::{Tty, cannot};
use crate::{Running, Setting, StartError, Stream};

/// How long a probe that speaks by itself is listened to before it is greeted.
const LISTEN: Duration = Duration::from_millis(700);
/// How often a probe that may not have heard is greeted.
const GREET: Duration = Duration::from_secs(2);
/// How often something is said to the probe, which ends a job when it hears nothing for a minute.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
/// Most bytes that may come before a probe's first frame: all that a kernel says while it boots.
const MOST_BEFORE: usize = 8 << 20;
/// How a probe's first frame begins.
const FIRST: &[u8] = br#"{"q":0,"#;
/// The part of a line's speed that a probe may fill, in per cent: others write on it, too.
const SHARE: u64 = 80;
/// Bits on a line for one byte.
const BITS: u64 = 10;

/// A line and what is behind it. Dropping it closes the line.
struct Far {
    system: Arc<dyn System>,
    line: Option<Tty>,
    child: Option<Box<dyn Child>>,
    stream: Option<Stream>,
    imported: bool,
    budget: Option<u64>,
    words: Words,
    /// Ends the signs of life.
    _alive: Option<Sender<()>>,
}

/// Opens the line, and finds out what it carries where the plan does not say.
///
/// # Errors
/// When it cannot be opened, or nothing that can be read comes within the patience.
pub fn open(setting: &Setting<'_>, spec: &Spec) -> Result<Box<dyn Running>, StartError> {
    let mut far = Far {
        system: setting.system.share(),
        line: spec.open(setting)?,
        child: None,
        stream: None,
        imported: true,
        budget: None,
        words: Words::default(),
        _alive: None,
    };
    if let Way::Command(command) = &spec.way {
        let child = setting.system.spawn(&invocation(setting, command));
        far.child = Some(child.map_err(|error| cannot("the command does not start", error))?);
    }
    let Stream { reader, writer } =
        far.both_ways().ok_or_else(|| cannot("the line", "it has no two ends"))?;
    let mut source = Source::new(reader);
    let carries = match spec.carries {
        Carries::Unknown => told(&mut source, spec)?,
        carries => carries,
    };
    match carries {
        Carries::Lines(format) => {
            let about =
                About { format, from: spec.from(), unit_ns: spec.unit(format), cpus: spec.cpus.clone() };
            let instrument = Far::instrument(source, far.child.is_some());
            let stream = translate(about, Box::new(instrument), Arc::clone(&far.words));
            far.stream = Some(stream.map_err(|error| cannot("no pair of sockets", error))?);
            // A line that is only read stays open as long as its environment.
            drop(writer);
        }
        Carries::Frames | Carries::Unknown => far.greet(setting, spec, source, writer)?,
    }
    Ok(Box::new(far))
}

fn told(source: &mut Source, spec: &Spec) -> Result<Carries, StartError> {
    let patience = spec.patience();
    match source.tell(patience) {
        Ok(source::Carries::Frames) => Ok(Carries::Frames),
        Ok(source::Carries::Lines(format)) => Ok(Carries::Lines(format)),
        Err(heard) => {
            let heard = heard.trim();
            let heard = if heard.is_empty() { "nothing" } else { heard };
            Err(StartError {
                reason: format!("{}: no line shows its format; within {} s came: {heard}", spec.from(), patience.as_secs()),
                hint: Some(
                    "set its `format`: a probe that waits for a greeting (`probe`), a cyclictest that prints \
at its end; and check `baud`"
                        .into(),
                ),
            })
        }
    }
}

impl Far {
    fn both_ways(&mut self) -> Option<Stream> {
        match (&mut self.line, &mut self.child) {
            (Some(line), _) => line.take_stream(),
            (None, Some(child)) => Some(Stream { reader: child.take_stdout()?, writer: child.take_stdin()? }),
            (None, None) => None,
        }
    }

    fn instrument(source: Source, local: bool) -> Open {
        Open { source: Some(source), local }
    }

    /// Has the probe begin: one that waits is greeted until it answers. Bytes before its first frame are the console
    /// of another writer on the line.
    fn greet(
        &mut self,
        setting: &Setting<'_>,
        spec: &Spec,
        mut source: Source,
        mut writer: Box<dyn Write + Send>,
    ) -> Result<(), StartError> {
        let greeting = Encoder::new().encode(&ToProbe::Greet).map_err(|error| cannot("a greeting", error))?;
        let until = Instant::now() + spec.patience();
        let mut next = Instant::now() + LISTEN;
        let mut heard: Vec<u8> = Vec::new();
        // As far as it was looked at: the first frame may begin with its last bytes.
        let mut looked = 0_usize;
        let at = loop {
            if let Some(at) = heard[looked..].windows(FIRST.len()).position(|bytes| bytes == FIRST) {
                break looked + at;
            }
            looked = heard.len().saturating_sub(FIRST.len() - 1);
            let now = Instant::now();
            if heard.len() > MOST_BEFORE {
                let most = MOST_BEFORE >> 20;
                return Err(StartError {
                    reason: format!("{}: {most} MiB came, but no frame of a probe", spec.from()),
                    hint: Some("is a probe at this line, and is its `baud` right?".into()),
                });
            }
            if now > until {
                let said = last_lines(&String::from_utf8_lossy(&heard), 3);
                let said = if said.is_empty() { "nothing at all".to_owned() } else { said };
                return Err(StartError {
                    reason: format!(
                        "{}: no probe answers within {} s; received: {said}",
                        spec.from(),
                        spec.patience().as_secs()
                    ),
                    hint: Some(
                        "start `tactus-probe serve DEVICE BAUD` at the other end; `boot_timeout` waits longer"
                            .into(),
                    ),
                });
            }
            if now >= next {
                writer.write_all(&greeting).and_then(|()| writer.flush()).map_err(|error| {
                    let words = self.last_words().unwrap_or_default();
                    cannot(&spec.from(), format!("it cannot be written to: {error} {words}"))
                })?;
                next = now + GREET;
            }
            match source.next(next.min(until).saturating_duration_since(now) + Duration::from_millis(1)) {
                Ok(Some(bytes)) => heard.extend(bytes),
                Ok(None) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    let words = self.last_words().unwrap_or_default();
                    return Err(cannot(&spec.from(), format!("it ended before a probe answered: {words}")));
                }
            }
        };
        if at > 0 {
            // The console is a help, never a reason to fail.
            let _ = setting.console.append(&heard[..at]);
        }
        source.put_back(&heard[at..]);
        let writer = Shared(Arc::new(Mutex::new(writer)));
        let (alive, end) = channel::<()>();
        let mut sign = writer.clone();
        std::thread::spawn(move || {
            while end.recv_timeout(SIGN_OF_LIFE) == Err(RecvTimeoutError::Timeout) {
                // An empty line is no frame and says nothing.
                if sign.write_all(b"\n").and_then(|()| sign.flush()).is_err() {
                    return;
                }
            }
        });
        self.imported = false;
        self.budget = match spec.way {
            Way::Device { baud: Some(baud), .. } => Some(u64::from(baud) / BITS * SHARE / 100),
            _ => None,
        };
        self._alive = Some(alive);
        self.stream = Some(Stream { reader: Box::new(source), writer: Box::new(writer) });
        Ok(())
    }
}

/// A writer of two.
#[derive(Clone)]
struct Shared(Arc<Mutex<Box<dyn Write + Send>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // A frame that is written in one piece is not torn by a sign of life.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

/// An instrument whose line is open already.
struct Open {
    source: Option<Source>,
    local: bool,
}

impl Instrument for Open {
    fn begin(&mut self) -> Result<Source, String> {
        self.source.take().ok_or_else(|| "its line is closed".into())
    }

    fn finish(&mut self) -> bool {
        false
    }

    fn ended_well(&mut self) -> bool {
        self.local
    }
}

impl Running for Far {
    fn take_stream(&mut self) -> Option<Stream> {
        self.stream.take()
    }

    fn evidence(&self, facts: &Facts) -> Evidence {
        if self.imported { Evidence::Imported } else { facts.evidence() }
    }

    fn budget(&self) -> Option<u64> {
        self.budget
    }

    fn last_words(&mut self) -> Option<String> {
        let stderr = self.child.as_ref().map(|child| last_lines(&child.stderr(), 5)).unwrap_or_default();
        let lines = self.words.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
        let words: Vec<String> = [stderr, lines].into_iter().filter(|words| !words.is_empty()).collect();
        Some(if words.is_empty() { "the line ended without a message".into() } else { words.join("\n") })
    }

    fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            kill(&*self.system, &mut *child);
        }
        if let Some(line) = &mut self.line {
            line.close();
        }
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        self.stop();
    }
}
