//! `tactus environments`.

use std::fmt::Write;

use serde::Serialize;
use tactus_environment::{ENVIRONMENTS, Usable};
use tactus_report::units::clean;
use tactus_system::Real;

use crate::cli::Environments;
use crate::exit::{Exit, Failure};
use crate::output;

/// An entry of `tactus environments --json`: a stable contract.
#[derive(Debug, Serialize)]
struct Entry {
    kind: &'static str,
    usable: bool,
    reason: Option<String>,
    remedy: Option<String>,
}

pub fn environments(arguments: &Environments) -> Result<Exit, Failure> {
    let entries: Vec<Entry> = ENVIRONMENTS
        .iter()
        .map(|environment| match environment.usable(&Real) {
            Usable::Yes { remark } => {
                Entry { kind: environment.kind(), usable: true, reason: remark, remedy: None }
            }
            Usable::No { reason, remedy } => {
                Entry { kind: environment.kind(), usable: false, reason: Some(reason), remedy: Some(remedy) }
            }
        })
        .collect();
    if arguments.json {
        output::json(&entries)?;
        return Ok(Exit::Good);
    }
    let mut text = String::new();
    for entry in &entries {
        let state = if entry.usable { "usable" } else { "not usable" };
        // A tool's own words may be several lines.
        let reason = clean(entry.reason.as_deref().unwrap_or_default());
        let _ = writeln!(text, "{}", format!("{:<10} {state:<11} {reason}", entry.kind).trim_end());
        if let Some(remedy) = &entry.remedy {
            let _ = writeln!(text, "{:<22} hint: {remedy}", "");
        }
    }
    output::text(&text)?;
    Ok(Exit::Good)
}
