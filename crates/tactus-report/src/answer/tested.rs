//! The benefit of the settings under test.

use tactus_model::bundle::Contents;
use tactus_model::event::RunStatus;

use super::kinds;
use crate::part::{Answer, Next, Tone};
use crate::stats::{Change, Proven, proofs};
use crate::units::{TOLD, beginning, clean};

/// Settings change latency.
pub const SHOWN: &str = "EFFECT SHOWN";
/// None of those that were tested was shown to.
pub const NONE_SHOWN: &str = "NO EFFECT SHOWN";
/// None was tested.
pub const NOT_TESTED: &str = "NOT TESTED";

/// The question for this number of settings under test.
pub const fn question(settings: usize) -> &'static str {
    match settings {
        1 => "Does this setting lower latency here?",
        _ => "Which of these settings lower latency here?",
    }
}

/// The answer of a run whose plan tests settings.
pub fn answer(contents: &Contents) -> Option<Answer> {
    let proofs = proofs(contents);
    if proofs.is_empty() {
        return None;
    }
    let tested: Vec<Tested> = proofs.iter().filter(|proven| proven.is_tested()).map(Tested::of).collect();
    let of = |lowers: bool, raises: bool| -> Vec<&Tested> {
        let is = |own: &&Tested| own.lower.is_some() == lowers && own.higher.is_some() == raises;
        tested.iter().filter(is).collect()
    };
    let (helping, harming, mixed) = (of(true, false), of(false, true), of(true, true));
    let best = helping.iter().max_by(|one, other| one.gain().total_cmp(&other.gain()));
    let (word, tone, said) = match best {
        _ if tested.is_empty() => (NOT_TESTED, Tone::Doubt, not_tested(&proofs)),
        Some(best) => {
            let lower = if helping.len() == 1 { "lowers" } else { "lower" };
            let (helping, tested) = (helping.len(), tested.len());
            let said = match tested {
                1 => format!("the one setting that was tested lowers latency: {}", best.lowers()),
                many => format!("{helping} of {many} settings {lower} latency: {}", best.lowers()),
            };
            (SHOWN, Tone::Good, said)
        }
        None if !mixed.is_empty() => {
            let said = match (mixed.len(), tested.len()) {
                (1, 1) => "the one setting that was tested lowers one quantity and raises another".to_owned(),
                (1, many) => format!("1 of {many} settings lowers one quantity and raises another"),
                (some, many) => format!("{some} of {many} settings lower one quantity and raise another"),
            };
            (SHOWN, Tone::Doubt, said)
        }
        None if !harming.is_empty() => {
            let said = match tested.len() {
                1 => "the one setting that was tested does not lower latency".to_owned(),
                many => format!("none of {many} settings lowers latency"),
            };
            (SHOWN, Tone::Bad, said)
        }
        None => {
            let said = match tested.len() {
                1 => "the one setting that was tested was not shown to change latency".to_owned(),
                many => format!("none of {many} settings was shown to change latency"),
            };
            (NONE_SHOWN, Tone::Quiet, said)
        }
    };
    let both = |own: &&Tested| format!("{}, and {}", own.lowers(), own.raises());
    let mut said = vec![said];
    said.extend(mixed.iter().map(both));
    said.extend(harming.iter().map(|own| own.raises()));
    let left = proofs.len() - tested.len();
    if left > 0 && !tested.is_empty() {
        let were = if left == 1 { "was" } else { "were" };
        said.push(format!("{left} of {} {were} not tested", proofs.len()));
    }
    let interrupted = match contents.manifest.status {
        RunStatus::Interrupted => " The run was interrupted.",
        RunStatus::Complete => "",
    };
    Some(Answer {
        word,
        tone,
        sentence: format!("{}.{interrupted}", said.join("; ")),
        evidence: kinds(proofs.iter().filter_map(|proven| proven.evidence)),
        next: best.map(|best| best.keep()),
    })
}

/// Why there is no result for any setting.
fn not_tested(proofs: &[Proven]) -> String {
    let why = |proven: &Proven| {
        let reason = proven.reason.as_deref().map(|reason| clean(&beginning(reason, 4 * TOLD)));
        let reason = reason.unwrap_or_default();
        format!("{}: {reason}", clean(&proven.setting))
    };
    match proofs {
        [one] => why(one),
        [first, ..] => format!("none of {} settings was tested; {}", proofs.len(), why(first)),
        [] => String::new(),
    }
}

/// A setting that was tested, with the largest of its effects in each direction that are shown.
struct Tested<'a> {
    proven: &'a Proven,
    lower: Option<&'a Change>,
    higher: Option<&'a Change>,
}

impl<'a> Tested<'a> {
    fn of(proven: &'a Proven) -> Self {
        let largest = |lower: bool| {
            let own = proven.effects.iter().filter(|change| change.is_shown());
            own.filter(|change| (size(change) < 0.0) == lower)
                .max_by(|one, other| size(one).abs().total_cmp(&size(other).abs()))
        };
        Self { proven, lower: largest(true), higher: largest(false) }
    }

    /// By which part of it the largest gain lowers a quantity.
    fn gain(&self) -> f64 {
        self.lower.map_or(0.0, |change| -size(change))
    }

    /// "smt has a p99.9 that is lower by 12.1 us (11.0 us to 13.4 us)".
    fn lowers(&self) -> String {
        self.lower.map(|change| self.effect(change)).unwrap_or_default()
    }

    fn raises(&self) -> String {
        self.higher.map(|change| self.effect(change)).unwrap_or_default()
    }

    fn effect(&self, change: &Change) -> String {
        let quantity = change.quantity.said(self.proven.corrected);
        format!("{} has a {quantity} that is {}", clean(&self.proven.setting), change.words())
    }

    /// The step to keep the settings that lower latency, with their known effects on other quantities.
    fn keep(&self) -> Next {
        let others = self
            .proven
            .effects
            .iter()
            .filter(|change| self.lower.is_none_or(|best| best.quantity != change.quantity));
        let said = others
            .map(|change| format!("; {}: {}", change.quantity.said(self.proven.corrected), change.words()));
        Next {
            title: super::next::title(&format!("Keep {}: {}", self.proven.setting, self.proven.what)),
            command: String::new(),
            why: format!("measured here: {}{}", self.lowers(), said.collect::<String>()),
        }
    }
}

/// The effect as a share of the value without the setting; infinite if its size is unknown.
fn size(change: &Change) -> f64 {
    let estimate = change.difference.as_ref().map_or(0.0, |of| of.estimate_ns);
    if estimate.is_finite() { estimate / change.base_ns.max(1.0) } else { estimate }
}
