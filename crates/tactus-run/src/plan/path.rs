//! Network paths: what a plan says of them, and which activities take them.

use tactus_environment as environment;
use tactus_model::CpuSet;
use tactus_model::catalogue::Measure;
use tactus_model::plan::{Activity, GuestDevice, NetworkPath, PathKind, Plan, Scenario};

use super::{PlanError, Source};

/// IPv4 allows no less, and no more.
const MTU: std::ops::RangeInclusive<u32> = 68..=65_535;

/// Whether each path makes sense by itself.
pub(super) fn check(plan: &Plan, source: &Source) -> Result<(), PlanError> {
    for (name, path) in &plan.path {
        let key = |key: &str| format!("path.{name}.{key}");
        let complaint =
            |what: &str, message: String, hint: &str| Err(source.error(&key(what), message, hint));
        if path.mtu.is_some() && (path.kind == PathKind::Loopback || path.kind.is_for_guests()) {
            let message = format!("the MTU of a path of the kind {} cannot be changed", path.kind);
            return complaint("mtu", message, "leave it out");
        }
        if !MTU.contains(&path.mtu()) {
            return complaint("mtu", format!("an MTU of {} is out of range", path.mtu()), "use 68 to 65535");
        }
        if path.device.is_some() && !path.kind.is_for_guests() {
            let message = format!("a path of the kind {} has no guest device", path.kind);
            return complaint("device", message, "use it with `tap` or `macvtap`");
        }
        if path.changes_settings() && matches!(path.kind, PathKind::Loopback | PathKind::Nic) {
            let keys = [("gro", path.gro.is_some()), ("gso", path.gso.is_some()), ("rps", true)];
            let key = keys.into_iter().find(|(_, given)| *given).map_or("rps", |(key, _)| key);
            let message = format!(
                "the interfaces of a path of the kind {} remain after the run, and would keep this \
                    setting",
                path.kind
            );
            return complaint(
                key,
                message,
                "set it yourself (`ethtool -K`, `rps_cpus`), or use another kind of path; for a NIC, `irq` \
moves its interrupts for the run",
            );
        }
        if path.irq.is_some() && path.kind != PathKind::Nic {
            let message = format!("a path of the kind {} has no interrupts of a NIC", path.kind);
            return complaint("irq", message, "use it with `nic`, or `rps` with this kind");
        }
        for (what, cpus) in [("rps", &path.rps), ("irq", &path.irq)] {
            if cpus.as_ref().is_some_and(CpuSet::is_empty) {
                let message = "no CPU is left to process incoming packets".into();
                return complaint(what, message, "leave it out, or name CPUs: \"0-1\"");
            }
        }
        let named = path.nics.as_ref().is_some_and(|[first, second]| {
            first != second && [first, second].into_iter().all(|name| is_interface(name))
        });
        if path.nics.is_some() != (path.kind == PathKind::Nic) || (path.nics.is_some() && !named) {
            let message = format!("a path of the kind {} with these interfaces", path.kind);
            let hint =
                "`kind = \"nic\"` has `nics = [\"ens1\", \"ens2\"]`, one for each end; no other kind has any";
            return complaint(if path.nics.is_some() { "nics" } else { "kind" }, message, hint);
        }
    }
    Ok(())
}

/// A name that the kernel gives to an interface: never an option of a command, never a path.
fn is_interface(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    (1..=15).contains(&name.len()) && name.chars().all(good) && !name.starts_with(['-', '.'])
}

/// An activity takes a path that there is, between two environments that can be at its ends; what must go to a peer
/// takes one.
pub(super) fn taken(plan: &Plan, activity: &Activity, at: &str, source: &Source) -> Result<(), PlanError> {
    let network = matches!(activity.measure, Some(Measure::Network(_)));
    let (here, key) = (&activity.environment, format!("{at}.path"));
    let Some(name) = &activity.path else {
        return match &activity.to {
            Some(to) if network => Err(source.error(
                &format!("{at}.to"),
                format!("no path leads from `{here}` to `{to}`"),
                "name it with `path`: a table `[path.NAME]`, as `kind = \"veth\"`",
            )),
            _ => Ok(()),
        };
    };
    let Some(path) = plan.path.get(name) else {
        let known: Vec<&str> = plan.path.keys().map(String::as_str).collect();
        let hint = if known.is_empty() { String::new() } else { format!("use {}, or ", known.join(", ")) };
        return Err(source.error(
            &key,
            format!("the plan has no path `{name}`"),
            format!("{hint}add a table [path.{name}]"),
        ));
    };
    if !network {
        return Err(source.error(
            &key,
            "this measurement uses no path",
            "`measure = \"network\"` takes a path",
        ));
    }
    let Some(to) = activity.to.as_ref().filter(|to| *to != here) else {
        return match (path.kind, &activity.to) {
            (PathKind::Loopback, None) => Ok(()),
            (PathKind::Loopback, Some(_)) => Err(source.error(
                &format!("{at}.to"),
                "the loopback stays in one environment",
                "leave it out",
            )),
            _ => Err(source.error(
                &key,
                format!("`{name}` starts at `{here}` and has no other end"),
                "name another environment with `to`; a second one of the kind host will do",
            )),
        };
    };
    if path.kind == PathKind::Loopback {
        return Err(source.error(
            &key,
            "the loopback stays in one environment",
            "leave out `to`, or name another path",
        ));
    }
    // The far end of a guest's path is the end of a cable.
    let far = if path.kind.is_for_guests() { PathKind::Veth } else { path.kind };
    [(here, path.kind, "in"), (to, far, "to")]
        .into_iter()
        .try_for_each(|(end, kind, word)| joins(plan, path, end, kind, &format!("{at}.{word}"), source))
}

