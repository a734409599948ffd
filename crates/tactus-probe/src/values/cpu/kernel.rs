//! Computations for a processor: four kernels of the kind that CoreMark made usual, each with the same work and the
//! same result in every iteration. The code is not CoreMark's, and the results cannot be compared with CoreMark's.

use std::hint::black_box;
use std::io;

/// Nodes of the list.
const NODES: usize = 64;
/// The successor of the last node.
const END: u16 = u16::MAX;
/// Rows and columns of a matrix.
const SIDE: usize = 12;
/// Bytes that the state machine and the CRC read.
const TEXT: usize = 256;

/// The kernels, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// A list is searched, reversed and sorted.
    List,
    /// Matrices are multiplied.
    Matrix,
    /// Kinds of numbers in a text are distinguished.
    States,
    /// A CRC-16 bit by bit.
    Crc,
    /// One of each.
    Mix,
}

/// The data of the kernels.
pub struct Kernels {
    data: [u16; NODES],
    next: [u16; NODES],
    left: [[i16; SIDE]; SIDE],
    right: [[i16; SIDE]; SIDE],
    text: [u8; TEXT],
}

impl Kernels {
    /// The same for everybody.
    pub fn new() -> Self {
        let mut lot = 1_u16;
        // A full-period generator: 2^16 values, none twice.
        let mut draw = || {
            lot = lot.wrapping_mul(25_173).wrapping_add(13_849);
            lot
        };
        let mut own = Self {
            data: [0; NODES],
            next: [END; NODES],
            left: [[0; SIDE]; SIDE],
            right: [[0; SIDE]; SIDE],
            text: [b','; TEXT],
        };
        own.data.iter_mut().for_each(|value| *value = draw());
        for (left, right) in own.left.iter_mut().flatten().zip(own.right.iter_mut().flatten()) {
            (*left, *right) = ((draw() >> 8).cast_signed(), (draw() >> 8).cast_signed());
        }
        let numbers =
            b"1789,-42,+96500,27.315,.0072973,-40.75,+6.02214e23,9.8067E+0,-1.6e-19,3e8m,0x7f,1.2.3,--7,";
        for (byte, number) in own.text.iter_mut().zip(numbers.iter().cycle()) {
            *byte = *number;
        }
        own
    }

    /// Runs this many iterations.
    ///
    /// # Errors
    /// When one has another result than it must have: this processor does not compute.
    pub fn run(&mut self, kernel: Kernel, iterations: u64) -> io::Result<()> {
        for _ in 0..iterations {
            let result = black_box(&mut *self).once(kernel);
            if result != kernel.result() {
                let what = format!("{kernel:?} computes {result:#06x}, not {:#06x}", kernel.result());
                return Err(io::Error::other(what));
            }
        }
        Ok(())
    }

    fn once(&mut self, kernel: Kernel) -> u16 {
        match kernel {
            Kernel::List => self.list(),
            Kernel::Matrix => self.matrix(),
            Kernel::States => self.states(),
            Kernel::Crc => crc(&self.text),
            Kernel::Mix => {
                let results = [self.list(), self.matrix(), self.states(), crc(&self.text)];
                results.into_iter().fold(0, |sum, result| crc_of(sum, &result.to_le_bytes()))
            }
        }
    }

    /// Searches, reverses and sorts, and ends with the list that it began with.
    fn list(&mut self) -> u16 {
        for (node, next) in self.next.iter_mut().enumerate() {
            *next = if node + 1 == NODES { END } else { u16::try_from(node + 1).unwrap_or(END) };
        }
        let mut sum = 0_u16;
        for wanted in (0..NODES).step_by(NODES / 8) {
            sum = sum.wrapping_add(self.find(0, self.data[wanted]));
        }
        let head = self.reverse(0);
        let mut at = self.sort(head);
        while at != END {
            sum = sum.rotate_left(1) ^ at;
            at = self.next[usize::from(at)];
        }
        sum
    }

    /// How many nodes lie before the one of that value.
    fn find(&self, head: u16, value: u16) -> u16 {
        let (mut at, mut before) = (head, 0);
        while at != END && self.data[usize::from(at)] != value {
            at = self.next[usize::from(at)];
            before += 1;
        }
        before
    }

    fn reverse(&mut self, head: u16) -> u16 {
        let (mut at, mut behind) = (head, END);
        while at != END {
            let next = std::mem::replace(&mut self.next[usize::from(at)], behind);
            (behind, at) = (at, next);
        }
        behind
    }

    /// Merge sort without extra memory: runs of one, two, four nodes and so on are merged.
    fn sort(&mut self, mut head: u16) -> u16 {
        let mut length = 1;
        while length < NODES {
            let (mut rest, mut sorted, mut last) = (head, END, END);
            while rest != END {
                let (left, behind) = self.cut(rest, length);
                let (right, next) = self.cut(behind, length);
                rest = next;
                let (mut left, mut right) = (left, right);
                while left != END || right != END {
                    let from_left = right == END
                        || (left != END && self.data[usize::from(left)] <= self.data[usize::from(right)]);
                    let side = if from_left { &mut left } else { &mut right };
                    let node = *side;
                    *side = self.next[usize::from(node)];
                    match last {
                        END => sorted = node,
                        last => self.next[usize::from(last)] = node,
                    }
                    last = node;
                }
            }
            if last != END {
                self.next[usize::from(last)] = END;
            }
            head = sorted;
            length *= 2;
        }
        head
    }

