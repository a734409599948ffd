//! Numbers of variable length, as for the counts in HdrHistogram's V2 encoding (its `ZigZagEncoding`). They are LEB128
//! of at most nine bytes, with all eight bits of the ninth; odd numbers are negative.

/// Takes a number off the front; `None` where they end within it.
#[must_use]
pub fn zigzag(bytes: &mut &[u8]) -> Option<i64> {
    let mut number = 0_u64;
    for at in 0..9 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let last = at == 8;
        let bits = if last { *byte } else { byte & 0x7f };
        number |= u64::from(bits) << (7 * at);
        if last || byte & 0x80 == 0 {
            break;
        }
    }
    let half = i64::try_from(number >> 1).ok()?;
    Some(if number & 1 == 0 { half } else { -half - 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_off_the_front_and_a_truncated_one_gives_nothing() {
        let mut bytes: &[u8] = &[&[0, 1, 2, 0x80, 0x01][..], &[0xff; 9], &[0x80]].concat();
        let mut numbers = Vec::new();
        while let Some(number) = zigzag(&mut bytes) {
            numbers.push(number);
        }
        assert_eq!(numbers, [0, -1, 1, 64, i64::MIN]);
    }
}
