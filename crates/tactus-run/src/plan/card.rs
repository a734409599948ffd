//! `interrupt`: a card on the host, and the guest that takes it.

use tactus_environment as environment;
use tactus_model::CpuSet;
use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::{AnswerBy, Interrupt};
use tactus_model::plan::{Activity, Plan};

use super::device;
use super::resolved::{ResolvedActivity, ResolvedEnvironment};
use super::{PlanError, Source};

/// The card is on this machine, in a guest that can take it, and is its only one.
pub(super) fn check(
    plan: &Plan,
    activity: &Activity,
    others: &[ResolvedActivity],
    at: &str,
    source: &Source,
) -> Result<(), PlanError> {
    let Some(Measure::Interrupt(table)) = &activity.measure else { return Ok(()) };
    let here = |name: &str| plan.environment.get(name).filter(|spec| spec.inside.is_none());
    let kinds = |name: &str| {
        let spec = here(name).filter(|spec| spec.attach.is_none());
        spec.map(|spec| std::iter::once(&spec.kind).chain(&spec.or).collect::<Vec<_>>()).unwrap_or_default()
    };
    let complaint =
        |key: &str, message: String, hint: String| Err(source.error(&format!("{at}.{key}"), message, hint));
    let all_are = |name: &str, are: &dyn Fn(&str) -> bool| {
        let kinds = kinds(name);
        !kinds.is_empty() && kinds.iter().all(|kind| are(kind))
    };
    if device::of(table, &format!("{at}.measure"), source)?.is_some() {
        return of_device(plan, activity, table, at, source);
    }
    if !all_are(&activity.environment, &|kind| kind == "host") {
        let message =
            format!("`interrupt` is measured from the host, and `{}` is not the host", activity.environment);
        return complaint("in", message, "write `in = \"host\"`, and name the guest with `to`".into());
    }
    let by = table.answer();
    let able = |kind: &str| environment::find(kind).is_some_and(|entry| entry.answers_card(by));
    let can: Vec<&str> =
        environment::ENVIRONMENTS.iter().map(|entry| entry.kind()).filter(|kind| able(kind)).collect();
    let hint = format!("`to` names a guest that this plan starts, of the kind {}", can.join(" or "));
    let Some(guest) = &activity.to else {
        return complaint("to", "`interrupt` has no guest to go to".into(), hint);
    };
    if !all_are(guest, &able) {
        let so = if by == AnswerBy::Kernel { " that its kernel answers" } else { "" };
        return complaint("to", format!("`{guest}` cannot have an interrupt card{so}"), hint);
    }
    if others.iter().any(|other| other.card_goes_to() == Some(guest)) {
        let message = format!("`{guest}` already has an interrupt card");
        return complaint(
            "to",
            message,
            "a guest has one: name another guest, or make two scenarios of it".into(),
        );
    }
    Ok(())
}

/// A device is where it is measured, and its handler is a process there.
fn of_device(
    plan: &Plan,
    activity: &Activity,
    table: &Interrupt,
    at: &str,
    source: &Source,
) -> Result<(), PlanError> {
    let complaint =
        |key: &str, message: String, hint: &str| Err(source.error(&format!("{at}.{key}"), message, hint));
    if activity.to.is_some() {
        let message = "a card that is a device must be in the environment whose handler answers it".into();
        return complaint(
            "to",
            message,
            "leave `to` out; `in` is the host, or the guest that has the device",
        );
    }
    if table.answer() != AnswerBy::Handler {
        let message = "the interrupts of a device are answered by a process".into();
        return complaint("measure.answer", message, "leave `answer` out, or leave `card` out");
    }
    let has = |spec: &tactus_model::plan::Environment, kind: &str| {
        environment::find(kind).is_some_and(|kind| kind.has_devices(spec))
    };
    let spec = plan.environment.get(&activity.environment);
    let spec = spec.filter(|spec| spec.inside.is_none() && spec.attach.is_none());
    if !spec.is_some_and(|spec| std::iter::once(&spec.kind).chain(&spec.or).all(|kind| has(spec, kind))) {
        let message = format!("`{}` has no device that could be a card", activity.environment);
        let hint = "write `in = \"host\"`, or name a guest of the kind qemu with its device: `pci = [\"edu\"]`, or \
                    `pci = [\"0000:03:00.0\"]` for one of this machine";
        return complaint("in", message, hint);
    }
    Ok(())
}

