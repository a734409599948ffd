//! Guards in a plan. A change that would weaken a guard of the machine is left out, and the plan says which guard. It
//! is made only if the user asks for it by name.

use serde::Serialize;
use tactus_audit::guard::{PLACE, RT_RUNTIME, interrupt, stops_fair_server, stops_throttling, weakened};
use tactus_audit::{Subject, rescued};
use tactus_model::change::{Change, Form};

use super::{Choice, PlannedChange};

/// A change that a profile wants and the plan does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Withheld {
    /// The change.
    pub change: Change,
    /// The guard that it would weaken.
    pub guard: &'static str,
    /// The protection that would be given up.
    pub gives_up: &'static str,
    /// How it is asked for.
    pub ask: String,
}

/// Takes out of a plan what weakens a guard and was not asked for by name, and writes to the rest what
/// they give up.
pub(super) fn withhold(
    subject: &Subject<'_>,
    choice: &Choice,
    steps: &mut Vec<PlannedChange>,
) -> Vec<Withheld> {
    let mut withheld = Vec::new();
    steps.retain_mut(|step| {
        let own = interrupt(&step.change);
        let named = own.is_some_and(|irq| choice.own_irq.contains(&irq) && !step.holds);
        let guard = weakened(subject, &step.change).or_else(|| named.then_some(PLACE));
        let Some(guard) = guard else { return true };
        let check = &step.change.check;
        let (asked, ask) = match own {
            Some(irq) => (choice.move_irq.contains(&irq) && !named, format!("--move-irq {irq}")),
            None => (choice.with.contains(check) || choice.only.contains(check), format!("--with {check}")),
        };
        if asked {
            step.gives_up = guard.gives_up;
        } else if !step.holds {
            let change = step.change.clone();
            withheld.push(Withheld { change, guard: guard.name, gives_up: guard.gives_up, ask });
        }
        asked
    });
    withheld
}

/// Whether nothing rescues starved threads any more, neither throttling nor the fair server nor stalld,
/// and the changes have a part in that.
pub(super) fn leaves_no_rescue(subject: &Subject<'_>, changes: &[&Change]) -> bool {
    let planned = changes.iter().any(|change| stops_throttling(subject, change));
    let off =
        subject.set("rt-throttling", RT_RUNTIME, Form::Plain, subject.facts.text(RT_RUNTIME).unwrap_or("0"));
    let throttling_off = planned || off.is_some_and(|now| stops_throttling(subject, &now));
    let server = |cpu: u32| format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
    let server_off = changes.iter().any(|change| stops_fair_server(change))
        || subject.isolated().iter().any(|cpu| subject.facts.text(&server(cpu)) == Some("0"));
    let part = changes
        .iter()
        .any(|change| !change.holds() && (stops_fair_server(change) || stops_throttling(subject, change)));
    !rescued(subject) && part && throttling_off && server_off
}
