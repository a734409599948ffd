//! The generated scripts for QEMU: it starts with these arguments, its vCPUs are where they belong, and
//! it ends when it is told to.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tactus_tune::generate::{Accel, GuestOptions, Page};

use crate::common::{generated, has, machine};

struct Script(Child);

impl Drop for Script {
    fn drop(&mut self) {
        // The script ends its QEMU when it is told to end.
        if self.0.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _ = Command::new("kill").arg(self.0.id().to_string()).status();
            let _ = self.0.wait();
        }
    }
}

fn ask(socket: &Path, command: &str) -> Option<serde_json::Value> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    lines.next()?.ok()?;
    let mut answer = None;
    for command in ["qmp_capabilities", command] {
        writeln!(stream, "{{\"execute\":\"{command}\"}}").ok()?;
        answer = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let value: serde_json::Value = serde_json::from_str(&line).ok()?;
            value.get("return").cloned()
        });
    }
    answer
}

#[test]
fn qemu_starts_with_the_arguments_and_its_vcpus_are_placed() {
    if !["qemu-system-x86_64", "python3", "taskset"].into_iter().all(has) {
        return;
    }
    let options = GuestOptions {
        memory: Some("64M".parse().unwrap()),
        page: Some(Page::Base),
        accel: Some(Accel::Tcg),
        vcpus: Some(2),
        ..GuestOptions::default()
    };
    let dir = generated("qemu", &machine("x86_64", "GenuineIntel", 4), "2-3", &options);
    // This machine may have fewer CPUs than the one that the files are for.
    let last = std::thread::available_parallelism().unwrap().get() - 1;
    let pin = dir.path().join("rt-guest-pin.py");
    let text = std::fs::read_to_string(&pin).unwrap();
    assert!(text.contains("PINS = {0: 2, 1: 3}\n"));
    let here = text.replace("{0: 2, 1: 3}", &format!("{{0: {last}, 1: {last}}}"));
    std::fs::write(&pin, here).unwrap();
    let socket = dir.path().join("qmp");
    let script = Command::new(dir.path().join("rt-guest-qemu.sh"))
        .env("QMP", &socket)
        .env("HOUSE", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut script = Script(script);

    // Tests that measure go first.
    let until = Instant::now() + Duration::from_secs(300);
    let vcpus = loop {
        if let Some(status) = script.0.try_wait().unwrap() {
            let mut words = String::new();
            std::io::Read::read_to_string(script.0.stderr.as_mut().unwrap(), &mut words).unwrap();
            assert!(words.contains("Operation not permitted"), "{status}: {words}");
            crate::common::skipped("no thread may be FIFO here, or no memory locked");
            return;
        }
        assert!(Instant::now() < until, "the guest does not run");
        // While it does not run, the other script may hold the monitor: then this waits its turn.
        let running = ask(&socket, "query-status").is_some_and(|status| status["running"] == true);
        if running && let Some(vcpus) = ask(&socket, "query-cpus-fast") {
            break vcpus;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let vcpus = vcpus.as_array().unwrap();
    assert_eq!(vcpus.len(), 2);
    for vcpu in vcpus {
        let thread = vcpu["thread-id"].as_u64().unwrap();
        let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap();
        assert!(status.lines().any(|line| line == format!("Cpus_allowed_list:\t{last}")), "{status}");
        let stat = std::fs::read_to_string(format!("/proc/{thread}/stat")).unwrap();
        // Fields 40 and 41 of proc(5): priority 1, SCHED_FIFO. The third field follows the name.
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        assert_eq!((fields[37], fields[38]), ("1", "1"));
    }
    ask(&socket, "quit");
    assert!(script.0.wait().unwrap().success());
}
