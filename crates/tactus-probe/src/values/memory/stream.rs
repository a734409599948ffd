//! Reading, writing and copying, by loops of plain loads and stores: none of them is a call of memset or memcpy, whose
//! ways differ from library to library.

use std::hint::black_box;

/// Words of a line.
const WORDS: usize = 8;

/// Adds up all words.
pub fn read(words: &[u64]) -> u64 {
    let mut sum = 0_u64;
    for [a, b, c, d, e, f, g, h] in words.as_chunks::<WORDS>().0 {
        let (one, two) = (a.wrapping_add(*b).wrapping_add(*c), d.wrapping_add(*e).wrapping_add(*f));
        sum = sum.wrapping_add(one).wrapping_add(two).wrapping_add(g.wrapping_add(*h));
    }
    sum
}

/// Writes one value into all words.
pub fn write(words: &mut [u64], value: u64) {
    // The value must be unknown to the compiler: otherwise the loop would become memset.
    let value = black_box(value);
    for line in words.as_chunks_mut::<WORDS>().0 {
        *line = [value; WORDS];
    }
    black_box(words);
}

/// Copies one array to another.
pub fn copy(to: &mut [u64], from: &[u64]) {
    // 0, which must not be known: the loop would become memcpy.
    let n = black_box(0);
    for (to, from) in to.as_chunks_mut::<WORDS>().0.iter_mut().zip(from.as_chunks::<WORDS>().0) {
        let [a, b, c, d, e, f, g, h] = *from;
        *to = [a | n, b | n, c | n, d | n, e | n, f | n, g | n, h | n];
    }
    black_box(to);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_what_is_copied_is_the_same() {
        let mut words: Vec<u64> = (0..64).collect();
        assert_eq!(read(&words), (0..64_u64).sum::<u64>());
        let mut copied = vec![0; 64];
        copy(&mut copied, &words);
        assert_eq!(copied, words);
        write(&mut words, 0x0102_0304_0506_0708);
        assert!(words.iter().all(|word| *word == 0x0102_0304_0506_0708));
        assert_eq!(read(&words), 0x0102_0304_0506_0708_u64.wrapping_mul(64));
    }

    #[test]
    fn every_word_counts_in_what_is_read() {
        for one in 0..64 {
            let mut words = vec![0; 64];
            words[one] = u64::MAX;
            assert_eq!(read(&words), u64::MAX, "{one}");
        }
    }
}
