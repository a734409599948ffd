//! What a plan must not do.

use std::collections::BTreeSet;

use serde::Serialize;
use tactus_audit::Subject;
use tactus_model::CpuSet;
use tactus_model::change::{Change, Target};
use tactus_model::finding::Role;

use super::guards;
use crate::profile::Profile;

/// Why a plan is not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanRefusal {
    /// What is wrong.
    pub what: String,
    /// What would help.
    pub hint: String,
}

pub(super) fn refusals(subject: &Subject<'_>, profile: &Profile, changes: &[&Change]) -> Vec<PlanRefusal> {
    let mut refusals: Vec<PlanRefusal> = role(subject, profile).into_iter().collect();
    refusals.extend(isolation(subject));
    refusals.extend(owned(subject, changes));
    refusals.extend(unrescued(subject, changes));
    refusals
}

fn refuse(what: String, hint: impl Into<String>) -> PlanRefusal {
    PlanRefusal { what, hint: hint.into() }
}

/// A profile for another kind of system.
fn role(subject: &Subject<'_>, profile: &Profile) -> Option<PlanRefusal> {
    let name = profile.name;
    if subject.role == Role::Container {
        return Some(refuse(
            format!("{name} is for a system with a kernel of its own, and this is a container"),
            "tune the host; `tactus generate podman` and `docker` make the container's own settings",
        ));
    }
    if profile.host && subject.role == Role::Guest {
        return Some(refuse(
            format!("{name} is for a machine that carries virtual machines, and this is one of them"),
            "take realtime-virtual-guest here",
        ));
    }
    if profile.guest && subject.role == Role::Host && !subject.virtualized {
        return Some(refuse(
            format!(
                "{name} is for the inside of a virtual machine, and no hypervisor lies below this system"
            ),
            "take realtime-virtual-host for a machine that carries guests, else realtime",
        ));
    }
    None
}

/// Isolation that would leave the system nowhere to live, or split a core.
fn isolation(subject: &Subject<'_>) -> Vec<PlanRefusal> {
    let (isolated, online) = (subject.isolated(), &subject.topology.online);
    let mut refusals = Vec::new();
    if isolated.is_empty() {
        let what = "no CPU is isolated".to_owned();
        return vec![refuse(what, format!("name some with --isolate; this system has {online}"))];
    }
    let missing = isolated.minus(online);
    if !missing.is_empty() {
        let what = format!("CPU {missing} is not there, or not on; this system has {online}");
        refusals.push(refuse(what, "isolate CPUs that are online"));
    }
    if subject.housekeeping().is_empty() {
        let what = format!("isolating {isolated} leaves no CPU for everything else");
        refusals.push(refuse(what, "leave at least one core, best that of CPU 0"));
    } else if isolated.contains(0) {
        let what = "CPU 0 is to be isolated: timekeeping, and interrupts that cannot be moved, live there";
        refusals.push(refuse(what.to_owned(), "leave CPU 0 and its core out of --isolate"));
    }
    let halves = halves(subject);
    if !halves.is_empty() && !subject.housekeeping().is_empty() {
        let whole = subject.topology.cores.iter().filter(|core| core.minus(isolated).is_empty());
        let whole = whole.fold(CpuSet::default(), |all, core| all.or(core)).minus(&CpuSet::one(0));
        let hint = match whole.is_empty() {
            true => "isolate all hardware threads of a core, or switch SMT off (nosmt)".to_owned(),
            false => format!("isolate whole cores (of these: --isolate {whole}), or switch SMT off (nosmt)"),
        };
        refusals.push(refuse(format!("half a core would be isolated: {}", halves.join(", ")), hint));
    }
    refusals
}

/// Cores of which some hardware threads are isolated and others keep house.
fn halves(subject: &Subject<'_>) -> Vec<String> {
    let online = &subject.topology.online;
    let split = subject.topology.cores.iter().filter_map(|core| {
        let core = core.and(online);
        let inside = core.and(subject.isolated());
        let outside = core.minus(&inside);
        (!inside.is_empty() && !outside.is_empty())
            .then(|| format!("CPU {inside} shares its core with CPU {outside}"))
    });
    let mut all: Vec<String> = split.collect();
    let more = all.len().saturating_sub(4);
    if more > 0 {
        all.truncate(4);
        all.push(format!("and {more} more"));
    }
    all
}

/// Interrupts that somebody put on isolated CPUs for a virtual machine.
fn owned(subject: &Subject<'_>, changes: &[&Change]) -> Vec<PlanRefusal> {
    let moved: BTreeSet<&str> = changes
        .iter()
        .filter(|change| !change.holds())
        .filter_map(|change| match &change.target {
            Target::File { path, .. } => Some(path.as_str()),
            _ => None,
        })
        .collect();
    let moves = |irq: u32| moved.contains(format!("/proc/irq/{irq}/smp_affinity_list").as_str());
    let theirs = subject.interrupts.list.iter().filter_map(|interrupt| {
        let action = interrupt.actions.iter().find(|action| action.starts_with("vfio"))?;
        let now = interrupt.affinity.as_deref()?;
        let placed = !now.is_empty() && now.minus(subject.isolated()).is_empty();
        (placed && moves(interrupt.irq)).then(|| {
            refuse(
                format!(
                    "interrupt {} ({action}) was put on CPU {now} for a device of a virtual machine, and the \
                     plan would move it away",
                    interrupt.irq
                ),
                "stop that virtual machine first, or keep all interrupts where they are: --without irq-affinity",
            )
        })
    });
    theirs.collect()
}

/// Throttling, the fair server and stalld: one of them must be left.
fn unrescued(subject: &Subject<'_>, changes: &[&Change]) -> Option<PlanRefusal> {
    guards::leaves_no_rescue(subject, changes).then(|| {
        refuse(
            "throttling and the fair server would both be off, and stalld does not run: nothing would rescue what a \
             real-time thread starves"
                .into(),
            "start stalld first (systemctl enable --now stalld), or leave one of them: --without rt-throttling, or \
             --without fair-server",
        )
    })
}
