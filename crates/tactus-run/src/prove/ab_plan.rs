//! The plan that proves settings: pairs of scenarios.

use std::collections::BTreeMap;

use tactus_audit::{self as audit, Subject};
use tactus_model::Nanos;
use tactus_model::catalogue::Load;
use tactus_model::catalogue::load::Scheduler;
use tactus_model::change::{Change, Target};
use tactus_model::control::ControlBy;
use tactus_model::plan::{Environment, Placed, Plan, Proof, Scenario};

use crate::plan::Lot;

use super::setting::{SettingError, find};

/// The settings to be tested, where and how.
#[derive(Clone, Debug)]
pub struct Request {
    /// Ids of checks; empty: every one that can be set.
    pub ids: Vec<String>,
    /// Name of the environment.
    pub name: String,
    /// The environment.
    pub environment: Environment,
    /// Pairs of each setting.
    pub pairs: u32,
    /// How long each half of a pair measures.
    pub duration: Nanos,
    /// Whether load runs beside it.
    pub load: bool,
    /// The lot that decides the order within the pairs.
    pub seed: u64,
    /// Whether the environment boots its own kernel, so that boot parameters can be tested too.
    pub boots: bool,
}

/// The plan of a request on a system whose facts are known. Settings that cannot be tested keep their
/// place, with the reason; with an empty list of ids only those that this system could set at all do.
#[must_use]
pub fn plan(request: &Request, subject: &Subject<'_>) -> Plan {
    let mut plan = Plan {
        name: "prove".into(),
        title: Some("A/B test of settings".into()),
        about: Some(format!(
            "Each setting is made and reverted, {} times each, in randomised order within each pair; \
the wake-up latency is measured {} each time.",
            request.pairs,
            if request.load { "under scheduler load" } else { "without load" }
        )),
        environment: BTreeMap::from([(request.name.clone(), request.environment.clone())]),
        ..Plan::default()
    };
    plan.defaults.duration = Some(request.duration);
    // Controls in the first and the last pair of each setting show that the instrument sees all the while; one in
    // each half would be most of a short run.
    plan.defaults.control = Some(ControlBy::Nothing);
    let mut lot = Lot::new(request.seed);
    let ids: Vec<&str> = if request.ids.is_empty() {
        audit::all().map(|(_, check)| check.id).collect()
    } else {
        request.ids.iter().map(String::as_str).collect()
    };
    for id in ids {
        match find(id, subject) {
            Ok(found) => {
                let environment = request.name.as_str();
                let (with, without) =
                    if found.holds { (None, Some(format!("!{id}"))) } else { (Some(id.to_owned()), None) };
                let halves = [Half { environment, setting: with }, Half { environment, setting: without }];
                pairs(&mut plan, request, &mut lot, (id, found.what()), &halves);
            }
            Err(SettingError::NotAtRunTime(_)) if request.boots => {
                boot(&mut plan, request, &mut lot, id, subject);
            }
            Err(SettingError::Nothing(_) | SettingError::NotAtRunTime(_)) if request.ids.is_empty() => {}
            Err(reason) => plan.proof.push(Proof {
                setting: id.to_owned(),
                environment: request.name.clone(),
                reason: Some(reason.to_string()),
                ..Proof::default()
            }),
        }
    }
    plan
}

/// A boot parameter of a guest: a second guest that differs in it alone.
fn boot(plan: &mut Plan, request: &Request, lot: &mut Lot, id: &str, subject: &Subject<'_>) {
    let changes = audit::find(id).map(|check| (check.changes)(subject)).unwrap_or_default();
    let words: Vec<String> = changes.iter().filter_map(parameter).collect();
    if words.is_empty() {
        return;
    }
    let words = words.join(" ");
    let before =
        request.environment.options.get("cmdline").and_then(|text| text.as_str()).unwrap_or_default();
    let name = format!("{} with {id}", request.name);
    let mut environment = request.environment.clone();
    environment.options.insert("cmdline".into(), format!("{before} {words}").trim().into());
    plan.environment.insert(name.clone(), environment);
    let halves =
        [Half { environment: &name, setting: None }, Half { environment: &request.name, setting: None }];
    pairs(
        plan,
        request,
        lot,
        (id, format!("compares a guest booted with {words} with one booted without")),
        &halves,
    );
}

fn parameter(change: &Change) -> Option<String> {
    let Target::Kernel { parameter } = &change.target else { return None };
    (!change.holds()).then(|| match change.then.as_str() {
        "" => parameter.clone(),
        value => format!("{parameter}={value}"),
    })
}

/// One half of a pair.
struct Half<'a> {
    environment: &'a str,
    /// A word of the scenario's settings; `None`: the environment as it is.
    setting: Option<String>,
}

