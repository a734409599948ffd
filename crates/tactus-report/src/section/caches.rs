//! Latencies by the caches that a CPU shares with the loaded one.

use tactus_model::bundle::{Contents, Row};
use tactus_model::caches::groups;
use tactus_model::document::{CacheCpuEntry, CachesEntry, Document};
use tactus_model::number::{float, whole};
use tactus_model::plan::{Page, Shown};
use tactus_model::{CpuSet, Evidence};

use super::Section;
use crate::part::{Cell, Head, Part, Reader, Table};
use crate::row::{figures, published, reason};
use crate::units::{NONE, clean, count, latency, latency_or_none};

/// The section.
pub struct Caches;
/// Its entry.
pub static ENTRY: Caches = Caches;

impl Section for Caches {
    fn name(&self) -> &'static str {
        "caches"
    }

    fn heading(&self) -> &'static str {
        "Latency by shared cache"
    }

    fn about(&self) -> &'static str {
        "The largest latency of each measured CPU, idle and loaded, by the caches that it shares with the \
         loaded CPUs. Misses of its last-level cache are shown if the processor counts them."
    }

    /// Only a page of a plan says which scenarios to compare.
    fn applies(&self, _: &Contents) -> bool {
        false
    }

    fn parts(&self, _: &Contents, _: Reader) -> Vec<Part> {
        Vec::new()
    }

    fn on_page(&self, contents: &Contents, page: &Page, shown: Shown) -> Vec<Part> {
        let entry = (shown == Shown::Caches).then(|| entry(contents, &page.scenarios)).flatten();
        entry.map(|entry| Part::Table(latencies(contents, &entry))).into_iter().collect()
    }

    fn fill(&self, contents: &Contents, document: &mut Document) {
        document.caches = caches(contents);
    }
}

/// Every study of shared caches that the pages of a plan show.
fn caches(contents: &Contents) -> Vec<CachesEntry> {
    let pages = contents.plan.page.iter().filter(|page| page.show.contains(&Shown::Caches));
    pages.filter_map(|page| entry(contents, &page.scenarios)).collect()
}

/// The runs of both: the first scenario is without the load, the second with it.
fn pair<'a>(contents: &'a Contents, scenarios: &[String]) -> [Vec<&'a Row>; 2] {
    [0, 1].map(|n| contents.rows.iter().filter(|row| scenarios.get(n) == Some(&row.result.name)).collect())
}

fn entry(contents: &Contents, scenarios: &[String]) -> Option<CachesEntry> {
    let [at_rest, loaded_runs] = pair(contents, scenarios);
    let (rest, with) = (*at_rest.first()?, *loaded_runs.first()?);
    let loaded = loaded(with);
    let groups = contents.facts.get(&with.result.environment_key()).map(|facts| groups(facts, &loaded));
    let published = published(&contents.plan, &with.result.name, &with.result.environment);
    let unmeasured = at_rest.iter().chain(&loaded_runs).filter(|row| figures(&row.result).is_none());
    let cpus: CpuSet = with.result.series().iter().map(|series| series.key.cpu).collect();
    let cpu = |(cpu, n): (u32, usize)| CacheCpuEntry {
        cpu,
        shares: groups.as_ref().and_then(|groups| groups.title(cpu)),
        rest_max_ns: max(&at_rest, cpu),
        with_max_ns: max(&loaded_runs, cpu),
        rest_misses_per_s: misses(&at_rest, cpu),
        with_misses_per_s: misses(&loaded_runs, cpu),
        published_max_ns: published.as_ref().and_then(|all| all.threads_ns.get(n)).map(|three| three[2]),
    };
    Some(CachesEntry {
        environment: with.result.environment.clone(),
        rest: rest.result.name.clone(),
        with: with.result.name.clone(),
        loaded: loaded.to_string(),
        evidence: with.result.evidence,
        obstacle: groups.as_ref().and_then(tactus_model::caches::Groups::obstacle),
        reasons: unmeasured
            .map(|row| {
                let why = reason(contents, &row.result).unwrap_or_default();
                format!("{}: not measured: {}", clean(&row.result.name), clean(&why))
            })
            .collect(),
        cpus: cpus.iter().zip(0..).map(cpu).collect(),
    })
}

