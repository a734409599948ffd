//! `timerlat`: the kernel's own tracer of timer latency.

use crate::catalogue::declare::word;
use crate::wire::row::choice;

word! {
    /// The kernel's timerlat tracer (CONFIG_TIMERLAT_TRACER) arms a timer on each CPU every `interval`. It records how
    /// late the timer's interrupt handler began (`irq`), and how late the thread that the handler woke ran (`thread`).
    /// That thread is SCHED_FIFO, with the `priority` of the measurement. The probe sets up the tracer in a separate
    /// instance of tracefs. A thread of the probe with ordinary priority reads the trace on a housekeeping CPU. The
    /// probe measures nothing itself. Both values are latencies of the operating system in which they are measured. In
    /// a guest they are those of the guest's kernel, not of an interrupt that a device raises.
    ///
    /// An activity measures one of the two. Two activities with the same `interval` share the tracer, so that both
    /// values are of the same wake-ups. Records that the kernel overwrote before they were read count as lost, and then
    /// the result never passes. A timer later than one interval misses periods. These are overruns, and the corrected
    /// quantiles include them. While the tracer's thread is late it arms no timer. A note reports the periods that the
    /// interrupt lacks for that reason.
    ///
    /// The whole machine shares the settings of timerlat and osnoise. They are restored at the end, however the run
    /// ends. If something else uses one of the two tracers, the measurement is refused and nothing is changed. It needs
    /// root.
    ///
    /// The self-test uses a stand-in: the reader's thread writes lines as the kernel does, for its own wake-ups, and is
    /// delayed for a known time. The kernel's own lines are not tested.
    #[derive(Default)]
    pub struct Timerlat = Measure "timerlat": "timer latency of the kernel, by its timerlat tracer: of the interrupt or of the thread" {
        /// The measured part of a period: until the interrupt's handler begins (`irq`), or until the thread runs
        /// (`thread`).
        pub value: Option<TimerlatValue> = TimerlatValue::Irq;
    }
    counts "timer periods";
}

choice! {
    /// The measured part of a period of timerlat.
    pub enum TimerlatValue {
        /// Until the timer's interrupt handler begins.
        Irq = "irq",
        /// Until the thread that it wakes runs.
        Thread = "thread",
    }
}
