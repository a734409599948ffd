//! The environments that disturbances reach, as tables: a page of one disturbance, the matrix of all of them,
//! and the numbers behind it.

use std::collections::BTreeSet;

use tactus_model::Evidence;
use tactus_model::bundle::Contents;
use tactus_model::document::{Doubt, LeakEntry, SeparationEntry};
use tactus_model::number::float;
use tactus_model::plan::Page;

use super::leak::separation;
use super::leak_word::{anchor, known};
use crate::part::{Cell, Head, Length, Table};
use crate::row::published;
use crate::units::{NONE, clean, latency, latency_or_none};

/// The CPUs of a cell: the machine's, and the environment's own numbers where they differ.
fn cpus(cell: &LeakEntry) -> String {
    match (cell.cpus.as_str(), cell.inside.as_str()) {
        ("", "") => NONE.into(),
        ("", inside) => format!("its own CPU {inside}"),
        (outside, inside) if outside == inside => format!("CPU {outside}"),
        (outside, inside) => format!("CPU {outside} ({inside} inside)"),
    }
}

/// Where the disturbance was.
fn place(cell: &LeakEntry) -> String {
    match (cell.disturbed_cpu, cell.disturbed_inside) {
        (Some(cpu), Some(inside)) if cpu != inside => format!("CPU {cpu} ({inside} inside)"),
        (Some(cpu), _) => format!("CPU {cpu}"),
        (None, _) => "a separate CPU".into(),
    }
}

/// The effects of a disturbance in one environment on all of them.
pub fn disturbance(contents: &Contents, page: &Page) -> Vec<Table> {
    let Some(entry) = separation(contents) else { return Vec::new() };
    let wanted = page.environment.as_deref().unwrap_or_default();
    if let Some(why) = entry.absent.get(wanted) {
        let remarks = vec![format!("{} is not on this machine: {}", clean(wanted), clean(why))];
        let title = format!("Disturbance in {}", clean(wanted));
        return vec![Table { remarks, ..Table::whole(title, Vec::new(), Vec::new()) }];
    }
    let asked =
        |kind: &&str| entry.cells.iter().any(|cell| cell.disturbed == wanted && cell.disturbance == **kind);
    entry
        .disturbances()
        .into_iter()
        .filter(asked)
        .map(|kind| {
            let own =
                || entry.cells.iter().filter(|cell| cell.disturbed == wanted && cell.disturbance == kind);
            let title = match own().find_map(|cell| Some((cell.length_ns?, place(cell)))) {
                Some((ns, at)) => format!("{kind} of {} in {}, {at}", latency(float(ns)), clean(wanted)),
                None => {
                    let at = own().next().map(place).unwrap_or_default();
                    format!("{kind} in {}, {at}", clean(wanted))
                }
            };
            let rows = own()
                .filter(|cell| !cell.inside.is_empty() || cell.same_cpu)
                .map(|cell| {
                    let theirs = published(&contents.plan, &cell.scenario, &cell.measured);
                    let theirs = theirs.filter(|_| cell.same_cpu).map(|all| {
                        let maxima = all.threads_ns.iter().map(|three| three[2]);
                        match (maxima.clone().min(), all.max_ns) {
                            (Some(low), Some(high)) if low != high => {
                                format!("{} to {}", latency(float(low)), latency(float(high)))
                            }
                            _ => latency_or_none(all.max_ns),
                        }
                    });
                    [
                        if cell.measured == cell.disturbed && cell.same_cpu {
                            format!("{} (made here)", clean(&cell.measured))
                        } else {
                            clean(&cell.measured)
                        },
                        cpus(cell),
                        latency_or_none(cell.rest_max_ns),
                        latency_or_none(cell.with_max_ns),
                        known(cell),
                        theirs.unwrap_or_else(|| NONE.into()),
                    ]
                    .map(Cell::from)
                    .to_vec()
                })
                .collect::<Vec<Vec<Cell>>>();
            let mut head = vec!["measured in", "on", "max at rest", "max with", "reaches it"];
            let (mut rows, last) = (rows, head.len());
            if rows.iter().any(|cells| cells[last].lines[0] != NONE) {
                head.push("document's max");
            } else {
                rows.iter_mut().for_each(|cells| cells.truncate(last));
            }
            let remarks = refusals(&own().collect::<Vec<_>>());
            Table { remarks, ..Table::whole(title, head.into_iter().map(Head::words).collect(), rows) }
        })
        .collect()
}

