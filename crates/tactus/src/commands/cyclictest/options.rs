//! Makes a plan of cyclictest's options: a scenario in which each thread is a separate measurement, because each has
//! its own interval and priority. Pure.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::Timer;
use tactus_model::control::ControlBy;
use tactus_model::cpus::CpuRequest;
use tactus_model::plan::{Activity, Environment, Plan, Scenario};
use tactus_model::scheduling::Policy;
use tactus_model::{CpuSet, Nanos};

use crate::cli::{Cyclictest, Lacking};
use crate::exit::Failure;

/// How much longer the interval of each further thread is, in us, where nothing is said.
const DISTANCE_US: u64 = 500;

/// Where nothing says how long: as long as anything is measured.
const UNTIL_INTERRUPTED: Nanos = Nanos::from_secs(365 * 86_400);

/// The shortest and the longest interval, in us.
const INTERVAL_US: RangeInclusive<u64> = 10..=60_000_000;

/// The most threads.
const MOST_THREADS: usize = 512;

/// The largest histogram, in rows, and the largest latency, in us, that can be asked for: as in cyclictest, a larger
/// value is lowered to this.
const MOST_ROWS: u64 = 1_000_000;
const MOST_US: u64 = 1 << 40;

/// The request of the options.
#[derive(Debug)]
pub struct Asked {
    /// Every thread, in its order.
    pub threads: Vec<Thread>,
    /// How they are scheduled.
    pub policy: Policy,
    /// A priority that was not given, and is taken all the same.
    pub defaulted: Option<u32>,
    /// How long.
    pub duration: Nanos,
    /// Latencies above end it, in us.
    pub break_us: Option<u64>,
    /// The number of values in the histogram, in us or ns as they are printed.
    pub histogram: Option<u64>,
}

/// `count` us, and a year at most.
fn us(count: u64) -> Nanos {
    Nanos::from_us(count.min(UNTIL_INTERRUPTED.0 / 1_000))
}

/// A thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    pub cpu: u32,
    pub priority: u32,
    pub interval_us: u64,
}

impl Asked {
    /// The request of the options, where these CPUs may be used; `list` reads a list of CPUs.
    ///
    /// # Errors
    /// An option that tactus does not support, or a value that is impossible.
    pub fn of(
        options: &Cyclictest,
        list: impl Fn(&CpuRequest) -> Result<CpuSet, Failure>,
    ) -> Result<Self, Failure> {
        refuse(&options.lacking)?;
        let cpus = match options.affinity.as_deref() {
            None => list(&CpuRequest::All)?,
            Some(text) => list(&text.parse().map_err(|error| {
                Failure::new(error, "-a takes a list of CPUs, as in -a 2,4-6, or nothing")
            })?)?,
        };
        let cpus: Vec<u32> = cpus.iter().collect();
        let count = match options.threads {
            None if options.smp => cpus.len(),
            None => 1,
            Some(0) => cpus.len(),
            Some(count) => count,
        };
        if cpus.is_empty() || count > MOST_THREADS {
            return Err(Failure::say(
                format!("-t {count}: threads on {} CPUs", cpus.len()),
                format!("at most {MOST_THREADS} threads, on CPUs that are online"),
            ));
        }
        if !INTERVAL_US.contains(&options.interval) {
            return Err(Failure::say(
                format!("-i {}: this interval is out of range", options.interval),
                "use 10 us to 60000000 us",
            ));
        }
        let histogram = options.histogram.or(options.histofall).map(|rows| rows.min(MOST_ROWS));
        let (policy, priority, defaulted) = policy(options, count)?;
        // With a histogram all threads are alike.
        let distance_us = if histogram.is_some() { 0 } else { options.distance.unwrap_or(DISTANCE_US) };
        let threads = (0..count).zip(0_u32..).map(|(number, lower)| Thread {
            cpu: cpus[number % cpus.len()],
            priority: if options.priospread {
                priority.saturating_sub(lower).max(priority.min(1))
            } else {
                priority
            },
            interval_us: options.interval.saturating_add(distance_us.saturating_mul(u64::from(lower))),
        });
        let loops = (options.loops > 0).then(|| us(options.loops.saturating_mul(options.interval)));
        let duration = [options.duration, loops].into_iter().flatten().min_by_key(|time| time.0);
        let threads: Vec<Thread> = threads.collect();
        if let Some(last) = threads.last().filter(|last| !INTERVAL_US.contains(&last.interval_us)) {
            return Err(Failure::say(
                format!("-d: the interval of the last of {count} threads would be {} us", last.interval_us),
                "use at most 60000000 us",
            ));
        }
        Ok(Self {
            threads,
            policy,
            defaulted,
            duration: duration.unwrap_or(UNTIL_INTERRUPTED),
            break_us: options.breaktrace.map(|limit| limit.min(MOST_US)),
            histogram,
        })
    }

