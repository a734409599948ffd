//! The virtual machines that run on a host, from the `vm:<pid>:*` readings and the threads.

mod each;
mod machine;
mod qemu;
#[cfg(test)]
pub mod testing;

pub use each::{each, realtime};
pub use machine::{Monitor, Vm};
pub use qemu::OfWhole;
pub use tactus_model::qemu_arguments::{Arguments, Parameter};
