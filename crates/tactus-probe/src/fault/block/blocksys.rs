//! A block by /dev/blocksys, OSADL's module. A write of a number keeps the writing CPU in the kernel for that many
//! cycles, with interrupts and preemption off. The length of a cycle is unknown, so it is measured first.

use std::fs::OpenOptions;
use std::io::Write;
use std::rc::Rc;

use tactus_measure::thread::make_fifo;
use tactus_model::catalogue::fault::Off;

use super::{No, Wanted, no};
use crate::fault::Disturbance;
use crate::fault::hog::fifo;
use crate::sys;
use crate::tracefs::wrong;
use crate::work::reset_scheduling;

const DEVICE: &str = "/dev/blocksys";
/// More cycles than any block has.
const MOST: u64 = 1 << 33;
/// How often a length is measured; the shortest counts, the rest is what disturbed it.
const MEASURED: u32 = 3;

pub(super) fn prepare(wanted: &Wanted<'_>) -> Result<Disturbance, No> {
    if wanted.off == Off::Preemption {
        return no(false, &[DEVICE, " turns interrupts off, not only preemption"]);
    }
    let device = OpenOptions::new().write(true).open(DEVICE).map_err(|error| wrong(DEVICE, &error))?;
    // In one piece: each write is a block.
    let block = move |cycles: u64| {
        let begin = sys::now();
        let wrote = (&device).write_all((cycles.to_string() + "\n").as_bytes());
        if wrote.is_ok() { sys::now() - begin } else { 0 }
    };
    let before = sys::affinity().unwrap_or_default();
    if let Some(cpu) = wanted.cpus.first() {
        make_fifo(cpu, wanted.above).map_err(|refusal| refusal.reason)?;
    }
    let cycles = calibrate(wanted.length, &block);
    reset_scheduling(&before);
    let Some(cycles) = cycles else {
        return no(false, &[DEVICE, " does not block for the requested time"]);
    };
    let once: Rc<dyn Fn() -> u64> = Rc::new(move || block(cycles));
    let prepared = fifo(wanted.cpus, &[wanted.above], wanted.rhythm, &once);
    let prepared = prepared.map_err(|refusal| refusal.reason)?;
    Ok(Disturbance { way: DEVICE.to_owned(), ..prepared })
}

/// The number of cycles that block for `length` ns, if there is one. `block` blocks for a number of cycles and returns
/// the time in ns.
fn calibrate(length: u64, block: &dyn Fn(u64) -> u64) -> Option<u64> {
    let shortest = |cycles| (0..MEASURED).map(|_| block(cycles)).min().unwrap_or(0);
    let (mut cycles, mut held) = (1, shortest(1));
    while held < length / 16 && cycles < MOST {
        cycles *= 4;
        held = shortest(cycles);
    }
    let cycles = cycles.checked_mul(length)? / held.max(1);
    let fits = shortest(cycles).abs_diff(length) <= length / 10;
    fits.then_some(cycles)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_cycle_is_found_whatever_it_is() {
        for per_cycle in [1, 3, 40, 1_000, 50_000] {
            let cycles = calibrate(4_000_000, &|cycles| 700 + cycles * per_cycle).unwrap();
            assert!((3_600_000..=4_400_000).contains(&(700 + cycles * per_cycle)), "{per_cycle}: {cycles}");
        }
    }

    #[test]
    fn a_device_that_does_not_block_as_it_should_is_refused() {
        assert_eq!(calibrate(4_000_000, &|_| 700), None);
        assert_eq!(calibrate(4_000_000, &|_| 0), None);
    }
}
