//! Written after Documentation/arch/x86/resctrl.rst; not recorded from machines.

use std::cell::RefCell;
use std::rc::Rc;

use tactus_model::partition::Percent;
use tactus_system::Memory;

use super::*;

const INFO: &str = "/sys/fs/resctrl/info";

/// A machine with these lines in `schemata`, and for each resource its mask, least number of ways, ways
/// that devices fill, and groups.
fn machine(schemata: &str, info: &[(&str, &str, u32, &str, u32)]) -> Memory {
    let mut machine = Memory::new()
        .file("/sys/fs/resctrl/schemata", schemata)
        .file("/sys/fs/resctrl/cpus_list", "0-3\n")
        .file(format!("{INFO}/last_cmd_status"), "ok\n");
    for (resource, mask, least, devices, groups) in info {
        machine = machine
            .file(format!("{INFO}/{resource}/cbm_mask"), format!("{mask}\n"))
            .file(format!("{INFO}/{resource}/min_cbm_bits"), format!("{least}\n"))
            .file(format!("{INFO}/{resource}/shareable_bits"), format!("{devices}\n"))
            .file(format!("{INFO}/{resource}/num_closids"), format!("{groups}\n"));
    }
    machine
}

/// A Xeon with two sockets: L3 of 20 ways, DDIO in the upper two, bandwidth in steps of ten per cent.
fn intel() -> Memory {
    machine("    MB:0= 100;1= 100\n    L3:0=fffff;1=fffff\n", &[("L3", "fffff", 1, "c0000", 16)])
        .file(format!("{INFO}/MB/min_bandwidth"), "10\n")
        .file(format!("{INFO}/MB/bandwidth_gran"), "10\n")
        .file(format!("{INFO}/MB/num_closids"), "8\n")
}

fn parts(cache: Option<u32>, memory: Option<u32>) -> Partition {
    Partition { cache: cache.map(Percent), memory: memory.map(Percent) }
}

fn set(text: &str) -> CpuSet {
    text.parse().unwrap()
}

type Kept = Rc<RefCell<Vec<String>>>;

/// A promise that says when it is kept.
struct Promised(String, Kept);

impl Drop for Promised {
    fn drop(&mut self) {
        self.1.borrow_mut().push(self.0.clone());
    }
}

fn made(machine: &Memory, wanted: Partition, measured: &str) -> (Result<Divided<Promised>, String>, Kept) {
    let kept = Kept::default();
    let promise = |how: Undo| Ok(Promised(how.to_string(), Rc::clone(&kept)));
    let divided = make(machine, "1", wanted, &set(measured), &set("0-3"), promise);
    (divided, Rc::clone(&kept))
}

fn why(machine: &Memory, wanted: Partition) -> String {
    made(machine, wanted, "2-3").0.err().unwrap()
}

fn written(machine: &Memory, file: &str) -> String {
    machine.text(&format!("/sys/fs/resctrl/tactus-1-{file}")).unwrap_or_default()
}

#[test]
fn intel_ways_are_taken_from_the_end_that_devices_leave_alone() {
    let machine = intel();
    let (divided, kept) = made(&machine, parts(Some(50), Some(15)), "2-3");
    let divided = divided.unwrap();
    assert_eq!(written(&machine, "measured/schemata"), "L3:0=3ff;1=3ff\n");
    assert_eq!(written(&machine, "others/schemata"), "L3:0=ffc00;1=ffc00\nMB:0=20;1=20\n");
    assert_eq!(written(&machine, "measured/cpus_list"), "2-3\n".replace('-', ","));
    assert_eq!(written(&machine, "others/cpus_list"), "0,1\n");
    assert!(divided.words[0].contains("10 of the 20 ways"), "{:?}", divided.words);
    assert!(divided.words[1].contains("20 % of the memory bandwidth (asked for 15%)"), "{:?}", divided.words);
    assert!(kept.borrow().is_empty());
    drop(divided);
    assert_eq!(
        *kept.borrow(),
        [
            "removing the empty directory /sys/fs/resctrl/tactus-1-others",
            "removing the empty directory /sys/fs/resctrl/tactus-1-measured",
        ],
        "newest first"
    );
}

#[test]
fn only_the_caches_of_the_measured_cpus_are_divided() {
    let mut machine = intel();
    for (cpu, id) in [(2, "1"), (3, "1")] {
        let dir = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index3");
        machine = machine
            .file(format!("{dir}/level"), "3\n")
            .file(format!("{dir}/type"), "Unified\n")
            .file(format!("{dir}/id"), format!("{id}\n"));
    }
    made(&machine, parts(Some(25), None), "2-3").0.unwrap();
    assert_eq!(written(&machine, "measured/schemata"), "L3:1=1f\n");
    assert_eq!(written(&machine, "others/schemata"), "L3:1=fffe0\n");
}

#[test]
fn code_and_data_are_divided_alike() {
    let cdp = machine(
        "L3DATA:0=fffff\nL3CODE:0=fffff\n",
        &[("L3CODE", "fffff", 2, "0", 8), ("L3DATA", "fffff", 2, "0", 8)],
    );
    made(&cdp, parts(Some(1), None), "2-3").0.unwrap();
    assert_eq!(written(&cdp, "measured/schemata"), "L3CODE:0=3\nL3DATA:0=3\n", "at least min_cbm_bits");
    assert_eq!(written(&cdp, "others/schemata"), "L3CODE:0=ffffc\nL3DATA:0=ffffc\n");
}

