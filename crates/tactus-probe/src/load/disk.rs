//! `disk`: writes a file, brings it to the disk (fsync) and reads it back from there, for ever. A round is 64 KiB
//! written or read.
//!
//! The file has no name, so it is gone when the load ends in any way.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Advice, Mode, OFlags};
use rustix::io::Errno;
use tactus_model::CpuSet;
use tactus_model::catalogue::load::Disk;
use tactus_model::message::Refusal;
use tactus_model::size::Bytes;

use super::{length, next, pinned, refuse};
use crate::work::{Work, over};

/// The default directories for the file, in order: an image with the probe alone has only its root.
const DIRECTORIES: [&str; 3] = ["/var/tmp", "/tmp", "/"];
/// Bytes of a round.
const ROUND: u64 = 64 << 10;
/// Bytes between two fsyncs.
const SYNC: u64 = 1 << 20;
/// File systems without a disk (linux/magic.h).
const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];

pub fn works(table: &Disk, cpus: &CpuSet) -> Result<Vec<Work>, Refusal> {
    let bytes = table.bytes().0;
    let total = bytes * cpus.iter().count() as u64;
    let directory = match &table.directory {
        Some(directory) => usable(directory, total).map(|()| directory.as_str()),
        None => {
            let mut reasons = Vec::new();
            let found = DIRECTORIES
                .iter()
                .find(|directory| usable(directory, total).map_err(|reason| reasons.push(reason)).is_ok());
            found.copied().ok_or_else(|| reasons.join("; "))
        }
    };
    let directory = directory.map_err(|reason| {
        let hint = "name a directory on a writable disk there (directory = ...)";
        refuse(format!("disk: the file cannot be created: {reason}"), hint)
    })?;
    let mut works: Vec<Work> = Vec::new();
    for cpu in cpus.iter() {
        let file = unnamed(directory).map_err(|reason| refuse(reason, ""))?;
        let work = move |rounds: &AtomicU64| {
            if let Err(error) = churn(&file, bytes, rounds, || false) {
                over(&format!("its file: {error}"));
            }
        };
        works.push(pinned(cpu, Box::new(work)));
    }
    Ok(works)
}

/// Whether `total` bytes of files may be made in a directory; if not: why.
fn usable(directory: &str, total: u64) -> Result<(), String> {
    let file = unnamed(directory)?;
    let system = rustix::fs::fstatfs(&file).map_err(|error| at(directory, error))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "magic numbers have 32 bits")]
    if IN_MEMORY.contains(&(system.f_type as u32)) {
        return Err(format!("{directory} is in memory"));
    }
    let free = system.f_bavail.saturating_mul(u64::try_from(system.f_bsize).unwrap_or(0));
    if total > free / 2 {
        return Err(format!(
            "{} are more than half of the {} free in {directory}",
            Bytes(total),
            Bytes(free)
        ));
    }
    Ok(())
}

/// A file without a name, or the reason why it cannot be made.
#[inline(never)]
fn unnamed(directory: &str) -> Result<File, String> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let mut file = rustix::fs::open(directory, flags | OFlags::TMPFILE, mode);
    // A file system or kernel without O_TMPFILE.
    if let Err(Errno::OPNOTSUPP | Errno::ISDIR) = file {
        let path = format!("{directory}/.tactus-{}", std::process::id());
        file = rustix::fs::open(&path, flags | OFlags::CREATE | OFlags::EXCL, mode);
        if file.is_ok() {
            rustix::fs::unlink(&path).map_err(|error| at(directory, error))?;
        }
    }
    file.map(File::from).map_err(|error| at(directory, error))
}

#[inline(never)]
fn at(directory: &str, error: Errno) -> String {
    format!("{directory}: {error}")
}

fn churn(file: &File, bytes: u64, rounds: &AtomicU64, enough: impl Fn() -> bool) -> io::Result<()> {
    let mut state = 1;
    // Without a pattern: a file system may compress.
    let mut block: Vec<u8> = (0..ROUND).map(|_| next(&mut state).to_le_bytes()[3]).collect();
    while !enough() {
        for at in (0..bytes).step_by(length(ROUND)) {
            file.write_all_at(&block[..length(ROUND.min(bytes - at))], at)?;
            if (at + ROUND).is_multiple_of(SYNC) || at + ROUND >= bytes {
                file.sync_all()?;
            }
            rounds.fetch_add(1, Ordering::Relaxed);
        }
        // Drops the written data from the page cache, as far as the kernel agrees, so that it is read from the disk.
        let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
        for at in (0..bytes).step_by(length(ROUND)) {
            file.read_exact_at(&mut block[..length(ROUND.min(bytes - at))], at)?;
            rounds.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tactus_model::catalogue::Load;

    use crate::load;

    use super::*;

    fn count(directory: Option<&str>, bytes: u64) -> Result<usize, Refusal> {
        let table = Disk { directory: directory.map(str::to_owned), bytes: Some(Bytes(bytes)) };
        Ok(load::works(&Load::Disk(table), &"0-1".parse().unwrap())?.len())
    }

    #[test]
    fn a_place_that_is_absent_in_memory_read_only_or_too_small_is_refused_with_that() {
        let why = |directory, bytes| count(Some(directory), bytes).unwrap_err().reason;
        assert!(why("/no/such/place", 1).contains("/no/such/place: No such file"));
        assert!(why("/dev/shm", 1).contains("/dev/shm is in memory"));
        assert!(!why("/proc", 1).is_empty());
        assert!(why("/var/tmp", 1 << 40).contains("free in /var/tmp"));
        assert!(why("/var/tmp", 0).contains("bytes = 0B"));
        assert_eq!(count(Some("/var/tmp"), 1), Ok(2));
    }

    #[test]
    fn what_is_written_is_read_again_in_rounds_and_has_no_name() {
        let file = unnamed("/var/tmp").unwrap();
        let rounds = AtomicU64::new(0);
        let passes = AtomicU64::new(0);
        churn(&file, 3 * ROUND + 1, &rounds, || passes.fetch_add(1, Ordering::Relaxed) == 2).unwrap();
        assert_eq!(rounds.into_inner(), 2 * 2 * 4, "two passes of four pieces, written and read");
        assert_eq!(file.metadata().unwrap().len(), 3 * ROUND + 1);
        assert_eq!(std::os::unix::fs::MetadataExt::nlink(&file.metadata().unwrap()), 0);
    }
}