    /// Cuts off the first `length` nodes: these, and what comes behind them.
    fn cut(&mut self, head: u16, length: usize) -> (u16, u16) {
        let mut at = head;
        for _ in 1..length {
            if at == END {
                break;
            }
            at = self.next[usize::from(at)];
        }
        match at {
            END => (head, END),
            at => (head, std::mem::replace(&mut self.next[usize::from(at)], END)),
        }
    }

    fn matrix(&self) -> u16 {
        let mut sum = 0_u32;
        for row in &self.left {
            for column in 0..SIDE {
                let cells = row.iter().zip(&self.right);
                let cell: i32 = cells.map(|(left, right)| i32::from(*left) * i32::from(right[column])).sum();
                sum = sum.rotate_left(1).wrapping_add(cell.cast_unsigned());
            }
        }
        fold(sum)
    }

    /// How many numbers of which kind there are, and how often the machine changed.
    fn states(&self) -> u16 {
        let (mut state, mut changes, mut ends) = (State::Start, 0_u16, [0_u16; 6]);
        for byte in &self.text {
            let next = state.after(*byte);
            if next == State::Start {
                ends[state as usize] += 1;
            }
            changes += u16::from(next != state);
            state = next;
        }
        ends.iter().fold(changes, |sum, count| sum.rotate_left(3) ^ count)
    }
}

impl Kernel {
    /// The result of each iteration: computed once, and the same on every processor.
    const fn result(self) -> u16 {
        match self {
            Self::List => 0xb7c8,
            Self::Matrix => 0x9c92,
            Self::States => 0x11f9,
            Self::Crc => 0x974d,
            Self::Mix => 0x55a8,
        }
    }
}

/// The position within a number in text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Sign,
    Integer,
    Fraction,
    Exponent,
    Invalid,
}

impl State {
    const fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (_, b',') => Self::Start,
            (Self::Start, b'+' | b'-') => Self::Sign,
            (Self::Start | Self::Sign | Self::Integer, b'0'..=b'9') => Self::Integer,
            (Self::Start | Self::Sign | Self::Integer, b'.') | (Self::Fraction, b'0'..=b'9') => {
                Self::Fraction
            }
            (Self::Integer | Self::Fraction, b'e' | b'E') | (Self::Exponent, b'0'..=b'9' | b'+' | b'-') => {
                Self::Exponent
            }
            _ => Self::Invalid,
        }
    }
}

/// CRC-16 (polynomial 0x1021 reversed), bit by bit.
fn crc(bytes: &[u8]) -> u16 {
    crc_of(0xffff, bytes)
}

fn crc_of(from: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(from, |mut sum, byte| {
        sum ^= u16::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ 0x8408 } else { sum >> 1 };
        }
        sum
    })
}

/// Both halves of a number.
fn fold(sum: u32) -> u16 {
    let [a, b, c, d] = sum.to_le_bytes();
    u16::from_le_bytes([a, b]) ^ u16::from_le_bytes([c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Kernel; 5] = [Kernel::List, Kernel::Matrix, Kernel::States, Kernel::Crc, Kernel::Mix];

    #[test]
    fn every_iteration_of_a_kernel_has_the_result_that_it_must_have() {
        let mut kernels = Kernels::new();
        for kernel in ALL {
            kernels.run(kernel, 3).unwrap();
        }
    }

    #[test]
    fn a_processor_that_computes_wrong_is_told_of() {
        let mut kernels = Kernels::new();
        kernels.left[3][4] ^= 1;
        let error = kernels.run(Kernel::Matrix, 1).unwrap_err().to_string();
        assert!(error.contains("Matrix computes 0x"), "{error}");
    }

    #[test]
    fn the_list_is_sorted_and_has_all_its_nodes() {
        let mut kernels = Kernels::new();
        kernels.list();
        let first = (0..NODES).min_by_key(|node| kernels.data[*node]).unwrap();
        let (mut at, mut values) = (u16::try_from(first).unwrap(), Vec::new());
        while at != END {
            values.push(kernels.data[usize::from(at)]);
            at = kernels.next[usize::from(at)];
        }
        assert_eq!(values.len(), NODES);
        assert!(values.is_sorted(), "{values:?}");
    }

    #[test]
    fn the_crc_is_the_one_of_its_polynomial() {
        // CRC-16/IBM-SDLC of "123456789" without its last inversion.
        assert_eq!(crc(b"123456789"), 0x906e ^ 0xffff);
    }

    #[test]
    fn the_states_are_those_of_numbers() {
        let end = |text: &[u8]| text.iter().fold(State::Start, |state, byte| state.after(*byte));
        assert!(end(b"1789") == State::Integer && end(b"-.5") == State::Fraction);
        assert!(
            end(b"9.8E+0") == State::Exponent && end(b"0x7f") == State::Invalid && end(b"7,") == State::Start
        );
    }
}
