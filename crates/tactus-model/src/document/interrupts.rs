//! How the interrupts of an environment arrive.

use serde::{Deserialize, Serialize};

/// The interrupts of one environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterruptsEntry {
    /// The environment, with the state of the machine: `host@cpu-partitioning`.
    pub place: String,
    /// The CPUs on which latencies were measured, as a cpulist.
    pub measured: String,
    /// The devices' interrupts that a driver handles, by number.
    pub devices: Vec<InterruptEntry>,
    /// Posted interrupts; `null` if KVM does not run.
    pub posted: Option<PostedEntry>,
}

/// A device's interrupt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterruptEntry {
    /// Its number.
    pub irq: u32,
    /// Whether it is a message (MSI, MSI-X); else it is a line.
    pub message: bool,
    /// The controller, as the kernel calls it: `PCI-MSIX-0000:00:02.0`, `IO-APIC`.
    pub chip: String,
    /// Its handlers; several share it.
    pub handlers: Vec<String>,
    /// CPUs on which it may arrive, as a cpulist; `null`: unknown.
    pub allowed: Option<String>,
    /// CPUs on which it does arrive, as a cpulist; `null`: the kernel does not report them.
    pub effective: Option<String>,
    /// Number of arrivals.
    pub count: u64,
    /// Policy and priority of the threads that handle it: `FIFO 50`; empty: no thread handles it, the CPU on which it
    /// arrives does.
    pub threads: Vec<String>,
}

/// Interrupts that reach a running guest without an exit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PostedEntry {
    /// KVM's parameter for it: `kvm_intel.enable_apicv=Y`, `kvm_amd.avic=0`.
    pub parameter: String,
    /// How many notifications the kernel counted (`PIN`, `NPI` and `PIW` of /proc/interrupts); `null`: it counts none.
    pub notified: Option<u64>,
}
