//! What the settings under test are worth.

use tactus_model::bundle::Contents;

use super::kinds;
use crate::part::{Answer, Next, Tone};
use crate::stats::{Answer as Came, Change, Proven, proofs};
use crate::units::{clean, latency};

/// The answer of a run whose plan tests settings.
pub fn answer(contents: &Contents) -> Option<Answer> {
    let proofs = proofs(contents);
    if proofs.is_empty() {
        return None;
    }
    let of = |lower: bool| proofs.iter().filter_map(move |proven| Some((proven, shown(proven, lower)?)));
    let (tested, total) = (proofs.iter().filter(|proven| effects(proven).is_some()).count(), proofs.len());
    let (helping, harming) = (of(true).count(), of(false).count());
    let best = best(&proofs);
    let (word, tone, said) = match best {
        _ if tested == 0 => ("NOT TESTED", Tone::Doubt, not_tested(total)),
        Some((proven, change)) => {
            let lower = if helping == 1 { "lowers" } else { "lower" };
            let settings = if tested == 1 { "setting" } else { "settings" };
            let said =
                format!("{helping} of {tested} {settings} {lower} latency: {}", effect(proven, change));
            ("EFFECT SHOWN", Tone::Good, said)
        }
        None if harming > 0 => {
            let said =
                of(false).map(|(proven, change)| effect(proven, change)).collect::<Vec<_>>().join("; ");
            (
                "EFFECT SHOWN",
                Tone::Bad,
                match tested {
                    1 => format!("the one setting that was tested does not lower latency: {said}"),
                    many => format!("none of {many} settings lowers latency: {said}"),
                },
            )
        }
        None => {
            let said = match tested {
                1 => "the one setting that was tested was not shown to change latency".to_owned(),
                many => format!("none of {many} settings was shown to change latency"),
            };
            ("NO EFFECT SHOWN", Tone::Quiet, said)
        }
    };
    Some(Answer {
        word,
        tone,
        sentence: said + ".",
        evidence: kinds(proofs.iter().filter_map(|proven| proven.evidence)),
        next: best.map(|(proven, change)| next(proven, change)),
    })
}

fn not_tested(total: usize) -> String {
    match total {
        1 => "the one setting could not be tested".into(),
        many => format!("none of {many} settings could be tested"),
    }
}

fn effects(proven: &Proven) -> Option<&[Change]> {
    match &proven.answer {
        Came::Effects(effects) => Some(effects),
        Came::None(_) => None,
    }
}

/// The largest effect of a setting that is shown, in this direction, as a part of what is without it.
fn shown(proven: &Proven, lower: bool) -> Option<&Change> {
    let size = |change: &Change| {
        change.difference.as_ref().map_or(0.0, |of| of.estimate_ns / change.base_ns.max(1.0))
    };
    let own = |change: &&Change| change.is_shown() && (size(change) < 0.0) == lower;
    effects(proven)?.iter().filter(own).max_by(|one, other| size(one).abs().total_cmp(&size(other).abs()))
}

/// What lowers latency most.
pub(super) fn best(proofs: &[Proven]) -> Option<(&Proven, &Change)> {
    let size = |change: &Change| {
        change.difference.as_ref().map_or(0.0, |of| of.estimate_ns / change.base_ns.max(1.0))
    };
    let lowering = proofs.iter().filter_map(|proven| Some((proven, shown(proven, true)?)));
    lowering.min_by(|(_, one), (_, other)| size(one).total_cmp(&size(other)))
}

/// "smt: p99.9 lower by 12.1 us (11.0 us to 13.4 us)".
fn effect(proven: &Proven, change: &Change) -> String {
    let Ok(difference) = &change.difference else { return clean(&proven.setting) };
    let word = if difference.estimate_ns < 0.0 { "lower" } else { "higher" };
    let interval = difference.interval;
    let ends = if difference.estimate_ns < 0.0 {
        [-interval.high_ns, -interval.low_ns]
    } else {
        [interval.low_ns, interval.high_ns]
    };
    format!(
        "{} has a {} that is {word} by {} ({} to {})",
        clean(&proven.setting),
        change.quantity.said(proven.corrected),
        latency(difference.estimate_ns.abs()),
        latency(ends[0].max(0.0)),
        latency(ends[1])
    )
}

/// To keep what was shown to help.
pub(super) fn next(proven: &Proven, change: &Change) -> Next {
    Next {
        title: format!("Keep {}: {}", clean(&proven.setting), clean(&proven.what)),
        command: String::new(),
        why: format!("measured here: {}", effect(proven, change)),
    }
}
