//! Values on the command line.

use tactus_model::Nanos;

pub fn duration(text: &str) -> Result<Nanos, String> {
    let duration: Nanos =
        text.parse().map_err(|error: tactus_model::duration::DurationError| error.to_string())?;
    if duration.0 == 0 { Err("the duration must be longer than 0".into()) } else { Ok(duration) }
}

/// How long a slice of a measurement is.
pub fn slice(text: &str) -> Result<Nanos, String> {
    let slice = duration(text)?;
    if slice < Nanos::from_secs(1) {
        return Err("a slice this short is mostly start and end: use 1s or more; 10m is usual".into());
    }
    Ok(slice)
}

/// As cyclictest reads `-D`: a bare number is seconds.
pub fn seconds(text: &str) -> Result<Nanos, String> {
    bare(text, "s").map_or_else(|| duration(text), |text| duration(&text))
}

/// As cyclictest reads `-i`: a bare number is microseconds.
pub fn microseconds(text: &str) -> Result<Nanos, String> {
    bare(text, "us").map_or_else(|| duration(text), |text| duration(&text))
}

/// The shortest and the longest interval that is measured at.
const INTERVAL: std::ops::RangeInclusive<u64> = 10_000..=60_000_000_000;

/// A time between two wake-ups, as cyclictest reads `-i`.
pub fn interval(text: &str) -> Result<Nanos, String> {
    let interval = microseconds(text)?;
    if INTERVAL.contains(&interval.0) { Ok(interval) } else { Err("use 10us to 60s".into()) }
}

fn bare(text: &str, unit: &str) -> Option<String> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| format!("{text}{unit}")).filter(|_| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_numbers_are_read_as_cyclictest_reads_them() {
        assert_eq!(seconds("10"), Ok(Nanos::from_secs(10)));
        assert_eq!(seconds("5m"), Ok(Nanos::from_secs(300)));
        assert_eq!(microseconds("200"), Ok(Nanos::from_us(200)));
        assert_eq!(microseconds("1ms"), Ok(Nanos::from_ms(1)));
        assert_eq!(interval("1000"), Ok(Nanos::from_ms(1)));
        assert!(interval("9").is_err() && interval("61s").is_err() && interval("0").is_err());
        assert!(duration("10").is_err());
        assert!(seconds("0").is_err());
        assert!(seconds("").is_err());
    }
}
