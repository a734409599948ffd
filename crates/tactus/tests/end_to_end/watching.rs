//! The live screen in a real terminal (tmux), and terminals that are full, go away, or whose command is killed.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{
    await_tick, json, measures_beside_others, nothing_is_left, of_this_test, output, skipped, stdout, tactus,
};

/// A terminal of tmux with a shell in it, on a separate server.
struct Tmux {
    socket: String,
}

impl Tmux {
    /// A terminal of this size; `None`: tmux is not installed, which is printed.
    fn open(name: &str, columns: u16, lines: u16) -> Option<Self> {
        let own = Self { socket: format!("tactus-{name}-{}", std::process::id()) };
        let (columns, lines) = (columns.to_string(), lines.to_string());
        let mut command = own.command(&["new-session", "-d", "-x", &columns, "-y", &lines, "sh"]);
        match command.env("LC_ALL", "C.UTF-8").env("PS1", "$ ").status() {
            Ok(status) => assert!(status.success(), "tmux starts"),
            Err(error) => {
                skipped(&format!("tmux: {error}"));
                return None;
            }
        }
        Some(own)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.socket, "-f", "/dev/null"]).args(arguments);
        of_this_test(&mut command).env_remove("TMUX").env_remove("NO_COLOR");
        command
    }

    /// The present text of the screen.
    fn screen(&self) -> String {
        stdout(&output(&mut self.command(&["capture-pane", "-p"])))
    }

    fn press(&self, keys: &str) {
        assert!(self.command(&["send-keys", keys]).status().unwrap().success());
    }

    /// Types a line.
    fn line(&self, text: &str) {
        assert!(self.command(&["send-keys", "-l", text]).status().unwrap().success());
        self.press("Enter");
    }

    fn resize(&self, columns: u16, lines: u16) {
        let (columns, lines) = (columns.to_string(), lines.to_string());
        let resized = self.command(&["resize-window", "-x", &columns, "-y", &lines]).status();
        assert!(resized.unwrap().success());
    }

    /// Waits until all of this is on the screen.
    fn shows(&self, words: &[&str]) -> String {
        let until = Instant::now() + Duration::from_secs(120);
        loop {
            let screen = self.screen();
            if words.iter().all(|word| screen.contains(word)) {
                return screen;
            }
            assert!(Instant::now() < until, "{words:?} never came:\n{screen}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).status();
    }
}

/// The command for a shell: measures the host for `duration`.
fn measure(out: &Path, duration: &str) -> String {
    let program = env!("CARGO_BIN_EXE_tactus");
    format!("{program} measure -D {duration} -i 1000 --max 10s --load cpu --out {}", out.display())
}

/// The settings of a terminal, written by its shell to a file.
fn settings(tmux: &Tmux, to: &Path) -> String {
    tmux.line(&format!("stty -g > {0}.new; mv {0}.new {0}", to.display()));
    let until = Instant::now() + Duration::from_secs(60);
    while !to.exists() {
        assert!(Instant::now() < until, "no shell answers:\n{}", tmux.screen());
        std::thread::sleep(Duration::from_millis(50));
    }
    fs::read_to_string(to).unwrap()
}

#[test]
fn the_live_screen_takes_keys_and_sizes_marks_moments_and_leaves_the_terminal_as_it_was() {
    let Some(_turn) = measures_beside_others() else { return };
    let Some(tmux) = Tmux::open("screen", 80, 24) else { return };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("bundle");
    let before = settings(&tmux, &dir.path().join("before"));
    tmux.line("echo what was there");
    tmux.line(&measure(&out, "600s"));
    let first = tmux.shows(&["p99 us", "t0 thread", "number of samples by latency", "10 min 00 s", "left"]);
    assert!(!first.contains("what was there"), "the screen is its own:\n{first}");
    assert!(first.contains("host  timer, cpu"), "{first}");
    tmux.press("3");
    tmux.shows(&["largest latency over the whole time"]);
    tmux.press("4");
    tmux.shows(&["messages, the newest first", "findings: "]);
    tmux.press("m");
    tmux.shows(&["marked by the user at "]);
    tmux.press("p");
    tmux.shows(&["VIEW PAUSED"]);
    tmux.press("p");
    tmux.press("1");
    tmux.resize(44, 9);
    tmux.shows(&["t0 thread", "tab up/dn e p m q"]);
    tmux.resize(120, 40);
    tmux.shows(&["limit 10000000 us"]);
    tmux.press("q");
    tmux.shows(&["End the run?"]);
    tmux.press("q");
    let last = tmux.shows(&["Max:", "bundle: "]);
    assert!(last.contains("what was there"), "what was there is there again:\n{last}");
    assert_eq!(settings(&tmux, &dir.path().join("after")), before);
    let shown = json(&output(tactus().arg("report").arg(&out).arg("--json")));
    assert_eq!(shown["status"], "interrupted");
    assert!(shown["scenarios"][0]["all"]["cycles"].as_u64().unwrap() > 0);
    let report = stdout(&output(tactus().arg("report").arg(&out).args(["--format", "text"])));
    assert!(report.contains("marked by the user at "), "{report}");
    let events = fs::read_to_string(out.join("events.jsonl")).unwrap();
    assert_eq!(events.matches("marked by the user at ").count(), 1, "{events}");
    nothing_is_left();
}

#[test]
fn a_command_that_is_killed_leaves_the_terminal_as_it_was() {
    let Some(_turn) = measures_beside_others() else { return };
    for (name, signal) in [("kill", Signal::KILL), ("term", Signal::TERM)] {
        let Some(tmux) = Tmux::open(name, 80, 40) else { return };
        let dir = tempfile::tempdir().unwrap();
        let (out, pid) = (dir.path().join("bundle"), dir.path().join("pid"));
        let before = settings(&tmux, &dir.path().join("before"));
        tmux.line("echo what was there");
        // The shell becomes the command, whose number is then known; the outer shell remains.
        tmux.line(&format!("sh -c 'echo $$ > {}; exec {}'", pid.display(), measure(&out, "600s")));
        tmux.shows(&["p99 us", "t0 thread"]);
        let number = fs::read_to_string(&pid).unwrap().trim().parse().ok().and_then(Pid::from_raw).unwrap();
        kill_process(number, signal).unwrap();
        tmux.shows(&["what was there"]);
        let until = Instant::now() + Duration::from_secs(60);
        let after = dir.path().join("after");
        while settings(&tmux, &after) != before {
            assert!(Instant::now() < until, "the terminal is set otherwise:\n{}", tmux.screen());
            fs::remove_file(&after).unwrap();
        }
        nothing_is_left();
        let shown = json(&output(tactus().arg("report").arg(&out).arg("--json")));
        assert_eq!(shown["status"], "interrupted", "{name}");
    }
}

/// The command in a separate terminal that is not read: the terminal's other end, and the command.
pub fn in_unread_terminal(command: &str) -> (rustix::fd::OwnedFd, std::process::Child) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let size = rustix::termios::Winsize { ws_row: 200, ws_col: 500, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&master, size).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    // Not to become the terminal of the tests themselves.
    let not_ours = i32::try_from(rustix::fs::OFlags::NOCTTY.bits()).unwrap();
    let open = || {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).custom_flags(not_ours).open(&name).unwrap()
    };
    let mut own = Command::new("setsid");
    let child = of_this_test(&mut own)
        // Tests that run without a terminal (nohup) ignore the signal, and this shell would, too.
        .args(["--ctty", "env", "--default-signal=HUP", "sh", "-c", command])
        .stdin(open())
        .stdout(std::process::Stdio::null())
        .stderr(open())
        .env("TERM", "xterm")
        .spawn()
        .unwrap();
    (master, child)
}

