//! How far a fleet is, in words and as a document. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde::Serialize;
use tactus_model::bundle::Format;
use tactus_model::text::clean;

use crate::order::{FORMAT, Order};
use crate::row::{Row, State};

/// How far a fleet is.
#[derive(Debug, Serialize)]
pub struct Status<'a> {
    format: Format,
    id: &'a str,
    engine: &'a str,
    plan: &'a str,
    plan_sha256: &'a str,
    /// How many machines stand where.
    pub counts: Counts,
    machines: &'a [Row],
    /// Remarks that are worth a look, in sentences.
    remarks: Vec<String>,
}

/// How many machines stand where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// All.
    pub machines: usize,
    /// By the word of their state.
    #[serde(flatten)]
    pub by_state: BTreeMap<&'static str, usize>,
}

impl Counts {
    /// Of these rows.
    #[must_use]
    pub fn of(rows: &[Row]) -> Self {
        let mut by_state = BTreeMap::new();
        for row in rows {
            *by_state.entry(row.state.word()).or_default() += 1;
        }
        Self { machines: rows.len(), by_state }
    }

    /// How many are in a state.
    #[must_use]
    pub fn in_state(&self, state: State) -> usize {
        self.by_state.get(state.word()).copied().unwrap_or_default()
    }

    /// Whether every bundle is here.
    #[must_use]
    pub fn are_complete(&self) -> bool {
        self.in_state(State::Measured) == self.machines
    }

    /// In one line: `6 machines: 4 measured, 1 away, 1 waiting`.
    #[must_use]
    pub fn line(&self) -> String {
        let order = [
            State::Measured,
            State::Running,
            State::Waiting,
            State::Listed,
            State::Away,
            State::Failed,
            State::Refused,
        ];
        let parts: Vec<String> = order
            .into_iter()
            .filter(|state| self.in_state(*state) > 0)
            .map(|state| format!("{} {}", self.in_state(state), state.word()))
            .collect();
        let of =
            if self.machines == 1 { "1 machine".to_owned() } else { format!("{} machines", self.machines) };
        format!("{of}: {}", parts.join(", "))
    }
}

impl<'a> Status<'a> {
    /// Of a fleet's rows.
    #[must_use]
    pub fn new(order: &'a Order, rows: &'a [Row]) -> Self {
        Self {
            format: FORMAT,
            id: &order.id,
            engine: &order.engine,
            plan: &order.plan,
            plan_sha256: &order.plan_sha256,
            counts: Counts::of(rows),
            machines: rows,
            remarks: remarks(rows),
        }
    }

    /// As text: all machines, or those alone whose bundle is not here.
    #[must_use]
    pub fn text(&self, all: bool) -> String {
        let mut text = format!("{}\n", self.counts.line());
        let shown: Vec<&Row> =
            self.machines.iter().filter(|row| all || row.state != State::Measured).collect();
        let name = |row: &Row| clean(&row.machine);
        let width = shown.iter().map(|row| name(row).chars().count()).max().unwrap_or(0).min(40);
        for row in shown {
            let job = row.job.as_deref().map_or_else(|| "-".to_owned(), clean);
            let reason = row.reason.as_deref().map_or_else(String::new, clean);
            let line = format!("  {:width$}  {:8}  job {job:8}  {reason}", name(row), row.state.word());
            let _ = writeln!(text, "{}", line.trim_end());
        }
        for remark in &self.remarks {
            let _ = writeln!(text, "note: {}", clean(remark));
        }
        text
    }
}

/// Remarks: names that are the same machine, and different versions of tactus.
fn remarks(rows: &[Row]) -> Vec<String> {
    let mut by_id: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut versions = BTreeSet::new();
    for row in rows {
        let Some(bundle) = &row.bundle else { continue };
        versions.insert(bundle.tactus.as_str());
        if let Some(id) = &bundle.machine_id {
            by_id.entry(id).or_default().push(&row.machine);
        }
    }
    let mut said: Vec<String> = by_id
        .values()
        .filter(|names| names.len() > 1)
        .map(|names| {
            let more = names.len().saturating_sub(5);
            let shown = names.iter().take(5).copied().collect::<Vec<_>>().join(", ");
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!(
                "{shown}{rest} have one machine-id: one machine with several names, or copies of one image"
            )
        })
        .collect();
    if versions.len() > 1 {
        let versions: Vec<&str> = versions.into_iter().collect();
        said.push(format!("bundles of different versions of tactus: {}", versions.join(", ")));
    }
    said
}
