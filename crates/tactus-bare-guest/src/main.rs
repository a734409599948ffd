//! A guest without an operating system: an x86 machine that measures how late its own timer's interrupts are.
//!
//! It stands in the place of a real-time operating system of a few hundred KB, and does the least that such a system
//! can do. Its numbers are therefore the floor of the machine and of the hypervisor below it.
//!
//! Read in this order: [`sys::boot`] (the first instructions), [`sys::interrupts`], [`sys::apic`], [`clock`],
//! [`timer`], `exits`, [`sys::pci`] and [`card`], and [`session`]. The session speaks with the host side as the probe
//! does (docs/design/wire.md).
//!
//! Without a host side the command line contains the job ([`alone`]): a boot loader can start the guest on bare
//! metal.
//!
//! No other program runs on this machine: the guest uses all of it.
//!
//! ```text
//! cargo build -p tactus-bare-guest --profile probe --target x86_64-unknown-none
//! qemu-system-x86_64 -M pc -m 64 -nodefaults -display none -serial stdio -kernel tactus-bare-guest
//! ```
#![cfg_attr(target_os = "none", no_std, no_main)]
#![cfg_attr(
    not(any(test, target_os = "none")),
    expect(dead_code, reason = "the parts that need no machine are tested elsewhere")
)]
#![expect(
    clippy::cast_possible_truncation,
    reason = "registers are made of pieces of numbers; a time in ns fits 64 bits for 584 years"
)]

extern crate alloc;

mod alone;
mod boot_info;
#[cfg(target_os = "none")]
mod card;
#[cfg(target_os = "none")]
mod clock;
mod control;
#[cfg(target_os = "none")]
mod exits;
mod histogram;
mod job;
mod json;
#[cfg(target_os = "none")]
mod serial;
#[cfg(target_os = "none")]
mod session;
mod statistics;
#[cfg(target_os = "none")]
#[expect(unsafe_code, reason = "the room of what no language has")]
mod sys;
#[cfg(target_os = "none")]
mod timer;
mod wire;

/// On a machine that has an operating system there is nothing to do.
#[cfg(not(target_os = "none"))]
fn main() {}
