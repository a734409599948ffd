//! Numbers that are the same every time. Also used by the example that simulates a fleet.

/// xorshift64*.
pub struct Random(pub u64);

impl Random {
    /// Any number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// One below `most`.
    pub fn below(&mut self, most: u64) -> u64 {
        (self.next() >> 16) % most
    }
}
