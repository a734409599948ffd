//! The only module of the probe with unsafe code: raw system calls, `fork`, BPF, the heap. The unsafe code for clocks
//! and thread scheduling is in `tactus-measure`.
//!
//! All other code uses the safe functions here, or rustix.

pub mod bpf;
pub mod chain;
mod cpuid;
mod cycles;
pub mod heap;
mod kernel_log;
mod memory;
mod network;
mod pages;
pub mod perf;
mod ports;
mod process;
mod ptrace;
mod select;
#[cfg(target_env = "musl")]
mod thread_name;
#[cfg(all(target_env = "musl", panic = "abort"))]
mod unwind;

pub use tactus_measure::sys::{
    OnSignal, Request, SchedAttr, affinity, affinity_mask, affinity_of, boottime, descriptor, now, on_signal,
    own_time, realtime, scheduler_of, set_affinity, set_affinity_of, set_scheduler, set_scheduler_of,
    sleep_until, ticks_per_second, time_of,
};

pub use cpuid::cpuid_leaves;
#[cfg(target_arch = "x86_64")]
pub use cpuid::{ask_cpuid, is_cell};
pub use cycles::additions;
pub use kernel_log::kernel_log;
pub use memory::{Shared, shared};
pub use network::{give_address, raise};
pub use pages::{PageSize, Pages};
#[cfg(target_arch = "x86_64")]
pub use ports::Port;
pub use process::{
    children_time, close_others_on_exec, die_with_parent, execute, fork, own_mounts, separate_processes,
    set_name,
};
pub use ptrace::{resume_thread, stop_thread};
pub use select::Writable;