#[test]
fn a_screen_whose_terminal_takes_nothing_or_goes_away_ends_no_measurement() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let stuck = dir.path().join("stuck");
    let ended = dir.path().join("ended");
    // A large terminal that is drawn often: without a reader it is soon full.
    let command = format!("{}; echo $? > {}", measure(&stuck, "3s"), ended.display());
    let (_unread, mut child) = in_unread_terminal(&command);
    let until = Instant::now() + Duration::from_secs(120);
    // The command's own last words may wait for their reader; the bundle is whole before.
    let whole = || json(&output(tactus().arg("report").arg(&stuck).arg("--json")))["status"] == "complete";
    await_tick(&stuck);
    while !whole() {
        assert!(Instant::now() < until, "the run waits for its terminal");
        std::thread::sleep(Duration::from_millis(200));
    }
    drop(_unread);
    child.wait().unwrap();
    let gone = dir.path().join("gone");
    // The other one may be at its end still, when its terminal has gone.
    let (unread, mut child) = in_unread_terminal(&format!("exec {} --wait 1m", measure(&gone, "600s")));
    await_tick(&gone);
    // The terminal hangs up: that ends the run as it always has, and what was measured is kept.
    drop(unread);
    child.wait().unwrap();
    nothing_is_left();
    let shown = json(&output(tactus().arg("report").arg(&gone).arg("--json")));
    assert_eq!(shown["scenarios"][0]["status"], "measured", "{shown:#}");
}

