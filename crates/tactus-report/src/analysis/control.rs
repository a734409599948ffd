//! Whether a row's instrument is proven: every measuring thread saw the injected fault at its size.

use tactus_model::bundle::RowResult;
use tactus_model::document::ControlEntry;
use tactus_model::message::Control;
use tactus_model::number::float;

use crate::units::latency;

/// The worst of a row's controls; `None` when none was injected. It is proven only when every
/// series has a control of its own that is.
#[must_use]
pub fn control(result: &RowResult) -> Option<ControlEntry> {
    let worst = result
        .control
        .iter()
        .max_by_key(|control| (!control.proven, control.seen_ns.abs_diff(control.injected_ns)))?;
    Some(ControlEntry {
        injected_ns: worst.injected_ns,
        seen_ns: worst.seen_ns,
        proven: worst.proven && unseen(result) == 0,
    })
}

/// Series without a control.
fn unseen(result: &RowResult) -> usize {
    let has = |key| result.control.iter().any(|control: &Control| &control.series == key);
    result.series.iter().filter(|series| !has(&series.key)).count()
}

/// How the controls of a row went, in one sentence.
#[must_use]
pub fn control_sentence(result: &RowResult) -> String {
    let Some(entry) = control(result) else {
        return "no control was injected: instrument not proven here".into();
    };
    let injected = injected(entry.injected_ns, result.control.iter());
    let threads = result.control.len();
    let unproven = result.control.iter().filter(|control| !control.proven).count();
    if entry.proven {
        let all = match threads {
            1 => String::new(),
            2 => " on both threads".into(),
            _ => format!(" on all {threads} threads"),
        };
        return format!("{injected} seen as {}{all}", seen(result.control.iter()));
    }
    let seen = latency(float(entry.seen_ns));
    if unproven > 0 {
        return format!(
            "{injected} seen as {seen}: not at its size on {unproven} of {threads} threads; instrument not proven here"
        );
    }
    format!(
        "{} of {} threads had no control: instrument not proven here",
        unseen(result),
        result.series.len()
    )
}

/// What was injected, in words: its length and what it was.
pub fn injected<'a>(ns: u64, mut controls: impl Iterator<Item = &'a Control>) -> String {
    let by = controls.next().map_or("fault", |control| &control.by);
    format!("{} {}", latency(float(ns)), crate::units::clean(by))
}

/// What controls were seen as: one latency, or the range of several.
pub fn seen<'a>(controls: impl Iterator<Item = &'a Control> + Clone) -> String {
    let said = |ns: Option<u64>| latency(float(ns.unwrap_or(0)));
    let (low, high) =
        (said(controls.clone().map(|c| c.seen_ns).min()), said(controls.map(|c| c.seen_ns).max()));
    if low == high { low } else { format!("{low} to {high}") }
}
