//! A run that goes on, by what it writes: nothing is locked, written or asked of it. However many look at it, its bundle
//! is read once.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tactus_bundle::{BundleError, Trust};
use tactus_system::Directory;
use tactus_watch::state::Watched;

/// Of the time reading takes at most one part in so many: a day's bundle takes a second to read.
pub const SHARE: u32 = 20;
/// After so long without anything new that is said: the run may have died.
pub const SILENCE: Duration = Duration::from_secs(30);
/// How often a bundle may be found in the middle of a change before it is taken for a broken one.
const TRIES: u32 = 5;
/// Between two of these.
const STEP: Duration = Duration::from_millis(100);
/// Between two looks at a run, at least.
const PAUSE: Duration = Duration::from_secs(1);
/// How long one that nobody follows is remembered.
const KEPT: Duration = Duration::from_secs(120);

/// The run as its bundle has it now. Whoever writes it may be between two files.
///
/// # Errors
/// When it is no bundle, or stays a broken one.
pub fn look(dir: &Directory) -> Result<Watched, BundleError> {
    let mut tries = 0;
    loop {
        match tactus_bundle::read_from(dir, Trust::Whole) {
            Ok(contents) => return Ok(tactus_watch::bundle::watched(&contents)),
            Err(error) if tries == TRIES => return Err(error),
            Err(_) => tries += 1,
        }
        std::thread::sleep(STEP);
    }
}

/// The runs that somebody follows.
#[derive(Default)]
pub struct Followed(Mutex<HashMap<OsString, Arc<Mutex<Last>>>>);

/// A run as it was looked at last.
#[derive(Default)]
struct Last {
    seen: Option<Seen>,
    events: u64,
    since: Option<Instant>,
}

struct Seen {
    at: Instant,
    took: Duration,
    watched: Arc<Watched>,
}

impl Followed {
    /// The run of this name, which is not older than a second, or than twenty times as long as it takes to read it.
    ///
    /// # Errors
    /// As [`look`].
    pub fn now(&self, name: &OsStr, dir: &Directory) -> Result<Arc<Watched>, BundleError> {
        let last = self.of(name);
        let mut last = lock(&last);
        if let Some(seen) = &last.seen
            && seen.at.elapsed() < PAUSE.max(seen.took * SHARE)
        {
            return Ok(Arc::clone(&seen.watched));
        }
        let began = Instant::now();
        let mut watched = look(dir)?;
        if last.since.is_none() || watched.events != last.events {
            (last.events, last.since) = (watched.events, Some(Instant::now()));
        }
        let silent = last.since.map(|since| since.elapsed()).filter(|silent| *silent > SILENCE);
        watched.silent = silent.filter(|_| watched.ended.is_none());
        let watched = Arc::new(watched);
        last.seen = Some(Seen { at: Instant::now(), took: began.elapsed(), watched: Arc::clone(&watched) });
        Ok(watched)
    }

    fn of(&self, name: &OsStr) -> Arc<Mutex<Last>> {
        let mut all = lock(&self.0);
        all.retain(|_, last| {
            // One that is looked at right now is not old.
            last.try_lock()
                .map_or(true, |last| last.seen.as_ref().is_none_or(|seen| seen.at.elapsed() < KEPT))
        });
        Arc::clone(all.entry(name.to_owned()).or_default())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
