//! Guest kernels: finding, identifying and fetching them, and preparing them for a guest.

mod apt;
mod arch;
mod boot;
pub mod card_module;
mod cpio;
mod elf;
mod fetch;
mod find;
mod image;
mod modinfo;
mod modules;
mod unpack;

pub use arch::OWN;
pub use boot::{Bootable, bootable};
pub use cpio::Cpio;
pub use fetch::fetch;
pub use find::{Kernel, KernelError, Origin, chosen, find, list, use_};
pub use image::{Image, identify};
pub use modules::{Module, needed};
