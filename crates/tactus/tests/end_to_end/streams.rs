//! A command ends with the code of what it found, whatever becomes of its streams, and never well where its guardian was
//! killed.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::common::{
    ended, guardian_of, kill, measures_beside_others, nothing_is_left, output, stderr, tactus,
};

const FIXTURE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../tactus-format/tests/fixtures/import/cyclictest.json");

/// Every command, where the bundles `a` and `b` and the data set `data` lie.
const COMMANDS: &[&str] = &[
    "run --only |host idle| -D 300ms --max 10s",
    "run --only |host idle| -D 300ms --max 10s --json",
    "measure -D 300ms --max 1ns --no-self-test",
    "measure -D 300ms --no-self-test --json",
    "cyclictest -D 1",
    "oslat -D 1",
    "prove vmstat-interval --dry-run",
    "audit --fail-on info",
    "audit --list --json",
    "tune files grub --isolate 1",
    "tune plan --profile realtime --isolate 1",
    "tune verify",
    "report a",
    "report a --json",
    "watch a",
    "watch --stop a",
    "report a --format json",
    "watch --serve a",
    "fleet show data --max 1ns",
    "fleet show data --json",
    "compare a b --gate",
    "compare a b --gate --format markdown --out -",
    "report a --class plc",
    "convert FIXTURE --max 1ns",
    "convert a --to csv",
    "convert a --to parquet",
    "fleet collect a --into again --json",
    "environments",
    "kernel list",
    "probe --out -",
    "explain",
    "completions bash",
    "man",
    "help",
];

/// A command of the table. Between bars stands one word.
fn command(line: &str, dir: &Path) -> Command {
    let mut command = tactus();
    for (place, part) in line.split('|').enumerate() {
        match place % 2 {
            0 => command.args(part.split(' ').filter(|word| !word.is_empty()).map(|word| match word {
                "FIXTURE" => FIXTURE,
                word => word,
            })),
            _ => command.arg(part),
        };
    }
    command.current_dir(dir);
    command
}

/// A pipe whose reader has left.
fn left() -> Stdio {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    drop(reader);
    Stdio::from(File::from(writer))
}

fn full() -> Stdio {
    Stdio::from(OpenOptions::new().write(true).open("/dev/full").unwrap())
}

/// How it ends where its reader leaves after the first byte.
fn read_a_byte(command: &mut Command) -> Option<i32> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let _ = child.stdout.take().unwrap().read(&mut [0]);
    ended(&mut child, Duration::from_secs(60))
}

/// How it ends without any stream.
fn without_streams(command: &Command) -> Option<i32> {
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$@\" <&- >&- 2>&-", "sh"]).arg(command.get_program()).args(command.get_args());
    shell.current_dir(command.get_current_dir().unwrap());
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.status().unwrap().code()
}

#[test]
fn a_command_ends_with_the_code_of_what_it_found_whatever_becomes_of_its_streams() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let new = |line: &str| command(line, dir.path());
    for line in ["convert FIXTURE --out a", "convert FIXTURE --out b", "fleet collect a --into data"] {
        assert_eq!(output(&mut new(line)).status.code(), Some(0), "{line}");
    }
    let mut codes = BTreeSet::new();
    for line in COMMANDS {
        let usual = output(&mut new(line));
        let code = usual.status.code();
        codes.insert(code);
        let gone = new(line).stdout(left()).stderr(left()).status().unwrap().code();
        assert_eq!(gone, code, "{line}, whose readers have left: {}", stderr(&usual));
        assert_eq!(read_a_byte(&mut new(line)), code, "{line}, whose reader leaves");
        assert_eq!(without_streams(&new(line)), code, "{line}, without streams");
        // Data that cannot be written is a failure, and is said.
        let lost = output(new(line).stdout(full()));
        if usual.stdout.is_empty() {
            assert_eq!(lost.status.code(), code, "{line}");
        } else {
            let said = stderr(&lost);
            assert_eq!(lost.status.code(), Some(2), "{line} on a full disk: {said}");
            assert!(
                said.contains("standard output: No space left") && said.contains("hint: "),
                "{line}: {said}"
            );
        }
    }
    for code in 0..=3 {
        assert!(codes.contains(&Some(code)), "no command of the table ends with {code}: {codes:?}");
    }
}

#[test]
fn every_command_is_tried_with_its_streams() {
    let dir = tempfile::tempdir().unwrap();
    output(tactus().args(["man", "--out"]).arg(dir.path()));
    // Each command has a page; those of what is below a command have one more dash.
    let pages =
        std::fs::read_dir(dir.path()).unwrap().map(|page| page.unwrap().file_name().into_string().unwrap());
    let names: BTreeSet<String> = pages
        .filter_map(|page| Some(page.strip_prefix("tactus-")?.strip_suffix(".1")?.to_owned()))
        .filter(|name| !name.contains('-'))
        .collect();
    let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let tried: BTreeSet<&str> = COMMANDS.iter().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.len() > 15 && names.is_subset(&tried), "not tried: {:?}", names.difference(&tried));
}

#[test]
fn a_run_whose_guardian_is_killed_ends_with_2_and_says_so() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let lines = [
        "run --only |host idle| -D 1s --max 1s",
        "run --only |host idle| -D 1s --json",
        "measure -D 1 --no-self-test",
        "cyclictest -q -D 1",
        "oslat -D 1",
    ];
    for (place, line) in (0..).zip(lines) {
        for ms in [0, 7, 23, 41, 300] {
            let mut run = command(line, dir.path());
            let mut run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let guardian = guardian_of(&mut run).expect("a guardian");
            std::thread::sleep(Duration::from_millis(ms + place));
            kill(guardian.pid, Signal::KILL);
            let ended = run.wait_with_output().unwrap();
            let said = stderr(&ended);
            assert_eq!(ended.status.code(), Some(2), "{line}, killed after {ms} ms: {said}");
            assert!(said.contains("error: ") && said.contains("guardian"), "{line}, after {ms} ms: {said}");
            assert!(said.contains("hint: "), "{line}, after {ms} ms: {said}");
        }
    }
    nothing_is_left();
}
