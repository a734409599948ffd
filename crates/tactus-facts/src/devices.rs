//! PCI devices, network queues, directories and programs.

use std::collections::BinaryHeap;
use std::fs;
use std::path::Path;

use tactus_model::facts::Reading;

use crate::files::{LISTS, PROGRAMS};
use crate::read::{Collector, names, refused, text};

const PCI: &str = "/sys/bus/pci/devices/";
const NET: &str = "/sys/class/net/";
/// A host of containers has thousands of interfaces that are no devices.
const MOST_INTERFACES: usize = 256;

/// Keeps all of them.
pub fn keep(it: &mut Collector) {
    for address in it.list(PCI).iter() {
        let text = pci(&format!("{PCI}{address}"));
        it.facts.keep(format!("pci:{address}"), text);
    }
    for name in it.list(NET).iter().take(MOST_INTERFACES) {
        let queues = it.list(&format!("{NET}{name}/queues"));
        let count = |kind: &str| queues.iter().filter(|queue| queue.starts_with(kind)).count();
        let text = format!("rx={} tx={}", count("rx-"), count("tx-"));
        it.facts.keep(format!("net:{name}:queues"), text);
    }
    for directory in LISTS {
        it.keep_result(format!("list:{directory}"), names(directory).map(sorted));
    }
    for program in PROGRAMS {
        let found = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"]
            .iter()
            .map(|directory| format!("{directory}/{program}"))
            .find(|path| Path::new(path).is_file());
        it.facts.0.insert(format!("program:{program}"), found.map_or(Reading::Absent, Reading::Text));
    }
    // Whether this user may see the directory at all decides what its absence says.
    if let Err(error) = fs::read_dir("/sys/kernel/debug/sched") {
        it.facts.0.insert("list:/sys/kernel/debug/sched".into(), refused(&error));
    }
}

/// Names with blanks between. A heap sorts them in less code than a sort.
fn sorted(names: Vec<String>) -> String {
    BinaryHeap::from(names).into_sorted_vec().join(" ")
}

/// `class vendor:device driver numa group`, `-` for what it does not have.
fn pci(directory: &str) -> String {
    let uevent = text(&format!("{directory}/uevent")).unwrap_or_default();
    let node = text(&format!("{directory}/numa_node"));
    let group = fs::read_link(format!("{directory}/iommu_group")).ok();
    let group = group.as_deref().and_then(|path| path.file_name()?.to_str());
    described(&uevent, node.as_deref(), group)
}

fn described(uevent: &str, node: Option<&str>, group: Option<&str>) -> String {
    let value =
        |key: &str| uevent.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).unwrap_or("-");
    // `PCI_CLASS=60000` has lost its zeros in front.
    let class =
        u32::from_str_radix(value("PCI_CLASS"), 16).map_or("-".into(), |class| format!("{class:#08x}"));
    let id = value("PCI_ID").to_ascii_lowercase();
    // -1 is the kernel's word for no node.
    let node = node.filter(|node| *node != "-1").unwrap_or("-");
    format!("{class} {id} {} {node} {}", value("DRIVER"), group.unwrap_or("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_told_in_a_line() {
        let uevent = "DRIVER=vfio-pci\nPCI_CLASS=20000\nPCI_ID=8086:10FB\nPCI_SUBSYS_ID=8086:0003\n";
        assert_eq!(described(uevent, Some("0"), Some("12")), "0x020000 8086:10fb vfio-pci 0 12");
        assert_eq!(
            described("PCI_CLASS=60000\nPCI_ID=8086:1237", Some("-1"), None),
            "0x060000 8086:1237 - - -"
        );
        assert_eq!(described("", None, None), "- - - - -");
    }
}
