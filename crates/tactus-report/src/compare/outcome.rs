//! The comparison as a whole.

use tactus_model::Evidence;
use tactus_model::document::{
    BaselineEntry, COMPARE_FORMAT, CompareDocument, ComparedBundle, ComparedEntry, ConditionEntry, Judgement,
    QuantityEntry, UnmatchedEntry,
};
use tactus_statistics::{ERROR, LEAST_SITTINGS, TwoSamples};

use super::baseline::{LEAST_RUNS, baseline};
use super::changes::changes;
use super::condition::Condition;
use super::explore::explored;
use super::judge::{bare, judge};
use super::margins::Margins;
use super::matched::{Matched, matched};
use super::sampled::Sampled;
use super::sittings::By;
use crate::units::clean;

/// The options of a comparison.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// How much worse each quantity may be.
    pub margins: Margins,
    /// Whether the base is a baseline, which must pass a comparison with itself.
    pub gate: bool,
    /// Whether to search for any difference.
    pub explore: bool,
}

/// Compares each condition with the first one.
#[must_use]
pub fn compare(conditions: &[Condition], options: &Options) -> CompareDocument {
    let test = TwoSamples::default();
    let Some((base, others)) = conditions.split_first() else { return empty() };
    let (mut all, mut unmatched) = (Vec::new(), Vec::new());
    for other in others {
        let (both, alone) = matched(base, other, &options.margins);
        all.extend(both);
        unmatched.extend(alone);
    }
    let scenarios = judged(&all, &test);
    let baseline = options.gate.then(|| baseline(base, &options.margins)).flatten();
    let gated = scenarios.iter().flat_map(|one| &one.quantities).filter(|one| one.p.is_some()).count();
    let (outcome, mut reason) = together(base, &scenarios, &unmatched, baseline.as_ref());
    if scenarios.iter().any(is_judged_emulated) {
        reason += " (under emulation)";
    }
    CompareDocument {
        format: COMPARE_FORMAT,
        outcome,
        reason,
        error: ERROR,
        gated,
        conditions: conditions.iter().map(condition).collect(),
        changes: others.iter().flat_map(|other| changes(base, other)).collect(),
        limits: limits(&scenarios, all.iter().filter_map(|one| one.cut_to).min(), conditions),
        scenarios,
        unmatched,
        baseline,
        explored: if options.explore { explored(&all, &test) } else { Vec::new() },
    }
}

/// A condition against itself: whether it may be a baseline. `Regression`: it may not.
#[must_use]
pub fn against_itself(of: &Condition, margins: &Margins) -> CompareDocument {
    let name = clean(&of.name);
    let own = baseline(of, margins);
    let (outcome, reason) = match &own {
        None => {
            let said = format!(
                "{name} has too few runs that may be judged: halves need {LEAST_SITTINGS} sittings of 5 runs or more, or \
                 {LEAST_RUNS} runs"
            );
            (Judgement::Inconclusive, said)
        }
        Some(BaselineEntry { refused: Some(why), .. }) => {
            (Judgement::Regression, format!("{name} is not a baseline: {why}"))
        }
        Some(BaselineEntry { tells: false, .. }) => {
            (Judgement::Inconclusive, "halves of so few runs cannot show a regression".into())
        }
        Some(of) if of.false_alarms.is_none() && of.of == By::Runs.word() => (
            Judgement::Inconclusive,
            format!(
                "{name} is one sitting: its halves do not differ, but sittings may; a gate decides against {} or more",
                LEAST_SITTINGS - 1
            ),
        ),
        Some(_) => (Judgement::Pass, format!("{name} is stable: its halves do not differ")),
    };
    CompareDocument { outcome, reason, conditions: vec![condition(of)], baseline: own, ..empty() }
}

