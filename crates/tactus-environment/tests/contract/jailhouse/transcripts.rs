//! The stand-in against what a real Jailhouse said: every command of the transcripts is given to it, and
//! it must say the same, with the same exit code.

use std::process::Command;

use super::board::Board;

const TRANSCRIPTS: [(&str, &str); 2] = [
    ("root-cell-shell.txt", include_str!("../../fixtures/jailhouse/root-cell-shell.txt")),
    (
        "root-cell-shell-locked-and-linux.txt",
        include_str!("../../fixtures/jailhouse/root-cell-shell-locked-and-linux.txt"),
    ),
];

/// Commands that tactus does not use, so that the stand-in does not have them.
const NOT_USED: [&str; 5] = ["config ", "hardware ", "cell linux -h", "console -f", "cell stats"];

#[test]
fn the_stand_in_says_what_a_real_one_said() {
    for (name, text) in TRANSCRIPTS {
        let board = Board::new();
        board.inmate_script("#!/bin/sh\nexec sleep 600\n");
        board.system_config("qemu-arm64-smp4.cell", "qemu-arm64", 0xf);
        for (cell, mask) in [("inmate-demo", 2), ("inmate-vcon", 2), ("inmate-active", 2), ("linux-demo", 12)]
        {
            let file = format!("qemu-arm64-{cell}.cell");
            let cell = if cell == "linux-demo" { "qemu-arm64-linux-demo" } else { cell };
            board.cell_config(&file, cell, mask);
        }
        // The first bytes of a compiled device tree.
        std::fs::write(board.dir.join("cells/inmate-qemu-arm64.dtb"), 0xd00d_feed_u32.to_be_bytes()).unwrap();
        let (commands, states) = replay(name, text, &board);
        assert!(
            commands >= 15 && (states >= 5 || name == "root-cell-shell.txt"),
            "{name}: {commands}, {states}"
        );
    }
}

/// Gives every command to the stand-in; how many commands and states were compared.
fn replay(name: &str, text: &str, board: &Board) -> (usize, usize) {
    let (mut commands, mut states) = (0, 0);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some((cell, state)) = line.strip_prefix("  ").and_then(|line| line.split_once(": "))
            && state.contains("assigned=")
        {
            assert_eq!(state_of(cell, board), state, "{name}: {cell}");
            states += 1;
        }
        let Some(words) = line.strip_prefix("# jailhouse ") else { continue };
        if NOT_USED.iter().any(|other| words.starts_with(other)) || words.contains(" -w ") {
            continue;
        }
        let mut expected = String::new();
        let code = loop {
            match lines.next() {
                Some(line) if line.starts_with("[rc=") => break line.to_owned(),
                Some(line) => expected += &format!("{line}\n"),
                None => panic!("{name}: {words} has no end"),
            }
        };
        let words: Vec<String> =
            words.split(' ').map(|word| word.replace("/cells/", &board.path("cells/"))).collect();
        let output = Command::new(board.path("jailhouse")).args(&words).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).unwrap().replace(&board.path("cells/"), "/cells/");
        assert_eq!(said, expected, "{name}: {words:?}");
        assert_eq!(format!("[rc={}]", output.status.code().unwrap()), code, "{name}: {words:?}");
        commands += 1;
    }
    (commands, states)
}

/// A cell as the transcripts note it.
fn state_of(name: &str, board: &Board) -> String {
    let id = (0..9).find(|id| board.sysfs(&format!("cells/{id}/name")) == name);
    let Some(id) = id else { return "there is none".into() };
    let of = |file: &str| board.sysfs(&format!("cells/{id}/{file}"));
    format!("{} assigned={} failed={}", of("state"), of("cpus_assigned_list"), of("cpus_failed_list"))
}
