//! The data of tactus and the pure rules over it. No code here touches a machine.
//!
//! All crates share these types. The probe sends [`message`]s in [`wire`] frames. The host side reads a [`plan`] and
//! writes [`event`]s and a [`bundle`], and the report turns a bundle into a [`document`].

pub mod bundle;
pub mod catalogue;
pub mod change;
pub mod document;
pub mod event;
pub mod finding;
pub mod machine;
pub mod outcome;
pub mod plan;
pub mod text;
pub mod undo;
pub mod unit;
pub mod wire;

// Modules that are used often can be named from the root.
pub use machine::{
    caches, cmdline, dependence, facts, hypervisor, interrupts, isolation, own_groups, partition, patience,
    process_files, qemu_arguments, resctrl, scheduling, threads, topology,
};
pub use outcome::{buckets, clock, control, evidence, histograms, latency, series, ticks, trace, windows};
pub use unit::{cpus, duration, lot, number, random, size};
pub use wire::{device_card, message, rpc};

pub use cpus::CpuSet;
pub use duration::Nanos;
pub use evidence::Evidence;
pub use latency::{Latency, Sparse};
