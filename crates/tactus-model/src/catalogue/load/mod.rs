//! Loads that a probe can run beside a measurement.

super::declare::family! {
    /// A load.
    pub enum Load, LOADS {
        scheduler::Scheduler, cpu::Cpu, cache::Cache, memory::Memory, disk::Disk, network::Network,
        command::Command, console::Console,
    }
}
