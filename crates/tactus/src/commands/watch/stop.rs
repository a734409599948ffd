//! `tactus watch --stop [BUNDLE]`: ends a run in progress as the first Ctrl-C does, and says how it ended.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tactus_bundle::{self as bundle, Trust};
use tactus_model::bundle::Contents;
use tactus_model::event::{RowStatus, RunStatus};
use tactus_run::Interrupt;
use tactus_system::{Real, runs};

use super::{died, none, writer};
use crate::exit::{Exit, Failure};
use crate::say::{say, typed};

/// How often it is looked whether somebody waits no more.
const STEP: Duration = Duration::from_millis(200);

pub fn stop(bundle: Option<&Path>) -> Result<Exit, Failure> {
    let path = bundle.map(Path::to_owned).map_or_else(only_run, Ok)?;
    let dir = bundle::open(&path)?;
    let shown = path.display();
    let Some(run) = writer(&dir)? else {
        // The run has ended, as the user wanted: ending by itself meanwhile is not an error.
        if let Some(contents) =
            bundle::read_from(&dir, Trust::Whole).ok().filter(|read| read.manifest.finished.is_some())
        {
            say(format_args!("{shown}: it had already ended: {}", how(&contents)));
            return Ok(Exit::Good);
        }
        return Err(Failure::say(
            format!("{shown}: no run is writing this bundle"),
            format!("it died: `tactus report {}` shows what it measured", typed(&path)),
        ));
    };
    if !run.is_mine() {
        let (process, user) = (run.process(), run.user());
        return Err(Failure::say(
            format!("{shown}: the run (process {process}) belongs to user {user}"),
            format!(
                "ask user {user}, or end it as that user: `sudo -u '#{user}' tactus watch --stop {}`",
                typed(&path)
            ),
        ));
    }
    let interrupt = Interrupt::listen()?;
    run.ask_to_end()?;
    say(format_args!("asked process {} to end: waiting for its end", run.process()));
    while !run.ends_within(STEP)? {
        if interrupt.asked() {
            say("it ends by itself: you need not wait");
            return Ok(Exit::Unable);
        }
    }
    // A measurement without `--out` has removed its bundle.
    let Ok(contents) = bundle::read_from(&dir, Trust::Whole) else {
        say(format_args!("{shown}: the run has ended, and kept no bundle"));
        return Ok(Exit::Good);
    };
    if contents.manifest.finished.is_none() {
        return Err(died(&path));
    }
    say(format_args!("{shown}: {}", how(&contents)));
    Ok(Exit::Good)
}

/// How it ended, in words.
fn how(contents: &Contents) -> String {
    let rows = contents.rows.iter();
    let measured = rows.filter(|row| row.result.status == RowStatus::Measured).count();
    let of = contents.rows.len();
    match contents.manifest.status {
        RunStatus::Complete => {
            format!("the run was complete; {measured} of {of} scenarios are measured")
        }
        RunStatus::Interrupted => format!(
            "the run was interrupted; {measured} of {of} scenarios have figures; `tactus run --into` continues it"
        ),
    }
}

/// The bundle of this user's only run, which is said.
fn only_run() -> Result<PathBuf, Failure> {
    let mut found: Vec<PathBuf> = runs(&Real).into_iter().map(|(bundle, _)| bundle).collect();
    found.sort();
    match found.len() {
        0 => Err(none()),
        1 => {
            let found = found.remove(0);
            say(format_args!("bundle: {}", found.display()));
            Ok(found)
        }
        several => {
            let names: Vec<String> = found.iter().map(|path| path.display().to_string()).collect();
            Err(Failure::say(
                format!("you have {several} runs in progress: {}", names.join(", ")),
                "name the bundle of one: tactus watch --stop BUNDLE",
            ))
        }
    }
}