#[test]
fn without_a_terminal_or_where_lines_are_asked_for_there_is_no_screen() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    for (name, plain) in [("plain", "--plain"), ("json", "--json"), ("quiet", "-q")] {
        let Some(tmux) = Tmux::open(name, 80, 24) else { return };
        tmux.line("echo what was there");
        tmux.line(&format!("{} {plain} >/dev/null; echo al''l-over", measure(&dir.path().join(name), "2s")));
        tmux.shows(&["all-over"]);
        let seen = output(&mut tmux.command(&["capture-pane", "-p", "-S", "-500"]));
        assert!(stdout(&seen).contains("what was there"), "{name}: {}", stdout(&seen));
        assert!(!stdout(&seen).contains("number of samples"), "{name}: {}", stdout(&seen));
    }
}

#[test]
fn a_run_is_followed_from_another_terminal_and_continues_when_the_follower_leaves() {
    let Some(_turn) = measures_beside_others() else { return };
    let Some(tmux) = Tmux::open("follow", 80, 24) else { return };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("bundle");
    let mut run = tactus();
    run.args(["run", "--duration", "600s", "--only", "host idle", "--out"]).arg(&out);
    let mut run = crate::common::started(&mut run);
    await_tick(&out);
    let before = settings(&tmux, &dir.path().join("before"));
    let program = env!("CARGO_BIN_EXE_tactus");
    tmux.line(&format!("{program} watch {}; echo al''l-over", out.display()));
    let first = tmux.shows(&["p99 us", "t0 thread", "number of samples by latency", "q leave"]);
    assert!(first.contains("10 min 00 s"), "{first}");
    let figure = |screen: &str| screen.lines().find(|line| line.contains(" s of ")).map(str::to_owned);
    let until = Instant::now() + Duration::from_secs(120);
    while figure(&tmux.screen()) == figure(&first) {
        assert!(Instant::now() < until, "it does not go on: {first}");
        std::thread::sleep(Duration::from_millis(200));
    }
    tmux.press("q");
    tmux.shows(&["all-over"]);
    assert_eq!(settings(&tmux, &dir.path().join("after")), before);
    assert!(run.try_wait().unwrap().is_none(), "the run goes on");
    // Lines for who has no terminal; the end of the run is the end of them, and then the table comes.
    let lines = dir.path().join("lines");
    let mut follower = tactus();
    follower.args(["watch"]).arg(&out);
    follower
        .stderr(fs::File::create(&lines).unwrap())
        .stdout(fs::File::create(dir.path().join("table")).unwrap());
    let mut follower = follower.spawn().unwrap();
    crate::common::await_text(&lines, " measured");
    let number = i32::try_from(run.id()).ok().and_then(Pid::from_raw).unwrap();
    kill_process(number, Signal::INT).unwrap();
    run.wait().unwrap();
    let ended = follower.wait().unwrap();
    assert_eq!(ended.code(), Some(2), "as the run: {}", fs::read_to_string(&lines).unwrap());
    assert!(fs::read_to_string(dir.path().join("table")).unwrap().contains("host"));
    nothing_is_left();
}