/// The pairs of one setting, first the half with it and then the half without.
fn pairs(
    plan: &mut Plan,
    request: &Request,
    lot: &mut Lot,
    (id, what): (&str, String),
    halves: &[Half<'_>; 2],
) {
    let [with, without] = halves;
    let environment = with.environment.to_owned();
    let mut proof = Proof { setting: id.to_owned(), environment, what, ..Proof::default() };
    for n in 1..=request.pairs {
        let scenario = |half: &Half<'_>, word: &str| Scenario {
            name: Some(format!("{id} {word}, {n}")),
            environment: Some(half.environment.to_owned()),
            settings: half.setting.iter().cloned().collect(),
            load: request.load.then(load).into_iter().collect(),
            // In both halves: they differ in the setting alone.
            control: [1, request.pairs].contains(&n).then_some(ControlBy::Hog),
            ..Scenario::default()
        };
        let mut pair = [scenario(with, "with"), scenario(without, "without")];
        proof.with.extend(pair[0].name.clone());
        proof.without.extend(pair[1].name.clone());
        if lot.draw() {
            pair.reverse();
        }
        plan.scenario.extend(pair);
    }
    plan.proof.push(proof);
}

fn load() -> Placed<Load> {
    Placed { what: Load::Scheduler(Scheduler::default()), environment: None, cpus: None }
}

#[cfg(test)]
mod tests {
    use tactus_audit::Intent;
    use tactus_model::facts::Facts;
    use tactus_model::finding::Role;

    use super::*;

    fn request(ids: &[&str], boots: bool) -> Request {
        Request {
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            name: "host".into(),
            environment: Environment {
                kind: if boots { "qemu" } else { "host" }.into(),
                ..Environment::default()
            },
            pairs: 10,
            duration: Nanos::from_secs(1),
            load: true,
            seed: 1,
            boots,
        }
    }

    fn made(request: &Request) -> Plan {
        made_where("always [madvise] never", request)
    }

    fn made_where(thp: &str, request: &Request) -> Plan {
        let mut facts = Facts::default();
        facts.keep("/sys/kernel/mm/transparent_hugepage/enabled", thp);
        facts.keep("/proc/cmdline", "quiet");
        facts.keep("/sys/devices/system/cpu/online", "0-1");
        facts.keep("/sys/devices/system/cpu/isolated", "");
        let intent = Intent::default();
        plan(request, &Subject::new(&facts, Role::Host, &intent))
    }

    #[test]
    fn each_setting_is_measured_with_and_without_in_pairs_whose_order_is_drawn() {
        let plan = made(&request(&["thp"], false));
        let proof = &plan.proof[0];
        assert_eq!((plan.scenario.len(), proof.with.len(), proof.without.len()), (20, 10, 10));
        let firsts: Vec<&str> =
            plan.scenario.chunks(2).map(|pair| pair[0].name.as_deref().unwrap()).collect();
        assert!(firsts.iter().any(|name| name.contains("with,")));
        assert!(firsts.iter().any(|name| name.contains("without,")));
        for (n, pair) in plan.scenario.chunks(2).enumerate() {
            let names: Vec<&str> = pair.iter().map(|s| s.name.as_deref().unwrap()).collect();
            assert!(names.contains(&proof.with[n].as_str()) && names.contains(&proof.without[n].as_str()));
        }
        let with = plan.scenario.iter().find(|s| s.name.as_deref() == Some("thp with, 1")).unwrap();
        assert_eq!(with.settings, ["thp"]);
        let controls =
            plan.scenario.chunks(2).map(|pair| pair.iter().filter(|s| s.control.is_some()).count());
        assert_eq!(controls.collect::<Vec<_>>(), [2, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        assert!(
            crate::plan::check(&plan, &crate::plan::Source::new("prove", ""), &tactus_system::Real).is_ok()
        );
    }

    #[test]
    fn a_setting_that_holds_is_measured_against_the_default() {
        let plan = made_where("always madvise [never]", &request(&["thp"], false));
        let settings: Vec<&str> =
            plan.scenario.iter().flat_map(|s| &s.settings).map(String::as_str).collect();
        assert_eq!(settings, ["!thp"; 10]);
    }

    #[test]
    fn a_boot_parameter_is_tested_by_booting_a_second_guest() {
        let plan = made(&request(&["skew-tick"], true));
        assert_eq!(plan.environment.len(), 2);
        let other = &plan.environment["host with skew-tick"];
        assert!(other.options["cmdline"].as_str().unwrap().contains("skew_tick=1"), "{other:?}");
        assert_eq!(plan.scenario.len(), 20);
        let plan = made(&request(&["skew-tick"], false));
        assert!(plan.proof[0].reason.as_ref().unwrap().contains("cannot be set while the system runs"));
    }

    #[test]
    fn all_means_what_can_be_set_here_and_a_name_keeps_its_reason() {
        let plan = made(&request(&[], false));
        assert!(plan.proof.iter().any(|proof| proof.setting == "thp"));
        assert!(plan.proof.iter().all(|proof| proof.setting != "preempt-rt"));
        let plan = made(&request(&["preempt-rt"], false));
        assert!(plan.proof[0].reason.is_some() && plan.scenario.is_empty());
    }
}