fn empty() -> CompareDocument {
    CompareDocument {
        format: COMPARE_FORMAT,
        outcome: Judgement::Inconclusive,
        reason: "there is nothing to compare".into(),
        error: ERROR,
        gated: 0,
        conditions: Vec::new(),
        changes: Vec::new(),
        scenarios: Vec::new(),
        unmatched: Vec::new(),
        baseline: None,
        explored: Vec::new(),
        limits: Vec::new(),
    }
}

/// All scenarios that may be judged, as one family; of the others the figures.
fn judged(all: &[Matched], test: &TwoSamples) -> Vec<ComparedEntry> {
    let family: Vec<&Sampled> =
        all.iter().filter(|one| one.refused.is_none()).flat_map(|one| &one.sampled).collect();
    let mut found = judge(&family, test).into_iter();
    let entry = |one: &Matched| {
        let mut quantities = |of: &Sampled| match &one.refused {
            None => found.next().unwrap_or_else(|| bare(of)),
            Some(refusal) => QuantityEntry { reason: refusal.to_string(), ..bare(of) },
        };
        ComparedEntry { quantities: one.sampled.iter().map(&mut quantities).collect(), ..one.entry() }
    };
    all.iter().map(entry).collect()
}

fn condition(of: &Condition) -> ConditionEntry {
    let bundle = |contents: &tactus_model::bundle::Contents| ComparedBundle {
        plan: contents.manifest.plan.clone(),
        started: contents.manifest.started.clone(),
        machine: contents.manifest.machine.name.clone(),
        tactus: contents.manifest.tactus.clone(),
    };
    ConditionEntry { name: of.name.clone(), bundles: of.bundles().iter().map(bundle).collect() }
}

/// The outcome of the whole. A regression is one even if other results are unknown; with an unknown part the
/// whole never passes.
fn together(
    base: &Condition,
    scenarios: &[ComparedEntry],
    unmatched: &[UnmatchedEntry],
    baseline: Option<&BaselineEntry>,
) -> (Judgement, String) {
    let quantities = || scenarios.iter().flat_map(|one| one.quantities.iter().map(move |of| (one, of)));
    let of = |outcome: Judgement| quantities().filter(move |(_, of)| of.outcome == Some(outcome));
    let named =
        |(one, of): (&ComparedEntry, &QuantityEntry)| format!("{} of {}", of.quantity, clean(&one.name));
    let some = |outcome: Judgement| listed(&of(outcome).map(named).collect::<Vec<_>>());
    if let Some(why) = baseline.and_then(|own| own.refused.as_ref()) {
        return (Judgement::Inconclusive, format!("{} is not a baseline: {why}", clean(&base.name)));
    }
    if of(Judgement::Regression).next().is_some() {
        return (
            Judgement::Regression,
            format!("worse by more than the margin: {}", some(Judgement::Regression)),
        );
    }
    let missing = unmatched.iter().find(|one| one.only_in == base.name);
    if let Some(one) = missing {
        let said = format!("`{}` of {} was not measured in {}", one.name, one.only_in, one.not_in);
        return (Judgement::Inconclusive, clean(&said));
    }
    let refused: Vec<_> = scenarios.iter().filter_map(|one| Some((one, one.refused.as_ref()?))).collect();
    if let Some((one, refusal)) = refused.first() {
        let (name, reason) = (clean(&one.name), &refusal.reason);
        let said = match (refused.len(), scenarios.len()) {
            (1, _) => format!("{name} is not judged: {reason}"),
            (many, all) => format!("{many} of {all} scenarios are not judged; {name}: {reason}"),
        };
        return (Judgement::Inconclusive, said);
    }
    if let Some(said) = between_two_sittings(scenarios) {
        return (Judgement::Inconclusive, said);
    }
    if of(Judgement::Inconclusive).next().is_some() {
        let open = some(Judgement::Inconclusive);
        return (Judgement::Inconclusive, format!("these runs do not show whether {open} got worse"));
    }
    if let Some((one, open)) = quantities().find(|(_, of)| of.outcome.is_none() && !of.left_out) {
        return (Judgement::Inconclusive, format!("{}: {}", named((one, open)), open.reason));
    }
    match of(Judgement::Pass).count() {
        0 => (Judgement::Inconclusive, "nothing in them can be compared".into()),
        1 => (Judgement::Pass, "the one quantity is not worse than its margin allows".into()),
        many => (Judgement::Pass, format!("all {many} quantities are not worse than their margins allow")),
    }
}