    /// The same as a plan for this machine.
    pub fn plan(&self) -> Plan {
        let measure = Timer { threads: None, break_at: self.break_us.map(Nanos::from_us) };
        let of = |thread: &Thread| Activity {
            measure: Some(Measure::Timer(measure.clone())),
            environment: "host".into(),
            cpus: Some(CpuRequest::List(CpuSet::from_iter([thread.cpu]))),
            interval: Some(Nanos::from_us(thread.interval_us)),
            priority: (thread.priority > 0).then_some(thread.priority),
            policy: Some(self.policy),
            ..Activity::default()
        };
        let scenario = Scenario {
            name: Some("cyclictest".into()),
            activity: self.threads.iter().map(of).collect(),
            duration: Some(self.duration),
            tick: Some(Nanos((self.duration.0 / 20).clamp(100_000_000, 1_000_000_000))),
            control: Some(ControlBy::Nothing),
            ..Scenario::default()
        };
        Plan {
            name: "cyclictest".into(),
            environment: BTreeMap::from([(
                "host".to_owned(),
                Environment { kind: "host".into(), ..Environment::default() },
            )]),
            scenario: vec![scenario],
            ..Plan::default()
        }
    }
}

/// Policy and priority; the last: the priority was not given.
fn policy(options: &Cyclictest, threads: usize) -> Result<(Policy, u32, Option<u32>), Failure> {
    let policy = match (options.policy.as_deref(), options.priority) {
        (None, None) => return Ok((Policy::Other, 0, None)),
        (None, Some(_)) => Policy::Fifo,
        (Some(name), _) => match name.to_ascii_lowercase().as_str() {
            "other" | "normal" => return Ok((Policy::Other, 0, None)),
            "fifo" => Policy::Fifo,
            "rr" => Policy::Rr,
            other => {
                return Err(Failure::say(
                    format!("--policy={other}: tactus measures with fifo, rr, other or normal"),
                    "leave it out, or use one of them",
                ));
            }
        },
    };
    match options.priority.filter(|priority| *priority > 0) {
        Some(priority) if priority > 99 => {
            Err(Failure::say(format!("-p {priority} is not a priority"), "priorities are 1 to 99"))
        }
        Some(priority) => Ok((policy, priority, None)),
        None => {
            let priority = u32::try_from(threads).unwrap_or(99).saturating_add(1).min(99);
            Ok((policy, priority, Some(priority)))
        }
    }
}