/// The largest latency of all runs on a CPU, in ns.
fn max(runs: &[&Row], cpu: u32) -> Option<u64> {
    let all = runs.iter().flat_map(|row| row.result.series());
    let own = all.filter(|series| series.key.cpu == cpu);
    own.filter_map(|series| series.summary.max_ns).max()
}

/// Misses of the last-level cache on a CPU, per second of all runs; `None` where one did not count them.
fn misses(runs: &[&Row], cpu: u32) -> Option<u64> {
    let of = |row: &&Row| {
        let own = row.result.series().iter().filter(|series| series.key.cpu == cpu);
        own.filter_map(|series| series.counters.llc_misses).max()
    };
    let all: u64 = runs.iter().map(of).sum::<Option<u64>>()?;
    let seconds = runs.iter().map(|row| float(row.result.measured_ns)).sum::<f64>() / 1e9;
    (seconds > 0.0).then(|| whole(float(all) / seconds))
}

/// A table of every measured CPU: without the load, with it, and the caches that it shares with the loaded
/// CPUs.
fn latencies(contents: &Contents, entry: &CachesEntry) -> Table {
    let counted =
        entry.cpus.iter().any(|cpu| cpu.rest_misses_per_s.is_some() || cpu.with_misses_per_s.is_some());
    let mut head = vec!["CPU", "its caches", "max without", "max with"];
    if counted {
        head.extend(["misses/s without", "with"]);
    }
    head.push("published with");
    let row = |cpu: &CacheCpuEntry| {
        let number = |value: Option<u64>| value.map_or_else(|| NONE.into(), count);
        let mut cells = vec![
            cpu.cpu.to_string(),
            cpu.shares.clone().unwrap_or_else(|| "not known".into()),
            latency_or_none(cpu.rest_max_ns),
            latency_or_none(cpu.with_max_ns),
        ];
        if counted {
            cells.extend([number(cpu.rest_misses_per_s), number(cpu.with_misses_per_s)]);
        }
        cells.push(latency_or_none(cpu.published_max_ns));
        cells.into_iter().map(Cell::from).collect()
    };
    let mut remarks = entry.reasons.clone();
    remarks.extend(entry.obstacle.as_ref().map(|why| format!("Nothing to compare with: {why}.")));
    if counted {
        remarks.push(
            "misses: of the last-level cache, counted by the processor on that CPU for all tasks.".into(),
        );
    } else if entry.reasons.is_empty() {
        remarks.push(
            "Cache misses are not counted: there are no performance counters here, or they were not to be \
                used."
                .into(),
        );
    }
    let published = published(&contents.plan, &entry.with, &entry.environment);
    if let Some(published) = published.filter(|all| all.threads_ns.len() > entry.cpus.len()) {
        let maxima: Vec<String> = published.threads_ns.iter().map(|three| latency(float(three[2]))).collect();
        remarks.push(format!(
            "The document's maxima, CPU by CPU: {} ({}).",
            maxima.join(", "),
            clean(&published.source)
        ));
    }
    if entry.evidence == Some(Evidence::VirtualHost) {
        remarks.push(
            "As seen inside this virtual machine: other work on the same hardware shares its caches.".into(),
        );
    }
    let rows = entry.cpus.iter().map(row).collect();
    Table {
        remarks,
        ..Table::whole("Latency by shared cache", head.into_iter().map(Head::words).collect(), rows)
    }
}

/// The CPUs on which the row's environment is loaded.
fn loaded(row: &Row) -> CpuSet {
    let of = |table: &serde_json::Value| table.get("cpus")?.as_str()?.parse::<CpuSet>().ok();
    row.result.load.iter().filter_map(of).fold(CpuSet::default(), |all, cpus| all.or(&cpus))
}
