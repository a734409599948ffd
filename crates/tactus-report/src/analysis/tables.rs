//! The tables that a plan asks for, as every format shows them: cells of a few short lines.

use tactus_model::bundle::Contents;
use tactus_model::document::{CellEntry, MatrixEntry, SystemEntry};
use tactus_model::number::float;
use tactus_model::plan::{FigureKind, Shown};

use super::injected::injected;
use super::leaks::separation_tables;
use super::matrix::{asked, described, matrices, state};
use super::partitions::partition_table;
use super::systems::systems;
use super::words::{reasons_table, technology_table};
use crate::units::{NONE, clean, latency};

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its heading.
    pub title: String,
    /// What each column holds.
    pub head: Vec<String>,
    /// Its cells, row by row.
    pub rows: Vec<Vec<Cell>>,
    /// What a reader must know, a sentence each.
    pub remarks: Vec<String>,
    /// How much of it a terminal is given.
    pub length: Length,
}

/// How long a table is, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// It is read from its beginning to its end.
    Whole,
    /// It is long, and only for those who look for something in it.
    Long,
    /// What stands behind a table that a terminal has: there it is only named.
    Behind,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Its lines; the first one is what it says.
    pub lines: Vec<String>,
    /// What a link may lead to it by.
    pub id: Option<String>,
    /// What its first line leads to.
    pub link: Option<String>,
}

impl From<Vec<String>> for Cell {
    fn from(lines: Vec<String>) -> Self {
        Self { lines, id: None, link: None }
    }
}

impl From<String> for Cell {
    fn from(line: String) -> Self {
        vec![line].into()
    }
}

/// Every table that the plan asks for beside its pages, in this order: maxima, systems, interrupt threads,
/// separation, technologies.
#[must_use]
pub fn tables(contents: &Contents) -> Vec<Table> {
    let mut tables: Vec<Table> = matrices(contents).iter().map(|entry| matrix(contents, entry)).collect();
    let systems = systems(contents);
    if let Some(figure) = asked(contents, FigureKind::Threads).next()
        && !systems.is_empty()
    {
        tables.push(timers(&figure.title, &systems));
        tables.extend(systems.iter().filter(|system| system.threads_known).map(irq_threads));
    }
    let on_a_page = |shown: Shown| contents.plan.page.iter().any(|page| page.show.contains(&shown));
    if !on_a_page(Shown::Separation) {
        tables.extend(separation_tables(contents));
    }
    if !on_a_page(Shown::Technologies) {
        tables.extend(technology_table(contents));
        tables.extend(reasons_table(contents));
    }
    tables.extend(partition_table(contents));
    tables.extend(injected(contents));
    tables
}

fn matrix(contents: &Contents, entry: &MatrixEntry) -> Table {
    let (mut hosts, mut environments): (Vec<Option<&str>>, Vec<&str>) = (Vec::new(), Vec::new());
    for cell in &entry.cells {
        if !hosts.contains(&cell.host.as_deref()) {
            hosts.push(cell.host.as_deref());
        }
        if !environments.contains(&cell.environment.as_str()) {
            environments.push(&cell.environment);
        }
    }
    let mut reasons: Vec<String> = Vec::new();
    let rows = hosts
        .iter()
        .map(|host| {
            let own = |environment: &&str| {
                let cells: Vec<&CellEntry> = entry
                    .cells
                    .iter()
                    .filter(|cell| cell.host.as_deref() == *host && cell.environment == *environment)
                    .collect();
                match cells.as_slice() {
                    [] => vec!["not asked for".to_owned()],
                    cells => cells.iter().flat_map(|cell| lines(cell, &mut reasons)).collect(),
                }
            };
            let cells: Vec<Vec<String>> = environments.iter().map(own).collect();
            std::iter::once(vec![clean(state(*host))]).chain(cells).map(Cell::from).collect()
        })
        .collect();
    let name = |environment: &&str| {
        let of = contents.plan.environment.get(*environment);
        if of.is_some_and(|of| of.kind == "host") { "host alone".to_owned() } else { clean(environment) }
    };
    let guests: Vec<String> = environments
        .iter()
        .filter_map(|environment| Some((environment, contents.plan.environment.get(*environment)?)))
        .filter(|(_, of)| of.kind != "host")
        .map(|(environment, of)| format!("{}: {}", clean(environment), clean(&described(of))))
        .collect();
    let mut remarks = if guests.is_empty() { Vec::new() } else { vec![format!("{}.", guests.join("; "))] };
    remarks.extend(system_cores(entry));
    remarks.extend(reasons.iter().enumerate().map(|(n, reason)| format!("[{}] {reason}", n + 1)));
    Table {
        title: clean(&entry.title),
        head: std::iter::once("host profile".to_owned()).chain(environments.iter().map(name)).collect(),
        rows,
        remarks,
        length: Length::Whole,
    }
}

