//! Everything that a report calls an effect, judged together.

use tactus_model::bundle::Contents;
use tactus_model::plan::Compare;

use super::change;
use super::degradation::{Degraded, judge};
use super::effect::{Effect, draft};
use super::proof::{self, Proven};
use super::valued_claim;
use crate::row::Runs;

/// A claim of the plan, and what was measured of it.
#[derive(Clone, Debug)]
pub struct Claim<'a> {
    /// Its heading.
    pub name: String,
    /// The document's words.
    pub claim: Option<String>,
    /// The scenario without.
    pub base: String,
    /// The scenario with.
    pub with: String,
    /// Its result.
    pub found: Found<'a>,
}

/// The result of a claim.
#[derive(Clone, Debug)]
pub enum Found<'a> {
    /// The effect on latencies.
    Latencies(Effect),
    /// By how much values are worse.
    Values(Degraded<'a>),
    /// Nothing, for this reason.
    Nothing(String),
}

impl Claim<'_> {
    /// The effect on latencies.
    ///
    /// # Errors
    /// Why there is no effect on latencies.
    pub fn effect(&self) -> Result<&Effect, &str> {
        match &self.found {
            Found::Latencies(effect) => Ok(effect),
            Found::Values(_) => Err("it is about values"),
            Found::Nothing(reason) => Err(reason),
        }
    }
}

/// Every claim and every setting under test of a bundle as one family: with 95 %, a report names no false
/// effect. Claims about values are a separate family, in which each has an equal part of the error.
#[must_use]
pub fn effects(contents: &Contents) -> (Vec<Claim<'_>>, Vec<Proven>) {
    let runs = Runs::new(contents);
    let mut claims: Vec<Claim> =
        contents.plan.compare.iter().map(|compare| claim(contents, &runs, compare)).collect();
    let values = claims.iter().filter(|claim| matches!(claim.found, Found::Values(_))).count();
    for claim in &mut claims {
        if let Found::Values(of) = &mut claim.found
            && of.is_repeated()
        {
            judge(std::iter::once(of), values);
        }
    }
    let mut proofs = proof::drafts(contents);
    let claimed = claims.iter_mut().filter_map(|claim| match &mut claim.found {
        Found::Latencies(effect) => Some(effect),
        Found::Values(_) | Found::Nothing(_) => None,
    });
    let tested = proofs.iter_mut().flat_map(|proven| &mut proven.effects);
    let changes = claimed.flat_map(|effect| &mut effect.changes).chain(tested);
    change::judge(&mut changes.collect::<Vec<_>>());
    proofs.iter_mut().for_each(proof::close);
    (claims, proofs)
}

/// Every claim of the plan.
#[must_use]
pub fn claims(contents: &Contents) -> Vec<Claim<'_>> {
    effects(contents).0
}

/// Every setting under test, in the plan's order.
#[must_use]
pub fn proofs(contents: &Contents) -> Vec<Proven> {
    effects(contents).1
}

fn claim<'a>(contents: &'a Contents, runs: &Runs<'a>, compare: &Compare) -> Claim<'a> {
    let Compare { name, base, with, claim } = compare.clone();
    let missing =
        [&base, &with].into_iter().find(|name| contents.rows.iter().all(|row| row.result.name != **name));
    let found = match missing {
        Some(name) => Err(format!("`{name}` is not in this bundle")),
        None if valued_claim::is_of_values(contents, [&base, &with]) => {
            valued_claim::draft(contents, runs, &base, &with).map(Found::Values)
        }
        None => draft(contents, &base, &with).map(Found::Latencies),
    };
    Claim { name, claim, base, with, found: found.unwrap_or_else(Found::Nothing) }
}
