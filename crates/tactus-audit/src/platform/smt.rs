//! Hardware threads that share a core.

use tactus_model::CpuSet;
use tactus_model::change::{Change, Form};
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const ACTIVE: &str = "/sys/devices/system/cpu/smt/active";
const CONTROL: &str = "/sys/devices/system/cpu/smt/control";

pub static CHECKS: &[Check] = &[Check {
    id: "smt",
    title: "hardware threads share a core",
    sources: &[Source::Xeon, Source::RedHat],
    applies: &[Applies::Host],
    severity: Severity::Major,
    arch: Arch::X86,
    set: &[SetBy::Firmware, SetBy::KernelCommandLine, SetBy::RunTime],
    reversible: Reversible::Yes,
    hardware: true,
    reads: "/sys/devices/system/cpu/smt/{active,control}, cpu*/topology/thread_siblings_list",
    expected: "0, or no isolated CPU whose core has another online thread",
    why: "The threads of a core share its pipeline, its first two caches and its memory ports. Work on the sibling \
takes them at times that no scheduler controls: the same code runs slower while the sibling works.",
    fix: "Turn Hyper-Threading or SMT off in the firmware's setup, or boot with nosmt, or write off to \
/sys/devices/system/cpu/smt/control.",
    risk: "Half the number of logical CPUs. Isolated CPU numbers may belong to threads that are gone: choose the \
isolated CPUs again.",
    judge: smt,
    changes,
}];

fn smt(subject: &Subject<'_>) -> Verdict {
    let active = subject.value(ACTIVE)?;
    let control = subject.facts.text(CONTROL).unwrap_or("not read");
    let judgement = match active {
        "0" => Judgement::ok(match control {
            "notsupported" | "notimplemented" => "the processor has one thread in each core".to_owned(),
            _ => format!("one thread of each core is online (control: {control})"),
        }),
        "1" => shared(subject),
        other => return Err(Judgement::unreadable(format!("{ACTIVE} contains {other}")).read(ACTIVE, other)),
    };
    Ok(judgement.read(ACTIVE, active).read(CONTROL, control))
}

/// SMT is on: do isolated CPUs suffer from it?
fn shared(subject: &Subject<'_>) -> Judgement {
    let (mut sharing, mut siblings, mut unread) = (CpuSet::default(), CpuSet::default(), CpuSet::default());
    for cpu in subject.isolated().iter() {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        match subject.facts.text(&path).and_then(|text| text.parse::<CpuSet>().ok()) {
            Some(core) if core.contains(cpu) => {
                let others = core.and(&subject.topology.online).minus(&CpuSet::one(cpu));
                if !others.is_empty() {
                    sharing.insert(cpu);
                    siblings = siblings.or(&others);
                }
            }
            _ => unread.insert(cpu),
        }
    }
    let house = siblings.minus(subject.isolated());
    if !house.is_empty() {
        Judgement::finding(format!("real-time CPUs share cores with housekeeping CPUs {house}"))
    } else if !sharing.is_empty() {
        Judgement::finding(format!("real-time CPUs {sharing} are threads of shared cores"))
    } else if !unread.is_empty() {
        Judgement::finding(format!("SMT is on, and the siblings of CPUs {unread} are unknown"))
    } else {
        Judgement::ok("SMT is on, and no isolated CPU has an online sibling")
    }
}

fn changes(subject: &Subject<'_>) -> Vec<Change> {
    // A machine without SMT, or one whose boot parameter forces it off, takes no other value.
    let fixed =
        matches!(subject.facts.text(CONTROL), Some("notsupported" | "notimplemented" | "forceoff") | None);
    if fixed {
        return Vec::new();
    }
    let now = subject.set("smt", CONTROL, Form::Plain, "off");
    now.into_iter().chain([subject.boot("smt", "nosmt", "")]).collect()
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Role, State};

    use super::*;
    use crate::testing::{HOSTILE, System, arm, guest, intel};

    fn machine(active: &str, cores: [&str; 4]) -> System {
        let path = |cpu: usize| format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let system = intel(&[(ACTIVE, active), (CONTROL, "on")]);
        cores.iter().enumerate().fold(system, |system, (cpu, core)| system.and(&path(cpu), core))
    }

    #[test]
    fn one_thread_in_each_core_is_good() {
        assert_eq!(intel(&[(ACTIVE, "0"), (CONTROL, "notsupported")]).state("smt"), State::Ok);
        assert!(intel(&[(ACTIVE, "0"), (CONTROL, "notsupported")]).changes("smt").is_empty());
        assert_eq!(machine("1", ["0,1", "0,1", "2", "3"]).state("smt"), State::Ok);
    }

    #[test]
    fn a_shared_core_is_found_and_worse_when_the_sibling_keeps_house() {
        let bad = machine("1", ["0,2", "1,3", "0,2", "1,3"]);
        assert_eq!(bad.said("smt"), "real-time CPUs share cores with housekeeping CPUs 0,1");
        assert_eq!(
            machine("1", ["0,1", "0,1", "2,3", "2,3"]).said("smt"),
            "real-time CPUs 2,3 are threads of shared cores"
        );
        assert_eq!(bad.wanted("smt"), [&format!("{CONTROL} = off"), "kernel parameter nosmt = "]);
    }

    #[test]
    fn siblings_that_are_not_told_are_no_proof() {
        assert_eq!(intel(&[(ACTIVE, "1")]).state("smt"), State::Finding);
        for text in HOSTILE {
            assert_eq!(machine("1", ["0", "1", text, "3"]).state("smt"), State::Finding, "{text}");
            assert_eq!(intel(&[(ACTIVE, text)]).state("smt"), State::Unreadable, "{text}");
        }
    }

    #[test]
    fn other_processors_and_virtual_machines_are_not_judged() {
        assert_eq!(arm(&[(ACTIVE, "1")]).state("smt"), State::NotApplicable);
        assert_eq!(intel(&[]).absent(ACTIVE).state("smt"), State::NotApplicable);
        assert_eq!(guest(&[(ACTIVE, "0")]).role(Role::Host).state("smt"), State::Unknowable);
    }
}
