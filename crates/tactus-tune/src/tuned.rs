//! Where TuneD is at work, a plan is a profile of TuneD's: two tools that set the same things undo each
//! other's work.

use std::collections::BTreeMap;
use std::path::Path;

use tactus_audit::guard::interrupt;
use tactus_model::change::{Change, Effect, Target};
use tactus_system::System;

use super::plan::{Plan, PlanRefusal};
use super::transaction::own_files::{self, MARK, PROFILE as NAME};
use super::transaction::{Action, Step};

/// Whether TuneD's daemon runs. Its pid file may remain after it, and its number may then belong to any process: so
/// it must be root's process outside of containers.
#[must_use]
pub fn is_active(system: &dyn System) -> bool {
    let Some(pid) = system.text("/run/tuned/tuned.pid") else { return false };
    system.find_program("tuned-adm").is_some()
        && pid.trim().parse::<u32>().is_ok_and(|pid| {
            let status = system.text(&format!("/proc/{pid}/status")).unwrap_or_default();
            // A Python program: its name is `tuned` on newer kernels' systems, else the interpreter's.
            is_roots(&status)
                && system
                    .text(&format!("/proc/{pid}/cmdline"))
                    .is_some_and(|line| line.split('\0').any(|word| word.rsplit('/').next() == Some("tuned")))
        })
}

/// Whether a process is root's, by all of its users, and of this machine, by its `/proc/PID/status`.
fn is_roots(status: &str) -> bool {
    let values = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.split_whitespace().collect::<Vec<_>>())
    };
    values("Uid:").is_some_and(|users| !users.is_empty() && users.iter().all(|user| *user == "0"))
        && values("NSpid:").is_some_and(|numbers| numbers.len() == 1)
}

/// The directory of the administrator's profiles: since TuneD 2.24 a separate one.
fn dir(system: &dyn System) -> &'static str {
    own_files::PROFILES[usize::from(system.exists(Path::new("/usr/lib/tuned/profiles")))]
}

/// The steps: our profile, then TuneD's choice of it.
pub(super) fn steps(system: &dyn System, plan: &Plan, persist: bool) -> Result<Vec<Step>, Vec<PlanRefusal>> {
    let path = own_files::profile(dir(system));
    let then = conf(plan, persist);
    let former = match system.text(&path) {
        Some(text) if !text.starts_with(MARK) => {
            return Err(vec![PlanRefusal {
                what: format!("{path} exists and was not written by tactus"),
                hint: "give that profile another name".into(),
            }]);
        }
        former => former,
    };
    let chosen = system.text("/etc/tuned/active_profile").unwrap_or_default().trim().to_owned();
    let automatic = system.text("/etc/tuned/profile_mode").is_some_and(|mode| mode.trim() == "auto");
    let step = |action| Step { check: "tuned".into(), action };
    if chosen == NAME {
        // Our profile is active: only make new changes.
        return Ok(match former.as_deref() == Some(then.as_str()) {
            true => Vec::new(),
            false => {
                let again = Some(vec!["tuned-adm".into(), "profile".into(), NAME.into()]);
                vec![
                    step(Action::Install { path, former, then }),
                    step(Action::Run { now: again, back: None }),
                ]
            }
        });
    }
    Ok(vec![
        step(Action::Install { path, former, then }),
        step(Action::TunedProfile { former: chosen, automatic, then: NAME.into() }),
    ])
}

/// The profile, by TuneD's plug-ins.
fn conf(plan: &Plan, persist: bool) -> String {
    let mut sections: Vec<(&str, Vec<String>)> = Vec::new();
    let mut put = |section: &'static str, line: String| match sections.iter_mut().find(|(s, _)| *s == section)
    {
        Some((_, lines)) => {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        None => sections.push((section, vec![line])),
    };
    let mut boot = Vec::new();
    let mut modules: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    // TuneD's isolated_cores= moves every interrupt: it is left out where one of them is to stay.
    let stays = plan.withheld.iter().any(|withheld| interrupt(&withheld.change).is_some());
    for step in &plan.entries {
        let then = &step.change.then;
        match &step.change.target {
            Target::File { .. } | Target::Affinity(_) if stays && moves(&step.change) => {}
            Target::File { path, .. } if path.starts_with("/proc/irq/") => {
                put("scheduler", format!("isolated_cores={}", plan.isolation.isolated));
            }
            Target::File { path, .. } => match path.strip_prefix("/proc/sys/") {
                Some(name) => put("sysctl", format!("{}={then}", name.replace('/', "."))),
                None if path.starts_with("/sys/") => put("sysfs", format!("{path}={then}")),
                None => {}
            },
            Target::Affinity(_) => put("scheduler", format!("isolated_cores={}", plan.isolation.isolated)),
            Target::Kernel { parameter } if step.change.effect == Effect::Boot => {
                boot.push(if then.is_empty() { parameter.clone() } else { format!("{parameter}={then}") });
            }
            Target::DropIn { unit, key, .. } => match (unit.as_str(), key.as_str()) {
                ("system.conf", "CPUAffinity") if persist => put("systemd", format!("cpu_affinity={then}")),
                ("irqbalance.service", _) => {
                    put("irqbalance", format!("banned_cpus={}", plan.isolation.isolated));
                }
                _ => {}
            },
            // Written to modprobe.d; without `+r` no module is reloaded under a running guest.
            Target::Module { module, parameter } if persist => {
                modules.entry(module).or_default().push(format!("{parameter}={then}"));
            }
            // TuneD knows threads by what they are called, and any user's process can call itself `[ksoftirqd`: they get
            // their policy from us, by their numbers.
            Target::Scheduling(_)
            | Target::Module { .. }
            | Target::Kernel { .. }
            | Target::Service { .. } => {}
        }
    }
    for (module, options) in modules {
        put("modules", format!("{module}={}", options.join(" ")));
    }
    if persist && !boot.is_empty() {
        put("bootloader", format!("cmdline_tactus=+{}", boot.join(" ")));
    }
    let mut text =
        format!("{MARK}\n[main]\nsummary=tactus: {} on CPUs {}\n", plan.profile, plan.isolation.isolated);
    for (section, lines) in sections {
        text += &format!("\n[{section}]\n{}\n", lines.join("\n"));
    }
    text
}

/// Whether TuneD would make the change by moving whatever is on isolated CPUs.
fn moves(change: &Change) -> bool {
    matches!(change.target, Target::Affinity(_))
        || matches!(&change.target, Target::File { path, .. } if path.starts_with("/proc/irq/"))
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;

    #[test]
    fn a_process_that_has_the_number_of_tuneds_daemon_is_not_it_for_that() {
        let of = |users: &str, numbers: &str| {
            let machine = Memory::new()
                .program("tuned-adm")
                .file("/run/tuned/tuned.pid", "77\n")
                .file("/proc/77/cmdline", "/usr/bin/python3\0/usr/sbin/tuned\0")
                .file("/proc/77/status", format!("Name:\ttuned\nUid:\t{users}\nNSpid:\t{numbers}\n"));
            is_active(&machine)
        };
        assert!(of("0\t0\t0\t0", "77"));
        assert!(!of("1000\t1000\t1000\t1000", "77") && !of("1000\t0\t0\t0", "77"), "a user's");
        assert!(!of("0\t0\t0\t0", "77\t5") && !of("", "77") && !of("0\t0\t0\t0", ""), "a container's");
    }
}
