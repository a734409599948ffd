//! Latencies during a disturbance, compared with those at other moments of the same period that the random
//! choice could have taken.

use tactus_model::bundle::{ClockFit, Contents, Format, InjectedIn, Row};
use tactus_model::dependence::{Dependence, dependence};
use tactus_model::document::Doubt;
use tactus_model::lot::Lots;
use tactus_model::number::{float, whole};
use tactus_model::series::SeriesKey;
use tactus_model::windows::Maxima;
use tactus_statistics::Stratum;

use crate::units::{clean, duration};

/// Time at the beginning of a second with a load that is left out, in ns: the load takes a while to start.
const SETTLING_NS: u64 = 100_000_000;

/// The first minor version of the format whose bundles have times of injection.
pub const WITH_TIMES: Format = Format { major: 1, minor: 4 };
/// The reason for bundles before that.
pub const NO_TIMES: &str = "this bundle contains no times of injection: measure again";

/// A disturbance, and the row in which it is looked for.
pub struct LockIn<'a> {
    /// The bundle.
    pub contents: &'a Contents,
    /// The row of the disturbed environment, of the same scenario; `None` if it measured nothing.
    pub source: Option<&'a Row>,
    /// The row that was measured.
    pub with: &'a Row,
    /// The disturbance.
    pub made: &'a InjectedIn,
    /// Whether that is a load.
    pub load: bool,
}

/// Why it cannot be told.
pub type Unknown = (Doubt, String);

impl LockIn<'_> {
    /// A stratum for each injection around which everything was measured: the largest latencies of these series.
    ///
    /// # Errors
    /// When there is no stratum at all: the reason.
    pub fn strata(&self, keys: &[&SeriesKey]) -> Result<Vec<Stratum>, Unknown> {
        let window = self.window()?;
        let (fault, windows) = (&self.made.injected, &self.with.windows);
        let lots =
            if self.load { Lots::of_load(0) } else { Lots::of_fault(fault.length_ns, fault.every_ns, 0) };
        let bridge = self.bridge()?;
        let own: Vec<&Maxima> = keys.iter().filter_map(|key| windows.series.get(*key)).collect();
        if own.len() < keys.len() || own.is_empty() {
            return Err((Doubt::NoTimes, "its windows of time did not arrive".into()));
        }
        let (step, interval) = (lots.part_ns / window, self.with.result.interval_ns);
        let (mut strata, mut before) = (Vec::new(), None);
        for at in fault.at.times_ns() {
            let (period, place) = (at / lots.every_ns, (at % lots.every_ns) / lots.part_ns);
            // One is made in each period; what says otherwise, or that it lasts beyond one, would have all windows looked
            // at again for each of its moments.
            if place >= lots.places || before.replace(period).is_some_and(|before| period <= before) {
                continue;
            }
            // Where the first place of the period begins.
            let at = bridge.carry(float(at - place * lots.part_ns));
            let (first, last) = if self.load {
                let from = at.saturating_add(bridge.after_ns).saturating_add(SETTLING_NS);
                let to = at.saturating_add(lots.part_ns).saturating_sub(bridge.before_ns);
                (from.div_ceil(window), (to / window).saturating_sub(1))
            } else {
                let to = at.saturating_add(fault.length_ns).saturating_add(interval);
                (at.saturating_sub(bridge.before_ns) / window, to.saturating_add(bridge.after_ns) / window)
            };
            if last.saturating_sub(first) > lots.every_ns / window {
                continue;
            }
            let reach = usize::try_from((last.saturating_sub(first)) / step.max(1)).unwrap_or(usize::MAX);
            let later = |place: u64| place.saturating_mul(step);
            let value = |place: u64| {
                largest(&own, first.saturating_add(later(place)), last.saturating_add(later(place)))
            };
            let Some(values) = (0..lots.places).map(value).collect::<Option<Vec<u64>>>() else { continue };
            strata.push(Stratum { values, drawn: usize::try_from(place).unwrap_or(0), reach });
        }
        Ok(strata)
    }

    /// The length of a window, in ns, where the times and the windows are there.
    fn window(&self) -> Result<u64, Unknown> {
        let none = |why: String| Err((Doubt::NoTimes, why));
        let fault = &self.made.injected;
        if self.contents.manifest.format < WITH_TIMES {
            return none(NO_TIMES.into());
        }
        let Some(window) = self.with.result.window_ns.filter(|window| *window > 0) else {
            let every = duration(fault.every_ns);
            return none(format!("made every {every}: too often for windows of time between"));
        };
        if fault.times == Some(0) {
            return none(format!("{} was never made (0 times)", clean(&fault.kind)));
        }
        if fault.at.is_empty() {
            return none(format!("its source ({}) does not report when", clean(&fault.way)));
        }
        Ok(window)
    }

    /// The way from the clock of the injections to that of the windows.
    fn bridge(&self) -> Result<Bridge, Unknown> {
        let (measured, disturbed) = (&self.with.result.environment, &self.made.environment);
        // `hold-vcpu` disturbs a guest from outside: its times are on the clock of the machine.
        let from = if self.made.injected.kind == "hold-vcpu" { "" } else { kernel(self.contents, disturbed) };
        let to = kernel(self.contents, measured);
        let mut bridge = Bridge::default();
        if from == to {
            return Ok(bridge);
        }
        let side = |row: &Row, name: &str| {
            let clock = row.result.clock_fit.filter(ClockFit::is_even);
            let why = || match row.result.clock_fit {
                Some(clock) => format!("the clock of {} runs {:.0} ppm off", clean(name), clock.ppm),
                None => format!("the clock of {} is unknown", clean(name)),
            };
            clock.map(|clock| (clock, row.windows.began_ns)).ok_or_else(|| (Doubt::Clock, why()))
        };
        if !from.is_empty() {
            let Some(source) = self.source else {
                return Err((Doubt::Clock, format!("the clock of {} is unknown", clean(disturbed))));
            };
            let (clock, began) = side(source, disturbed)?;
            bridge.before_ns = clock.late_ns;
            bridge.after_ns = clock.error_ns.unwrap_or(0);
            bridge.out = Some((clock, began));
        }
        if !to.is_empty() {
            let (clock, began) = side(self.with, measured)?;
            // A clock that was asked for is uncertain by `error_ns` either way.
            bridge.before_ns = bridge.before_ns.saturating_add(clock.error_ns.unwrap_or(0));
            bridge.after_ns = bridge.after_ns.saturating_add(clock.late_ns);
            bridge.into = Some((clock, began));
        }
        Ok(bridge)
    }
}

