//! Whether a row's instrument is proven: every measuring thread saw the injected fault at its size.

use std::collections::{BTreeMap, BTreeSet};

use tactus_model::bundle::{Contents, RowResult};
use tactus_model::clock::ClockCheck;
use tactus_model::control::ControlBy;
use tactus_model::document::SelfTestEntry;
use tactus_model::event::RowStatus;
use tactus_model::message::{Control, Stage};
use tactus_model::number::float;
use tactus_model::series::Thread;

use super::name::title;
use crate::units::{clean, latency, latency_or_unknown};

/// The worst of a row's controls; `None` when none was injected. It passes only if every thread saw one of
/// its controls, still sees one after the measurement, and nothing is known against the clock.
#[must_use]
pub fn control(result: &RowResult) -> Option<SelfTestEntry> {
    let told = || result.control.iter().filter(|control| control.stage != Stage::Fine);
    let worst =
        told().max_by_key(|control| (!control.is_seen(), control.seen_ns.abs_diff(control.injected_ns)))?;
    Some(SelfTestEntry {
        by: worst.by.to_string(),
        injected_ns: worst.injected(),
        seen_ns: worst.seen(),
        passed: unproven(result).is_none(),
    })
}

/// The scenarios of pairs of which the plan asks no self-test: they follow each other, and some of them prove the instrument
/// of all.
#[must_use]
pub fn spared(contents: &Contents) -> BTreeSet<&str> {
    let plan = &contents.plan;
    let asks = |control: Option<&ControlBy>| {
        control.or(plan.defaults.control.as_ref()).cloned().unwrap_or_default().is_some()
    };
    let named = plan.scenario.iter().filter_map(|own| Some((own.name.as_deref()?, own.control.as_ref())));
    let asked: BTreeSet<&str> = named.filter(|(_, control)| asks(*control)).map(|(name, _)| name).collect();
    let paired = plan.proof.iter().flat_map(|proof| proof.with.iter().chain(&proof.without));
    paired.map(String::as_str).filter(|name| !asked.contains(name)).collect()
}

/// Why a row's instrument is not proven; `None` where it is.
pub fn unproven(result: &RowResult) -> Option<String> {
    let threads = result.series().len() + result.missing().count();
    let of = |stage: Stage| result.control.iter().filter(move |control| control.stage == stage);
    let without = |stage: Stage| unseen(result, stage);
    if let Some(why) = blind(result, Stage::Before) {
        return Some(why);
    }
    if without(Stage::Before) > 0 {
        return Some(format!("{} of {threads} threads had no self-test", without(Stage::Before)));
    }
    if let Some(why) = result.clock.as_ref().and_then(ClockCheck::refusal) {
        return Some(why);
    }
    if let Some(coarse) = of(Stage::Fine).find(|control| control.is_resolvable() && !control.is_seen()) {
        let [injected, seen] = [coarse.injected(), coarse.seen()].map(latency_or_unknown);
        return Some(format!(
            "{injected} seen as {seen} on CPU {}, where noise is low enough",
            coarse.series.cpu
        ));
    }
    if let Some(why) = blind(result, Stage::After) {
        return Some(why);
    }
    // Without a second self-test (a one-way line, or a run that was ended) nothing speaks against it.
    (of(Stage::After).next().is_some() && without(Stage::After) > 0).then(|| {
        format!("{} of {threads} threads had no self-test after the measurement", without(Stage::After))
    })
}

/// Why threads did not see the fault of this stage; `None` if all saw it.
fn blind(result: &RowResult, stage: Stage) -> Option<String> {
    let of = || result.control.iter().filter(|control| control.stage == stage);
    let unseen: Vec<&Control> = of().filter(|control| !control.is_seen()).collect();
    // Where the place is too noisy it does not matter what was seen.
    let noise = unseen.iter().map(|control| control.noise().filter(|_| control.is_drowned()));
    let noise: Option<Vec<u64>> = noise.collect();
    let threads = format!("on {} of {} threads", unseen.len(), of().count());
    let (after, no_longer) = match stage {
        Stage::After => (" after the measurement", "no longer"),
        Stage::Before | Stage::Fine => ("", "not"),
    };
    unseen.first()?;
    Some(match noise.and_then(|all| all.into_iter().max()) {
        Some(ns) => {
            let noise = latency(float(ns));
            format!("too noisy to tell{after} {threads}: without it, {noise} was measured")
        }
        None => format!("{no_longer} at its size{after} {threads}"),
    })
}

/// Threads without a control, among them those that were planned and have measured nothing.
fn unseen(result: &RowResult, stage: Stage) -> usize {
    let own = result.control.iter().filter(|control| control.stage == stage);
    let seen: BTreeSet<Thread> = own.map(|control| control.series.of_thread()).collect();
    let measured = result.series().iter().map(|series| series.key.of_thread());
    measured.chain(result.missing()).filter(|thread| !seen.contains(thread)).count()
}

/// The controls of a row that are reported: those of the size that the plan gives them.
fn told(result: &RowResult) -> impl Iterator<Item = &Control> + Clone {
    result.control.iter().filter(|control| control.stage == Stage::Before)
}

/// How the controls of a row went, in one sentence.
#[must_use]
pub fn control_sentence(result: &RowResult) -> String {
    let Some(entry) = control(result) else {
        return "no self-test was made".into();
    };
    let injected = injected(entry.injected_ns, result.control.iter());
    let seen_as = match unproven(result) {
        None => seen(told(result)),
        Some(_) => latency_or_unknown(entry.seen_ns),
    };
    match (unproven(result), told(result).count()) {
        (Some(why), _) => format!("{injected} seen as {seen_as}: {why}; not passed"),
        (None, 1) => format!("{injected} seen as {seen_as}"),
        (None, 2) => format!("{injected} seen as {seen_as} on both threads"),
        (None, threads) => format!("{injected} seen as {seen_as} on all {threads} threads"),
    }
}

