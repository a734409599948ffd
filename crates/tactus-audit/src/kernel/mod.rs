//! Kernel and isolation.

room! {
    callbacks,
    configuration,
    entering,
    interrupts,
    isolation,
    latency_tracers,
    network,
    own_irq,
    partition,
    placement,
    preemption,
    realtime,
    rescue,
    services,
    threaded,
    throttling,
    watching,
}

#[cfg(test)]
mod tests;
