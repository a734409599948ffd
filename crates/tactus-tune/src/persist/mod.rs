//! Settings for the next boot, in files of our own that the distribution reads. Other files are not edited.

mod bootloader;
mod dropins;

use tactus_system::System;

use crate::plan::{Plan, PlanRefusal};
use crate::transaction::own_files::MARK;
use crate::transaction::{Action, Step};

pub(super) use dropins::systemd as unit_dropins;

/// The steps that keep a plan over the next boot.
///
/// # Errors
/// The obstacle: an unknown boot loader, or another program's file in the place of ours.
pub fn steps(system: &dyn System, plan: &Plan) -> Result<Vec<Step>, Vec<PlanRefusal>> {
    let mut steps = dropins::steps(plan);
    let mut refusals = Vec::new();
    match bootloader::steps(system, plan) {
        Ok(more) => steps.extend(more),
        Err(refusal) => refusals.extend(refusal),
    }
    for step in &mut steps {
        let Action::Install { path, former, .. } = &mut step.action else { continue };
        match system.text(path) {
            None => {}
            Some(text) if text.starts_with(MARK) => *former = Some(text),
            Some(_) => refusals.push(PlanRefusal {
                what: format!("{path} exists and was not written by tactus"),
                hint: "move it away, or put its settings elsewhere".into(),
            }),
        }
    }
    steps.retain(|step| match &step.action {
        Action::Install { former: Some(former), then, .. } => former != then,
        _ => true,
    });
    // Commands alone, around files that are as they should be, have nothing to do.
    if !steps.iter().any(|step| matches!(step.action, Action::Install { .. })) {
        steps.retain(|step| !matches!(&step.action, Action::Run { now, .. } if around(now.as_deref())));
        steps.retain(
            |step| !matches!(&step.action, Action::Run { now: None, back } if around(back.as_deref())),
        );
    }
    if refusals.is_empty() { Ok(steps) } else { Err(refusals) }
}

/// Whether a command only makes others read files of ours.
fn around(words: Option<&[String]>) -> bool {
    words.and_then(|words| words.first()).is_some_and(|program| program != "grubby")
}

/// A file of ours.
pub(super) fn install(check: &str, path: &str, lines: &[String]) -> Step {
    let then = format!("{MARK}\n{}\n", lines.join("\n"));
    Step { check: check.to_owned(), action: Action::Install { path: path.to_owned(), former: None, then } }
}

/// Files with a command that makes others read them: after they are written, and after they are
/// taken away.
pub(super) fn with_command(files: &[Step], words: &[&str]) -> Vec<Step> {
    let Some(first) = files.first() else { return Vec::new() };
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let check = first.check.clone();
    let run = |now, back| Step { check: check.clone(), action: Action::Run { now, back } };
    let mut steps = vec![run(None, Some(words.clone()))];
    steps.extend_from_slice(files);
    steps.push(run(Some(words), None));
    steps
}
