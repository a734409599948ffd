//! The technologies in words. The rule for each word is in docs/design/separation.md.

use tactus_model::Evidence;
use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::dependence::{Dependence, dependence};
use tactus_model::document::{Doubt, Leak, LeakEntry, SeparationEntry, TechnologyEntry, WordEntry};
use tactus_model::number::float;
use tactus_model::plan::{Technology, Trait};
use tactus_statistics::Test;

use crate::row::{CYCLES_FOR_A_VERDICT, control, figures, reason};
use crate::section::separation::{ERROR, FACTOR, SLACK, separation, slot_of, slots};
use crate::units::{clean, count, latency};

/// The word for an unknown answer.
pub const NOT_KNOWN: &str = "not known";
const YES: &str = "yes";
const NO: &str = "no";
const CONSTRAINED: &str = "yes (with constraints)";
/// A latency of more cycles than this is no real-time at all.
const CYCLES_LATE: u64 = 10;
/// A slot of time, in ns.
const SLOT_NS: u64 = 1_000_000_000;

/// A word, why, and the scenarios behind it.
struct Said {
    word: &'static str,
    reasons: Vec<String>,
    scenarios: Vec<String>,
}

/// The technologies that the plan compares.
#[must_use]
pub fn technologies(contents: &Contents) -> Vec<TechnologyEntry> {
    if contents.plan.technology.is_empty() {
        return Vec::new();
    }
    let separation = separation(contents);
    contents.plan.technology.iter().map(|own| entry(contents, own, separation.as_ref())).collect()
}

/// The subject of a row of the comparison, in the words of the document.
#[must_use]
pub const fn about(row: Trait) -> &'static str {
    match row {
        Trait::RealTime => "Real-time in the guest",
        Trait::AsOnHost => "Latencies like those of the host",
        Trait::Separation => "Separation",
        Trait::Independence => "Complete independence from host",
    }
}

fn entry(contents: &Contents, own: &Technology, separation: Option<&SeparationEntry>) -> TechnologyEntry {
    let words = [Trait::RealTime, Trait::AsOnHost, Trait::Separation, Trait::Independence].map(|row| {
        let said = match row {
            Trait::RealTime => real_time(contents, own),
            Trait::AsOnHost => as_on_host(contents, own),
            Trait::Separation => separated(own, separation, contents),
            Trait::Independence => independent(contents, own, separation),
        };
        let published = own.published.get(&row).cloned();
        let differs = published
            .as_ref()
            .filter(|_| said.word != NOT_KNOWN)
            .map(|published| !published.trim().eq_ignore_ascii_case(said.word));
        WordEntry {
            row,
            word: said.word.into(),
            published,
            differs,
            reasons: said.reasons,
            scenarios: said.scenarios,
        }
    });
    let rows = contents.rows.iter().filter(|row| row.result.environment == own.environment);
    let evidence = rows.filter_map(|row| row.result.evidence).next();
    let kind = contents.plan.environment.get(&own.environment).map(|of| of.kind.clone());
    TechnologyEntry {
        name: own.name.clone(),
        environment: own.environment.clone(),
        kind: kind.unwrap_or_default(),
        evidence,
        words: words.to_vec(),
    }
}

/// All runs of a scenario.
fn runs_of<'a>(contents: &'a Contents, scenario: &str, environment: &str) -> Vec<&'a Row> {
    let own = |row: &&Row| row.result.name == scenario && row.result.environment == environment;
    contents.rows.iter().filter(own).collect()
}

/// The largest latency of several runs, in ns.
fn largest(rows: &[&Row]) -> Option<u64> {
    rows.iter().filter_map(|row| figures(&row.result)?.max_ns).max()
}

/// Why the latencies of a row carry no word.
fn ground(contents: &Contents, result: &RowResult) -> Result<(), String> {
    if result.damaged {
        return Err("the bundle is damaged".into());
    }
    if figures(result).is_none() {
        return Err(clean(&reason(contents, result).unwrap_or_else(|| "nothing was measured".into())));
    }
    match result.evidence {
        Some(Evidence::Emulated) => Err("emulated: its latencies say nothing about hardware".into()),
        Some(Evidence::BareMetal | Evidence::VirtualHost | Evidence::Imported) => {
            let proven = control(result).is_some_and(|control| control.passed);
            if proven { Ok(()) } else { Err("self-test not passed".into()) }
        }
        None => Err("its kind of evidence is unknown".into()),
    }
}

