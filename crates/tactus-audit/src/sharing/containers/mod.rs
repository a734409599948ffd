//! A container's resources and rights, seen from inside.

mod budget;
mod cgroup;
mod cpus;
mod privileges;
mod quota;
mod separation;

use crate::Check;

pub static CHECKS: &[Check] =
    &[cpus::CHECK, privileges::CHECK, budget::CHECK, quota::CHECK, separation::CHECK];
