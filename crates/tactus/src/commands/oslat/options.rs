//! Makes a plan of oslat's options. Pure.

use std::collections::BTreeMap;

use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::Spin;
use tactus_model::control::ControlBy;
use tactus_model::cpus::CpuRequest;
use tactus_model::plan::{Activity, Environment, Plan, Scenario};
use tactus_model::scheduling::Policy;
use tactus_model::{CpuSet, Nanos};

use crate::cli::Oslat;
use crate::exit::Failure;

/// Refuses what tactus has not.
///
/// # Errors
/// By its name.
pub fn refuse(options: &Oslat) -> Result<(), Failure> {
    let (what, hint) = match options.workload.as_str() {
        "no" if !options.unneeded.bias => return Ok(()),
        "no" => ("-B".to_owned(), "rows begin at 1 us: leave it out, or omit those of zeros with -z"),
        other => (
            format!("-w {other}"),
            "leave it out; with `tactus measure spin --load cache` other threads use the caches",
        ),
    };
    Err(Failure::say(format!("tactus does not support oslat's {what}"), hint))
}

/// The plan of the options, on these CPUs, for this machine.
pub fn plan(options: &Oslat, cpus: CpuSet) -> Plan {
    let measure = Spin { busy: Some(100), break_at: options.trace_threshold.map(limit) };
    let activity = Activity {
        measure: Some(Measure::Spin(measure)),
        environment: "host".into(),
        cpus: Some(CpuRequest::List(cpus)),
        priority: options.rtprio,
        policy: Some(if options.rtprio.is_some() { Policy::Fifo } else { Policy::Other }),
        ..Activity::default()
    };
    let scenario = Scenario {
        name: Some("oslat".into()),
        activity: vec![activity],
        duration: Some(options.duration),
        control: Some(ControlBy::Nothing),
        ..Scenario::default()
    };
    let host = Environment { kind: "host".into(), ..Environment::default() };
    Plan {
        name: "oslat".into(),
        environment: BTreeMap::from([("host".to_owned(), host)]),
        scenario: vec![scenario],
        ..Plan::default()
    }
}

/// The longest gap that does not reach a threshold in us, which counts what is below 1 us as 1 us.
const fn limit(threshold_us: u64) -> Nanos {
    Nanos((threshold_us - 1).saturating_mul(1_000).saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn options(words: &str) -> Result<Oslat, String> {
        let words = ["tactus", "oslat"].into_iter().chain(words.split_whitespace());
        let Command::Oslat(options) = Cli::try_parse_from(words).map_err(|error| error.to_string())?.command
        else {
            unreachable!()
        };
        refuse(&options).map_err(|failure| failure.words())?;
        Ok(options)
    }

    #[test]
    fn documented_command_lines_of_openshift_are_taken_as_they_stand() {
        for (words, seconds, priority) in [
            ("--duration 600 --rtprio 1 --cpu-list 4-5 --cpu-main-thread 2", 600, Some(1)),
            ("-c 1,2 -f 1 -D 20m -C 0 -m 4K -b 32 -s -z -q", 1_200, Some(1)),
            ("-D 2H", 7_200, None),
            ("", 1, None),
        ] {
            let options = options(words).unwrap_or_else(|error| panic!("{words}: {error}"));
            let plan = plan(&options, "4-5".parse().unwrap());
            assert_eq!(plan.scenario[0].duration, Some(Nanos::from_secs(seconds)), "{words}");
            let activity = &plan.scenario[0].activity[0];
            assert_eq!(activity.priority, priority);
            assert_eq!(activity.policy == Some(Policy::Fifo), priority.is_some());
        }
    }

    #[test]
    fn a_gap_that_reaches_the_threshold_is_the_first_that_is_counted_there() {
        assert_eq!(limit(5), Nanos(3_999), "4000 ns are counted as 5 us");
        assert_eq!(limit(1), Nanos(0));
        assert_eq!(limit(u64::MAX), Nanos(u64::MAX - 1));
    }

    #[test]
    fn what_tactus_has_not_and_what_oslat_refuses_is_refused() {
        for (words, name) in [("-B", "-B"), ("-w memmove", "-w memmove")] {
            let error = options(words).unwrap_err();
            assert!(
                error.starts_with(&format!("tactus does not support oslat's {name}")),
                "{words}: {error}"
            );
        }
        for words in ["-b 3", "-b 1025", "-f 0", "-f 100", "-D 0", "-D never", "-T 0", "-c"] {
            options(words).unwrap_err();
        }
    }
}
