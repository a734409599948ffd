//! Unpacks gzip (RFC 1952, RFC 1951): only for /proc/config.gz. A crate for it would be a tenth of
//! the probe.

/// The lengths of the codes that code the lengths come in this order (RFC 1951, 3.2.7).
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
const LONGEST_CODE: usize = 15;

/// The unpacked bytes; `None` when they are damaged, or more than `limit`.
pub fn gunzip(bytes: &[u8], limit: usize) -> Option<Vec<u8>> {
    let [0x1f, 0x8b, 8, flags, _, _, _, _, _, _, rest @ ..] = bytes else { return None };
    let mut rest = rest;
    if flags & 4 != 0 {
        let (length, more) = rest.split_first_chunk()?;
        rest = more.get(usize::from(u16::from_le_bytes(*length))..)?;
    }
    // A name, a comment.
    for bit in [8, 16] {
        if flags & bit != 0 {
            let end = rest.iter().position(|byte| *byte == 0)?;
            rest = &rest[end + 1..];
        }
    }
    if flags & 2 != 0 {
        rest = rest.get(2..)?;
    }
    let mut bits = Bits { bytes: rest, held: 0, count: 0 };
    let mut out = Vec::new();
    loop {
        let last = bits.take(1)? == 1;
        match bits.take(2)? {
            0 => stored(&mut bits, &mut out, limit)?,
            1 => {
                let mut lengths = [8; 288];
                lengths[144..256].fill(9);
                lengths[256..280].fill(7);
                block(&mut bits, &mut out, limit, &Code::new(&lengths)?, &Code::new(&[5; 30])?)?;
            }
            2 => {
                let (literals, distances) = codes(&mut bits)?;
                block(&mut bits, &mut out, limit, &literals, &distances)?;
            }
            _ => return None,
        }
        if last {
            return Some(out);
        }
    }
}

struct Bits<'a> {
    bytes: &'a [u8],
    held: u32,
    count: u32,
}

impl Bits<'_> {
    /// The next bits, at most 16, the first the lowest.
    fn take(&mut self, count: u32) -> Option<usize> {
        while self.count < count {
            let (byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            self.held |= u32::from(*byte) << self.count;
            self.count += 8;
        }
        let value = self.held & ((1 << count) - 1);
        self.held >>= count;
        self.count -= count;
        usize::try_from(value).ok()
    }
}

/// A canonical Huffman code: how many codes there are of each length, and their symbols in order.
struct Code {
    counts: [usize; LONGEST_CODE + 1],
    symbols: Vec<usize>,
}

impl Code {
    /// `None` when there are more codes than bits have room for.
    fn new(lengths: &[usize]) -> Option<Self> {
        let mut counts = [0; LONGEST_CODE + 1];
        lengths.iter().for_each(|length| counts[*length] += 1);
        let mut room = 1usize;
        for count in &counts[1..] {
            room = (room * 2).checked_sub(*count)?;
        }
        let of_length = |length| (0..lengths.len()).filter(move |symbol| lengths[*symbol] == length);
        Some(Self { counts, symbols: (1..=LONGEST_CODE).flat_map(of_length).collect() })
    }

