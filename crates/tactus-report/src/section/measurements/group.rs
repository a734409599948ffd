//! The parts of a row that do not depend on what it yields.

use tactus_model::bundle::Contents;
use tactus_model::event::RowStatus;

use crate::part::{GridLine, Group, Tone};
use crate::row::{audit_anchor, conditions_by_id};
use crate::stats::Line;
use crate::units::{clean, count, duration, unbroken};

/// A row without numbers as yet.
pub fn group(contents: &Contents, line: &Line) -> Group {
    let measured = line.has_numbers();
    let conditions = conditions_by_id(contents, &line.place).filter(|_| measured);
    let lasted = (line.measured_ns > 0).then(|| format!(" · {}", unbroken(&lasted(line))));
    let instead = (!measured).then(|| {
        let (word, tone) = match line.status {
            RowStatus::Failed => ("failed", Tone::Bad),
            RowStatus::Skipped => ("skipped", Tone::Doubt),
            RowStatus::Measured => ("no numbers", Tone::Doubt),
        };
        (word, tone, clean(line.reason.as_deref().unwrap_or("no reason was recorded")))
    });
    Group {
        id: format!("row-{}", line.row),
        name: clean(&line.name),
        evidence: line.evidence,
        verdict: line.verdict.as_ref().map(|verdict| verdict.outcome),
        how: format!("{}{}", load(line), lasted.unwrap_or_default()),
        conditions: conditions.map(|sentence| (clean(&sentence), audit_anchor(&line.place))),
        values: Vec::new(),
        instead,
        lines: Vec::new(),
    }
}

/// `idle`, `scheduler load`, `load unknown`.
fn load(line: &Line) -> String {
    if line.load == "unknown" { "load unknown".into() } else { clean(&line.load) }
}

/// For how long it was measured: `10 s`, of several runs `5 runs of 10 s`.
fn lasted(line: &Line) -> String {
    let each = duration(line.measured_ns);
    let runs = line.repeated.iter().flat_map(|repeated| &repeated.runs).filter(|run| run.has_numbers);
    let lengths: Vec<String> = runs.map(|run| duration(run.measured_ns)).collect();
    match lengths.len() {
        0 | 1 => each,
        many if lengths.iter().all(|length| *length == each) => format!("{many} runs of {each}"),
        many => format!("{many} runs of {each} and more"),
    }
}

/// The lost frames of its environment.
pub fn frames_lost(line: &Line) -> Option<GridLine> {
    let lost = line.frames_lost;
    (lost > 0 && line.has_numbers()).then(|| {
        let frames = if lost == 1 { "1 frame was".into() } else { format!("{} frames were", count(lost)) };
        GridLine::sentence(format!("{frames} lost between {} and tactus", clean(&line.environment)))
    })
}
