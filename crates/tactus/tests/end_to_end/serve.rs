//! `tactus watch --serve`: where it listens, which clients it lets in, and how it ends. tactus-serve tests its pages.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{
    await_tick, beside_others, copied_into, json, measures_beside_others, nothing_is_left, output, started,
    stderr, tactus,
};

/// A server, and where it is.
struct Serving {
    child: Child,
    /// Address and port of this machine.
    at: String,
    /// The rest behind the address, as it was printed.
    rest: String,
}

impl Serving {
    fn start(arguments: &[&str], dir: &Path) -> Self {
        let mut command = tactus();
        command
            .args(["watch", "--serve"])
            .arg(dir)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = said.find_map(|line| Some(line.unwrap().split_once(": http://")?.1.to_owned())).unwrap();
        std::thread::spawn(move || said.for_each(drop));
        let (at, rest) = url.split_once('/').unwrap();
        let port = at.rsplit_once(':').unwrap().1;
        Self { child, at: format!("127.0.0.1:{port}"), rest: rest.to_owned() }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.at).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.at).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Ends it as Ctrl-C does, and returns its exit code.
    fn end(mut self) -> Option<i32> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        self.child.wait().unwrap().code()
    }
}

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tactus-bundle/tests/recorded")
}

#[test]
fn bundles_are_served_on_loopback_until_ctrl_c_and_nothing_is_written() {
    let _turn = beside_others();
    let before = entries(&recorded());
    let serving = Serving::start(&["--listen", ":0"], &recorded());
    assert_eq!(serving.rest, "", "on loopback there is no token");
    let list = serving.get("/");
    assert!(list.contains("/bundle/separation") && list.contains("bench-01"), "{list}");
    assert!(serving.get("/bundle/separation").contains("<h1>"));
    assert_eq!(serving.end(), Some(0), "who asks it to end is obeyed, and that is no failure");
    assert_eq!(entries(&recorded()), before);
}

/// Every path beneath, with its size.
fn entries(dir: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let about = entry.metadata().unwrap();
        found.push((entry.path(), about.len()));
        if about.is_dir() {
            found.extend(entries(&entry.path()));
        }
    }
    found.sort();
    found
}

