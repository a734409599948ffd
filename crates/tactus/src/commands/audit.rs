//! `tactus audit`: what spoils the time of a system, and what would fix it.

mod list;

use std::path::Path;

use tactus_audit::{self as audit, Impossible, Intent, Subject, likely_role, role_in};
use tactus_bundle::{self as bundle, Trust};
use tactus_environment as environment;
use tactus_model::bundle::{Contents, environment_key};
use tactus_model::finding::{Audit as Audits, By, Role, Severity};
use tactus_report::audit::{Audited, Detail, document, junit, markdown, read_nothing, text};
use tactus_report::render::text::Style;
use tactus_system::{Real, System};

use super::facts::{self, Seen};
use crate::cli::{Audit, AuditFormat, AuditRole, Threshold};
use crate::exit::{Exit, Failure};
use crate::nearest;
use crate::output;
use crate::place::Place;

pub fn audit(arguments: &Audit) -> Result<Exit, Failure> {
    if arguments.list {
        return list::list(arguments.json || arguments.format == AuditFormat::Json);
    }
    known(&arguments.only)?;
    let systems = match (&arguments.from, &arguments.environment) {
        (Some(path), _) => recorded(path)?,
        (None, Some(place)) => {
            let Place { name, spec } = Place::of(place, &Real)?;
            let spec = facts::described(spec, arguments.kernel.as_deref(), arguments.cmdline.as_deref());
            vec![facts::inside(&name, &spec)?]
        }
        (None, None) => {
            let twice = arguments.only.is_empty() || arguments.only.iter().any(|id| audit::looks_twice(id));
            let here = facts::here(twice)?;
            vec![Seen { role: likely_role(&here.facts), ..here }]
        }
    };
    let mut audits = Vec::new();
    for system in systems {
        audits.push((system.environment.clone(), one(system, arguments)?));
    }
    print(&audits, arguments)?;
    Ok(exit(audits.iter().map(|(_, audit)| audit), arguments.fail_on))
}

fn known(ids: &[String]) -> Result<(), Failure> {
    match ids.iter().find(|id| audit::find(id).is_none()) {
        Some(id) => {
            let hint = nearest::hint(
                id,
                audit::all().map(|(_, check)| check.id),
                "`tactus audit --list` lists them all",
            );
            Err(Failure::say(format!("there is no check `{id}`"), hint))
        }
        None => Ok(()),
    }
}

/// The audit of one system.
fn one(system: Seen, arguments: &Audit) -> Result<Audits, Failure> {
    let role = arguments.role.map_or(system.role, |role| match role {
        AuditRole::Host => Role::Host,
        AuditRole::Guest => Role::Guest,
        AuditRole::Container => Role::Container,
    });
    let intent = Intent {
        isolated: arguments.isolate.clone().or(system.asked),
        later: system.later,
        carrier: system.carrier,
        started: system.started,
    };
    let subject = Subject::new(&system.facts, role, &intent);
    if arguments.isolate.is_some() {
        // Anything that this system can have is a finding.
        possible(&subject, Impossible::is_nonsense)?;
    }
    let mut audit = audit::audit(&subject);
    if !arguments.only.is_empty() {
        audit.findings.retain(|finding| arguments.only.contains(&finding.id));
        audit.actions.clear();
    }
    Ok(audit)
}

/// Refuses CPUs of `--isolate` that have such a problem.
pub fn possible(subject: &Subject<'_>, refused: fn(&Impossible) -> bool) -> Result<(), Failure> {
    match audit::impossible(subject).into_iter().find(refused) {
        None => Ok(()),
        Some(wrong) => Err(Failure::say(format!("--isolate {}: {wrong}", subject.isolated()), wrong.hint())),
    }
}

