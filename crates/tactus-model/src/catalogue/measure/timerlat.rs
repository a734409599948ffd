//! `timerlat`: the kernel's own tracer of timer latency.

use crate::catalogue::declare::word;
use crate::wire::row::choice;

word! {
    /// The kernel's timerlat tracer (CONFIG_TIMERLAT_TRACER) arms a timer on each CPU every `interval`, and writes down how late
    /// its interrupt handler began (`irq`) and how late the thread was that the handler woke (`thread`: SCHED_FIFO, with the
    /// `priority` of the measurement). The probe sets the tracer up in an instance of tracefs of its own, and reads what it
    /// writes from a thread of ordinary priority on a CPU that keeps house. It measures nothing itself. Both values are latencies
    /// of the operating system where it is measured: in a guest those of the guest's kernel, and not of an interrupt that a
    /// device raises.
    ///
    /// An activity measures one of the two; two activities with the same `interval` share the tracer, so that both values
    /// are of the same wake-ups. What the kernel wrote over before it was read is counted as lost, and nothing passes then. A
    /// timer later than one interval misses periods: they are overruns, and put back in the corrected quantiles. While the
    /// tracer's thread is late it arms no timer: periods that the interrupt lacks for that reason are told of.
    ///
    /// The settings of timerlat and osnoise are shared by the whole machine. They are put back at the end, however it
    /// comes; where somebody else uses one of the two tracers, the measurement is refused and nothing is touched. It needs root.
    ///
    /// The self-test is a stand-in: the reader's thread writes lines as the kernel does, of wake-ups of its own, and is held for a
    /// known time. That the kernel's own lines are true is the kernel's word.
    #[derive(Default)]
    pub struct Timerlat = Measure "timerlat": "timer latency of the kernel, by its timerlat tracer: of the interrupt or of the thread" {
        /// What is measured of a period: until the interrupt's handler begins (`irq`), or until the thread runs (`thread`).
        pub value: Option<TimerlatValue> = TimerlatValue::Irq;
    }
    counts "timer periods";
}

choice! {
    /// What is measured of a period of timerlat.
    pub enum TimerlatValue {
        /// Until the timer's interrupt handler begins.
        Irq = "irq",
        /// Until the thread runs that it wakes.
        Thread = "thread",
    }
}
