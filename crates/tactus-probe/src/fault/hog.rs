//! `hog`: a SCHED_FIFO task above the measuring threads that holds its CPU for a known time. A round
//! is one such time.

use std::rc::Rc;

use tactus_measure::thread::make_fifo;
use tactus_model::CpuSet;
use tactus_model::catalogue::fault::Hog;
use tactus_model::message::Refusal;

use super::{Disturbance, Rhythm, repeat, size};
use crate::sys;
use crate::work::{Work, reset_scheduling};

pub fn prepare(table: &Hog, cpus: &CpuSet, above: u32, rhythm: Rhythm) -> Result<Disturbance, Refusal> {
    let (length, _) = size(Hog::NAME, (table.length, table.every), 1)?;
    let once: Rc<dyn Fn() -> u64> = Rc::new(move || busy(length, sys::now));
    fifo(cpus, &[above], rhythm, &once)
}

/// Keeps the CPU until `length` ns of a clock have passed; returns how many did.
pub fn busy(length: u64, clock: fn() -> u64) -> u64 {
    let begin = clock();
    loop {
        let held = clock() - begin;
        if held >= length {
            return held;
        }
    }
}

/// SCHED_FIFO workers on each of `cpus`, one for each of `priorities`, that do `once` at the moments of a rhythm,
/// all at the same ones. It returns how long it held the CPU, in ns.
///
/// # Errors
/// When SCHED_FIFO is refused.
pub fn fifo(
    cpus: &CpuSet,
    priorities: &[u32],
    rhythm: Rhythm,
    once: &Rc<dyn Fn() -> u64>,
) -> Result<Disturbance, Refusal> {
    let highest = priorities.first().copied().unwrap_or_default();
    // Tried here, because it can still be refused with its reason.
    let before = sys::affinity().unwrap_or_default();
    for cpu in cpus.iter() {
        make_fifo(cpu, highest)?;
    }
    reset_scheduling(&before);
    let longest = sys::shared(cpus.len() * priorities.len())
        .map_err(|error| Refusal { reason: error.to_string(), hint: None })?;
    let mut works: Vec<Work> = Vec::new();
    for cpu in cpus.iter() {
        for priority in priorities.iter().copied() {
            let (once, longest) = (Rc::clone(once), &longest[works.len()]);
            let rhythm = if works.is_empty() { rhythm } else { rhythm.untold() };
            works.push(Box::new(move |rounds| {
                let _ = rustix::mm::mlockall(rustix::mm::MlockAllFlags::CURRENT);
                if make_fifo(cpu, priority).is_ok() {
                    repeat(rhythm, longest, rounds, &*once);
                }
            }));
        }
    }
    let mut way = format!("SCHED_FIFO {highest}");
    if priorities.len() > 1 {
        way += &format!(" to {}", highest + 1 - u32::try_from(priorities.len()).unwrap_or_default());
    }
    Ok(Disturbance { way, works, longest, held: None, made: rhythm.made() })
}
