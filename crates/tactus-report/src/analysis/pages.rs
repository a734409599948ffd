//! The document page by page: its words, and beside them what was measured here.

use tactus_model::bundle::Contents;
use tactus_model::document::{LeakEntry, SeparationEntry, TechnologyEntry, WordEntry};
use tactus_model::event::RowStatus;
use tactus_model::number::float;
use tactus_model::plan::{Page, Shown};

use super::caches::caches;
use super::comparison::title;
use super::document::reason;
use super::published::published;
use super::separation::separation;
use super::tables::{Cell, Table};
use super::technologies::{about, technologies};
use crate::units::{NONE, clean, column, count, latency, latency_or_none};

/// A page with what was measured.
#[derive(Clone, Debug)]
pub struct Shows<'a> {
    /// The page of the plan.
    pub page: &'a Page,
    /// Its tables.
    pub tables: Vec<Table>,
}

/// Every page of the plan, in its order.
#[must_use]
pub fn pages(contents: &Contents) -> Vec<Shows<'_>> {
    contents.plan.page.iter().map(|page| Shows { page, tables: page_tables(contents, page) }).collect()
}

fn page_tables(contents: &Contents, page: &Page) -> Vec<Table> {
    let mut tables = Vec::new();
    for shown in &page.show {
        match shown {
            Shown::Threads => tables.extend(threads(contents, page)),
            Shown::Disturbance => tables.extend(disturbance(contents, page)),
            Shown::Separation => tables.extend(separation_tables(contents)),
            Shown::Caches => tables.extend(caches(contents, &page.scenarios)),
            Shown::Technologies => {
                tables.extend(technology_table(contents));
                tables.extend(reasons_table(contents));
            }
            Shown::Histogram | Shown::PerCore => {}
        }
    }
    tables
}

/// Every measuring thread, as cyclictest prints them, and the document's beside it.
fn threads(contents: &Contents, page: &Page) -> Vec<Table> {
    let rows = contents.rows.iter().filter(|row| page.scenarios.contains(&row.result.name));
    rows.map(|row| {
        let result = &row.result;
        let published = published(&contents.plan, &result.name, &result.environment);
        let evidence = result.evidence.map(|evidence| format!(", {evidence}")).unwrap_or_default();
        let title = format!("{}{evidence}", clean(&title(contents, result)));
        let mut remarks: Vec<String> = Vec::new();
        if let Some(why) = reason(contents, result) {
            let word = match result.status {
                RowStatus::Measured => "",
                RowStatus::Skipped => "skipped: ",
                RowStatus::Failed => "failed: ",
            };
            remarks.push(format!("{word}{}", clean(&why)));
        }
        let theirs = published.as_ref().map_or(&[][..], |all| all.threads_ns.as_slice());
        let three = |values: [Option<f64>; 3]| values.map(|value| column(value, 1));
        let cells = result.series.iter().enumerate().map(|(n, series)| {
            let s = &series.summary;
            let own = three([s.min_ns.map(float), s.mean_ns, s.max_ns.map(float)]);
            let key = &series.key;
            let head = [format!("T:{n}"), key.cpu.to_string(), key.priority.to_string(), count(s.cycles)];
            let mut cells: Vec<String> = head.into_iter().chain(own).collect();
            if !theirs.is_empty() {
                let three_of = theirs.get(n).map(|three| three.map(|ns| Some(float(ns)))).unwrap_or_default();
                cells.extend(three(three_of));
            }
            cells.into_iter().map(Cell::from).collect()
        });
        let rows: Vec<Vec<Cell>> = cells.collect();
        let mut head: Vec<String> =
            ["thread", "CPU", "P", "C", "Min", "Avg", "Max"].map(str::to_owned).to_vec();
        if !theirs.is_empty() && !rows.is_empty() {
            head.extend(["document Min", "Avg", "Max"].map(str::to_owned));
        }
        let more = theirs.get(result.series.len()..).unwrap_or_default();
        if let (Some(low), Some(high)) =
            (more.iter().map(|three| three[2]).min(), more.iter().map(|three| three[2]).max())
        {
            let more_words = if result.series.is_empty() { "" } else { " more" };
            remarks.push(format!(
                "The document has {}{more_words} threads, with maxima from {} to {}.",
                more.len(),
                latency(float(low)),
                latency(float(high))
            ));
        }
        if let Some(published) = &published {
            if theirs.is_empty() {
                let figures = [
                    ("minimum", published.min_ns),
                    ("mean", published.mean_ns),
                    ("maximum", published.max_ns),
                ];
                let said: Vec<String> = figures
                    .into_iter()
                    .filter_map(|(word, ns)| Some(format!("{word} {}", latency(float(ns?)))))
                    .collect();
                remarks.push(format!("Document: {} ({}).", said.join(", "), clean(&published.source)));
            } else {
                remarks.push(format!("In us. Document: {}.", clean(&published.source)));
            }
        }
        Table { title, head, rows, remarks, long: false }
    })
    .collect()
}

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
        (None, _) => "a CPU of its own".into(),
    }
}

