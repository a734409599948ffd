//! Keeps a run alive when the file system of its bundle is full: records over time pause, and counts are not
//! lost. Counts, extremes and histograms are in memory until they are written. For them, and for the words
//! that end a row and the run, a file reserves room from the beginning.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tactus_model::bundle::RowResult;
use tactus_model::message::Note;
use tactus_system::Directory;

use super::BundleError;

/// The file that keeps room; it goes when the run ends.
pub const RESERVE: &str = ".reserve";
/// The least that is kept, what each row and each series of it takes in the end, and the most that is kept, in bytes.
const LEAST: u64 = 128 << 10;
const ROW: u64 = 4 << 10;
const SERIES: u64 = 24 << 10;
const MOST: u64 = 16 << 20;
/// By how much it is made smaller at a time.
const PIECE: u64 = 32 << 10;

/// Whether there is no room left.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// The room that is left to a bundle.
#[derive(Clone, Debug)]
pub struct Room(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// The reserve, and its size; `None` without one.
    reserve: Option<Reserve>,
    /// Whether anything could not be written yet, and whether the user was told.
    full: bool,
    told: bool,
}

#[derive(Debug)]
struct Reserve {
    dir: Directory,
    file: File,
    whole: u64,
    left: u64,
}

impl Drop for Reserve {
    fn drop(&mut self) {
        // If this fails, the file is removed together with the bundle.
        let _ = self.dir.remove(RESERVE);
    }
}

impl Reserve {
    /// Keeps as much as in the beginning, if there is room for it.
    fn refill(&mut self) -> io::Result<()> {
        if self.left == self.whole {
            return Ok(());
        }
        let kept = tactus_system::allocate(&self.file, self.whole);
        match kept {
            Ok(()) => self.left = self.whole,
            // Some of it may be there.
            Err(_) => self.file.set_len(self.left)?,
        }
        kept
    }
}

/// A file to which records are added.
trait Tail: Write {
    fn length(&self) -> io::Result<u64>;
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl Tail for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

impl Room {
    /// Nothing is kept.
    pub fn unkept() -> Self {
        Self(Arc::new(Mutex::new(State { reserve: None, full: false, told: false })))
    }

    /// Keeps what these rows take in the end.
    ///
    /// # Errors
    /// Without such room: a run that cannot say how it ended does not begin.
    pub fn keep(dir: &Directory, rows: &[RowResult]) -> Result<Self, BundleError> {
        let series = |row: &RowResult| row.threads.as_ref().map_or(1, |threads| threads.len().max(1)) as u64;
        let rows = rows.iter().map(|row| ROW.saturating_add(SERIES.saturating_mul(series(row))));
        let whole = rows.fold(LEAST, u64::saturating_add).min(MOST);
        let kept = dir.anew(RESERVE).and_then(|file| {
            let mut reserve = Reserve { dir: dir.clone(), file, whole, left: 0 };
            reserve.refill()?;
            Ok(reserve)
        });
        let reserve = kept.map_err(BundleError::of(dir, RESERVE))?;
        Ok(Self(Arc::new(Mutex::new(State { reserve: Some(reserve), full: false, told: false }))))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a record that may be missing to a file that is there, or is opened for it: as a whole, or not at all. Where
    /// there was no room for its first record, the file is opened again for the next. Returns whether there was room.
    pub fn append_to(
        &self,
        file: &mut Option<File>,
        open: impl FnOnce() -> io::Result<File>,
        record: &[u8],
    ) -> io::Result<bool> {
        if self.is_given_up() { Ok(false) } else { self.to(file, open, record) }
    }

    /// The same of a record that must not be missing.
    ///
    /// # Errors
    /// `StorageFull` where all that was kept is used up.
    pub fn append_last_to(
        &self,
        file: &mut Option<File>,
        open: impl Fn() -> io::Result<File>,
        record: &[u8],
    ) -> io::Result<()> {
        self.must(|| match self.to(file, &open, record)? {
            true => Ok(()),
            false => Err(io::ErrorKind::StorageFull.into()),
        })
    }

    /// Appends a record that may be missing to an open file. Returns whether there was room.
    pub fn append(&self, file: &mut File, record: &[u8]) -> io::Result<bool> {
        if self.is_given_up() { Ok(false) } else { self.whole(file, record) }
    }

    /// Whether some of the room for the end was used: the rest is for nothing else.
    fn is_given_up(&self) -> bool {
        let mut state = self.state();
        let given = state.reserve.as_ref().is_some_and(|reserve| reserve.left < reserve.whole);
        state.full |= given;
        given
    }

    fn to(
        &self,
        file: &mut Option<File>,
        open: impl FnOnce() -> io::Result<File>,
        record: &[u8],
    ) -> io::Result<bool> {
        let first = file.is_none();
        let done = match file {
            Some(file) => self.whole(file, record),
            None => match open() {
                Ok(new) => self.whole(file.insert(new), record),
                Err(error) => self.may(Err(error)),
            },
        };
        if first && !matches!(done, Ok(true)) {
            *file = None;
        }
        done
    }

    /// Does what must be done; without room, with some of the reserve. `write` must act as a whole or not at
    /// all.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn must<T>(&self, mut write: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        loop {
            match write() {
                Err(error) if is_full(&error) && self.give() => {}
                done => return done,
            }
        }
    }

