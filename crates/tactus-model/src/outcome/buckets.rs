//! The buckets of the one histogram layout, by number, and counts of them in as little memory as they need.

use hdrhistogram::Histogram;

use crate::latency::{HIGHEST_NS, Sparse, SparseError};

/// Each value below this has its own bucket. Above it, half of this number of buckets share an octave: enough for three
/// significant digits.
const FINE: u64 = 2048;
/// Bits of `FINE / 2`.
const HALF_BITS: u32 = 10;

/// The number of the bucket that counts a value in ns. Values that are too long count in the last one.
#[must_use]
pub fn bucket_of(value_ns: u64) -> usize {
    let value = value_ns.min(HIGHEST_NS);
    let octave = (u64::BITS - value.leading_zeros()).saturating_sub(HALF_BITS + 1);
    let number = (u64::from(octave) << HALF_BITS) + (value >> octave);
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// How many buckets there are: up to that of [`HIGHEST_NS`].
pub const BUCKETS: usize = 33_421;

/// The largest value of a bucket, in ns.
#[must_use]
pub fn value_of(bucket: usize) -> u64 {
    let bucket = u64::try_from(bucket).unwrap_or(u64::MAX);
    if bucket < FINE {
        return bucket;
    }
    let octave = ((bucket >> HALF_BITS) - 1).min(63);
    let lowest =
        (bucket - (octave << HALF_BITS)).checked_shl(u32::try_from(octave).unwrap_or(63)).unwrap_or(0);
    lowest.saturating_add((1 << octave) - 1)
}

/// Counts that histograms are added up in; they take memory up to their largest value only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    by_bucket: Vec<u64>,
}

impl Counts {
    /// Adds to one bucket. A bucket that the layout does not have is the last one.
    pub fn add(&mut self, bucket: usize, count: u64) {
        let bucket = bucket.min(BUCKETS - 1);
        if self.by_bucket.len() <= bucket {
            self.by_bucket.resize(bucket + 1, 0);
        }
        let so_far = &mut self.by_bucket[bucket];
        *so_far = so_far.saturating_add(count);
    }

    /// Adds counts in the form of a message.
    ///
    /// # Errors
    /// When they are malformed; nothing is added then.
    pub fn add_sparse(&mut self, counts: &Sparse) -> Result<(), SparseError> {
        for (value, count) in counts.buckets()? {
            self.add(bucket_of(value), count);
        }
        Ok(())
    }

    /// Adds packed counts.
    pub fn add_packed(&mut self, packed: &Packed) {
        for (bucket, count) in packed.numbered() {
            self.add(bucket, count);
        }
    }

    /// How many buckets it has memory for.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_bucket.len()
    }

    /// Whether nothing was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_bucket.is_empty()
    }

    /// Empties it, keeping its memory.
    pub fn clear(&mut self) {
        self.by_bucket.clear();
    }

    /// The same in little memory.
    #[must_use]
    pub fn pack(&self) -> Packed {
        let mut bytes = Vec::new();
        let mut next = 0;
        for (bucket, count) in self.by_bucket.iter().enumerate().filter(|(_, count)| **count > 0) {
            push(&mut bytes, u64::try_from(bucket - next).unwrap_or(u64::MAX));
            push(&mut bytes, *count);
            next = bucket + 1;
        }
        Packed(bytes.into())
    }
}

/// Counts of a histogram as they are kept: for each bucket that has any, how many empty ones are before it, and its
/// count, both in LEB128. About three bytes each, where a histogram takes 270 KB whatever it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed(Box<[u8]>);

impl Packed {
    /// Largest value in ns and count of each bucket that has any, in rising order.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.numbered().map(|(bucket, count)| (value_of(bucket), count))
    }

    /// Number and count of each bucket that has any, in rising order.
    fn numbered(&self) -> impl Iterator<Item = (usize, u64)> {
        let (mut rest, mut next) = (&*self.0, 0_usize);
        std::iter::from_fn(move || {
            let skipped = usize::try_from(pull(&mut rest)?).ok()?;
            let count = pull(&mut rest)?;
            let bucket = next.checked_add(skipped)?;
            next = bucket + 1;
            Some((bucket, count))
        })
    }

    /// Adds the counts to `histogram`.
    pub fn add_to(&self, histogram: &mut Histogram<u64>) {
        for (value, count) in self.buckets() {
            histogram.saturating_record_n(value, count);
        }
    }

    /// Memory that it takes, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// How many values were counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.numbered().fold(0, |sum, (_, count)| sum.saturating_add(count))
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(u8::try_from(number & 0x7f).unwrap_or(0) | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap_or(0));
}

fn pull(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::latency::histogram;

    #[test]
    fn buckets_are_those_of_the_histograms() {
        let all = histogram();
        let values: Vec<u64> = all.iter_all().map(|bucket| bucket.value_iterated_to()).collect();
        for (number, value) in values.iter().take(BUCKETS).enumerate() {
            assert_eq!((value_of(number), bucket_of((*value).min(HIGHEST_NS))), (*value, number));
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    proptest! {
        #[test]
        fn packed_counts_are_what_the_histogram_counted(values in proptest::collection::vec(0..HIGHEST_NS, 0..300)) {
            let mut wanted = histogram();
            let mut counts = Counts::default();
            for value in &values {
                wanted.saturating_record(*value);
                counts.add(bucket_of(*value), 1);
            }
            let mut found = histogram();
            let packed = counts.pack();
            packed.add_to(&mut found);
            prop_assert_eq!(&wanted, &found);
            prop_assert_eq!(packed.total(), wanted.len());
            let mut sparse = Counts::default();
            sparse.add_sparse(&Sparse::of(&wanted)).unwrap();
            prop_assert_eq!(sparse.pack(), packed);
        }
    }
}
