//! The one room of this crate that may be unsafe: raw system calls and the processor's own clock.
//!
//! Everything else goes through the safe functions here, or through rustix.

mod affinity;
mod page;
mod raw;
mod registers;
mod scheduling;
mod signal;
mod time;
pub mod vfio;

pub use affinity::{affinity, affinity_mask, affinity_of, set_affinity, set_affinity_of};
pub use page::Page;
pub use raw::{Request, descriptor};
pub use registers::Registers;
pub use scheduling::{SchedAttr, nice, scheduler, scheduler_of, set_scheduler, set_scheduler_of};
pub use signal::{OnSignal, on_signal, wake_thread};
pub use time::{boottime, now, own_time, realtime, sleep_until, ticks, ticks_per_second, time_of};
