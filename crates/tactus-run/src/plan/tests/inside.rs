//! Environments that lie inside others.

use super::*;

const INSIDE: &str = r#"
name = "inside"
[environment.guest]
kind = "qemu"
cpus = "2-3"
[environment.box]
kind = "oci"
inside = "guest"
[[scenario]]
name = "box"
environment = "box"
measurement = "timer"
load = [{ kind = "cpu", in = "guest", cpus = "0" }]
"#;

#[test]
fn what_lies_inside_runs_on_the_cpus_of_what_is_around_it() {
    let resolved = resolved(INSIDE, &Choices::default(), &machine("0-3", "")).unwrap();
    let inner = &resolved.environments["box"];
    assert_eq!(inner.near.cpus, [(0, 0), (1, 1)]);
    assert_eq!(inner.layout.cpus, [(0, 2), (1, 3)]);
    assert_eq!(resolved.rows[0].result.layout, [(0, 2), (1, 3)]);
    // The CPUs measured inside are also measured in the outer environment, and on the machine.
    assert_eq!(resolved.measured_in("box").to_string(), "1");
    assert_eq!(resolved.measured_in("guest").to_string(), "1");
    assert_eq!(resolved.environments["guest"].housekeeping.to_string(), "0");
    assert_eq!(resolved.measured.to_string(), "3");
    assert_eq!(resolved.environments_of(&resolved.scenarios[0]), ["guest", "box"]);
    assert_eq!(resolved.housekeeping_around("box", &machine("0-3", "")).to_string(), "0");
}

#[test]
fn a_guest_gets_the_programs_that_what_lies_inside_needs() {
    let resolved = resolved(INSIDE, &Choices::default(), &machine("0-1,2-3", "")).unwrap();
    let programs = resolved.environments["guest"].spec.options.get("programs");
    if Real.find_program("crun").is_some() {
        assert_eq!(programs, Some(&serde_json::json!(["crun"])));
        assert!(resolved.plan.environment["guest"].options.contains_key("programs"));
    } else {
        let reason = resolved.scenarios[0].skip.clone().unwrap();
        assert!(reason.contains("crun") || reason.contains("qemu"), "{reason}");
    }
    let text = toml::to_string(&resolved.plan).unwrap();
    assert_eq!(super::resolved(&text, &Choices::default(), &machine("0-3", "")).unwrap().plan, resolved.plan);
}

/// A container on a machine of four CPUs that is reached by ssh, and asked from one of eight.
#[test]
fn what_lies_inside_another_machine_has_that_ones_cpus() {
    let text = INSIDE
        .replace("kind = \"qemu\"\ncpus = \"2-3\"", "kind = \"ssh\"\nto = \"plc-7\"")
        .replace("\"oci\"", "\"podman\"");
    let system = Memory::new().root().program("ssh").answer(
        &["ssh"],
        0,
        "tactus finds x86_64\nonline:0-3\nisolated:2-3\nCpus_allowed_list:\t0-3\n",
        "",
    );
    let source = Source::new("plan.toml", &text);
    let plan = parse(&source).unwrap();
    check(&plan, &source, &system).unwrap();
    let resolved = resolve(&plan, &source, &Choices::default(), &machine("0-7", "6-7"), &system).unwrap();
    // Whether podman is there is asked when that machine is up, not of this one.
    let inner = &resolved.environments["box"];
    assert_eq!((&inner.obstacle, inner.elsewhere.is_some()), (&None, true));
    assert_eq!(inner.layout.cpus, [(0, 0), (1, 1), (2, 2), (3, 3)]);
    assert_eq!(resolved.measured_in("box").to_string(), "2,3");
    assert_eq!(resolved.environments["guest"].housekeeping.to_string(), "0,1");
    assert_eq!(resolved.measured.to_string(), "", "none of this machine's");
}

#[test]
fn what_needs_a_whole_system_is_not_put_into_a_guest_of_single_files() {
    let text = INSIDE.replace("\"qemu\"\ncpus = \"2-3\"", "\"libvirt\"").replace("\"oci\"", "\"podman\"");
    let system = Memory::new().root().program("podman").program("crun").program("virsh");
    let source = Source::new("plan.toml", &text);
    let plan = parse(&source).unwrap();
    check(&plan, &source, &system).unwrap();
    let of = |plan: &Plan| resolve(plan, &source, &Choices::default(), &machine("0-3", ""), &system).unwrap();
    let guest = of(&plan).environments["guest"].obstacle.clone().unwrap();
    // The outer environment's obstacle comes first: no kernel exists here.
    assert_eq!(of(&plan).environments["box"].obstacle, Some(guest));
    let mut outer = of(&plan).environments.remove("guest").unwrap();
    outer.obstacle = None;
    let (kind, spec) = (tactus_environment::find("podman").unwrap(), &plan.environment["box"]);
    let why = super::super::nesting::missing_program(kind, spec, &outer, &system).unwrap();
    assert!(why.contains("whole system") && why.contains("oci"), "{why}");
    outer.spec.attach = Some("plc".into());
    assert_eq!(
        super::super::nesting::missing_program(kind, spec, &outer, &system),
        None,
        "that one is whole"
    );
}

#[test]
fn what_cannot_lie_inside_is_refused_with_what_can() {
    let docker = complaint(&INSIDE.replace("\"oci\"", "\"docker\""));
    assert!(docker.contains("kind docker cannot lie inside another") && docker.contains("oci"), "{docker}");
    let running = complaint(&INSIDE.replace("inside =", "attach = \"plc\"\ninside ="));
    assert!(running.contains("environment.box.attach") && running.contains("`plc`"), "{running}");
    let host = complaint(&INSIDE.replace("\"qemu\"\ncpus = \"2-3\"", "\"host\""));
    assert!(host.contains("no environment can lie inside `guest`"), "{host}");
    let itself = complaint(&INSIDE.replace("inside = \"guest\"", "inside = \"box\""));
    assert!(itself.contains("no environment can lie inside `box`"), "{itself}");
}
