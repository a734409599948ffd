//! The effects from one scenario to another.

mod values;

use tactus_model::bundle::Contents;
use tactus_model::document::{ClaimEntry, Document, Judgement};

use super::{Section, degradation};
use crate::figure::{Figure, Forested, forest};
use crate::part::{Card, Part, Reader, Tone};
use crate::row::Quantity;
use crate::stats::{Change, Claim, Design, Effect, Found, caution, claims, least_rounds};
use crate::units::{clean, listed, shortened, unbroken};

/// The most ratios of one figure.
const RATIOS: usize = 40;

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
        "Compares one scenario with another. Repeats and slices are compared in pairs (signed-rank test). \
         If there is one run of each, the report shows only whether these two runs differ, judged by how much \
         each varies over time. The family-wise error rate is 5 %: for all statements (Holm), for all intervals \
         (Bonferroni), and for all values of repeated runs (maxT)."
    }

    fn folded(&self, _: &Contents, parts: &[Part]) -> Option<String> {
        let cards = parts.iter().flat_map(|part| match part {
            Part::Cards(cards) => cards.as_slice(),
            _ => &[],
        });
        Some(listed(&cards.map(|card| format!("{}: {}", card.title, card.answer)).collect::<Vec<_>>(), "; "))
    }

    fn applies(&self, contents: &Contents) -> bool {
        !contents.plan.compare.is_empty()
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        let claims = claims(contents);
        let least = least(&claims);
        let figures = if reader == Reader::Page { figures(&claims) } else { Vec::new() };
        let cards = Part::Cards(claims.iter().map(|claim| card(claim, least)).collect());
        figures.into_iter().map(Part::Figure).chain([cards]).collect()
    }

    fn draws(&self) -> bool {
        true
    }

    fn fill(&self, contents: &Contents, document: &mut Document) {
        let claims = claims(contents);
        let least = least(&claims);
        document.claims = claims.into_iter().map(|claim| entry(contents, claim, least)).collect();
    }
}

/// How many rounds it takes to answer claims about values.
fn least(claims: &[Claim]) -> usize {
    least_rounds(claims.iter().filter(|claim| matches!(claim.found, Found::Values(_))).count())
}

/// The effects on latencies as ratios with their intervals. What is unknown, or has no base, is left to the words.
fn figures(claims: &[Claim]) -> Vec<Figure> {
    let of = |claim: &Claim| match &claim.found {
        Found::Latencies(effect) => {
            effect.changes.iter().filter_map(|change| forested(claim, change)).collect()
        }
        Found::Nothing(_) | Found::Values(_) => Vec::new(),
    };
    let all: Vec<Forested> = claims.iter().flat_map(of).collect();
    let axis = "times as large (1: no effect; log.)";
    all.chunks(RATIOS).map(|part| forest("Size of each effect, with its interval", axis, part)).collect()
}

fn forested(claim: &Claim, change: &Change) -> Option<Forested> {
    let difference = change.difference.ok()?;
    let ratio = |ns: f64| {
        Some((change.base_ns + ns) / change.base_ns).filter(|ratio| ratio.is_finite() && *ratio > 0.0)
    };
    let (outcome, word) = match (difference.is_shown(), difference.estimate_ns > 0.0) {
        (true, true) => (Judgement::Regression, "raised"),
        (true, false) => (Judgement::Pass, "lowered"),
        (false, _) => (Judgement::Inconclusive, "no effect shown"),
    };
    Some(Forested {
        name: format!(
            "{}, {}",
            shortened(&clean(&claim.name), 30),
            match change.quantity {
                Quantity::Maximum => "typical maximum",
                quantity => quantity.name(),
            }
        ),
        estimate: ratio(difference.estimate_ns)?,
        low: ratio(difference.interval.low_ns),
        high: ratio(difference.interval.high_ns),
        limit: None,
        outcome,
        word,
    })
}

fn card(claim: &Claim, least: usize) -> Card {
    let card = Card {
        title: clean(&claim.name),
        pair: format!("{} against {}", clean(&claim.with), clean(&claim.base)),
        quote: claim.claim.as_deref().map(clean),
        answer: String::new(),
        tone: Tone::Doubt,
        plain: Vec::new(),
        sentences: Vec::new(),
        caution: None,
        method: None,
    };
    let unbroken = |sentence: &String| unbroken(&clean(sentence));
    match &claim.found {
        Found::Nothing(reason) => Card { answer: format!("cannot compare: {}", clean(reason)), ..card },
        Found::Latencies(effect) => Card {
            tone: tone(effect),
            answer: effect.answer(),
            plain: effect.plain().iter().map(unbroken).collect(),
            sentences: effect.sentences().iter().map(unbroken).collect(),
            caution: effect.caution.clone(),
            method: Some(effect.method()),
            ..card
        },
        Found::Values(of) => Card {
            tone: values::tone(of, least),
            answer: clean(&values::answer(of, least)),
            sentences: values::sentences(of, least).iter().map(unbroken).collect(),
            caution: caution(of.base, of.with),
            method: Some(values::method(of, least)),
            ..card
        },
    }
}

fn entry(contents: &Contents, claim: Claim, least: usize) -> ClaimEntry {
    let entry = ClaimEntry {
        name: claim.name,
        base: claim.base,
        with: claim.with,
        claim: claim.claim,
        pairs: None,
        broken_pairs: None,
        answer: String::new(),
        effects: Vec::new(),
        values: Vec::new(),
    };
    match claim.found {
        Found::Nothing(reason) => ClaimEntry { answer: format!("cannot compare: {reason}"), ..entry },
        Found::Latencies(effect) => ClaimEntry {
            pairs: match effect.design {
                Design::TwoRuns { .. } => None,
                Design::Repeats { pairs, .. } | Design::Slices { pairs, .. } => Some(pairs),
            },
            broken_pairs: match effect.design {
                Design::Repeats { broken, .. } | Design::Slices { broken, .. } if broken > 0 => Some(broken),
                _ => None,
            },
            answer: effect.answer(),
            effects: effect.changes.iter().map(Change::entry).collect(),
            ..entry
        },
        Found::Values(of) => ClaimEntry {
            pairs: of.with.repeat.map(|_| of.rounds),
            answer: values::answer(&of, least),
            values: of.items.iter().map(|item| degradation::entry(contents, &of, item)).collect(),
            ..entry
        },
    }
}

/// Two single runs that differ are no effect yet.
fn tone(effect: &Effect) -> Tone {
    match (effect.design, effect.found()) {
        (Design::Repeats { .. } | Design::Slices { .. }, Some(true)) => Tone::Bad,
        // An effect that is not shown is no good news if runs broke.
        (_, Some(false)) if effect.is_whole() => Tone::Good,
        (_, Some(false) | None) | (Design::TwoRuns { .. }, Some(true)) => Tone::Doubt,
    }
}
