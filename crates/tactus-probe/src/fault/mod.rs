//! Faults: one file each, one line in the table. They run in a [`crate::companion`].

pub mod hog;

use tactus_model::CpuSet;
use tactus_model::activity;
use tactus_model::message::Refusal;

use crate::companion::Work;

/// A fault.
pub trait Fault: Sync {
    /// The word of the plan.
    fn name(&self) -> &'static str;

    /// What its workers do on `cpus`, a process each; `above` is a priority above the measuring
    /// threads.
    ///
    /// # Errors
    /// When a parameter is out of its range or the system refuses it.
    fn works(&self, fault: &activity::Fault, cpus: &CpuSet, above: u32) -> Result<Vec<Work>, Refusal>;
}

/// Every fault of this probe.
pub static FAULTS: &[&dyn Fault] = &[&hog::Hog];

/// The fault of a plan's table.
pub fn find(fault: &activity::Fault) -> Option<&'static dyn Fault> {
    FAULTS.iter().copied().find(|entry| entry.name() == fault.kind())
}
