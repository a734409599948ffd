//! Everything that a report calls an effect, judged together.

use tactus_model::bundle::Contents;

use super::change::judge;
use super::effect::{Effect, draft};
use super::proof::{self, Answer, Proven};

/// A claim of the plan, and what was measured of it.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Its heading.
    pub name: String,
    /// The document's words.
    pub claim: Option<String>,
    /// The scenario without.
    pub base: String,
    /// The scenario with.
    pub with: String,
    /// The effect, or why there is none to speak of.
    pub effect: Result<Effect, String>,
}

/// Every claim and every setting under test of a bundle: one family, so that of all that is called an effect in a
/// report nothing is none, with 95 %.
#[must_use]
pub fn effects(contents: &Contents) -> (Vec<Claim>, Vec<Proven>) {
    let mut claims: Vec<Claim> =
        contents.plan.compare.iter().map(|compare| claim(contents, compare)).collect();
    let mut proofs = proof::drafts(contents);
    let claimed = claims.iter_mut().filter_map(|claim| claim.effect.as_mut().ok());
    let tested = proofs.iter_mut().filter_map(|proven| match &mut proven.answer {
        Answer::Effects(changes) => Some(changes),
        Answer::None(_) => None,
    });
    let changes = claimed.flat_map(|effect| &mut effect.changes).chain(tested.flatten());
    judge(&mut changes.collect::<Vec<_>>());
    proofs.iter_mut().for_each(|proven| proof::close(proven, contents));
    (claims, proofs)
}

/// Every claim of the plan.
#[must_use]
pub fn claims(contents: &Contents) -> Vec<Claim> {
    effects(contents).0
}

/// Every setting under test, in the plan's order.
#[must_use]
pub fn proofs(contents: &Contents) -> Vec<Proven> {
    effects(contents).1
}

fn claim(contents: &Contents, compare: &tactus_model::plan::Compare) -> Claim {
    let missing = [&compare.base, &compare.with]
        .into_iter()
        .find(|name| contents.rows.iter().all(|row| row.result.name != **name));
    let effect = match missing {
        Some(name) => Err(format!("`{name}` is not in this bundle")),
        None => draft(contents, &compare.base, &compare.with),
    };
    Claim {
        name: compare.name.clone(),
        claim: compare.claim.clone(),
        base: compare.base.clone(),
        with: compare.with.clone(),
        effect,
    }
}
