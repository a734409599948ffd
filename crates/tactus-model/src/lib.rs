//! The data of tactus and the pure rules over it. Nothing here touches a machine.
//!
//! Every crate speaks these words: the probe sends [`message`]s in [`wire`] frames, the host side
//! reads a [`plan`], writes [`event`]s and a [`bundle`], and the report turns a bundle into a
//! [`document`].

pub mod buckets;
pub mod bundle;
pub mod caches;
pub mod catalogue;
pub mod change;
pub mod cmdline;
pub mod control;
pub mod cpus;
pub mod dependence;
pub mod document;
pub mod duration;
pub mod event;
pub mod evidence;
pub mod facts;
pub mod finding;
pub mod histograms;
pub mod interrupts;
pub mod latency;
mod mask;
pub mod message;
pub mod number;
pub mod outcome;
pub mod partition;
pub mod plan;
pub mod resctrl;
pub mod rpc;
pub mod scheduling;
pub mod series;
pub mod size;
pub mod threads;
pub mod ticks;
pub mod topology;
pub mod undo;
pub mod wire;

pub use cpus::CpuSet;
pub use duration::Nanos;
pub use evidence::Evidence;
pub use latency::{Latency, Sparse};
