//! The other end of a card: a guest that answers it.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{ANSWERED, HANDLED, SENT};
use crate::sys::Page;

/// The memory that a guest shares with a card.
#[derive(Debug)]
pub struct Answering(Arc<Page>);

impl Answering {
    /// At this place of the file of a device.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn at(device: BorrowedFd, offset: u64) -> io::Result<Self> {
        Page::at(device, offset).map(|page| Self(Arc::new(page)))
    }

    /// In this process.
    pub(super) const fn here(page: Arc<Page>) -> Self {
        Self(page)
    }

    /// Whether a number was sent and has no answer yet.
    #[inline]
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.0.word(SENT).load(Ordering::Acquire) != self.0.word(ANSWERED).load(Ordering::Relaxed)
    }

    /// Copies the number that was sent and counts it: all that a handler does. Only this handler writes these words.
    #[inline]
    pub fn handle(&self) {
        let sent = self.0.word(SENT).load(Ordering::Acquire);
        self.0.word(ANSWERED).store(sent, Ordering::Release);
        let handled = self.0.word(HANDLED).load(Ordering::Relaxed);
        self.0.word(HANDLED).store(handled.wrapping_add(1), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_answered_once_and_counted() {
        let guest = Answering::here(Arc::new(Page::own().unwrap()));
        assert!(!guest.is_asked());
        guest.0.word(SENT).store(7, Ordering::Release);
        assert!(guest.is_asked());
        guest.handle();
        assert!(!guest.is_asked());
        assert_eq!(guest.0.word(ANSWERED).load(Ordering::Relaxed), 7);
        guest.handle();
        assert_eq!(guest.0.word(HANDLED).load(Ordering::Relaxed), 2);
    }
}
