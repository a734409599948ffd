//! Matches the runs that belong together, and decides whether they may be judged.

use std::collections::BTreeMap;

use tactus_model::document::{ComparedEntry, RefusalEntry, UnmatchedEntry};

use super::condition::{Condition, Key, Run, is_skipped};
use super::margins::Margins;
use super::refusal::{Refusal, unfit, unlike};
use super::sampled::{Sampled, sampled};
use super::sittings::{By, cut_to, sittings};

/// A scenario in two conditions.
pub struct Matched<'a> {
    /// The scenario.
    pub key: Key,
    /// The other condition.
    pub with: &'a str,
    /// Its runs in the base.
    pub base: Vec<Run<'a>>,
    /// Its runs in the other.
    pub now: Vec<Run<'a>>,
    /// Why they are not judged.
    pub refused: Option<Refusal>,
    /// How many runs of each sitting count, where some have more.
    pub cut_to: Option<usize>,
    /// Its quantities.
    pub sampled: Vec<Sampled>,
}

/// The scenarios that both conditions have, and those that one of them lacks. Where neither machine could measure one, it
/// is in neither.
pub fn matched<'a>(
    base: &'a Condition,
    now: &'a Condition,
    margins: &Margins,
) -> (Vec<Matched<'a>>, Vec<UnmatchedEntry>) {
    let measured = |condition: &'a Condition| {
        let all = condition.scenarios().into_iter();
        all.filter(|(_, runs)| !is_skipped(runs)).collect::<Vec<_>>()
    };
    let ours = measured(base);
    let mut theirs: Vec<Option<(Key, Vec<Run>)>> = measured(now).into_iter().map(Some).collect();
    let places: BTreeMap<Key, usize> = theirs.iter().flatten().map(|(key, _)| key.clone()).zip(0..).collect();
    let (mut both, mut alone) = (Vec::new(), Vec::new());
    for (key, runs) in ours {
        match places.get(&key).and_then(|place| theirs[*place].take()) {
            Some((_, now_runs)) => {
                let refused = refusal((&base.name, &runs), (&now.name, &now_runs));
                let sampled = sampled(&runs, &now_runs, margins);
                let cut_to = cut_to(&runs, &now_runs);
                both.push(Matched {
                    key,
                    with: &now.name,
                    base: runs,
                    now: now_runs,
                    refused,
                    cut_to,
                    sampled,
                });
            }
            None => alone.push(unmatched(&key, base, now)),
        }
    }
    alone.extend(theirs.iter().flatten().map(|(key, _)| unmatched(key, now, base)));
    (both, alone)
}

fn unmatched(key: &Key, has: &Condition, lacks: &Condition) -> UnmatchedEntry {
    UnmatchedEntry {
        name: key.name.clone(),
        environment: key.environment.clone(),
        measurement: key.measurement.to_owned(),
        only_in: has.name.clone(),
        not_in: lacks.name.clone(),
    }
}

/// Why runs are not judged: the first reason of any.
fn refusal(base: (&str, &[Run]), now: (&str, &[Run])) -> Option<Refusal> {
    let within = |(name, runs): (&str, &[Run])| {
        let first = *runs.first()?;
        let (what, base, now) = runs.iter().find_map(|run| unlike(first, *run))?;
        Some(Refusal::Differs { what, base, now, within: Some(name.to_owned()) })
    };
    let between = || {
        let (what, base, now) = unlike(*base.1.first()?, *now.1.first()?)?;
        Some(Refusal::Differs { what, base, now, within: None })
    };
    let unfit = |(name, runs): (&str, &[Run])| runs.iter().find_map(|run| unfit(name, *run));
    let by = By::of(base.1, now.1);
    let counts = [base.1, now.1].map(|runs| if by == By::Runs { runs.len() } else { sittings(runs) });
    let unmeasured = |refusal: &Refusal| matches!(refusal, Refusal::Unmeasured { .. });
    // Runs of something that was never measured also differ in everything else.
    let first = unfit(base).filter(unmeasured).or_else(|| unfit(now).filter(unmeasured));
    first
        .or_else(|| within(base))
        .or_else(|| within(now))
        .or_else(between)
        .or_else(|| unfit(base))
        .or_else(|| unfit(now))
        .or_else(|| (!by.are_enough(counts)).then_some(Refusal::TooFew { by, counts }))
}

impl Matched<'_> {
    /// As the document has it, without its quantities.
    pub fn entry(&self) -> ComparedEntry {
        let reason =
            |refusal: &Refusal| RefusalEntry { kind: refusal.kind().to_owned(), reason: refusal.to_string() };
        ComparedEntry {
            name: self.key.name.clone(),
            environment: self.key.environment.clone(),
            measurement: self.key.measurement.to_owned(),
            with: self.with.to_owned(),
            evidence: self.now.first().and_then(|run| run.row.result.evidence),
            runs: [self.base.len(), self.now.len()],
            sittings: [sittings(&self.base), sittings(&self.now)],
            refused: self.refused.as_ref().map(reason),
            quantities: Vec::new(),
        }
    }
}
