//! `tactus tune apply`, `verify` and `revert`.

use std::fmt::Write;

use tactus_audit::{Intent, Subject};
use tactus_system::Real;
use tactus_tune::apply::{self, Applied, ApplyOptions, TuneError};
use tactus_tune::plan::Plan;
use tactus_tune::revert::{self, Back};
use tactus_tune::transaction::{Begin, Damage, KEPT, Outcome, Phase, Recovered, Undone};
use tactus_tune::verify::{self, Difference};

use super::{choice, here, named as profile_named, part};
use crate::cli::{TuneApply, TuneRevert, TuneVerify};
use crate::commands::audit;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::say::say;

pub fn apply(arguments: &TuneApply) -> Result<Exit, Failure> {
    let begin = match (&arguments.profile, &arguments.isolate) {
        (Some(profile), Some(isolated)) => {
            let choice = choice(&arguments.choose);
            Begin {
                profile: profile.clone(),
                isolated: isolated.clone(),
                persist: arguments.persist,
                only: choice.only,
                without: choice.without,
                with: choice.with,
                plain: choice.plain,
                own_irq: choice.own_irq,
                move_irq: choice.move_irq,
                ..Begin::default()
            }
        }
        _ => {
            let begin = verify::in_force(&Real).map_err(failure)?;
            Begin { persist: begin.persist || arguments.persist, ..begin }
        }
    };
    if !arguments.dry_run {
        told(apply::settle(&Real).map_err(failure)?.as_ref());
    }
    let (_, _, plan) = planned(&begin, arguments.isolate.is_some())?;
    let order = ApplyOptions { begin, force: arguments.force, dry_run: arguments.dry_run };
    let applied = apply::apply(&Real, &plan, &order).map_err(failure)?;
    told(applied.recovered.as_ref());
    output::text(&sentences(&applied, arguments.dry_run))?;
    let good = applied.foreign.is_empty();
    Ok(if good { Exit::Good } else { Exit::Findings })
}

/// The plan of what was asked for, of this system as it is now. `named`: the user has just named the CPUs.
fn planned(begin: &Begin, named: bool) -> Result<(tactus_model::facts::Facts, Intent, Plan), Failure> {
    let profile = profile_named(&begin.profile)?;
    let facts = here()?;
    let intent = Intent { isolated: Some(begin.isolated.clone()), ..Intent::default() };
    let subject = Subject::new(&facts, part(&facts, profile), &intent);
    if named {
        audit::possible(&subject, |_| true)?;
    }
    let plan = Plan::new(&subject, profile, &begin.choice());
    Ok((facts, intent, plan))
}

fn sentences(applied: &Applied, dry: bool) -> String {
    let mut text = String::new();
    let refused = applied.steps.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Refused(_))).count();
    let through = if applied.tuned { " through TuneD" } else { "" };
    let _ = writeln!(
        text,
        "{} {}{through}",
        if dry { "would be done:" } else { "done:" },
        match (applied.steps.len(), refused) {
            (0, _) => "nothing, everything is as planned".to_owned(),
            (n, 0) => format!("{n} steps"),
            (n, refused) => format!("{} steps; the system refused {refused}", n - refused),
        }
    );
    for (step, outcome) in &applied.steps {
        match outcome {
            Outcome::Done if dry => drop(writeln!(text, "  {:<24} {}", step.check, step.action)),
            Outcome::Done => {}
            Outcome::Says(says) => {
                let _ =
                    writeln!(text, "  {:<24} {}: accepted, but it reads {says} now", step.check, step.action);
            }
            Outcome::Refused(failed) => {
                let _ = writeln!(text, "  {:<24} {}: refused: {}", step.check, failed.what, failed.word);
            }
        }
    }
    for (step, now) in &applied.foreign {
        let _ = writeln!(
            text,
            "left alone: {} is {now} now, which another tool has set since; --force overwrites it",
            step.action.subject()
        );
    }
    if !applied.waiting.is_empty() {
        let _ = writeln!(
            text,
            "{} changes wait for the next boot or start; --persist writes them, `tactus tune plan` lists them",
            applied.waiting.len()
        );
    }
    text
}

pub fn verify(arguments: &TuneVerify) -> Result<Exit, Failure> {
    let begin = verify::in_force(&Real).map_err(failure)?;
    let (facts, intent, plan) = planned(&begin, false)?;
    let subject = Subject::new(&facts, plan.role, &intent);
    let differences = verify::verify(&Real, &subject, &plan);
    if arguments.json {
        output::json(&differences)?;
    } else {
        output::text(&compared(&begin, &differences))?;
    }
    Ok(if differences.is_empty() { Exit::Good } else { Exit::Findings })
}

fn compared(begin: &Begin, differences: &[Difference]) -> String {
    let mut text = String::new();
    let what = format!("{} on CPUs {}", begin.profile, begin.isolated);
    if differences.is_empty() {
        let _ = writeln!(text, "{what}: everything is as planned");
        return text;
    }
    let _ = writeln!(text, "{what}: {} settings are not as planned", differences.len());
    for difference in differences {
        let now = difference.now.as_deref().unwrap_or("not set");
        let then = if difference.then.is_empty() { "set" } else { &difference.then };
        let _ = writeln!(text, "  {:<24} {}: {now}, not {then}", difference.check, difference.target);
        let _ = writeln!(text, "  {:<24} needs: {}", "", difference.needs);
    }
    text
}

