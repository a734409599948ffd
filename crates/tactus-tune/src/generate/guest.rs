//! Kernel parameters for a guest: its first core is for housekeeping, and the others do nothing else than real-time
//! work.

use tactus_audit::Arch;
use tactus_audit::guard::weakened;
use tactus_model::change::{Change, Effect, Target};
use tactus_model::finding::Role;

use super::{GenerateRequest, Placement};
use crate::profile;

/// A sentence with the command line of the guest's kernel: that of the profile for the inside of the request's guest,
/// and tactus's additions. Parameters that would weaken the guest's own guards are named separately.
#[must_use]
pub fn kernel_line(request: &GenerateRequest<'_>, placement: &Placement) -> String {
    let (guarded, plain): (Vec<Change>, Vec<Change>) = parameters(request, placement)
        .into_iter()
        .partition(|change| weakened(request.subject, change).is_some());
    let words = |changes: &[Change]| changes.iter().map(word).collect::<Vec<_>>().join(" ");
    format!(
        "{} (left out, because each weakens a safety feature of the guest, its watchdogs, reports of machine errors, \
the watchdog of its clock or its audit: {})",
        words(&plain),
        words(&guarded)
    )
}

fn word(change: &Change) -> String {
    match &change.target {
        Target::Kernel { parameter } if change.then.is_empty() => parameter.clone(),
        Target::Kernel { parameter } => format!("{parameter}={}", change.then),
        other => other.to_string(),
    }
}

fn parameters(request: &GenerateRequest<'_>, placement: &Placement) -> Vec<Change> {
    let inside = if request.profile.starts_with("cpu-partitioning") {
        "cpu-partitioning"
    } else {
        "realtime-virtual-guest"
    };
    let x86 = request.subject.is(Arch::X86);
    let vendor = if x86 { request.subject.vendor.as_str() } else { "" };
    let (realtime, house) = (placement.realtime(), placement.keeps_house());
    let boot = profile::find(inside).map(|profile| profile.boot(Role::Guest, &realtime, &house, vendor));
    let more = [("rcu_nocb_poll", ""), ("nmi_watchdog", "0"), ("audit", "0")];
    // Not mce=off: with it an uncorrected error of the host's memory, which the host hands over, resets the guest.
    let mce = x86.then_some(("mce", "ignore_ce"));
    let more = more.into_iter().chain(mce).map(|(name, value)| (name.to_owned(), value.to_owned()));
    boot.unwrap_or_default()
        .into_iter()
        // A guest has no P-states.
        .filter(|(name, _)| !name.ends_with("_pstate"))
        .chain(more)
        .map(|(parameter, then)| Change {
            check: String::new(),
            target: Target::Kernel { parameter },
            now: None,
            then,
            effect: Effect::Boot,
        })
        .collect()
}
