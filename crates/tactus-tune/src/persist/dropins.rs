//! Drop-ins of modprobe, sysctl, tmpfiles, systemd and irqbalance.

use std::collections::BTreeMap;

use tactus_model::change::{Effect, Target};

use super::{install, with_command};
use crate::plan::{Plan, PlannedChange, goes_with_driver};
use crate::transaction::{Step, own_files};

/// The steps, in the order of their files.
pub(super) fn steps(plan: &Plan) -> Vec<Step> {
    let mut steps = Vec::new();
    steps.extend(file(plan, own_files::MODPROBE, modprobe));
    steps.extend(file(plan, own_files::SYSCTL, sysctl));
    steps.extend(file(plan, own_files::TMPFILES, tmpfiles));
    steps.extend(systemd(plan));
    steps
}

/// A file with a line for each change that it is for and that the next boot has, under the check that the line
/// answers.
fn file(plan: &Plan, path: &str, line: fn(&PlannedChange) -> Option<String>) -> Option<Step> {
    let mut lines: Vec<String> = Vec::new();
    let mut last = "";
    let all = || plan.entries.iter().map(|step| &step.change);
    for step in plan.entries.iter().filter(|step| !goes_with_driver(&step.change, all())) {
        let Some(line) = line(step) else { continue };
        if last != step.change.check {
            last = &step.change.check;
            lines.push(format!("# {last}"));
        }
        lines.push(line);
    }
    (!lines.is_empty()).then(|| install(path.rsplit('/').nth(1).unwrap_or(path), path, &lines))
}

/// modprobe.d(5).
fn modprobe(step: &PlannedChange) -> Option<String> {
    let Target::Module { module, parameter } = &step.change.target else { return None };
    Some(format!("options {module} {parameter}={}", step.change.then))
}

/// sysctl.d(5): with slashes, since names of network devices may have dots.
fn sysctl(step: &PlannedChange) -> Option<String> {
    let Target::File { path, .. } = &step.change.target else { return None };
    let name = path.strip_prefix("/proc/sys/")?;
    (step.change.effect == Effect::Runtime).then(|| format!("{name} = {}", step.change.then))
}

/// tmpfiles.d(5): `w` writes to a file that is there. Interrupts have other numbers after the next
/// boot; `irqaffinity=` is for them.
fn tmpfiles(step: &PlannedChange) -> Option<String> {
    let Target::File { path, .. } = &step.change.target else { return None };
    let plain = path.starts_with("/sys/") && !path.contains(char::is_whitespace);
    // `%` begins a specifier, and `\` an escape.
    let then = step.change.then.replace('\\', "\\\\").replace('%', "%%");
    (plain && step.change.effect == Effect::Runtime).then(|| format!("w {path} - - - - {then}"))
}

/// Drop-ins by unit.
pub(crate) fn systemd(plan: &Plan) -> Vec<Step> {
    let mut units: BTreeMap<&str, Vec<&PlannedChange>> = BTreeMap::new();
    for step in &plan.entries {
        if let Target::DropIn { unit, .. } = &step.change.target {
            units.entry(unit).or_default().push(step);
        }
    }
    let mut steps = Vec::new();
    for (unit, changes) in units {
        let dir = own_files::drop_in_dir(unit);
        let [conf, env] = own_files::DROP_IN.map(|file| format!("{dir}/{file}"));
        let (mut lines, mut section, mut environment) = (Vec::new(), "", Vec::new());
        for step in changes {
            let Target::DropIn { section: own, key, .. } = &step.change.target else { continue };
            lines.push(format!("# {}", step.change.check));
            if section != own {
                section = own;
                lines.push(format!("[{section}]"));
            }
            if key == "Environment" {
                // Files win over Environment=, and the last file over the others: a unit that reads
                // /etc/default/NAME is only told by another file (systemd.exec(5)).
                environment.push(step.change.then.clone());
                lines.push(format!("EnvironmentFile={env}"));
            } else {
                lines.push(format!("{key}={}", step.change.then));
            }
        }
        let mut files = vec![install(unit, &conf, &lines)];
        if !environment.is_empty() {
            files.insert(0, install(unit, &env, &environment));
        }
        if unit == "system.conf" {
            steps.extend(files);
        } else {
            let restarted = with_command(&files, &["systemctl", "try-restart", unit]);
            steps.extend(with_command(&restarted, &["systemctl", "daemon-reload"]));
        }
    }
    steps
}
