//! `tactus watch`: follows a run in progress and ends as the run ends; ends a run (`--stop`); shows bundles in a browser
//! (`--serve`).

mod follow;
mod serve;
mod stop;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tactus_bundle as bundle;
use tactus_report::render::text::{Style, screen};
use tactus_system::{Directory, Real, Run, System, runs};

use self::follow::{Followed, follow};
use super::report::read;
use crate::cli::Watch;
use crate::exit::{Exit, Failure};
use crate::newest;
use crate::output;
use crate::say::{say, typed};

/// How long a run may take from the beginning of its bundle until it is listed.
const LISTING: Duration = Duration::from_secs(2);
/// How long a run may take from its bundle's end to its own: its page is written meanwhile.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn watch(arguments: &Watch) -> Result<Exit, Failure> {
    match () {
        () if arguments.stop => stop::stop(arguments.place.as_deref()),
        () if arguments.serve => serve::serve(arguments),
        () => attach(arguments),
    }
}

/// Follows a run.
fn attach(arguments: &Watch) -> Result<Exit, Failure> {
    let path = arguments.place.clone().map_or_else(newest_run, Ok)?;
    let dir = bundle::open(&path)?;
    match writer(&dir)? {
        None => say("note: no run is writing this bundle any more"),
        Some(run) => {
            let followed = follow(&dir, arguments.plain, Some(&run));
            if followed.is_err() && run.ends_within(Duration::ZERO)? && !Real.exists(&path) {
                say(format_args!("{}: the run has ended, and kept no bundle", path.display()));
                return Ok(Exit::Unable);
            }
            if followed? == Followed::Left {
                say(format_args!("the run continues; `tactus watch {}` follows it again", typed(&path)));
                // How the run will end is unknown: a script must not take this for success.
                return Ok(Exit::Unable);
            }
            run.ends_within(PATIENCE)?;
        }
    }
    let contents = read(&dir, false)?;
    let full = format!("tactus report {}", typed(&path));
    output::data(&screen(&contents, Style { colour: output::colour(), width: output::width() }, &full))?;
    if contents.manifest.finished.is_none() {
        return Err(died(&path));
    }
    Ok(Exit::of(&contents))
}

/// The run that writes this bundle. A run that begins has a bundle a moment before it is listed: an unfinished bundle without
/// a run is looked at again for [`LISTING`].
pub fn writer(dir: &Directory) -> Result<Option<Run>, Failure> {
    let until = Instant::now() + LISTING;
    loop {
        let found = Run::of(dir).map_err(|error| {
            Failure::say(
                format!("the run that writes {} cannot be found: {error}", dir.path().display()),
                "use the machine on which it runs",
            )
        })?;
        let is_unfinished = || bundle::manifest(dir).is_ok_and(|manifest| manifest.finished.is_none());
        if found.is_some() || Instant::now() >= until || !is_unfinished() {
            return Ok(found);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The run that wrote this bundle died.
pub fn died(bundle: &Path) -> Failure {
    Failure::say(
        format!("{}: the run died; its data so far is kept", bundle.display()),
        format!("`tactus run --into {}` continues it", typed(bundle)),
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
        "you have no run in progress on this machine",
        "`tactus run --detach` starts one; `tactus report` shows one that has ended; name the bundle to \
            watch another user's run",
    )
}
