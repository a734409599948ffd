//! Limits of a result, on the command line.

use std::collections::BTreeMap;
use std::str::FromStr;

use clap::Args;
use tactus_model::Nanos;
use tactus_model::duration::DurationError;
use tactus_model::plan::{Require, TailLimit};

use super::values::microseconds;

/// Limits, each for all environments or (`ENV=LIMIT`) for one; they go before those of the plan. The exit code is 1 where one
/// is exceeded, and 3 where that is not decided.
#[derive(Clone, Debug, Default, Args)]
pub struct Limits {
    /// Limit of the worst latency; a bare number is microseconds
    #[arg(long, value_name = "[ENV=]US", value_parser = time)]
    pub max: Vec<Limit<Nanos>>,
    /// Limit of the jitter: the worst latency minus the best
    #[arg(long, value_name = "[ENV=]US", value_parser = time)]
    pub jitter: Vec<Limit<Nanos>>,
    /// Limit of the 99.999th percentile
    #[arg(long = "p99.999", value_name = "[ENV=]US", value_parser = time)]
    pub p99999: Vec<Limit<Nanos>>,
    /// Limit of the 99.99th percentile
    #[arg(long = "p99.99", value_name = "[ENV=]US", value_parser = time)]
    pub p9999: Vec<Limit<Nanos>>,
    /// Limit of the 99.9th percentile
    #[arg(long = "p99.9", value_name = "[ENV=]US", value_parser = time)]
    pub p999: Vec<Limit<Nanos>>,
    /// Limit of the 99th percentile
    #[arg(long = "p99", value_name = "[ENV=]US", value_parser = time)]
    pub p99: Vec<Limit<Nanos>>,
    /// Limit that latencies exceed less than once in a time, as 200us/24h; that time may be longer than the
    /// run
    #[arg(long, value_name = "[ENV=]US/TIME", value_parser = tail)]
    pub tail: Vec<Limit<TailLimit>>,
    /// Maximum number of missed periods
    #[arg(long, value_name = "[ENV=]N", value_parser = number, allow_negative_numbers = true)]
    pub overruns: Vec<Limit<u64>>,
}

/// A limit, and the environment that it is for; none: all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit<T> {
    environment: Option<String>,
    limit: T,
}

impl Limits {
    /// What is required of each environment, by name; of those that are not named it is that of the empty name.
    pub fn by_environment(&self) -> BTreeMap<String, Require> {
        let mut all: BTreeMap<String, Require> = BTreeMap::new();
        let mut each = |limits: &[Limit<Nanos>], set: fn(&mut Require, Nanos)| {
            for one in limits {
                set(all.entry(one.environment.clone().unwrap_or_default()).or_default(), one.limit);
            }
        };
        each(&self.max, |of, limit| of.max = Some(limit));
        each(&self.jitter, |of, limit| of.jitter = Some(limit));
        each(&self.p99999, |of, limit| of.p99999 = Some(limit));
        each(&self.p9999, |of, limit| of.p9999 = Some(limit));
        each(&self.p999, |of, limit| of.p999 = Some(limit));
        each(&self.p99, |of, limit| of.p99 = Some(limit));
        for one in &self.tail {
            all.entry(one.environment.clone().unwrap_or_default()).or_default().tail = Some(one.limit);
        }
        for one in &self.overruns {
            all.entry(one.environment.clone().unwrap_or_default()).or_default().overruns = Some(one.limit);
        }
        all
    }
}

fn time(text: &str) -> Result<Limit<Nanos>, String> {
    limit(text, microseconds)
}

fn tail(text: &str) -> Result<Limit<TailLimit>, String> {
    limit(text, |limit| {
        let (max, horizon) = limit.split_once('/').ok_or("write a latency and a time, as in `200us/24h`")?;
        let horizon: Nanos = horizon.parse().map_err(|error: DurationError| error.to_string())?;
        match horizon.0 {
            0 => Err("the time must be longer than 0".into()),
            _ => Ok(TailLimit { max: microseconds(max)?, horizon }),
        }
    })
}

fn number(text: &str) -> Result<Limit<u64>, String> {
    limit(text, |number| {
        u64::from_str(number).map_err(|_| format!("`{number}` is not a whole number, 0 or more"))
    })
}

fn limit<T>(text: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Limit<T>, String> {
    let (environment, limit) = match text.split_once('=') {
        Some(("", _)) => return Err("the environment before the `=` is missing".into()),
        Some((environment, limit)) => (Some(environment.to_owned()), limit),
        None => (None, text),
    };
    Ok(Limit { environment, limit: parse(limit)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_for_all_or_for_one() {
        let limits = Limits {
            max: vec![time("40").unwrap(), time("qemu=1ms").unwrap()],
            overruns: vec![number("0").unwrap()],
            ..Limits::default()
        };
        let all = limits.by_environment();
        assert_eq!((all[""].max, all[""].overruns), (Some(Nanos::from_us(40)), Some(0)));
        assert_eq!((all["qemu"].max, all["qemu"].overruns), (Some(Nanos::from_ms(1)), None));
    }

    #[test]
    fn what_is_no_limit_is_named() {
        for text in ["", "=40us", "qemu=", "40 parsecs", "0", "-1us"] {
            assert!(time(text).is_err(), "{text}");
        }
        let limit = tail("qemu=200/24h").unwrap();
        assert_eq!(limit.environment.as_deref(), Some("qemu"));
        let (max, horizon) = (Nanos::from_us(200), Nanos::from_secs(86_400));
        assert_eq!(limit.limit, TailLimit { max, horizon });
        for text in ["", "200us", "200us/", "/24h", "200us/24", "200us/0s", "0/24h", "200us/24h/2"] {
            assert!(tail(text).is_err(), "{text}");
        }
        for text in ["", "1.5", "-1", "host=x"] {
            assert!(number(text).is_err(), "{text}");
        }
    }
}
