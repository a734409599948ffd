//! `tactus show BUNDLE`.

use tactus_bundle::{self as bundle, Trust};
use tactus_model::bundle::Contents;
use tactus_report::document;
use tactus_report::render::text::{Style, render};
use tactus_system::Directory;

use crate::cli::Show;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::say::say;

pub fn show(arguments: &Show) -> Result<Exit, Failure> {
    if arguments.follow {
        super::follow::follow(&arguments.bundle, arguments.plain)?;
    }
    let contents = read(&bundle::open(&arguments.bundle)?, arguments.damaged)?;
    if arguments.json {
        output::json(&document(&contents))?;
    } else {
        output::data(&render(&contents, Style { colour: output::colour(), width: output::width() }))?;
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
