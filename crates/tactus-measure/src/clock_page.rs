//! A guest shows its clock in the page of memory that it has with this machine.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};

use tactus_model::wire::clock_page::{ANSWERED, DEVICE, HEARD, LONGEST_NS, QUESTION, SAID, SEQUENCE};

use crate::card::pci;
use crate::sys::{self, Page};

/// How long the written values stay, in ns: a reader needs a few hundred.
const STANDS_NS: u64 = 4_000;

/// Shows it until that is ended from the other side, or too long.
///
/// # Errors
/// When the page does not exist, and those of open(2) and mmap(2).
pub fn show(devices: &Path) -> io::Result<()> {
    let id = DEVICE.parse().map_err(io::Error::other)?;
    let place = pci::find(devices, id).into_iter().next().ok_or(io::ErrorKind::NotFound)?;
    // No driver has switched it on.
    fs::write(place.join("enable"), "1")?;
    let memory = OpenOptions::new().read(true).write(true).open(place.join("resource2"))?;
    answer(&Page::at(memory.as_fd(), 0)?);
    Ok(())
}

/// Answers the questions of a page.
fn answer(page: &Page) {
    let (mut answered, mut heard, mut written, mut sequence) = (0, 0, 0, 0u32);
    let until = sys::now().saturating_add(LONGEST_NS);
    loop {
        let question = page.word(QUESTION).load(Ordering::Acquire);
        // After the look: nothing is heard before it was said.
        let now = sys::now();
        if question == 0 || now >= until {
            return;
        }
        if question != answered {
            (answered, heard) = (question, now);
        } else if now.saturating_sub(written) < STANDS_NS {
            continue;
        }
        written = now;
        sequence = sequence.wrapping_add(1);
        page.word(SEQUENCE).store(sequence, Ordering::Relaxed);
        fence(Ordering::Release);
        page.word(ANSWERED).store(answered, Ordering::Relaxed);
        for (at, ns) in [(HEARD, heard), (SAID, now)] {
            page.word(at).store((ns & 0xFFFF_FFFF) as u32, Ordering::Relaxed);
            page.word(at + 1).store((ns >> 32) as u32, Ordering::Relaxed);
        }
        sequence = sequence.wrapping_add(1);
        page.word(SEQUENCE).store(sequence, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_without_the_page_says_so_and_one_that_is_asked_nothing_ends() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(show(dir.path()).unwrap_err().kind(), io::ErrorKind::NotFound);
        let page = Page::own().unwrap();
        answer(&page);
        assert_eq!(page.word(SEQUENCE).load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_it_shows_belongs_together_and_was_heard_after_it_was_said() {
        let page = Page::own().unwrap();
        let word = |at: usize| page.word(at).load(Ordering::Relaxed);
        let both = |at: usize| u64::from(word(at)) | u64::from(word(at + 1)) << 32;
        // Another question than those whose answers are looked at: it may be heard before the first look at the clock.
        page.word(QUESTION).store(u32::MAX, Ordering::Release);
        std::thread::scope(|scope| {
            scope.spawn(|| answer(&page));
            for question in 1..=20 {
                let left = sys::now();
                page.word(QUESTION).store(question, Ordering::Release);
                let (heard, said) = loop {
                    let before = page.word(SEQUENCE).load(Ordering::Acquire);
                    let shown = (word(ANSWERED), both(HEARD), both(SAID));
                    fence(Ordering::Acquire);
                    if before.is_multiple_of(2) && before == word(SEQUENCE) && shown.0 == question {
                        break (shown.1, shown.2);
                    }
                    std::thread::yield_now();
                };
                let back = sys::now();
                assert!(left <= heard && heard <= said && said <= back, "{left} {heard} {said} {back}");
            }
            page.word(QUESTION).store(0, Ordering::Release);
        });
    }
}
