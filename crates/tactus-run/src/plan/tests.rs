//! A plan from its text to what a machine can do of it.

mod blame;
mod inside;
mod isolated;
mod limits;
mod schema;
mod sizes;
mod slices;
mod values;

use std::collections::BTreeSet;

use tactus_model::Nanos;
use tactus_model::facts::Facts;
use tactus_model::message::{Peer, What};
use tactus_model::outcome::Outcome;
use tactus_model::plan::Plan;
use tactus_model::scheduling::Policy;
use tactus_model::topology::Topology;
use tactus_system::{Memory, Real, System};

use super::{
    Choices, Resolved, ResolvedScenario, STUDIES, Scope, Source, check, parse, resolve, this_machine,
};

const PLAN: &str = r#"
name = "mine"
[defaults]
interval = "200us"
duration = "1min"
[environment.host]
kind = "host"
[environment.guest]
kind = "qemu"
cpus = "0-1"
[[scenario]]
name = "guest neighbour loaded"
[[scenario.activity]]
measure = "timer"
in = "guest"
cpus = "1"
[[scenario.activity]]
load = { kind = "scheduler" }
in = "guest"
cpus = "0"
[[scenario]]
name = "host idle"
environment = "host"
measurement = "timer"
load = ["cpu", { kind = "scheduler", groups = 1, in = "guest" }]
require = { max = "40us" }
"#;

fn machine(online: &str, isolated: &str) -> Topology {
    let mut facts = Facts::default();
    facts.keep("/sys/devices/system/cpu/online", online);
    facts.keep("/sys/devices/system/cpu/isolated", isolated);
    facts.keep("sched:affinity", online);
    Topology::of(&facts)
}

fn resolved(text: &str, choices: &Choices, machine: &Topology) -> Result<Resolved, super::PlanError> {
    let source = Source::new("plan.toml", text);
    let plan = parse(&source)?;
    check(&plan, &source, &Real)?;
    resolve(&plan, &source, choices, machine, &Real)
}

/// The error of a plan that is wrong, as a user sees it.
fn complaint(text: &str) -> String {
    let Err(error) = resolved(text, &Choices::default(), &machine("0-1", "")) else {
        panic!("accepted: {text}")
    };
    format!("{error}\nhint: {}", error.hint.clone().unwrap_or_default())
}

#[test]
fn a_plan_is_resolved_with_every_value_filled_in() {
    let resolved = resolved(PLAN, &Choices::default(), &machine("0-1", "")).unwrap();
    assert_eq!(resolved.rows.len(), 2);
    let row = &resolved.rows[0].result;
    assert_eq!((row.environment.as_str(), row.interval_ns, row.priority), ("guest", 200_000, 95));
    assert_eq!(row.planned_ns, 60_000_000_000);
    assert_eq!(row.load, [serde_json::json!({"kind":"scheduler","pipes":false,"in":"guest","cpus":"0"})]);
    assert_eq!(resolved.rows[1].result.load.len(), 2);
    assert_eq!(resolved.scenarios[1].activities.len(), 3);
    assert_eq!(resolved.measured.to_string(), "1");
}

#[test]
fn what_a_bundle_keeps_of_a_plan_resolves_to_the_same() {
    let first = resolved(PLAN, &Choices::default(), &machine("0-1", "")).unwrap();
    let text = toml::to_string(&first.plan).unwrap();
    let again = resolved(&text, &Choices::default(), &machine("0-1", "")).unwrap();
    assert_eq!(first.plan, again.plan, "{text}");
}

