//! The two examples at the end of each command's help are typed as they are, in a directory that has the files in
//! them. Measurements are shortened.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{
    measures_beside_others, nothing_is_left, of_this_test, output, started, stderr, stdout, tactus,
};

/// The project.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Examples that this test does not run, and why.
const NOT_RUN: &[(&str, &str)] = &[
    ("tactus kernel fetch rt", "it downloads; `scripts/setup.sh kernel` runs it"),
    ("tactus cyclictest --help", "help is a test of its own"),
    ("tactus oslat --help", "help is a test of its own"),
];

/// Options that make an example last seconds.
const SHORTER: &[(&str, &str)] = &[
    ("tactus run -i 1ms --max 100us --overruns 0", "-D 1 --only host"),
    ("tactus prove vmstat-interval --quick", "--pairs 2"),
];

/// Commands that may end with what they found: 1 and 3 are answers, too.
const JUDGING: &[&str] =
    &["run", "measure", "audit", "prove", "compare", "report", "fleet", "oslat", "cyclictest"];

/// The examples of a command as its help prints them.
fn examples(command: &str) -> Vec<String> {
    // The drop-ins take -h as what they stand in for does.
    let help = if ["cyclictest", "oslat"].contains(&command) { "--help" } else { "-h" };
    let words: Vec<&str> = command.split_whitespace().chain([help]).collect();
    let help = stdout(&output(tactus().args(words)));
    let (_, examples) = help.rsplit_once("\nExamples:\n").unwrap_or_default();
    examples
        .lines()
        .filter_map(|line| line.strip_prefix("  tactus"))
        .map(|line| format!("tactus{line}"))
        .collect()
}

/// The files in the examples of a command.
fn set_up(command: &str, dir: &Path) {
    let measure = |out: &str| {
        let line = ["measure", "-a", "0", "-i", "1ms", "-D", "1", "-q", "--out", out];
        let done = output(tactus().current_dir(dir).args(line));
        assert!(dir.join(out).join("manifest.json").is_file(), "{out}: {}", stderr(&done));
    };
    match command {
        "compare" => ["before", "after"].into_iter().for_each(measure),
        "report" => measure("first"),
        "fleet" => ["lab/bundles/node1", "lab/bundles/node2"].into_iter().for_each(measure),
        _ => {}
    }
    if command == "convert" {
        let file = format!("{ROOT}/crates/tactus-format/tests/fixtures/import/cyclictest.json");
        fs::copy(file, dir.join("cyclictest.json")).unwrap();
    }
}

/// Types one, and says with which status it ended.
fn typed(command: &str, example: &str, dir: &Path) {
    let more = SHORTER.iter().find(|(of, _)| *of == example).map_or("", |(_, more)| more);
    let short = example.replace(" -D 60", " -D 1").replace(" -D 10", " -D 1").replace(" -D 2", " -D 1");
    let bin = Path::new(env!("CARGO_BIN_EXE_tactus")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    of_this_test(&mut shell).env("PATH", path).current_dir(dir).args(["-c", &format!("{short} {more}")]);
    let done = output(&mut shell);
    let code = done.status.code();
    let judges = JUDGING.contains(&command) && matches!(code, Some(1 | 3));
    assert!(code == Some(0) || judges, "{example}: {code:?}\n{}\n{}", stdout(&done), stderr(&done));
    let said = stdout(&done) + &stderr(&done);
    assert!(!said.lines().any(|line| line.starts_with("error:")), "{example}: {said}");
    assert!(!said.is_empty() || example.contains('>') || example.contains("--out"), "{example} says nothing");
}

fn each_example_runs(commands: &[&str]) {
    for command in commands {
        let own = examples(command);
        assert_eq!(own.len(), 2, "the help of `{command}` ends with two examples: {own:?}");
        let home = tempfile::tempdir().unwrap();
        let dir = home.path();
        set_up(command, dir);
        for example in own {
            if NOT_RUN.iter().any(|(line, _)| *line == example) {
                continue;
            }
            // The watched run continues meanwhile.
            let mut watched = (*command == "watch").then(|| {
                let night = dir.join("night");
                let _ = fs::remove_dir_all(&night);
                let seconds = if example.contains("--stop") { "60" } else { "3" };
                let run = ["measure", "-a", "0", "-i", "1ms", "-D", seconds, "--out", "night"];
                let child = started(tactus().current_dir(dir).args(run));
                crate::common::await_tick(&night);
                child
            });
            typed(command, &example, dir);
            if let Some(run) = &mut watched {
                run.wait().unwrap();
            }
        }
    }
    nothing_is_left();
}

#[test]
fn the_examples_of_what_only_reads_and_writes_files_run_as_they_stand() {
    each_example_runs(&["convert", "explain", "completions", "man", "probe", "environments", "kernel"]);
}

#[test]
fn the_examples_of_what_measures_run_as_they_stand() {
    let Some(_turn) = measures_beside_others() else { return };
    each_example_runs(&["run", "measure", "cyclictest", "oslat", "report", "compare", "fleet", "watch"]);
}

#[test]
fn the_examples_of_what_looks_at_this_machine_and_tests_its_settings_run_as_they_stand() {
    let Some(_turn) = measures_beside_others() else { return };
    each_example_runs(&["audit", "tune", "prove"]);
}
