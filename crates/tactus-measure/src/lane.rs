//! The data shared by a measuring thread and the session thread: the thread's orders, its samples, its end.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::thread::futex;
use tactus_model::scheduling::Policy;
use tactus_model::series::SeriesKey;

use crate::card::Card;
use crate::ftrace::Ftrace;
use crate::gaps::GapHistogram;
use crate::reading::Reading;
use crate::ring::{CachePadded, Ring};
use crate::sys;

/// The task of a lane; fixed before its thread starts.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The measuring activity.
    pub activity: u32,
    /// The series it yields.
    pub series: SeriesKey,
    /// Time between two wake-ups, in ns; 0 where nothing is periodic.
    pub interval_ns: u64,
    /// How the thread is scheduled.
    pub policy: Policy,
    /// The job ends when a value exceeds this (`u64::MAX`: never).
    pub limit_ns: u64,
    /// Part of the time that `spin` polls, in per cent.
    pub busy: u32,
    /// The CPU of its thread, if it is not that of its series: the thread reads the values of that CPU, or raises
    /// interrupts that are handled there.
    pub reads_on: Option<u32>,
}

impl Spec {
    /// The CPU on which its thread is.
    pub fn cpu(&self) -> u32 {
        self.reads_on.unwrap_or(self.series.cpu)
    }
}

/// How often a thread that waits for the common beginning looks for it, in ns.
const LOOK_NS: u64 = 1_000_000;

/// A stretch of measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First due time, CLOCK_MONOTONIC in ns. Where the run is open: counted from the beginning.
    pub start: u64,
    /// No due time at or after this; as `start`.
    pub end: u64,
    /// The thread begins with all others ([`Lane::beginning`]). A late thread is late: everything counts from its first
    /// due time on. If false, the thread waits for its order, and due times before it looked do not count.
    pub open: bool,
    /// Time between two due times, in ns.
    pub interval_ns: u64,
    /// It is a control: DEADLINE threads are then FIFO, and no limit applies.
    pub control: bool,
}

/// The next task of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Measure.
    Run(Run),
    /// End.
    Quit,
}

/// The data shared by all threads of a job.
#[derive(Default)]
pub struct Common {
    /// End now.
    pub stop: AtomicBool,
    /// When open runs begin, CLOCK_MONOTONIC in ns; 0: not known yet.
    pub beginning: AtomicU64,
    /// When a value exceeded its limit, CLOCK_MONOTONIC in ns; 0: none did.
    pub broke_at: AtomicU64,
    /// The kernel's trace, which is stopped when a value exceeds its limit.
    pub ftrace: OnceLock<Ftrace>,
    /// A thread did not end and was left to its end.
    pub abandoned: AtomicBool,
}

/// The shared state of one measuring thread.
pub struct Lane {
    /// The task of this lane.
    pub spec: Spec,
    /// Its samples.
    pub(crate) ring: Ring,
    /// Counts of `spin`.
    pub gaps: Option<GapHistogram>,
    /// The card of its thread.
    pub card: Option<Arc<Card>>,
    /// The source that its thread reads, if the thread measures nothing itself.
    pub reading: Option<Arc<dyn Reading>>,
    /// Its thread id.
    pub tid: AtomicU32,
    /// The data shared by all lanes of a job.
    pub common: Arc<Common>,
    /// A value that exceeded the limit; 0: none.
    pub broke: AtomicU64,
    /// The error of the thread (an errno); 0: no error.
    pub failed: AtomicU32,
    orders: CachePadded<Mailbox>,
}

/// Orders go one way, the number of the last finished one the other. Both sleep on futexes, before
/// and after measuring, never during it.
#[derive(Default)]
struct Mailbox {
    sequence: AtomicU32,
    finished: AtomicU32,
    quit: AtomicBool,
    start: AtomicU64,
    end: AtomicU64,
    interval: AtomicU64,
    control: AtomicBool,
    open: AtomicBool,
}

impl Lane {
    /// A lane whose thread does not run yet.
    pub fn new(spec: Spec, gaps: Option<GapHistogram>, common: Arc<Common>) -> Self {
        // Gaps are counted beside it: the ring has room for the largest of them.
        let ring_interval = if gaps.is_some() { u64::MAX } else { spec.interval_ns };
        Self {
            ring: Ring::new(ring_interval),
            spec,
            gaps,
            card: None,
            reading: None,
            tid: AtomicU32::new(0),
            common,
            broke: AtomicU64::new(0),
            failed: AtomicU32::new(0),
            orders: CachePadded::default(),
        }
    }

