//! Processes that run virtual machines: whose they are, which vCPUs KVM runs for them, how their memory is held.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use tactus_model::CpuSet;
use tactus_model::facts::Reading;
use tactus_model::patience::in_time;
use tactus_model::process_files::{COMMAND_LINE, is_ordinary_user};
use tactus_model::qemu_arguments::kept;

use crate::read::{Collector, of_process, refused};
use crate::threads::{Group, field, owner, status};

/// Machines that are looked at, of each service's user and of all ordinary users together.
const MOST_MACHINES: usize = 64;
/// Open files that are looked at, for the same. QEMU opens its vCPUs among the first.
const MOST_FILES: usize = 64 << 10;
/// Open files of one process that are looked at.
const MOST_OF_ONE: usize = 4096;
/// The kernel walks each page for the map of a process, about 10 ms for a GiB of small pages; huge
/// pages cost nothing. In kB.
const MOST_SMALL_PAGES: u64 = 4 << 20;
/// Bytes of such a map that are read, for the same: about 10,000 mappings, and QEMU has some hundred.
const MOST_MAP: u64 = 8 << 20;

/// The rest of the budget for processes of the same users: the processes of one ordinary user use up no budget of
/// others.
struct Purse {
    machines: usize,
    files: usize,
    map: u64,
}

/// Keeps what the facts say of each of them.
pub fn keep(it: &mut Collector, groups: &[Group]) {
    let mut purses: BTreeMap<Option<u32>, Purse> = BTreeMap::new();
    let mut left_out = 0;
    for group in groups.iter().filter(|group| runs_a_machine(group)) {
        let text = status(group.pid).unwrap_or_default();
        let user = owner(&text).and_then(|uid| uid.parse().ok());
        let purse = purses.entry(user.filter(|uid| !is_ordinary_user(*uid))).or_insert(Purse {
            machines: MOST_MACHINES,
            files: MOST_FILES,
            map: MOST_MAP,
        });
        if purse.machines == 0 {
            left_out += 1;
            continue;
        }
        purse.machines -= 1;
        keep_one(it, group, &text, purse);
    }
    if left_out > 0 {
        it.facts.keep("vms:cut", left_out.to_string());
    }
}

fn keep_one(it: &mut Collector, group: &Group, status: &str, purse: &mut Purse) {
    let pid = group.pid;
    it.facts.keep(format!("vm:{pid}:name"), group.name.as_str());
    let line = of_process(&format!("/proc/{pid}/cmdline"));
    let is_cut = line.as_ref().is_ok_and(|bytes| bytes.len() as u64 >= COMMAND_LINE);
    let name = format!("vm:{pid}:cmdline");
    it.keep_result(name.as_str(), line.map(|bytes| arguments(&bytes)));
    if let Some(reading) = it.facts.0.get_mut(&name)
        && let (true, Reading::Text(text)) = (is_cut, &mut *reading)
    {
        *reading = Reading::Cut(std::mem::take(text));
    }
    let user = owner(status).map_or(Reading::Absent, |user| Reading::Text(user.into()));
    it.facts.0.insert(format!("vm:{pid}:uid"), user);
    it.keep_result(format!("vm:{pid}:vcpus"), virtual_cpus(pid, &mut purse.files));
    for key in ["VmLck", "VmRSS", "HugetlbPages"] {
        let reading = field(status, key).map_or(Reading::Absent, |value| Reading::Text(value.into()));
        it.facts.0.insert(format!("vm:{pid}:{key}"), reading);
    }
    let small = field(status, "VmRSS").and_then(kilobytes).unwrap_or(0);
    let pages = if small > MOST_SMALL_PAGES {
        Reading::Unreadable(format!(
            "the process has {small} kB in small pages: reading its map would take too long"
        ))
    } else {
        let map = format!("/proc/{pid}/smaps");
        let mut left = purse.map;
        // One that is not read in time is not known to have taken anything.
        let look = {
            let map = map.clone();
            move || Ok((fs::File::open(map).and_then(|file| by_page_size(file, &mut left)), left))
        };
        let found = in_time(Path::new(&map), look).and_then(|(found, left)| {
            purse.map = left;
            found
        });
        match found {
            Ok(text) => Reading::Text(text),
            Err(error) => refused(&error),
        }
    };
    it.facts.0.insert(format!("vm:{pid}:hugepages"), pages);
}

fn runs_a_machine(group: &Group) -> bool {
    // A name has at most 15 bytes.
    const NAMES: &[&str] =
        &["qemu-system", "qemu-kvm", "cloud-hyperviso", "firecracker", "crosvm", "kvmtool", "lkvm"];
    group.virtual_cpu || NAMES.iter().any(|name| group.name.starts_with(name))
}

