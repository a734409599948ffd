//! `tactus tune plan|apply|verify|revert|diff|files`.

mod diff;
mod files;
mod table;
mod transaction;

use tactus_audit::{Intent, Subject};
use tactus_model::CpuSet;
use tactus_model::facts::Facts;
use tactus_model::finding::Role;
use tactus_system::Real;
use tactus_tune::plan::{Choice, Plan};
use tactus_tune::profile::{self, Profile};

use super::{audit, facts};
use crate::cli::{AuditRole, Choose, TuneCommand, TunePlan};
use crate::exit::{Exit, Failure};
use crate::nearest;
use crate::output;
use crate::synonyms;

pub fn tune(what: &TuneCommand) -> Result<Exit, Failure> {
    match what {
        TuneCommand::Plan(arguments) => plan(arguments),
        TuneCommand::Apply(arguments) => transaction::apply(arguments),
        TuneCommand::Verify(arguments) => transaction::verify(arguments),
        TuneCommand::Revert(arguments) => transaction::revert(arguments),
        TuneCommand::Diff(arguments) => diff::diff(arguments),
        TuneCommand::Files(arguments) => files::files(arguments),
    }
}

fn plan(arguments: &TunePlan) -> Result<Exit, Failure> {
    let profile = named(&arguments.profile)?;
    let facts = match &arguments.from {
        Some(path) => files::recorded_host(path)?,
        None => here()?,
    };
    let role = arguments.role.map(|role| match role {
        AuditRole::Host => Role::Host,
        AuditRole::Guest => Role::Guest,
        AuditRole::Container => Role::Container,
    });
    let role = role.unwrap_or_else(|| part(&facts, profile));
    let plan = made(&facts, role, profile, arguments.isolate.clone(), &choice(&arguments.choose))?;
    if arguments.json {
        output::json(&plan)?;
    } else {
        output::text(&table::plan(&plan, arguments.all, output::width()))?;
    }
    Ok(if plan.refusals.is_empty() { Exit::Good } else { Exit::Unable })
}

/// The profile of this name.
fn named(name: &str) -> Result<&'static Profile, Failure> {
    profile::find(synonyms::profile(name)).ok_or_else(|| {
        let names = profile::names();
        let all = format!("use one of {}", names.join(", "));
        Failure::say(format!("there is no profile `{name}`"), nearest::hint(name, names, all))
    })
}

fn choice(choose: &Choose) -> Choice {
    Choice {
        only: choose.only.clone(),
        without: choose.without.clone(),
        with: choose.with.clone(),
        plain: choose.plain,
        own_irq: choose.own_irq.clone(),
        move_irq: choose.move_irq.clone(),
    }
}

/// The facts of this machine, with what the profiles set and the audit does not look at.
fn here() -> Result<Facts, Failure> {
    let mut facts = facts::now()?;
    profile::complete(&mut facts, &Real);
    Ok(facts)
}

/// The role of a system under a profile, by default.
fn part(facts: &Facts, profile: &Profile) -> Role {
    match () {
        () if facts.text("container:kind").is_some() => Role::Container,
        () if profile.guest && facts.virtualized() => Role::Guest,
        () => Role::Host,
    }
}

fn made(
    facts: &Facts,
    role: Role,
    profile: &Profile,
    isolated: Option<CpuSet>,
    choice: &Choice,
) -> Result<Plan, Failure> {
    let named = isolated.is_some();
    let intent = Intent { isolated, ..Intent::default() };
    let subject = Subject::new(facts, role, &intent);
    if named {
        audit::possible(&subject, |_| true)?;
    }
    Ok(Plan::new(&subject, profile, choice))
}
