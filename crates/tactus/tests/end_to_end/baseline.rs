//! A run that is kept under a name, and runs that are compared with it.

use std::fs;

use crate::common::{measures_beside_others, nothing_is_left, output, stderr, stdout, tactus};

const PLAN: &str = r#"
name = "gate"
[defaults]
environment = "host"
cpus = "first"
interval = "1ms"
duration = "200ms"
repeat = 5
[environment.host]
kind = "host"
[[scenario]]
name = "cycle"
"#;

/// The exit code that follows from the word in which a comparison says what it comes to.
fn code_of(said: &str) -> i32 {
    let codes = [("pass: ", 0), ("regression: ", 1), ("inconclusive: ", 3)];
    let code = |line: &str| codes.iter().find(|(word, _)| line.starts_with(word)).map(|(_, code)| *code);
    said.lines().find_map(code).unwrap_or_else(|| panic!("it judges: {said}"))
}

#[test]
fn a_run_is_compared_with_a_named_baseline_and_ends_as_the_gate_does() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("good.toml"), PLAN).unwrap();
    let hogged = format!("{PLAN}fault = [{{ kind = \"hog\", length = \"40ms\", every = \"50ms\" }}]\n");
    fs::write(at("hogged.toml"), &hogged).unwrap();
    let base = format!("{}/baselines", dir.path().display());
    let run = |plan: &str, options: &[&str]| {
        output(tactus().current_dir(dir.path()).args(["run", plan]).args(options))
    };

    let none = run("good.toml", &["--baseline", &base]);
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains("there is no complete baseline"), "{}", stderr(&none));
    let saved = run("good.toml", &["--save-baseline", &base]);
    assert!(saved.status.success(), "{}", stderr(&saved));
    let kept: Vec<_> = fs::read_dir(&base).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(kept.len() == 1 && kept[0].join("manifest.json").is_file(), "{kept:?}");
    // One that never ended is newer, and does not count.
    let died = at("baselines/tactus-gate-died");
    fs::create_dir(&died).unwrap();
    fs::write(died.join("manifest.json"), r#"{"started": "2999-01-01T00:00:00Z"}"#).unwrap();

    let again = run("good.toml", &["--baseline", &base, "--out", "again"]);
    let said = stdout(&again);
    assert!(said.contains("cycle") && said.contains("this run"), "{said}\n{}", stderr(&again));
    assert_eq!((again.status.code(), code_of(&said)), (Some(3), 3), "{said}");
    // On a noisy machine a self-test may fail.
    let unproven = "did not pass its self-test";
    assert!(said.contains("between these two sittings") || said.contains(unproven), "{said}");
    assert!(stderr(&again).contains("nothing is decided yet"), "{}", stderr(&again));
    // From the fifth sitting on the gate decides. Runs of 200 ms may differ by themselves: the exit code follows the answer.
    for _ in 1..8 {
        assert!(run("good.toml", &["--save-baseline", &base]).status.success());
    }
    let decided = run("good.toml", &["--baseline", &base]);
    let told = stderr(&decided);
    assert!(told.contains("gate: against the ") || told.contains("do not count"), "{told}");
    let said = stdout(&decided);
    assert!(!said.contains("between these two"), "{said}");
    assert_eq!(decided.status.code(), Some(code_of(&said)), "{said}");
    let json = run("good.toml", &["--baseline", &base, "--json"]);
    assert!(serde_json::from_slice::<serde_json::Value>(&json.stdout).is_ok(), "{}", stdout(&json));
    assert!(stderr(&json).contains("this run"), "{}", stderr(&json));
    let junit = stdout(&run("good.toml", &["--baseline", &base, "--format", "junit"]));
    assert!(junit.contains("<testsuite name=\"host\"") && junit.contains("all together"), "{junit}");
    assert_eq!(junit.matches("<testsuites").count(), 1, "one document: {junit}");
    let few = run("good.toml", &["--baseline", &base, "--repeat", "2"]);
    assert!(stderr(&few).contains("gate: "), "too few runs are said before they are made: {}", stderr(&few));
    let other = run("hogged.toml", &["--baseline", &base]);
    assert_eq!(other.status.code(), Some(3), "what was made otherwise is not judged: {}", stdout(&other));
    nothing_is_left();
}

#[test]
fn what_is_no_name_of_a_baseline_is_refused_before_anything_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let run = |options: &[&str]| {
        let mut command = tactus();
        command
            .env("TACTUS_CACHE_DIR", dir.path())
            .current_dir(dir.path())
            .args(["run", "--quick"])
            .args(options);
        output(&mut command)
    };
    for (options, expected) in [
        (["--baseline", "nightly"], "make it: `tactus run --repeat 8 --save-baseline nightly`"),
        (["--baseline", ".."], "`..` is not a valid name of a baseline"),
        (["--save-baseline", ""], "`` is not a valid name of a baseline"),
    ] {
        let refused = run(&options);
        assert_eq!(refused.status.code(), Some(2), "{options:?}");
        assert!(stderr(&refused).contains(expected), "{options:?}: {}", stderr(&refused));
    }
    fs::create_dir_all(dir.path().join("lib/baselines/main")).unwrap();
    let near = stderr(&run(&["--baseline", "mian"]));
    assert!(near.contains("main"), "{near}");
    let both = run(&["--save-baseline", "main", "--out", "x"]);
    assert_eq!(both.status.code(), Some(2));
}