/// What a disturbance in one environment does in all of them.
fn disturbance(contents: &Contents, page: &Page) -> Vec<Table> {
    let Some(entry) = separation(contents) else { return Vec::new() };
    let wanted = page.environment.as_deref().unwrap_or_default();
    let mut kinds: Vec<&str> = Vec::new();
    for cell in entry.cells.iter().filter(|cell| cell.disturbed == wanted) {
        if !kinds.contains(&cell.disturbance.as_str()) {
            kinds.push(&cell.disturbance);
        }
    }
    if let Some(why) = entry.absent.get(wanted) {
        let remarks = vec![format!("{} is not on this machine: {}", clean(wanted), clean(why))];
        let title = format!("Disturbance in {}", clean(wanted));
        return vec![Table { title, head: Vec::new(), rows: Vec::new(), remarks, long: false }];
    }
    kinds
        .into_iter()
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
                        clean(&cell.measured),
                        cpus(cell),
                        latency_or_none(cell.rest_max_ns),
                        latency_or_none(cell.with_max_ns),
                        cell.leak.to_string(),
                        theirs.unwrap_or_else(|| NONE.into()),
                    ]
                    .map(Cell::from)
                    .to_vec()
                })
                .collect();
            let head = ["measured in", "on", "max at rest", "max with", "reaches it", "document's max"];
            let mut remarks: Vec<String> = Vec::new();
            let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
            for cell in own().filter(|cell| cell.rest_max_ns.is_none() && !cell.same_cpu) {
                match reasons.iter_mut().find(|(why, _)| *why == cell.reason) {
                    Some((_, places)) => places.push(clean(&cell.measured)),
                    None => reasons.push((&cell.reason, vec![clean(&cell.measured)])),
                }
            }
            remarks.extend(reasons.into_iter().map(|(why, places)| format!("{}: {why}", places.join(", "))));
            Table { title, head: head.map(str::to_owned).to_vec(), rows, remarks, long: false }
        })
        .collect()
}

/// Id of a cell on a page.
fn id(cell: &LeakEntry) -> String {
    use tactus_model::bundle::slug;
    format!("leak-{}-{}-{}", slug(&cell.disturbance), slug(&cell.disturbed), slug(&cell.measured))
}

/// A table of words for each disturbance, and one of all numbers behind them.
#[must_use]
pub fn separation_tables(contents: &Contents) -> Vec<Table> {
    let Some(entry) = separation(contents) else { return Vec::new() };
    let mut kinds: Vec<&str> = Vec::new();
    for cell in &entry.cells {
        if !kinds.contains(&cell.disturbance.as_str()) {
            kinds.push(&cell.disturbance);
        }
    }
    let mut tables: Vec<Table> = kinds.iter().map(|kind| words(contents, &entry, kind)).collect();
    if tables.is_empty() {
        let title = "Separation".to_owned();
        tables.push(Table {
            title,
            head: Vec::new(),
            rows: Vec::new(),
            remarks: absent(&entry),
            long: false,
        });
        return tables;
    }
    tables.push(numbers(&entry));
    tables
}