#[test]
fn repeats_are_rounds_of_all_scenarios_in_an_order_that_the_resolved_plan_gives_again() {
    let text = PLAN.replace("duration = \"1min\"", "duration = \"1min\"\nrepeat = 8");
    let choices = Choices { seed: 5, ..Choices::default() };
    let first = resolved(&text, &choices, &machine("0-1", "")).unwrap();
    let order = |resolved: &Resolved| -> Vec<(String, Option<u32>)> {
        resolved.rows.iter().map(|row| (row.result.name.clone(), row.result.repeat)).collect()
    };
    let runs = order(&first);
    assert_eq!((runs.len(), first.plan.scenario.len(), first.plan.seed), (16, 2, Some(5)));
    assert!(first.plan.scenario.iter().all(|scenario| scenario.repeat == Some(8)));
    for (round, number) in runs.chunks(2).zip(1..) {
        assert!(round.iter().all(|run| run.1 == Some(number)) && round[0].0 != round[1].0, "{runs:?}");
    }
    assert!(first.scenarios.iter().all(|scenario| scenario.settle_ns == 1_000_000_000));
    let again = toml::to_string(&first.plan).unwrap();
    let again = resolved(&again, &Choices::default(), &machine("0-1", "")).unwrap();
    assert_eq!((order(&again), &again.plan), (runs, &first.plan));
    let said = Choices { repeat: Some(2), ..choices };
    assert_eq!(resolved(&text, &said, &machine("0-1", "")).unwrap().rows.len(), 4);
    let once = resolved(PLAN, &Choices::default(), &machine("0-1", "")).unwrap();
    assert!(once.plan.seed.is_none() && once.rows.iter().all(|row| row.result.repeat.is_none()));
}

#[test]
fn quick_and_duration_replace_what_the_plan_says() {
    let text = PLAN.replace("[environment.host]", "[quick]\nduration = \"5s\"\n[environment.host]");
    let quick = Choices { quick: true, ..Choices::default() };
    assert_eq!(
        resolved(&text, &quick, &machine("0-1", "")).unwrap().rows[0].result.planned_ns,
        5_000_000_000
    );
    let short = Choices { quick: true, duration: Some(Nanos::from_secs(2)), ..Choices::default() };
    assert_eq!(
        resolved(&text, &short, &machine("0-1", "")).unwrap().rows[0].result.planned_ns,
        2_000_000_000
    );
}

#[test]
fn only_takes_scenarios_and_environments_and_refuses_others() {
    let only = |name: &str| Choices { only: vec![name.into()], ..Choices::default() };
    let names = |choices: &Choices| -> Vec<String> {
        let resolved = resolved(PLAN, choices, &machine("0-1", "")).unwrap();
        resolved.scenarios.iter().map(|s| s.name.clone()).collect()
    };
    assert_eq!(names(&only("guest")), ["guest neighbour loaded"]);
    assert_eq!(names(&only("host idle")), ["host idle"]);
    assert_eq!(names(&only("host idle,guest")), ["guest neighbour loaded", "host idle"]);
    let Err(error) = resolved(PLAN, &only("hots"), &machine("0-1", "")) else { panic!("accepted") };
    assert!(error.to_string().contains("hots"), "{error}");
}

