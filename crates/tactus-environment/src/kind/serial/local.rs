//! A command of this machine whose stdout is the line.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tactus_format::lines::Format;
use tactus_model::Evidence;
use tactus_model::facts::Facts;
use tactus_system::{Child, Invocation, System, last_lines};

use super::source::Source;
use super::translator::{About, Instrument, Words, translate};
use super::{Spec, Way};
use crate::support::cannot;
use crate::{Running, Setting, StartError, Stream};

/// How long a command may take to its end after it was told.
const END: Duration = Duration::from_secs(2);

/// A command, once it has been started.
type Started = Arc<Mutex<Option<Box<dyn Child>>>>;

/// A command that will be started, or was.
struct Command {
    system: Arc<dyn System>,
    invocation: Invocation,
    child: Started,
    format: Format,
}

/// A command for a shell, with the mark of the run.
pub fn invocation(setting: &Setting<'_>, command: &str) -> Invocation {
    Invocation::new(["sh", "-c", command]).with_env(setting.guardian.marker())
}

/// Ends a command with all that it has started: it leads a process group.
pub fn signal(system: &dyn System, child: &dyn Child, name: &str) {
    let script = format!("kill -{name} -{}", child.pid());
    // It fails where everything has ended.
    let _ = system.run(&Invocation::new(["sh", "-c", &script]).within(END));
}

/// Kills a command with all that it has started.
pub fn kill(system: &dyn System, child: &mut dyn Child) {
    signal(system, child, "KILL");
    child.kill();
}

impl Instrument for Command {
    fn begin(&mut self) -> Result<Source, String> {
        let mut child = self.system.spawn(&self.invocation).map_err(|error| error.to_string())?;
        let stdout = child.take_stdout().ok_or("it has no stdout")?;
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        Ok(Source::new(stdout))
    }

    fn has_a_past(&self) -> bool {
        // A demonstration is never the command itself: that only follows a console.
        self.format == Format::Demo
    }

    fn finish(&mut self) -> bool {
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(child) = child.as_ref() {
            // As Ctrl-C: cyclictest then prints its histogram.
            signal(&*self.system, &**child, "INT");
        }
        child.is_some()
    }

    fn ended_well(&mut self) -> bool {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(child) = child.as_mut() else { return false };
        let until = std::time::Instant::now() + END;
        loop {
            match child.try_wait() {
                Ok(Some(code)) => return code == Some(0),
                Ok(None) if std::time::Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
                _ => return false,
            }
        }
    }
}

/// An instrument of this machine. Dropping it ends it.
struct Local {
    system: Arc<dyn System>,
    stream: Option<Stream>,
    child: Started,
    words: Words,
}

/// An instrument that begins with the measurement.
///
/// # Errors
/// When nothing can be prepared for it.
pub fn later(setting: &Setting<'_>, spec: &Spec, format: Format) -> Result<Box<dyn Running>, StartError> {
    let Way::Command(command) = &spec.way else { return Err(cannot("the line", "it is not a command")) };
    let child = Started::default();
    let instrument = Command {
        system: setting.system.share(),
        invocation: invocation(setting, command),
        child: Arc::clone(&child),
        format,
    };
    let words = Words::default();
    let about = About { format, from: spec.from(), unit_ns: spec.unit(format), cpus: spec.cpus.clone() };
    let stream = translate(about, Box::new(instrument), Arc::clone(&words))
        .map_err(|error| cannot("no pair of sockets", error))?;
    Ok(Box::new(Local { system: setting.system.share(), stream: Some(stream), child, words }))
}

impl Running for Local {
    fn take_stream(&mut self) -> Option<Stream> {
        self.stream.take()
    }

    fn evidence(&self, _facts: &Facts) -> Evidence {
        Evidence::Imported
    }

    fn last_words(&mut self) -> Option<String> {
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let stderr = child.as_ref().map(|child| last_lines(&child.stderr(), 5)).unwrap_or_default();
        let lines = self.words.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
        Some([stderr, lines].into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join("\n"))
    }

    fn stop(&mut self) {
        if let Some(mut child) = self.child.lock().unwrap_or_else(PoisonError::into_inner).take() {
            kill(&*self.system, &mut *child);
        }
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.stop();
    }
}