    /// Passes over that there was no room.
    ///
    /// # Errors
    /// Any other than that.
    pub fn may(&self, written: io::Result<()>) -> io::Result<bool> {
        match written {
            Ok(()) => Ok(true),
            Err(error) if is_full(&error) => {
                self.state().full = true;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// A row begins: there may be room again.
    pub fn look_again(&self) {
        if let Some(reserve) = &mut self.state().reserve {
            // Without room it stays as it is.
            let _ = reserve.refill();
        }
    }

    /// Gives back all that is kept: the run ends.
    pub fn release(&self) {
        self.state().reserve = None;
    }

    /// A note about the room, once.
    pub fn news(&self) -> Option<Note> {
        let mut state = self.state();
        let now = state.full && !state.told;
        state.told |= now;
        now.then(|| {
            Note::obstacle(
                "the file system of the bundle is full: recording over time pauses; measuring and counting \
                    continue",
                "free some space: recording continues if it can",
            )
        })
    }

    /// Short and interrupted writes are continued (`Write::write_all`); a write that fails for good leaves
    /// nothing.
    fn whole(&self, file: &mut impl Tail, record: &[u8]) -> io::Result<bool> {
        let before = file.length()?;
        let written = file.write_all(record);
        if let Err(error) = &written {
            // Half a record would be damage.
            let cut = file.cut(before);
            if is_full(error) {
                cut?;
            }
        }
        self.may(written)
    }

    /// Gives up some of the reserve; false if nothing is left.
    fn give(&self) -> bool {
        let mut state = self.state();
        state.full = true;
        let Some(reserve) = state.reserve.as_mut().filter(|reserve| reserve.left > 0) else { return false };
        reserve.left = reserve.left.saturating_sub(PIECE);
        reserve.file.set_len(reserve.left).is_ok()
    }
}

/// The data of a row that was not recorded over time, for lack of room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Ticks of all series.
    pub ticks: u64,
    /// When the first of them ended, in ns since the row began to measure.
    pub from_ns: u64,
    /// When the last of them ended, likewise.
    pub to_ns: u64,
    /// Lines of short windows of time.
    pub windows: u64,
}

impl LeftOut {
    /// A tick that ended then is left out.
    pub fn tick(&mut self, at_ns: u64) {
        if self.ticks == 0 {
            self.from_ns = at_ns;
        }
        self.ticks += 1;
        self.to_ns = self.to_ns.max(at_ns);
    }

    /// The same for a reader; `None` if nothing is left out.
    #[must_use]
    pub fn note(&self) -> Option<Note> {
        if *self == Self::default() {
            return None;
        }
        let seconds = |ns: u64| ns / 1_000_000_000;
        let ticks = (self.ticks > 0).then(|| {
            let (from, to) = (seconds(self.from_ns), seconds(self.to_ns));
            format!("{} report intervals between {from} s and {to} s", self.ticks)
        });
        let windows = (self.windows > 0).then(|| format!("{} lines of short windows", self.windows));
        let what: Vec<String> = ticks.into_iter().chain(windows).collect();
        Some(Note::obstacle(
            format!(
                "the file system was full: {} are not recorded; counts, extremes and histograms include what \
                    was measured then",
                what.join(" and ")
            ),
            "free some space before the next run, or write elsewhere with --out DIR",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that takes a few bytes at a time, is interrupted between, and fails in the end.
    struct Faulty {
        bytes: Vec<u8>,
        calls: u64,
        room: usize,
        fails: fn() -> io::Result<usize>,
    }

    impl Write for Faulty {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.calls += 1;
            if self.calls.is_multiple_of(3) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let taken = bytes.len().min(1 + usize::try_from(self.calls % 5).unwrap());
            let taken = taken.min(self.room - self.bytes.len());
            if taken == 0 {
                return (self.fails)();
            }
            self.bytes.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Tail for Faulty {
        fn length(&self) -> io::Result<u64> {
            Ok(self.bytes.len() as u64)
        }

        fn cut(&mut self, length: u64) -> io::Result<()> {
            self.bytes.truncate(usize::try_from(length).unwrap());
            Ok(())
        }
    }

    /// The records in a file with this much room, which fails in this way, and the result for each of 100.
    fn written(room: usize, fails: fn() -> io::Result<usize>) -> (Vec<String>, Vec<io::Result<bool>>) {
        let mut file = Faulty { bytes: Vec::new(), calls: 0, room, fails };
        let kept = Room::unkept();
        let said = (0..100).map(|n| kept.whole(&mut file, format!("record {n}\n").as_bytes())).collect();
        let text = String::from_utf8(file.bytes).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'), "half a record: {text:?}");
        (text.lines().map(str::to_owned).collect(), said)
    }

    #[test]
    fn short_and_interrupted_writes_lose_nothing_and_put_nothing_there_twice() {
        let (records, said) = written(1 << 20, || unreachable!("there is room"));
        let all: Vec<String> = (0..100).map(|n| format!("record {n}")).collect();
        assert_eq!(records, all);
        assert!(said.into_iter().all(|said| said.unwrap()));
    }

    #[test]
    fn what_fails_in_the_middle_of_a_record_leaves_none_of_it() {
        let (records, said) = written(95, || Err(io::ErrorKind::StorageFull.into()));
        assert_eq!((records.len(), records[9].as_str()), (10, "record 9"));
        assert!(said.into_iter().skip(10).all(|said| !said.unwrap()), "that there is no room is no error");
        for fails in [|| Ok(0), || Err(io::Error::from_raw_os_error(5))] as [fn() -> io::Result<usize>; 2] {
            let (records, said) = written(95, fails);
            assert_eq!(records.len(), 10);
            assert!(said.into_iter().skip(10).all(|said| said.is_err()), "a disk that fails is one");
        }
    }
}