/// Why disturbances were not measured, each reason once.
fn refusals(cells: &[&LeakEntry]) -> Vec<String> {
    let all = |of: &LeakEntry| {
        let own = |cell: &&LeakEntry| cell.disturbance == of.disturbance && cell.disturbed == of.disturbed;
        cells.iter().copied().filter(own).all(|cell| cell.reason == of.reason)
    };
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for cell in cells.iter().filter(|cell| cell.doubt == Some(Doubt::NotMeasured)) {
        let why = clean(&cell.reason).replacen(&format!(": {}: ", clean(&cell.disturbed)), ": ", 1);
        let mut place = format!("{} in {}", clean(&cell.disturbance), clean(&cell.disturbed));
        if !all(cell) {
            place = format!("{place}, seen from {}", clean(&cell.measured));
        }
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, places)) if places.contains(&place) => {}
            Some((_, places)) => places.push(place),
            None => reasons.push((why, vec![place])),
        }
    }
    reasons.into_iter().map(|(why, places)| format!("{}: {why}", places.join(", "))).collect()
}

/// A table of words for each disturbance, and one of all numbers behind them.
#[must_use]
pub fn separation_tables(contents: &Contents) -> Vec<Table> {
    let Some(entry) = separation(contents) else { return Vec::new() };
    let mut tables: Vec<Table> = entry.disturbances().iter().map(|kind| words(&entry, kind)).collect();
    if tables.is_empty() {
        tables.push(Table { remarks: absent(&entry), ..Table::whole("Separation", Vec::new(), Vec::new()) });
        return tables;
    }
    // Remarks on all of them stand below the last one.
    if let Some(last) = tables.last_mut() {
        last.remarks.extend(legend(contents, &entry));
    }
    tables.push(numbers(&entry));
    tables
}

fn absent(entry: &SeparationEntry) -> Vec<String> {
    entry.absent.iter().map(|(name, why)| format!("{}: not here: {}", clean(name), clean(why))).collect()
}

/// Two latencies, the unit once where both have it: `50.1/38.1 ms`.
fn maxima(with: u64, rest: u64) -> String {
    let (with, rest) = (latency(float(with)), latency(float(rest)));
    match (with.rsplit_once(' '), rest.rsplit_once(' ')) {
        (Some((value, one)), Some((_, other))) if one == other => format!("{value}/{rest}"),
        _ => format!("{with}/{rest}"),
    }
}

/// The meaning of the doubts in a table; `None` without any.
fn doubts<'a>(cells: impl Iterator<Item = &'a LeakEntry>) -> Option<String> {
    let unsure = |doubt: &Doubt| !matches!(doubt, Doubt::NotMeasured | Doubt::NoSuchCpu);
    let doubts: BTreeSet<Doubt> = cells.filter_map(|cell| cell.doubt).filter(unsure).collect();
    let meanings: Vec<String> =
        doubts.iter().map(|doubt| format!("{}: {}", doubt.word(), doubt.meaning())).collect();
    (!meanings.is_empty()).then(|| format!("?: unknown. {}.", meanings.join("; ")))
}

/// Remarks on the tables of all disturbances.
fn legend(contents: &Contents, entry: &SeparationEntry) -> Vec<String> {
    let mut remarks = vec![
        "Rows: where the disturbance is made; columns: where it is measured, on the same CPU of the machine \
         and on others. Maximum with/at rest. The diagonal shows whether it is seen where it is made: if \
         not, the rest of its row proves nothing."
            .to_owned(),
    ];
    remarks.push(format!(
        "yes: at its size, each time; sometimes: at its size, not each time; weaker: smaller; no: not seen; \
         not seen: the same, in too few injections for a no. The number after <= limits how many injections \
         may still be seen (95 %). The moments were chosen at random, and what is measured then is compared \
         with the rest of the same period. The chance of a false leak is at most {:.0} % over all cells \
         together.",
        entry.error * 100.0
    ));
    remarks.extend(doubts(entry.cells.iter()));
    if entry.cells.iter().any(|cell| cell.evidence == Some(Evidence::Emulated)) {
        remarks.push(
            "Some of it is emulated: it shows whether a path exists, and its latencies say nothing about \
                hardware."
                .into(),
        );
    }
    let environments = &contents.plan.environment;
    let kinds: Vec<String> = entry
        .present()
        .into_iter()
        .filter_map(|name| Some((name, environments.get(name)?)))
        .filter(|(name, of)| of.kind != *name)
        .map(|(name, of)| {
            let outer = of.inside.iter().map(|outer| format!(" in {}", clean(outer)));
            format!("{}: {}{}", clean(name), clean(&of.kind), outer.collect::<String>())
        })
        .collect();
    if !kinds.is_empty() {
        remarks.push(kinds.join("; "));
    }
    remarks.extend(absent(entry));
    remarks
}