pub fn revert(arguments: &TuneRevert) -> Result<Exit, Failure> {
    let back = Back { force: arguments.force, leave: arguments.leave, dry_run: arguments.dry_run };
    let reverted = revert::revert(&Real, back).map_err(failure)?;
    told(reverted.recovered.as_ref());
    let mut text = String::new();
    let count = |wanted: Undone| reverted.undone.iter().filter(|(_, undone)| *undone == wanted).count();
    let verb = if arguments.dry_run { "would be reverted" } else { "reverted" };
    let _ = writeln!(
        text,
        "{verb}: {} steps; {} had their former value already, {} no longer exist (a reboot, or a thread that \
            ended)",
        count(Undone::Restored),
        count(Undone::Held),
        count(Undone::Gone)
    );
    if arguments.dry_run {
        for (entry, undone) in &reverted.undone {
            if let (Undone::Restored, Some(former)) = (undone, entry.action.former()) {
                let _ =
                    writeln!(text, "  {}: {}", entry.action.subject(), former.trim().replace('\n', " | "));
            }
        }
    }
    text += &left(&reverted.left);
    output::text(&text)?;
    if let Some(damage) = &reverted.damage {
        incomplete(damage, arguments.dry_run);
    }
    let damaged =
        reverted.damage.is_some() || reverted.recovered.is_some_and(|recovered| recovered.damage.is_some());
    Ok(if reverted.left.is_empty() && !damaged { Exit::Good } else { Exit::Findings })
}

fn left(left: &[(tactus_tune::transaction::Entry, Undone)]) -> String {
    let mut text = String::new();
    for (entry, undone) in left {
        let subject = entry.action.subject();
        let _ = match undone {
            Undone::Foreign(now) => writeln!(
                text,
                "left alone: {subject} is {now} now, which another tool has set since; --force restores the \
                 former value, --leave keeps this one"
            ),
            Undone::Failed(failed) => {
                writeln!(text, "failed: {}: {}\n  hint: {}", failed.what, failed.word, failed.hint)
            }
            _ => writeln!(text, "waits: {subject}"),
        };
    }
    text
}

fn told(recovered: Option<&Recovered>) {
    let Some(recovered) = recovered else { return };
    let what = match recovered.phase {
        Phase::Reverting => "an earlier `tune revert` was interrupted, and has been completed",
        _ => "an earlier `tune apply` was interrupted, and has been reverted",
    };
    say(format_args!("note: {what} ({} steps)", recovered.undone.len()));
    for line in left(&recovered.left).lines() {
        say(line);
    }
    if let Some(damage) = &recovered.damage {
        incomplete(damage, false);
    }
}

/// Of a journal that can be read in part, only that part is taken back.
fn incomplete(damage: &Damage, dry: bool) {
    say(format_args!("note: {damage}"));
    if !dry {
        say(format_args!(
            "  hint: all readable steps were reverted; the file is kept as {}: look there for other \
             settings, or reboot, which reverts all but files",
            damage.path.with_file_name(KEPT).display()
        ));
    }
}

fn failure(error: TuneError) -> Failure {
    match error {
        TuneError::Refused(refusals) => {
            let first = refusals.first();
            let all: Vec<&str> = refusals.iter().map(|refusal| refusal.what.as_str()).collect();
            Failure::say(all.join("; "), first.map_or_else(String::new, |refusal| refusal.hint.clone()))
        }
        TuneError::Busy => {
            Failure::say("another `tactus tune` is running", "wait for its end, then repeat the command")
        }
        TuneError::NotRoot => {
            Failure::say("only root may tune a system", "use sudo; --dry-run needs no root")
        }
        TuneError::InForce(begin) => Failure::say(
            format!("{} on CPUs {} is applied", begin.profile, begin.isolated),
            "`tactus tune revert` reverts it; then apply the other",
        ),
        TuneError::Nothing => Failure::say(
            "nothing is applied: there is nothing to verify or revert",
            "`tactus tune plan` prints what a profile would change",
        ),
        TuneError::Broken(broken) => {
            let rest = if broken.left.is_empty() {
                "all steps have been reverted".to_owned()
            } else {
                format!("the steps have been reverted, except: {}", left(&broken.left).trim())
            };
            Failure::say(
                format!("{} ({}): {}; {rest}", broken.failed.what, broken.check, broken.failed.word),
                broken.failed.hint,
            )
        }
        TuneError::Damaged(damage) => {
            let hint = if damage.steps > 0 {
                "`tactus tune revert` reverts those steps, and `tactus tune revert --dry-run` lists them"
                    .to_owned()
            } else {
                format!(
                    "the file lists what was set: restore that by hand or by a reboot; then move {} away",
                    damage.path.display()
                )
            };
            Failure::say(damage.to_string(), hint)
        }
        TuneError::Journal(error) => {
            Failure::new(error, format!("the journal is in {}", apply::dir(&Real).display()))
        }
    }
}
