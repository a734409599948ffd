//! Files of `/proc/PID` whose contents and length a process of any user controls. With `PR_SET_MM_MAP`, which needs no
//! privilege, 2 MB of memory become an environment of 1 TiB. Only the beginning of these files is read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::patience::in_time;

/// The most that is read of an environment. execve(2) gives no process more than 6 MiB.
pub const ENVIRONMENT: u64 = 8 << 20;
/// Nearly all environments are shorter than this.
pub const USUAL_ENVIRONMENT: u64 = 64 << 10;
/// The most that is read of a command line.
pub const COMMAND_LINE: u64 = 64 << 10;
/// The most that is read of any other of these files: a process in 65,536 groups has a status of 0.7 MB.
pub const OTHERS: u64 = 4 << 20;

/// The limit for reading a file; `None` if it does not belong to another process, so that the kernel alone decides its
/// contents.
#[must_use]
pub fn most(path: &Path) -> Option<u64> {
    let below = path.strip_prefix("/proc").ok()?;
    let process = below.components().next()?.as_os_str();
    if !process.as_encoded_bytes().iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(match path.file_name()?.to_str() {
        Some("environ") => ENVIRONMENT,
        Some("cmdline") => COMMAND_LINE,
        _ => OTHERS,
    })
}

/// Files that show a process's memory or wait for it (`proc_mem_open`, `access_remote_vm`, `lock_trace` in
/// fs/proc/base.c).
const OF_MEMORY: [&str; 12] = [
    "auxv",
    "cmdline",
    "environ",
    "maps",
    "mem",
    "numa_maps",
    "pagemap",
    "personality",
    "smaps",
    "smaps_rollup",
    "stack",
    "syscall",
];

/// The contents of a file: all of it, or the beginning of a process's file.
///
/// # Errors
/// Those of the file system; `TimedOut` when its process keeps its memory locked.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    beginning(path, most(path).unwrap_or(u64::MAX))
}

/// The beginning of a file, up to `most` bytes.
///
/// # Errors
/// Those of [`read`].
pub fn beginning(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let own = path.to_owned();
    let look = move || begin_of(open(&own)?, most);
    if is_of_memory(path) { in_time(path, look) } else { look() }
}

