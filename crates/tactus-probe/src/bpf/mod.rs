//! BPF programs that the probe writes itself: their instructions, and why a kernel refuses them.

pub mod instruction;
pub mod why;
