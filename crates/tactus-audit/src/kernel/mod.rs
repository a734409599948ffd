//! Kernel and isolation.

room! {
    asked,
    callbacks,
    configuration,
    efi_runtime,
    entering,
    hung_task,
    interrupts,
    isolation,
    latency_tracers,
    network,
    own_irq,
    own_limits,
    partition,
    placement,
    preempt_mode,
    preemption,
    rcu_expedited,
    rcu_patience,
    realtime,
    receiving,
    rescue,
    selinux_cache,
    services,
    shared_line,
    threaded,
    throttling,
    timestamp_key,
    watching,
}

pub use interrupts::{is_chosen, is_managed};
pub use isolation::isolcpus_value;
pub use throttling::rescued;

#[cfg(test)]
mod tests;