/// The beginning of an open file, up to `most` bytes.
///
/// # Errors
/// Those of the file system.
pub fn begin_of(file: impl Read, most: u64) -> io::Result<Vec<u8>> {
    // Values of the kernel are read in one piece: some files (tracefs' osnoise/cpus) refuse to be read in small ones.
    let mut bytes = Vec::with_capacity(4096);
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether reading a file waits for another process's memory.
#[must_use]
pub fn is_of_memory(path: &Path) -> bool {
    most(path).is_some() && path.file_name().is_some_and(|name| OF_MEMORY.iter().any(|of| name == *of))
}

#[expect(clippy::disallowed_methods, reason = "processes are the same for the probe, its parts and the door")]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Whether a thread is the kernel's own, by its `stat`: anybody may give his the name of one of those.
#[must_use]
pub fn is_of_kernel(stat: &str) -> bool {
    /// `PF_KTHREAD` (include/linux/sched.h).
    const KTHREAD: u64 = 0x0020_0000;
    // The name stands in brackets and may hold anything; the flags are the ninth field (proc_pid_stat(5)).
    let flags = stat.rsplit_once(')').and_then(|(_, fields)| fields.split_ascii_whitespace().nth(9 - 3));
    flags.and_then(|flags| flags.parse::<u64>().ok()).is_some_and(|flags| flags & KTHREAD != 0)
}

/// When a process or thread was started, in ticks since the machine was, by its `stat`. With it a number is one thread's for
/// as long as the machine runs.
#[must_use]
pub fn started(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
}

/// Whether a user is a person or belongs to a container, rather than a service. Users below 1000 and from 60578 to
/// 65535 belong to the system. Sources: Debian's policy, 9.2.2, where libvirt's QEMU is 64055; systemd's UIDS-GIDS,
/// where systemd-homed's people are 60001 to 60513, and those of the host in containers up to 60577.
#[must_use]
pub const fn is_ordinary_user(uid: u32) -> bool {
    matches!(uid, 1000..=60_577 | 65_536..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_a_process_is_read_up_to_a_length_however_long_it_is() {
        for (path, length) in [
            ("/proc/7/environ", ENVIRONMENT),
            ("/proc/7/task/8/environ", ENVIRONMENT),
            ("/proc/7/cmdline", COMMAND_LINE),
            ("/proc/7/smaps", OTHERS),
            ("/proc/7/root/etc/hostname", OTHERS),
        ] {
            assert_eq!(most(Path::new(path)), Some(length), "{path}");
        }
        assert_eq!(begin_of(io::repeat(b'x'), COMMAND_LINE).unwrap().len() as u64, COMMAND_LINE);
    }

    #[test]
    fn what_waits_for_the_memory_of_a_process_is_read_in_time_or_not_at_all() {
        for path in ["/proc/7/environ", "/proc/7/task/8/cmdline", "/proc/7/smaps", "/proc/7/syscall"] {
            assert!(is_of_memory(Path::new(path)), "{path}");
        }
        for path in ["/proc/self/environ", "/proc/cmdline", "/proc/7/status", "/etc/maps"] {
            assert!(!is_of_memory(Path::new(path)), "{path}");
        }
    }

    /// Files of a process whose length the kernel alone decides, and it is short.
    const SHORT: [&str; 4] = ["comm", "stat", "schedstat", "sessionid"];

    /// Finds places where the probe and its parts, which read files without the door, read a file of another process
    /// whole. Their own files are in `/proc/self`.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the sources are looked at")]
    fn no_file_of_another_process_is_read_whole_beside_this_reader() {
        let (mut found, mut looked_at) = (Vec::new(), 0);
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut left: Vec<_> = ["tactus-facts", "tactus-measure", "tactus-probe"]
            .map(|name| crates.join(name).join("src"))
            .into();
        while let Some(path) = left.pop() {
            if path.is_dir() {
                left.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let own = text.split("#[cfg(test)]").next().unwrap();
            let lines: Vec<&str> = own.lines().collect();
            for (at, line) in lines.iter().enumerate() {
                let of_another = line.contains("/proc/{") || line.contains("\"/proc/\", &");
                let around = lines[at.saturating_sub(1)..lines.len().min(at + 2)].concat();
                let whole =
                    ["read_to_string(", "fs::read(", "read_to_end("].iter().any(|read| around.contains(read));
                looked_at += usize::from(of_another);
                let is_short = SHORT.iter().any(|name| line.contains(&format!("/{name}\"")));
                if of_another && whole && !is_short {
                    found.push(format!("{}:{}: {}", path.display(), at + 1, line.trim()));
                }
            }
        }
        assert!(looked_at > 10, "{looked_at}");
        assert!(found.is_empty(), "{found:#?}");
    }

    #[test]
    fn people_of_systemd_homed_are_people_and_services_are_not() {
        assert!([1000, 59_999, 60_001, 60_513, 60_577, 65_536, 524_288].into_iter().all(is_ordinary_user));
        assert!(![0, 104, 999, 60_578, 61_184, 64_055, 65_534].into_iter().any(is_ordinary_user));
    }

    #[test]
    fn a_thread_of_the_kernel_is_known_by_its_flags_and_not_by_its_name() {
        assert!(is_of_kernel("811 (timerlat/1) S 2 0 0 0 -1 2097216 0 0 0 0 0 5"));
        for other in [
            "811 (timerlat/1) S 1 811 811 0 -1 4194304 90 0 0 0 0 5",
            "811 (x) S 2 0 0 0 -1 2097216 0) S 1 811 811 0 -1 4194304 90 0",
            "811 (timerlat/1) S 2 0 0 0 -1",
            "",
        ] {
            assert!(!is_of_kernel(other), "{other}");
        }
    }

    #[test]
    fn a_file_of_the_kernel_is_read_whole() {
        for path in ["/proc/kallsyms", "/sys/kernel/btf/vmlinux", "/home/7/cmdline", "/proc/sys/7/environ"] {
            assert_eq!(most(Path::new(path)), None, "{path}");
        }
    }
}
