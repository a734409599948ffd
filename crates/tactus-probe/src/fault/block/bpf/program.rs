//! The program that blocks, as instructions. It runs in the hard interrupt of a CPU's clock of performance events, with
//! interrupts off, and reads the time until the length is over. It writes each hit into its record, whose words
//! [`super::record`] names.
//!
//! Where the moments are drawn, the clock ticks in every part of the period, and the program draws the part that has the block
//! as [`Lots::place`](tactus_model::lot::Lots::place) does. So each part has the same interrupts, and the first one of one part
//! is a block.
//!
//! The loop is a helper of the kernel (`bpf_loop`, Linux 5.17). The verifier follows every round of a loop made of
//! jumps, up to a million instructions, which is some 4 ms. The callback of `bpf_loop` must be a function with a type,
//! so the program brings its types (BTF).
//!
//! Formats: Documentation/bpf/standardization/instruction-set.rst and Documentation/bpf/btf.rst.

use tactus_model::random::SplitMix64;

use super::record::{COUNT, EVERY, HITS, KEPT, LAST, LENGTH, LONGEST, PART, PLACES, SEED};
use crate::bpf::instruction::{EXIT, FRAME, TIME, add, call, code, copy, load, map_value, set, store, word};

/// Rounds of `bpf_loop`: its maximum.
const ROUNDS: i32 = 1 << 23;
/// How often a round reads the time: at the 8 ns that a reading takes at least, all are longer than the longest block.
const READINGS: i16 = 16;
/// `bpf_loop`.
const LOOP: i32 = 181;
/// On the stack, where both functions find them: when the block began, later when it ended; when it shall end.
const NOW: i16 = -16;
const END: i16 = -8;

/// A program that can be loaded.
pub struct Program {
    /// Its instructions.
    pub instructions: Vec<u64>,
    /// The beginning of each function, and its type.
    pub functions: [[u32; 2]; 2],
}

/// Its types: `int block(void *x)` and `static int spin(int i, void *x)`.
pub const TYPES: [u32; 36] = [
    // Header: magic and version, its length; offset and length of the types, of the names.
    0x0001_eb9f,
    24,
    0,
    100,
    100,
    20, //
    // 1: int, of 32 bits, signed.
    INT,
    kind(1, 0),
    4,
    1 << 24 | 32, //
    // 2: void *.
    0,
    kind(2, 0),
    0, //
    // 3: int (void *x).
    0,
    kind(13, 1),
    1,
    X,
    2, //
    // 4: block, a global function.
    BLOCK,
    kind(12, 1),
    3, //
    // 5: int (int i, void *x).
    0,
    kind(13, 2),
    1,
    I,
    1,
    X,
    2, //
    // 6: spin, a static function.
    SPIN,
    kind(12, 0),
    5, //
    // The names.
    u32::from_ne_bytes(*b"\0int"),
    u32::from_ne_bytes(*b"\0blo"),
    u32::from_ne_bytes(*b"ck\0s"),
    u32::from_ne_bytes(*b"pin\0"),
    u32::from_ne_bytes(*b"i\0x\0"),
];
const INT: u32 = 1;
const BLOCK: u32 = 5;
const SPIN: u32 = 11;
const I: u32 = 16;
const X: u32 = 18;

/// The word with a type's kind and its number of members.
const fn kind(kind: u32, members: u32) -> u32 {
    kind << 24 | members
}

/// Ends the program unless this is the drawn part of a period that had no block yet. Register 6 is the record, 7 the time.
fn unless_drawn() -> Vec<u64> {
    // `to = value`, of 64 bits, takes two instructions.
    let wide = |to: u8, value: u64| {
        let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
        let [low, high] = [[a, b, c, d], [e, f, g, h]].map(i32::from_le_bytes);
        [code(0x18, to, 0, 0, low), code(0, 0, 0, 0, high)]
    };
    // One step of SplitMix64: the bits in register 4, shifted and multiplied.
    let mixed = |shift: i32, factor: Option<u64>| {
        let mut step = vec![copy(5, 4), code(0x77, 5, 0, 0, shift), code(0xaf, 4, 5, 0, 0)];
        if let Some(factor) = factor {
            step.extend(wide(5, factor));
            step.push(code(0x2f, 4, 5, 0, 0));
        }
        step
    };
    let part = [
        copy(8, 7),
        code(0x3f, 8, 1, 0, 0), // The period,
        copy(9, 8),
        code(0x2f, 9, 1, 0, 0),
        copy(2, 7),
        code(0x1f, 2, 9, 0, 0), // the time in it,
        load(3, 6, word(PART)),
        code(0x3f, 2, 3, 0, 0), // and the part.
        copy(4, 8),
    ];
    let [gamma, first, second] = SplitMix64::FACTORS;
    let mut drawn = part.to_vec();
    drawn.extend(wide(5, gamma));
    drawn.extend([code(0x2f, 4, 5, 0, 0), load(5, 6, word(SEED)), add(4, 5)]);
    drawn.extend([mixed(30, Some(first)), mixed(27, Some(second)), mixed(31, None)].concat());
    drawn.extend([load(5, 6, word(PLACES)), code(0x9f, 4, 5, 0, 0)]);
    drawn.extend([code(0x1d, 2, 4, 2, 0), set(0, 0), EXIT]);
    drawn.extend([load(5, 6, word(LAST)), code(0x5d, 5, 8, 2, 0), set(0, 0), EXIT]);
    drawn.push(store(6, 8, word(LAST)));
    let skipped = i16::try_from(drawn.len()).unwrap_or_default();
    [vec![load(1, 6, word(EVERY)), code(0x15, 1, 0, skipped, 0)], drawn].concat()
}

