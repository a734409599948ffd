//! CPUs that a cpuset partition isolates, in a plan.

use tactus_audit::{Intent, Subject, audit, likely_role};
use tactus_model::finding::{By, Role};

use super::*;
use crate::audits::Audits;

/// Four CPUs: a partition isolates two of them; seen from a cgroup that has `cpus`.
fn partitioned(cgroup: &str, cpus: &str) -> Topology {
    let mut facts = Facts::default();
    facts.keep("/sys/devices/system/cpu/online", "0-3");
    facts.keep("/sys/devices/system/cpu/isolated", "");
    facts.keep("/sys/fs/cgroup/rt/cpuset.cpus.partition", "isolated");
    facts.keep("/sys/fs/cgroup/rt/cpuset.cpus.effective", "2-3");
    facts.keep("/proc/self/cgroup", format!("0::{cgroup}"));
    facts.keep(format!("/sys/fs/cgroup{cgroup}/cpuset.cpus.effective"), cpus);
    facts.keep("sched:affinity", cpus);
    Topology::of(&facts)
}

fn plan(cpus: &str) -> String {
    format!(
        "name = \"p\"\n[environment.host]\nkind = \"host\"\n[[scenario]]\nname = \"s\"\nenvironment = \"host\"\n\
         measurement = \"timer\"\ncpus = \"{cpus}\"\n"
    )
}

fn on(machine: &Topology, cpus: &str) -> Result<Resolved, super::super::PlanError> {
    resolved(&plan(cpus), &Choices::default(), machine)
}

#[test]
fn inside_a_partition_its_cpus_are_measured() {
    for cpus in ["auto", "isolated", "2-3"] {
        assert_eq!(on(&partitioned("/rt", "2-3"), cpus).unwrap().measured.to_string(), "2,3", "{cpus}");
    }
}

#[test]
fn from_outside_a_partition_its_cpus_are_refused_with_a_way_in() {
    let outside = partitioned("/user.slice", "0-1");
    let Err(error) = on(&outside, "2-3") else { panic!("it was accepted") };
    assert!(
        error.to_string().contains("CPUs 2,3 are online, but this cgroup (/user.slice) may use 0,1 only"),
        "{error}"
    );
    assert!(error.hint.unwrap().contains("/sys/fs/cgroup/rt/cgroup.procs"));
    let skipped = on(&outside, "isolated").unwrap();
    let why = skipped.scenarios[0].skip.as_deref().unwrap();
    assert!(why.contains("may use 0,1 only") && why.contains("/sys/fs/cgroup/rt/cgroup.procs"), "{why}");
    // With `auto`, a note tells which CPUs are measured instead.
    let other = on(&outside, "auto").unwrap();
    assert_eq!(other.measured.to_string(), "1");
    let notes = &other.rows[0].result.notes;
    assert!(
        notes.iter().any(|note| note.text.starts_with(
            "reduced: it is measured on CPU 1, which is not isolated. CPUs 2,3 are isolated, but may not be used from here"
        )),
        "{notes:?}"
    );
}

#[test]
fn a_run_audits_the_machine_as_an_audit_alone_does() {
    let mut facts = Facts::default();
    for (name, text) in [
        ("/proc/cmdline", "quiet"),
        ("/proc/cpuinfo", "vendor_id : GenuineIntel\nflags : fpu tsc hypervisor\n"),
        ("/sys/devices/system/cpu/isolated", ""),
        ("/sys/devices/system/cpu/online", "0-1"),
        ("sched:affinity", "0-1"),
        ("uname:machine", "x86_64"),
        ("uname:release", "6.1.0-38-amd64"),
        ("uname:version", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.147-1"),
    ] {
        facts.keep(name, text);
    }
    let run = on(&Topology::of(&facts), "auto").unwrap();
    let in_the_run = Audits::of(&run).of_environment("host", &facts).unwrap();
    let intent = Intent::default();
    let alone = audit(&Subject::new(&facts, likely_role(&facts), &intent));
    assert_eq!(in_the_run, alone);
    assert_eq!((alone.role, alone.isolation.by), (Role::Guest, By::Assumed));
    // Other CPUs than it would choose are a word of the plan.
    let other = on(&Topology::of(&facts), "0").unwrap();
    let other = Audits::of(&other).of_environment("host", &facts).unwrap();
    assert_eq!((other.isolation.isolated.to_string(), other.isolation.by), ("0".into(), By::Asked));
}
