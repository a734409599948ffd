//! Numbers for simulations.

use tactus_model::number::float;
use tactus_model::random::SplitMix64;

/// Draws from distributions.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// Begins with a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// Uniform, above 0 and below 1.
    pub fn unit(&mut self) -> f64 {
        (float(self.0.draw() >> 12) + 0.5) / float(1 << 52)
    }

    /// Normal, with mean 0 and variance 1 (G. E. P. Box and M. E. Muller, 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}
