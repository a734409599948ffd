//! Audits of environments while they come up, as the bundle keeps them.

use std::collections::BTreeMap;

use tactus_audit::{Intent, Subject, audit, role_in};
use tactus_model::CpuSet;
use tactus_model::facts::Facts;
use tactus_model::finding::{Audit, Role};

use crate::plan::{Resolved, ResolvedEnvironment};

/// The facts of an environment that are known before its probe has read any.
struct Part {
    role: Role,
    measured: CpuSet,
    /// Whether it lies on this machine.
    here: bool,
    /// Whether it is started for the run.
    started: bool,
}

/// Audits environments by their facts.
pub struct Audits {
    parts: BTreeMap<String, Part>,
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
        let part = |name: &str, own: &ResolvedEnvironment| Part {
            role: own.kind.role(),
            measured: resolved.measured_in(name),
            here: own.elsewhere.is_none(),
            started: own.kind.role() != Role::Host && own.spec.attach.is_none(),
        };
        let parts = environments().map(|(name, own)| (name.clone(), part(name, own)));
        let around = environments().filter_map(|(name, own)| Some((name.clone(), own.spec.inside.clone()?)));
        Self { parts: parts.collect(), around: around.collect(), known: BTreeMap::new(), host: None }
    }

    /// The audit of an environment that came up.
    pub fn of_environment(&mut self, environment: &str, facts: &Facts) -> Option<Audit> {
        let Part { role, measured, here, started } = self.parts.get(environment)?;
        let around = self.around.get(environment).and_then(|outer| self.known.get(outer));
        let carrier = around.or(self.host.as_ref()).filter(|_| *here && *role != Role::Host).cloned();
        let intent = Intent { carrier, started: *started, ..Intent::measuring(facts, measured.clone()) };
        let said = audit(&Subject::new(facts, role_in(*role, facts), &intent));
        if *here && *role == Role::Host {
            self.host = Some(facts.clone());
        }
        if self.around.values().any(|outer| outer == environment) {
            self.known.insert(environment.to_owned(), facts.clone());
        }
        Some(said)
    }
}
