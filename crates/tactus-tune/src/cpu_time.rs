//! The time for which a function computes, without the time of other threads.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The least CPU time that this thread needs for it, in three attempts.
pub fn cpu_time(mut what: impl FnMut()) -> Duration {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
    };
    let times = [(); 3].map(|()| {
        let began = now();
        what();
        now() - began
    });
    times.into_iter().min().unwrap_or_default()
}
