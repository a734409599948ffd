//! Numbers that a seed decides: the same on every machine and in every version of a library.

/// `SplitMix64` (G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014), whose
/// every bit is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitMix64 {
    seed: u64,
    drawn: u64,
}

impl SplitMix64 {
    /// The step of its sequence, and the factors of its two mixing steps.
    pub const FACTORS: [u64; 3] = [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];

    /// Begins with a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed, drawn: 0 }
    }

    /// The number at a place of a seed's sequence, which begins at 1.
    #[must_use]
    pub const fn at(seed: u64, place: u64) -> u64 {
        let [step, first, second] = Self::FACTORS;
        let mut bits = seed.wrapping_add(place.wrapping_mul(step));
        bits = (bits ^ (bits >> 30)).wrapping_mul(first);
        bits = (bits ^ (bits >> 27)).wrapping_mul(second);
        bits ^ (bits >> 31)
    }

    /// The next number.
    pub const fn draw(&mut self) -> u64 {
        self.drawn = self.drawn.wrapping_add(1);
        Self::at(self.seed, self.drawn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // Of the reference implementation (S. Vigna, splitmix64.c) with the seed 1234567.
        let mut random = SplitMix64::new(1_234_567);
        let drawn = [random.draw(), random.draw(), random.draw()];
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
        assert_eq!(SplitMix64::at(1_234_567, 3), drawn[2]);
    }
}
