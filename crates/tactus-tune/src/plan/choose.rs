//! Which changes a plan has: the profile's, those beyond it, and what the user leaves out or adds.

use std::collections::{BTreeSet, HashMap};

use tactus_model::change::{Change, Form, Target};
use tactus_model::finding::Role;

use super::{Choice, Contradiction, Layer, PlanRefusal, PlannedChange, Withheld, guards};
use tactus_audit::{self as audit, Applies, Check, Subject};

use crate::profile::Profile;

/// The chosen steps.
pub(super) struct Chosen {
    pub steps: Vec<PlannedChange>,
    pub withheld: Vec<Withheld>,
    pub contradictions: Vec<Contradiction>,
    pub unknown: Vec<PlanRefusal>,
}

/// Makes the steps in the order of the profile, what is beyond it after them.
pub(super) fn steps(subject: &Subject<'_>, profile: &Profile, choice: &Choice) -> Chosen {
    let mut steps: Vec<PlannedChange> =
        profile.changes(subject).into_iter().map(|change| step(change, Layer::Profile)).collect();
    // The first step of each target. A machine has tens of thousands of interrupts, and facts may claim as many as they like.
    let mut planned: HashMap<Target, usize> = HashMap::new();
    for (n, step) in steps.iter().enumerate() {
        planned.entry(step.change.target.clone()).or_insert(n);
    }
    let own: BTreeSet<String> = steps.iter().map(|step| step.change.check.clone()).collect();
    let mut contradictions = Vec::new();
    let beyond = profile.beyond.iter().filter(|_| !choice.plain).map(|id| (*id, Layer::Beyond));
    let asked = choice.with.iter().chain(&choice.only).map(|id| (id.as_str(), Layer::Chosen));
    // The profile's own checks are asked too, only to hear where they want something else.
    let heard = own.iter().map(|id| (id.as_str(), Layer::Profile));
    for (id, layer) in beyond.chain(asked).chain(heard) {
        let Some(check) = audit::find(id).filter(|check| concerns(check, subject)) else { continue };
        // A virtual machine sees hardware that its hypervisor invents.
        if layer == Layer::Beyond && check.hardware && subject.virtualized {
            continue;
        }
        for change in (check.changes)(subject) {
            match planned.get(&change.target).map(|n| &steps[*n]) {
                Some(planned) if same(&planned.change, &change) || planned.layer != Layer::Profile => {}
                Some(planned) => contradictions.push(Contradiction {
                    target: change.target.to_string(),
                    profile: planned.change.then.clone(),
                    check: id.to_owned(),
                    wants: change.then,
                }),
                None if layer != Layer::Profile => {
                    planned.insert(change.target.clone(), steps.len());
                    steps.push(step(change, layer));
                }
                None => {}
            }
        }
    }
    let mut unknown = unknown(&steps, choice);
    unknown.extend(unknown_interrupts(subject, choice));
    let chosen =
        |id: &String| (choice.only.is_empty() || choice.only.contains(id)) && !choice.without.contains(id);
    steps.retain(|step| chosen(&step.change.check));
    let withheld = guards::withhold(subject, choice, &mut steps);
    let targets: BTreeSet<String> = steps.iter().map(|step| step.change.target.to_string()).collect();
    contradictions.retain(|c| targets.contains(&c.target));
    contradictions.dedup();
    // The first of each target is told.
    let against: HashMap<&str, &Contradiction> =
        contradictions.iter().rev().map(|told| (told.target.as_str(), told)).collect();
    for step in steps.iter_mut().filter(|_| !against.is_empty()) {
        if let Some(told) = against.get(step.change.target.to_string().as_str()) {
            // The check's words are about its own value.
            step.risk = format!("The profile sets this against {}, which wants {}.", told.check, told.wants);
        }
    }
    Chosen { steps, withheld, contradictions, unknown }
}

/// Whether a check is about this system. A container sets nothing: its kernel is the host's.
fn concerns(check: &Check, subject: &Subject<'_>) -> bool {
    let role = |applies: &Applies| match subject.role {
        Role::Host => matches!(applies, Applies::Host | Applies::Hypervisor),
        Role::Guest => *applies == Applies::Guest,
        Role::Container => false,
    };
    check.applies.iter().any(role) && subject.is(check.arch)
}

fn same(one: &Change, other: &Change) -> bool {
    match &one.target {
        Target::File { form, .. } => form.same(&one.then, &other.then),
        // A module's flag says N for 0.
        Target::Module { .. } => one.then == other.then || Form::Flag.same(&one.then, &other.then),
        Target::Affinity(_) => Form::List.same(&one.then, &other.then),
        _ => one.then == other.then,
    }
}

fn step(change: Change, layer: Layer) -> PlannedChange {
    let risk = match audit::find(&change.check) {
        Some(check) => check.risk.to_owned(),
        None => risk(&change.check).to_owned(),
    };
    let holds = change.holds();
    PlannedChange { change, layer, risk, gives_up: "", pitfalls: Vec::new(), holds }
}

/// The risk of a setting without a check.
fn risk(word: &str) -> &'static str {
    match word {
        "tcp_fastopen" => "The first packet of a connection may carry data, which some middleboxes drop.",
        "platform_profile" => "Power and heat.",
        "tuned.non_isolcpus" => "None: only TuneD's own initramfs hook reads it.",
        _ => "",
    }
}

/// Ids that name nothing here.
fn unknown(steps: &[PlannedChange], choice: &Choice) -> Vec<PlanRefusal> {
    let known = |id: &String| audit::find(id).is_some() || steps.iter().any(|s| s.change.check == *id);
    let named = [("--only", &choice.only), ("--without", &choice.without), ("--with", &choice.with)];
    named
        .iter()
        .flat_map(|(option, ids)| ids.iter().map(move |id| (option, id)))
        .filter(|(_, id)| !known(id))
        .map(|(option, id)| PlanRefusal {
            what: format!("{option} {id}: this setting does not exist"),
            hint: "`tactus audit --list` and the first column of the plan list the names".into(),
        })
        .collect()
}

/// Interrupts that are not there.
fn unknown_interrupts(subject: &Subject<'_>, choice: &Choice) -> Vec<PlanRefusal> {
    let named = [("--own-irq", &choice.own_irq), ("--move-irq", &choice.move_irq)];
    let absent = |irq: &u32| subject.interrupts.get(*irq).is_none();
    named
        .iter()
        .flat_map(|(option, irqs)| irqs.iter().map(move |irq| (option, irq)))
        .filter(|(_, irq)| absent(irq))
        .map(|(option, irq)| PlanRefusal {
            what: format!("{option} {irq}: this interrupt does not exist"),
            hint: "the first column of /proc/interrupts lists their numbers".into(),
        })
        .collect()
}
