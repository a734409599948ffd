//! `memory`: bandwidth, and the latency of dependent loads by size of the array, order and size of page.

mod arrays;
mod stream;

use std::fs;
use std::io;
use std::rc::Rc;

use tactus_model::catalogue::measure::memory::{
    COPY, RANDOM_HUGE, RANDOM_LARGE, RANDOM_SMALL, READ, SEQUENTIAL_HUGE, SEQUENTIAL_LARGE, SEQUENTIAL_SMALL,
    WRITE,
};
use tactus_model::catalogue::{Item, Measure};
use tactus_model::message::Note;
use tactus_model::outcome::Point;

use self::arrays::Arrays;
use super::{Bench, Curve, Make, Measurement, Operation, Place, alone, timed};
use crate::sys::chain::{Chain, LINE, Order, chains, words};
use crate::sys::{PageSize, Pages};
use crate::work::tell_note;

/// The measurement.
pub struct Memory;

static ITEMS: [(Item, Make); 3] = [(READ, read), (WRITE, write), (COPY, copy)];

static CURVES: [(Item, Curve); 6] = [
    (SEQUENTIAL_SMALL, |place| latencies(place, PageSize::Small, Order::Sequential)),
    (RANDOM_SMALL, |place| latencies(place, PageSize::Small, Order::Random)),
    (SEQUENTIAL_LARGE, |place| latencies(place, PageSize::Large, Order::Sequential)),
    (RANDOM_LARGE, |place| latencies(place, PageSize::Large, Order::Random)),
    (SEQUENTIAL_HUGE, |place| latencies(place, PageSize::Huge, Order::Sequential)),
    (RANDOM_HUGE, |place| latencies(place, PageSize::Huge, Order::Random)),
];

/// Bytes of one operation on a bandwidth.
const BLOCK: u32 = 16 << 10;
/// The words of one.
const WORDS: usize = BLOCK as usize / size_of::<u64>();
/// One part in this many of an array may be in other pages than requested.
const STRAY: usize = 64;

impl Measurement for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn items(&self) -> &'static [(Item, Make)] {
        &ITEMS
    }

    fn curves(&self) -> &'static [(Item, Curve)] {
        &CURVES
    }
}

fn arrays(place: &Place<'_>) -> io::Result<Arrays> {
    let Measure::Memory(asked) = place.measure else { return Err(io::ErrorKind::InvalidInput.into()) };
    let free = *place.free.get_or_init(arrays::free);
    Arrays::of(asked.sizes(), place.cpus.first().unwrap_or(0), free).map_err(io::Error::other)
}

/// An array of the largest size, at least two blocks, of ones.
fn ones(place: &Place<'_>) -> io::Result<Pages> {
    let most = arrays(place)?.whole().map_err(io::Error::other)?;
    let most = usize::try_from(most).map_err(io::Error::other)?;
    let mut pages = Pages::map(most.max(2 * WORDS * size_of::<u64>()), PageSize::Any)?;
    pages.words_mut().fill(1);
    Ok(pages)
}

/// The blocks of an array, one after the other, for ever.
struct Turn {
    next: usize,
    blocks: usize,
}

impl Turn {
    const fn of(words: usize) -> Self {
        Self { next: 0, blocks: words / WORDS }
    }

    const fn take(&mut self) -> std::ops::Range<usize> {
        let block = self.next;
        self.next = (block + 1) % self.blocks;
        block * WORDS..(block + 1) * WORDS
    }
}

/// The bandwidth of an operation.
fn bandwidth(run: impl FnMut(u64) -> io::Result<u64> + 'static) -> Bench {
    Bench { of: Operation::Bytes(BLOCK), ..alone(run) }
}

fn read(place: &Place<'_>) -> io::Result<Bench> {
    let memory = ones(place)?;
    let mut turn = Turn::of(memory.words().len());
    Ok(bandwidth(move |batch| {
        let mut sum = 0;
        let took = timed(|| {
            for _ in 0..batch {
                sum += stream::read(&memory.words()[turn.take()]);
            }
            Ok(())
        })?;
        as_written(sum, batch * WORDS as u64)?;
        Ok(took)
    }))
}

fn write(place: &Place<'_>) -> io::Result<Bench> {
    let mut memory = ones(place)?;
    let mut turn = Turn::of(memory.words().len());
    let mut value = 1;
    Ok(bandwidth(move |batch| {
        value += 1;
        let mut last = 0..0;
        let took = timed(|| {
            for _ in 0..batch {
                last = turn.take();
                stream::write(&mut memory.words_mut()[last.clone()], value);
            }
            Ok(())
        })?;
        as_written(stream::read(&memory.words()[last.clone()]), value * last.len() as u64)?;
        Ok(took)
    }))
}

fn copy(place: &Place<'_>) -> io::Result<Bench> {
    let mut memory = ones(place)?;
    let half = memory.words().len() / 2;
    memory.words_mut()[half..].fill(0);
    let mut turn = Turn::of(half);
    Ok(bandwidth(move |batch| {
        let mut last = 0..0;
        let took = timed(|| {
            let (from, to) = memory.words_mut().split_at_mut(half);
            for _ in 0..batch {
                last = turn.take();
                stream::copy(&mut to[last.clone()], &from[last.clone()]);
            }
            Ok(())
        })?;
        as_written(stream::read(&memory.words()[half..][last.clone()]), last.len() as u64)?;
        Ok(took)
    }))
}

/// Memory that does not keep written values is an error, and gives no value.
fn as_written(sum: u64, expected: u64) -> io::Result<()> {
    if sum == expected {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "memory does not contain what was written: a sum of {sum}, but {expected} was written"
    )))
}

