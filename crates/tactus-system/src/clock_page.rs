//! The page of memory in which a guest shows its clock ([`tactus_model::wire::clock_page`]).
//!
//! Its words are read and written by calls of the kernel: whatever the guest writes there, nothing of this process is in it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use tactus_model::wire::clock_page::{ANSWERED, APART, BYTES, HEARD, QUESTION, SAID, SEQUENCE, WORDS};

use crate::monotonic_ns;

/// How long a look follows a look at once, and the rest between them from then on. Who is to answer may need this CPU: then
/// he hears the question in a rest, and every other question begins with one.
const AT_ONCE: Duration = Duration::from_micros(20);
const REST: Duration = Duration::from_micros(50);

/// A page that a guest can have. Dropping it ends it.
#[derive(Debug)]
pub struct ClockPage {
    memory: OwnedFd,
    /// The number of the last question.
    asked: u32,
}

/// One question and its answer: moments in ns, of this machine's clock and of the guest's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// When the question left, here.
    pub left: u64,
    /// When it was there, there.
    pub heard: u64,
    /// The last reading of the clock there.
    pub said: u64,
    /// When that was read, here.
    pub back: u64,
}

impl ClockPage {
    /// Makes a new page.
    ///
    /// # Errors
    /// When its memory cannot be made.
    pub fn new() -> io::Result<Self> {
        let memory = memfd_create("tactus-clock", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&memory, BYTES as u64)?;
        // The size is sealed: no writer can take more of the machine's memory.
        fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok(Self { memory, asked: 0 })
    }

    /// The path at which another process of this machine finds it.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.memory.as_raw_fd()).into()
    }

    /// Asks for the time of the clock; `None`: no answer came until then.
    pub fn ask(&mut self, until: Instant) -> Option<Shown> {
        // No number is used twice: an answer to an earlier question does not match this one.
        self.asked = self.asked.checked_add(1)?;
        let left = monotonic_ns();
        self.write(self.asked).ok()?;
        let at_once = if self.asked.is_multiple_of(2) { AT_ONCE } else { Duration::ZERO };
        let began = Instant::now();
        loop {
            let shown = self.read();
            let back = monotonic_ns();
            if let Some((answered, heard, said)) = shown
                && answered == self.asked
            {
                return Some(Shown { left, heard, said, back });
            }
            if Instant::now() >= until {
                return None;
            }
            if began.elapsed() > at_once {
                std::thread::sleep(REST);
            }
        }
    }

    /// Tells the answering side that it may end.
    pub fn end(&self) {
        // If the write fails, the other side ends by its timeout.
        let _ = self.write(0);
    }

    fn write(&self, question: u32) -> io::Result<()> {
        rustix::io::pwrite(&self.memory, &question.to_ne_bytes(), (QUESTION * APART) as u64)?;
        Ok(())
    }

    /// The answered question, when it was heard, and the clock's reading; `None` while they are being written.
    fn read(&self) -> Option<(u32, u64, u64)> {
        let [before] = self.words([SEQUENCE])?;
        fence(Ordering::Acquire);
        let [answered, heard, heard_high, said, said_high] =
            self.words([ANSWERED, HEARD, HEARD + 1, SAID, SAID + 1])?;
        fence(Ordering::Acquire);
        let [after] = self.words([SEQUENCE])?;
        let whole = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let together = before == after && before.is_multiple_of(2);
        together.then(|| (answered, whole(heard, heard_high), whole(said, said_high)))
    }

    fn words<const N: usize>(&self, at: [usize; N]) -> Option<[u32; N]> {
        let mut page = [0; WORDS * APART];
        let length = rustix::io::pread(&self.memory, &mut page[..], 0).ok()?;
        let word = |at: usize| page[at * APART..].first_chunk().map_or(0, |word| u32::from_ne_bytes(*word));
        (length == page.len()).then(|| at.map(word))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::*;

    /// Writes words of a page as its other user does.
    fn put(memory: &File, words: &[(usize, u32)]) {
        for (at, value) in words {
            memory.write_all_at(&value.to_ne_bytes(), (at * APART) as u64).unwrap();
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the guest's side, which has no door")]
    fn shared(page: &ClockPage) -> File {
        File::options().read(true).write(true).open(page.path()).unwrap()
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(20)
    }

    #[test]
    fn a_question_is_answered_by_its_number_and_by_words_that_belong_together() {
        let mut page = ClockPage::new().unwrap();
        let memory = shared(&page);
        let shown = [(HEARD, 7), (HEARD + 1, 1), (SAID, 9), (SAID + 1, 1)];
        put(&memory, &shown);
        assert_eq!(page.ask(soon()), None, "nobody answers");
        put(&memory, &[(ANSWERED, 1)]);
        assert_eq!(page.ask(soon()), None, "that was the question before");
        put(&memory, &[(ANSWERED, 3), (SEQUENCE, 1)]);
        assert_eq!(page.ask(soon()), None, "it is just being written");
        put(&memory, &[(ANSWERED, 4), (SEQUENCE, 2)]);
        let Shown { left, heard, said, back } = page.ask(soon()).unwrap();
        assert!(left <= back && heard == (1 << 32) + 7 && said == (1 << 32) + 9);
        page.end();
        assert_eq!(page.words([QUESTION]).unwrap(), [0]);
    }

    #[test]
    fn nobody_makes_the_page_shorter_or_longer() {
        let page = ClockPage::new().unwrap();
        let memory = shared(&page);
        assert!(memory.set_len(0).is_err() && memory.set_len(1 << 30).is_err());
        assert!(memory.write_at(&[1], BYTES as u64).is_err());
        assert_eq!(memory.metadata().unwrap().len(), BYTES as u64);
    }
}
