//! Platform and firmware.

room! {
    presence, virtualization, iommu, smt, turbo, idle_states, idle_limits, latency_zero, package_states, frequency, frequency_driver, uncore,
    memory_speed, links, usb, interruptions, throttling, services, microcode, clusters, hybrid, secure_world, tcc,
}

#[cfg(test)]
mod tests;
