//! Attributes a guest's largest latencies to the host: times in which the thread of the virtual CPU was kept
//! from running, by the host's scheduling record of it.

use std::collections::BTreeMap;

use tactus_model::bundle::{Contents, RowResult, Wait, Waits};
use tactus_model::lot::Lots;
use tactus_model::message::{Note, Outlier};
use tactus_model::number::float;

use crate::units::{count, latency_or_none};

/// How many of the largest latencies are looked at.
const LARGEST: usize = 10;
/// How much later than it was measured a tick may arrive, in ns: the two clocks are compared by it.
const LATE_NS: u64 = 20_000_000;
/// A wait explains latencies that are not shorter than this part of it.
const ALIKE: u64 = 4;
/// Number of shifts of the latencies in time, to see what chance explains.
const SHIFTS: u64 = 200;
/// Largest probability of chance at which the host is still named as the cause.
const ERROR: f64 = 0.05;

/// The host's part in a guest's largest latencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attribution {
    /// How many of the largest latencies were looked at.
    pub of: usize,
    /// How many of them the host explains: the thread was kept from running for at least half of the latency.
    pub host: usize,
    /// How many of them are unknown: a wait of that length may have been left out, or was much longer.
    pub unknown: usize,
    /// How many are explained where the latencies are moved in time: by chance.
    pub by_chance: f64,
    /// The probability that chance explains this many or more.
    pub chance: f64,
    /// The largest of those that are explained, in ns.
    pub largest_ns: u64,
    /// How long the thread was kept from running then, in ns.
    pub waited_ns: u64,
}

impl Attribution {
    /// Whether they are the host's, and not explained by chance.
    #[must_use]
    pub fn is_claimed(&self) -> bool {
        self.host > 0 && self.chance < ERROR
    }
}

/// The explanation of a latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Explained {
    /// The host: it kept the thread from running for this time, in ns.
    Host(u64),
    /// Nothing that the host knows of.
    Nothing,
    /// Unknown: not all waits were kept, or the thread waited for much longer.
    Unknown,
}

/// The host's part in a row's largest latencies. `None` if the host has no record of its CPUs' threads,
/// nothing was measured, or the two clocks cannot be compared.
#[must_use]
pub fn attribution(result: &RowResult) -> Option<Attribution> {
    let waits = result.waits.as_ref()?;
    if result.clock_fit.is_some_and(|clock| !clock.is_even()) {
        return None;
    }
    let mut outliers: Vec<Outlier> =
        result.series().iter().flat_map(|series| &series.outliers).cloned().collect();
    outliers.sort_by_key(|outlier| std::cmp::Reverse(outlier.value_ns));
    outliers.truncate(LARGEST);
    if outliers.is_empty() {
        return None;
    }
    let look = Look::of(result, waits);
    let found: Vec<(u64, Explained)> =
        outliers.iter().map(|outlier| (outlier.value_ns, look.explanation(outlier))).collect();
    let host = found.iter().filter(|(_, by)| matches!(by, Explained::Host(_))).count();
    let length = result.measured_ns.max(1);
    let lots = Lots { every_ns: length, part_ns: 1, places: length, seed: 0 };
    let shifted = (1..=SHIFTS).map(|n| {
        let shift = lots.place(n);
        let moved = |one: &Outlier| Outlier {
            at_ns: (one.at_ns % length).saturating_add(shift) % length,
            ..one.clone()
        };
        outliers.iter().filter(|one| matches!(look.explanation(&moved(one)), Explained::Host(_))).count()
    });
    let shifted: Vec<usize> = shifted.collect();
    let as_many = shifted.iter().filter(|count| **count >= host).count();
    let first = found.iter().find_map(|(value, by)| match by {
        Explained::Host(waited) => Some((*value, *waited)),
        _ => None,
    });
    let (largest_ns, waited_ns) = first.unwrap_or((0, 0));
    Some(Attribution {
        of: outliers.len(),
        host,
        unknown: found.iter().filter(|(_, by)| *by == Explained::Unknown).count(),
        by_chance: float(shifted.iter().sum::<usize>() as u64) / float(SHIFTS),
        chance: float(1 + as_many as u64) / float(1 + SHIFTS),
        largest_ns,
        waited_ns,
    })
}