/// The latency of each size, in ascending order.
fn latencies(place: &Place<'_>, size: PageSize, order: Order) -> io::Result<Vec<(Point, Bench)>> {
    let arrays = arrays(place)?;
    let lines: Vec<usize> =
        arrays.sizes.iter().filter_map(|size| usize::try_from(*size / LINE as u64).ok()).collect();
    let (pages, which) = pages(words(&lines) * size_of::<u64>(), size)?;
    if order == Order::Sequential {
        let most = tactus_model::size::Bytes(arrays.most());
        tell_note(&Note::info(format!("`memory`: arrays of up to {most} ({}) in {which}", arrays.why)));
    }
    let mut benches: Vec<(Point, Bench)> = chains(pages, &lines, order)?.into_iter().map(latency).collect();
    benches.reverse();
    Ok(benches)
}

fn latency(chain: Chain) -> (Point, Bench) {
    let chain = Rc::new(chain);
    let (at, warmed) = (Point::Bytes(chain.bytes() as u64), Rc::clone(&chain));
    let bench = alone(move |batch| {
        timed(|| {
            chain.walk(batch);
            Ok(())
        })
    });
    (at, Bench { warm: Some(Box::new(move || warmed.warm())), ..bench })
}

/// Memory in such pages, and which they are in the end.
fn pages(bytes: usize, size: PageSize) -> io::Result<(Pages, &'static str)> {
    let none = |what: &str| io::Error::other(what);
    if size == PageSize::Small && rustix::param::page_size() != size.bytes() {
        return Err(none("the pages of this kernel are larger"));
    }
    match size {
        PageSize::Small => Ok((Pages::map(bytes, size)?, "pages of 4 KiB")),
        PageSize::Huge => {
            let why = |_| {
                none(
                    "not enough pages of 1 GiB are reserved (hugepagesz=1G hugepages=N on the kernel's command line)",
                )
            };
            Ok((Pages::map(bytes, size).map_err(why)?, "reserved pages of 1 GiB"))
        }
        _ => {
            if let Ok(pages) = Pages::map(bytes, PageSize::Large) {
                return Ok((pages, "reserved pages of 2 MiB"));
            }
            let pages = Pages::map(bytes, PageSize::Transparent).map_err(|error| {
                if error.raw_os_error() != Some(libc::EINVAL) {
                    return error;
                }
                none(
                    "no pages of 2 MiB are reserved (vm.nr_hugepages), and this kernel has no transparent ones, as those \
                     with PREEMPT_RT",
                )
            })?;
            let smaps = fs::read_to_string("/proc/self/smaps").unwrap_or_default();
            let (start, all) = (pages.words().as_ptr().addr(), size_of_val(pages.words()));
            let huge = huge_bytes(&smaps, start, start + all);
            if huge < all - all / STRAY {
                return Err(io::Error::other(format!(
                    "{} of {} MiB are in pages of 2 MiB: none are reserved (vm.nr_hugepages), and the kernel gave no more \
                     transparent ones (/sys/kernel/mm/transparent_hugepage/enabled)",
                    huge >> 20,
                    all >> 20
                )));
            }
            Ok((pages, "transparent huge pages of 2 MiB"))
        }
    }
}

/// Bytes in transparent huge pages of the mappings that lie between two addresses (proc(5), `smaps`).
fn huge_bytes(smaps: &str, start: usize, end: usize) -> usize {
    let (mut within, mut huge) = (false, 0);
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if let Some(kilobytes) =
            first.strip_suffix(':').filter(|key| *key == "AnonHugePages").and(words.next())
        {
            huge += if within { kilobytes.parse::<usize>().unwrap_or(0) << 10 } else { 0 };
        } else if let Some((from, to)) = first.split_once('-') {
            let address = |text| usize::from_str_radix(text, 16).ok();
            within = address(from).zip(address(to)).is_some_and(|(from, to)| from < end && start < to);
        }
    }
    huge
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_huge_pages_of_these_addresses_count() {
        let smaps = "00400000-00401000 r-xp 00000000 00:00 0  /bin/probe\nSize: 4 kB\nAnonHugePages:  2048 kB\n\
            7f0000000000-7f0000800000 rw-p 00000000 00:00 0 \nRss: 8192 kB\nAnonHugePages:      6144 kB\nVmFlags: rd wr\n\
            7f0000800000-7f0000a00000 rw-p 00000000 00:00 0 \nAnonHugePages:      2048 kB\n";
        assert_eq!(huge_bytes(smaps, 0x7f00_0000_0000, 0x7f00_0080_0000), 6 << 20);
        assert_eq!(huge_bytes(smaps, 0x7f00_0020_0000, 0x7f00_00a0_0000), 8 << 20);
        assert_eq!(huge_bytes(smaps, 0x1000, 0x2000), 0);
        assert_eq!(huge_bytes("", 0, usize::MAX), 0);
    }

    #[test]
    fn memory_that_changes_what_is_in_it_is_an_error() {
        assert!(as_written(8, 8).is_ok());
        assert!(as_written(7, 8).unwrap_err().to_string().contains("does not contain what was written"));
    }

    #[test]
    fn blocks_are_taken_in_turn_and_begin_again() {
        let mut turn = Turn::of(2 * WORDS + 5);
        let taken: Vec<_> = (0..3).map(|_| turn.take()).collect();
        assert_eq!(taken, [0..WORDS, WORDS..2 * WORDS, 0..WORDS]);
    }
}
