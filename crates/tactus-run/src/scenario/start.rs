//! Its environments come up, one after the other.

use std::time::{Duration, Instant};

use tactus_environment::{ConsoleFile, Environment, Setting, Usable};
use tactus_model::Evidence;
use tactus_model::event::Event;
use tactus_model::message::{Note, PROTOCOL};
use tactus_system::{System, virtualized};

use super::{Failure, ScenarioRun};
use crate::context::Context;

/// How long an environment may take until its probe's first word.
const PATIENCE: Duration = Duration::from_secs(90);

impl ScenarioRun<'_> {
    /// Starts an environment and waits for its probe's hello and facts.
    pub(crate) fn bring_up(
        &mut self,
        context: &mut Context<'_>,
        number: usize,
        name: &str,
    ) -> Result<(), Failure> {
        context.emit(Event::EnvironmentStarting { environment: name.to_owned() })?;
        let environment = &context.resolved.environments[name];
        let began = Instant::now();
        // Each start of an environment has separate files.
        let again = self.restarts.get(name).map(|starts| format!(".{starts}")).unwrap_or_default();
        let slug = format!("{number:02}{again}-{}", tactus_model::bundle::file_name(name));
        let failed = |what: &str, error: std::io::Error| Failure::Scenario(format!("{what}: {error}"));
        let measured = self.measured(context.resolved, name);
        let housekeeping = self.beside_cards(context.resolved.housekeeping_around(name, context.machine));
        let (outer, network) = (environment.spec.inside.clone(), self.place(name));
        let card = self.card_of(name);
        let ground = outer.as_ref().and_then(|outer| self.sessions.iter().position(|s| s.name == *outer));
        if let (Some(outer), None) = (&outer, ground) {
            return Err(Failure::Scenario(format!("{name} lies inside {outer}, which has not started")));
        }
        let nest = match ground {
            None => None,
            Some(at) => {
                let nest = self.sessions[at].nest(context.guardian);
                Some(nest.map_err(|error| failed("no environment can be put inside", error))?)
            }
        };
        let workspace = match nest {
            None => {
                let dir = context.workspace.join(slug);
                context.system.make_dir(&dir).map(|()| dir)
            }
            Some(nest) => nest.workspace(&slug),
        };
        let workspace = workspace.map_err(|error| failed("no private directory", error))?;
        let system: &dyn System = nest.map_or(context.system, |nest| &nest.system);
        if nest.is_some()
            && let Usable::No { reason, remedy } = environment.kind.usable_as(&environment.spec, system)
        {
            let outer = outer.unwrap_or_default();
            return Err(Failure::Refused(format!("{name}, inside {outer}: {reason}; {remedy}")));
        }
        let log = format!("{:02}{again}-{}.log", number + 1, tactus_model::bundle::file_name(name));
        let takes_part = network.is_some() || card.is_some();
        let running = environment.kind.start(&Setting {
            system,
            guardian: nest.map_or(context.guardian, |nest| &nest.guardian),
            name,
            spec: &environment.spec,
            layout: &environment.near,
            housekeeping,
            measured: measured.clone(),
            workspace: &workspace,
            console: ConsoleFile::new(context.consoles, log),
            patience: PATIENCE,
            network,
            card,
        })?;
        let at = self.sessions.len();
        let inherited = ground.and_then(|at| self.sessions[at].evidence);
        let mut opened = context.open(name, running, measured);
        opened.inside = outer;
        // Its path and its card end with this scenario.
        opened.on_path = takes_part;
        self.sessions.push(opened);
        self.await_all(context, PATIENCE, "to say hello", |session| {
            session.hello.is_some() && session.facts_complete
        })?;
        let session = &mut self.sessions[at];
        let after_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        if let Some(hello) = &session.hello
            && hello.protocol != PROTOCOL
        {
            return Err(Failure::Scenario(format!(
                "the probe speaks protocol {}, this tactus {PROTOCOL}",
                hello.protocol
            )));
        }
        // An inner environment has the evidence of the outer one.
        let evidence = inherited.unwrap_or_else(|| {
            let own = session.running.evidence(&session.facts);
            on_this_machine(own, environment.kind, context.system)
        });
        session.evidence = Some(evidence);
        let facts = Box::new(session.facts.clone());
        let mut notes = session.running.after_hello()?;
        if let Some(outer) = &session.inside {
            let cpus = environment.near.outside();
            notes.insert(0, Note::info(format!("{} in {outer}, on its CPUs {cpus}", environment.spec.kind)));
        }
        context.emit(Event::EnvironmentUp { environment: name.to_owned(), evidence, after_ms })?;
        let readings = facts.0.len();
        context.emit(Event::FactsCollected { environment: name.to_owned(), readings, facts: Some(facts) })?;
        for note in notes {
            context.emit(Event::Noted { environment: Some(name.to_owned()), note })?;
        }
        Ok(())
    }
}

/// The evidence of an environment's numbers. An environment on this machine that shares its kernel also shares its
/// hardware: if the machine is virtual, so are its numbers, whatever the environment's own facts say.
fn on_this_machine(own: Evidence, kind: &dyn Environment, system: &dyn System) -> Evidence {
    let here = !kind.numbers_cpus() && !kind.elsewhere();
    if here && virtualized(system) { own.weaker(Evidence::VirtualHost) } else { own }
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;

    #[test]
    fn a_container_of_a_virtual_machine_is_no_bare_metal_whatever_it_says() {
        let virtual_one = Memory::new().file("/proc/cpuinfo", "flags\t\t: fpu hypervisor\n");
        let evidence = |kind: &str, machine: &Memory| {
            on_this_machine(Evidence::BareMetal, tactus_environment::find(kind).unwrap(), machine)
        };
        for kind in ["host", "podman", "docker", "oci", "lxc", "nspawn"] {
            assert_eq!(evidence(kind, &virtual_one), Evidence::VirtualHost, "{kind}");
            assert_eq!(evidence(kind, &Memory::new()), Evidence::BareMetal, "{kind}");
        }
        assert_eq!(evidence("ssh", &virtual_one), Evidence::BareMetal, "another machine");
    }
}