/// The card's CPU: the first requested one without a virtual CPU of its guest, because a card polls and would keep
/// its guest from answering. With `auto`, any other CPU of this machine will do. A CPU on which no `other`
/// environment of the scenario runs comes before one that is shared. If the guest has them all: `None`.
pub(super) fn cpu(
    cpus: &CpuSet,
    auto: bool,
    machine: &ResolvedEnvironment,
    guest: &ResolvedEnvironment,
    other: &CpuSet,
) -> Option<CpuSet> {
    let taken: CpuSet = guest.laid_out().iter().map(|(_, outside)| *outside).collect();
    let more = if auto { machine.layout.inside() } else { CpuSet::default() };
    let can: Vec<u32> = cpus.iter().chain(more.iter()).filter(|cpu| !taken.contains(*cpu)).collect();
    can.iter().find(|cpu| !other.contains(**cpu)).or(can.first()).map(|cpu| CpuSet::one(*cpu))
}

#[cfg(test)]
mod tests {
    use tactus_model::topology::Topology;
    use tactus_system::Memory;

    use crate::plan::{Choices, Resolved, Source, check, parse, resolve};

    /// Resolves a scenario with one activity or more.
    fn resolved(scenario: &str) -> Result<Resolved, String> {
        resolved_on("0-3", scenario)
    }

    /// What is wrong with it, and what would be right.
    fn resolved_with_hint(scenario: &str) -> String {
        resolved(scenario).err().unwrap_or_else(|| panic!("{scenario}"))
    }

    fn resolved_on(cpus: &str, scenario: &str) -> Result<Resolved, String> {
        let text = format!(
            "name = \"p\"\n[environment.host]\nkind = \"host\"\n[environment.guest]\nkind = \"bare\"\ncpus = \"1\"\n\
             [environment.box]\nkind = \"podman\"\n[[scenario]]\nname = \"s\"\n{scenario}"
        );
        let (source, system) = (Source::new("plan.toml", &*text), Memory::new());
        let set: tactus_model::CpuSet = cpus.parse().unwrap();
        let machine = Topology { allowed: set.clone(), online: set, ..Topology::default() };
        let plan = parse(&source).map_err(|error| error.to_string())?;
        check(&plan, &source, &system).map_err(|error| error.to_string())?;
        resolve(&plan, &source, &Choices::default(), &machine, &system)
            .map_err(|error| format!("{error}; {}", error.hint.as_deref().unwrap_or_default()))
    }

    fn activity(keys: &str) -> String {
        format!("[[scenario.activity]]\nmeasure = \"interrupt\"\n{keys}\n")
    }

    #[test]
    fn a_card_goes_from_the_host_to_a_guest_that_can_take_it() {
        let right = activity("in = \"host\"\nto = \"guest\"");
        let twice = right.repeat(2);
        for (scenario, said) in [
            (activity("in = \"box\"\nto = \"guest\""), "measured from the host"),
            (activity("in = \"guest\"\nto = \"host\""), "with this guest as `to`"),
            (activity("in = \"host\"\nto = \"box\""), "cannot have an interrupt card"),
            (activity("in = \"host\""), "has no guest to go to"),
            ("environment = \"host\"\nmeasurement = \"interrupt\"\n".into(), "has no guest to go to"),
            (twice, "already has an interrupt card"),
            (
                "[[scenario.activity]]\nmeasure = { kind = \"interrupt\", answer = \"kernel\" }\nin = \"host\"\nto = \"guest\"\n"
                    .into(),
                "that its kernel answers",
            ),
        ] {
            let error = resolved(&scenario).err().unwrap_or_else(|| panic!("{scenario}"));
            assert!(error.contains(said), "{scenario}: {error}");
        }
        assert!(resolved(&right).is_ok());
    }