#[test]
fn amd_divides_caches_but_counts_bandwidth_otherwise() {
    let amd = || {
        machine("    MB:0=2048;1=2048\n    L3:0=ffff;1=ffff\n", &[("L3", "ffff", 1, "0", 16)])
            .file(format!("{INFO}/MB/num_closids"), "16\n")
    };
    let divided = amd();
    assert!(made(&divided, parts(Some(99), None), "2-3").0.is_ok());
    assert_eq!(written(&divided, "others/schemata"), "L3:0=8000;1=8000\n");
    assert!(why(&amd(), parts(None, Some(20))).contains("AMD counts in eighths of a GB/s"));
}

#[test]
fn a_second_level_is_divided_where_the_third_cannot_be() {
    let atom = machine("L2:0=ff;1=ff\n", &[("L2", "ff", 1, "0", 4)]);
    made(&atom, parts(Some(50), None), "2-3").0.unwrap();
    assert_eq!(written(&atom, "measured/schemata"), "L2:0=f;1=f\n");
}

#[test]
fn what_cannot_be_divided_is_refused_and_nothing_is_left() {
    let watching = Memory::new().file(format!("{INFO}/L3_MON/mon_features"), "llc_occupancy\n");
    assert!(why(&watching, parts(Some(50), None)).contains("cannot divide its caches (no L3"));
    assert!(why(&watching, parts(None, Some(50))).contains("cannot limit memory bandwidth"));
    let few = machine("L3:0=fff\n", &[("L3", "fff", 1, "0", 2)]);
    assert!(why(&few, parts(Some(50), None)).contains("2 groups (num_closids) and 3 are needed"));
    let coarse = machine("L3:0=f\n", &[("L3", "f", 3, "0", 8)]);
    assert!(why(&coarse, parts(Some(50), None)).contains("cannot be divided"));
    let holes = machine("L3:0=f0f\n", &[("L3", "f0f", 1, "0", 8)]);
    assert!(why(&holes, parts(Some(50), None)).contains("not contiguous"));
    let taken = intel().file("/sys/fs/resctrl/theirs/schemata", "L3:0=1\n");
    assert!(why(&taken, parts(Some(50), None)).contains("`theirs`"));
    assert!(why(&intel(), parts(None, None)).contains("neither `cache` nor `memory`"));
    let (everybody, _) = made(&intel(), parts(Some(50), None), "0-3");
    assert!(everybody.err().unwrap().contains("all CPUs (0-3) are measured"));
    for rubbish in ["", "L3", "L3:", "L3:x=y;;=", "MB:0=-1"] {
        let machine = machine(rubbish, &[("L3", "zz", 1, "0", 8)]);
        assert!(made(&machine, parts(Some(50), Some(50)), "2-3").0.is_err(), "{rubbish}");
        assert!(written(&machine, "measured/cpus_list").is_empty());
    }
}

#[test]
fn resctrl_is_mounted_where_the_kernel_has_it_and_unmounted_again() {
    let without = Memory::new().file("/proc/filesystems", "nodev\tsysfs\n\text4\n");
    assert!(why(&without, parts(Some(50), None)).contains("its kernel offers no resctrl"));
    let with = Memory::new().file("/proc/filesystems", "nodev\tsysfs\nnodev\tresctrl\n");
    let busy = with.answer(&["mount"], 32, "", "mount: permission denied\n");
    let (refused, kept) = made(&busy, parts(Some(50), None), "2-3");
    assert_eq!(refused.err().unwrap(), "resctrl cannot be mounted: mount: permission denied");
    assert_eq!(*kept.borrow(), ["detaching the mount /sys/fs/resctrl"]);
    assert_eq!(busy.calls(), [["mount", "-t", "resctrl", "resctrl", "/sys/fs/resctrl"]]);
}

#[test]
fn what_the_groups_hold_is_read_before_with_and_after() {
    let data = |group: &str, cache: &str| format!("/sys/fs/resctrl/{group}mon_data/mon_L3_{cache}/");
    let machine = intel()
        .file(data("", "00") + "llc_occupancy", "1000\n")
        .file(data("", "01") + "llc_occupancy", "24\n")
        .file(data("", "00") + "mbm_total_bytes", "7\n")
        .file(data("", "01") + "mbm_total_bytes", "Unavailable\n")
        .file(data("tactus-1-measured/", "00") + "llc_occupancy", "5120\n");
    let (divided, _) = made(&machine, parts(Some(50), None), "2-3");
    let mut divided = divided.unwrap();
    assert_eq!((divided.before().occupancy_bytes, divided.before().memory_bytes), (Some(1024), None));
    let uses = divided.uses(&machine);
    assert_eq!((uses[0].group.as_str(), uses[0].occupancy_bytes), ("measured", Some(5120)));
    assert_eq!((uses[1].group.as_str(), uses[1].occupancy_bytes), ("others", None));
    assert_eq!(seen(uses).count(), 1, "what is not counted is not told");
    let machine = machine.file(data("tactus-1-others/", "00") + "llc_occupancy", "2048\n");
    divided.uses(&machine);
    let (after, note) = divided.take_back(&machine);
    assert_eq!((after.phase, after.occupancy_bytes), (Phase::After, Some(1024)));
    assert_eq!(
        note.unwrap().text,
        "the cache was held (llc_occupancy) before the partition by all CPUs: 1KiB; with it by the measured CPUs: \
         5KiB to 5KiB, by the others: 2KiB to 2KiB; after it by all: 1KiB"
    );
}

#[test]
fn the_kernels_own_reason_is_told() {
    let machine = intel().file(format!("{INFO}/last_cmd_status"), "Mask f0f has non-consecutive 1-bits\n");
    let error = io::Error::from_raw_os_error(22);
    let said = told(&machine, Path::new("/sys/fs/resctrl/x/schemata"), &error);
    assert!(said.ends_with("(Mask f0f has non-consecutive 1-bits)"), "{said}");
}
