//! `tactus report --class`, on a bundle that an older tactus wrote on a machine that is virtual: 3 s for each row.

use std::fs;

use crate::common::{beside_others, json, output, stderr, stdout, tactus};

const BUNDLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tactus-bundle/tests/recorded/environments");

#[test]
fn three_seconds_are_never_fit_and_unfit_where_they_lack_something_already_and_emulation_is_named() {
    let _turn = beside_others();
    let result = output(tactus().args(["report", BUNDLE, "--class", "all"]));
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    let text = stdout(&result);
    for word in ["inconclusive", "emulated", "wake-up of a", "motion control", "jitter", "worst"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let document = json(&output(tactus().args(["report", BUNDLE, "--class", "all", "--json"])));
    for entry in document["fitness"].as_array().unwrap() {
        for class in entry["classes"].as_array().unwrap() {
            let lacks = !class["lacks"].as_array().unwrap().is_empty();
            let said = match entry["evidence"].as_str().unwrap() {
                "emulated" => "emulated",
                _ if lacks => "unfit",
                _ => "unknowable",
            };
            assert_eq!(class["fit"], said, "{entry:#}");
        }
    }
    let shown = json(&output(tactus().args(["report", BUNDLE, "--json"])));
    assert!(
        shown["fitness"].as_array().is_none_or(Vec::is_empty),
        "its plan has a limit: those are not asked for"
    );
}

/// The loop that polled was once kept away for 48 ms: that needs no second time.
#[test]
fn one_that_is_unfit_ends_with_findings() {
    let _turn = beside_others();
    let result = output(tactus().args(["report", BUNDLE, "--class", "plc", "--only", "gaps"]));
    assert_eq!(result.status.code(), Some(1), "{}", stderr(&result));
    assert!(stderr(&result).contains("required: gaps: unfit for plc: jitter "), "{}", stderr(&result));
}

#[test]
fn what_is_required_and_not_known_is_inconclusive_and_says_why() {
    let _turn = beside_others();
    let asked = |only| output(tactus().args(["report", BUNDLE, "--class", "plc", "--only", only]));
    let result = asked("host, idle");
    assert_eq!(result.status.code(), Some(3), "{}", stderr(&result));
    assert!(stderr(&result).contains("required: host, idle: inconclusive for plc: "), "{}", stderr(&result));
    let result = asked("host, idle,container");
    assert_eq!(result.status.code(), Some(1), "one that is unfit decides: {}", stderr(&result));
}

#[test]
fn classes_of_the_users_own_stand_beside_those_that_ship() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("classes.toml");
    fs::write(&file, "[[class]]\nname = \"press\"\ncycle = \"500us\"\njitter = \"20us\"\nshare = 30\n")
        .unwrap();
    let file = file.to_str().unwrap();
    let document =
        json(&output(tactus().args(["report", BUNDLE, "--class", "all", "--classes", file, "--json"])));
    let names: Vec<&str> =
        document["classes"].as_array().unwrap().iter().map(|class| class["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["plc", "motion-control", "motor-drive", "press"]);
    let told = output(tactus().args(["report", BUNDLE, "--class", "press", "--classes", file]));
    assert!(stdout(&told).contains("press"), "{}", stderr(&told));
}

#[test]
fn wrong_classes_and_names_are_named_with_a_hint() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("classes.toml");
    fs::write(&file, "[[class]]\nname = \"press\"\ncycle = \"500\"\njitter = \"20us\"\n").unwrap();
    let file = file.to_str().unwrap();
    for (arguments, said) in [
        (&["report", BUNDLE, "--class", "plcs"][..], "no class `plcs`\nhint: use any of plc, "),
        (
            &["report", BUNDLE, "--class", "all", "--only", "hots"],
            "no environment or scenario `hots`\nhint: the environments are ",
        ),
        (&["report", BUNDLE, "--class", "all", "--classes", file], "line 3: `500` has no unit"),
        (&["report", BUNDLE, "--class", "all", "--classes", "/nonexistent"], "/nonexistent: "),
        (&["report", BUNDLE, "--classes", file], "required arguments were not provided"),
    ] {
        let result = output(tactus().args(arguments));
        assert_eq!(result.status.code(), Some(2), "{arguments:?}: {}", stderr(&result));
        assert!(stderr(&result).contains(said), "{arguments:?}: {}", stderr(&result));
    }
}