/// Whether an environment can be at an end of a path.
fn joins(
    plan: &Plan,
    path: &NetworkPath,
    name: &str,
    kind: PathKind,
    key: &str,
    source: &Source,
) -> Result<(), PlanError> {
    let Some(spec) = plan.environment.get(name) else { return Ok(()) };
    if spec.inside.is_some() || spec.attach.is_some() {
        let message = format!("`{name}` exists before the path does, or lies inside another environment");
        return Err(source.error(key, message, "use one that tactus starts on this machine"));
    }
    let can = |word: &str| environment::find(word).is_some_and(|entry| entry.can_join(kind));
    let kinds = std::iter::once(&spec.kind).chain(&spec.or);
    let Some(cannot) = kinds.into_iter().find(|word| !can(word)) else { return Ok(()) };
    let able: Vec<&str> =
        environment::ENVIRONMENTS.iter().map(|entry| entry.kind()).filter(|word| can(word)).collect();
    let hint = match able.is_empty() {
        true => "this tactus has no kind of environment for it yet".to_owned(),
        false => format!("these can: {}", able.join(", ")),
    };
    let device =
        path.device.map_or(String::new(), |device: GuestDevice| format!(" ({device:?})").to_lowercase());
    let message =
        format!("a {cannot} environment cannot be an end of a path of the kind {}{device}", path.kind);
    Err(source.error(key, message, hint))
}

