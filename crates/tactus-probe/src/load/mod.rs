//! Loads: one file each, one line in the table. They run in a [`crate::companion`].

pub mod cpu;
pub mod scheduler;

use tactus_model::CpuSet;
use tactus_model::activity;
use tactus_model::message::Refusal;

use crate::companion::Work;

/// A load.
pub trait Load: Sync {
    /// The word of the plan.
    fn name(&self) -> &'static str;

    /// What its workers do on `cpus`, a process each.
    ///
    /// # Errors
    /// When a parameter is out of its range or the system lacks something.
    fn works(&self, load: &activity::Load, cpus: &CpuSet) -> Result<Vec<Work>, Refusal>;
}

/// Every load of this probe.
pub static LOADS: &[&dyn Load] = &[&scheduler::Scheduler, &cpu::Cpu];

/// The load of a plan's table.
pub fn find(load: &activity::Load) -> Option<&'static dyn Load> {
    LOADS.iter().copied().find(|entry| entry.name() == load.kind())
}
