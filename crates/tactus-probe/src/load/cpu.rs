//! `cpu`: one busy process per CPU.

use std::sync::atomic::{AtomicU64, Ordering};

use tactus_model::CpuSet;
use tactus_model::catalogue::load::Cpu;
use tactus_model::message::Refusal;

use super::{each, next};
use crate::sys;
use crate::work::Work;

/// How often it is busy and idle in turn, in ns.
const PERIOD_NS: u64 = 10_000_000;
/// Computations of one round.
const ROUND: u64 = 1_000;

pub fn works(table: &Cpu, cpus: &CpuSet) -> Result<Vec<Work>, Refusal> {
    let busy = table.busy();
    Ok(each(cpus, &|_| Box::new(move |rounds| compute(busy, rounds))))
}

fn compute(busy: u32, rounds: &AtomicU64) {
    let on = PERIOD_NS / 100 * u64::from(busy);
    let mut begin = sys::now();
    let mut state = 1u64;
    loop {
        while sys::now() < begin + on {
            for _ in 0..ROUND {
                next(&mut state);
            }
            std::hint::black_box(state);
            rounds.fetch_add(1, Ordering::Relaxed);
        }
        begin += PERIOD_NS;
        if busy < 100 {
            sys::sleep_until(begin);
        }
        // Time that others took is not made up for.
        begin = begin.max(sys::now().saturating_sub(PERIOD_NS));
    }
}
