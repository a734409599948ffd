//! Changes of a plan that the next boot will undo.

use tactus_model::change::{Change, Target};

/// Whether the change sets a value of a driver that the plan's next boot no longer has (`intel_pstate=disable`,
/// `amd_pstate=disable`). The driver acpi-cpufreq then has the firmware's clocks, and neither the values nor the
/// files of the former driver. A driver that stays, in any mode, has the same clocks at the next boot.
pub fn goes_with_driver<'a>(change: &Change, mut plan: impl Iterator<Item = &'a Change>) -> bool {
    let Target::File { path, .. } = &change.target else { return false };
    let of_driver = ["/scaling_min_freq", "/scaling_max_freq", "/energy_performance_preference"];
    let is_of_driver = of_driver.iter().any(|name| path.ends_with(name))
        || ["/intel_pstate/", "/amd_pstate/"].iter().any(|dir| path.contains(dir));
    is_of_driver
        && plan.any(|other| {
            matches!(&other.target, Target::Kernel { parameter } if parameter.ends_with("_pstate"))
                && other.then == "disable"
                && !other.holds()
        })
}