/// The latencies of a row that [`attribution`] claims are the host's. The key is a latency's place among the
/// outliers of all series. The value is the wait that explains it, and the uncertainty of its time in ns.
#[must_use]
pub fn hosts(result: &RowResult) -> BTreeMap<usize, (&Wait, u64)> {
    let Some(waits) = result.waits.as_ref() else { return BTreeMap::new() };
    if !attribution(result).is_some_and(|found| found.is_claimed()) {
        return BTreeMap::new();
    }
    let look = Look::of(result, waits);
    let all = result.series().iter().flat_map(|series| &series.outliers);
    let explained = |(place, outlier)| {
        let wait = look.alike(outlier)?;
        Some((place, (wait, look.slack(wait).unsigned_abs())))
    };
    all.enumerate().filter_map(explained).collect()
}

/// The host's record.
struct Look<'a> {
    waits: &'a Waits,
    /// Largest distance in time of a latency and its wait, in ns: by the clocks, and by the looks.
    clocks: i64,
    look: i64,
    /// Shorter waits may be missing, in ns.
    cut_ns: Option<u64>,
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

impl<'a> Look<'a> {
    fn of(result: &RowResult, waits: &'a Waits) -> Self {
        let late_ns = result.clock_fit.map_or(LATE_NS, |clock| clock.late_ns);
        Self { clocks: signed(late_ns), look: signed(waits.look_ns), cut_ns: waits.cut_ns, waits }
    }

    /// To how many ns it is known when a wait was.
    const fn slack(&self, wait: &Wait) -> i64 {
        if wait.by.is_some() || wait.outside { self.clocks } else { self.clocks.saturating_add(self.look) }
    }

    /// The waits of half of a latency and more that met it.
    fn long(&self, outlier: &Outlier) -> impl Iterator<Item = &'a Wait> {
        let (to, value) = (signed(outlier.at_ns), signed(outlier.value_ns));
        let (cpu, half) = (outlier.series.cpu, outlier.value_ns / 2);
        self.waits.longest.iter().filter(move |wait| {
            let from = wait.at_ns.saturating_sub(signed(wait.waited_ns));
            wait.cpu == cpu
                && wait.waited_ns >= half
                && from <= to.saturating_add(self.slack(wait))
                && wait.at_ns.saturating_add(self.slack(wait)) >= to.saturating_sub(value)
        })
    }

    /// The longest of them that is not much longer than the latency: of one that is, it would have to have seen the very
    /// end.
    fn alike(&self, outlier: &Outlier) -> Option<&'a Wait> {
        let alike = self.long(outlier).filter(|wait| wait.waited_ns / ALIKE <= outlier.value_ns);
        alike.max_by_key(|wait| wait.waited_ns)
    }

    /// Whether the thread was kept from running while a latency lasted, for half of it or more.
    fn explanation(&self, outlier: &Outlier) -> Explained {
        let half = outlier.value_ns / 2;
        match self.alike(outlier) {
            Some(wait) => Explained::Host(wait.waited_ns),
            None if self.long(outlier).next().is_some() || self.cut_ns.is_some_and(|cut| cut >= half) => {
                Explained::Unknown
            }
            None => Explained::Nothing,
        }
    }
}

/// The same in sentences: one for the single measurement of an environment, one for all where it has several.
#[must_use]
pub fn attribution_notes(contents: &Contents) -> Vec<(String, Note)> {
    let mut places: Vec<(&str, Vec<(&str, Attribution)>)> = Vec::new();
    let mut notes = Vec::new();
    for result in contents.rows.iter().map(|row| &row.result) {
        if let (Some(_), Some(clock)) = (&result.waits, result.clock_fit.filter(|clock| !clock.is_even())) {
            let text = format!(
                "{}: the machine's clock runs {:.0} ppm faster than that of {}: it is unknown which \
                    latencies the host caused",
                result.name, clock.ppm, result.environment
            );
            notes.push((result.environment.clone(), Note::info(text)));
        }
        let Some(found) = attribution(result) else { continue };
        match places.iter_mut().find(|(place, _)| *place == result.environment) {
            Some((_, known)) => known.push((&result.name, found)),
            None => places.push((&result.environment, vec![(&result.name, found)])),
        }
    }
    let note = |(place, found): (&str, Vec<(&str, Attribution)>)| {
        let text = match found.as_slice() {
            [(name, one)] => single(name, *one),
            all => several(all),
        };
        (place.to_owned(), Note::info(text))
    };
    notes.extend(places.into_iter().map(note));
    notes
}

