//! A measuring thread: pinned before anything else, scheduled as asked and read back, its stack
//! touched; then it carries out orders.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tactus_model::CpuSet;
use tactus_model::message::Refusal;
use tactus_model::scheduling::Policy;

use crate::channel;
use crate::lane::{Lane, Order};
use crate::sys::{self, SchedAttr};
use crate::{Measurement, refuse};

/// A thread needs little: the deepest call of a measuring loop is one into the vDSO.
const STACK: usize = 128 * 1024;
/// The part of the stack that is touched before measuring.
const TOUCHED: usize = 64 * 1024;

/// How long a thread may take to end that something keeps from its CPU.
const PATIENCE: Duration = Duration::from_secs(10);

/// Priority that a DEADLINE thread has while the control runs.
pub const CONTROL_PRIORITY: u32 = 98;

/// The CPUs on which this process could run when it started.
pub fn allowed() -> &'static CpuSet {
    static ALLOWED: OnceLock<CpuSet> = OnceLock::new();
    ALLOWED.get_or_init(|| sys::affinity().unwrap_or_default())
}

/// A thread that waits for orders.
pub struct Measuring {
    /// What it shares.
    pub lane: Arc<Lane>,
    handle: Option<JoinHandle<()>>,
}

impl Measuring {
    /// Starts the thread of a lane and waits until it is pinned and scheduled.
    ///
    /// # Errors
    /// Why it cannot run as asked.
    pub fn start(lane: Arc<Lane>, measurement: &'static dyn Measurement) -> Result<Self, Refusal> {
        let (sender, receiver) = channel::channel();
        let mine = Arc::clone(&lane);
        let handle = std::thread::Builder::new()
            .name(format!("{}-{}", measurement.name(), lane.spec.cpu()))
            .stack_size(STACK)
            .spawn(move || {
                let prepared = prepare(&mine);
                let ready = prepared.is_ok();
                sender.send(prepared);
                drop(sender);
                if ready {
                    carry_out(&mine, measurement);
                }
            })
            .map_err(|error| Refusal {
                reason: format!("no thread could be started: {error}"),
                hint: None,
            })?;
        match receiver.receive() {
            Some(Ok(())) => Ok(Self { lane, handle: Some(handle) }),
            Some(Err(refusal)) => {
                let _ = handle.join();
                Err(refusal)
            }
            None => {
                Err(Refusal { reason: format!("{} ended before it was ready", lane.title()), hint: None })
            }
        }
    }
}

impl Measuring {
    /// Ends the thread, or leaves it to its end where something keeps it from its CPU: it shares the lane, and ends
    /// as soon as it gets to run. Says which. When one thread of a job was left, no other is waited for.
    fn end(&mut self, patience: Duration) -> bool {
        let common = &self.lane.common;
        common.stop.store(true, Ordering::Release);
        let until = Instant::now() + patience;
        let mut over = self.lane.is_finished();
        while !over && Instant::now() < until && !common.abandoned.load(Ordering::Relaxed) {
            self.lane.nudge();
            std::thread::sleep(Duration::from_millis(1));
            over = self.lane.is_finished();
        }
        self.lane.give(Order::Quit);
        match self.handle.take() {
            Some(handle) if over => drop(handle.join()),
            _ => common.abandoned.store(true, Ordering::Relaxed),
        }
        over
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        if self.handle.is_some() {
            self.end(PATIENCE);
        }
    }
}

fn prepare(lane: &Lane) -> Result<(), Refusal> {
    let cpu = lane.spec.cpu();
    pin(cpu)?;
    schedule(lane, false)
        .map_err(|error| refuse::scheduling(lane.spec.policy, lane.spec.series.priority, cpu, &error))?;
    touch_stack();
    let tid = rustix::thread::gettid().as_raw_nonzero().get();
    lane.tid.store(tid.unsigned_abs(), Ordering::Release);
    Ok(())
}

/// Pins the calling thread to `cpu`, and reads back.
///
/// # Errors
/// When the process may not use that CPU.
fn pin(cpu: u32) -> Result<(), Refusal> {
    let one = CpuSet::one(cpu);
    sys::set_affinity(&one).map_err(|_| refuse::cpu(cpu, allowed()))?;
    match sys::affinity() {
        Ok(set) if set == one => Ok(()),
        _ => Err(refuse::cpu(cpu, allowed())),
    }
}

/// The kernel's words for how a lane's thread is scheduled. While a control runs a DEADLINE thread
/// is FIFO: a hog can be above it then.
fn wanted(lane: &Lane, control: bool) -> SchedAttr {
    let priority = lane.spec.series.priority;
    match lane.spec.policy {
        Policy::Fifo => SchedAttr::fifo(priority),
        Policy::Rr => SchedAttr::rr(priority),
        Policy::Deadline if control => SchedAttr::fifo(CONTROL_PRIORITY),
        Policy::Deadline => SchedAttr::deadline(lane.spec.interval_ns / 2, lane.spec.interval_ns),
        Policy::Other => SchedAttr::other(),
    }
}

fn schedule(lane: &Lane, control: bool) -> io::Result<()> {
    let wanted = wanted(lane, control);
    sys::set_scheduler(wanted)?;
    let got = sys::scheduler()?;
    if (got.policy, got.priority) != (wanted.policy, wanted.priority) {
        return Err(io::Error::other(format!(
            "the kernel accepted it, but then reported policy {} at priority {}",
            got.policy, got.priority
        )));
    }
    Ok(())
}

