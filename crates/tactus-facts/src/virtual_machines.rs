//! Processes that run virtual machines: how their memory is held.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader};

use tactus_model::facts::Reading;

use crate::read::{Collector, refused};
use crate::threads::{Group, field, owner, status};

/// Machines that are looked at.
const MOST_MACHINES: usize = 32;
/// The kernel walks each page for the map of a process, about 10 ms for a GiB of small pages; huge
/// pages cost nothing. In kB.
const MOST_SMALL_PAGES: u64 = 4 << 20;

/// Keeps what the facts say of each of them.
pub fn keep(it: &mut Collector, groups: &[Group]) {
    for group in groups.iter().filter(|group| runs_a_machine(group)).take(MOST_MACHINES) {
        let pid = group.pid;
        it.facts.keep(format!("vm:{pid}:name"), group.name.as_str());
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).map(|bytes| arguments(&bytes));
        it.keep_result(format!("vm:{pid}:cmdline"), arguments);
        let text = status(pid).unwrap_or_default();
        let user = owner(&text).map_or(Reading::Absent, |user| Reading::Text(user.into()));
        it.facts.0.insert(format!("vm:{pid}:uid"), user);
        for key in ["VmLck", "VmRSS", "HugetlbPages"] {
            let reading = field(&text, key).map_or(Reading::Absent, |value| Reading::Text(value.into()));
            it.facts.0.insert(format!("vm:{pid}:{key}"), reading);
        }
        let small = field(&text, "VmRSS").and_then(kilobytes).unwrap_or(0);
        let pages = if small > MOST_SMALL_PAGES {
            Reading::Unreadable(format!(
                "the process has {small} kB in small pages: reading its map would take too long"
            ))
        } else {
            match fs::File::open(format!("/proc/{pid}/smaps"))
                .and_then(|file| by_page_size(BufReader::new(file)))
            {
                Ok(text) => Reading::Text(text),
                Err(error) => refused(&error),
            }
        };
        it.facts.0.insert(format!("vm:{pid}:hugepages"), pages);
    }
}

fn runs_a_machine(group: &Group) -> bool {
    // A name has at most 15 bytes.
    const NAMES: &[&str] =
        &["qemu-system", "qemu-kvm", "cloud-hyperviso", "firecracker", "crosvm", "kvmtool", "lkvm"];
    group.virtual_cpu || NAMES.iter().any(|name| group.name.starts_with(name))
}

/// Arguments with blanks between, as they were given.
fn arguments(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim_end_matches('\0').replace('\0', " ")
}

fn kilobytes(value: &str) -> Option<u64> {
    value.split_whitespace().next()?.parse().ok()
}

/// Resident memory by page size, in kB, from the lines of smaps: `Rss` has no hugetlb pages, which
/// have two lines of their own (Documentation/filesystems/proc.rst).
fn by_page_size(lines: impl BufRead) -> io::Result<String> {
    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    let mut size = 0;
    for line in lines.lines() {
        let line = line?;
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

    #[test]
    fn memory_is_counted_by_the_size_of_its_pages() {
        let smaps = "7f0000000000-7f0100000000 rw-p 00000000 00:0f 1 /dev/hugepages/x (deleted)\nSize:  4194304 kB\n\
                     KernelPageSize:  1048576 kB\nMMUPageSize:     1048576 kB\nRss:                   0 kB\n\
                     Shared_Hugetlb:        0 kB\nPrivate_Hugetlb: 4194304 kB\n\
                     7f0200000000-7f0200010000 r-xp 00000000 fe:01 77 /usr/bin/qemu: odd\nKernelPageSize:        4 kB\n\
                     Rss:                  40 kB\nPrivate_Hugetlb:       0 kB\n";
        assert_eq!(by_page_size(smaps.as_bytes()).unwrap(), "4 kB: 40, 1048576 kB: 4194304");
        assert_eq!(by_page_size(&b"Rss: x\nKernelPageSize:\n:\n"[..]).unwrap(), "");
    }

    #[test]
    fn arguments_stand_apart() {
        assert_eq!(arguments(b"qemu\0-name\0a b,debug-threads=on\0"), "qemu -name a b,debug-threads=on");
        assert_eq!(arguments(b""), "");
    }
}
