//! Keeps a run's threads on housekeeping CPUs, so that none of them wakes up on a measured CPU.
//!
//! A process inherits the CPUs of the thread that starts it, but must not inherit these. A probe asks for the CPUs on
//! which it may measure, and the threads of a guest have separate places.

use std::io;
use std::sync::Mutex;

use rustix::thread::{CpuSet as Mask, sched_getaffinity, sched_setaffinity};
use tactus_model::CpuSet;

/// The CPUs with which a process starts meanwhile.
static WHOLE: Mutex<Option<Mask>> = Mutex::new(None);

/// A thread keeps to its CPUs until this is dropped, on that thread.
pub struct House {
    before: Mask,
}

impl Drop for House {
    fn drop(&mut self) {
        // CPUs that have gone meanwhile: the kernel places it.
        let _ = sched_setaffinity(None, &self.before);
        if let Ok(mut whole) = WHOLE.lock() {
            *whole = None;
        }
    }
}

/// Keeps this thread, and those that it starts, on these CPUs.
///
/// # Errors
/// When none of them can be used.
pub fn keep(cpus: &CpuSet) -> io::Result<House> {
    let before = sched_getaffinity(None)?;
    sched_setaffinity(None, &mask(cpus)?)?;
    if let Ok(mut whole) = WHOLE.lock() {
        *whole = Some(before);
    }
    Ok(House { before })
}

/// Does something while what this thread starts begins on all CPUs that we may use.
pub fn outside<T>(begin: impl FnOnce() -> T) -> T {
    let whole = WHOLE.lock().ok().and_then(|whole| *whole);
    let Some((whole, here)) = whole.zip(sched_getaffinity(None).ok()) else { return begin() };
    let moved = sched_setaffinity(None, &whole).is_ok();
    let begun = begin();
    if moved {
        // As in drop.
        let _ = sched_setaffinity(None, &here);
    }
    begun
}

/// As the kernel takes it.
///
/// # Errors
/// A CPU beyond its 1024.
pub fn mask(cpus: &CpuSet) -> io::Result<Mask> {
    let mut mask = Mask::new();
    for cpu in cpus.iter() {
        let cpu = usize::try_from(cpu).unwrap_or(usize::MAX);
        if cpu >= Mask::MAX_CPU {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("CPU {cpu} is beyond the mask")));
        }
        mask.set(cpu);
    }
    Ok(mask)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Invocation, Real, System};

    fn own() -> String {
        let status = Real.text("/proc/thread-self/status").unwrap();
        status.lines().find(|line| line.starts_with("Cpus_allowed_list")).unwrap().to_owned()
    }

    #[test]
    fn a_thread_keeps_to_its_cpus_and_what_it_starts_does_not() {
        let before = own();
        let first = topology_first(&before);
        let house = keep(&CpuSet::one(first)).unwrap();
        assert_eq!(own(), format!("Cpus_allowed_list:\t{first}"));
        let inherited = std::thread::spawn(own).join().unwrap();
        assert_eq!(inherited, own(), "a thread of ours keeps to them, too");
        let asked = Invocation::new(["grep", "Cpus_allowed_list", "/proc/self/status"]);
        assert_eq!(Real.run(&asked).unwrap().text().trim_end(), before);
        assert_eq!(own(), format!("Cpus_allowed_list:\t{first}"));
        drop(house);
        assert_eq!(own(), before);
        assert_eq!(Real.run(&asked).unwrap().text().trim_end(), before);
    }

    fn topology_first(line: &str) -> u32 {
        let list: CpuSet = line.split_whitespace().last().unwrap().parse().unwrap();
        list.first().unwrap()
    }

    #[test]
    fn what_is_no_place_changes_nothing() {
        let before = own();
        assert!(keep(&CpuSet::one(4000)).is_err());
        assert!(keep(&CpuSet::default()).is_err());
        assert_eq!(own(), before);
    }
}