    fn next(&self, bits: &mut Bits) -> Option<usize> {
        let (mut code, mut first, mut index) = (0, 0, 0);
        for count in &self.counts[1..] {
            code |= bits.take(1)?;
            if code < first + count {
                return self.symbols.get(index + code - first).copied();
            }
            index += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        None
    }
}

fn stored(bits: &mut Bits, out: &mut Vec<u8>, limit: usize) -> Option<()> {
    // Up to the next whole byte; `take` never holds one more than it needs.
    (bits.held, bits.count) = (0, 0);
    let (header, rest) = bits.bytes.split_first_chunk::<4>()?;
    let length = usize::from(u16::from_le_bytes([header[0], header[1]]));
    if (out.len() + length > limit) || header[0] != !header[2] || header[1] != !header[3] {
        return None;
    }
    out.extend(rest.get(..length)?);
    bits.bytes = &rest[length..];
    Some(())
}

fn codes(bits: &mut Bits) -> Option<(Code, Code)> {
    let (literals, distances, lengths) = (bits.take(5)? + 257, bits.take(5)? + 1, bits.take(4)? + 4);
    let mut of_lengths = [0; 19];
    for place in ORDER.iter().take(lengths) {
        of_lengths[*place] = bits.take(3)?;
    }
    let of_lengths = Code::new(&of_lengths)?;
    let mut all: Vec<usize> = Vec::with_capacity(literals + distances);
    while all.len() < literals + distances {
        let (value, times) = match of_lengths.next(bits)? {
            16 => (*all.last()?, bits.take(2)? + 3),
            17 => (0, bits.take(3)? + 3),
            18 => (0, bits.take(7)? + 11),
            length => (length, 1),
        };
        all.extend(std::iter::repeat_n(value, times));
    }
    if all.len() > literals + distances {
        return None;
    }
    Some((Code::new(&all[..literals])?, Code::new(&all[literals..])?))
}

fn block(bits: &mut Bits, out: &mut Vec<u8>, limit: usize, literals: &Code, distances: &Code) -> Option<()> {
    loop {
        let symbol = literals.next(bits)?;
        if let Ok(byte) = u8::try_from(symbol) {
            if out.len() >= limit {
                return None;
            }
            out.push(byte);
            continue;
        }
        if symbol == 256 {
            return Some(());
        }
        let length = match symbol - 257 {
            short @ 0..8 => short + 3,
            28 => 258,
            long @ 8..28 => {
                let extra = (long - 4) / 4;
                3 + ((4 + long % 4) << extra) + bits.take(u32::try_from(extra).ok()?)?
            }
            _ => return None,
        };
        let distance = match distances.next(bits)? {
            short @ 0..4 => short + 1,
            long @ 4..30 => {
                let extra = long / 2 - 1;
                1 + ((2 + long % 2) << extra) + bits.take(u32::try_from(extra).ok()?)?
            }
            _ => return None,
        };
        let start = out.len().checked_sub(distance)?;
        if out.len() + length > limit {
            return None;
        }
        // The source of the copy may overlap its target.
        for at in start..start + length {
            out.push(out[at]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf 'CONFIG_SMP=y\nCONFIG_SMP=y\nCONFIG_SMP=y\n' | gzip -9n`: one block with fixed codes.
    const FIXED: &[u8] = &[
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x73, 0xf6, 0xf7, 0x73, 0xf3, 0x74, 0x8f,
        0x0f, 0xf6, 0x0d, 0xb0, 0xad, 0xe4, 0x72, 0xc6, 0xc9, 0x01, 0x00, 0x29, 0xdf, 0x29, 0x02, 0x27, 0x00,
        0x00, 0x00,
    ];

    #[test]
    fn a_block_with_fixed_codes_is_unpacked() {
        assert_eq!(gunzip(FIXED, 1000).unwrap(), b"CONFIG_SMP=y\n".repeat(3));
        assert!(gunzip(FIXED, 38).is_none(), "more than the limit");
    }

    #[test]
    fn the_running_kernels_configuration_is_unpacked_where_there_is_one() {
        let Ok(bytes) = std::fs::read("/proc/config.gz") else { return };
        let text =
            String::from_utf8(gunzip(&bytes, 4 << 20).expect("it can be unpacked")).expect("it is text");
        assert!(text.contains("\nCONFIG_CC_VERSION_TEXT=") && text.ends_with('\n'));
        let size = u32::from_le_bytes(*bytes.last_chunk().unwrap());
        assert_eq!(text.len(), size as usize, "gzip's own count");
    }

    #[test]
    fn no_bytes_make_the_unpacker_panic() {
        for end in 0..FIXED.len() {
            let _ = gunzip(&FIXED[..end], 1000);
        }
        // Every second byte of every value, behind a header and each kind of block.
        let mut seed = 1u32;
        for round in 0..3000u32 {
            let mut bytes = FIXED[..10].to_vec();
            for _ in 0..64 {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                bytes.push(seed.to_be_bytes()[0]);
            }
            bytes[10] = bytes[10] & 0xf8 | round.to_le_bytes()[0] & 7;
            let _ = gunzip(&bytes, 4096);
        }
    }
}
