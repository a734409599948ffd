//! Runs that continue after their terminal closes: started with `--detach`, followed with `watch`, ended with
//! `watch --stop`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{
    await_text, await_tick, copied_into, json, measures_beside_others, nothing_is_left, of_this_test, output,
    skipped, stderr, stdout, tactus,
};
use crate::watching::in_unread_terminal;

/// The command of a detached run in these tests; they check nothing of latencies.
const MEASURE: [&str; 6] = ["measure", "-i", "1000", "--no-self-test", "--detach", "--beside"];

/// A place for bundles, in which no other test's runs are found.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = tactus();
        command.env("TACTUS_CACHE_DIR", self.at("cache")).current_dir(self.dir.path()).args(words);
        command
    }

    fn output(&self, words: &[&str]) -> Output {
        output(&mut self.command(words))
    }

    /// Starts a detached run that lasts for `duration`.
    fn detached(&self, name: &str, duration: &str) -> PathBuf {
        let begun = output(self.command(&MEASURE).args(["-D", duration, "--out", name]));
        assert_eq!(begun.status.code(), Some(0), "{}", stderr(&begun));
        let said = stderr(&begun);
        assert!(said.contains("tactus watch") && said.contains("tactus watch --stop"), "{said}");
        let bundle = PathBuf::from(stdout(&begun).trim_end());
        assert_eq!(bundle, self.at(name));
        await_tick(&bundle);
        bundle
    }
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).unwrap();
    kill_process(pid, signal).unwrap();
}