/// The program for the record that is the value of a map, by its descriptor.
pub fn program(map: i32) -> Program {
    // Registers 6 to 9 stay as they are over a call: 6 the record, 7 when it began.
    let mut instructions = vec![map_value(6, map), 0, call(TIME), copy(7, 0)];
    instructions.extend(unless_drawn());
    let before =
        [load(1, 6, word(LENGTH)), add(1, 0), store(FRAME, 1, END), store(FRAME, 0, NOW), set(1, ROUNDS)];
    let places = i32::try_from(KEPT).unwrap_or_default();
    let after = [
        copy(3, FRAME),
        code(0x07, 3, 0, 0, NOW.into()),
        set(4, 0),
        call(LOOP),
        load(1, FRAME, NOW),
        code(0x1f, 1, 7, 0, 0), // How long it was.
        load(2, 6, word(LONGEST)),
        code(0x3d, 2, 1, 1, 0), // Unless one was as long,
        store(6, 1, word(LONGEST)),
        load(2, 6, word(COUNT)),
        code(0x35, 2, 0, 4, places), // Unless all places are taken,
        code(0x67, 2, 0, 0, 4),      // of two words each,
        add(2, 6),
        store(2, 7, word(HITS)),
        store(2, 1, word(HITS + 1)),
        set(1, 1), // the next one.
        // The addition is a barrier: a reader that sees the count also sees the hit.
        code(0xdb, 6, 1, word(COUNT), 0x01),
        set(0, 0),
        EXIT,
    ];
    instructions.extend(before);
    let here = i32::try_from(after.len()).unwrap_or_default();
    // The address of the function that begins behind the last instruction.
    instructions.extend([code(0x18, 2, 4, 0, here + 1), 0]);
    instructions.extend(after);
    let function = u32::try_from(instructions.len()).unwrap_or_default();
    instructions.extend([copy(6, 2), load(7, 6, END - NOW)]);
    for reading in 1..=READINGS {
        // At the end to the last three instructions.
        instructions.extend([call(TIME), code(0x3d, 0, 7, 2 * (READINGS - reading) + 3, 0)]);
    }
    instructions.extend([store(6, 0, 0), set(0, 0), EXIT]);
    instructions.extend([store(6, 0, 0), set(0, 1), EXIT]);
    Program { instructions, functions: [[0, 4], [function, 6]] }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The target of every jump stays within its function.
    #[test]
    fn no_jump_leaves_its_function() {
        let Program { instructions, functions } = program(3);
        let callback = usize::try_from(functions[1][0]).unwrap();
        for (at, instruction) in instructions.iter().enumerate() {
            let bytes = instruction.to_ne_bytes();
            if [0x3d, 0x35].contains(&bytes[0]) {
                let to = at + 1 + usize::try_from(i16::from_ne_bytes([bytes[2], bytes[3]])).unwrap();
                let end = if at < callback { callback } else { instructions.len() };
                assert!(to < end, "{at} to {to}");
            }
            if bytes[..2] == [0x18, 2 | 4 << 4] {
                let value = i32::from_ne_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
                assert_eq!(at + 1 + usize::try_from(value).unwrap(), callback);
            }
        }
        assert_eq!(instructions[callback - 1], EXIT);
        assert_eq!(instructions.last(), Some(&EXIT));
    }

    #[test]
    fn the_types_are_as_long_as_their_header_says_and_every_name_is_one() {
        let [_, header, _, types, at, names, ..] = TYPES;
        assert_eq!((header + at + names) as usize, size_of_val(&TYPES));
        assert_eq!(types, at);
        let text: Vec<u8> = TYPES[31..].iter().flat_map(|word| word.to_ne_bytes()).collect();
        for (offset, name) in [(INT, "int"), (BLOCK, "block"), (SPIN, "spin"), (I, "i"), (X, "x")] {
            let rest = &text[offset as usize..];
            assert_eq!(rest.split(|byte| *byte == 0).next().unwrap(), name.as_bytes());
            assert_eq!(text[offset as usize - 1], 0);
        }
    }
}
