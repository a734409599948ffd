//! How this guest proves its instrument: it blocks its own interrupts for a known time, which must be seen at its size.

/// The proof of the instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// A block that stands out of the noise of the place, in place of the probe's hog.
    Hog,
    /// One of this length, in ns.
    Block(u64),
}

/// How long the first one blocks, in ns: the first of these that is at least twice the noise, as the probe's hog does.
const SIZES_NS: [u64; 4] = [1_000_000, 4_000_000, 16_000_000, 64_000_000];

impl Control {
    /// How long interrupts are to be off where the largest latency without that is `noise_ns`.
    pub fn length_ns(self, noise_ns: u64) -> u64 {
        match self {
            Self::Block(length_ns) => length_ns,
            Self::Hog => {
                *SIZES_NS.iter().find(|size| **size / 2 >= noise_ns).unwrap_or(&SIZES_NS[SIZES_NS.len() - 1])
            }
        }
    }
}

/// Whether it was seen at its size: the rule by which the host side judges (`tactus-model`, `wire/self_test.rs`), asked here
/// to know whether to try again.
pub const fn is_seen(injected_ns: u64, seen_ns: u64, noise_ns: u64) -> bool {
    let tenth = injected_ns / 10;
    let above = if noise_ns > tenth { noise_ns } else { tenth };
    injected_ns > 0
        && noise_ns <= injected_ns / 2
        && seen_ns >= injected_ns - tenth
        && seen_ns <= injected_ns + above
}

#[cfg(test)]
mod tests {
    use tactus_model::message::{Control as Judged, Stage};
    use tactus_model::series::SeriesKey;

    use super::*;

    #[test]
    fn what_counts_as_seen_is_what_the_host_side_calls_seen() {
        let judged = |injected_ns, seen_ns, noise_ns| {
            let series = SeriesKey { cpu: 0, thread: 0, priority: 0, kind: "interrupt".into() };
            let (by, stage) = ("block".into(), Stage::Before);
            let (activity, passed, attempts) = (0, true, 1);
            Judged { activity, series, injected_ns, seen_ns, noise_ns, passed, attempts, by, stage }.is_seen()
        };
        for injected in [0, 9, 1_000_000, 1_000_007, 4_123_456] {
            for noise in
                [0, injected / 20, injected / 10, injected / 4, injected / 2, injected / 2 + 1, u64::MAX]
            {
                for tenths in 0..30 {
                    for seen in
                        [injected / 10 * tenths, injected * tenths / 10, injected + noise.min(injected)]
                    {
                        let expected = judged(injected, seen, noise);
                        assert_eq!(is_seen(injected, seen, noise), expected, "{injected} {seen} {noise}");
                    }
                }
            }
        }
    }

    #[test]
    fn where_the_place_is_loud_it_blocks_for_longer_unless_the_length_is_the_plans() {
        let of = |noise| Control::Hog.length_ns(noise);
        assert_eq!((of(0), of(500_000), of(500_001)), (1_000_000, 1_000_000, 4_000_000));
        assert_eq!((of(8_000_000), of(u64::MAX)), (16_000_000, 64_000_000));
        assert_eq!(Control::Block(50_000_000).length_ns(u64::MAX), 50_000_000);
    }
}