    /// Gives the thread an order. The one before must be finished, unless this one is to quit.
    pub fn give(&self, order: Order) {
        let orders = &self.orders.0;
        match order {
            Order::Quit => orders.quit.store(true, Ordering::Relaxed),
            Order::Run(run) => {
                orders.start.store(run.start, Ordering::Relaxed);
                orders.end.store(run.end, Ordering::Relaxed);
                orders.interval.store(run.interval_ns, Ordering::Relaxed);
                orders.control.store(run.control, Ordering::Relaxed);
                orders.open.store(run.open, Ordering::Relaxed);
            }
        }
        orders.sequence.fetch_add(1, Ordering::Release);
        let _ = futex::wake(&orders.sequence, futex::Flags::PRIVATE, 1);
    }

    /// Waits for the next order. Only the measuring thread calls it.
    pub fn next_order(&self) -> Order {
        let orders = &self.orders.0;
        let done = orders.finished.load(Ordering::Relaxed);
        while orders.sequence.load(Ordering::Acquire) == done {
            let _ = futex::wait(&orders.sequence, futex::Flags::PRIVATE, done, None);
        }
        if orders.quit.load(Ordering::Relaxed) {
            return Order::Quit;
        }
        Order::Run(Run {
            start: orders.start.load(Ordering::Relaxed),
            end: orders.end.load(Ordering::Relaxed),
            interval_ns: orders.interval.load(Ordering::Relaxed),
            control: orders.control.load(Ordering::Relaxed),
            open: orders.open.load(Ordering::Relaxed),
        })
    }

    /// Waits for the beginning of an open run and says when its due times are. Only the measuring thread calls it.
    ///
    /// The thread polls instead of being woken. The waking thread has ordinary priority, and the load under test may
    /// keep it from its CPU. Its delay would then be measured as this thread's.
    pub fn beginning(&self, run: Run) -> Run {
        if !run.open {
            return run;
        }
        let mut look = sys::now();
        loop {
            let beginning = self.common.beginning.load(Ordering::Acquire);
            if beginning != 0 {
                return Run {
                    start: beginning.saturating_add(run.start),
                    end: beginning.saturating_add(run.end),
                    ..run
                };
            }
            if self.stopped() {
                return Run { start: 0, end: 0, ..run };
            }
            look += LOOK_NS;
            sys::sleep_until(look);
        }
    }

    /// Records a value above the limit, in ns, and the time of CLOCK_MONOTONIC at which it was seen. Stops the kernel's
    /// trace and ends the job.
    pub(crate) fn exceeded(&self, value: u64, at: u64) {
        self.broke.store(value, Ordering::Relaxed);
        self.common.broke_at.store(at, Ordering::Relaxed);
        if let Some(ftrace) = self.common.ftrace.get() {
            ftrace.stop();
        }
        self.common.stop.store(true, Ordering::Release);
    }

    /// Whether the job is to end now.
    #[inline]
    pub fn stopped(&self) -> bool {
        self.common.stop.load(Ordering::Relaxed)
    }

    /// The measuring thread has carried out its order.
    pub fn finish(&self) {
        self.orders.0.finished.fetch_add(1, Ordering::Release);
    }

    /// Whether the last order has been carried out.
    pub fn is_finished(&self) -> bool {
        let orders = &self.orders.0;
        orders.finished.load(Ordering::Acquire) == orders.sequence.load(Ordering::Relaxed)
    }

    /// Waits until the last order has been carried out, or `patience` is over; says which.
    pub fn wait_finished(&self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        while !self.is_finished() {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        true
    }

    /// Wakes the thread out of a long sleep so that it sees `stop`.
    pub fn nudge(&self) {
        let tid = self.tid.load(Ordering::Acquire);
        if tid != 0 && !self.is_finished() {
            sys::wake_thread(tid);
        }
    }

    /// The name of the thread for people: `timer thread 0 on CPU 1`.
    pub fn title(&self) -> String {
        format!("thread {} on CPU {}", self.spec.series.thread, self.spec.series.cpu)
    }
}
