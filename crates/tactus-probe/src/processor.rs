//! The processor's counts of a CPU: system management interrupts, and misses of the last-level cache.
//!
//! To read either, the kernel interrupts the CPU in question. So they are read once before and once after the
//! measurement, for each CPU rather than each thread, and never meanwhile.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use tactus_measure::counters::OfCpu;
use tactus_model::CpuSet;
use tactus_model::message::Note;

use crate::sys::perf;

/// MSR_SMI_COUNT (Intel).
const SMI_COUNT: u64 = 0x34;

/// The counters of some CPUs.
#[derive(Default)]
pub struct Processor {
    smi: BTreeMap<u32, (File, u64)>,
    misses: BTreeMap<u32, OwnedFd>,
    /// Misses are to be counted.
    misses_on: CpuSet,
}

impl Processor {
    /// Finds out which events can be counted on `cpus`, and notes the side effects. `misses`: cache misses are
    /// requested.
    pub fn find(cpus: &CpuSet, misses: bool, notes: &mut Vec<Note>) -> Self {
        let mut found = Self::default();
        for cpu in cpus.iter() {
            let Ok(msr) = File::open(format!("/dev/cpu/{cpu}/msr")) else { continue };
            if let Some(now) = read(&msr) {
                found.smi.insert(cpu, (msr, now));
            }
        }
        if !found.smi.is_empty() {
            let on: CpuSet = found.smi.keys().copied().collect();
            notes.push(Note::side_effect(format!(
                "the counter of system management interrupts of CPUs {on} is read just before and just after the \
                 measurement: each time the kernel interrupts the CPU for it"
            )));
        }
        if misses {
            found.misses_on = cpus.clone();
            notes.push(Note::side_effect(format!(
                "the misses of the last-level cache are counted on CPUs {cpus}, with a performance counter \
                 of each. The kernel interrupts the CPU to start it and, after the measurement, to read it"
            )));
        }
        found
    }

    /// Counts from now on. Returns a note if the cache's misses cannot be counted.
    pub fn begin(&mut self) -> Option<Note> {
        for (msr, before) in self.smi.values_mut() {
            *before = read(msr).unwrap_or(*before);
        }
        let mut refused = None;
        for cpu in self.misses_on.iter() {
            match perf::count_cache_misses(cpu) {
                Ok(counter) => {
                    self.misses.insert(cpu, counter);
                }
                Err(error) => refused = Some((cpu, error)),
            }
        }
        let (cpu, error) = refused?;
        Some(Note::obstacle(
            format!("the misses of the last-level cache cannot be counted on CPU {cpu}: {error}"),
            "it needs performance counters (few virtual machines have them) and root, or perf_event_paranoid \
                at 0 or below",
        ))
    }

    /// The counts since the beginning, by CPU.
    pub fn end(&self) -> BTreeMap<u32, OfCpu> {
        let mut counted = BTreeMap::<u32, OfCpu>::new();
        for (cpu, (msr, before)) in &self.smi {
            counted.entry(*cpu).or_default().smi = read(msr).map(|now| now.saturating_sub(*before));
        }
        for (cpu, counter) in &self.misses {
            counted.entry(*cpu).or_default().llc_misses = cache_misses(counter);
        }
        counted
    }
}

fn read(msr: &File) -> Option<u64> {
    let mut bytes = [0; 8];
    msr.read_exact_at(&mut bytes, SMI_COUNT).ok()?;
    Some(u64::from_le_bytes(bytes))
}

/// A counter of [`perf::count_cache_misses`]; `None`: it could not count all the time.
fn cache_misses(counter: &OwnedFd) -> Option<u64> {
    let mut bytes = [0; 8];
    // A pinned counter that the processor had no room for reads as nothing.
    (rustix::io::read(counter, &mut bytes) == Ok(8)).then(|| u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys;

    #[test]
    fn cache_misses_are_counted_or_refused_but_never_made_up() {
        let cpu = sys::affinity().unwrap().first().unwrap();
        match perf::count_cache_misses(cpu) {
            Ok(counter) => assert!(cache_misses(&counter) <= cache_misses(&counter)),
            Err(error) => {
                let known =
                    [libc::ENOENT, libc::ENODEV, libc::EOPNOTSUPP, libc::EACCES, libc::EPERM, libc::ENOSYS];
                assert!(known.contains(&error.raw_os_error().unwrap()), "{error}");
            }
        }
    }

    #[test]
    fn only_requested_events_are_counted() {
        let cpus = sys::affinity().unwrap();
        let mut notes = Vec::new();
        let mut processor = Processor::find(&cpus, false, &mut notes);
        assert_eq!(processor.begin(), None);
        assert!(processor.misses.is_empty());
        assert!(processor.end().values().all(|counted| counted.llc_misses.is_none()));
        assert_eq!(notes.len(), usize::from(!processor.smi.is_empty()), "{notes:?}");
    }

    #[test]
    fn cache_misses_that_are_asked_for_are_a_side_effect_and_there_or_refused() {
        let cpus = CpuSet::one(sys::affinity().unwrap().first().unwrap());
        let mut notes = Vec::new();
        let mut processor = Processor::find(&cpus, true, &mut notes);
        assert!(notes.iter().any(|note| note.text.contains("last-level cache are counted")), "{notes:?}");
        let refused = processor.begin();
        assert_eq!(refused.is_none(), processor.misses.len() == 1, "{refused:?}");
    }
}
