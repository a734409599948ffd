//! Sets of CPUs as the kernel's masks: `ff`, `00000003,ffffffff`.

use crate::cpus::{CpuSet, CpuSetError, MAX_CPU};

impl CpuSet {
    /// Reads a mask as the kernel writes it (`%*pb`): hexadecimal words of 32 bits, the highest first, with commas
    /// between them.
    ///
    /// # Errors
    /// When it is not a mask, or names a CPU above [`MAX_CPU`].
    pub fn from_mask(text: &str) -> Result<Self, CpuSetError> {
        let text = text.trim();
        let text = text.strip_prefix("0x").unwrap_or(text);
        let mut cpus = Vec::new();
        let mut base = 0u64;
        for word in text.rsplit(',') {
            let plain = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_hexdigit());
            // A mask without commas may be longer than a word: TuneD writes them so.
            if !plain || (word.len() > 8 && text.contains(',')) {
                return Err(CpuSetError::NotACpu { text: short(text), part: short(word) });
            }
            for digit in word.bytes().rev() {
                let bits = char::from(digit).to_digit(16).unwrap_or(0);
                for bit in (0..4).filter(|bit| bits >> bit & 1 == 1) {
                    let cpu = base + bit;
                    match u32::try_from(cpu) {
                        Ok(cpu) if cpu <= MAX_CPU => cpus.push(cpu),
                        _ => return Err(CpuSetError::TooHigh(cpu.to_string(), MAX_CPU)),
                    }
                }
                base += 4;
            }
            base = base.next_multiple_of(32);
        }
        Ok(cpus.into_iter().collect())
    }

    /// The mask as the kernel writes it for a machine of `width` CPUs, and as it reads it. The empty set is `0` in the
    /// same number of digits.
    #[must_use]
    pub fn mask(&self, width: u32) -> String {
        let width = width.max(self.last().map_or(1, |last| last + 1));
        let words = width.div_ceil(32);
        let mut text = String::new();
        for word in (0..words).rev() {
            let value =
                (0..32).filter(|bit| self.contains(word * 32 + bit)).fold(0u32, |v, bit| v | 1 << bit);
            if word + 1 == words {
                let digits = (width - word * 32).div_ceil(4) as usize;
                text.push_str(&format!("{value:0digits$x}"));
            } else {
                text.push_str(&format!(",{value:08x}"));
            }
        }
        text
    }
}

/// A hostile text is not repeated in whole.
fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn masks_are_read_as_the_kernel_writes_them() {
        for (mask, list) in [
            ("3\n", "0,1"),
            ("ff", "0-7"),
            ("0", ""),
            ("00000000", ""),
            ("ffff,ffffffff", "0-47"),
            ("00000003,00000000", "32,33"),
            ("ffffffffffff", "0-47"),
            ("0xc", "2,3"),
        ] {
            assert_eq!(CpuSet::from_mask(mask).unwrap().to_string(), list, "{mask}");
        }
    }

    #[test]
    fn masks_are_written_as_wide_as_the_machine() {
        let set: CpuSet = "0,33".parse().unwrap();
        assert_eq!(set.mask(48), "0002,00000001");
        assert_eq!(set.mask(64), "00000002,00000001");
        assert_eq!(CpuSet::one(1).mask(4), "2");
        assert_eq!(CpuSet::default().mask(8), "00");
        assert_eq!(CpuSet::one(40).mask(8), "100,00000000", "never too narrow for the set");
    }

    #[test]
    fn what_is_no_mask_is_an_error() {
        for text in ["", "0-3", "xyz", "1,,2", "123456789,1", ",", "-1"] {
            assert!(CpuSet::from_mask(text).is_err(), "{text}");
        }
        assert!(CpuSet::from_mask(&"f".repeat(4096)).is_err(), "more CPUs than Linux knows");
    }

    proptest! {
        #[test]
        fn a_mask_is_read_back_as_it_was_written(cpus in proptest::collection::btree_set(0u32..=MAX_CPU, 0..80), width in 0u32..300) {
            let set: CpuSet = cpus.into_iter().collect();
            prop_assert_eq!(CpuSet::from_mask(&set.mask(width)).unwrap(), set);
        }

        #[test]
        fn no_text_makes_the_mask_reader_panic(text in "[0-9a-fx,é ]{0,60}") {
            let _ = CpuSet::from_mask(&text);
        }
    }
}
