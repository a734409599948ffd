//! `--verbose` and `TACTUS_LOG`: the log on stderr, and the part of it in a bundle.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use crate::common::{
    alone, await_tick, beside_others, ended, json, kill, measures_beside_others, nothing_is_left, output,
    started, stderr, tactus,
};
use crate::watching::in_unread_terminal;

const INTERVAL: &str = "/proc/sys/vm/stat_interval";

/// A plan that measures this machine for a second, with a setting.
fn plan(dir: &Path, duration: &str) -> std::path::PathBuf {
    let path = dir.join("plan.toml");
    let text = format!(
        "name = \"p\"\n[environment.host]\nkind = \"host\"\n[[scenario]]\nname = \"s\"\n\
         environment = \"host\"\nmeasurement = \"timer\"\nduration = \"{duration}\"\nsettings = [\"vmstat-interval\"]\n\
         require = {{ max = \"10s\" }}\n"
    );
    fs::write(&path, text).unwrap();
    path
}

/// Whether a line begins with a time and a level: `2026-01-01T00:00:00.000Z  INFO tactus_...`.
fn is_logged(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let time = words.next().is_some_and(|time| time.len() == 24 && time.ends_with('Z') && time.contains('T'));
    let level = words.next().is_some_and(|level| ["ERROR", "WARN", "INFO", "DEBUG"].contains(&level));
    time && level && words.next().is_some_and(|target| target.starts_with("tactus"))
}

#[test]
fn verbose_says_commands_changes_and_decisions_with_time_and_changes_no_data() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(dir.path(), "1s");
    let before = fs::read_to_string(INTERVAL).unwrap();
    let run = output(
        tactus().arg("run").arg(&plan).args(["--json", "--verbose", "--out"]).arg(dir.path().join("b")),
    );
    let said = stderr(&run);
    assert!(matches!(run.status.code(), Some(0 | 3)), "{said}");
    assert_eq!(json(&run)["scenarios"][0]["status"], "measured", "stdout is data alone");
    let logged: Vec<&str> = said.lines().filter(|line| is_logged(line)).collect();
    let has = |all: &[&str]| {
        assert!(logged.iter().any(|line| all.iter().all(|part| line.contains(part))), "{all:?}: {said}");
    };
    // A command with its words, how it ended and how long it took.
    has(&["command started: ", "guardian --journal ", "pid="]);
    has(&["command ended: ", "guardian --journal ", "exit=\"0\"", "ms="]);
    // A setting with both values.
    has(&["the probe in host changes ", INTERVAL, &format!("from={:?}", before.trim()), "to="]);
    // Decisions with their reasons.
    has(&["environment host is usable", "cpus=", "measured="]);
    has(&["limits of s: ", "\"max\":"]);
    has(&["measuring ended: complete"]);
    assert_eq!(fs::read_to_string(INTERVAL).unwrap(), before);
    assert!(!dir.path().join("b/log.txt").exists(), "nothing broke");
    nothing_is_left();
}

#[test]
fn the_variable_chooses_levels_and_a_wrong_one_is_named() {
    let _turn = beside_others();
    let quiet = output(tactus().args(["environments", "--json"]));
    assert!(!stderr(&quiet).lines().any(is_logged), "{}", stderr(&quiet));
    let chosen =
        output(tactus().args(["environments", "--json"]).env("TACTUS_LOG", "warn,tactus_system=debug"));
    let said = stderr(&chosen);
    assert!(said.lines().any(|line| line.contains(" DEBUG tactus_system: command starts: ")), "{said}");
    let wrong = output(tactus().arg("environments").env("TACTUS_LOG", "much"));
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        stderr(&wrong).starts_with("error: TACTUS_LOG: \"much\" is not a level\nhint: "),
        "{}",
        stderr(&wrong)
    );
}

#[test]
fn an_interrupted_and_a_killed_run_leave_the_log_in_their_bundle_which_show_names() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(dir.path(), "60s");
    for (name, signal, said) in
        [("interrupted", Signal::INT, "measuring ended: interrupted"), ("killed", Signal::KILL, "is up")]
    {
        let out = dir.path().join(name);
        let mut child = started(tactus().arg("run").arg(&plan).arg("--out").arg(&out));
        await_tick(&out);
        kill(child.id(), signal);
        ended(&mut child, Duration::from_secs(30));
        let text = fs::read_to_string(out.join("log.txt")).unwrap();
        assert!(text.lines().all(is_logged) && text.lines().count() <= 200, "{name}: {text}");
        assert!(text.contains(said) && text.contains(INTERVAL), "{name}: {text}");
        let shown = output(tactus().arg("report").arg(&out));
        assert!(stderr(&shown).contains("log.txt is the log of the run"), "{name}: {}", stderr(&shown));
    }
    nothing_is_left();
}

#[test]
fn lines_of_the_log_stand_above_the_progress_line_and_not_in_it() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(dir.path(), "1s");
    let program = env!("CARGO_BIN_EXE_tactus");
    let out = dir.path().join("b");
    let command = format!("{program} run {} --json --verbose --out {}", plan.display(), out.display());
    let (master, mut child) = in_unread_terminal(&command);
    let mut terminal = fs::File::from(master);
    let mut drawn = Vec::new();
    // The end of a terminal is an error.
    let _ = terminal.read_to_end(&mut drawn);
    child.wait().unwrap();
    nothing_is_left();
    let drawn = String::from_utf8_lossy(&drawn).into_owned();
    assert!(drawn.contains("left [") || drawn.contains(" left"), "a progress line was drawn: {drawn}");
    // Text before a control sequence that clears the line is not visible any more.
    let visible =
        |line: &str| line.rsplit("\u{1b}[2K").next().unwrap_or(line).trim_start_matches('\r').to_owned();
    let lines: Vec<String> = drawn.split("\r\n").map(visible).collect();
    let logged: Vec<&String> = lines.iter().filter(|line| line.contains(" INFO tactus")).collect();
    assert!(logged.len() > 5, "{drawn}");
    assert!(logged.iter().all(|line| is_logged(line)), "{logged:#?}");
}
