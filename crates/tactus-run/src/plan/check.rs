//! Checks of a plan that do not depend on the machine.

use std::collections::BTreeSet;

use tactus_audit as audit;
use tactus_environment::{self as environment, ENVIRONMENTS};
use tactus_model::bundle::{LONGEST_NAME, file_name};
use tactus_model::outcome::restart::MOST_RESTARTS;
use tactus_model::plan::{
    MOST_COMPARED, MOST_DISTURBED, MOST_PUBLISHED_THREADS, MOST_REFERENCES, MOST_SEPARATED, MOST_SHOWN,
    OTHER_STATE, Plan, Reference, Scenario,
};
use tactus_system::System;
use tactus_tune::profile;

use super::{PlanError, Source, bounds, path, peer, results};

/// The shortest and longest time between two wake-ups, in ns.
const INTERVAL_NS: std::ops::RangeInclusive<u64> = 10_000..=60_000_000_000;

/// The shortest slice of a measurement, in ns.
const SHORTEST_SLICE_NS: u64 = 1_000_000_000;

/// The shortest silence by which an environment is taken for dead, in ns.
const SHORTEST_SILENCE_NS: u64 = 2_000_000_000;

/// The longest time that anything is measured, in ns: a year.
const LONGEST_NS: u64 = 365 * 86_400 * 1_000_000_000;

/// The smallest and largest number of runs of a scenario.
pub const REPEATS: std::ops::RangeInclusive<u32> = 1..=1000;

/// Checks everything about a plan that does not depend on which CPUs and tools there are.
///
/// # Errors
/// The first thing that is wrong, with line and key.
pub fn check(plan: &Plan, source: &Source, system: &dyn System) -> Result<(), PlanError> {
    environments(plan, source, system)?;
    path::check(plan, source)?;
    states(plan, source)?;
    values(&plan.defaults, "defaults", source)?;
    values(&plan.quick, "quick", source)?;
    let mut names: BTreeSet<String> = BTreeSet::new();
    for (at, scenario) in plan.scenario.iter().enumerate() {
        let path = format!("scenario[{at}]");
        let Some(name) = scenario.name.as_deref().map(str::trim).filter(|name| !name.is_empty()) else {
            return Err(source.error(&path, "a scenario without a name", "add `name = \"...\"`"));
        };
        if !names.insert(name.to_owned()) {
            return Err(source.error(
                &format!("{path}.name"),
                format!("a second scenario with the name `{name}`"),
                "results are named after their scenario: give each scenario its own name",
            ));
        }
        values(scenario, &path, source)?;
        settings(scenario, &path, source)?;
        shape(plan, scenario, &path, source)?;
    }
    separation(plan, &mut names, source)?;
    if plan.scenario.is_empty() && plan.separation.is_none() {
        return Err(source.error("scenario", "the plan has no scenario", "add a table `[[scenario]]`"));
    }
    places(plan, source)?;
    references(plan, &names, source)?;
    published(plan, source)?;
    comparisons(plan, source)?;
    results::check(plan, source)
}

/// Pages and technologies name environments that exist.
fn places(plan: &Plan, source: &Source) -> Result<(), PlanError> {
    let pages = plan.page.iter().enumerate();
    let pages = pages.filter_map(|(i, page)| Some((format!("page[{i}].in"), page.environment.as_ref()?)));
    let technologies = plan.technology.iter().enumerate().flat_map(|(i, own)| {
        [
            (format!("technology[{i}].environment"), &own.environment),
            (format!("technology[{i}].host"), &own.host),
        ]
    });
    for (key, name) in pages.chain(technologies) {
        if !plan.environment.contains_key(name) {
            return Err(source.undefined(plan, &key, name));
        }
    }
    Ok(())
}