/// A cell of the matrix; why it has no number goes into `reasons`.
fn lines(cell: &CellEntry, reasons: &mut Vec<String>) -> Vec<String> {
    let mut lines = match (cell.max_ns, cell.evidence) {
        (Some(max), Some(evidence)) => vec![latency(float(max)), evidence.to_string()],
        (Some(max), None) => vec![latency(float(max))],
        (None, _) => {
            let reason = clean(cell.reason.as_deref().unwrap_or("no reason was kept"));
            let at = reasons.iter().position(|known| *known == reason).unwrap_or_else(|| {
                reasons.push(reason);
                reasons.len() - 1
            });
            vec![format!("not measured [{}]", at + 1)]
        }
    };
    lines.extend(cell.published_max_ns.map(|max| format!("published {}", latency(float(max)))));
    lines
}

/// Which cores were left out, so that nobody takes the maxima for those of the whole system.
fn system_cores(entry: &MatrixEntry) -> Option<String> {
    let mut left: Vec<String> = Vec::new();
    for cell in entry.cells.iter().filter(|cell| cell.max_ns.is_some() && !cell.left_out.is_empty()) {
        let words = format!("CPU {} of {}", cell.left_out, clean(&cell.environment));
        if !left.contains(&words) {
            left.push(words);
        }
    }
    (!left.is_empty())
        .then(|| format!("The system cores keep house; they were not measured: {}.", left.join(", ")))
}

fn timers(title: &str, systems: &[SystemEntry]) -> Table {
    let words = |value: &Option<String>| vec![value.as_deref().map_or_else(|| NONE.into(), clean)];
    let row = |system: &SystemEntry| {
        let rt = match system.preempt_rt {
            Some(true) => "PREEMPT_RT",
            Some(false) => "not PREEMPT_RT",
            None => NONE,
        };
        let mut kernel = words(&system.kernel);
        kernel.push(rt.to_owned());
        [
            place(&system.place),
            kernel,
            words(&system.microcode),
            words(&system.clockevent),
            words(&system.tsc_deadline),
            words(&system.sched_rt_runtime_us),
        ]
        .map(Cell::from)
        .to_vec()
    };
    Table {
        title: clean(title),
        head: ["place", "kernel", "microcode", "timer", "TSC-deadline", "RT runtime"]
            .map(str::to_owned)
            .to_vec(),
        rows: systems.iter().map(row).collect(),
        remarks: vec![
            "lapic-deadline is the TSC-deadline timer; an erratum of old microcode turns it off with a message. \
In a guest the microcode is what the hypervisor says. RT runtime is sched_rt_runtime_us, the microseconds of a \
second that real-time threads may run; -1: all."
                .into(),
        ],
        length: Length::Whole,
    }
}

/// The environment, and the state of the machine below it.
fn place(place: &str) -> Vec<String> {
    match place.rsplit_once('@') {
        Some((environment, host)) => vec![clean(environment), format!("host {}", clean(state(Some(host))))],
        None => vec![clean(place)],
    }
}

fn irq_threads(system: &SystemEntry) -> Table {
    let row = |thread: &tactus_model::document::ThreadEntry| {
        [
            thread.tid.to_string(),
            thread.policy.clone(),
            thread.priority.to_string(),
            clean(&thread.cpus),
            clean(&thread.name),
        ]
        .map(Cell::from)
        .to_vec()
    };
    let none = "This kernel has no interrupt threads: interrupts are handled where they arrive.".to_owned();
    Table {
        title: format!("Interrupt threads: {}", place(&system.place).join(", ")),
        head: ["tid", "policy", "priority", "CPUs", "name"].map(str::to_owned).to_vec(),
        rows: system.irq_threads.iter().map(row).collect(),
        remarks: if system.irq_threads.is_empty() { vec![none] } else { Vec::new() },
        length: Length::Long,
    }
}
