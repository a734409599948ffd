//! Settings that `--persist` keeps for the next boot.

use tactus_model::change::{Change, Effect, Form, Target};

use super::transaction::{machine, planned};
use crate::persist::steps;
use crate::transaction::Action;

const CLOCK: &str = "/sys/devices/system/cpu/cpu2/cpufreq/scaling_min_freq";
const TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";
const PREFERENCE: &str = "/sys/devices/system/cpu/cpu2/cpufreq/energy_performance_preference";
const GOVERNOR: &str = "/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor";

fn change(target: Target, effect: Effect, now: Option<&str>, then: &str) -> Change {
    Change { check: "clock".into(), target, now: now.map(str::to_owned), then: then.into(), effect }
}

/// The values of the clock in tmpfiles.d, if the plan boots with this parameter of a driver.
fn kept(parameter: &str, now: Option<&str>, then: &str) -> Vec<&'static str> {
    let values = [(CLOCK, "3900000"), (TURBO, "1"), (PREFERENCE, "performance"), (GOVERNOR, "performance")];
    let mut changes: Vec<Change> = values
        .iter()
        .map(|(path, then)| {
            let target = Target::File { path: (*path).into(), form: Form::Plain };
            change(target, Effect::Runtime, None, then)
        })
        .collect();
    changes.push(change(Target::Kernel { parameter: parameter.into() }, Effect::Boot, now, then));
    let steps = steps(&machine(), &planned(changes)).unwrap();
    let file = steps.iter().find_map(|step| match &step.action {
        Action::Install { path, then, .. } if path == "/etc/tmpfiles.d/tactus.conf" => Some(then.as_str()),
        _ => None,
    });
    values.map(|(path, _)| path).into_iter().filter(|path| file.unwrap_or_default().contains(path)).collect()
}

#[test]
fn values_of_a_driver_that_the_next_boot_does_not_have_are_not_kept() {
    for parameter in ["intel_pstate", "amd_pstate"] {
        assert_eq!(kept(parameter, None, "disable"), [GOVERNOR]);
        assert_eq!(kept(parameter, Some("active"), "disable"), [GOVERNOR]);
    }
}

#[test]
fn values_of_a_driver_that_stays_are_kept() {
    let all = [CLOCK, TURBO, PREFERENCE, GOVERNOR];
    // The system runs without it already: these are acpi-cpufreq's.
    assert_eq!(kept("intel_pstate", Some("disable"), "disable"), all);
    assert_eq!(kept("intel_pstate", None, "passive"), all);
    assert_eq!(kept("isolcpus", None, "domain,2-7"), all);
}
