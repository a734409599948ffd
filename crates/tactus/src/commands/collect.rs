//! `tactus collect BUNDLE... --into DATA`.

use std::path::Path;

use tactus_data::DataError;
use tactus_data::collect::{Outcome, collect as into};

use crate::cli::Collect;
use crate::exit::{Exit, Failure};
use crate::say::say;

pub fn collect(arguments: &Collect) -> Result<Exit, Failure> {
    let mut tell = |path: &Path, outcome: &Outcome| match outcome {
        Outcome::Refused(reason) => say(format_args!("refused: {}: {reason}", path.display())),
        Outcome::GoneOnWith => say(format_args!("gone on with: {}", path.display())),
        Outcome::Taken | Outcome::There => {}
    };
    let summary = into(&arguments.bundles, &arguments.into, &mut tell)?;
    for remark in &summary.remarks {
        say(format_args!("note: {remark}"));
    }
    say(format_args!(
        "{}: {} runs collected, {} were there, {} bundles refused",
        arguments.into.display(),
        summary.taken,
        summary.there,
        summary.refused
    ));
    if summary.refused == 0 {
        return Ok(Exit::Good);
    }
    say("hint: copy what was refused again and collect it again: what is there is skipped");
    Ok(Exit::Findings)
}

impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        match error.hint() {
            Some(hint) => Self::new(error, hint),
            None => anyhow::Error::new(error).into(),
        }
    }
}
