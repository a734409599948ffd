//! The pages as readers open them: in headless Chromium, wide and narrow, light and dark, by keyboard, and while a run goes on.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tactus_serve::Token;

use crate::common::{Running, put, serve};

/// The validators of `scripts/setup.sh test`; axe-core is among them.
fn axe() -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"),
        |set| Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(set),
    );
    let lib = std::fs::read_dir(target.join("tools/lib")).ok()?;
    let all =
        lib.flatten().map(|python| python.path().join("site-packages/axe_playwright_python/axe.min.js"));
    all.into_iter().find(|path| path.is_file())
}

/// What looks; `None` where nobody can, which is said.
#[expect(clippy::print_stderr, reason = "what is not tested is said")]
fn looks() -> Option<Command> {
    let lacks = |what: &str| {
        assert!(
            std::env::var_os("TACTUS_TEST_ALL").is_none(),
            "nothing may be skipped, and there is no {what}"
        );
        eprintln!("SKIPPED: there is no {what}; scripts/setup.sh test installs it");
    };
    if Command::new("chromium").arg("--version").output().is_err() {
        lacks("chromium");
        return None;
    }
    let Some(axe) = axe() else {
        lacks("axe-core");
        return None;
    };
    let mut look = Command::new("python3");
    look.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/serve/served.py")).arg("--axe").arg(axe);
    // To be looked at by people: `SHOTS=DIR`.
    if let Some(shots) = std::env::var_os("SHOTS") {
        std::fs::create_dir_all(&shots).unwrap();
        look.arg("--shots").arg(shots);
    }
    look.stdin(Stdio::piped()).stdout(Stdio::piped());
    Some(look)
}

/// Nothing went wrong in any of the ways that a page was opened.
fn nothing_is_wrong(said: &Value) {
    for (page, ways) in said["pages"].as_object().unwrap() {
        for (way, found) in ways.as_object().unwrap() {
            for (list, what) in found.as_object().unwrap() {
                assert_eq!(*what, Value::Array(Vec::new()), "{page}, {way}: {list}");
            }
        }
    }
}

#[test]
fn a_run_is_followed_in_a_browser_until_it_ends_and_its_report_is_opened_by_keys() {
    let Some(mut look) = looks() else { return };
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "environments", "environments");
    put(dir.path(), "prove", "prove");
    put(dir.path(), "interrupted", "a-name-that-is-very-long-".repeat(8).as_str());
    let mut run = Running::begin(&dir.path().join("night"), "host, idle");
    (0..40).for_each(|n| run.tick(1_500 + n * n * 37 % 9_000));
    let empty = tempfile::tempdir().unwrap();
    let token = Token::random().unwrap();
    let opened = format!("?token={}", token.text());
    let (at, nothing) = (serve(dir.path(), Some(token)), serve(empty.path(), None));
    look.arg(format!("http://{at}/{opened}")).arg(format!("http://{nothing}/"));
    let mut looking = look.spawn().unwrap();
    let mut said = BufReader::new(looking.stdout.take().unwrap());
    let mut answers = looking.stdin.take().unwrap();
    // The run goes on until the browser has seen enough of it.
    let enough = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let goes_on = scope.spawn(|| {
            while !enough.load(Ordering::Relaxed) {
                run.tick(2_500);
                std::thread::sleep(Duration::from_millis(300));
            }
            run
        });
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        enough.store(true, Ordering::Relaxed);
        goes_on.join().unwrap().end();
        assert_eq!(line.trim(), "end the run", "the browser says when");
    });
    writeln!(answers, "it has ended").unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(looking.wait().unwrap().success());
    let said: Value = serde_json::from_str(&rest).unwrap_or_else(|error| panic!("{error}: {rest}"));
    nothing_is_wrong(&said);
    let live = &said["live"];
    assert_ne!(live["before"]["cycles"], live["after"]["cycles"], "nothing changes: {live:#}");
    assert_eq!(live["after"]["focus"], "Its report as it stands", "who stands on a link stays there");
    assert_eq!(live["after"]["same"], true, "what has not changed is not made anew");
    assert_eq!(live["after"]["line"], "followed as it goes on");
    assert_eq!(
        (&live["ended"]["line"], &live["ended"]["focus"]),
        (&"the run has ended".into(), &"Open its report".into())
    );
    assert_eq!(
        live["address"],
        Value::String(format!("http://{at}/")),
        "the token does not stay in the address"
    );
    assert_eq!(live["cookie"], "", "no script reads the cookie");
    assert_eq!(live["opened"], Value::String(format!("http://{at}/bundle/night")), "Enter opens its report");
    assert_eq!(live["outside"], Value::Array(Vec::new()), "nothing is asked of anybody else");
}
