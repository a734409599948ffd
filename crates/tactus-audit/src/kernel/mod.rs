//! Kernel and isolation.

room! {
    callbacks,
    configuration,
    entering,
    interrupts,
    isolation,
    network,
    partition,
    placement,
    preemption,
    realtime,
    services,
    threaded,
    throttling,
    watching,
}

#[cfg(test)]
mod tests;