    #[test]
    fn a_card_that_is_a_device_is_where_its_handler_is_and_has_one_cpu_there() {
        const EDU: &str = include_str!("../../../../contrib/cards/edu.toml");
        let activity = |keys: &str| {
            format!("[[scenario.activity]]\nmeasure = {{ kind = \"interrupt\", card = {EDU:?}{keys}\n")
        };
        let plan = resolved(&activity(" }\nin = \"host\"")).unwrap();
        assert_eq!(
            plan.scenarios[0].activities[0].activity.cpus.to_string(),
            "1",
            "one of those that are measured"
        );
        assert_eq!((&plan.rows[0].peer, &plan.rows[0].result.to), (&None, &None));
        let named = plan.plan.scenario[0].activity[0].measure.clone();
        assert!(toml::to_string(&plan.plan).unwrap().contains("1234:11e8"), "{named:?}");
        for (keys, said) in [
            (" }\nin = \"host\"\nto = \"guest\"", "leave `to` out"),
            (", answer = \"poll\" }\nin = \"host\"", "answered by a process"),
            (" }\nin = \"box\"", "no device that could be a card"),
        ] {
            let error = resolved_with_hint(&activity(keys));
            assert!(error.contains(said), "{keys}: {error}");
        }
        let wrong = activity(" }\nin = \"host\"").replace("bar = 0", "bar = 9");
        assert!(resolved_with_hint(&wrong).contains("no BAR 9"));
        let file =
            "[[scenario.activity]]\nmeasure = { kind = \"interrupt\", card = \"edu.toml\" }\nin = \"host\"\n";
        assert!(resolved_with_hint(file).contains("edu.toml does not describe a card"));
    }

    #[test]
    fn who_is_left_alone_is_up_and_keeps_the_scenario_from_being_made_where_he_cannot_be() {
        let card = activity("in = \"host\"\nto = \"guest\"");
        let with = resolved(&format!("idle = [\"box\"]\n{card}")).unwrap();
        let scenario = &with.scenarios[0];
        assert!(with.environments_of(scenario).contains(&"box".to_owned()));
        assert_eq!(scenario.skip, with.environments["box"].obstacle, "there is no podman");
        assert_eq!(with.plan.scenario[0].idle, ["box"], "what a bundle keeps does the same again");
        let said = resolved(&format!("idle = [\"nobody\"]\n{card}")).map(|_| ()).unwrap_err();
        assert!(said.contains("nobody"), "{said}");
        let empty = resolved(&format!("skip = \"no such card\"\n{card}")).unwrap();
        assert_eq!(empty.scenarios[0].skip.as_deref(), Some("no such card"));
        assert_eq!(empty.rows[0].result.reason.as_deref(), Some("no such card"));
        assert_eq!(empty.plan.scenario[0].skip.as_deref(), Some("no such card"));
    }

    #[test]
    fn the_card_has_another_cpu_than_its_guest() {
        let cpus = |keys: &str, machine: &str| {
            let scenario = activity(&format!("in = \"host\"\nto = \"guest\"\n{keys}"));
            let plan = resolved_on(machine, &scenario).unwrap();
            let skip = plan.scenarios[0].skip.clone().unwrap_or_default();
            (plan.scenarios[0].activities[0].activity.cpus.to_string(), plan.rows[0].peer.clone(), skip)
        };
        let (cpu, peer, _) = cpus("", "0-3");
        assert_eq!((&*cpu, peer.as_deref()), ("2", Some("guest")), "CPU 0 keeps house, the guest has CPU 1");
        assert_eq!(cpus("cpus = \"1-3\"", "0-3").0, "2", "the guest has CPU 1");
        assert_eq!(cpus("", "0-1").0, "0", "there is no other");
        for (keys, machine) in [("cpus = \"1\"", "0-3"), ("", "1")] {
            let skip = cpus(keys, machine).2;
            assert!(skip.contains("the card needs a CPU besides those of `guest`"), "{keys}: {skip}");
        }
    }
}
