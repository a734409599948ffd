//! Whether CLOCK_MONOTONIC is good enough to measure with: the size of its steps, and its rate against the processor's
//! counter if its frequency is known. Also whether other clocks of the system jumped against it meanwhile.

use tactus_measure::clock::{Pair, Source, is_even};
use tactus_model::clock::{ClockCheck, Rate};
use tactus_model::number::{float, whole};

use crate::sys;

/// Steps that are looked at.
const STEPS: u32 = 64;
/// Readings after which a clock is said to stand: tens of milliseconds of them.
const MOST_READINGS: u32 = 1_000_000;
/// The step of a clock that was never seen to make one, in ns.
const STANDS_NS: u64 = 1_000_000_000;
/// The least time over which two clocks are compared, in ns.
const LEAST_SPAN_NS: u64 = 5_000_000;
/// The bit with which a hypervisor reports itself (CPUID 1, ecx).
const HYPERVISOR: u32 = 1 << 31;
/// The frequency for which the firmware has a processor's performance in numbers (ACPI CPPC), in MHz.
const CPPC: &str = "/sys/devices/system/cpu/cpu0/acpi_cppc/nominal_freq";

/// The smallest step of a clock in ns, and whether it stood still between two readings.
pub fn step(mut read: impl FnMut() -> u64) -> (u64, bool) {
    let (mut smallest, mut stands, mut steps) = (u64::MAX, false, 0);
    let mut last = read();
    for _ in 0..MOST_READINGS {
        let now = read();
        match now.saturating_sub(last) {
            0 => stands = true,
            step => {
                smallest = smallest.min(step);
                steps += 1;
            }
        }
        last = now;
        if steps == STEPS {
            break;
        }
    }
    if steps == 0 { (STANDS_NS, true) } else { (smallest, stands) }
}

/// How fast the processor's counter is, as the processor or its firmware says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Nominal {
    hertz: u64,
    /// Allowed deviation of the clock from it, in parts per million. A frequency rounded to whole MHz, or the base
    /// frequency instead of the counter's, is a rough reference.
    within_ppm: u64,
    said_by: &'static str,
}

/// The counter's frequency; `leaves` are those of [`sys::cpuid_leaves`], `cppc` the text of [`CPPC`].
fn nominal(leaves: &[(String, Option<[u32; 4]>)], cppc: Option<&str>) -> Option<Nominal> {
    let leaf = |name: &str| leaves.iter().find(|(own, _)| own == name).and_then(|(_, answer)| *answer);
    // Below a hypervisor the counter may be another one than the processor's, and be scaled.
    if leaf("cpuid:0x1:0").is_none_or(|[_, _, ecx, _]| ecx & HYPERVISOR != 0) {
        return None;
    }
    if let Some([below @ (1..), above @ (1..), crystal @ (1..), _]) = leaf("cpuid:0x15:0") {
        let hertz = u64::from(crystal) * u64::from(above) / u64::from(below);
        return Some(Nominal { hertz, within_ppm: 1_000, said_by: "CPUID 15h" });
    }
    let megahertz = |mhz: u64, said_by| Nominal { hertz: mhz * 1_000_000, within_ppm: 100_000, said_by };
    if let Some([base, ..]) = leaf("cpuid:0x16:0")
        && base & 0xffff > 0
    {
        return Some(megahertz(u64::from(base & 0xffff), "CPUID 16h"));
    }
    let mhz = cppc?.trim().parse().ok().filter(|mhz| *mhz > 0)?;
    Some(megahertz(mhz, "ACPI CPPC"))
}

/// The clock's rate against a counter of that frequency, by two readings of both.
fn rate(name: &str, nominal: &Nominal, first: Pair, later: Pair) -> Option<Rate> {
    let (ns, error, ticks) = first.elapsed(later)?;
    if ns < LEAST_SPAN_NS || ticks == 0 {
        return None;
    }
    let counted = float(ticks) / float(nominal.hertz) * 1e9;
    let ppm = |ns: u64| whole(float(ns) / counted * 1e6);
    Some(Rate {
        against: format!("{name} at {} MHz ({})", nominal.hertz / 1_000_000, nominal.said_by),
        least_ppm: ppm(ns.saturating_sub(error)),
        most_ppm: ppm(ns.saturating_add(error)),
        within_ppm: nominal.within_ppm,
    })
}

/// A look at the clock that begins before a control and ends after it.
pub struct Look(Option<(Pair, Nominal)>);

impl Look {
    /// Begins.
    pub fn begin() -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        if !is_even(std::env::consts::ARCH, &cpuinfo) {
            return Self(None);
        }
        let nominal = match sys::ticks_per_second() {
            Some(hertz) => Some(Nominal { hertz, within_ppm: 1_000, said_by: "cntfrq_el0" }),
            None => nominal(&sys::cpuid_leaves(), std::fs::read_to_string(CPPC).ok().as_deref()),
        };
        Self(nominal.map(|nominal| (Pair::read(), nominal)))
    }

    /// The result.
    pub fn end(self) -> ClockCheck {
        let (step_ns, stands) = step(sys::now);
        let rate = self.0.and_then(|(first, nominal)| rate(Source::counter(), &nominal, first, Pair::read()));
        ClockCheck {
            step_ns: Some(step_ns),
            stands,
            rates: rate.into_iter().collect(),
            ..ClockCheck::default()
        }
    }
}