fn environments(plan: &Plan, source: &Source, system: &dyn System) -> Result<(), PlanError> {
    for (name, spec) in &plan.environment {
        let path = format!("environment.{name}");
        short(name, &path, source)?;
        let Some(kind) = environment::find(&spec.kind) else {
            let known: Vec<&str> = ENVIRONMENTS.iter().map(|e| e.kind()).collect();
            return Err(source.error(
                &format!("{path}.kind"),
                format!("`{}` is not a kind of environment", spec.kind),
                format!("use one of {}", known.join(", ")),
            ));
        };
        for key in spec.options.keys() {
            if !kind.has_option(key) {
                let mut known = vec!["kind", "or", "cpus", "inside", "attach"];
                known.extend(kind.options().iter().map(|option| option.name));
                return Err(source.error(
                    &format!("{path}.{key}"),
                    format!("unknown key `{key}` for an environment of kind {}", spec.kind),
                    format!("use one of {}", known.join(", ")),
                ));
            }
        }
        for (n, word) in spec.or.iter().enumerate() {
            let key = format!("{path}.or[{n}]");
            let Some(other) = environment::find(word) else {
                let known: Vec<&str> = ENVIRONMENTS.iter().map(|e| e.kind()).collect();
                let hint = format!("use one of {}", known.join(", "));
                return Err(source.error(&key, format!("`{word}` is not a kind of environment"), hint));
            };
            let stranger = spec.options.keys().find(|key| !other.has_option(key));
            if let Some(option) = stranger {
                let message = format!("`{word}` has no key `{option}`");
                return Err(source.error(
                    &key,
                    message,
                    "alternatives share the table: use only keys that all of them have",
                ));
            }
        }
        kind.check(spec, system)
            .map_err(|error| source.error(&format!("{path}.{}", error.key), error.message, error.hint))?;
        let Some(outer) = &spec.inside else { continue };
        let Some(around) = plan.environment.get(outer) else {
            return Err(source.undefined(plan, &format!("{path}.inside"), outer));
        };
        if outer == name || !environment::find(&around.kind).is_some_and(environment::Environment::can_nest) {
            return Err(source.error(
                &format!("{path}.inside"),
                format!("no environment can lie inside `{outer}` (kind {})", around.kind),
                "name an environment that is a separate machine (qemu, libvirt, ssh), or leave `inside` out",
            ));
        }
        if let Some(running) = &spec.attach {
            return Err(source.error(
                &format!("{path}.attach"),
                format!("`{running}` cannot be found in `{outer}`: tactus looks for it before `{outer}` has started"),
                "leave out `attach` or `inside`; on a machine that `ssh` reaches, run tactus there",
            ));
        }
        if !kind.can_lie_inside() {
            let able: Vec<&str> =
                ENVIRONMENTS.iter().filter(|e| e.can_lie_inside()).map(|e| e.kind()).collect();
            return Err(source.error(
                &format!("{path}.inside"),
                format!("an environment of kind {} cannot lie inside another", spec.kind),
                format!("these can: {}; or leave `inside` out", able.join(", ")),
            ));
        }
    }
    Ok(())
}

/// The name of an environment or a state becomes part of a file's name.
fn short(name: &str, path: &str, source: &Source) -> Result<(), PlanError> {
    if file_name(name).len() <= LONGEST_NAME {
        return Ok(());
    }
    let message = format!("a name of {} characters", name.chars().count());
    Err(source.error(path, message, format!("files are named after it: use at most {LONGEST_NAME} letters")))
}

fn states(plan: &Plan, source: &Source) -> Result<(), PlanError> {
    for (name, state) in &plan.host_state {
        short(name, &format!("host-state.{name}"), source)?;
        if name == OTHER_STATE {
            return Err(source.error(
                &format!("host-state.{name}"),
                format!("`{OTHER_STATE}` is reserved for a machine in none of the plan's states"),
                "give the state another name",
            ));
        }
        if profile::find(&state.profile).is_none() {
            let known = profile::names();
            return Err(source.error(
                &format!("host-state.{name}.profile"),
                format!("`{}` is not a tuning profile", state.profile),
                format!("use one of {}", known.join(", ")),
            ));
        }
    }
    let scenarios = plan.scenario.iter().enumerate().map(|(at, s)| (format!("scenario[{at}].host"), s));
    for (key, scenario) in scenarios.chain([("defaults.host".to_owned(), &plan.defaults)]) {
        let Some(host) = &scenario.host else { continue };
        if host != OTHER_STATE && !plan.host_state.contains_key(host) {
            let known: Vec<&str> = plan.host_state.keys().map(String::as_str).collect();
            return Err(source.error(
                &key,
                format!("the plan has no host state `{host}`"),
                format!("use {OTHER_STATE}, {}; or add a table [host-state.{host}]", known.join(", ")),
            ));
        }
    }
    Ok(())
}

