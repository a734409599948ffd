//! The recorded machines, for tests of plans.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use tactus_model::facts::Facts;

/// Facts of every recorded machine, and of one that has what the records lack.
#[expect(clippy::disallowed_methods, reason = "fixtures are read beside the door")]
pub fn machines() -> BTreeMap<String, Facts> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tactus-audit/tests/machines");
    let mut all: BTreeMap<String, Facts> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let mut bytes = std::fs::read(&path).unwrap();
            if name.ends_with(".json.gz") {
                let packed = std::mem::take(&mut bytes);
                flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
            }
            name.contains(".json").then(|| (name, serde_json::from_slice(&bytes).unwrap()))
        })
        .collect();
    let mut facts: Facts = all["intel-bare-untuned.json.gz"].clone();
    for (name, text) in [
        ("/proc/sys/kernel/hung_task_timeout_secs", "120"),
        ("/proc/sys/kernel/nmi_watchdog", "1"),
        ("/proc/sys/kernel/soft_watchdog", "1"),
        ("/proc/sys/kernel/sched_rt_runtime_us", "950000"),
        ("/sys/kernel/debug/sched/fair_server/cpu2/runtime", "50000000"),
        ("/sys/devices/system/machinecheck/machinecheck0/ignore_ce", "0"),
        ("/sys/module/kvm/parameters/nx_huge_pages", "Y"),
        ("/sys/devices/system/cpu/vulnerabilities/itlb_multihit", "KVM: Mitigation: Split huge pages"),
        ("list:/sys/class/iommu", "dmar0"),
    ] {
        facts.keep(name, text);
    }
    all.insert("everything-on".into(), facts);
    assert!(all.len() > 15, "{:?}", all.keys());
    all
}
