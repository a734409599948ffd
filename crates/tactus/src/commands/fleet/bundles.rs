//! `tactus fleet collect BUNDLE... --into DATA`.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tactus_data::DataError;
use tactus_data::collect::{Outcome, collect as into};

use crate::cli::FleetCollect;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::say::say;

/// The results of all bundles, for programs.
#[derive(Serialize)]
struct Collected<'a> {
    bundles: Vec<Became>,
    taken: usize,
    there: usize,
    refused: usize,
    remarks: &'a [String],
}

/// The result of one bundle.
#[derive(Serialize)]
struct Became {
    bundle: PathBuf,
    /// `taken`, `gone-on-with`, `there`, `refused`.
    outcome: &'static str,
    /// Why it was refused.
    reason: Option<String>,
}

impl Became {
    fn of(path: &Path, outcome: &Outcome) -> Self {
        let (outcome, reason) = match outcome {
            Outcome::Taken => ("taken", None),
            Outcome::GoneOnWith => ("gone-on-with", None),
            Outcome::There => ("there", None),
            Outcome::Refused(reason) => ("refused", Some(reason.clone())),
        };
        Self { bundle: path.to_owned(), outcome, reason }
    }
}

pub fn collect(arguments: &FleetCollect, data: &Path) -> Result<Exit, Failure> {
    let mut bundles = Vec::new();
    let mut tell = |path: &Path, outcome: &Outcome| {
        match outcome {
            Outcome::Refused(reason) => say(format_args!("refused: {}: {reason}", path.display())),
            Outcome::GoneOnWith => say(format_args!("continued: {}", path.display())),
            Outcome::Taken | Outcome::There => {}
        }
        bundles.push(Became::of(path, outcome));
    };
    let summary = into(&arguments.from, data, &mut tell)?;
    for remark in &summary.remarks {
        say(format_args!("note: {remark}"));
    }
    say(format_args!(
        "{}: {} runs collected, {} already present, {} bundles refused",
        data.display(),
        summary.taken,
        summary.there,
        summary.refused
    ));
    if arguments.json {
        let tactus_data::collect::Summary { taken, there, refused, ref remarks } = summary;
        output::json(&Collected { bundles, taken, there, refused, remarks })?;
    }
    if summary.refused == 0 {
        return Ok(Exit::Good);
    }
    say("hint: copy the refused bundles again, and collect again: runs that are already present are skipped");
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
