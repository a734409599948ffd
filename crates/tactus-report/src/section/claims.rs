//! What changes from one scenario to another.

use tactus_model::bundle::Contents;
use tactus_model::document::{ClaimEntry, Document};

use super::Section;
use crate::part::{Card, Part, Reader, Tone};
use crate::stats::{Change, Claim, Design, Effect, claims};
use crate::units::{clean, unbroken};

/// The section.
pub struct Claims;
/// Its entry.
pub static ENTRY: Claims = Claims;

impl Section for Claims {
    fn name(&self) -> &'static str {
        "claims"
    }

    fn heading(&self) -> &'static str {
        "What changes"
    }

    fn about(&self) -> &'static str {
        "One scenario against another. Where the plan repeats them, by pairs of runs: the signed-rank test. Of one run \
         each it says what differs between these two runs, from how they vary over time. All that this report shows \
         holds together at 95 % (Holm), and so do its intervals."
    }

    fn applies(&self, contents: &Contents) -> bool {
        !contents.plan.compare.is_empty()
    }

    fn parts(&self, contents: &Contents, _: Reader) -> Vec<Part> {
        vec![Part::Cards(claims(contents).iter().map(card).collect())]
    }

    fn fill(&self, contents: &Contents, document: &mut Document) {
        document.claims = claims(contents).into_iter().map(entry).collect();
    }
}

fn card(claim: &Claim) -> Card {
    let card = Card {
        title: clean(&claim.name),
        pair: format!("{} against {}", clean(&claim.with), clean(&claim.base)),
        quote: claim.claim.as_deref().map(clean),
        answer: String::new(),
        tone: Tone::Doubt,
        sentences: Vec::new(),
        caution: None,
        method: None,
    };
    match &claim.effect {
        Err(reason) => Card { answer: format!("not answered: {}", clean(reason)), ..card },
        Ok(effect) => Card {
            tone: tone(effect),
            answer: effect.answer(),
            sentences: effect.sentences().iter().map(|sentence| unbroken(&clean(sentence))).collect(),
            caution: effect.caution.clone(),
            method: Some(effect.method()),
            ..card
        },
    }
}

fn entry(claim: Claim) -> ClaimEntry {
    let pairs = claim.effect.as_ref().ok().and_then(|effect| match effect.design {
        Design::TwoRuns { .. } => None,
        Design::Repeats { pairs } => Some(pairs),
    });
    let (answer, effects) = match &claim.effect {
        Err(reason) => (format!("not answered: {reason}"), Vec::new()),
        Ok(effect) => (effect.answer(), effect.changes.iter().map(Change::entry).collect()),
    };
    ClaimEntry {
        name: claim.name,
        base: claim.base,
        with: claim.with,
        claim: claim.claim,
        pairs,
        answer,
        effects,
    }
}

/// Two single runs that differ are no effect yet.
fn tone(effect: &Effect) -> Tone {
    match (effect.design, effect.found()) {
        (Design::Repeats { .. }, Some(true)) => Tone::Bad,
        (_, Some(false)) => Tone::Good,
        (Design::TwoRuns { .. }, Some(true)) | (_, None) => Tone::Doubt,
    }
}
