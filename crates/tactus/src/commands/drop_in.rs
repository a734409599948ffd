//! A run under the name of another instrument: begun as that one begins, its bundle kept where that is asked for.

use std::io;
use std::path::{Path, PathBuf};

use tactus_format::export::{Logs, Source as Bundle, TakeInterval, TakeTick};
use tactus_model::bundle::Contents;
use tactus_model::event::{Event, RowStatus};
use tactus_model::outcome::Ending;
use tactus_model::plan::Plan;
use tactus_report::document;
use tactus_run::plan::{Choices, Resolved, Source};
use tactus_run::{Destination, Executed, Sink};

use super::execute::{prepare, run as execute, scratch_directory};
use super::lock::{Turn, lock};
use crate::cli::Lock;
use crate::exit::{Exit, Failure, is_measured};
use crate::output;
use crate::say::say;

/// The requested run.
pub struct Wanted<'a> {
    /// Named after the instrument.
    pub plan: Plan,
    /// Leave the system as it is.
    pub no_side_effects: bool,
    /// Where its bundle is kept; `None`: it is not kept.
    pub out: Option<&'a Path>,
}

/// A run that is possible here and starts now.
pub struct Ready<'a> {
    wanted: &'a Wanted<'a>,
    choices: Choices,
    turn: Turn,
    resolved: Resolved,
}

impl<'a> Ready<'a> {
    /// Prepares it.
    ///
    /// # Errors
    /// Where this machine cannot do it.
    pub fn of(wanted: &'a Wanted<'a>) -> Result<Self, Failure> {
        let choices = Choices { no_side_effects: wanted.no_side_effects, ..Choices::default() };
        // Of the other instruments several may run at once; but not without a word.
        let turn = lock(&Lock { beside: true, ..Lock::default() })?;
        let source = Source::new(format!("tactus {}", wanted.plan.name), "");
        let resolved = prepare(&wanted.plan, &source, &choices)?;
        if let Some(reason) = resolved.scenarios.first().and_then(|scenario| scenario.skip.clone()) {
            return Err(Failure::say(
                format!("nothing can be measured here: {reason}"),
                "`tactus environments` lists what is usable",
            ));
        }
        Ok(Self { wanted, choices, turn, resolved })
    }

    /// Measures; `view` follows.
    pub fn run(self, view: impl Sink + 'static) -> Result<Executed, Failure> {
        let scratch;
        let out: PathBuf = match self.wanted.out {
            Some(out) => out.to_owned(),
            None => {
                scratch = scratch_directory()?;
                scratch.path().join("bundle")
            }
        };
        let into = Destination::New(out.as_path().into(), &self.wanted.plan);
        let executed = execute(&self.turn, &self.resolved, &self.choices, into, view)?;
        if self.wanted.out.is_some() {
            say(format_args!("bundle: {}", executed.dir.path().display()));
        }
        Ok(executed)
    }
}

/// Says what could not be measured.
pub fn say_failure(event: &Event) {
    if let Event::RowFinished { ending: Ending { ended, reason: Some(reason) }, .. } = event
        && ended.status() != RowStatus::Measured
    {
        say(format_args!("error: {reason}"));
    }
}

/// How the program ends: good where every thread measured something, also where somebody interrupted it.
pub fn exit(run: Executed) -> Exit {
    let measured = if is_measured(&run.contents) { Exit::Good } else { Exit::Unable };
    measured.and(Exit::of_guardian(run.killed))
}

/// The words that it was called with.
pub fn words() -> impl Iterator<Item = String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned())
}

/// How it was called.
pub fn called() -> String {
    words().collect::<Vec<_>>().join(" ")
}

/// Writes a file that an option names.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let unwritten = |error| Failure::say(format!("{}: {error}", path.display()), "name a writable file");
    output::file_at(path, bytes, 0o644).map_err(unwritten)
}

/// Lets `print` say what was measured, as an export sees it.
pub fn exported<T>(contents: &Contents, print: impl FnOnce(&Bundle<'_>) -> T) -> T {
    let document = document(contents);
    let numbers: Vec<usize> = (0..contents.rows.len()).collect();
    print(&Bundle { contents, document: &document, numbers: &numbers, logs: &NoLogs })
}

/// The formats of these instruments have none.
struct NoLogs;

impl Logs for NoLogs {
    fn ticks(&self, _: usize, _: &mut TakeTick<'_>) -> io::Result<bool> {
        Ok(false)
    }

    fn intervals(&self, _: usize, _: &mut TakeInterval<'_>) -> io::Result<()> {
        Ok(())
    }
}