fn values(scenario: &Scenario, path: &str, source: &Source) -> Result<(), PlanError> {
    let intervals = std::iter::once((format!("{path}.interval"), scenario.interval)).chain(
        scenario
            .activity
            .iter()
            .enumerate()
            .map(|(i, a)| (format!("{path}.activity[{i}].interval"), a.interval)),
    );
    for (key, interval) in intervals {
        if let Some(interval) = interval
            && !INTERVAL_NS.contains(&interval.0)
        {
            return Err(source.error(
                &key,
                format!("an interval of {interval} is out of range"),
                "use 10us to 60s",
            ));
        }
    }
    let priorities = std::iter::once((format!("{path}.priority"), scenario.priority)).chain(
        scenario
            .activity
            .iter()
            .enumerate()
            .map(|(i, a)| (format!("{path}.activity[{i}].priority"), a.priority)),
    );
    for (key, priority) in priorities {
        if let Some(priority) = priority
            && !(1..=99).contains(&priority)
        {
            return Err(source.error(&key, format!("{priority} is not a real-time priority"), "use 1 to 99"));
        }
    }
    bounds::scenario(scenario, path, source)?;
    if scenario.duration.is_some_and(|duration| duration.0 == 0) {
        return Err(source.error(
            &format!("{path}.duration"),
            "the duration must be longer than 0",
            "use 1s or more",
        ));
    }
    if let Some(duration) = scenario.duration.filter(|duration| duration.0 > LONGEST_NS) {
        let message = format!("a duration of {duration} is longer than a year");
        return Err(source.error(&format!("{path}.duration"), message, "use 8760h or less"));
    }
    if let Some(repeat) = scenario.repeat
        && !REPEATS.contains(&repeat)
    {
        return Err(source.error(
            &format!("{path}.repeat"),
            format!("{repeat} runs of a scenario are out of range"),
            "use 1 to 1000; 8 separate an effect on three quantities from run-to-run variation",
        ));
    }
    if let Some(restart) = scenario.restart.filter(|restart| *restart > MOST_RESTARTS) {
        return Err(source.error(
            &format!("{path}.restart"),
            format!("{restart} restarts are too many for an environment in a scenario"),
            format!("use 0 to {MOST_RESTARTS}; 3 is usual"),
        ));
    }
    if let Some(silence) = scenario.dead_after.filter(|silence| silence.0 < SHORTEST_SILENCE_NS) {
        return Err(source.error(
            &format!("{path}.dead_after"),
            format!("{silence} without a message do not show that an environment died"),
            "use 2s or more; 30s is usual",
        ));
    }
    if let Some(slice) = scenario.interleave.filter(|slice| slice.0 < SHORTEST_SLICE_NS) {
        return Err(source.error(
            &format!("{path}.interleave"),
            format!("slices of {slice} would be mostly start and end"),
            "use 1s or more; 10m is usual",
        ));
    }
    if scenario.tick.is_some_and(|tick| tick.0 < 50_000_000) {
        return Err(source.error(
            &format!("{path}.tick"),
            "a report interval shorter than 50ms disturbs the measurement",
            "use 50ms or more",
        ));
    }
    Ok(())
}

