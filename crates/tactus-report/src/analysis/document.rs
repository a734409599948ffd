//! The document of `tactus show --json`.

use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::document::{
    AttributionEntry, AuditEntry, Document, EffectEntry, Entry, FoundEntry, ProofEntry, SeriesEntry,
};
use tactus_model::event::{RowStatus, RunStatus};
use tactus_model::finding::{Audit, State};
use tactus_model::latency::Summary;
use tactus_model::number::float;

use super::attribution::attribution;
use super::caches::caches;
use super::control::control;
use super::matrix::matrices;
use super::partitions::partitions;
use super::proof::{Answer, Proven, Worth, proofs};
use super::published::published;
use super::separation::separation;
use super::systems::systems;
use super::technologies::technologies;
use super::verdict::{ended_early, verdict};
use crate::units::duration;

/// A run in numbers: one entry per row, in the plan's order.
#[must_use]
pub fn document(contents: &Contents) -> Document {
    Document {
        format: contents.manifest.format,
        status: contents.manifest.status,
        scenarios: contents.rows.iter().map(|row| entry(contents, row)).collect(),
        proofs: proofs(contents).into_iter().map(proof).collect(),
        matrices: matrices(contents),
        systems: systems(contents),
        separation: separation(contents),
        technologies: technologies(contents),
        partitions: partitions(contents),
        caches: caches(contents),
        audits: contents.audits.iter().map(|(name, audit)| audited(name, audit)).collect(),
    }
}

fn entry(contents: &Contents, row: &Row) -> Entry {
    let result = &row.result;
    Entry {
        name: result.name.clone(),
        environment: result.environment.clone(),
        host: result.host.clone(),
        kind: result.kind.clone(),
        inside: inside(contents, &result.environment),
        evidence: result.evidence,
        measurement: result.measurement.kind().into(),
        load: result.load.clone(),
        fault: result.fault.clone(),
        status: result.status,
        ended: result.ended,
        reason: reason(contents, result),
        duration_s: float(result.measured_ns) / 1e9,
        series: result
            .series()
            .iter()
            .map(|series| SeriesEntry {
                id: series.key.id(&result.environment),
                key: series.key.clone(),
                summary: series.summary.clone(),
            })
            .collect(),
        all: figures(result).cloned(),
        values: None,
        control: control(result),
        attribution: attribution(result).map(|found| AttributionEntry {
            of: found.of,
            host: found.host,
            largest_ns: found.largest_ns,
            waited_ns: found.waited_ns,
        }),
        published: published(&contents.plan, &result.name, &result.environment),
        verdict: verdict(row),
    }
}

fn proof(proven: Proven) -> ProofEntry {
    let (reason, effects) = match proven.answer {
        Answer::None(reason) => (Some(reason), Vec::new()),
        Answer::Effects(effects) => (None, effects),
    };
    let effect = |worth: Worth| EffectEntry {
        quantity: worth.quantity.into(),
        without_ns: worth.without_ns,
        with_ns: worth.with_ns,
        effect_ns: worth.effect.estimate,
        low_ns: worth.effect.low,
        high_ns: worth.effect.high,
        shown: worth.effect.is_shown(),
    };
    ProofEntry {
        setting: proven.setting,
        environment: proven.environment,
        what: proven.what,
        evidence: proven.evidence,
        pairs: proven.pairs.0,
        reason,
        effects: effects.into_iter().map(effect).collect(),
    }
}

fn audited(environment: &str, audit: &Audit) -> AuditEntry {
    let found = audit.found().map(|finding| FoundEntry {
        id: finding.id.clone(),
        severity: finding.severity,
        said: finding.said.clone(),
    });
    AuditEntry {
        environment: environment.to_owned(),
        role: audit.role,
        isolated: audit.isolation.isolated.to_string(),
        unknown: audit.count(State::Unknowable) + audit.count(State::Unreadable),
        found: found.collect(),
    }
}

/// The environment that one lies inside.
pub(crate) fn inside(contents: &Contents, environment: &str) -> Option<String> {
    contents.plan.environment.get(environment)?.inside.clone()
}

/// The figures of a row that measured something.
pub(super) fn figures(result: &RowResult) -> Option<&Summary> {
    result.all().filter(|all| all.cycles > 0)
}

/// Why a row has no numbers, or fewer than planned; an interrupted one says so in any case.
pub(crate) fn reason(contents: &Contents, result: &RowResult) -> Option<String> {
    if result.reason.is_some() {
        return result.reason.clone();
    }
    match result.status {
        RowStatus::Measured if ended_early(result) => {
            let (measured, planned) = (duration(result.measured_ns), duration(result.planned_ns));
            Some(match contents.manifest.status {
                RunStatus::Interrupted => format!("interrupted after {measured} of {planned}"),
                RunStatus::Complete => format!("ended after {measured} of {planned}"),
            })
        }
        RowStatus::Measured if figures(result).is_none() => Some("nothing was measured".into()),
        RowStatus::Measured => None,
        RowStatus::Skipped | RowStatus::Failed => Some("no reason was kept".into()),
    }
}
