//! From values to pixels, and where an axis has its ticks.

use tactus_model::number::float;

/// An axis: values from `low` to `high` on pixels from `from` to `to`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    logarithmic: bool,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

/// A place on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Its value, in the unit of the axis.
    pub value: f64,
    /// Its label; empty if there is no room.
    pub label: String,
}

impl Scale {
    /// An axis whose values are `low` to `high`; an empty range is widened.
    pub fn new(logarithmic: bool, low: f64, high: f64, from: f64, to: f64) -> Self {
        let low = if logarithmic { low.max(1e-3) } else { low };
        let high = if high > low {
            high
        } else if logarithmic {
            low * 10.0
        } else {
            low + 1.0
        };
        Self { logarithmic, low, high, from, to }
    }

    /// Its lower end.
    pub const fn low(&self) -> f64 {
        self.low
    }

    /// Its upper end.
    pub const fn high(&self) -> f64 {
        self.high
    }

    /// Where a value lies; values outside lie on the edge.
    pub fn px(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let part = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + part * (self.to - self.from)
    }

    /// About `most` ticks with numbers that people like.
    pub fn ticks(&self, most: u32, label: impl Fn(f64) -> String) -> Vec<Tick> {
        let values = if self.logarithmic { self.decades(most) } else { self.steps(most, &[]) };
        values.into_iter().map(|value| Tick { value, label: label(value) }).collect()
    }

    /// Ticks of an axis of time, in its own unit.
    pub fn time_ticks(&self, most: u32, steps: &[f64], label: impl Fn(f64) -> String) -> Vec<Tick> {
        self.steps(most, steps).into_iter().map(|value| Tick { value, label: label(value) }).collect()
    }

    fn steps(&self, most: u32, likes: &[f64]) -> Vec<f64> {
        let least = (self.high - self.low) / f64::from(most.max(1));
        let liked = likes.iter().copied().find(|step| *step >= least);
        let step = liked.unwrap_or_else(|| {
            let decade = 10f64.powf(least.log10().floor());
            [1.0, 2.0, 5.0, 10.0]
                .iter()
                .map(|step| step * decade)
                .find(|step| *step >= least)
                .unwrap_or(decade * 10.0)
        });
        let mut ticks = Vec::new();
        let mut at = (self.low / step).ceil() * step;
        while at <= self.high * (1.0 + 1e-9) && ticks.len() < 64 {
            ticks.push(at);
            at += step;
        }
        ticks
    }

    fn decades(&self, most: u32) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor(), self.high.log10().ceil());
        let within = |value: &f64| *value >= self.low * 0.999 && *value <= self.high * 1.001;
        let at = |n: u32| 10f64.powf(first + f64::from(n));
        let decades: Vec<f64> =
            (0..64).map(at).take_while(|v| v.log10() <= last + 0.5).filter(within).collect();
        let fine = |likes: &[f64]| -> Vec<f64> {
            let all = (0..64).map(at).take_while(|v| v.log10() <= last + 0.5);
            all.flat_map(|decade| likes.iter().map(move |like| like * decade)).filter(within).collect()
        };
        // Fine ticks where there is room for them, whole decades, or every second or third one.
        for likes in
            [&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0][..], &[1.0, 2.0, 5.0][..], &[1.0, 3.0][..]]
        {
            let ticks = fine(likes);
            if ticks.len() <= usize::try_from(most).unwrap_or(8) && ticks.len() > 1 {
                return ticks;
            }
        }
        let every = decades.len().div_ceil(usize::try_from(most.max(1)).unwrap_or(8)).max(1);
        decades.into_iter().step_by(every).collect()
    }
}

/// A latency in us on an axis.
pub fn us_label(us: f64) -> String {
    if us >= 999_999.5 {
        return format!("{} s", plain(us / 1e6));
    }
    if us >= 9_999.5 {
        return format!("{} ms", plain(us / 1e3));
    }
    plain(us)
}

/// A count on an axis.
pub fn count_label(count: f64) -> String {
    match count {
        c if c >= 1e9 => format!("{}G", plain(c / 1e9)),
        c if c >= 1e6 => format!("{}M", plain(c / 1e6)),
        c if c >= 1e3 => format!("{}k", plain(c / 1e3)),
        c => plain(c),
    }
}

/// A number without needless digits.
pub fn plain(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// Unit of an axis of time that is `total_ns` long: its name, its length in ns and its liked steps.
pub fn time_unit(total_ns: u64) -> (&'static str, f64, &'static [f64]) {
    if total_ns >= 3 * 3_600_000_000_000 {
        ("h", 3.6e12, &[1.0, 2.0, 3.0, 4.0, 6.0, 12.0, 24.0, 48.0])
    } else if total_ns >= 180_000_000_000 {
        ("min", 6e10, &[1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0])
    } else {
        ("s", 1e9, &[0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0])
    }
}

/// ns as us.
pub fn us(ns: u64) -> f64 {
    float(ns) / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(logarithmic: bool, low: f64, high: f64) -> Vec<String> {
        Scale::new(logarithmic, low, high, 0.0, 100.0)
            .ticks(8, us_label)
            .into_iter()
            .map(|tick| tick.label)
            .collect()
    }

    #[test]
    fn ticks_are_numbers_that_people_like() {
        assert_eq!(labels(false, 0.0, 23.4), ["0", "5", "10", "15", "20"]);
        assert_eq!(labels(true, 0.8, 90.0), ["1", "2", "5", "10", "20", "50"]);
        assert_eq!(labels(true, 1.0, 50_000.0), ["1", "10", "100", "1000", "10 ms"]);
        assert_eq!(labels(false, 0.0, 0.002), ["0", "0.0005", "0.001", "0.0015", "0.002"]);
    }

    #[test]
    fn an_empty_or_absurd_range_still_has_an_axis() {
        for (logarithmic, low, high) in
            [(false, 5.0, 5.0), (true, 0.0, 0.0), (true, 5.0, 5.0), (false, 0.0, 1e15)]
        {
            let scale = Scale::new(logarithmic, low, high, 10.0, 20.0);
            assert!(scale.px(low).is_finite() && scale.px(high) <= 20.0);
            assert!(scale.ticks(8, us_label).len() < 65);
        }
    }

    #[test]
    fn values_outside_stay_on_the_edge() {
        let scale = Scale::new(true, 1.0, 100.0, 0.0, 50.0);
        assert_eq!([0.0, 1.0, 10.0, 1e9].map(|v| scale.px(v)), [0.0, 0.0, 25.0, 50.0]);
    }
}
