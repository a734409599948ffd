//! The environments that disturbances reach: a sentence for each disturbed environment, with proven results
//! only.

use std::collections::BTreeSet;

use tactus_model::Evidence;
use tactus_model::document::{Doubt, Leak, LeakEntry, SeparationEntry};
use tactus_model::number::float;

use super::judge::percent;
use crate::units::{clean, latency};

/// A sentence for each disturbed environment of which something is known, and one for all others of a
/// disturbance.
#[must_use]
pub fn reach(entry: &SeparationEntry) -> Vec<String> {
    let mut said = Vec::new();
    for kind in entry.disturbances() {
        let mut unknown: Vec<(String, Vec<String>)> = Vec::new();
        for disturbed in entry.environments.iter().map(String::as_str) {
            let own = |cell: &&LeakEntry| cell.disturbance == kind && cell.disturbed == disturbed;
            let cells: Vec<&LeakEntry> = entry.cells.iter().filter(own).collect();
            match sentence(&named(entry, kind), disturbed, &cells) {
                Ok(sentence) => said.push(sentence),
                Err(why) => match unknown.iter_mut().find(|(known, _)| *known == why) {
                    Some((_, places)) => places.push(clean(disturbed)),
                    None => unknown.push((why, vec![clean(disturbed)])),
                },
            }
        }
        said.extend(unknown.into_iter().filter(|(why, _)| !why.is_empty()).map(|(why, places)| {
            format!(
                "Which environments {} in {} reaches is unknown ({why}).",
                named(entry, kind),
                places.join(", ")
            )
        }));
    }
    said
}

/// A fault by its name; a load as one.
fn named(entry: &SeparationEntry, kind: &str) -> String {
    let fault = entry.cells.iter().any(|cell| cell.disturbance == kind && cell.length_ns.is_some());
    if fault { clean(kind) } else { format!("{} load", clean(kind)) }
}

/// The proven results of one disturbed environment. An error names the doubts if nothing is proven; it is
/// empty if the environment was not asked.
fn sentence(kind: &str, disturbed: &str, cells: &[&LeakEntry]) -> Result<String, String> {
    let mut measured: Vec<&str> = Vec::new();
    for cell in cells.iter().filter(|cell| cell.measured != disturbed) {
        if !measured.contains(&cell.measured.as_str()) {
            measured.push(&cell.measured);
        }
    }
    let (mut reached, mut spared, mut unseen, mut open) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut doubts: BTreeSet<Doubt> = BTreeSet::new();
    for place in measured {
        let own: Vec<&LeakEntry> = cells.iter().copied().filter(|cell| cell.measured == place).collect();
        let leaks = |same: bool| own.iter().any(|cell| cell.same_cpu == same && cell.leak.reaches());
        let has = |leak: Leak| own.iter().any(|cell| cell.leak == leak);
        let part = match (has(Leak::Yes), has(Leak::Sometimes)) {
            (true, _) => "",
            (false, true) => "sometimes, ",
            (false, false) => "weaker, ",
        };
        let doubt: BTreeSet<Doubt> =
            own.iter().filter_map(|cell| cell.doubt).filter(|doubt| *doubt != Doubt::NoSuchCpu).collect();
        let name = clean(place);
        match (leaks(true), leaks(false)) {
            (true, true) => reached.push(format!("{name} ({part}on every CPU)")),
            (true, false) => reached.push(format!("{name} ({part}on the same CPU)")),
            (false, true) => reached.push(format!("{name} ({part}on other CPUs)")),
            (false, false) if doubt.is_empty() && (has(Leak::No) || has(Leak::NotSeen)) => {
                // The bound for all CPUs is the weakest bound of any.
                let most = own.iter().filter_map(|cell| cell.at_most).fold(0.0, f64::max);
                let of = if own.iter().any(|cell| cell.length_ns.is_some()) {
                    "injections"
                } else {
                    "seconds with it"
                };
                let name = format!("{name} (at most {} of all {of})", percent(most));
                if has(Leak::NotSeen) { unseen.push(name) } else { spared.push(name) }
            }
            (false, false) => {
                open.push(format!("{name} ({})", words(&doubt)));
                doubts.extend(doubt);
            }
        }
    }
    if reached.is_empty() && spared.is_empty() && unseen.is_empty() {
        return Err(words(&doubts));
    }
    let length = cells.iter().find_map(|cell| cell.length_ns).map(|ns| format!(" of {}", latency(float(ns))));
    let emulated = cells.iter().any(|cell| cell.evidence == Some(Evidence::Emulated));
    let own = cells.iter().find(|cell| cell.measured == disturbed && cell.same_cpu);
    let own = own.filter(|cell| cell.leak.reaches()).map(|_| "is seen there".to_owned());
    let part =
        |verb: &str, names: &[String]| (!names.is_empty()).then(|| format!("{verb} {}", names.join(", ")));
    let parts: Vec<String> = own
        .into_iter()
        .chain(part("reaches", &reached))
        .chain(part("does not reach", &spared))
        .chain(part("was not seen in", &unseen))
        .chain(part("unknown for", &open))
        .collect();
    let place = if emulated { " (some of it emulated)" } else { "" };
    Ok(format!("{kind}{} in {} {}{place}.", length.unwrap_or_default(), clean(disturbed), parts.join("; ")))
}

fn words(doubts: &BTreeSet<Doubt>) -> String {
    doubts.iter().map(|doubt| doubt.word()).collect::<Vec<_>>().join(", ")
}
