//! What the audit says of environments while they come up, as the bundle keeps it.

use std::collections::BTreeMap;

use tactus_audit::{Intent, Subject, audit};
use tactus_model::CpuSet;
use tactus_model::facts::Facts;
use tactus_model::finding::{Audit, Role};

use crate::plan::Resolved;

/// Audits environments by their facts.
pub struct Audits {
    /// What each environment is, its measured CPUs, and whether it lies on this machine.
    parts: BTreeMap<String, (Role, CpuSet, bool)>,
    /// For each environment that lies inside another one: that one.
    around: BTreeMap<String, String>,
    /// Facts of the host and of what lies around others, once they are known.
    known: BTreeMap<String, Facts>,
    host: Option<Facts>,
}

impl Audits {
    /// Those of a resolved plan.
    #[must_use]
    pub fn of(resolved: &Resolved) -> Self {
        let environments = || resolved.environments.iter();
        let parts = environments().map(|(name, own)| {
            (name.clone(), (own.kind.role(), resolved.measured_in(name), own.elsewhere.is_none()))
        });
        let around = environments().filter_map(|(name, own)| Some((name.clone(), own.spec.inside.clone()?)));
        Self { parts: parts.collect(), around: around.collect(), known: BTreeMap::new(), host: None }
    }

    /// The audit of an environment that came up.
    pub fn of_environment(&mut self, environment: &str, facts: &Facts) -> Option<Audit> {
        let (role, measured, here) = self.parts.get(environment)?;
        let around = self.around.get(environment).and_then(|outer| self.known.get(outer));
        let carrier = around.or(self.host.as_ref()).filter(|_| *here && *role != Role::Host).cloned();
        let intent = Intent { carrier, ..Intent::measuring(facts, measured.clone()) };
        let said = audit(&Subject::new(facts, *role, &intent));
        if *here && *role == Role::Host {
            self.host = Some(facts.clone());
        }
        if self.around.values().any(|outer| outer == environment) {
            self.known.insert(environment.to_owned(), facts.clone());
        }
        Some(said)
    }
}
