//! Text that is no frame: a kernel's own words on the same line. Pure.

use std::time::{Duration, Instant};

use super::Excess;

/// Bytes a second. The fastest line that others write on, too (4 Mbaud), carries 400 KB, which in lines of twenty
/// characters come to 1 MB.
const RATE: u64 = 2 << 20;
/// Bytes that may come at once: all that a kernel says while it boots, with every driver's debug messages, is 2 MB.
const AT_ONCE: u64 = 16 << 20;
/// The cost of a line beside its length, in bytes.
const LINE: u64 = 32;

/// A bucket that leaks: text fills it, and time empties it.
#[derive(Debug)]
pub(super) struct Text {
    level: u64,
    at: Instant,
}

impl Text {
    pub const fn new(now: Instant) -> Self {
        Self { level: 0, at: now }
    }

    /// A line of `bytes` bytes has arrived.
    pub fn take(&mut self, bytes: usize, now: Instant) -> Result<(), Excess> {
        let passed = now.saturating_duration_since(self.at).min(Duration::from_secs(3600));
        let leaked = u64::try_from(passed.as_micros()).unwrap_or(u64::MAX).saturating_mul(RATE) / 1_000_000;
        // Time that was too short for a byte to leak is not lost.
        if leaked > 0 {
            (self.level, self.at) = (self.level.saturating_sub(leaked), now);
        }
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.level = self.level.saturating_add(bytes).saturating_add(LINE);
        if self.level > AT_ONCE {
            let (at_once, rate) = (AT_ONCE >> 20, RATE >> 20);
            return Err(Excess(format!(
                "sent text outside of frames faster than any line can carry it ({at_once} MiB at once, \
                    {rate} MiB/s)"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_4_mbaud_full_of_short_lines_passes_and_a_flood_does_not() {
        let begin = Instant::now();
        let mut text = Text::new(begin);
        // A minute, a millisecond at a time, after a boot; the bucket is empty long before.
        text.take(2_000_000, begin).unwrap();
        for ms in 0..60_000u64 {
            for _ in 0..20 {
                text.take(20, begin + Duration::from_millis(ms)).unwrap();
            }
        }
        assert!(text.level < 10_000, "it would go on for a day: {}", text.level);
        let mut flood = Text::new(begin);
        let lines = (0..10_000_000).take_while(|_| flood.take(1, begin).is_ok()).count();
        assert!(lines < 600_000, "{lines}");
    }
}