#[test]
fn elsewhere_than_on_loopback_who_has_no_token_reads_nothing() {
    let _turn = beside_others();
    let serving = Serving::start(&["--listen", "0.0.0.0:0"], &recorded());
    let token = serving.rest.strip_prefix("?token=").expect("a token is printed");
    assert_eq!(
        (token.len(), token.bytes().all(|byte| byte.is_ascii_hexdigit())),
        (32, true),
        "128 bits: {token}"
    );
    let closed = serving.get("/");
    assert!(closed.starts_with("HTTP/1.1 401 ") && !closed.contains("separation"), "{closed}");
    assert!(serving.get(&format!("/{}", serving.rest)).contains("/bundle/separation"));
    serving.end();
    // One that was written is asked for on loopback too, and not printed.
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    fs::write(&file, "a-token-of-my-own-0123456789\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let serving = Serving::start(&["--listen", ":0", "--token-file", file.to_str().unwrap()], &recorded());
    assert_eq!(serving.rest, "");
    assert!(serving.get("/").starts_with("HTTP/1.1 401 "));
    assert!(serving.get("/?token=a-token-of-my-own-0123456789").starts_with("HTTP/1.1 200 "));
    serving.end();
}

#[test]
fn what_cannot_be_served_is_named_with_a_hint() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    fs::write(path("short"), "secret").unwrap();
    fs::set_permissions(path("short"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(path("open"), "a-token-of-my-own-0123456789").unwrap();
    fs::set_permissions(path("open"), fs::Permissions::from_mode(0o644)).unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let bundle = recorded().join("prove").display().to_string();
    let here = dir.path().display().to_string();
    for (arguments, says, hint) in [
        (vec![path("nowhere")], "No such file", "a directory that contains bundles"),
        (vec![path("short")], "Not a directory", "a directory that contains bundles"),
        (vec![bundle], "is a bundle itself", "tests/recorded"),
        (vec![here.clone(), "--listen".into(), taken], "in use", "--listen :0"),
        (vec![here.clone(), "--listen".into(), "192.0.2.1:0".into()], "192.0.2.1", "ip address"),
        (vec![here.clone(), "--listen".into(), "localhost:http".into()], "not ADDRESS:PORT", "--help"),
        (vec![here.clone(), "--token-file".into(), path("short")], "22 to 256 characters", "openssl rand"),
        (vec![here.clone(), "--token-file".into(), path("open")], "others may read it", "umask 077"),
        (vec![here, "--token-file".into(), path("none")], "No such file", "openssl rand"),
    ] {
        let ended = output(tactus().args(["watch", "--serve"]).args(&arguments));
        let said = stderr(&ended);
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(
            said.contains(says) && said.contains("hint: ") && said.contains(hint),
            "{arguments:?}: {said}"
        );
    }
}

#[test]
fn who_may_not_read_the_directory_is_told_so_and_a_port_of_roots_is_named() {
    let _turn = beside_others();
    if !rustix::process::geteuid().is_root() {
        return crate::common::skipped("only root can become somebody else");
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = copied_into(dir.path());
    let closed = dir.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let stranger = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(["watch", "--serve"]).args(arguments).env("LC_ALL", "C.UTF-8").uid(65_534).gid(65_534);
        output(command.stdin(Stdio::null()))
    };
    let said = stderr(&stranger(&[closed.to_str().unwrap()]));
    assert!(said.contains("Permission denied") && said.contains("hint: "), "{said}");
    let lowest = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap_or_default();
    if lowest.trim().parse::<u16>().is_ok_and(|lowest| lowest > 1) {
        let said = stderr(&stranger(&[dir.path().to_str().unwrap(), "--listen", ":1"]));
        assert!(said.contains("Permission denied") && said.contains("ports below 1024"), "{said}");
    }
}

#[test]
fn a_real_run_is_followed_from_its_first_tick_to_its_report() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let serving = Serving::start(&["--listen", ":0"], dir.path());
    assert!(serving.get("/").contains("There is no bundle here yet"));
    let out = dir.path().join("night");
    let mut run =
        started(tactus().args(["measure", "-D", "600s", "-i", "1000", "--no-self-test", "--out"]).arg(&out));
    await_tick(&out);
    let mut stream = TcpStream::connect(&serving.at).unwrap();
    write!(stream, "GET /bundle/night/events HTTP/1.1\r\nHost: {}\r\n\r\n", serving.at).unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    // Wake-ups rise from one event to a later one.
    let mut wakes = || {
        let line = lines.find(|line| line.contains("data-head=\"wake-ups\">")).unwrap();
        line.split("data-head=\"wake-ups\">").nth(1).unwrap().split('<').next().unwrap().replace(' ', "")
    };
    let first: u64 = wakes().parse().unwrap();
    let until = Instant::now() + Duration::from_secs(120);
    while wakes().parse::<u64>().unwrap() <= first {
        assert!(Instant::now() < until, "nothing new is told");
    }
    kill_process(Pid::from_raw(i32::try_from(run.id()).unwrap()).unwrap(), Signal::INT).unwrap();
    run.wait().unwrap();
    assert!(lines.any(|line| line == "event: ended"));
    assert!(lines.any(|line| line.contains("Open its report")));
    let cycles =
        json(&output(tactus().arg("report").arg(&out).arg("--json")))["scenarios"][0]["all"]["cycles"]
            .clone();
    assert!(cycles.as_u64().unwrap() > first, "{cycles}");
    assert!(serving.get("/bundle/night").contains("<h1>"));
    assert_eq!(serving.end(), Some(0));
    nothing_is_left();
}
