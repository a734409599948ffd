//! Follows a run in progress by its files: nothing is locked, written or asked of it. However many clients
//! look at it, its bundle is read once.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tactus_bundle::{BundleError, Trust};
use tactus_model::text::clean;
use tactus_report::units::shortened;
use tactus_system::Directory;
use tactus_watch::state::Watched;

use super::live::Live;
use super::{lock, rest};

/// Time without news after which the page says so: the run may have died.
pub const SILENCE: Duration = Duration::from_secs(30);
/// How often a bundle may be found in the middle of a change before it is taken for a broken one.
const TRIES: u32 = 5;
/// Between two of these.
const STEP: Duration = Duration::from_millis(100);
/// How long a run without readers is remembered.
const KEPT: Duration = Duration::from_secs(120);
/// Most runs that are remembered; more than can be asked for at the same time. One takes about 1 MB at most.
const MOST: usize = 32;
/// Most characters of why one cannot be read.
const WORDS: usize = 600;

/// The run as its bundle has it now. Its writer may be between two files.
///
/// # Errors
/// When it is not a bundle, or stays a broken one.
pub fn look(dir: &Directory) -> Result<Watched, BundleError> {
    tried(|| read(dir))
}

fn read(dir: &Directory) -> Result<Watched, BundleError> {
    tactus_bundle::read_from(dir, Trust::Whole).map(|contents| tactus_watch::bundle::watched(&contents))
}

fn tried<T, E>(mut read: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let mut tries = 0;
    loop {
        match read() {
            Ok(read) => return Ok(read),
            Err(error) if tries == TRIES => return Err(error),
            Err(_) => tries += 1,
        }
        std::thread::sleep(STEP);
    }
}

/// The runs that are followed.
#[derive(Default)]
pub struct Followed {
    /// The last requested one stands last.
    runs: Mutex<VecDeque<(OsString, Arc<Mutex<Last>>)>>,
}

/// A run as it was looked at last.
#[derive(Default)]
struct Last {
    seen: Option<Seen>,
    events: u64,
    since: Option<Instant>,
}

/// Its page, which is limited whatever its bundle contains; or the reason for having no page.
type Shown = Result<Arc<Live>, String>;

struct Seen {
    at: Instant,
    took: Duration,
    shown: Shown,
}

impl Seen {
    /// Whether it is too early to look again: reading one that cannot be read takes time as well.
    fn is_fresh(&self) -> bool {
        self.at.elapsed() < rest(self.took)
    }

    /// Whether it is worth its memory. One that has ended, or cannot be read, is not followed.
    fn is_kept(&self) -> bool {
        let goes_on = self.shown.as_ref().is_ok_and(|live| !live.ended);
        self.is_fresh() || (goes_on && self.at.elapsed() < KEPT)
    }
}

impl Followed {
    /// The run of this name, which is not older than a second, or than twenty times as long as it takes to read it.
    /// `turn`: whose turn it is to read a bundle; `whose`: the bundle and its machine, clean.
    ///
    /// # Errors
    /// As [`look`], in words; they are as old as a run can be.
    pub fn now(&self, name: &OsStr, dir: &Directory, turn: &Mutex<()>, whose: &str) -> Shown {
        self.by(name, whose, turn, || read(dir).map_err(|error| shortened(&clean(&error.to_string()), WORDS)))
    }

    fn by(
        &self,
        name: &OsStr,
        whose: &str,
        turn: &Mutex<()>,
        mut read: impl FnMut() -> Result<Watched, String>,
    ) -> Shown {
        let last = self.of(name);
        let mut last = lock(&last);
        if let Some(seen) = last.seen.as_ref().filter(|seen| seen.is_fresh()) {
            return seen.shown.clone();
        }
        let mut took = Duration::ZERO;
        let read = tried(|| {
            let _turn = lock(turn);
            let began = Instant::now();
            let read = read();
            took += began.elapsed();
            read
        });
        let shown = read.map(|watched| Arc::new(last.take(watched, whose)));
        last.seen = Some(Seen { at: Instant::now(), took, shown: shown.clone() });
        shown
    }