/// The environments that a disturbance reaches: the matrix in words.
fn words(entry: &SeparationEntry, kind: &str) -> Table {
    let names = entry.present();
    let of = |disturbed: &str, measured: &str, same: bool| {
        entry.cells.iter().find(|cell| {
            cell.disturbance == kind
                && cell.disturbed == disturbed
                && cell.measured == measured
                && cell.same_cpu == same
        })
    };
    let half = |cell: &LeakEntry| {
        let at = if cell.same_cpu { "same" } else { "other" };
        let word = match cell.doubt {
            Some(Doubt::NoSuchCpu) => NONE.to_owned(),
            Some(doubt) => format!("? {}", doubt.word()),
            None => known(cell),
        };
        let maxima = match (cell.rest_max_ns, cell.with_max_ns) {
            (Some(rest), Some(with)) => vec![maxima(with, rest)],
            _ => Vec::new(),
        };
        std::iter::once(format!("{at}: {word}")).chain(maxima).collect::<Vec<String>>()
    };
    let rows = names
        .iter()
        .map(|disturbed| {
            let first = of(disturbed, disturbed, true);
            let mut head = vec![clean(disturbed)];
            head.extend(first.map(place));
            head.extend(first.and_then(|cell| cell.length_ns).map(|ns| latency(float(ns))));
            let cells = names.iter().map(|measured| {
                let cells: Vec<&LeakEntry> =
                    [true, false].iter().filter_map(|same| of(disturbed, measured, *same)).collect();
                let measured = cells.iter().any(|cell| cell.doubt != Some(Doubt::NotMeasured));
                let lines: Vec<String> = if measured {
                    cells.iter().flat_map(|cell| half(cell)).collect()
                } else {
                    vec![Doubt::NotMeasured.word().into()]
                };
                let link = cells.first().map(|cell| anchor(cell));
                Cell { link, ..Cell::from(lines) }
            });
            std::iter::once(Cell::from(head)).chain(cells).collect()
        })
        .collect();
    let remarks = refusals(&entry.cells.iter().filter(|cell| cell.disturbance == kind).collect::<Vec<_>>());
    let head = std::iter::once(format!("{kind} in")).chain(names.iter().map(|name| clean(name)));
    let title = format!("Interference matrix: {kind}");
    Table { remarks, length: Length::Drawn, ..Table::whole(title, head.map(Head::words).collect(), rows) }
}

/// The numbers behind all words.
fn numbers(entry: &SeparationEntry) -> Table {
    let mut named: Vec<String> = Vec::new();
    let mut refused: Vec<&str> = Vec::new();
    for cell in entry.cells.iter().filter(|cell| cell.doubt == Some(Doubt::NotMeasured)) {
        if !refused.contains(&cell.reason.as_str()) {
            refused.push(&cell.reason);
        }
    }
    let rows = entry
        .cells
        .iter()
        .map(|cell| {
            let own = anchor(cell);
            let first = !named.contains(&own);
            named.push(own.clone());
            let seen = match (cell.half, cell.half_at_rest) {
                (Some(half), Some(rest)) => vec![format!("{rest:.0}"), half.to_string()],
                _ => vec![NONE.into()],
            };
            let evidence = cell.evidence.map(|evidence| evidence.to_string());
            let reason = match refused.iter().position(|why| *why == cell.reason) {
                Some(n) => format!("not measured [{}]", n + 1),
                None => cell.reason.clone(),
            };
            let mut cells: Vec<Cell> = vec![
                vec![format!("{} in {}", cell.disturbance, clean(&cell.disturbed)), place(cell)].into(),
                vec![clean(&cell.measured), cpus(cell)].into(),
                vec![latency_or_none(cell.rest_max_ns), latency_or_none(cell.with_max_ns)].into(),
                seen.into(),
                std::iter::once(known(cell)).chain(evidence).collect::<Vec<_>>().into(),
                reason.into(),
            ];
            cells[0].id = first.then_some(own);
            cells
        })
        .collect();
    let mut remarks = vec![
        "half its size: injections with a latency of at least half the length of the fault; how many chance alone would \
         give, and how many there are."
            .to_owned(),
    ];
    remarks.extend(refused.iter().enumerate().map(|(n, why)| format!("[{}] {}", n + 1, clean(why))));
    Table {
        title: "The numbers behind the words".into(),
        head: Head::all(["disturbance", "measured in", "max at rest, with", "half its size", "leak", "why"]),
        rows,
        remarks,
        length: Length::Behind,
    }
}
