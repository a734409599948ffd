//! On which CPUs a thread may run.
#![expect(unsafe_code, reason = "system calls that no safe crate offers")]

use std::io;

use tactus_model::CpuSet;
use tactus_model::cpus::MAX_CPU;

const MASK_WORDS: usize = (MAX_CPU as usize + 1) / 64;

/// The CPUs on which the calling thread may run.
///
/// # Errors
/// Those of sched_getaffinity(2).
pub fn affinity() -> io::Result<CpuSet> {
    affinity_of(0)
}

/// The CPUs on which a thread may run; 0 is the calling one.
///
/// # Errors
/// Those of sched_getaffinity(2).
pub fn affinity_of(thread: u32) -> io::Result<CpuSet> {
    let mut mask = [0u64; MASK_WORDS];
    // SAFETY: the kernel writes at most the given number of bytes, which `mask` has.
    let written =
        unsafe { libc::syscall(libc::SYS_sched_getaffinity, thread, size_of_val(&mask), mask.as_mut_ptr()) };
    if written < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((0..=MAX_CPU).filter(|cpu| mask[*cpu as usize / 64] >> (cpu % 64) & 1 == 1).collect())
}

/// The CPUs on which any thread may run, as words of 64 bits without zeros at the end. A set is not made here, because
/// thousands of threads may be asked.
///
/// # Errors
/// ESRCH when it has ended.
pub fn affinity_mask(thread: u32) -> io::Result<Vec<u64>> {
    let mut mask = [0u64; MASK_WORDS];
    // SAFETY: the kernel writes at most the given number of bytes, which `mask` has.
    let written =
        unsafe { libc::syscall(libc::SYS_sched_getaffinity, thread, size_of_val(&mask), mask.as_mut_ptr()) };
    if written < 0 {
        return Err(io::Error::last_os_error());
    }
    let end = mask.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
    Ok(mask[..end].to_vec())
}

/// Says on which CPUs the calling thread may run.
///
/// # Errors
/// EINVAL when none of them is online and allowed by the cpuset.
pub fn set_affinity(cpus: &CpuSet) -> io::Result<()> {
    set_affinity_of(0, cpus)
}

/// Says on which CPUs a thread may run; 0 is the calling one.
///
/// # Errors
/// Those of [`set_affinity`]; EINVAL also for a thread of the kernel that is bound to its CPU.
pub fn set_affinity_of(thread: u32, cpus: &CpuSet) -> io::Result<()> {
    let mut mask = [0u64; MASK_WORDS];
    for cpu in cpus.iter().filter(|cpu| *cpu <= MAX_CPU) {
        mask[cpu as usize / 64] |= 1 << (cpu % 64);
    }
    // SAFETY: the kernel reads the given number of bytes, which `mask` has.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_setaffinity, thread, size_of_val(&mask), mask.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affinity_can_be_read_and_set() {
        let before = affinity().unwrap();
        assert!(!before.is_empty());
        let one = before.take(1);
        set_affinity(&one).unwrap();
        assert_eq!(affinity().unwrap(), one);
        set_affinity(&before).unwrap();
        assert!(set_affinity(&CpuSet::one(MAX_CPU)).is_err(), "no machine of ours has CPU 8191");
    }
}