/// Words for the unknown ones.
fn open(unknown: usize) -> String {
    match unknown {
        0 => String::new(),
        some => format!("; unknown for {} of them", count(some as u64)),
    }
}

fn single(name: &str, found: Attribution) -> String {
    let Attribution { of, host, unknown, by_chance, largest_ns, waited_ns, .. } = found;
    let open = open(unknown);
    if !found.is_claimed() {
        return match host {
            0 if unknown == of => {
                format!("{name}: unknown whether the host caused the {of} largest latencies")
            }
            0 => format!(
                "{name}: the host kept the vCPU thread waiting in none of the {of} largest latencies: the \
                 guest or its hypervisor caused them{open}"
            ),
            _ => format!(
                "{name}: the cause of the {of} largest latencies is unknown: the host kept the vCPU thread \
                 waiting in {host} of them, and chance alone would explain {by_chance:.1}{open}"
            ),
        };
    }
    format!(
        "{name}: the host, not the guest, caused {host} of the {of} largest latencies: it did not run the \
         vCPU thread. In the largest of them, {}, the thread waited {}. Chance alone would explain \
         {by_chance:.1}{open}",
        latency_or_none(Some(largest_ns)),
        latency_or_none(Some(waited_ns)),
    )
}

fn several(all: &[(&str, Attribution)]) -> String {
    let of: usize = all.iter().map(|(_, one)| one.of).sum();
    let claimed: Vec<&(&str, Attribution)> = all.iter().filter(|(_, one)| one.is_claimed()).collect();
    let unknown: usize =
        all.iter().map(|(_, one)| one.unknown + if one.is_claimed() { 0 } else { one.host }).sum();
    let open = open(unknown);
    let Some((_, largest)) = claimed.iter().max_by_key(|(_, one)| one.largest_ns) else {
        return format!(
            "the host kept vCPU threads waiting in the {of} largest latencies ({} measurements) no more \
             often than by chance: the guest or its hypervisor caused them{open}",
            all.len()
        );
    };
    let host: usize = claimed.iter().map(|(_, one)| one.host).sum();
    let each: Vec<String> = claimed.iter().map(|(name, one)| format!("{} in {name}", one.host)).collect();
    format!(
        "the host, not the guest, caused {host} of the {of} largest latencies of its {} measurements: it \
         did not run the vCPU thread. In the largest of them, {}, the thread waited {}. They are {}{open}",
        all.len(),
        latency_or_none(Some(largest.largest_ns)),
        latency_or_none(Some(largest.waited_ns)),
        each.join(", "),
    )
}

#[cfg(test)]
mod tests {
    use tactus_model::bundle::ClockFit;
    use tactus_model::outcome::{LatencyOutcome, Outcome, SeriesResult};
    use tactus_model::series::{SeriesKey, ThreadCounters};

    use super::*;

    const MS: u64 = 1_000_000;

    fn key(cpu: u32) -> SeriesKey {
        SeriesKey { cpu, thread: 0, priority: 95, kind: "thread".into() }
    }

    fn outlier(cpu: u32, at_ms: u64, value_ms: u64) -> Outlier {
        Outlier { activity: 0, series: key(cpu), at_ns: at_ms * MS, value_ns: value_ms * MS, trace: None }
    }

    fn waits(longest: &[(u32, i64, u64)]) -> Waits {
        let wait = |(cpu, at_ms, ms): &(u32, i64, u64)| Wait {
            cpu: *cpu,
            at_ns: at_ms * 1_000_000,
            waited_ns: ms * MS,
            stopped: false,
            by: None,
            outside: false,
        };
        let longest = longest.iter().map(wait).collect();
        Waits { look_ns: 10 * MS, totals: Vec::new(), longest, cut_ns: None }
    }

    fn explained(outlier: &Outlier, waits: &Waits, cut_ns: Option<u64>) -> Explained {
        Look { waits, clocks: signed(20 * MS), look: signed(10 * MS), cut_ns }.explanation(outlier)
    }

    /// A row of a minute, with these latencies on CPU 1.
    fn row(outliers: Vec<Outlier>, waits: Waits) -> RowResult {
        let series = SeriesResult {
            key: key(1),
            summary: tactus_model::latency::Latency::new().summary(),
            counters: ThreadCounters::default(),
            outliers,
            whole: true,
        };
        RowResult {
            measured_ns: 60_000 * MS,
            outcome: Outcome::Latency(LatencyOutcome { series: vec![series], all: None }),
            waits: Some(waits),
            clock_fit: Some(ClockFit {
                began_ns: 0,
                ppm: 12.0,
                span_ns: 59_000 * MS,
                late_ns: 20 * MS,
                error_ns: None,
            }),
            ..RowResult::unmeasured("guest, idle", "guest", "qemu")
        }
    }

