//! One judgement of several virtual machines.

use std::cmp::Reverse;

use tactus_model::finding::State;

use super::Vm;
use crate::{Judgement, Subject, Verdict};

/// Machines that are named in one sentence, and readings that are shown.
const MOST: usize = 8;

/// The virtual machines for real-time work, and the others. A machine is not for real-time work if it stays on the
/// housekeeping CPUs without a real-time policy, beside others that do not.
#[must_use]
pub fn realtime<'a>(subject: &'a Subject<'_>) -> (Vec<&'a Vm>, Vec<&'a Vm>) {
    let meant = |vm: &&Vm| {
        vm.vcpus.is_empty()
            || vm.vcpus.iter().any(|vcpu| vcpu.thread.policy.is_realtime())
            || !vm.cpus().and(subject.isolated()).is_empty()
    };
    let (meant, others): (Vec<_>, Vec<_>) = subject.vms.iter().partition(meant);
    if meant.is_empty() || subject.sets_none_apart() {
        return (subject.vms.iter().collect(), Vec::new());
    }
    (meant, others)
}

/// Judges every machine and says it in one: the worst state, with the name of each machine.
///
/// # Errors
/// Not applicable where none runs, unreadable where the facts do not tell.
pub fn each(subject: &Subject<'_>, rule: impl Fn(&Vm) -> Verdict) -> Verdict {
    if subject.vms.is_empty() && !subject.threads.known {
        return Err(Judgement::unreadable(
            "the facts contain no threads, so whether virtual machines run here is unknown",
        ));
    }
    let (meant, others) = realtime(subject);
    if meant.is_empty() {
        return Err(Judgement::not_applicable("no virtual machine runs here"));
    }
    let mut judged: Vec<(&Vm, Judgement)> = meant
        .into_iter()
        .map(|vm| {
            let (Ok(judgement) | Err(judgement)) = rule(vm);
            (vm, judgement)
        })
        .collect();
    judged.sort_by_key(|(vm, judgement)| {
        let severity = judgement.severity;
        (order(judgement.state), severity.is_some(), Reverse(severity), vm.pid)
    });
    Ok(together(&judged, others.len()))
}

fn order(state: State) -> u8 {
    match state {
        State::Finding => 0,
        State::Unreadable => 1,
        State::Unknowable => 2,
        State::Ok => 3,
        State::NotApplicable => 4,
    }
}

fn together(judged: &[(&Vm, Judgement)], others: usize) -> Judgement {
    let state = judged.first().map_or(State::NotApplicable, |(_, judgement)| judgement.state);
    let like = || judged.iter().filter(|(_, judgement)| judgement.state == state);
    let mut sentences: Vec<_> =
        like().take(MOST).map(|(vm, judgement)| format!("{}: {}", vm.title(), judgement.said)).collect();
    let more = like().count().saturating_sub(MOST);
    if more > 0 {
        sentences.push(format!("{more} more machines"));
    }
    let rest = judged.len().saturating_sub(like().count());
    if rest > 0 && state == State::Finding {
        sentences.push(format!("{rest} more without this finding"));
    }
    if others > 0 {
        let (are, stay) = if others == 1 { ("machine", "stays") } else { ("machines", "stay") };
        sentences.push(format!("{others} {are} that {stay} on the housekeeping CPUs not counted"));
    }
    let mut all = Judgement::new(state, sentences.join("; "));
    // A machine that is judged at the check's own severity is the worst.
    let own = like().any(|(_, judgement)| judgement.severity.is_none());
    all.severity = if own { None } else { like().filter_map(|(_, judgement)| judgement.severity).max() };
    all.fix = like().find_map(|(_, judgement)| judgement.fix.clone());
    all.read =
        like().flat_map(|(_, judgement)| judgement.read.iter().take(MOST).cloned()).take(2 * MOST).collect();
    all
}
