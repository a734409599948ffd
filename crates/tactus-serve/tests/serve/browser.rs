//! The pages as readers open them: in headless Chromium, wide and narrow, light and dark, by keyboard, and
//! during a run.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tactus_serve::Token;

#[path = "../../../tactus-report/tests/report/browser/look.rs"]
mod look;

use self::look::looks;
use crate::common::{Running, put, serve};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/serve/served.py");

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
    let Some(mut look) = looks(SCRIPT) else { return };
    look.stdin(Stdio::piped()).stdout(Stdio::piped());
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "environments", "environments");
    put(dir.path(), "prove", "prove");
    put(dir.path(), "interrupted", "a-name-that-is-very-long-".repeat(8).as_str());
    let mut run = Running::begin(&dir.path().join("night"), "host idle");
    (0..40).for_each(|n| run.tick(1_500 + n * n * 37 % 9_000));
    let empty = tempfile::tempdir().unwrap();
    let token = Token::random().unwrap();
    let opened = format!("?token={}", token.text());
    let (at, nothing) = (serve(dir.path(), Some(token)), serve(empty.path(), None));
    look.arg(format!("http://{at}/{opened}")).arg(format!("http://{nothing}/"));
    let mut looking = look.spawn().unwrap();
    let mut said = BufReader::new(looking.stdout.take().unwrap());
    let mut answers = looking.stdin.take().unwrap();
    // The run continues until the browser has seen enough of it.
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