#[test]
fn mistakes_are_named_with_file_line_key_and_remedy() {
    let cases = [
        ("an unknown key", PLAN.replace("interval =", "intervall =")),
        ("no run at all", PLAN.replace("interval = \"200us\"", "repeat = 0")),
        ("a wrong unit", PLAN.replace("200us", "200uz")),
        ("a number without a unit", PLAN.replace("\"1min\"", "60")),
        ("a CPU that does not exist", PLAN.replace("\"0-1\"", "\"0-7\"")),
        ("a CPU that the guest does not have", PLAN.replace("cpus = \"1\"", "cpus = \"5\"")),
        (
            "an environment that is not defined",
            PLAN.replace("environment = \"host\"", "environment = \"hosst\""),
        ),
        ("a kind that does not exist", PLAN.replace("kind = \"qemu\"", "kind = \"vbox\"")),
        ("a key of another kind", PLAN.replace("kind = \"host\"", "kind = \"host\"\nkernel = \"rt\"")),
        ("a duplicate scenario", PLAN.replace("host idle", "guest neighbour loaded")),
        ("an unknown measurement", PLAN.replace("measurement = \"timer\"", "measurement = \"tmier\"")),
        ("a parameter that a load does not have", PLAN.replace("groups = 1", "gropus = 1")),
        ("a parameter out of its bounds", PLAN.replace("groups = 1", "groups = 0")),
        (
            "a parameter of an activity out of its bounds",
            PLAN.replace("{ kind = \"scheduler\" }", "{ kind = \"network\", bytes = \"64KiB\" }"),
        ),
        (
            "a control out of its bounds",
            PLAN.replace(
                "interval = \"200us\"",
                "control = { kind = \"block\", length = \"2s\", every = \"9s\" }",
            ),
        ),
        ("a priority out of range", PLAN.replace("interval = \"200us\"", "priority = 100")),
        ("an interval that cannot be kept", PLAN.replace("200us", "1us")),
        ("text that is not TOML", PLAN.replace("[defaults]", "[defaults")),
        ("no scenario", "name = \"x\"\n".to_owned()),
        ("no name", PLAN.replace("name = \"mine\"", "")),
        ("both forms at once", PLAN.replace("measure = \"timer\"", "measure = \"timer\"\nload = \"cpu\"")),
        (
            "a figure of a scenario that is not there",
            format!("{PLAN}\n[[figure]]\nkind = \"histogram\"\ntitle = \"x\"\nscenarios = [\"y\"]"),
        ),
        ("an activity inside nothing", PLAN.replace("cpus = \"0-1\"", "inside = \"host\"")),
    ];
    let all: Vec<String> =
        cases.iter().map(|(name, text)| format!("## {name}\n{}\n", complaint(text))).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn a_study_for_many_cores_runs_reduced_on_two_and_not_at_all_on_one() {
    let text = STUDIES.iter().find(|s| s.name == "intel-xeon-2015").unwrap().text;
    // The order within a round is random: find scenarios by name.
    let of = |resolved: &Resolved, name: &str| -> ResolvedScenario {
        resolved.scenarios.iter().find(|own| own.name == name).unwrap().clone()
    };
    let cpus = |resolved: &Resolved, name: &str| -> Vec<String> {
        of(resolved, name).activities.iter().map(|a| a.activity.cpus.to_string()).collect()
    };
    let (host, guest) = ("host with load on the neighbour", "VM with load on the neighbour");
    let many = resolved(text, &Choices::default(), &machine("0-17", "1-17")).unwrap();
    assert_eq!(cpus(&many, host), ["1", "2"]);
    let two = resolved(text, &Choices::default(), &machine("0-1", "")).unwrap();
    assert_eq!(cpus(&two, host), ["1", "0"]);
    assert_eq!(cpus(&two, guest), ["1", "0"]);
    let one = resolved(text, &Choices::default(), &machine("0", "")).unwrap();
    assert!(of(&one, host).skip.as_deref().is_some_and(|why| why.contains("no CPU beside")));
    let rows: BTreeSet<&str> = one.rows.iter().map(|row| row.result.name.as_str()).collect();
    assert_eq!(rows.len(), 4, "a skipped scenario keeps its row");
}

#[test]
fn every_study_is_a_valid_plan_with_a_title_and_references() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
    let files = Real.list(dir.as_ref()).unwrap();
    let files: Vec<&str> = files.iter().map(|path| path.file_stem().unwrap().to_str().unwrap()).collect();
    let mut names: Vec<&str> = STUDIES.iter().map(|s| s.name).collect();
    names.sort_unstable();
    assert_eq!(files, names, "every file of studies/ is in the table");
    for study in STUDIES {
        let source = Source::new(study.name, study.text);
        let plan = parse(&source).unwrap();
        check(&plan, &source, &Real).unwrap();
        assert_eq!(plan.name, study.name);
        // `--only` takes names with commas between them.
        let names = plan.scenario.iter().filter_map(|scenario| scenario.name.as_deref());
        assert_eq!(names.filter(|name| name.contains(',')).collect::<Vec<_>>(), [""; 0], "{}", study.name);
        assert!(plan.title.is_some() && !plan.reference.is_empty() && plan.quick.duration.is_some());
    }
}

#[test]
fn cache_misses_are_counted_where_the_plan_asks_for_them_and_nowhere_else() {
    const PLAN: &str = r#"
name = "caches"
[environment.host]
kind = "host"
[[scenario]]
name = "shown"
environment = "host"
[[scenario]]
name = "asked for"
environment = "host"
cache_misses = true
[[scenario]]
name = "shown, and not to be counted"
environment = "host"
cache_misses = false
[[scenario]]
name = "neither"
environment = "host"
[[page]]
title = "Caches"
show = ["caches"]
scenarios = ["shown", "shown, and not to be counted"]
"#;
    let resolved = resolved(PLAN, &Choices::default(), &machine("0-3", "")).unwrap();
    let counted: Vec<_> = resolved.scenarios.iter().map(|scenario| scenario.cache_misses).collect();
    assert_eq!(counted, [Some(true), Some(true), Some(false), None]);
    // Run again as the bundle keeps it, the same is counted.
    let kept: Vec<_> = resolved.plan.scenario.iter().map(|scenario| scenario.cache_misses).collect();
    assert_eq!(kept, counted);
}

