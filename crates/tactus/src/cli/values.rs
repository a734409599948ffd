//! Values on the command line.

use tactus_model::Nanos;

pub fn duration(text: &str) -> Result<Nanos, String> {
    let duration: Nanos =
        text.parse().map_err(|error: tactus_model::duration::DurationError| error.to_string())?;
    if duration.0 == 0 { Err("nothing can be measured in no time".into()) } else { Ok(duration) }
}

/// How long a slice of a measurement is.
pub fn slice(text: &str) -> Result<Nanos, String> {
    let slice = duration(text)?;
    if slice < Nanos::from_secs(1) {
        return Err("so short a slice is nearly all beginning and end: use 1s or more; 10m is usual".into());
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
        assert!(duration("10").is_err());
        assert!(seconds("0").is_err());
        assert!(seconds("").is_err());
    }
}