/// What one sitting each shows; `None`: several are judged.
fn between_two_sittings(scenarios: &[ComparedEntry]) -> Option<String> {
    let all = || scenarios.iter().flat_map(|one| one.quantities.iter().map(move |of| (one, of)));
    let of = |judged: Judgement| {
        let own = all().filter(move |(_, of)| of.between_sittings == Some(judged));
        own.map(|(one, of)| format!("{} of {}", of.quantity, clean(&one.name))).collect::<Vec<_>>()
    };
    let (worse, open, same) =
        (of(Judgement::Regression), of(Judgement::Inconclusive), of(Judgement::Pass).len());
    let said = match (worse.is_empty(), open.is_empty(), same) {
        (true, true, 0) => return None,
        (false, _, _) => format!("{} became worse by more than the margin", listed(&worse)),
        (true, false, _) => format!("it is not shown whether {} became worse", listed(&open)),
        (true, true, _) => "no quantity is worse than its margin allows".to_owned(),
    };
    Some(format!(
        "between these two sittings {said}; other sittings may differ: {LEAST_SITTINGS} in all decide, such as {} of each \
         (`tactus run --repeat 8` on other days)",
        LEAST_SITTINGS / 2
    ))
}

/// The first three, and how many more.
fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(3);
    let first = names[..names.len() - more].join(", ");
    if more > 0 { format!("{first} and {more} more") } else { first }
}

/// Whether a scenario is judged that was emulated.
fn is_judged_emulated(one: &ComparedEntry) -> bool {
    one.evidence == Some(Evidence::Emulated) && one.quantities.iter().any(|of| of.outcome.is_some())
}

/// That all sittings of a condition began on one day, so that they do not show how much days differ.
fn of_one_day(of: &Condition) -> Option<String> {
    let day = |started: &str| started.get(..10).map(str::to_owned);
    let (first, others) = of.bundles().split_first().filter(|(_, others)| !others.is_empty())?;
    let date = day(&first.manifest.started)?;
    let same = others.iter().all(|other| day(&other.manifest.started).as_ref() == Some(&date));
    same.then(|| {
        let (many, name) = (others.len() + 1, clean(&of.name));
        format!(
            "All {many} sittings of {name} are of one day ({}): differences between days are not in them.",
            clean(&date)
        )
    })
}

/// The limits of any such comparison.
fn limits(scenarios: &[ComparedEntry], cut_to: Option<usize>, conditions: &[Condition]) -> Vec<String> {
    let mut limits = vec![
        "The bundles were not measured in turn: a difference may come from the time of measuring. Only \
         an A/B test in one session proves a cause: both as scenarios of one plan with `repeat` \
         and `[[compare]]`, or `tactus prove`."
            .to_owned(),
    ];
    limits.extend(conditions.iter().filter_map(of_one_day));
    if let Some(runs) = cut_to {
        let runs = if runs == 1 { "1 run".into() } else { format!("{runs} runs") };
        limits
            .push(format!("The sittings have unequal numbers of runs: of each the first {runs} are judged."));
    }
    if scenarios.iter().any(|one| one.evidence == Some(Evidence::VirtualHost)) {
        limits.push("Measured inside a VM: the result holds only inside this virtual machine.".into());
    }
    if scenarios.iter().any(is_judged_emulated) {
        limits.push(
            "Measured under emulation (--judge-emulated): the result holds for code that this emulator \
             runs, and says nothing about hardware."
                .into(),
        );
    }
    limits
}
