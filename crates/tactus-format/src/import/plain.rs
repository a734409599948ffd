//! Reads the two kinds of lines that fill a long file of cyclictest, exactly as they are printed. Any other
//! line, such as one with a terminal's sequences in it, is `None` here; [`crate::lines`] reads it with more
//! patience.

use crate::lines::MOST_THREADS;

/// Digits of a number that certainly fits.
const MOST_DIGITS: usize = 18;

/// `       0:       3:      52`: thread, number and value of a sample.
pub(super) fn sample(line: &[u8]) -> Option<(u32, u64, u64)> {
    let mut rest = line;
    let thread = right_aligned(&mut rest)?;
    rest = rest.strip_prefix(b":")?;
    let cycle = right_aligned(&mut rest)?;
    rest = rest.strip_prefix(b":")?;
    let value = right_aligned(&mut rest)?;
    let thread = u32::try_from(thread).ok().filter(|thread| *thread < MOST_THREADS)?;
    rest.is_empty().then_some((thread, cycle, value))
}

/// `000013 000005\t000002`: the value of a row, and how often each thread had it.
pub(super) fn row(line: &[u8], counts: &mut Vec<u64>) -> Option<u64> {
    counts.clear();
    let mut rest = line;
    let value = zero_filled(&mut rest)?;
    while let [b' ' | b'\t', behind @ ..] = rest {
        rest = behind;
        counts.push(zero_filled(&mut rest)?);
    }
    let threads = 1..=MOST_THREADS as usize + 1;
    (rest.is_empty() && threads.contains(&counts.len())).then_some(value)
}

/// A number in a field of eight characters or more.
fn right_aligned(rest: &mut &[u8]) -> Option<u64> {
    let blanks = rest.iter().take_while(|byte| **byte == b' ').count();
    let (number, digits) = number(&rest[blanks..]);
    *rest = &rest[blanks + digits..];
    (blanks + digits >= 8 && (1..=MOST_DIGITS).contains(&digits)).then_some(number)
}

/// A number of six digits or more.
fn zero_filled(rest: &mut &[u8]) -> Option<u64> {
    let (number, digits) = number(rest);
    *rest = &rest[digits..];
    (6..=MOST_DIGITS).contains(&digits).then_some(number)
}

/// The number that stands first, and how many digits it has: of more than [`MOST_DIGITS`] it is another one.
fn number(bytes: &[u8]) -> (u64, usize) {
    let (mut number, mut digits) = (0_u64, 0);
    for byte in bytes {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        number = number.wrapping_mul(10).wrapping_add(digit.into());
        digits += 1;
    }
    (number, digits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lines::{Format, Reading, read};

    /// The result of the patient reader for the same line.
    fn patient(line: &str) -> Option<Reading> {
        read(Format::Cyclictest, line)
    }

    fn quick(line: &str) -> Option<Reading> {
        let mut counts = Vec::new();
        let sample = sample(line.as_bytes());
        let sample = sample.map(|(thread, cycle, value)| Reading::Sample {
            thread,
            cycle: Some(cycle),
            value,
            smi: None,
        });
        sample.or_else(|| row(line.as_bytes(), &mut counts).map(|value| Reading::Bucket(value, counts)))
    }

    #[test]
    fn what_cyclictest_prints_is_read_at_once() {
        for line in [
            "       0:       3:      52",
            "     511:12345678:123456789",
            "000013 000005\t000002",
            "1234567 000000",
        ] {
            assert!(quick(line).is_some(), "{line}");
        }
        for line in [
            "",
            "0:3:52",
            "       0:       3:      52x",
            "     512:       3:      52",
            "000013",
            "00013 000005",
            "000013 \t000005",
        ] {
            assert_eq!(quick(line), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_read_at_once_the_patient_reader_reads_alike(line in "[ 0-9]{0,9}[: \t][ 0-9]{0,20}[: \t\r]?[ 0-9]{0,9}[x]?") {
            if let Some(reading) = quick(&line) {
                prop_assert_eq!(Some(reading), patient(&line));
            }
        }

        #[test]
        fn samples_and_rows_of_any_size_are_read_alike(thread in 0u64..600, cycle in any::<u32>(), value in any::<u64>(), counts in proptest::collection::vec(any::<u32>(), 1..5)) {
            let line = format!("{thread:8}:{cycle:8}:{value:8}");
            prop_assert!(quick(&line).is_none_or(|reading| Some(reading) == patient(&line)));
            let counts: Vec<String> = counts.iter().map(|count| format!("{count:06}")).collect();
            let line = format!("{value:06} {}", counts.join("\t"));
            prop_assert!(quick(&line).is_none_or(|reading| Some(reading) == patient(&line)));
        }
    }
}