/// An environment is at one end of one path at a time.
pub(super) fn ends(scenario: &Scenario, at: &str, source: &Source) -> Result<(), PlanError> {
    let mut taken: Vec<&String> = Vec::new();
    for (number, activity) in scenario.activity.iter().enumerate() {
        let (Some(_), Some(to)) = (&activity.path, &activity.to) else { continue };
        for end in [&activity.environment, to] {
            if taken.contains(&end) {
                return Err(source.error(
                    &format!("{at}.activity[{number}].path"),
                    format!("`{end}` is already an end of another path"),
                    "make two scenarios of it, or name another environment",
                ));
            }
            taken.push(end);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::super::{check, parse};
    use super::*;

    /// What is wrong with a plan of these paths and activities, in line and hint; nothing: it is good.
    fn complaint(paths: &str, activities: &[&str]) -> String {
        let mut text =
            "name = \"x\"\n[environment.host]\nkind = \"host\"\n[environment.far]\nkind = \"host\"\n\
                        [environment.guest]\nkind = \"qemu\"\n[environment.pod]\nkind = \"docker\"\n\
                        [environment.bare]\nkind = \"bare\"\n\
                        [environment.box]\nkind = \"podman\"\ninside = \"guest\"\n"
                .to_owned();
        text += &format!("{paths}\n[[scenario]]\nname = \"a\"\n");
        for activity in activities {
            text += &format!("[[scenario.activity]]\n{activity}\n");
        }
        let source = Source::new("plan.toml", text.as_str());
        let checked = parse(&source).and_then(|plan| check(&plan, &source, &Memory::new()));
        checked.err().map_or_else(String::new, |error| {
            format!("{}; {}", error.message, error.hint.unwrap_or_default())
        })
    }

    const VETH: &str = "[path.cable]\nkind = \"veth\"";
    const TAP: &str = "[path.cable]\nkind = \"tap\"";
    const MACVTAP: &str = "[path.cable]\nkind = \"macvtap\"\ndevice = \"vhost\"";

    #[test]
    fn a_way_leads_between_two_environments_that_can_be_at_its_ends() {
        let from =
            |name: &str| format!("measure = \"network\"\nin = \"{name}\"\nto = \"far\"\npath = \"cable\"");
        assert_eq!(complaint(VETH, &[&from("host")]), "");
        assert_eq!(complaint(VETH, &[&from("pod")]), "");
        assert_eq!(complaint(TAP, &[&from("guest")]), "");
        assert_eq!(complaint(MACVTAP, &[&from("guest")]), "");
        assert_eq!(complaint("", &["measure = \"network\"\nin = \"host\""]), "", "its own loopback");
        for (paths, place, expected) in [
            (
                VETH,
                "guest",
                "a qemu environment cannot be an end of a path of the kind veth; these can: host",
            ),
            (TAP, "host", "a host environment cannot be an end of a path of the kind tap; these can: qemu"),
            (VETH, "bare", "a bare environment cannot"),
            (TAP, "pod", "a docker environment cannot"),
            (VETH, "box", "lies inside another environment"),
            ("", "host", "the plan has no path `cable`; add a table [path.cable]"),
            (VETH, "far", "starts at `far` and has no other end"),
        ] {
            let said = complaint(paths, &[&from(place)]);
            assert!(said.contains(expected), "{place}: {said}");
        }
        let no_way = complaint(VETH, &["measure = \"network\"\nin = \"host\"\nto = \"far\""]);
        assert!(no_way.contains("no path leads from `host` to `far`"), "{no_way}");
        let nothing = complaint(VETH, &["measure = \"timer\"\nin = \"host\"\npath = \"cable\""]);
        assert!(nothing.contains("this measurement uses no path"), "{nothing}");
    }

    #[test]
    fn an_environment_is_at_one_end_of_one_path_at_a_time() {
        let two = [
            "measure = \"network\"\nin = \"host\"\nto = \"far\"\npath = \"cable\"",
            "measure = \"network\"\nin = \"far\"\nto = \"host\"\npath = \"cable\"",
        ];
        assert!(complaint(VETH, &two).contains("`far` is already an end of another path"));
        let beside = [two[0], "measure = \"timer\"\nin = \"host\""];
        assert_eq!(complaint(VETH, &beside), "", "what else is measured there does not matter");
    }

    #[test]
    fn keys_of_a_path_that_make_no_sense_are_named() {
        let idle = ["measure = \"timer\"\nin = \"host\""];
        for (keys, expected) in [
            ("kind = \"veth\"\nmtu = 67", "an MTU of 67"),
            ("kind = \"veth\"\nmtu = 65536", "an MTU of 65536"),
            ("kind = \"tap\"\nmtu = 1400", "cannot be changed"),
            ("kind = \"veth\"\ndevice = \"e1000\"", "has no guest device"),
            ("kind = \"nic\"", "with these interfaces"),
            ("kind = \"veth\"\nnics = [\"ens1\", \"ens2\"]", "with these interfaces"),
            ("kind = \"nic\"\nnics = [\"ens1\", \"ens1\"]", "with these interfaces"),
            ("kind = \"nic\"\nnics = [\"-all\", \"ens2\"]", "with these interfaces"),
            ("kind = \"nic\"\nnics = [\"../x\", \"ens2\"]", "with these interfaces"),
            ("kind = \"nic\"\nnics = [\"a name of no interface\", \"ens2\"]", "with these interfaces"),
            ("kind = \"loopback\"\ngro = false", "remain after the run, and would keep this"),
            (
                "kind = \"nic\"\nnics = [\"ens1\", \"ens2\"]\nrps = \"0\"",
                "remain after the run, and would keep this",
            ),
            (
                "kind = \"nic\"\nnics = [\"ens1\", \"ens2\"]\nirq = \"\"",
                "no CPU is left to process incoming packets",
            ),
            ("kind = \"veth\"\nirq = \"0\"", "no interrupts of a NIC"),
            ("kind = \"veth\"\nrps = \"\"", "no CPU is left to process incoming packets"),
            ("kind = \"veth\"\nrps = \"zero\"", "zero"),
            ("kind = \"carrier-pigeon\"", "carrier-pigeon"),
        ] {
            let said = complaint(&format!("[path.cable]\n{keys}"), &idle);
            assert!(said.contains(expected), "{keys}: {said}");
        }
        let tuned = "[path.cable]\nkind = \"veth\"\ngro = true\ngso = false\nrps = \"0-1\"";
        assert_eq!(complaint(tuned, &idle), "");
        assert_eq!(complaint("[path.cable]\nkind = \"nic\"\nnics = [\"ens1\", \"enp3s0f1\"]", &idle), "");
    }
}