    fn of(&self, name: &OsStr) -> Arc<Mutex<Last>> {
        let mut runs = lock(&self.runs);
        runs.retain(|(own, last)| {
            // One that is looked at right now is not old.
            own == name || last.try_lock().map_or(true, |last| last.seen.as_ref().is_none_or(Seen::is_kept))
        });
        let at = runs.iter().position(|(own, _)| own == name);
        let own = at.and_then(|at| runs.remove(at)).unwrap_or_else(|| (name.to_owned(), Arc::default()));
        let last = Arc::clone(&own.1);
        runs.push_back(own);
        while runs.len() > MOST {
            runs.pop_front();
        }
        last
    }
}

impl Last {
    fn take(&mut self, mut watched: Watched, whose: &str) -> Live {
        if self.since.is_none() || watched.events != self.events {
            (self.events, self.since) = (watched.events, Some(Instant::now()));
        }
        let silent = self.since.map(|since| since.elapsed()).filter(|silent| *silent > SILENCE);
        watched.silent = silent.filter(|_| watched.ended.is_none());
        Live::of(&watched, whose.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(followed: &Followed, name: &str, read: impl FnMut() -> Result<Watched, String>) -> Shown {
        followed.by(OsStr::new(name), "", &Mutex::default(), read)
    }

    #[test]
    fn of_a_thousand_runs_that_were_asked_for_the_last_few_are_kept() {
        let followed = Followed::default();
        for n in 0..1_000 {
            assert!(asked(&followed, &n.to_string(), || Ok(Watched::default())).is_ok());
        }
        assert_eq!(lock(&followed.runs).len(), MOST);
        let mut reads = 0;
        let mut again = |name| {
            let read = || {
                reads += 1;
                Ok(Watched::default())
            };
            drop(asked(&followed, name, read));
            reads
        };
        assert_eq!((again("999"), again("0")), (0, 1));
    }

    #[test]
    fn what_cannot_be_read_or_has_ended_is_not_read_again_at_once_and_not_kept_for_long() {
        let followed = Followed::default();
        let mut tries = 0;
        for _ in 0..3 {
            let shown = asked(&followed, "broken", || {
                tries += 1;
                Err("broken".into())
            });
            assert_eq!(shown.err().as_deref(), Some("broken"));
        }
        assert_eq!(tries, TRIES + 1);
        let slow = Duration::from_millis(10);
        let _ = asked(&followed, "slow", || {
            std::thread::sleep(slow);
            Err("broken".into())
        });
        let took = lock(&followed.of(OsStr::new("slow"))).seen.as_ref().map(|seen| seen.took);
        assert!(took >= Some(slow * (TRIES + 1)), "all tries are time of this machine's: {took:?}");
        let ended = Some(tactus_model::outcome::RunStatus::Complete);
        let _ = asked(&followed, "ended", || {
            let mut watched = Watched::default();
            watched.ended = ended;
            Ok(watched)
        });
        let _ = asked(&followed, "going", || Ok(Watched::default()));
        for (_, last) in &*lock(&followed.runs) {
            if let Some(seen) = &mut lock(last).seen {
                seen.at = seen.at.checked_sub(2 * rest(seen.took)).unwrap();
            }
        }
        let _ = asked(&followed, "other", || Ok(Watched::default()));
        let kept: Vec<OsString> = lock(&followed.runs).iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(kept, ["going", "other"]);
    }

    #[test]
    fn a_bundle_is_read_in_its_turn() {
        let (followed, turn) = (Followed::default(), Mutex::default());
        let read = || {
            assert!(turn.try_lock().is_err(), "nobody else reads now");
            Ok(Watched::default())
        };
        assert!(followed.by(OsStr::new("own"), "", &turn, read).is_ok());
        assert!(turn.try_lock().is_ok());
    }
}