/// CLOCK_BOOTTIME and CLOCK_REALTIME against CLOCK_MONOTONIC. Both keep their distance from it unless the system was
/// suspended or the clock was set. CLOCK_MONOTONIC may then have a hole that no latency shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Jumps {
    last: Option<[u64; 2]>,
    /// The largest jump of one of them, in ns.
    pub largest_ns: u64,
}

impl Jumps {
    /// Takes in a look at all three.
    pub fn look(&mut self) {
        // The quickest look of several: a delay between two readings would look like a jump.
        let look = || {
            let before = sys::now();
            let others = [sys::boottime(), sys::realtime()];
            (sys::now().saturating_sub(before), others.map(|other| other.wrapping_sub(before)))
        };
        if let Some((_, distances)) = (0..4).map(|_| look()).min_by_key(|(took, _)| *took) {
            self.take(distances);
        }
    }

    fn take(&mut self, distances: [u64; 2]) {
        if let Some(last) = self.last {
            for (now, before) in distances.into_iter().zip(last) {
                let jump = now.wrapping_sub(before).cast_signed().unsigned_abs();
                self.largest_ns = self.largest_ns.max(jump);
            }
        }
        self.last = Some(distances);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that is read every 25 ns and shows only whole steps.
    fn coarse(step: u64) -> impl FnMut() -> u64 {
        let mut true_ns = 0;
        move || {
            true_ns += 25;
            true_ns / step * step
        }
    }

    fn found(step: (u64, bool)) -> ClockCheck {
        ClockCheck { step_ns: Some(step.0), stands: step.1, ..ClockCheck::default() }
    }

    #[test]
    fn a_clock_in_steps_of_4_ms_is_refused_and_a_fine_one_is_not() {
        assert_eq!(step(coarse(4_000_000)), (4_000_000, true));
        assert!(found(step(coarse(4_000_000))).refusal().is_some());
        assert!(found(step(coarse(100))).refusal().is_none());
        assert_eq!(step(coarse(1)), (25, false));
        assert!(found(step(|| 7)).refusal().is_some(), "it never moves");
        // Each reading takes 3 us: nothing is known of its steps.
        let mut slow = 0;
        let slow = step(|| {
            slow += 3_000;
            slow
        });
        assert!(found(slow).refusal().is_none());
    }

    #[test]
    fn a_clock_at_half_the_rate_of_its_counter_is_refused() {
        let nominal = Nominal { hertz: 2_000_000_000, within_ppm: 1_000, said_by: "CPUID 15h" };
        let rate = |ns| {
            // 40 ms of the counter.
            let (first, later) = (Pair::of(1_000, 50, 0), Pair::of(1_000 + ns, 50, 80_000_000));
            rate("the TSC", &nominal, first, later)
        };
        let wrong = |ns: u64| rate(ns).unwrap().is_wrong();
        assert!(wrong(20_000_000), "half");
        assert!(wrong(400_000_000), "ten times");
        assert!(!wrong(40_000_000) && !wrong(40_030_000), "750 ppm");
        assert!(wrong(40_060_000), "1500 ppm");
        assert_eq!(rate(1_000_000), None, "too short to say");
        let half = ClockCheck { rates: rate(20_000_000).into_iter().collect(), ..ClockCheck::default() };
        assert_eq!(
            half.refusal().unwrap(),
            "its clock runs at 0.50 of the rate of the TSC at 2000 MHz (CPUID 15h), or less"
        );
    }

    #[test]
    fn the_counters_frequency_is_what_the_processor_says_and_nothing_below_a_hypervisor() {
        let leaves = |ecx: u32, more: &[(&str, [u32; 4])]| {
            let one = ("cpuid:0x1:0".to_owned(), Some([0, 0, ecx, 0]));
            let more = more.iter().map(|(name, answer)| ((*name).to_owned(), Some(*answer)));
            std::iter::once(one).chain(more).collect::<Vec<_>>()
        };
        let crystal = ("cpuid:0x15:0", [2, 176, 25_000_000, 0]);
        let base = ("cpuid:0x16:0", [2_200, 3_400, 100, 0]);
        let hertz = |leaves: &[_], cppc| nominal(leaves, cppc).map(|own| (own.hertz, own.within_ppm));
        assert_eq!(hertz(&leaves(0, &[crystal, base]), None), Some((2_200_000_000, 1_000)));
        assert_eq!(
            hertz(&leaves(0, &[("cpuid:0x15:0", [2, 176, 0, 0]), base]), None),
            Some((2_200_000_000, 100_000))
        );
        assert_eq!(hertz(&leaves(0, &[]), Some("2450\n")), Some((2_450_000_000, 100_000)));
        assert_eq!(hertz(&leaves(0, &[]), None), None);
        assert_eq!(hertz(&leaves(HYPERVISOR, &[crystal]), None), None);
    }

    #[test]
    fn a_suspend_and_a_clock_that_is_set_are_jumps_either_way() {
        let largest = |second: [u64; 2]| {
            let mut jumps = Jumps::default();
            jumps.take([5_000, 1_700_000_000_000_000_000]);
            jumps.take(second);
            jumps.largest_ns
        };
        assert_eq!(largest([5_040, 1_700_000_000_000_000_000]), 40);
        assert_eq!(largest([3_000_005_000, 1_700_000_003_000_000_000]), 3_000_000_000);
        assert_eq!(largest([5_000, 1_699_999_999_000_000_000]), 1_000_000_000, "set back");
        let mut jumps = Jumps::default();
        (0..100).for_each(|_| jumps.look());
        assert!(jumps.last.is_some());
    }
}