/// The vCPUs that a process has from KVM, by the numbers that KVM gives them. `left` open files may be looked at.
fn virtual_cpus(pid: u32, left: &mut usize) -> io::Result<String> {
    let mut numbers = CpuSet::default();
    for (n, entry) in fs::read_dir(format!("/proc/{pid}/fd"))?.flatten().enumerate() {
        if n >= MOST_OF_ONE {
            break;
        }
        *left =
            left.checked_sub(1).ok_or_else(|| io::Error::other("too many files are open to look at all"))?;
        let Ok(file) = fs::read_link(entry.path()) else { continue };
        if let Some(number) = virtual_cpu(&file.to_string_lossy()) {
            numbers.insert(number);
        }
    }
    Ok(numbers.to_string())
}

/// The number of a vCPU by the name of its file. Only KVM makes a file of this name: the name of a file in a
/// directory begins with a slash.
fn virtual_cpu(file: &str) -> Option<u32> {
    file.strip_prefix("anon_inode:kvm-vcpu:")?.parse().ok()
}

/// The part of the arguments that is kept, separated by blanks.
fn arguments(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    kept(text.trim_end_matches('\0').split('\0'))
}

fn kilobytes(value: &str) -> Option<u64> {
    value.split_whitespace().next()?.parse().ok()
}

/// Resident memory by page size, in kB, from the lines of smaps. `Rss` does not contain hugetlb pages, which have two
/// separate lines (Documentation/filesystems/proc.rst). At most `left` bytes are read.
fn by_page_size(map: impl Read, left: &mut u64) -> io::Result<String> {
    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    let mut size = 0;
    let mut lines = BufReader::new(map.take(*left));
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = lines.read_until(b'\n', &mut bytes)?;
        *left = left.saturating_sub(read as u64);
        if *left == 0 {
            return Err(io::Error::other("its map is too long to be read"));
        }
        if read == 0 {
            break;
        }
        let line = String::from_utf8_lossy(&bytes);
        let Some((key, value)) = line.split_once(':') else { continue };
        match key {
            "KernelPageSize" => size = kilobytes(value).unwrap_or(0),
            "Rss" | "Shared_Hugetlb" | "Private_Hugetlb" => {
                let kept = sizes.entry(size).or_default();
                *kept = kept.saturating_add(kilobytes(value).unwrap_or(0));
            }
            _ => {}
        }
    }
    let text: Vec<_> = sizes
        .iter()
        .filter(|(_, kept)| **kept > 0)
        .map(|(size, kept)| format!("{size} kB: {kept}"))
        .collect();
    Ok(text.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(map: &str) -> String {
        let mut left = u64::MAX;
        by_page_size(map.as_bytes(), &mut left).unwrap()
    }

    #[test]
    fn memory_is_counted_by_the_size_of_its_pages() {
        let smaps = "7f0000000000-7f0100000000 rw-p 00000000 00:0f 1 /dev/hugepages/x (deleted)\nSize:  4194304 kB\n\
                     KernelPageSize:  1048576 kB\nMMUPageSize:     1048576 kB\nRss:                   0 kB\n\
                     Shared_Hugetlb:        0 kB\nPrivate_Hugetlb: 4194304 kB\n\
                     7f0200000000-7f0200010000 r-xp 00000000 fe:01 77 /usr/bin/qemu: odd\nKernelPageSize:        4 kB\n\
                     Rss:                  40 kB\nPrivate_Hugetlb:       0 kB\n";
        assert_eq!(pages(smaps), "4 kB: 40, 1048576 kB: 4194304");
        assert_eq!(pages("Rss: x\nKernelPageSize:\n:\n"), "");
    }

    #[test]
    fn maps_without_an_end_are_read_up_to_a_length_together() {
        let endless = || io::repeat(b'x');
        let mut left = MOST_MAP;
        let error = by_page_size(endless(), &mut left).unwrap_err();
        assert_eq!((error.to_string().as_str(), left), ("its map is too long to be read", 0));
        assert!(by_page_size(&b"Rss: 4 kB\n"[..], &mut left).is_err(), "nothing is left for the next one");
    }

    #[test]
    fn only_files_of_kvm_are_vcpus() {
        assert_eq!(virtual_cpu("anon_inode:kvm-vcpu:3"), Some(3));
        for other in [
            "/tmp/anon_inode:kvm-vcpu:3",
            "anon_inode:kvm-vm",
            "anon_inode:kvm-vcpu:",
            "anon_inode:kvm-vcpu:x",
        ] {
            assert_eq!(virtual_cpu(other), None, "{other}");
        }
        let mut left = MOST_FILES;
        assert_eq!(virtual_cpus(std::process::id(), &mut left).unwrap(), "");
        assert!(left < MOST_FILES);
        assert!(virtual_cpus(std::process::id(), &mut 0).is_err());
    }

    #[test]
    fn arguments_stand_apart_and_secrets_are_left_out() {
        let line = b"/usr/bin/qemu\0-name\0a,debug-threads=on\0-object\0secret,id=s,data=x\0";
        assert_eq!(arguments(line), "qemu -name a,debug-threads=on");
        assert_eq!(arguments(b""), "");
    }
}