fn absent(entry: &SeparationEntry) -> Vec<String> {
    entry.absent.iter().map(|(name, why)| format!("{}: not here: {}", clean(name), clean(why))).collect()
}

/// The environments of a separation that were there.
fn present(entry: &SeparationEntry) -> Vec<&str> {
    let there = entry.environments.iter().filter(|name| !entry.absent.contains_key(*name));
    there.map(String::as_str).collect()
}

/// Two latencies, the unit once where both have it: `50.1/38.1 ms`.
fn maxima(with: u64, rest: u64) -> String {
    let (with, rest) = (latency(float(with)), latency(float(rest)));
    match (with.rsplit_once(' '), rest.rsplit_once(' ')) {
        (Some((value, one)), Some((_, other))) if one == other => format!("{value}/{rest}"),
        _ => format!("{with}/{rest}"),
    }
}

fn words(contents: &Contents, entry: &SeparationEntry, kind: &str) -> Table {
    let names = present(entry);
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
        let maxima = match (cell.rest_max_ns, cell.with_max_ns) {
            (Some(rest), Some(with)) => vec![maxima(with, rest)],
            _ => Vec::new(),
        };
        std::iter::once(format!("{at}: {}", cell.leak)).chain(maxima).collect::<Vec<String>>()
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
                let mut lines: Vec<String> = cells.iter().flat_map(|cell| half(cell)).collect();
                if lines.is_empty() {
                    lines.push(NONE.into());
                }
                let link = cells.first().map(|cell| id(cell));
                Cell { lines, id: None, link }
            });
            std::iter::once(Cell::from(head)).chain(cells).collect()
        })
        .collect();
    let emulated = entry.cells.iter().any(|cell| cell.evidence == Some(tactus_model::Evidence::Emulated));
    let mut remarks = vec![format!(
        "Rows: where the {kind} is; columns: where it is measured, on the same CPU of the machine and on others. \
         Maximum with/at rest. On the diagonal it is seen where it is made: without that the others of its row \
         prove nothing."
    )];
    remarks.push(format!(
        "yes: at its size, as often as it was made; partly: smaller or rarer; no: not seen, and it would have been. \
         Exact rank-sum test on the maxima of slots of time; the chance of a false leak is at most {:.0} % over all \
         cells together.",
        entry.error * 100.0
    ));
    if emulated {
        remarks.push(
            "Some of it is emulated: whether a path is there is a fact, its latencies say nothing about hardware.".into(),
        );
    }
    let environments = &contents.plan.environment;
    let kinds = names.iter().filter_map(|name| Some((name, environments.get(*name)?)));
    let kinds: Vec<String> = kinds
        .filter(|(name, of)| of.kind != **name)
        .map(|(name, of)| format!("{}: {}", clean(name), clean(&of.kind)))
        .collect();
    if !kinds.is_empty() {
        remarks.push(kinds.join("; "));
    }
    remarks.extend(absent(entry));
    Table {
        title: format!("Whom does {kind} reach?"),
        head: std::iter::once(format!("{kind} in")).chain(names.iter().map(|name| clean(name))).collect(),
        rows,
        remarks,
        long: false,
    }
}

