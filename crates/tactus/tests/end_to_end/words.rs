//! The question on the command line: places by address, words of the field, and defaults.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{
    alone, beside_others, json, measures_beside_others, nothing_is_left, output, skipped, stderr, stdout,
    tactus,
};
use crate::container::Container;

const FIXTURE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../tactus-format/tests/fixtures/import/cyclictest.json");

#[test]
fn a_limit_and_an_interval_are_said_to_run_and_answered_on_one_screen() {
    let Some(_turn) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let words = ["run", "--only", "host idle", "-D", "1", "-i", "1ms", "--max", "10us"];
    let result = output(tactus().args(words).current_dir(dir.path()));
    // No machine wakes a thread within 10 us a thousand times in a row; if one does, the run was too short for a
    // verdict.
    assert!(matches!(result.status.code(), Some(1 | 3)), "{}", stderr(&result));
    // That it could not pass was said before it began, with what to type instead.
    let before = "1 s of host idle can fail, but not pass: a pass needs 1 min 40 s or more (100 000 cycles of each thread)";
    assert!(stderr(&result).contains(before), "{}", stderr(&result));
    let again = "run --only 'host idle' -i 1ms --max 10us --duration 100s";
    assert!(stderr(&result).contains(again), "{}", stderr(&result));
    let text = stdout(&result);
    let answers = ["MET:", "NOT MET:", "NOT DECIDED:"];
    assert!(text.lines().any(|line| answers.iter().any(|answer| line.starts_with(answer))), "{text}");
    assert!(text.contains("max 10 us: ") && text.lines().count() < 24, "{text}");
    assert!(text.lines().last().is_some_and(|line| line.starts_with("page: ")), "{text}");

    // `report` without a name finds what was just made, and says which.
    let shown = output(tactus().args(["report", "--json"]).current_dir(dir.path()));
    assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
    assert!(stderr(&shown).starts_with("bundle: tactus-this-machine-"), "{}", stderr(&shown));
    let row = json(&shown)["scenarios"][0].clone();
    let [cycles, overruns] = ["cycles", "overruns"].map(|key| row["all"][key].as_u64().unwrap_or(0));
    let threads = row["series"].as_array().unwrap().len() as u64;
    assert!((990 * threads..=1010 * threads).contains(&(cycles + overruns)), "{row:#}");
    nothing_is_left();
}

#[test]
fn the_newest_bundle_is_meant_where_none_is_named() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let here = |words: &[&str]| output(tactus().args(words).current_dir(dir.path()));
    let none = here(&["report"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains("no bundle in this directory") && stderr(&none).contains("hint:"));
    for name in ["a", "b"] {
        let made = here(&["convert", FIXTURE, "--out", name]);
        assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    }
    // A directory that only looks like one is passed over.
    fs::create_dir(dir.path().join("c")).unwrap();
    fs::write(dir.path().join("c/manifest.json"), "{\"started\": 7}").unwrap();
    let text = here(&["report"]);
    assert!(stderr(&text).contains("bundle: b"), "{}", stderr(&text));
    let report = here(&["report", "--format", "junit"]);
    assert!(stdout(&report).contains("<testsuites"), "{}", stderr(&report));
    let both = here(&["report", "--open", "--format", "json"]);
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn shells_complete_environments_loads_checks_and_studies() {
    let _turn = beside_others();
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&output(tactus().args(["completions", shell])));
        for word in ["libvirt", "scheduler", "rt-throttling", "cyclictest-histogram"] {
            assert!(script.contains(word), "{shell} does not complete {word}");
        }
    }
    // The shell's own answer, where it is there.
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("tactus.bash");
    fs::write(&script, stdout(&output(tactus().args(["completions", "bash"])))).unwrap();
    let asks = "complete_of() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _tactus tactus \"${@: -1}\" \"${@: -2:1}\"; \
                echo \"${COMPREPLY[@]}\"; }; . \"$0\"; complete_of tactus measure --in lib; complete_of tactus measure sp; \
                complete_of tactus run intel-x; complete_of tactus audit --only rt-thr";
    let answered = Command::new("bash").arg("-c").arg(asks).arg(&script).output();
    let Ok(answered) = answered else { return skipped("bash is not installed") };
    let lines = stdout(&answered);
    let lines: Vec<&str> = lines.lines().map(str::trim).collect();
    assert_eq!(lines, ["libvirt", "spin", "intel-xeon-2015", "rt-throttling"], "{}", stderr(&answered));
}

#[test]
fn figures_and_verdicts_are_explained_like_all_other_words() {
    let _turn = beside_others();
    for (word, says) in [
        ("p99", "99 of 100"),
        ("p99.9", "99 of 100"),
        ("overruns", "coordinated omission"),
        ("inconclusive", "Exit code"),
        ("self-test", "injects"),
    ] {
        let told = output(tactus().args(["explain", word]));
        assert_eq!(told.status.code(), Some(0), "{word}: {}", stderr(&told));
        assert!(
            stdout(&told).split_whitespace().collect::<Vec<_>>().join(" ").contains(says),
            "{word}: {}",
            stdout(&told)
        );
    }
}

#[test]
fn a_running_container_is_measured_by_its_address_and_keeps_running() {
    let Some(_turn) = measures_beside_others() else { return };
    let Some(busybox) =
        ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| Path::new(path).exists())
    else {
        return skipped("busybox is not installed");
    };
    if Command::new("podman").arg("--version").output().is_err() || !rustix::process::geteuid().is_root() {
        return skipped("Podman and root are needed");
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    for below in ["dev", "proc", "sys", "tmp", "run", "etc"] {
        fs::create_dir_all(root.join(below)).unwrap();
    }
    fs::copy(busybox, root.join("busybox")).unwrap();
    let name = format!("by-address-{}", std::process::id());
    let container = Container::running(&name, &root, &["/busybox", "sleep", "300"]);
    let place = format!("podman:{name}");
    let measured = output(tactus().args(["measure", "--in", &place, "-i", "1ms", "-D", "1", "--json"]));
    let still = container.runs();
    container.remove();
    assert_eq!(measured.status.code(), Some(0), "{}", stderr(&measured));
    let row = json(&measured)["scenarios"][0].clone();
    assert_eq!(
        (&row["status"], &row["environment"], &row["kind"]),
        (&"measured".into(), &place.into(), &"podman".into())
    );
    assert!(row["all"]["cycles"].as_u64().unwrap() > 0, "{row:#}");
    assert!(still, "the container goes on as it was");
    nothing_is_left();
}