    #[test]
    fn a_latency_is_the_hosts_when_the_thread_waited_for_most_of_it() {
        let waits = waits(&[(1, 1_005, 50)]);
        let of = |outlier| explained(&outlier, &waits, None);
        assert_eq!(of(outlier(1, 1_000, 51)), Explained::Host(50 * MS));
        assert_eq!(of(outlier(0, 1_000, 51)), Explained::Nothing, "another CPU's thread");
        assert_eq!(of(outlier(1, 2_000, 51)), Explained::Nothing, "at another time");
        assert_eq!(of(outlier(1, 1_000, 150)), Explained::Nothing, "less than half of it");
        assert_eq!(of(outlier(1, 1_000, 5)), Explained::Unknown, "much longer than it");
    }

    #[test]
    fn where_the_list_of_waits_is_cut_what_a_shorter_one_would_explain_is_not_known() {
        let waits = waits(&[(1, 50_000, 90)]);
        let cut = |value| explained(&outlier(1, 1_000, value), &waits, Some(20 * MS));
        assert_eq!((cut(40), cut(41), cut(30)), (Explained::Unknown, Explained::Nothing, Explained::Unknown));
    }

    #[test]
    fn what_the_host_explains_is_claimed_where_chance_does_not_explain_it_too() {
        let latencies = || (0..8).map(|n| outlier(1, 3_000 + n * 7_000, 40)).collect::<Vec<_>>();
        let held: Vec<(u32, i64, u64)> = (0..8).map(|n| (1, 3_000 + n * 7_000, 40)).collect();
        let found = attribution(&row(latencies(), waits(&held))).unwrap();
        assert!(found.is_claimed() && found.host == 8 && found.by_chance < 1.0, "{found:?}");
        // A thread that waits all the time explains everything at any time.
        let always: Vec<(u32, i64, u64)> = (0..600).map(|n| (1, n * 100, 40)).collect();
        let chance = attribution(&row(latencies(), waits(&always))).unwrap();
        assert!(!chance.is_claimed() && chance.host == 8 && chance.by_chance > 7.0, "{chance:?}");
        assert!(
            single("guest, idle", chance).contains("chance alone would explain"),
            "{}",
            single("x", chance)
        );
    }

    #[test]
    fn latencies_and_waits_that_have_nothing_to_do_with_each_other_are_rarely_claimed() {
        let draw = Lots { every_ns: 1, part_ns: 1, places: 60_000, seed: 3 };
        let mut claimed = 0;
        for run in 0..200_u64 {
            let at = |n: u64| draw.place(run * 1_000 + n);
            let latencies = (0..10).map(|n| outlier(1, at(n), 40)).collect();
            let waits: Vec<(u32, i64, u64)> = (0..40).map(|n| (1, signed(at(500 + n)), 40)).collect();
            claimed += i32::from(attribution(&row(latencies, self::waits(&waits))).unwrap().is_claimed());
        }
        // 5 % are 10; three standard deviations more are 19.
        assert!(claimed <= 19, "{claimed} of 200");
    }

    #[test]
    fn a_clock_that_runs_away_attributes_nothing_and_says_so() {
        let mut away = row(vec![outlier(1, 1_000, 51)], waits(&[(1, 1_005, 50)]));
        assert!(attribution(&away).is_some());
        away.clock_fit = Some(ClockFit {
            began_ns: 0,
            ppm: 5_000.0,
            span_ns: 59_000 * MS,
            late_ns: 20 * MS,
            error_ns: None,
        });
        assert_eq!(attribution(&away), None);
    }

    #[test]
    fn absurd_times_are_no_overflow() {
        let waits = waits(&[(1, i64::MIN / 1_000_000, u64::MAX / 1_000_000), (1, i64::MAX / 1_000_000, 1)]);
        let absurd = Outlier { at_ns: u64::MAX, value_ns: u64::MAX, ..outlier(1, 0, 0) };
        let _ = explained(&absurd, &waits, None);
        let _ = attribution(&row(vec![absurd], waits));
    }
}