fn numbers(entry: &SeparationEntry) -> Table {
    let mut known: Vec<String> = Vec::new();
    let rows = entry
        .cells
        .iter()
        .map(|cell| {
            let own = id(cell);
            let first = !known.contains(&own);
            known.push(own.clone());
            let seen = match (cell.half, cell.half_at_rest) {
                (Some(half), Some(rest)) => vec![format!("{rest:.0}"), half.to_string()],
                _ => vec![NONE.into()],
            };
            let evidence = cell.evidence.map(|evidence| evidence.to_string());
            let mut cells: Vec<Cell> = vec![
                vec![format!("{} in {}", cell.disturbance, clean(&cell.disturbed)), place(cell)].into(),
                vec![clean(&cell.measured), cpus(cell)].into(),
                vec![latency_or_none(cell.rest_max_ns), latency_or_none(cell.with_max_ns)].into(),
                seen.into(),
                std::iter::once(cell.leak.to_string()).chain(evidence).collect::<Vec<_>>().into(),
                cell.reason.clone().into(),
            ];
            cells[0].id = first.then_some(own);
            cells
        })
        .collect();
    Table {
        title: "The numbers behind the words".into(),
        head: ["disturbance", "measured in", "max at rest, with", "half its size", "leak", "why"]
            .map(str::to_owned)
            .to_vec(),
        rows,
        remarks: vec![
            "half its size: latencies of at least half the length of the fault, at rest and with it.".into(),
        ],
        long: true,
    }
}

/// The document's table, and what the measurements say.
#[must_use]
pub fn technology_table(contents: &Contents) -> Option<Table> {
    let all = technologies(contents);
    let first = all.first()?;
    let column_head = |own: &TechnologyEntry| {
        let evidence = own.evidence.map(|evidence| format!(", {evidence}")).unwrap_or_default();
        format!("{} ({}{evidence})", clean(&own.name), clean(&own.kind))
    };
    let head = std::iter::once(String::new()).chain(all.iter().map(column_head)).collect();
    let cell = |own: &TechnologyEntry, word: &WordEntry| {
        let mut lines = vec![word.word.clone()];
        lines.extend(word.published.as_ref().map(|text| format!("document: {}", clean(text))));
        lines.extend(word.differs.filter(|differs| *differs).map(|_| "differs".to_owned()));
        Cell { lines, id: None, link: Some(why(own, word)) }
    };
    let rows = (0..first.words.len())
        .map(|n| {
            let label = Cell::from(about(first.words[n].row).to_owned());
            std::iter::once(label).chain(all.iter().map(|own| cell(own, &own.words[n]))).collect()
        })
        .collect();
    let remarks =
        vec!["The rules behind the words: docs/design/separation.md; below, the numbers behind each.".into()];
    Some(Table { title: "Comparison of technologies".into(), head, rows, remarks, long: false })
}

/// Id of the reasons of a word.
fn why(own: &TechnologyEntry, word: &WordEntry) -> String {
    use tactus_model::bundle::slug;
    format!("why-{}-{}", slug(&own.name), slug(about(word.row)))
}

/// The numbers behind each word, one row each.
#[must_use]
pub fn reasons_table(contents: &Contents) -> Option<Table> {
    let all = technologies(contents);
    if all.is_empty() {
        return None;
    }
    let separation = separation(contents);
    let leak = |own: &TechnologyEntry, scenario: &String| {
        let cells = separation.iter().flat_map(|all| &all.cells);
        let of = |cell: &&LeakEntry| {
            cell.scenario == *scenario
                && (cell.disturbed == own.environment || cell.measured == own.environment)
                && cell.disturbed != cell.measured
        };
        cells.into_iter().find(of).map(id)
    };
    let mut rows = Vec::new();
    for own in &all {
        for word in &own.words {
            let mut first = Cell::from(vec![clean(&own.name), about(word.row).to_owned()]);
            first.id = Some(why(own, word));
            let link = word.scenarios.iter().find_map(|name| leak(own, name)).or_else(|| {
                let row = contents.rows.iter().position(|row| {
                    word.scenarios.contains(&row.result.name) && row.result.environment == own.environment
                });
                row.map(|n| format!("row-{n}"))
            });
            let said = Cell { lines: vec![word.word.clone()], id: None, link };
            rows.push(vec![first, said, Cell::from(word.reasons.clone())]);
        }
    }
    Some(Table {
        title: "Why these words".into(),
        head: ["about", "word", "numbers behind it"].map(str::to_owned).to_vec(),
        rows,
        remarks: Vec::new(),
        long: false,
    })
}
