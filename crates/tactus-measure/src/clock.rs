//! The processor's own clock against CLOCK_MONOTONIC.

use std::sync::OnceLock;

use tactus_model::message::Note;
use tactus_model::number::{float, whole};

use crate::sys;

/// How long the two clocks are compared, at least, in ns: 50 ns of reading error are then 5 ppm.
const COMPARE_NS: u64 = 10_000_000;

/// The length of a tick of a clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    ns_per_tick: f64,
}

impl Scale {
    /// A clock that counts nanoseconds.
    pub const ONE: Self = Self { ns_per_tick: 1.0 };

    /// Ticks as nanoseconds.
    pub fn ns(self, ticks: u64) -> u64 {
        whole(float(ticks) * self.ns_per_tick)
    }

    /// Nanoseconds as ticks.
    pub fn ticks(self, ns: u64) -> u64 {
        whole(float(ns) / self.ns_per_tick)
    }

    /// How fast the clock runs, in Hz.
    pub fn hertz(self) -> u64 {
        whole(1e9 / self.ns_per_tick)
    }
}

/// The clock to be polled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// The processor's own.
    Ticks(Scale),
    /// CLOCK_MONOTONIC: the processor's own does not run evenly.
    Clock,
}

impl Source {
    /// The best clock of this processor; found out once.
    pub fn find() -> Self {
        static FOUND: OnceLock<Source> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
            if is_even(std::env::consts::ARCH, &cpuinfo) { Self::Ticks(scale()) } else { Self::Clock }
        })
    }

    /// The length of its ticks.
    pub fn scale(self) -> Scale {
        match self {
            Self::Ticks(scale) => scale,
            Self::Clock => Scale::ONE,
        }
    }

    /// The name of the processor's counter.
    pub const fn counter() -> &'static str {
        if cfg!(target_arch = "x86_64") { "the TSC" } else { "the virtual counter" }
    }

    /// Says which clock is polled.
    pub fn note(self) -> Note {
        let name = Self::counter();
        // A count is within 1/2048 of its bucket's middle, and the histogram that is sent within 1/1000.
        let precision = "its quantiles are within 0.15 % and half a nanosecond, which is 2 % at 25 ns";
        match self {
            Self::Ticks(scale) => {
                Note::info(format!("spin polls {name} at {} Hz: {precision}", scale.hertz()))
            }
            Self::Clock => Note::info(format!(
                "spin polls CLOCK_MONOTONIC, since {name} is not known to run evenly (constant_tsc, \
                 nonstop_tsc, rdtscp): {precision}"
            )),
        }
    }
}

/// Whether the processor's own clock runs evenly, as it says itself.
pub fn is_even(arch: &str, cpuinfo: &str) -> bool {
    if arch != "x86_64" {
        return true;
    }
    let flags = cpuinfo.lines().find_map(|line| line.strip_prefix("flags")).unwrap_or_default();
    ["constant_tsc", "nonstop_tsc", "rdtscp"]
        .iter()
        .all(|wanted| flags.split_whitespace().any(|flag| flag == *wanted))
}

/// A reading of both clocks at nearly the same time: the closest of several.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    ns: u64,
    /// How far `ns` may be off.
    error: u64,
    ticks: u64,
}

impl Pair {
    /// Reads both clocks.
    pub fn read() -> Self {
        let best = (0..8)
            .map(|_| {
                let before = sys::now();
                let ticks = sys::ticks();
                let after = sys::now();
                let width = after - before;
                (width, Self { ns: before + width / 2, error: width.div_ceil(2), ticks })
            })
            .min_by_key(|(width, _)| *width);
        best.map_or(Self { ns: 0, error: 0, ticks: 0 }, |(_, pair)| pair)
    }

    /// The time to a later pair in ns, its possible error, and its ticks; `None`: the other pair is not later.
    pub fn elapsed(self, later: Self) -> Option<(u64, u64, u64)> {
        let (ns, ticks) = (later.ns.checked_sub(self.ns)?, later.ticks.checked_sub(self.ticks)?);
        Some((ns, self.error + later.error, ticks))
    }

    /// The length of a tick between this pair and a later one, if time passed.
    pub fn to(self, later: Self) -> Option<Scale> {
        let (ns, ticks) = (later.ns.checked_sub(self.ns)?, later.ticks.checked_sub(self.ticks)?);
        (ns > 0 && ticks > 0).then(|| Scale { ns_per_tick: float(ns) / float(ticks) })
    }
}

fn scale() -> Scale {
    if let Some(hertz) = sys::ticks_per_second() {
        return Scale { ns_per_tick: 1e9 / float(hertz) };
    }
    let first = Pair::read();
    sys::sleep_until(first.ns + COMPARE_NS);
    first.to(Pair::read()).unwrap_or(Scale::ONE)
}

impl Pair {
    /// A pair that was read elsewhere.
    pub const fn of(ns: u64, error: u64, ticks: u64) -> Self {
        Self { ns, error, ticks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_stops_or_changes_its_speed_is_not_polled() {
        let even = "processor\t: 0\nflags\t\t: fpu tsc rdtscp constant_tsc nonstop_tsc\n";
        assert!(is_even("x86_64", even));
        assert!(!is_even("x86_64", &even.replace("nonstop_tsc", "")));
        assert!(!is_even("x86_64", ""));
        assert!(is_even("aarch64", ""));
    }

    #[test]
    fn ticks_and_nanoseconds_convert_into_each_other() {
        let scale = Scale { ns_per_tick: 0.385 };
        assert_eq!(scale.ns(1_000_000), 385_000);
        assert!(scale.ticks(scale.ns(123_456_789)).abs_diff(123_456_789) <= 3);
        assert_eq!(Scale::ONE.ns(77), 77);
    }

    #[test]
    fn two_pairs_give_the_speed_and_one_pair_twice_gives_none() {
        let first = Pair::of(1_000, 0, 500);
        assert_eq!(first.to(Pair::of(2_000, 0, 1_000)), Some(Scale { ns_per_tick: 2.0 }));
        assert_eq!(first.to(first), None);
        assert_eq!(first.to(Pair::of(500, 0, 600)), None);
    }
}
