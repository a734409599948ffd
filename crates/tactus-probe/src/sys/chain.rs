//! Loads that depend on each other: the value of each is the address of the next.
#![expect(unsafe_code, reason = "an address is followed without asking where it leads")]

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use tactus_model::random::SplitMix64;

use super::pages::Pages;

/// Bytes of a line, which are loaded at once.
pub const LINE: usize = 64;
/// Words of a line.
const WORDS: usize = LINE / size_of::<u64>();

/// One line of this many is loaded to warm up their page tables: four loads for eight pages of 4 KiB.
const LINES_A_LOAD: usize = 8 * 4096 / LINE / 4;

/// Limit of the readings of an array that bring it to where an endless ring would keep it.
const READINGS: usize = 5;
/// Limit of the bytes read for that, except in the first reading: arrays larger than any cache are read once.
const READ_BYTES: usize = 160 << 20;

/// In which order the lines of an array are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The order of their addresses.
    Sequential,
    /// Random: one of all cycles through all of them (S. Sattolo, *An algorithm to generate a random cyclic
    /// permutation*, 1986).
    Random,
}

/// A ring through all lines of an array.
#[derive(Debug)]
pub struct Chain {
    memory: Rc<Pages>,
    /// Its first word, and how many lines it has.
    first: usize,
    lines: usize,
    /// The address of the word that is loaded next: always one of the ring.
    at: Cell<*const u64>,
}