/// Whether every period is kept inside.
fn real_time(contents: &Contents, own: &Technology) -> Said {
    let mut said = Said { word: YES, reasons: Vec::new(), scenarios: Vec::new() };
    let mut open = own.alike.is_empty();
    for [on_host, scenario] in &own.alike {
        said.scenarios.push(scenario.clone());
        let runs = runs_of(contents, scenario, &own.environment);
        let unfounded = runs.iter().find_map(|row| ground(contents, &row.result).err());
        if let Some(why) = unfounded {
            open = true;
            said.reasons.push(format!("{}: {why}", clean(scenario)));
            continue;
        }
        let Some(interval) = runs.first().map(|row| row.result.interval_ns) else { continue };
        let all: Vec<_> = runs.iter().filter_map(|row| figures(&row.result)).collect();
        let max = largest(&runs).unwrap_or(0);
        let lost = all.iter().fold(0_u64, |lost, all| lost.saturating_add(all.missed()));
        let cycles = all.iter().map(|all| all.cycles).min().unwrap_or(0);
        let (max_words, every) = (latency(float(max)), latency(float(interval)));
        let host = largest(&runs_of(contents, on_host, &own.host));
        let host = host.map(|ns| format!(" (host: {})", latency(float(ns)))).unwrap_or_default();
        let base = format!("{}: maximum {max_words}{host} at a cycle of {every}", clean(scenario));
        if max > interval.saturating_mul(CYCLES_LATE) {
            said.word = NO;
            said.reasons.push(format!("{base}: more than {CYCLES_LATE} cycles late"));
        } else if max > interval {
            if said.word == YES {
                said.word = CONSTRAINED;
            }
            said.reasons.push(format!("{base}: {} periods were lost", count(lost)));
        } else if cycles < CYCLES_FOR_A_VERDICT {
            open = true;
            let needed = count(CYCLES_FOR_A_VERDICT);
            said.reasons
                .push(format!("{base}, but {} cycles are too few: {needed} are needed", count(cycles)));
        } else {
            said.reasons.push(format!("{base}, over {} cycles", count(cycles)));
        }
    }
    if said.reasons.is_empty() {
        said.reasons.push("not measured".into());
        open = true;
    }
    if open && said.word != NO {
        said.word = NOT_KNOWN;
    }
    said
}

/// Whether latencies are those of the host.
fn as_on_host(contents: &Contents, own: &Technology) -> Said {
    let test = Test::new(ERROR / float(own.alike.len().max(1) as u64));
    let mut said = Said { word: NOT_KNOWN, reasons: Vec::new(), scenarios: Vec::new() };
    let (mut same, mut worse, mut open) = (0_usize, 0_usize, 0_usize);
    for [host, inside] in &own.alike {
        said.scenarios.extend([host.clone(), inside.clone()]);
        let runs = [runs_of(contents, host, &own.host), runs_of(contents, inside, &own.environment)];
        if runs.iter().any(Vec::is_empty) {
            open += 1;
            continue;
        }
        let all = || runs.iter().flatten().copied();
        if let Some(why) = all().find_map(|row| ground(contents, &row.result).err()) {
            open += 1;
            said.reasons.push(format!("{}: {why}", clean(inside)));
            continue;
        }
        let slot = slot_of(all(), SLOT_NS);
        let slots = [&runs[0], &runs[1]]
            .map(|runs| runs.iter().flat_map(|row| slots(row, slot, |_| true)).collect::<Vec<_>>());
        let Some(ratio) = test.ratio(&slots[0], &slots[1]) else {
            open += 1;
            continue;
        };
        let maxima = [&runs[0], &runs[1]].map(|runs| largest(runs).unwrap_or(0));
        let which = if all().count() == 2 { "between these two runs" } else { "between these runs" };
        let base = format!(
            "{}: {which} typical maxima are {:.2} times those of the host (maximum {} against {})",
            clean(inside),
            ratio.estimate,
            latency(float(maxima[1])),
            latency(float(maxima[0]))
        );
        if ratio.low > SLACK && ratio.estimate >= FACTOR {
            worse += 1;
            said.reasons.push(base);
        } else if ratio.low > 0.0 && ratio.high < FACTOR {
            same += 1;
            said.reasons.push(base);
        } else {
            open += 1;
            let high =
                if ratio.high.is_finite() { format!("{:.1}", ratio.high) } else { "any number of".into() };
            said.reasons.push(format!("{base}: up to {high} times is possible, measure longer"));
        }
    }
    said.word = if same > 0 && worse > 0 {
        "not always"
    } else if open > 0 || same + worse == 0 {
        NOT_KNOWN
    } else if worse > 0 {
        NO
    } else {
        YES
    };
    if said.reasons.is_empty() {
        said.reasons.push("not measured".into());
    }
    said
}

