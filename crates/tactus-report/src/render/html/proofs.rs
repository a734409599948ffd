//! What each setting under test is worth, on the page.

use serde::Serialize;

use super::page::class;
use crate::analysis::{Answer, Proven};
use crate::units::{clean, latency, unbroken};

/// A setting under test.
#[derive(Debug, Serialize)]
pub struct ProofRow {
    setting: String,
    environment: String,
    what: String,
    evidence: Option<String>,
    kind: &'static str,
    pairs: String,
    reason: Option<String>,
    effects: Vec<EffectCell>,
}

/// The effect on one quantity.
#[derive(Debug, Serialize)]
struct EffectCell {
    words: String,
    medians: String,
    interval: String,
    shown: bool,
}

impl From<&Proven> for ProofRow {
    fn from(proven: &Proven) -> Self {
        let (reason, effects) = match &proven.answer {
            Answer::None(reason) => (Some(clean(reason)), Vec::new()),
            Answer::Effects(effects) => (None, effects.iter().map(cell).collect()),
        };
        Self {
            setting: clean(&proven.setting),
            environment: clean(&proven.environment),
            what: clean(&proven.what),
            evidence: proven.evidence.map(|evidence| evidence.to_string()),
            kind: class(proven.evidence),
            pairs: format!("{} of {}", proven.pairs.0, proven.pairs.1),
            reason,
            effects,
        }
    }
}

fn cell(worth: &crate::analysis::Worth) -> EffectCell {
    EffectCell {
        words: unbroken(&worth.words()),
        medians: format!("{} without, {} with", latency(worth.without_ns), latency(worth.with_ns)),
        interval: worth.interval(),
        shown: worth.effect.is_shown(),
    }
}