/// Rings through arrays of these many lines, the longest first, in memory of which as much is needed as [`words`] says.
/// Eight share a line, a word each.
///
/// # Errors
/// When the memory is too small.
pub fn chains(mut memory: Pages, lines: &[usize], order: Order) -> io::Result<Vec<Chain>> {
    if words(lines) > memory.words().len() {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let mut lot = SplitMix64::new(0);
    let places: Vec<usize> = places(lines).collect();
    for (first, lines) in places.iter().zip(lines) {
        link(memory.words_mut(), *first, *lines, order, &mut lot);
    }
    let memory = Rc::new(memory);
    // The kernel's own address: the ring's are the same.
    let start = memory.words().as_ptr().expose_provenance();
    let chain = |(first, lines): (usize, &usize)| {
        let at = Cell::new(std::ptr::with_exposed_provenance(start + first * size_of::<u64>()));
        Chain { memory: Rc::clone(&memory), first, lines: *lines, at }
    };
    Ok(places.into_iter().zip(lines).map(chain).collect())
}

/// How many words the rings through such arrays take.
pub fn words(lines: &[usize]) -> usize {
    lines.iter().step_by(WORDS).map(|lines| lines * WORDS).sum()
}

/// The number of readings of an array of this size.
fn readings(bytes: usize) -> usize {
    (READ_BYTES / bytes.max(1)).clamp(1, READINGS)
}

/// The first word of each.
fn places(lines: &[usize]) -> impl Iterator<Item = usize> {
    let each = move |(n, part): (usize, &[usize])| {
        let before = words(&lines[..n * WORDS]);
        (before..).take(part.len()).collect::<Vec<_>>()
    };
    lines.chunks(WORDS).enumerate().flat_map(each)
}

/// Makes each line's word the address of the next one's.
fn link(memory: &mut [u64], first: usize, lines: usize, order: Order, lot: &mut SplitMix64) {
    let start = memory.as_ptr().addr();
    let address = |line: usize| (start + (first + line * WORDS) * size_of::<u64>()) as u64;
    for line in 0..lines {
        memory[first + line * WORDS] = match order {
            Order::Sequential => address((line + 1) % lines),
            Order::Random => address(line),
        };
    }
    if order == Order::Random {
        for line in (1..lines).rev() {
            let other = usize::try_from(lot.draw() % line as u64).unwrap_or(0);
            memory.swap(first + line * WORDS, first + other * WORDS);
        }
    }
}

impl Chain {
    /// How long its array is, in bytes.
    pub const fn bytes(&self) -> usize {
        self.lines * LINE
    }

    /// Follows the ring for this many loads, and returns the number of the line that it reaches.
    pub fn walk(&self, loads: u64) -> usize {
        let mut at = self.at.get();
        for _ in 0..loads {
            // SAFETY: every word of the ring is the address of a word of the ring, and `at` is one of them. The memory
            // lives as long as `self`, and no code changes it any more.
            let next = unsafe { *at };
            at = std::ptr::with_exposed_provenance(usize::try_from(next).unwrap_or(0));
        }
        self.at.set(std::hint::black_box(at));
        self.line()
    }

    /// Reads the whole array, the current line first. The line read longest ago is then visited first, as if the ring
    /// had been walked before. It reads several times, since a cache that held other arrays takes only half of the
    /// array the first time (docs/design/values.md). Then it follows the ring, because the readings left the page table
    /// entries in the order of the addresses rather than of the ring. Eight entries share a line, and four loads for
    /// each such line reach all but two in a hundred (e^-4).
    pub fn warm(&self) {
        let (line, words) = (self.line(), self.memory.words());
        let of = |from: usize, to: usize| {
            let lines = words.get(self.first + from * WORDS..).unwrap_or_default().chunks(WORDS);
            lines.take(to - from).fold(0_u64, |sum, line| sum.wrapping_add(line[0]))
        };
        for _ in 0..readings(self.bytes()) {
            std::hint::black_box(of(line, self.lines).wrapping_add(of(0, line)));
        }
        self.walk((self.lines / LINES_A_LOAD) as u64);
    }

    /// The number of the line that it is at.
    pub fn line(&self) -> usize {
        (self.at.get().addr() - self.memory.words().as_ptr().addr()) / LINE - self.first / WORDS
    }
}

#[cfg(test)]
mod tests {
    use super::super::pages::PageSize;
    use super::*;

    #[test]
    fn what_a_cache_may_hold_is_read_several_times_and_what_none_holds_once() {
        let mebibytes = |size: usize| readings(size << 20);
        assert_eq!(
            (readings(1 << 10), mebibytes(4), mebibytes(32), mebibytes(64), mebibytes(256)),
            (5, 5, 5, 2, 1)
        );
        assert_eq!((readings(0), readings(usize::MAX)), (5, 1));
    }

    fn rings(lines: &[usize], order: Order) -> Vec<Chain> {
        chains(Pages::map(words(lines) * 8, PageSize::Any).unwrap(), lines, order).unwrap()
    }

    #[test]
    fn each_ring_visits_every_line_of_its_array_once_and_comes_back() {
        let lines: Vec<usize> = (4..14).rev().map(|power| 1 << power).collect();
        for order in [Order::Sequential, Order::Random] {
            for ring in rings(&lines, order) {
                let lines = ring.lines;
                let mut visited: Vec<usize> = (0..lines).map(|_| ring.walk(1)).collect();
                assert_eq!(visited.last(), Some(&0), "{order:?}, {lines} lines");
                visited.sort_unstable();
                assert!(visited.into_iter().eq(0..lines), "{order:?}, {lines} lines");
            }
        }
    }

    #[test]
    fn as_many_loads_are_done_as_it_says_and_none_is_left_out() {
        for order in [Order::Sequential, Order::Random] {
            let (step, leap) = (rings(&[64], order), rings(&[64], order));
            for loads in [0, 1, 7, 63, 64, 65, 1_000] {
                let one = (0..loads).fold(step[0].line(), |_, _| step[0].walk(1));
                assert_eq!(leap[0].walk(loads), one, "{order:?}: {loads} loads");
            }
        }
        assert_eq!(rings(&[64], Order::Sequential)[0].walk(65), 1);
    }

    #[test]
    fn warming_up_ends_with_loads_in_the_order_of_the_ring_four_for_eight_pages() {
        let small = rings(&[64, 32], Order::Random).remove(1);
        let at = small.walk(5);
        small.warm();
        assert_eq!(
            (small.line(), small.bytes()),
            (at, 32 * 64),
            "less than a page has no tables to speak of"
        );
        let (warmed, gone) =
            (rings(&[4096], Order::Random).remove(0), rings(&[4096], Order::Random).remove(0));
        warmed.warm();
        assert_eq!(warmed.line(), gone.walk(32));
    }

    #[test]
    fn a_random_order_is_not_that_of_the_addresses() {
        let ring = rings(&[1024], Order::Random).remove(0);
        let mut at = 0;
        let forward = (0..1024).filter(|_| std::mem::replace(&mut at, ring.walk(1)) + 1 == at).count();
        assert!(forward < 20, "{forward} of 1024");
    }

    #[test]
    fn memory_that_is_too_small_is_refused() {
        let pages = Pages::map(4096, PageSize::Any).unwrap();
        assert!(chains(pages, &[65], Order::Random).is_err());
    }
}