/// The fault that a self-test injects, in the field's words.
fn in_words(by: &str) -> String {
    clean(by).replace("hog", "FIFO spinner")
}

/// The injected fault in words: its length and its kind.
pub fn injected<'a>(ns: Option<u64>, mut controls: impl Iterator<Item = &'a Control>) -> String {
    let by = in_words(controls.next().map_or("fault", |control| &control.by));
    ns.map_or_else(|| format!("{by} of unknown length"), |ns| format!("{} {by}", latency(float(ns))))
}

/// The latency that controls were seen as: one, or the range of several.
pub fn seen<'a>(controls: impl Iterator<Item = &'a Control> + Clone) -> String {
    let unknown = controls.clone().filter(|control| control.seen().is_none()).count();
    match ranged(controls.filter_map(Control::seen)) {
        None => "unknown".into(),
        Some(known) if unknown == 0 => known,
        Some(known) => format!("{known}, and unknown on {unknown} more"),
    }
}

/// One latency, or the range from the smallest to the largest; `None` without any.
fn ranged(all: impl Iterator<Item = u64> + Clone) -> Option<String> {
    let (low, high) = (latency(float(all.clone().min()?)), latency(float(all.max()?)));
    Some(if low == high { low } else { format!("{low} to {high}") })
}

/// More rows than this with an unseen control are reported together, an environment at a time.
const SINGLE: usize = 3;

/// How the controls of a run went: a sentence for each kind of evidence and control where all were seen, and what
/// was not. With whether it is good news.
#[must_use]
pub fn controls(contents: &Contents) -> Vec<(bool, String)> {
    controls_of(contents, |_| true)
}

/// How the controls of chosen rows went, as [`controls`] tells it of all.
pub fn controls_of(contents: &Contents, chosen: impl Fn(&RowResult) -> bool) -> Vec<(bool, String)> {
    let spared = spared(contents);
    let measured = || {
        let results = contents.rows.iter().map(|row| &row.result).filter(|result| chosen(result));
        let own = results.filter(|result| result.status == RowStatus::Measured && result.all().is_some());
        own.filter(|result| !(result.control.is_empty() && spared.contains(result.name.as_str())))
    };
    let is_proven = |result: &RowResult| control(result).is_some_and(|entry| entry.passed);
    let (proven, not): (Vec<&RowResult>, Vec<&RowResult>) = measured().partition(|result| is_proven(result));
    let kind_of = |result: &&RowResult| {
        let by = result.control.first().map(|one| one.by.clone());
        (result.evidence.map(|evidence| evidence.to_string()), by)
    };
    let mut said: Vec<(bool, String)> = grouped(&proven, kind_of)
        .into_iter()
        .map(|((evidence, _), rows)| {
            let all: Vec<&Control> = rows.iter().flat_map(|result| told(result)).collect();
            let threads = match all.len() {
                1 => "the thread".to_owned(),
                2 => "both threads".to_owned(),
                many => format!("all {many} threads"),
            };
            let kind = evidence.map(|kind| format!(" ({kind})")).unwrap_or_default();
            (true, format!("{} on {threads} before {}{kind}: passed", range(&all), many(rows.len())))
        })
        .collect();
    if not.len() <= SINGLE {
        let one = |result: &&RowResult| {
            (false, format!("{}: {}", clean(&title(contents, result)), control_sentence(result)))
        };
        said.extend(not.iter().map(one));
        return said;
    }
    let all = grouped(&measured().collect::<Vec<_>>(), |result| result.environment.as_str());
    let all: BTreeMap<&str, usize> = all.into_iter().map(|(place, rows)| (place, rows.len())).collect();
    said.extend(grouped(&not, |result| result.environment.as_str()).into_iter().map(|(place, rows)| {
        let all = all.get(place).copied().unwrap_or_default();
        let seen: Vec<&Control> =
            rows.iter().flat_map(|result| told(result)).filter(|control| !control.is_seen()).collect();
        let of = format!("in {} of {}", rows.len(), many(all));
        let how = match seen.is_empty() {
            true => format!("no self-test was made {of}"),
            false => format!("{}: not at its size {of}; not passed", range(&seen)),
        };
        let names: Vec<String> = rows.iter().map(|result| clean(&title(contents, result))).collect();
        (false, format!("{}: {how}: {}", clean(place), names.join("; ")))
    }));
    said
}

/// Rows by a key that they share, in the order in which the key first appears.
fn grouped<'a, K: Ord + Clone>(
    rows: &[&'a RowResult],
    key: impl Fn(&&'a RowResult) -> K,
) -> Vec<(K, Vec<&'a RowResult>)> {
    let (mut places, mut groups) = (BTreeMap::new(), Vec::<(K, Vec<&RowResult>)>::new());
    for result in rows {
        let key = key(result);
        let place = *places.entry(key.clone()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, group)) => group.push(*result),
            None => groups.push((key, vec![*result])),
        }
    }
    groups
}

fn many(count: usize) -> String {
    if count == 1 { "1 measurement".into() } else { format!("{count} measurements") }
}

/// `1 ms FIFO spinner seen as 1.01 ms to 1.06 ms`; several lengths as a range too.
fn range(all: &[&Control]) -> String {
    let length = ranged(all.iter().filter_map(|control| control.injected()));
    let by = all.first().map_or_else(|| "fault".into(), |control| in_words(&control.by));
    let length = length.map_or_else(|| format!("{by} of unknown length"), |length| format!("{length} {by}"));
    format!("{length} seen as {}", seen(all.iter().copied()))
}
