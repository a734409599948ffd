//! `cpu`: one busy process per CPU.

use std::sync::atomic::{AtomicU64, Ordering};

use tactus_model::CpuSet;
use tactus_model::activity::Load as Table;
use tactus_model::message::Refusal;

use super::{Load, each, next, refuse, stranger};
use crate::sys;
use crate::worker::Work;

/// How often it is busy and idle in turn, in ns.
const PERIOD_NS: u64 = 10_000_000;
/// Computations of one round.
const ROUND: u64 = 1_000;

/// The load.
pub struct Cpu;

impl Load for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn works(&self, load: &Table, cpus: &CpuSet) -> Result<Vec<Work>, Refusal> {
        let Table::Cpu(table) = load else { return Err(stranger(load)) };
        let busy = table.busy.unwrap_or(100);
        if !(1..=100).contains(&busy) {
            return Err(refuse(format!("cpu: busy = {busy} is no part of the time; use 1 to 100"), ""));
        }
        Ok(each(cpus, &|_| Box::new(move |rounds| compute(busy, rounds))))
    }
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
