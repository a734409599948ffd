//! The journal of a run: any bytes are read without a panic, what they promise is one of the things that tactus makes,
//! and what a journal says does not depend on what follows its last whole line.

#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use tactus_model::undo::{Entry, Tool, Undo, outstanding, unknown};

/// Programs that take something back; others are run by nobody.
const PROGRAMS: [&str; 10] =
    ["docker", "podman", "crun", "runc", "virsh", "stty", "modprobe", "taskset", "chrt", "unshare"];

fn check(how: &Undo) {
    assert!(!how.to_string().is_empty());
    match how {
        Undo::Tool(tool) => check_tool(tool),
        Undo::Where { then, .. } => then.iter().for_each(check),
        _ => {}
    }
}

fn check_tool(tool: &Tool) {
    let Some(words) = tool.words() else { return };
    let program = words[0].as_str();
    assert!(PROGRAMS.contains(&program) || program.rsplit('/').next() == Some("jailhouse"), "{words:?}");
    if program == "unshare" {
        // The script is ours, whatever the mounts are called.
        assert_eq!(words[1..4], ["-m", "sh", "-c"]);
        assert!(words[4].starts_with("while [ \"$1\" != -- ]"), "{words:?}");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let open = outstanding(&text);
    open.iter().for_each(|(_, how)| check(how));
    // What is written again is read again.
    let again: String = open
        .iter()
        .rev()
        .map(|(id, how)| serde_json::to_string(&Entry::Undo { id: *id, how: how.clone() }).unwrap() + "\n")
        .collect();
    let mut ids: Vec<u64> = outstanding(&again).iter().map(|(id, _)| *id).collect();
    let mut before: Vec<u64> = open.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    before.sort_unstable();
    assert_eq!(ids, before);
    for line in unknown(&text) {
        assert!(serde_json::from_str::<Entry>(line).is_err());
    }
});