fn refuse(lacking: &Lacking) -> Result<(), Failure> {
    const TIMER: &str = "tactus waits by clock_nanosleep for absolute times of CLOCK_MONOTONIC, cyclictest's default: leave it out";
    const EACH: &str = "tactus keeps no single values: `tactus convert BUNDLE --to csv` has each report interval, --json \
        the histogram";
    let asked = [
        (lacking.aligned.is_some(), "-A", "threads of one interval are in step from the start: leave it out"),
        (
            lacking.secaligned.is_some(),
            "--secaligned",
            "threads of one interval are in step from the start: leave it out",
        ),
        (lacking.clock != 0, "-c", TIMER),
        (lacking.relative, "-r", TIMER),
        (lacking.system, "-s", TIMER),
        (lacking.posix_timers, "-x", TIMER),
        (lacking.fifo.is_some(), "-F", "`tactus run --json` and --json print the figures of a run"),
        (
            lacking.latency.is_some_and(|us| us > 0),
            "--latency",
            "tactus requests 0 us, as cyclictest does by default; --default-system requests nothing",
        ),
        (lacking.resolution, "-R", "`tactus measure` prints the resolution of the clock"),
        (lacking.smi, "--smi", "`tactus audit` prints the number of SMIs"),
        (lacking.spike.is_some() || lacking.spike_nodes.is_some(), "--spike", EACH),
        (lacking.tracemark, "--tracemark", "-b alone stops ftrace at the moment"),
        (lacking.verbose, "-v", EACH),
    ];
    match asked.into_iter().find(|(is, ..)| *is) {
        Some((_, option, hint)) => {
            Err(Failure::say(format!("tactus does not support cyclictest's {option}"), hint))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    /// The request of these words on a machine of four CPUs.
    fn asked(words: &str) -> Result<Asked, String> {
        let words = ["tactus", "cyclictest"].into_iter().chain(words.split_whitespace());
        let Command::Cyclictest(options) =
            Cli::try_parse_from(words).map_err(|error| error.to_string())?.command
        else {
            unreachable!()
        };
        let cpus = |request: &CpuRequest| match request {
            CpuRequest::List(list) => Ok(list.clone()),
            _ => Ok("0-3".parse().expect("a list")),
        };
        Asked::of(&options, cpus).map_err(|failure| failure.words())
    }

    fn threads(words: &str) -> Vec<(u32, u32, u64)> {
        let all = asked(words).unwrap().threads;
        all.iter().map(|thread| (thread.cpu, thread.priority, thread.interval_us)).collect()
    }

    #[test]
    fn threads_have_the_intervals_priorities_and_cpus_that_cyclictest_gives_them() {
        assert_eq!(threads(""), [(0, 0, 1000)]);
        assert_eq!(threads("-p 80 -t 2 -a 1,3 -i 200"), [(1, 80, 200), (3, 80, 700)]);
        assert_eq!(threads("-p80 -t3 -a2,3 -d0"), [(2, 80, 1000), (3, 80, 1000), (2, 80, 1000)]);
        assert_eq!(threads("-Smp 90 -h 60 -i 200"), [(0, 90, 200), (1, 90, 200), (2, 90, 200), (3, 90, 200)]);
        assert_eq!(
            threads("-a -t -q -p 3 --priospread -d 0"),
            [(0, 3, 1000), (1, 2, 1000), (2, 1, 1000), (3, 1, 1000)]
        );
    }

    #[test]
    fn a_policy_needs_no_priority_and_a_priority_no_policy() {
        let of = |words| asked(words).map(|asked| (asked.policy, asked.defaulted)).unwrap();
        assert_eq!(of(""), (Policy::Other, None));
        assert_eq!(of("-p 80"), (Policy::Fifo, None));
        assert_eq!(of("-p 0 -t 2"), (Policy::Fifo, Some(3)));
        assert_eq!(of("--policy=RR"), (Policy::Rr, Some(2)));
        assert_eq!(of("--policy=normal -p 80"), (Policy::Other, None));
    }

    #[test]
    fn it_lasts_as_long_as_the_shorter_of_time_and_loops_or_until_it_is_interrupted() {
        let of = |words| asked(words).unwrap().duration;
        assert_eq!(of("-D 1m"), Nanos::from_secs(60));
        assert_eq!(of("-D 30 -l 1000 -i 500"), Nanos::from_ms(500));
        assert_eq!(of(""), UNTIL_INTERRUPTED);
    }

    #[test]
    fn the_largest_numbers_there_are_are_cut_as_cyclictest_does_it() {
        let most = u64::MAX;
        let all = asked(&format!("-l {most} -i 1000 -b {most} -h {most}")).unwrap();
        assert_eq!(all.duration, UNTIL_INTERRUPTED);
        assert_eq!((all.break_us, all.histogram), (Some(MOST_US), Some(MOST_ROWS)));
        let plan = all.plan();
        assert_eq!(plan.scenario[0].activity.len(), 1);
    }

    #[test]
    fn documented_command_lines_of_openshift_and_osadl_are_taken_as_they_stand() {
        for words in [
            "-q -D 60 -p 95 -t 3 -a 1,2,3 -h 30 -i 1000 -m --mainaffinity 0",
            "-D 12h -p 1 -t 4 -a 1-3 -h 30 -i 1000 --quiet -m -n",
            "-l100000000 -m -Sp99 -i200 -h400 -q",
            "-m -S -p 98 -i 200 -h 400 -q -M -N --json=out.json --histfile=h.txt -D 100",
        ] {
            asked(words).unwrap_or_else(|error| panic!("{words}: {error}"));
        }
    }

    #[test]
    fn what_tactus_has_not_is_refused_by_its_name() {
        for (words, name) in [
            ("-v", "-v"),
            ("-c 1", "-c"),
            ("-r", "-r"),
            ("-s", "-s"),
            ("-x", "-x"),
            ("-A 10", "-A"),
            ("--secaligned", "--secaligned"),
            ("--smi", "--smi"),
            ("--spike=20", "--spike"),
            ("-F pipe", "-F"),
            ("--tracemark -b 100", "--tracemark"),
            ("--latency=10", "--latency"),
        ] {
            let error = asked(words).unwrap_err();
            assert!(
                error.starts_with(&format!("tactus does not support cyclictest's {name}")),
                "{words}: {error}"
            );
        }
        for words in [
            "--policy=batch",
            "-p 100",
            "-t 2 -d 18446744073709551615",
            "-t 100000",
            "-a 1-",
            "-h",
            "-D never",
            "-h 10 -H 10",
            "-i 1",
        ] {
            asked(words).unwrap_err();
        }
        asked("--latency=0 -c 0").unwrap();
    }
}
