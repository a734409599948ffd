//! The kernel's command line, by what the distribution has for it.

use tactus_model::change::{Change, Effect, Target};
use tactus_system::System;

use super::{install, with_command};
use crate::plan::{Plan, PlanRefusal};
use crate::transaction::{Action, Step, own_files};

/// Parameters whose first value counts, not the last: the kernel refuses a second one with other CPUs ("Housekeeping:
/// nohz_full= must match isolcpus=", kernel/sched/isolation.c).
const FIRST_COUNTS: [&str; 2] = ["isolcpus", "nohz_full"];

/// The steps.
pub(super) fn steps(system: &dyn System, plan: &Plan) -> Result<Vec<Step>, Vec<PlanRefusal>> {
    let all: Vec<&Change> = plan
        .entries
        .iter()
        .map(|step| &step.change)
        .filter(|change| change.effect == Effect::Boot && matches!(change.target, Target::Kernel { .. }))
        .collect();
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let words: Vec<String> = all.iter().filter_map(|change| word(change, &change.then)).collect();
    let foreign: Vec<PlanRefusal> = all.iter().filter_map(|change| twice(change)).collect();
    if !foreign.is_empty() {
        return Err(foreign);
    }
    let has = |path: &str| system.text(path).is_some();
    if system.find_program("grubby").is_some() {
        return Ok(grubby(&all, &words));
    }
    let update =
        ["update-grub", "grub-mkconfig"].into_iter().find(|name| system.find_program(name).is_some());
    // Debian's grub-mkconfig reads /etc/default/grub.d; upstream's does not.
    if update == Some("update-grub") && has("/etc/default/grub") {
        let quoted = words
            .join(" ")
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('$', "\\$")
            .replace('`', "\\`");
        let line = format!("GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX {quoted}\"");
        let names: Vec<String> =
            all.iter().filter_map(|c| Some(format!("#   {} ({})", word(c, &c.then)?, c.check))).collect();
        let file = install("boot", own_files::GRUB, &[names.join("\n"), line]);
        return Ok(with_command(&[file], &["update-grub"]));
    }
    Err(vec![PlanRefusal {
        what: "no known boot loader: there is neither grubby nor update-grub with /etc/default/grub".into(),
        hint: format!(
            "add this to the kernel's command line yourself, and leave --persist out: {}",
            words.join(" ")
        ),
    }])
}

/// `name=value`, with quotes where the value has blanks; `name` alone.
fn word(change: &Change, value: &str) -> Option<String> {
    let Target::Kernel { parameter } = &change.target else { return None };
    Some(match value {
        "" => parameter.clone(),
        _ if value.contains(' ') => format!("{parameter}=\"{value}\""),
        _ => format!("{parameter}={value}"),
    })
}

/// Refuses a parameter whose first value counts, and that is on the command line with another value already.
fn twice(change: &Change) -> Option<PlanRefusal> {
    let Target::Kernel { parameter } = &change.target else { return None };
    let now = change.now.as_deref().filter(|now| *now != change.then)?;
    FIRST_COUNTS.contains(&parameter.as_str()).then(|| PlanRefusal {
        what: format!("{parameter}={now} is already on the command line, and the kernel uses the first of two"),
        hint: format!(
            "remove it at its source (/etc/default/grub, or `tactus tune revert`), reboot, then run this again; or \
--without {}",
            change.check
        ),
    })
}

/// Fedora and RHEL: grubby changes every installed kernel's entry, and replaces a value of the same
/// name.
fn grubby(all: &[&Change], words: &[String]) -> Vec<Step> {
    let call = |option: &str, words: &[String]| -> Vec<String> {
        vec!["grubby".into(), "--update-kernel=ALL".into(), format!("{option}={}", words.join(" "))]
    };
    let (mut added, mut replaced) = (Vec::new(), Vec::new());
    for change in all {
        match &change.now {
            None => added.extend(word(change, &change.then)),
            Some(now) => replaced.extend(word(change, now)),
        }
    }
    let step = |now, back| Step { check: "boot".into(), action: Action::Run { now, back } };
    let mut steps = Vec::new();
    if !replaced.is_empty() {
        steps.push(step(None, Some(call("--args", &replaced))));
    }
    if !added.is_empty() {
        steps.push(step(None, Some(call("--remove-args", &added))));
    }
    steps.push(step(Some(call("--args", words)), None));
    steps
}
