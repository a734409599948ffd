//! How much worse something may be.

use std::str::FromStr;

use crate::row::Quantity;

/// A latency that grows by less than this, in ns, is no regression, whatever the ratio.
pub const FLOOR_NS: u64 = 1_000;

/// How much worse each quantity may be, as a part of its base: 0.1 is 10 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margins {
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p999: f64,
    /// The maximum.
    pub maximum: f64,
    /// Items of measurements that yield values.
    pub values: f64,
}

impl Default for Margins {
    fn default() -> Self {
        Self { p50: 0.1, p99: 0.1, p999: 0.25, maximum: 0.5, values: 0.1 }
    }
}

impl Margins {
    /// The margin of a latency.
    #[must_use]
    pub const fn of(&self, quantity: Quantity) -> f64 {
        match quantity {
            Quantity::P50 => self.p50,
            Quantity::P99 => self.p99,
            Quantity::P999 => self.p999,
            Quantity::Maximum => self.maximum,
        }
    }

    /// These margins, with one changed: `p99=15%`, `maximum=100%`, `values=5%`.
    ///
    /// # Errors
    /// When the name is unknown, or the percentage is not between 1 and 1000.
    pub fn with(mut self, written: &str) -> Result<Self, MarginError> {
        let error = || MarginError(written.to_owned());
        let (name, percent) = written.split_once('=').ok_or_else(error)?;
        let number = percent.trim().trim_end_matches('%').trim_end();
        let percent = f64::from_str(number).map_err(|_| error())?;
        let place = match name.trim() {
            "p50" => &mut self.p50,
            "p99" => &mut self.p99,
            "p99.9" | "p999" => &mut self.p999,
            "max" | "maximum" => &mut self.maximum,
            "values" => &mut self.values,
            _ => return Err(error()),
        };
        if !(1.0..=1000.0).contains(&percent) {
            return Err(error());
        }
        *place = percent / 100.0;
        Ok(self)
    }
}

/// A margin that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a margin", .0.escape_debug())]
pub struct MarginError(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_is_read_as_it_is_written() {
        let margins = Margins::default().with("p99=15%").and_then(|all| all.with("max = 100")).unwrap();
        assert!((margins.p99 - 0.15).abs() < 1e-12 && (margins.maximum - 1.0).abs() < 1e-12);
        assert!((margins.of(Quantity::P999) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn what_is_no_margin_is_named() {
        for wrong in ["", "p99", "p98=10%", "p99=", "p99=ten", "p99=0%", "p99=-5%", "p99=nan", "p99=1e9%"] {
            let error = Margins::default().with(wrong).unwrap_err();
            assert!(error.to_string().contains("is not a margin"), "{wrong}");
        }
    }
}
