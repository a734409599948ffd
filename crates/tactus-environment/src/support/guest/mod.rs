//! Common parts of the kinds of virtual machine: booting, accelerator, placement of threads, and the console's last
//! words.

pub mod accel;
mod boot;
mod console;
pub mod devices;
mod evidence;
mod initramfs;
pub mod keys;
mod pinning;
mod stream;

pub use accel::Accel;
pub use boot::{Boot, KVM_PATIENCE, OWN, TCG_PATIENCE, arch, check, prepare, wanted_kernel};
pub use console::Console;
pub use evidence::evidence;
pub use pinning::{PRIORITY, Threads, fifo, settle};
pub use stream::{BootError, first_byte, listen};

/// Name of the channel to a guest's probe.
pub const CHANNEL: &str = "org.tactus.probe";