#[test]
fn exits_are_counted_where_a_plan_asks_for_them_and_where_it_is_run_again() {
    const PLAN: &str = r#"
name = "exits"
[environment.host]
kind = "host"
[[scenario]]
name = "asked for"
environment = "host"
kvm_exits = true
[[scenario]]
name = "not"
environment = "host"
"#;
    let resolved = resolved(PLAN, &Choices::default(), &machine("0-3", "")).unwrap();
    let counted: Vec<_> = resolved.scenarios.iter().map(|scenario| scenario.kvm_exits).collect();
    assert_eq!(counted, [true, false]);
    let kept: Vec<_> = resolved.plan.scenario.iter().map(|scenario| scenario.kvm_exits).collect();
    assert_eq!(kept, [Some(true), None]);
}

#[test]
fn the_plan_of_this_machine_is_valid_and_measures_every_environment_the_same_way() {
    let plan: Plan = this_machine(&Scope::default(), &Real);
    let source = Source::new("this machine", "");
    check(&plan, &source, &Real).unwrap();
    let resolved = resolve(&plan, &source, &Choices::default(), &machine("0-3", ""), &Real).unwrap();
    let timers: Vec<_> = resolved
        .scenarios
        .iter()
        .flat_map(|s| &s.activities)
        .filter_map(|a| match &a.activity.what {
            What::Measure { interval_ns, priority, .. } => {
                Some((*interval_ns, *priority, a.activity.cpus.to_string()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(timers.len(), 6);
    assert!(timers.iter().all(|timer| *timer == (200_000, 95, "1-3".into())), "{timers:?}");
}

/// A plan that attaches, on a machine of eight CPUs whose container `plc` has CPUs 4-5.
fn attaching(table: &str) -> Resolved {
    let text = format!(
        "name = \"mine\"\n[environment.plc]\n{table}\n[[scenario]]\nname = \"plc idle\"\nenvironment = \"plc\"\n"
    );
    let system = Memory::new()
        .root()
        .program("podman")
        .answer(&["podman", "container", "inspect"], 0, "running 7\n", "")
        .file("/proc/7/status", "Cpus_allowed_list:\t4-5\n");
    let source = Source::new("plan.toml", &text);
    let plan = parse(&source).unwrap();
    check(&plan, &source, &system).unwrap();
    resolve(&plan, &source, &Choices::default(), &machine("0-7", ""), &system).unwrap()
}

#[test]
fn what_runs_is_measured_on_its_own_cpus_and_not_on_those_of_the_machine() {
    let resolved = attaching("kind = \"podman\"\nattach = \"plc\"");
    assert_eq!(resolved.environments["plc"].obstacle, None);
    assert_eq!(resolved.measured_in("plc").to_string(), "4,5");
    assert_eq!(resolved.rows[0].result.layout, [(4, 4), (5, 5)]);
    let narrowed = attaching("kind = \"podman\"\nattach = \"plc\"\ncpus = \"5\"");
    assert_eq!(narrowed.measured_in("plc").to_string(), "5");
}

#[test]
fn what_cannot_be_attached_to_keeps_its_row_with_the_reason() {
    let beyond = attaching("kind = \"podman\"\nattach = \"plc\"\ncpus = \"2\"");
    let reason = beyond.rows[0].result.reason.clone().unwrap();
    assert!(reason.contains("`plc` runs on CPUs 4,5") && reason.contains("asks for 2"), "{reason}");
    let host = attaching("kind = \"host\"\nattach = \"plc\"");
    let reason = host.rows[0].result.reason.clone().unwrap();
    assert!(reason.contains("kind host cannot be attached to") && reason.contains("podman"), "{reason}");
    let missing = attaching("kind = \"docker\"\nattach = \"plc\"");
    assert!(missing.rows[0].result.reason.as_ref().unwrap().contains("docker is not installed"));
}

#[test]
fn a_peer_is_up_in_the_same_scenario_and_the_probe_is_told_of_it() {
    let text = values::VALUES.replacen("in = \"host\"\n", "in = \"host\"\nto = \"other\"\n", 1);
    let complaint = complaint(&text);
    assert!(complaint.contains("`os` has no key `to`") && complaint.contains("explain os"), "{complaint}");
    // The resolved form of a measurement with a peer.
    let source = Source::new("plan.toml", &text);
    let plan = parse(&source).unwrap();
    let resolved = resolve(&plan, &source, &Choices::default(), &machine("0-1", ""), &Real).unwrap();
    let [services, both] = &resolved.scenarios[..] else { panic!("two scenarios") };
    assert_eq!(services.activities[0].activity.peer, Some(Peer::To("other".into())));
    assert_eq!(resolved.environments_of(services), ["host", "other"]);
    assert_eq!(resolved.environments_of(both), ["host"]);
    assert_eq!(resolved.plan.scenario[0].activity[0].to.as_deref(), Some("other"));
    assert_eq!(resolved.plan.scenario[0].activity[0].from, None);
}

/// A board with Jailhouse enabled on it, and a cell's files.
fn board() -> Memory {
    let mut cell = b"JHCELL\x0d\0linux-demo".to_vec();
    cell.resize(128, 0);
    Memory::new()
        .root()
        .program("jailhouse")
        .file("/usr/libexec/jailhouse/jailhouse-cell-linux", "")
        .file("/sys/devices/jailhouse/enabled", "1\n")
        .file("/c/linux.cell", cell)
        .file("/c/Image", "")
}

#[test]
fn auto_leaves_out_the_cpus_that_a_partition_takes_and_a_list_does_not() {
    let plan = |host: &str, cell: &str| {
        format!(
            "name = \"p\"\n[defaults]\nduration = \"10s\"\n[environment.host]\nkind = \"host\"\n{host}\n\
[environment.cell]\nkind = \"jailhouse\"\ncpus = \"2-3\"\ncell = \"/c/linux.cell\"\nkernel = \"{cell}\"\n\
[separation]\nenvironments = [\"host\", \"cell\"]\ndisturb = [{{ load = \"cpu\" }}]\n"
        )
    };
    let on = |text: &str, isolated: &str| {
        let source = Source::new("plan.toml", text);
        let plan = parse(&source).unwrap();
        resolve(&plan, &source, &Choices::default(), &machine("0-3", isolated), &board()).unwrap()
    };
    for isolated in ["", "2-3"] {
        let resolved = on(&plan("", "/c/Image"), isolated);
        let host = &resolved.environments["host"];
        assert_eq!((host.layout.outside().to_string().as_str(), resolved.rows.len() % 2), ("0,1", 0));
        assert!(
            resolved.environments["cell"].obstacle.is_none(),
            "{:?}",
            resolved.environments["cell"].obstacle
        );
        for scenario in &resolved.scenarios {
            for activity in scenario.activities.iter().filter(|activity| activity.environment == "host") {
                let cpus = &activity.activity.cpus;
                assert!(cpus.minus(&"0-1".parse().unwrap()).is_empty(), "{}: {cpus}", scenario.name);
            }
        }
        let house = resolved.housekeeping(&machine("0-3", isolated));
        assert!(house.minus(&"0-1".parse().unwrap()).is_empty(), "{house}");
    }
    let named = on(&plan("cpus = \"1-2\"", "/c/Image"), "");
    assert_eq!(named.environments["host"].layout.outside().to_string(), "1,2");
    // A cell that cannot be takes nothing.
    let alone = on(&plan("", "/c/nosuch"), "");
    assert_eq!(alone.environments["host"].layout.outside().to_string(), "0-3");
}

#[test]
fn cpus_that_a_cell_of_somebody_has_are_told_with_the_cell() {
    let board = board()
        .file("/sys/devices/jailhouse/cells/1/name", "linux-demo\n")
        .file("/sys/devices/jailhouse/cells/1/state", "running\n")
        .file("/sys/devices/jailhouse/cells/1/cpus_assigned_list", "2-3\n")
        .file("/sys/devices/jailhouse/cells/1/cpus_failed_list", "\n");
    let text = "name = \"p\"\n[environment.cell]\nkind = \"jailhouse\"\ncpus = \"2-3\"\ncell = \"/c/linux.cell\"\n\
kernel = \"/c/Image\"\n[[scenario]]\nname = \"s\"\nenvironment = \"cell\"\nmeasurement = \"timer\"\n";
    let source = Source::new("plan.toml", text);
    let plan = parse(&source).unwrap();
    let Err(error) = resolve(&plan, &source, &Choices::default(), &machine("0-1", ""), &board) else {
        panic!("it was accepted")
    };
    let said = error.to_string();
    assert!(
        said.contains("CPUs 2,3 are not online; this machine has CPUs 0,1; Jailhouse has given it to cell 1 (linux-demo): running")
            && said.contains("`jailhouse cell destroy linux-demo` returns it"),
        "{said}"
    );
}

#[test]
fn a_plan_of_more_measurements_than_a_report_can_show_is_refused() {
    let mut text =
        String::from("name = \"p\"\n[environment.host]\nkind = \"host\"\n[defaults]\nrepeat = 1000\n");
    for n in 0..17 {
        text += &format!("[[scenario]]\nname = \"s{n}\"\nenvironment = \"host\"\nmeasurement = \"timer\"\n");
    }
    let source = Source::new("plan.toml", text);
    let plan = parse(&source).unwrap();
    let Err(error) = resolve(&plan, &source, &Choices::default(), &machine("0-1", ""), &board()) else {
        panic!("17000 rows were accepted")
    };
    assert!(error.to_string().contains("more than 16384 measurements"), "{error}");
}

#[test]
fn what_the_kernel_measures_of_its_timers_is_read_with_ordinary_priority_and_of_two_values_alone() {
    let plan = |measure: &str, place: &str| {
        format!(
            "name = \"own\"\n[environment.host]\nkind = \"host\"\n[environment.bare]\nkind = \"bare\"\n[[scenario]]\n\
             name = \"native\"\nmeasurement = {{ kind = \"timerlat\"{measure} }}\nenvironment = \"{place}\"\n"
        )
    };
    for value in ["", ", value = \"irq\"", ", value = \"thread\""] {
        let right = resolved(&plan(value, "host"), &Choices::default(), &machine("0-1", "")).unwrap();
        let What::Measure { policy, .. } = &right.scenarios[0].activities[0].activity.what else { panic!() };
        assert_eq!(*policy, Policy::Other);
        assert_eq!(right.rows[0].result.threads.as_ref().map(Vec::len), Some(1));
    }
    for (measure, place, said) in
        [(", value = \"user\"", "host", "user"), ("", "bare", "needs an operating system")]
    {
        let error = complaint(&plan(measure, place));
        assert!(error.contains(said), "{measure}: {error}");
    }
}

#[test]
fn a_program_is_read_with_ordinary_priority_and_only_what_has_periods_is_asked_for_overruns() {
    let plan = |measure: &str, more: &str| {
        format!(
            "name = \"own\"\n[environment.host]\nkind = \"host\"\n[environment.bare]\nkind = \"bare\"\n[[scenario]]\n\
             name = \"control\"\nmeasurement = {{ kind = \"application\"{measure} }}\n{more}\n"
        )
    };
    let file = ", file = \"/dev/shm/control\"";
    let host = "environment = \"host\"\nrequire = { overruns = 0 }";
    let right = resolved(&plan(file, host), &Choices::default(), &machine("0-1", "")).unwrap();
    let What::Measure { policy, .. } = &right.scenarios[0].activities[0].activity.what else { panic!() };
    assert_eq!(*policy, Policy::Other);
    assert_eq!(right.rows[0].result.threads.as_ref().map(Vec::len), Some(1));
    for (measure, more, said) in [
        ("", host, "missing field `file`"),
        (", file = \"/a\", value = \"sum\"", host, "sum"),
        (", file = \"/a\", patience = \"21s\"", host, "100ms to 20s"),
        (", file = \"/a\", value = \"execution\"", host, "none can be missed"),
        (file, "environment = \"bare\"", "needs an operating system"),
    ] {
        let error = complaint(&plan(measure, more));
        assert!(error.contains(said), "{measure}: {error}");
    }
}