/// From one clock to another, by way of this machine's.
#[derive(Default)]
struct Bridge {
    /// Out of the first environment: its clock, and when it began to measure on its own.
    out: Option<(ClockFit, u64)>,
    /// Into the second.
    into: Option<(ClockFit, u64)>,
    /// How much earlier a carried time may really be, in ns.
    before_ns: u64,
    /// How much later it may be, in ns.
    after_ns: u64,
}

impl Bridge {
    fn carry(&self, at: f64) -> u64 {
        let outside = self.out.map_or(at, |(clock, began)| clock.outside(at - float(began)));
        let inside = self.into.map_or(outside, |(clock, began)| float(began) + clock.inside(outside));
        whole(inside.max(0.0))
    }
}

/// The kernel that an environment runs on: the environment that has it, empty for this machine's own.
fn kernel<'a>(contents: &'a Contents, name: &'a str) -> &'a str {
    let mut name = name;
    // However a plan is written, nothing lies inside more others than there are.
    for _ in 0..=contents.plan.environment.len() {
        let Some(spec) = contents.plan.environment.get(name) else { return name };
        match (dependence(&spec.kind), &spec.inside) {
            (Some(Dependence::Itself), _) | (Some(Dependence::Kernel), None) => return "",
            (Some(Dependence::Kernel), Some(outer)) => name = outer,
            _ => return name,
        }
    }
    name
}

/// The largest latency in these windows, in ns; `None` if one of them is unknown.
fn largest(series: &[&Maxima], first: u64, last: u64) -> Option<u64> {
    let each = series.iter().map(|own| own.largest(first, last));
    each.collect::<Option<Vec<u32>>>()?.into_iter().max().map(u64::from)
}
