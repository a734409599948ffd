//! The virtual machines that run on a host, from the `vm:<pid>:*` readings and the threads.

mod arguments;
mod each;
mod machine;
mod qemu;
#[cfg(test)]
pub mod testing;

pub use arguments::{Arguments, Parameter};
pub use each::{each, realtime};
pub use machine::{Monitor, Vm};
