//! The changes that a plan must not contain.

use std::collections::BTreeSet;

use serde::Serialize;
use tactus_audit::{Subject, impossible};
use tactus_model::change::{Change, Target};
use tactus_model::finding::Role;

use super::guards;
use crate::profile::Profile;

/// Why a plan is not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanRefusal {
    /// The problem.
    pub what: String,
    /// The remedy.
    pub hint: String,
}

pub(super) fn refusals(subject: &Subject<'_>, profile: &Profile, changes: &[&Change]) -> Vec<PlanRefusal> {
    let mut refusals: Vec<PlanRefusal> = role(subject, profile).into_iter().collect();
    let wrong = impossible(subject);
    refusals.extend(wrong.iter().map(|wrong| refuse(wrong.to_string(), wrong.hint())));
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
            format!("{name} is for a system with its own kernel, but this is a container"),
            "tune the host; `tactus tune files podman` and `docker` create the container's settings",
        ));
    }
    if profile.host && subject.role == Role::Guest {
        return Some(refuse(
            format!("{name} is for a host of virtual machines, but this is a virtual machine"),
            "use realtime-virtual-guest here",
        ));
    }
    if profile.guest && subject.role == Role::Host && !subject.virtualized {
        return Some(refuse(
            format!("{name} is for use inside a virtual machine, but this system runs on no hypervisor"),
            "use realtime-virtual-host for a machine that runs guests, otherwise realtime",
        ));
    }
    None
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
                    "interrupt {} ({action}) was placed on CPU {now} for a device of a virtual machine, and the plan \
would move it away",
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
            "throttling and the fair server would both be off, and stalld does not run: threads that a real-time \
thread starves would not be rescued"
                .into(),
            "start stalld first (systemctl enable --now stalld), or leave one of them on: --without rt-throttling, \
or --without fair-server",
        )
    })
}
