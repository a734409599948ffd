//! Shows a directory of bundles in a browser: their list, their reports, and runs in progress, which it
//! follows by their files. It reads, and changes nothing. It finds bundles by listing the one directory that
//! it was given, never by a path from a request.

mod answers;
mod catalogue;
mod follow;
mod gate;
mod live;
mod name;
mod pages;
mod site;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use follow::{SILENCE, look};
pub use gate::{Gate, Token};
pub use site::Bundles;

/// Between two looks at what is being written, at least.
const PAUSE: Duration = Duration::from_secs(1);
/// Looking takes at most one part in this many of the time: a day's bundle takes a second to read.
const SHARE: u32 = 20;

/// How long to wait before the next look at what is being written, by how long the last one took.
pub fn rest(took: Duration) -> Duration {
    PAUSE.max(took.saturating_mul(SHARE))
}

/// The data is whole even if another thread panicked while it held the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