/// The systems of a bundle, or of a file of facts.
pub fn recorded(path: &Path) -> Result<Vec<Seen>, Failure> {
    if Real.exists(path) && Real.list(path).is_err() {
        let facts = facts::of_file(path)?;
        let environment =
            path.file_stem().map_or_else(|| "facts".into(), |name| name.to_string_lossy().into_owned());
        let role = likely_role(&facts);
        return Ok(vec![Seen {
            environment,
            role,
            facts,
            later: None,
            carrier: None,
            started: false,
            is_host: true,
            asked: None,
        }]);
    }
    let systems = systems(&bundle::read(path, Trust::Whole)?);
    if systems.is_empty() {
        return Err(Failure::say(
            format!("{} contains no facts of an environment", path.display()),
            "no environment started in that run: see `tactus report`",
        ));
    }
    Ok(systems)
}

/// The systems of a bundle.
pub fn systems(contents: &Contents) -> Vec<Seen> {
    let spec = |name: &str| contents.plan.environment.get(name);
    contents
        .facts
        .iter()
        .map(|(at, facts)| {
            // In a plan with states of the machine `guest@STATE` was carried by `host@STATE`.
            let (name, state) = at.split_once('@').map_or((at.as_str(), None), |(n, s)| (n, Some(s)));
            let kind = spec(name).map_or(name, |spec| spec.kind.as_str());
            let role = environment::find(kind).map_or(Role::Host, environment::Environment::role);
            let carrier =
                contents.facts.get(&environment_key("host", state)).filter(|_| role != Role::Host).cloned();
            let attached = spec(name).is_some_and(|spec| spec.attach.is_some());
            let started = role != Role::Host && !attached;
            let is_host = kind == "host";
            let role = role_in(role, facts);
            let told = contents.audits.get(at).map(|audit| &audit.isolation);
            let asked = told.filter(|told| told.by == By::Asked).map(|told| told.isolated.clone());
            let facts = facts.clone();
            Seen { environment: at.clone(), role, facts, later: None, carrier, started, is_host, asked }
        })
        .collect()
}

fn print(audits: &[(String, Audits)], arguments: &Audit) -> Result<(), Failure> {
    let audits: Vec<Audited<'_>> =
        audits.iter().map(|(environment, audit)| Audited { environment, audit }).collect();
    let format = if arguments.json { AuditFormat::Json } else { arguments.format };
    match format {
        AuditFormat::Json => output::json(&document(&audits))?,
        AuditFormat::Markdown => output::data(&markdown(&audits))?,
        AuditFormat::Junit => {
            let xml = junit(&audits, threshold(arguments.fail_on))
                .map_err(|error| Failure::from(anyhow::Error::from(error)))?;
            output::data(&xml)?;
        }
        AuditFormat::Text => {
            let full = arguments.full || (!arguments.only.is_empty() && !arguments.brief);
            let detail = match (full, arguments.all) {
                (false, false) => Detail::Brief,
                (false, true) => Detail::BriefAll,
                (true, false) => Detail::Findings,
                (true, true) => Detail::All,
            };
            let style = Style { colour: output::colour(), width: output::width() };
            output::data(&text(&audits, detail, style))?;
        }
    }
    Ok(())
}

fn threshold(threshold: Threshold) -> Option<Severity> {
    match threshold {
        Threshold::Blocker => Some(Severity::Blocker),
        Threshold::Major => Some(Severity::Major),
        Threshold::Minor => Some(Severity::Minor),
        Threshold::Info => Some(Severity::Info),
        Threshold::Never => None,
    }
}

fn exit<'a>(audits: impl Iterator<Item = &'a Audits>, limit: Threshold) -> Exit {
    let Some(limit) = threshold(limit) else { return Exit::Good };
    let of = |audit: &Audits| match audit.worst() {
        Some(worst) if worst >= limit => Exit::Findings,
        _ if read_nothing(audit) => Exit::Inconclusive,
        _ => Exit::Good,
    };
    audits.map(of).fold(Exit::Good, Exit::and)
}
