//! `tactus show BUNDLE`.

use tactus_bundle::{self as bundle, Trust};
use tactus_model::bundle::Contents;
use tactus_report::document;
use tactus_report::render::text::{Style, render};
use tactus_system::{Directory, Run};

use super::follow::follow;
use crate::cli::Show;
use crate::exit::{Exit, Failure};
use crate::newest;
use crate::output;
use crate::say::say;

pub fn show(arguments: &Show) -> Result<Exit, Failure> {
    let dir = newest::bundle(arguments.bundle.as_deref())?;
    let opened = bundle::open(&dir)?;
    if arguments.follow {
        // Who writes it may not be found from here.
        let run = Run::of(&opened).ok().flatten();
        follow(&opened, arguments.plain, run.as_ref())?;
    }
    let mut contents = read(&opened, arguments.damaged)?;
    contents.raw = arguments.raw;
    if arguments.json {
        output::json(&document(&contents))?;
    } else {
        output::data(&render(&contents, Style { colour: output::colour(), width: output::width() }))?;
    }
    if opened.entry(bundle::LOG).is_ok() {
        say(format_args!("note: {} says what tactus did last", opened.path().join(bundle::LOG).display()));
    }
    Ok(Exit::Good)
}

/// Reads a bundle and says on stderr what is wrong with it.
pub fn read(dir: &Directory, damaged: bool) -> Result<Contents, Failure> {
    let trust = if damaged { Trust::Damaged } else { Trust::Whole };
    let contents = bundle::read_from(dir, trust)?;
    for sentence in &contents.damage {
        say(format_args!("warning: {sentence}"));
    }
    Ok(contents)
}
