//! Jailhouse's cells, as its command lists them, as sysfs shows them, and as a configuration describes one: no bytes make
//! the readers panic, and both places say the same of a cell.

#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use tactus_environment::kind::jailhouse::{cells, config};
use tactus_system::Memory;

fuzz_target!(|data: &[u8]| {
    if let Some(config::Config::Cell { name }) = config::parse(data) {
        assert!(!name.is_empty() && name.len() < 32 && !name.contains('\0'));
    }
    for head in [&b"JHCELL\x0d\0"[..], b"JHCLL\x02\x0f\0", b"JHSYST\x0d\0"] {
        let _ = config::parse(&[head, data].concat());
    }
    let text = String::from_utf8_lossy(data);
    for cell in cells::parse_list(&text) {
        assert!(text.contains(&cell.name));
        let dir = format!("/sys/devices/jailhouse/cells/{}", cell.id);
        let machine = Memory::new()
            .file(format!("{dir}/name"), format!("{}\n", cell.name))
            .file(format!("{dir}/state"), format!("{}\n", cell.state))
            .file(format!("{dir}/cpus_assigned_list"), format!("{}\n", cell.assigned))
            .file(format!("{dir}/cpus_failed_list"), format!("{}\n", cell.failed));
        let shown = cells::all(&machine);
        assert_eq!((shown[0].state.runs(), shown[0].to_string()), (cell.state.runs(), cell.to_string()));
    }
    // Each line as what a file of sysfs says.
    let mut lines = text.lines();
    let mut next = || lines.next().unwrap_or_default().to_owned();
    let machine = Memory::new()
        .file("/sys/devices/jailhouse/enabled", next())
        .file("/sys/devices/jailhouse/cells/1/name", next())
        .file("/sys/devices/jailhouse/cells/1/state", next())
        .file("/sys/devices/jailhouse/cells/1/cpus_assigned_list", next())
        .file("/sys/devices/jailhouse/cells/1/cpus_failed_list", next());
    assert!(cells::enabled(&machine).is_some());
    assert!(cells::all(&machine).iter().all(|cell| !cell.to_string().is_empty()));
});
