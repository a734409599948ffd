//! Caches and memory bandwidth that are given out by share (Documentation/filesystems/resctrl.rst).

mod allocation;
mod bandwidth;
mod groups;
mod monitoring;

use crate::Check;

pub use allocation::partitioned;

pub static CHECKS: &[Check] = &[allocation::CHECK, bandwidth::CHECK, monitoring::CHECK];
