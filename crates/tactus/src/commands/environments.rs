//! `tactus environments`.

use std::fmt::Write;

use serde::Serialize;
use tactus_environment::{ENVIRONMENTS, Usable};
use tactus_report::units::{clean, wrapped};
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

/// Columns before what is said of a kind.
const INDENT: usize = 23;

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
    let columns = output::width().saturating_sub(INDENT).max(40);
    for entry in &entries {
        let state = if entry.usable { "usable" } else { "not usable" };
        // A tool's own words may be several lines.
        let reason = clean(entry.reason.as_deref().unwrap_or_default());
        let mut begins = format!("{:<10} {state:<11} ", entry.kind);
        let hint = entry.remedy.as_ref().map(|remedy| format!("hint: {remedy}"));
        let lines = [Some(reason), hint].into_iter().flatten().flat_map(|part| wrapped(&part, columns));
        for line in lines {
            let _ = writeln!(text, "{}", format!("{begins}{line}").trim_end());
            begins = " ".repeat(INDENT);
        }
        // Leave out a kind without lines.
        if !begins.trim().is_empty() {
            let _ = writeln!(text, "{}", begins.trim_end());
        }
    }
    output::text(&text)?;
    Ok(Exit::Good)
}
