//! What changes from one scenario to another.

use tactus_model::bundle::Contents;

use super::Section;
use crate::part::{Card, Part, Reader, Tone};
use crate::stats::{Claim, claims};
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
        "One scenario against another: a moving-block bootstrap over the intervals of time, 1000 redrawings \
         with a fixed seed; the three intervals of a claim hold together at 95 %."
    }

    fn applies(&self, contents: &Contents) -> bool {
        !contents.plan.compare.is_empty()
    }

    fn parts(&self, contents: &Contents, _: Reader) -> Vec<Part> {
        vec![Part::Cards(claims(contents).iter().map(card).collect())]
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
            tone: effect.found().map_or(Tone::Doubt, |found| if found { Tone::Bad } else { Tone::Good }),
            answer: effect.answer(),
            sentences: effect.sentences().iter().map(|sentence| unbroken(&clean(sentence))).collect(),
            caution: effect.caution.clone(),
            method: Some(format!("{} and {} intervals of time", effect.intervals.0, effect.intervals.1)),
            ..card
        },
    }
}
