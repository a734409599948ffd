//! `tactus attach [BUNDLE]`: a run that goes on is followed, and its end is the end of this command.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tactus_bundle as bundle;
use tactus_report::render::text::{Style, render};
use tactus_system::{Directory, Real, Run, System, runs};

use super::follow::{Followed, follow};
use super::show;
use crate::cli::Attach;
use crate::exit::{Exit, Failure};
use crate::newest;
use crate::output;
use crate::say::{say, typed};

/// How long a run may take from its bundle's end to its own: its page is written meanwhile.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn attach(arguments: &Attach) -> Result<Exit, Failure> {
    let path = arguments.bundle.clone().map_or_else(newest_run, Ok)?;
    let dir = bundle::open(&path)?;
    match writer(&dir)? {
        None => say("note: no run writes this bundle any more"),
        Some(run) => {
            let followed = follow(&dir, arguments.plain, Some(&run));
            if followed.is_err() && run.ends_within(Duration::ZERO)? && !Real.exists(&path) {
                say(format_args!("{}: the run has ended, and kept no bundle", path.display()));
                return Ok(Exit::Unable);
            }
            if followed? == Followed::Left {
                say(format_args!("the run goes on; `tactus attach {}` follows it again", typed(&path)));
                // How it will end is not known: nobody may take this for its success.
                return Ok(Exit::Unable);
            }
            run.ends_within(PATIENCE)?;
        }
    }
    let contents = show::read(&dir, false)?;
    output::data(&render(&contents, Style { colour: output::colour(), width: output::width() }))?;
    if contents.manifest.finished.is_none() {
        return Err(died(&path));
    }
    Ok(Exit::of(&contents))
}

/// The run that writes this bundle.
pub fn writer(dir: &Directory) -> Result<Option<Run>, Failure> {
    Run::of(dir).map_err(|error| {
        Failure::say(
            format!("the run that writes {} cannot be found: {error}", dir.path().display()),
            "ask where it runs; `tactus show --follow BUNDLE` reads the bundle alone",
        )
    })
}

/// Whoever wrote this bundle died.
pub fn died(bundle: &Path) -> Failure {
    Failure::say(
        format!("{}: the run died; what it had measured is there", bundle.display()),
        format!("`tactus run --into {}` goes on with it", typed(bundle)),
    )
}

/// The bundle of this user's run that was begun last, which is said.
fn newest_run() -> Result<PathBuf, Failure> {
    let found = runs(&Real).into_iter().map(|(bundle, _)| (newest::session(&bundle, &Real), bundle)).max();
    let (_, found) = found.ok_or_else(none)?;
    say(format_args!("bundle: {}", found.display()));
    Ok(found)
}

/// There is no run to be followed or ended.
pub fn none() -> Failure {
    Failure::say(
        "no run of yours goes on on this machine",
        "name the bundle of another user's; `tactus run --detach` starts one, `tactus show` has what is over",
    )
}
