//! `hog`: a SCHED_FIFO task above the measuring threads that holds its CPU for a known time. A round
//! is one such time.

use std::sync::atomic::{AtomicU64, Ordering};

use tactus_model::CpuSet;
use tactus_model::activity::{self, Fault as Table};
use tactus_model::message::Refusal;

use super::Fault;
use crate::companion::{Work, settle};
use crate::measure::thread::make_fifo;
use crate::sys;

/// The fault.
pub struct Hog;

impl Fault for Hog {
    fn name(&self) -> &'static str {
        "hog"
    }

    fn works(&self, fault: &Table, cpus: &CpuSet, above: u32) -> Result<Vec<Work>, Refusal> {
        let Table::Hog(hog) = fault else {
            return Err(Refusal { reason: format!("`{}` is not hog", fault.kind()), hint: None });
        };
        let (length, every) = check(hog)?;
        // Tried here, where it can still be refused with its reason.
        let before = sys::affinity().unwrap_or_default();
        for cpu in cpus.iter() {
            make_fifo(cpu, above)?;
        }
        settle(&before);
        let work = |cpu| -> Work {
            Box::new(move |rounds| {
                let _ = rustix::mm::mlockall(rustix::mm::MlockAllFlags::CURRENT);
                if make_fifo(cpu, above).is_ok() {
                    disturb(length, every, rounds);
                }
            })
        };
        Ok(cpus.iter().map(work).collect())
    }
}

fn check(hog: &activity::Hog) -> Result<(u64, u64), Refusal> {
    let (length, every) = (hog.length.0, hog.every.0);
    if length == 0 || every <= length {
        return Err(Refusal {
            reason: format!("hog: {length} ns every {every} ns leaves nothing to the rest or does nothing"),
            hint: Some("give a length above zero and an `every` above the length".into()),
        });
    }
    Ok((length, every))
}

fn disturb(length: u64, every: u64, rounds: &AtomicU64) {
    let mut due = sys::now() + every;
    loop {
        sys::sleep_until(due);
        let end = sys::now() + length;
        while sys::now() < end {}
        rounds.fetch_add(1, Ordering::Relaxed);
        // A hog that came late keeps its distance to the next.
        due = (due + every).max(sys::now() + every - length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tactus_model::Nanos;

    #[test]
    fn a_hog_without_end_or_without_length_is_refused() {
        let hog = |length, every| activity::Hog { length: Nanos(length), every: Nanos(every) };
        assert!(check(&hog(1_000, 1_000)).is_err());
        assert!(check(&hog(0, 1_000)).is_err());
        assert_eq!(check(&hog(1_000, 2_000)).unwrap(), (1_000, 2_000));
    }
}