/// Settings are named by the checks that ask for them.
fn settings(scenario: &Scenario, path: &str, source: &Source) -> Result<(), PlanError> {
    for (n, word) in scenario.settings.iter().enumerate() {
        if audit::find(word.trim_start_matches('!')).is_none() {
            return Err(source.error(
                &format!("{path}.settings[{n}]"),
                format!("`{word}` is not the id of a check"),
                "`tactus audit --list` lists them all; `!thp` is what `thp` is without tuning",
            ));
        }
    }
    Ok(())
}

/// A scenario is either shorthand or a list of activities, and names environments that exist.
fn shape(plan: &Plan, scenario: &Scenario, path: &str, source: &Source) -> Result<(), PlanError> {
    let defined = |key: String, name: &str| match plan.environment.contains_key(name) {
        true => Ok(()),
        false => Err(source.undefined(plan, &key, name)),
    };
    let shorthand = scenario.environment.is_some() || scenario.measurement.is_some();
    if !scenario.activity.is_empty() && (shorthand || !scenario.load.is_empty() || !scenario.fault.is_empty())
    {
        return Err(source.error(
            path,
            "the scenario has both a list of activities and the shorthand",
            "use either [[scenario.activity]] tables, or `environment`, `measurement`, `load` and `fault`",
        ));
    }
    if scenario.activity.is_empty() {
        let Some(name) = scenario.environment.as_ref().or(plan.defaults.environment.as_ref()) else {
            return Err(source.error(
                path,
                "the scenario is empty",
                "add `environment = \"...\"` or [[scenario.activity]]",
            ));
        };
        defined(format!("{path}.environment"), name)?;
        let elsewhere = scenario
            .load
            .iter()
            .map(|load| ("load", &load.environment))
            .chain(scenario.fault.iter().map(|fault| ("fault", &fault.environment)));
        for (key, name) in elsewhere {
            if let Some(name) = name {
                defined(format!("{path}.{key}"), name)?;
            }
        }
    }
    for (at, activity) in scenario.activity.iter().enumerate() {
        let path = format!("{path}.activity[{at}]");
        let said = [activity.measure.is_some(), activity.load.is_some(), activity.fault.is_some()];
        if said.iter().filter(|said| **said).count() != 1 {
            return Err(source.error(
                &path,
                "an activity is one measurement, load or fault",
                "use one of `measure`, `load`, `fault`",
            ));
        }
        defined(format!("{path}.in"), &activity.environment)?;
        peer::check(plan, activity, &path, source)?;
        path::taken(plan, activity, &path, source)?;
    }
    for name in &scenario.idle {
        defined(format!("{path}.idle"), name)?;
    }
    path::ends(scenario, path, source)?;
    let measures = scenario.activity.is_empty() || scenario.activity.iter().any(|a| a.measure.is_some());
    if !measures {
        return Err(source.error(
            path,
            "the scenario measures nothing",
            "add an activity with `measure = \"timer\"`",
        ));
    }
    Ok(())
}

/// Environments that exist, one load or fault for each disturbance; and the names of the scenarios that
/// it stands for.
fn separation(plan: &Plan, names: &mut BTreeSet<String>, source: &Source) -> Result<(), PlanError> {
    let Some(separation) = &plan.separation else { return Ok(()) };
    if !separation.rest.is_empty() {
        return Ok(());
    }
    let (places, made) = (separation.environments.len(), separation.disturb.len());
    if places > MOST_SEPARATED || places * made > MOST_DISTURBED {
        let message = format!("{made} disturbances in each of {places} environments");
        let hint = format!(
            "each is measured in each of them: use at most {MOST_SEPARATED} environments, and \
                {MOST_DISTURBED} disturbances in all"
        );
        return Err(source.error("separation", message, hint));
    }
    for name in &separation.environments {
        if !plan.environment.contains_key(name) {
            return Err(source.undefined(plan, "separation.environments", name));
        }
    }
    names.insert(super::separation::AT_REST.to_owned());
    bounds::disturbances(&separation.disturb, source)?;
    for (at, disturbance) in separation.disturb.iter().enumerate() {
        let Some(what) = disturbance.kind() else {
            return Err(source.error(
                &format!("separation.disturb[{at}]"),
                "a disturbance is one load or one fault",
                "write { load = \"cache\" } or { fault = { kind = \"block\", length = \"4ms\", every = \"1s\" } }",
            ));
        };
        names.extend(separation.environments.iter().map(|place| super::separation::name(what, place)));
    }
    Ok(())
}