/// The processes that write bundles into a directory, by their command lines and where they were started.
fn writers(dir: &Path) -> Vec<(i32, Vec<String>)> {
    let of = |entry: fs::DirEntry| {
        let process = entry.file_name().to_str()?.parse().ok()?;
        let line = String::from_utf8(fs::read(entry.path().join("cmdline")).ok()?).ok()?;
        let words: Vec<String> = line.split('\0').map(str::to_owned).collect();
        let here = fs::read_link(entry.path().join("cwd")).ok()?;
        (words.iter().any(|word| word == "--detached") && here == dir).then_some((process, words))
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(of).collect()
}

/// The process that writes a bundle.
fn writer(bundle: &Path) -> Option<i32> {
    let name = bundle.file_name().unwrap().to_str().unwrap();
    let all = writers(bundle.parent().unwrap());
    all.into_iter().find(|(_, words)| words.iter().any(|word| word == name)).map(|(process, _)| process)
}

impl Drop for Place {
    /// A test that fails leaves no run, which all others would wait for.
    fn drop(&mut self) {
        for process in writers(self.dir.path()).into_iter().filter_map(|(process, _)| Pid::from_raw(process))
        {
            let _ = kill_process(process, Signal::TERM);
        }
    }
}

fn ends(child: &mut Child) -> Option<i32> {
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        assert!(Instant::now() < until, "it goes on");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn shown(bundle: &Path) -> serde_json::Value {
    json(&output(tactus().arg("report").arg(bundle).arg("--json")))
}

#[test]
fn a_run_outlives_the_terminal_that_it_was_started_in_and_is_ended_from_another() {
    let Some(_turn) = measures_beside_others() else { return };
    let place = Place::new();
    let bundle = place.at("night");
    let program = env!("CARGO_BIN_EXE_tactus");
    let command = format!(
        "cd {0}; export TACTUS_CACHE_DIR={0}/cache; {program} {1} -D 600 --out night >{0}/path; echo $? >{0}/code; exec sleep 600",
        place.dir.path().display(),
        MEASURE.join(" "),
    );
    let (terminal, mut shell) = in_unread_terminal(&command);
    await_text(&place.at("code"), "0\n");
    assert_eq!(fs::read_to_string(place.at("path")).unwrap().trim_end(), bundle.display().to_string());
    await_tick(&bundle);
    // The terminal is closed, and what is left of its session is killed.
    drop(terminal);
    assert_eq!(ends(&mut shell), None, "the shell in it was hung up");
    let process = writer(&bundle).expect("the run goes on");
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The session and the terminal are the sixth and seventh field, the third the first after the name (proc_pid_stat(5)).
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_ascii_whitespace().collect();
    assert_eq!((fields[3], fields[4]), (process.to_string().as_str(), "0"), "{stat}");
    assert_eq!(fs::read_link(format!("/proc/{process}/fd/0")).unwrap(), Path::new("/dev/null"));
    let events =
        || fs::read_to_string(bundle.join("scenarios/01-host-timer/ticks.csv")).unwrap_or_default().len();
    let (before, until) = (events(), Instant::now() + Duration::from_secs(60));
    while events() == before {
        assert!(Instant::now() < until, "it records nothing any more");
        std::thread::sleep(Duration::from_millis(100));
    }
    // From elsewhere, by no name: it is the only one of this place.
    let stopped = output(place.command(&["watch", "--stop"]).current_dir("/"));
    assert_eq!(stopped.status.code(), Some(0), "{}", stderr(&stopped));
    assert!(stderr(&stopped).contains("the run was interrupted; 1 of 1 scenarios"), "{}", stderr(&stopped));
    let shown = shown(&bundle);
    assert_eq!(
        (&shown["status"], &shown["scenarios"][0]["status"]),
        (&"interrupted".into(), &"measured".into())
    );
    let log = fs::read_to_string(place.at("night.log")).unwrap();
    assert!(log.contains("# interrupted after"), "what it printed at its end is in its log: {log}");
    let again = place.output(&["watch", "--stop", "night"]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert!(stderr(&again).contains("it had already ended: the run was interrupted"), "{}", stderr(&again));
    assert_eq!(
        place.output(&["watch", "night"]).status.code(),
        Some(2),
        "that of a run that was interrupted"
    );
    let listed = |entry: &fs::DirEntry| entry.path().extension().is_some_and(|end| end == "bundle");
    assert_eq!(fs::read_dir(place.at("cache/run")).unwrap().flatten().filter(listed).count(), 0);
    nothing_is_left();
}

#[test]
fn attach_ends_as_the_run_ends_and_who_leaves_it_leaves_the_run_alone() {
    let Some(_turn) = measures_beside_others() else { return };
    let place = Place::new();
    // Without a control there is no verdict, whatever is measured: how the run ends is known beforehand.
    let begun = output(place.command(&MEASURE).args(["-D", "12", "--max", "1ns"]));
    let (path, said) = (stdout(&begun), stderr(&begun));
    assert_eq!(begun.status.code(), Some(0), "{said}");
    let bundle = PathBuf::from(path.trim_end());
    assert!(bundle.file_name().unwrap().to_str().unwrap().starts_with("tactus-measure-"), "{path}");
    assert_eq!(bundle.parent(), Some(place.dir.path()));
    await_tick(&bundle);
    let lines = place.at("lines");
    let mut left = place.command(&["watch"]);
    let mut left = left.stderr(fs::File::create(&lines).unwrap()).stdout(Stdio::null()).spawn().unwrap();
    await_text(&lines, " measured");
    signal(&left, Signal::INT);
    assert_eq!(ends(&mut left), Some(2), "who leaves does not know how it ends");
    assert!(fs::read_to_string(&lines).unwrap().contains("the run continues"));
    assert!(writer_of_any(&place).is_some(), "it goes on");
    let attached = place.output(&["watch"]);
    assert_eq!(attached.status.code(), Some(3), "{}", stderr(&attached));
    assert!(stdout(&attached).contains("host timer"), "the table: {}", stdout(&attached));
    assert_eq!(shown(&bundle)["status"], "complete");
    let log = place.at(&format!("{}.log", bundle.file_name().unwrap().to_str().unwrap()));
    assert!(fs::read_to_string(log).unwrap().contains("# Verdict"), "beside the bundle, under its name");
    let over = output(place.command(&["watch"]).arg(&bundle));
    assert_eq!(over.status.code(), Some(3), "the same when it is over: {}", stderr(&over));
    nothing_is_left();
}

/// A detached run whose working directory is this place.
fn writer_of_any(place: &Place) -> Option<String> {
    let own = |line: &Vec<u8>| line.split(|byte| *byte == 0).any(|word| word == b"--detached");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let here = processes
        .filter(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == place.dir.path()));
    let lines = here.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.filter(own).map(|line| String::from_utf8_lossy(&line).into_owned()).next()
}

#[test]
fn stop_takes_one_run_that_is_ones_own_and_asking_twice_loses_nothing() {
    let Some(_turn) = measures_beside_others() else { return };
    let place = Place::new();
    let none = place.output(&["watch", "--stop"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains("you have no run in progress") && stderr(&none).contains("hint: "));
    assert!(stderr(&place.output(&["watch"])).contains("you have no run in progress"));
    let (one, two) = (place.detached("one", "600"), place.detached("two", "600"));
    let several = place.output(&["watch", "--stop"]);
    let said = stderr(&several);
    assert_eq!(several.status.code(), Some(2));
    assert!(
        said.contains("you have 2 runs in progress") && said.contains("one, ") && said.contains("hint: name"),
        "{said}"
    );
    // Another user sees whose it is, and can do nothing.
    fs::set_permissions(place.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = copied_into(place.dir.path());
    let mut stranger = Command::new("setpriv");
    stranger
        .args(["--reuid=12345", "--regid=12345", "--clear-groups"])
        .arg(&program)
        .args(["watch", "--stop"])
        .arg(&one);
    match of_this_test(&mut stranger).env("HOME", "/").output() {
        Ok(refused) => {
            let said = stderr(&refused);
            assert_eq!(refused.status.code(), Some(2), "{said}");
            assert!(said.contains("belongs to user 0") && said.contains("hint: "), "{said}");
        }
        Err(error) => skipped(&format!("setpriv: {error}")),
    }
    // Both at once, and twice: the second asks for nothing more than the first.
    let asked: Vec<Child> = (0..3)
        .map(|_| {
            place
                .command(&["watch", "--stop", "one"])
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for asked in asked {
        let ended = asked.wait_with_output().unwrap();
        let said = stderr(&ended);
        assert_eq!(ended.status.code(), Some(0), "{said}");
    }
    assert_eq!(shown(&one)["scenarios"][0]["status"], "measured");
    assert!(
        one.join("report.html").exists()
            || fs::read_to_string(place.at("one.log")).unwrap().contains("bundle: ")
    );
    // The one that is left is the only one; killed, it is told to have died, and nothing of it is left.
    let process = Pid::from_raw(writer(&two).unwrap()).unwrap();
    let lines = place.at("lines");
    let mut follower = place.command(&["watch", "--plain"]);
    let mut follower =
        follower.stderr(fs::File::create(&lines).unwrap()).stdout(Stdio::null()).spawn().unwrap();
    await_text(&lines, " measured");
    kill_process(process, Signal::KILL).unwrap();
    assert_eq!(ends(&mut follower), Some(2));
    let said = fs::read_to_string(&lines).unwrap();
    assert!(said.contains("the run died") && said.contains("tactus run --into"), "{said}");
    let late = place.output(&["watch", "--stop", "two"]);
    assert_eq!(late.status.code(), Some(2), "{}", stderr(&late));
    assert!(
        stderr(&late).contains("no run is writing this bundle") && stderr(&late).contains("hint: it died")
    );
    assert!(
        stderr(&place.output(&["watch", "--stop"])).contains("you have no run in progress"),
        "no number is believed any more"
    );
    nothing_is_left();
}

#[test]
fn what_keeps_a_run_from_beginning_is_said_where_it_was_started_and_nothing_goes_on() {
    let Some(_turn) = measures_beside_others() else { return };
    let place = Place::new();
    fs::create_dir(place.at("filled")).unwrap();
    fs::write(place.at("filled/file"), "").unwrap();
    for (words, told) in [
        (&["run", "no-such-plan.toml", "--detach"][..], "no-such-plan.toml"),
        (&["measure", "--in", "vbox", "--detach"], "vbox"),
        (&["measure", "--detach", "--out", "filled"], "filled"),
        (&["run", "--detach", "--json"], "--json"),
    ] {
        let refused = place.output(words);
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(told) && said.contains("hint: "), "{words:?}: {said}");
        assert_eq!(stdout(&refused), "", "{words:?}");
        let names: Vec<_> =
            fs::read_dir(place.dir.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
        let left = names.iter().filter(|name| *name != "cache" && *name != "filled").count();
        assert_eq!(left, 0, "{words:?}: {names:?}");
    }
    // A log that somebody else can write to is nothing that this run has said.
    let log = place.at("theirs.log");
    fs::write(&log, "bundle: /somewhere/else\n").unwrap();
    fs::set_permissions(&log, fs::Permissions::from_mode(0o666)).unwrap();
    let refused = place.output(&["measure", "--detach", "--out", "theirs"]);
    let said = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("theirs.log: others may write to it") && said.contains("hint: "), "{said}");
    assert!(!place.at("theirs").exists());
    assert_eq!(fs::read_to_string(&log).unwrap(), "bundle: /somewhere/else\n");
    // Ctrl-C while it waits for the machine: no process keeps waiting.
    let held = place.detached("held", "600");
    let lines = place.at("lines");
    let mut waits = place.command(&["measure", "--detach", "--out", "late", "--wait", "1h"]);
    let mut waits = waits.stderr(fs::File::create(&lines).unwrap()).stdout(Stdio::null()).spawn().unwrap();
    await_text(&lines, "waiting for its end");
    signal(&waits, Signal::INT);
    assert_eq!(ends(&mut waits), Some(2));
    assert!(!place.at("late").exists() && writer(&place.at("late")).is_none());
    assert_eq!(place.output(&["watch", "--stop", held.to_str().unwrap()]).status.code(), Some(0));
    nothing_is_left();
}