#[inline(never)]
fn touch_stack() {
    let mut stack = [0u8; TOUCHED];
    for byte in stack.iter_mut().step_by(1024) {
        *byte = 1;
    }
    std::hint::black_box(&stack);
}

fn carry_out(lane: &Lane, measurement: &dyn Measurement) {
    let mut was_control = false;
    while let Order::Run(run) = lane.next_order() {
        if lane.spec.policy == Policy::Deadline && run.control != was_control {
            if let Err(error) = schedule(lane, run.control) {
                let errno = error.raw_os_error().unwrap_or(libc::EIO);
                lane.failed.store(errno.unsigned_abs(), Ordering::Release);
            }
            was_control = run.control;
        }
        if lane.failed.load(Ordering::Relaxed) == 0 {
            measurement.run(lane, lane.beginning(run));
        }
        lane.finish();
    }
}

/// Makes the calling thread one of SCHED_FIFO on `cpu`, its stack touched: those that disturb on purpose.
///
/// # Errors
/// When the CPU or the policy is refused.
pub fn make_fifo(cpu: u32, priority: u32) -> Result<(), Refusal> {
    pin(cpu)?;
    sys::set_scheduler(SchedAttr::fifo(priority))
        .map_err(|error| refuse::scheduling(Policy::Fifo, priority, cpu, &error))?;
    touch_stack();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use tactus_model::catalogue::Measure;

    use super::*;
    use crate::Wanted;
    use crate::lane::{Run, Spec};
    use crate::timer::Timer;
    use tactus_model::series::SeriesKey;

    fn lane(cpu: u32) -> Arc<Lane> {
        let series = SeriesKey { cpu, thread: 0, priority: 0, kind: "thread".into() };
        let spec = Spec {
            activity: 0,
            series,
            interval_ns: 1_000_000,
            policy: Policy::Other,
            limit_ns: u64::MAX,
            busy: 0,
            reads_on: None,
        };
        Arc::new(Lane::new(spec, None, Arc::default()))
    }

    #[test]
    fn a_thread_measures_every_due_time_of_its_order_and_waits_for_the_next() {
        let cpu = allowed().first().unwrap();
        let thread = Measuring::start(lane(cpu), &Timer).unwrap();
        for _ in 0..2 {
            let start = sys::now() + 100_000_000;
            let run =
                Run { start, end: start + 10_000_000, interval_ns: 1_000_000, control: false, open: false };
            thread.lane.give(Order::Run(run));
            assert!(thread.lane.wait_finished(Duration::from_secs(20)));
            let (mut measured, mut swallowed) = (0, 0);
            thread.lane.ring.drain(|sample| {
                measured += 1;
                swallowed += sample.value / 1_000_000;
                assert_eq!((sample.at - sample.value - start) % 1_000_000, 0, "a due time lies on the grid");
            });
            assert!(measured >= 1 && measured + swallowed >= 10, "{measured} {swallowed}");
        }
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused_by_name() {
        let refusal = Measuring::start(lane(4_000), &Timer).err().unwrap();
        assert!(refusal.reason.contains("CPU 4000"), "{refusal:?}");
    }

    /// A measurement that does not come to its end before it is let.
    struct Starved(AtomicBool);

    impl Measurement for Starved {
        fn name(&self) -> &'static str {
            "starved"
        }

        fn kind(&self, _: &Measure) -> &'static str {
            "thread"
        }

        fn wanted(&self, _measure: &Measure) -> Result<Wanted, Refusal> {
            Ok(Wanted { threads: 1, periodic: true, limit_ns: None, busy: 0 })
        }

        fn run(&self, _lane: &Lane, _run: Run) {
            while !self.0.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    #[test]
    fn a_thread_kept_from_its_cpu_does_not_block_the_session_and_ends_later() {
        static STARVED: Starved = Starved(AtomicBool::new(false));
        sys::on_signal(libc::SIGUSR1, sys::OnSignal::Wake);
        let mut thread = Measuring::start(lane(allowed().first().unwrap()), &STARVED).unwrap();
        let lane = Arc::clone(&thread.lane);
        lane.give(Order::Run(Run { start: 0, end: 1, interval_ns: 1, control: false, open: false }));
        assert!(!thread.end(Duration::from_millis(20)));
        drop(thread);
        STARVED.0.store(true, Ordering::Relaxed);
        // When the thread is gone, so is its part in the lane.
        let until = Instant::now() + Duration::from_secs(20);
        while Arc::strong_count(&lane) > 1 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(Arc::strong_count(&lane), 1);
    }

    #[test]
    fn a_thread_in_a_long_sleep_ends_at_once_when_it_is_dropped() {
        sys::on_signal(libc::SIGUSR1, sys::OnSignal::Wake);
        let thread = Measuring::start(lane(allowed().first().unwrap()), &Timer).unwrap();
        let start = sys::now() + 3_600_000_000_000;
        thread.lane.give(Order::Run(Run {
            start,
            end: start + 1,
            interval_ns: 1,
            control: false,
            open: false,
        }));
        drop(thread);
    }
}