fn references(plan: &Plan, names: &BTreeSet<String>, source: &Source) -> Result<(), PlanError> {
    let named =
        plan.reference
            .iter()
            .enumerate()
            .map(|(i, r)| (format!("reference[{i}].scenario"), &r.scenario))
            .chain(plan.compare.iter().enumerate().map(|(i, c)| (format!("compare[{i}].base"), &c.base)))
            .chain(plan.compare.iter().enumerate().map(|(i, c)| (format!("compare[{i}].with"), &c.with)))
            .chain(plan.figure.iter().enumerate().flat_map(|(i, f)| {
                f.scenarios.iter().map(move |name| (format!("figure[{i}].scenarios"), name))
            }))
            .chain(plan.page.iter().enumerate().flat_map(|(i, page)| {
                page.scenarios.iter().map(move |name| (format!("page[{i}].scenarios"), name))
            }))
            .chain(plan.technology.iter().enumerate().flat_map(|(i, technology)| {
                let both = technology.alike.iter().flatten();
                both.map(move |name| (format!("technology[{i}].alike"), name))
            }));
    for (key, name) in named {
        if !names.contains(name) {
            return Err(source.error(
                &key,
                format!("there is no scenario `{name}`"),
                "use the name of a [[scenario]] of this plan",
            ));
        }
    }
    Ok(())
}

/// Refuses more references than a report looks through for each row.
fn published(plan: &Plan, source: &Source) -> Result<(), PlanError> {
    let hint = "keep the references for what the plan measures, or make several plans of it";
    if plan.reference.len() > MOST_REFERENCES {
        let message = format!("more than {MOST_REFERENCES} references");
        return Err(source.error(&format!("reference[{MOST_REFERENCES}]"), message, hint));
    }
    let too_many = |reference: &Reference| reference.threads.len() > MOST_PUBLISHED_THREADS;
    if let Some(at) = plan.reference.iter().position(too_many) {
        let message = format!("more than {MOST_PUBLISHED_THREADS} threads of one reference");
        return Err(source.error(&format!("reference[{at}].threads"), message, hint));
    }
    Ok(())
}

/// Each scenario is compared with another one once: all claims are judged together, and one that is there twice would
/// weaken the rest.
fn comparisons(plan: &Plan, source: &Source) -> Result<(), PlanError> {
    let mut pairs = BTreeSet::new();
    for (at, claim) in plan.compare.iter().enumerate() {
        let key = format!("compare[{at}]");
        if claim.base == claim.with {
            let message = format!("`{}` is compared with itself", claim.base);
            return Err(source.error(
                &format!("{key}.with"),
                message,
                "name another scenario, or leave it out",
            ));
        }
        if !pairs.insert((&claim.base, &claim.with)) {
            let message = format!("`{}` is compared with `{}` a second time", claim.with, claim.base);
            return Err(source.error(
                &key,
                message,
                "compare them once, and write both claims in one `claim`",
            ));
        }
        if pairs.len() > MOST_COMPARED {
            let message = format!("more than {MOST_COMPARED} comparisons");
            let hint = "all of them are judged together, so fewer are decided more easily: compare only what \
                you need";
            return Err(source.error(&key, message, hint));
        }
    }
    let shown =
        [("figure", plan.figure.len()), ("page", plan.page.len()), ("technology", plan.technology.len())];
    if let Some((key, count)) = shown.into_iter().find(|(_, count)| *count > MOST_SHOWN) {
        let message = format!("{count} tables [[{key}]]: a report shows {MOST_SHOWN} at most");
        return Err(source.error(&format!("{key}[{MOST_SHOWN}]"), message, "make several plans of it"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
