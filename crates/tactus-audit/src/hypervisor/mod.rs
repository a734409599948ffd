//! Hypervisor.

room! {
    activity,
    device_interrupts,
    devices,
    disk,
    guest_cpu,
    guest_isolation,
    guest_memory,
    guest_timer,
    io_path,
    kvm_exits,
    kvm_timers,
    numa,
    other_hypervisors,
    other_threads,
    passthrough,
    posted_interrupts,
    slice,
    vcpus,
}

#[cfg(test)]
mod tests;