/// Whether faults cross from one set of environments to another.
fn crosses(
    separation: Option<&SeparationEntry>,
    from: impl Fn(&str) -> bool,
    to: impl Fn(&str) -> bool,
) -> (Leak, Vec<&LeakEntry>) {
    let cells: Vec<&LeakEntry> = separation
        .iter()
        .flat_map(|all| &all.cells)
        .filter(|cell| cell.length_ns.is_some() && from(&cell.disturbed) && to(&cell.measured))
        .filter(|cell| cell.disturbed != cell.measured)
        .collect();
    let has = |leak| cells.iter().any(|cell| cell.leak == leak);
    // Without a common CPU nothing can be measured on the same one.
    let known =
        |cell: &&&LeakEntry| cell.leak != Leak::NotKnown || !cell.cpus.is_empty() || !cell.inside.is_empty();
    let seen = [Leak::Yes, Leak::Sometimes, Leak::Weaker].into_iter().find(|leak| has(*leak));
    let leak = if let Some(seen) = seen {
        seen
    } else if has(Leak::No) && cells.iter().filter(known).all(|cell| cell.leak == Leak::No) {
        Leak::No
    } else if cells.iter().any(|cell| matches!(cell.leak, Leak::No | Leak::NotSeen))
        && cells.iter().filter(known).all(|cell| matches!(cell.leak, Leak::No | Leak::NotSeen))
    {
        Leak::NotSeen
    } else {
        Leak::NotKnown
    };
    (leak, cells)
}

/// A sentence about one direction.
fn way(from: &str, to: &str, (leak, cells): &(Leak, Vec<&LeakEntry>)) -> String {
    let what = cells.first().map_or("a fault", |cell| cell.disturbance.as_str());
    let (from, to) = (clean(from), clean(to));
    let at = |cell: &LeakEntry| if cell.same_cpu { "on the same CPU" } else { "on other CPUs" };
    let telling = cells.iter().find(|cell| cell.leak == *leak);
    let why = telling.map(|cell| format!(" {}: {}", at(cell), cell.reason)).unwrap_or_default();
    if telling.is_some_and(|cell| cell.doubt == Some(Doubt::NotMeasured)) {
        return format!(
            "whether {what} in {from} reaches {to} is unknown: it was not measured, for the reason below the \
                matrix"
        );
    }
    match leak {
        Leak::Yes => format!("{what} in {from} reaches {to}{why}"),
        Leak::Sometimes => format!("{what} in {from} sometimes reaches {to}{why}"),
        Leak::Weaker => format!("{what} in {from} reaches {to}, weaker{why}"),
        Leak::No => format!("{what} in {from} does not reach {to}{why}"),
        Leak::NotSeen => format!("{what} in {from} was not seen in {to}{why}"),
        Leak::NotKnown if cells.is_empty() => format!("{what} in {from} was not measured in {to}"),
        Leak::NotKnown => format!("whether {what} in {from} reaches {to} is unknown{why}"),
    }
}

/// limited: what happens inside gets out; good: it stays inside, but the host gets in; excellent: neither.
fn separated(own: &Technology, separation: Option<&SeparationEntry>, contents: &Contents) -> Said {
    let out = crosses(separation, |name| name == own.environment, |name| name == own.host);
    let into = crosses(separation, |name| name == own.host, |name| name == own.environment);
    let environments = &contents.plan.environment;
    let kind = environments.get(&own.environment).map(|of| of.kind.as_str());
    let peer = |name: &str| {
        name != own.environment
            && name != own.host
            && environments.get(name).map(|of| of.kind.as_str()) == kind
    };
    let peers = crosses(separation, |name| name == own.environment, peer);
    let word = if out.0.reaches() || peers.0.reaches() {
        "limited"
    } else {
        match (out.0, into.0) {
            (Leak::No, Leak::No) => "excellent",
            (Leak::No, into) if into.reaches() => "good",
            _ => NOT_KNOWN,
        }
    };
    let mut reasons = vec![way(&own.environment, &own.host, &out), way(&own.host, &own.environment, &into)];
    if !peers.1.is_empty() {
        reasons.push(way(&own.environment, "another of its kind", &peers));
    }
    let mut scenarios: Vec<String> = [&out, &into, &peers]
        .iter()
        .flat_map(|(_, cells)| cells.iter().map(|cell| cell.scenario.clone()))
        .collect();
    scenarios.dedup();
    Said { word, reasons, scenarios }
}

/// Independence can be denied, but never confirmed.
fn independent(contents: &Contents, own: &Technology, separation: Option<&SeparationEntry>) -> Said {
    let kind = contents.plan.environment.get(&own.environment).map_or("", |of| of.kind.as_str());
    let built = dependence(kind).and_then(Dependence::reason);
    let into = crosses(separation, |name| name == own.host, |name| name == own.environment);
    let mut reasons: Vec<String> =
        built.iter().map(|why| format!("by construction, not measured: {why}")).collect();
    if into.0.reaches() {
        reasons.insert(0, way(&own.host, &own.environment, &into));
    }
    let word = if reasons.is_empty() { NOT_KNOWN } else { NO };
    if reasons.is_empty() {
        reasons.push("a measurement can show a dependence, but not its absence".into());
    }
    let scenarios = into.1.iter().map(|cell| cell.scenario.clone()).collect();
    Said { word, reasons, scenarios }
}
