//! Processors with two sorts of cores.

use tactus_model::CpuSet;
use tactus_model::finding::Severity;

use crate::sentence::{cpus_or_none, meet};
use crate::vm::Vm;
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const LARGE: &str = "/sys/devices/cpu_core/cpus";
const SMALL: [&str; 2] = ["/sys/devices/cpu_atom/cpus", "/sys/devices/cpu_lowpower/cpus"];

pub static CHECKS: &[Check] = &[Check {
    id: "hybrid-cores",
    title: "real-time CPUs are of two kinds",
    sources: &[Source::Kernel("tools/perf/Documentation/intel-hybrid.txt")],
    applies: &[Applies::Host],
    severity: Severity::Minor,
    arch: Arch::Intel,
    set: &[SetBy::Placement],
    reversible: Reversible::Yes,
    hardware: false,
    reads: "/sys/devices/{cpu_core,cpu_atom,cpu_lowpower}/cpus; CPUs of the vCPUs",
    expected: "real-time CPUs of one kind, and each guest's vCPUs on one kind",
    why: "P cores and E cores differ in clock, caches and execution time; four E cores share one L2 cache. A \
measurement on one kind does not hold for the other. A guest on both sees all its CPUs as equal, but its threads run \
at two speeds.",
    fix: "Isolate CPUs of one kind (--isolate), and pin all vCPUs of a guest to that kind.",
    risk: "None.",
    judge: sorts,
    changes: no_change,
}];

fn sorts(subject: &Subject<'_>) -> Verdict {
    let of = |path: &str| {
        subject.facts.text(path).and_then(|text| text.parse::<CpuSet>().ok()).unwrap_or_default()
    };
    let large = of(LARGE);
    let small = SMALL.iter().fold(CpuSet::default(), |all, path| all.or(&of(path)));
    if large.is_empty() || small.is_empty() {
        return Err(Judgement::not_applicable("this processor has one kind of core"));
    }
    let isolated = subject.isolated();
    let both = |cpus: &CpuSet| meet(cpus, &large) && meet(cpus, &small);
    let guests: Vec<String> = subject.vms.iter().filter(|vm| both(&vm.cpus())).map(Vm::title).collect();
    let judgement = if !guests.is_empty() {
        Judgement::finding(format!("vCPUs of {} are on P and on E cores", guests.join(", ")))
    } else if both(isolated) {
        let (p, e) = (cpus_or_none(&isolated.and(&large)), cpus_or_none(&isolated.and(&small)));
        Judgement::finding(format!("of the real-time CPUs {p} are P cores, {e} E cores")).at(Severity::Info)
    } else {
        let sort = if meet(isolated, &large) { "P" } else { "E" };
        Judgement::ok(format!("the real-time CPUs are {sort} cores"))
    };
    Ok(judgement.read(LARGE, large.to_string()).read(SMALL[0], small.to_string()))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, intel};
    use crate::vm::testing::host;

    #[test]
    fn real_time_cpus_are_of_one_sort() {
        let id = "hybrid-cores";
        let cores = |p: &'static str, e: &'static str| [(LARGE, p), (SMALL[0], e)];
        assert_eq!(intel(&cores("0-1", "2-3")).state(id), State::Ok);
        let mixed = intel(&cores("0-2", "3")).finding(id);
        assert_eq!((mixed.state, mixed.severity), (State::Finding, Severity::Info));
        let guest = host().with(&cores("0-2", "3")).finding(id);
        assert_eq!((guest.state, guest.severity), (State::Finding, Severity::Minor));
        assert_eq!(intel(&[]).state(id), State::NotApplicable);
        for text in HOSTILE {
            intel(&[(LARGE, text), (SMALL[0], text)]).state(id);
        }
    }
}
