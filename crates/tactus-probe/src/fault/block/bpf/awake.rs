//! A thread that keeps a CPU from idling, where the kernel hands on no sample of a performance event while the CPU's
//! idle task is current. It is of SCHED_IDLE: whatever else wants to run there goes before it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tactus_measure::channel;
use tactus_model::CpuSet;

use crate::sys::{self, SchedAttr};

/// It reads one word.
const STACK: usize = 64 * 1_024;

/// The thread of a CPU, until this is dropped or the process ends.
pub struct Awake(Arc<AtomicBool>);

impl Awake {
    /// Starts it and waits until it is on its CPU.
    ///
    /// # Errors
    /// When the CPU is refused to it, or the policy.
    pub fn start(cpu: u32) -> io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let (seen, (ready, is_ready)) = (Arc::clone(&over), channel::channel());
        std::thread::Builder::new().name(format!("awake-{cpu}")).stack_size(STACK).spawn(move || {
            let made =
                sys::set_affinity(&CpuSet::one(cpu)).and_then(|()| sys::set_scheduler(SchedAttr::idle()));
            let fit = made.is_ok();
            ready.send(made);
            while fit && !seen.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        })?;
        is_ready.receive().unwrap_or_else(|| Err(io::ErrorKind::BrokenPipe.into()))?;
        Ok(Self(over))
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        // Not waited for: on a CPU that others keep busy it sees this late.
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    /// The thread of this process that has that name.
    pub fn thread(name: &str) -> Option<u32> {
        fs::read_dir("/proc/self/task").unwrap().flatten().find_map(|task| {
            let own = fs::read_to_string(task.path().join("comm")).ok()?;
            (own.trim() == name).then(|| task.file_name().to_str()?.parse().ok())?
        })
    }

    #[test]
    fn a_cpu_is_kept_from_idling_by_what_gives_way_to_everything_until_it_is_dropped() {
        let cpu = sys::affinity().unwrap().first().unwrap();
        let awake = Awake::start(cpu).unwrap();
        let name = format!("awake-{cpu}");
        let found = thread(&name).unwrap();
        assert_eq!(sys::scheduler_of(found).unwrap().to_string(), "IDLE 0");
        assert_eq!(sys::affinity_of(found).unwrap(), CpuSet::one(cpu));
        drop(awake);
        assert!((0..5_000).any(|_| {
            std::thread::sleep(Duration::from_millis(2));
            thread(&name).is_none()
        }));
        assert!(Awake::start(4_000).is_err(), "no machine of ours has CPU 4000");
    }
}
