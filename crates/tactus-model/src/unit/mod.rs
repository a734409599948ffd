//! Units: lengths of time, amounts, sets of CPUs, and how numbers are read.

pub mod cpus;
pub mod duration;
pub mod lot;
mod mask;
pub mod number;
pub mod random;
pub mod size;
