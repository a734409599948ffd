//! Blame of latencies: known causes are named, and no cause is invented.

use std::fs;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::net::{AddressFamily, SendFlags, SocketAddrV4, SocketType, bind, sendto, socket, sockopt};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use serde_json::Value;

use crate::common::{alone, json, nothing_is_left, output, skipped, stderr, stdout, tactus};

/// The measured CPU.
const CPU: u8 = 1;

const PLAN: &str = r#"
name = "blame"
[defaults]
duration = "3s"
blame_above = "2ms"
[environment.host]
kind = "host"
cpus = "1"
[[scenario]]
name = "hog"
environment = "host"
fault = [{ kind = "hog", length = "20ms", every = "200ms" }]
[[scenario]]
name = "block"
environment = "host"
fault = [{ kind = "block", length = "20ms", every = "200ms" }]
"#;

/// One scenario without a cause.
const NOTHING: &str = r#"
name = "nothing"
[environment.host]
kind = "host"
cpus = "1"
[[scenario]]
name = "nothing"
duration = "3s"
environment = "host"
control = false
"#;

/// How many of a row's latencies of at least `from_ns` are blamed on `to`, and how many there are.
fn laid(row: &Value, to: &str, from_ns: u64) -> (usize, usize) {
    let latencies = row["blame"]["latencies"].as_array().unwrap_or_else(|| panic!("{row:#}"));
    let large: Vec<&Value> =
        latencies.iter().filter(|one| one["value_ns"].as_u64().unwrap() >= from_ns).collect();
    (large.iter().filter(|one| one["cause"].as_str().unwrap().contains(to)).count(), large.len())
}

/// Why blame is impossible here; `None` if it is possible.
fn obstacle(row: &Value) -> Option<String> {
    let told = [&row["blame"]["unavailable"], &row["reason"]];
    told.into_iter().find_map(Value::as_str).map(str::to_owned)
}

fn parts_are_the_latency(row: &Value) {
    for latency in row["blame"]["latencies"].as_array().unwrap() {
        let parts = latency["parts"].as_array().unwrap();
        let sum: u64 = parts.iter().map(|part| part["ns"].as_u64().unwrap()).sum();
        let unaccounted = latency["unaccounted_ns"].as_u64().unwrap();
        assert_eq!(sum + unaccounted, latency["value_ns"].as_u64().unwrap(), "{latency:#}");
    }
}

/// The name of a timer's function if the kernel reports it, else of the interrupt that it went off in.
fn timer_or_its_interrupt<'a>(rows: impl IntoIterator<Item = &'a Value>, function: &str) -> String {
    let parts = |row: &'a Value| row["blame"]["latencies"].as_array().into_iter().flatten();
    let mut parts = rows.into_iter().flat_map(parts).flat_map(|one| one["parts"].as_array().unwrap());
    match parts.any(|part| part["owner"] == "timer" && part["name"] != "") {
        true => format!("timer {function}"),
        false => "local_timer interrupt".to_owned(),
    }
}

#[test]
fn a_hog_and_a_block_are_named_as_those_who_had_the_cpu_and_parts_are_the_latency() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (plan, out) = (dir.path().join("plan.toml"), dir.path().join("bundle"));
    fs::write(&plan, PLAN).unwrap();
    let result = output(tactus().arg("run").arg(&plan).args(["--json", "--out"]).arg(&out));
    let document = json(&result);
    let rows = document["scenarios"].as_array().unwrap();
    if let Some(why) = rows.iter().find_map(obstacle) {
        return skipped(&why);
    }
    // The block is a program at the clock of a performance event, which is a timer of the kernel.
    let block = timer_or_its_interrupt(rows, "perf_swevent_hrtimer");
    for (name, cause) in [("hog", "tactus-hog"), ("block", &block)] {
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        let (to, of) = laid(row, cause, 15_000_000);
        assert!(of >= 5 && to * 10 >= of * 8, "{to} of {of}: {:#}\n{}", row["blame"], stderr(&result));
        parts_are_the_latency(row);
    }
    let shown = stdout(&output(tactus().arg("report").arg(&out)));
    assert!(shown.contains("largest: ") && shown.contains(&block), "{shown}");
    nothing_is_left();
}

/// Runs a disturbance of the measured CPU until `then` has returned.
fn beside<T>(disturb: impl FnOnce(&AtomicBool) + Send, then: impl FnOnce() -> T) -> T {
    struct End<'a>(&'a AtomicBool);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = End(&over);
        scope.spawn(|| {
            let mut cpus = CpuSet::new();
            cpus.set(usize::from(CPU));
            sched_setaffinity(None, &cpus).unwrap();
            disturb(&over);
        });
        then()
    })
}

/// 6000 timers that go off at one moment, every 20 ms: all of them in one interrupt of the timer.
fn timer_storm(over: &AtomicBool) {
    const TIMERS: usize = 6_000;
    const EVERY_NS: i64 = 20_000_000;
    let none = Timespec { tv_sec: 0, tv_nsec: 0 };
    let make = |_| timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).unwrap();
    let timers: Vec<OwnedFd> = (0..TIMERS).map(make).collect();
    while !over.load(Ordering::Relaxed) {
        let now = clock_gettime(ClockId::Monotonic);
        let ns = now.tv_nsec + EVERY_NS;
        let value = Timespec { tv_sec: now.tv_sec + ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 };
        let once = Itimerspec { it_interval: none, it_value: value };
        for timer in &timers {
            timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once).unwrap();
        }
        std::thread::sleep(Duration::from_millis(25));
    }
}

/// Datagrams to everybody on the loopback, and there are many: each is handed to all of them in one soft interrupt.
fn packet_flood(over: &AtomicBool) {
    const RECEIVERS: usize = 4_000;
    const PORT: u16 = 48_907;
    let make = || {
        let own = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
        sockopt::set_socket_reuseaddr(&own, true).unwrap();
        own
    };
    let receivers: Vec<OwnedFd> = (0..RECEIVERS)
        .map(|_| {
            let own = make();
            bind(&own, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT)).unwrap();
            own
        })
        .collect();
    let sender = make();
    sockopt::set_socket_broadcast(&sender, true).unwrap();
    let all = SocketAddrV4::new(Ipv4Addr::new(127, 255, 255, 255), PORT);
    while !over.load(Ordering::Relaxed) {
        sendto(&sender, &[7; 64], SendFlags::empty(), &all).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(receivers);
}

/// `tactus measure` with blame, beside what disturbs: its one row.
fn measured(disturb: impl FnOnce(&AtomicBool) + Send) -> Value {
    let result = beside(disturb, || {
        output(tactus().args(["measure", "-a", "1", "-D", "3", "--no-self-test", "--json"]).args([
            "--blame-above",
            "300",
            "-i",
            "200",
        ]))
    });
    json(&result)["scenarios"][0].clone()
}

/// Most of the large latencies are blamed on the cause. Other programs of a busy machine may have more of them once, so one
/// of three measurements must show it.
fn is_named(disturb: fn(&AtomicBool), cause: fn(&Value) -> String) {
    let mut seen = Vec::new();
    for _ in 0..3 {
        let row = measured(disturb);
        parts_are_the_latency(&row);
        let cause = cause(&row);
        let (to, of) = laid(&row, &cause, 300_000);
        if of >= 5 && to * 2 > of {
            return;
        }
        seen.push(format!("{cause}: {to} of {of}: {:#}", row["blame"]));
    }
    panic!("{}", seen.join("\n"));
}

#[test]
fn a_storm_of_timers_and_a_flood_of_packets_on_the_loopback_are_named() {
    let Some(_alone) = alone() else { return };
    if let Some(why) = obstacle(&measured(timer_storm)) {
        return skipped(&why);
    }
    is_named(timer_storm, |row| timer_or_its_interrupt([row], "timerfd_tmrproc"));
    is_named(packet_flood, |_| "softirq NET_RX".to_owned());
    nothing_is_left();
}

#[test]
fn a_program_that_sleeps_or_waits_for_a_lock_is_blocked_and_one_that_works_is_not() {
    let Some(_alone) = alone() else { return };
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return skipped("this kernel does not say where its structures have their fields (BTF)");
    }
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("misdeed");
    let built = output(
        Command::new("cc")
            .args(["-std=c99", "-O2", "-pthread", "-Wall", "-Wextra", "-Werror", "-I"])
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../tactus-application/include"))
            .arg("-o")
            .arg(&program)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/end_to_end/misdeed.c")),
    );
    assert!(built.status.success(), "{}", stderr(&built));
    for misdeed in ["sleep", "lock", "work"] {
        let file = dir.path().join(misdeed);
        let mut chrt = Command::new("chrt");
        chrt.args(["-f", "60", "taskset", "-c", "1"]).arg(&program).arg(&file).arg(misdeed);
        let mut running = chrt.spawn().unwrap();
        let result = output(
            tactus()
                .args([
                    "measure",
                    "application",
                    "-a",
                    "1",
                    "-i",
                    "5000",
                    "-D",
                    "4",
                    "--no-self-test",
                    "--json",
                ])
                .args(["--blame-above", "1000", "--file"])
                .arg(&file),
        );
        running.kill().unwrap();
        running.wait().unwrap();
        let row = &json(&result)["scenarios"][0];
        if let Some(why) = obstacle(row) {
            return skipped(&why);
        }
        let (blocked, of) = laid(row, "blocked", 2_500_000);
        assert!(of >= 5, "{misdeed}: {row:#}\n{}", stderr(&result));
        match misdeed {
            "work" => assert!(blocked * 10 <= of, "{misdeed}: {blocked} of {of}: {:#}", row["blame"]),
            _ => assert!(blocked * 10 >= of * 8, "{misdeed}: {blocked} of {of}: {:#}", row["blame"]),
        }
        parts_are_the_latency(row);
    }
    nothing_is_left();
}

#[test]
fn where_nothing_disturbs_no_known_cause_is_named() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (plan, out) = (dir.path().join("plan.toml"), dir.path().join("bundle"));
    fs::write(&plan, NOTHING).unwrap();
    let result =
        output(tactus().arg("run").arg(&plan).args(["--blame-above", "100", "--json", "--out"]).arg(&out));
    let row = &json(&result)["scenarios"][0];
    if let Some(why) = obstacle(row) {
        return skipped(&why);
    }
    for cause in ["tactus-hog", "NET_RX"] {
        let (to, of) = laid(row, cause, 0);
        assert!(of >= 10 && to == 0, "{cause}: {to} of {of}: {:#}", row["blame"]);
    }
    // Other programs run on this machine: a named cause must have had most of the time.
    let median = row["all"]["p50_ns"].as_u64().unwrap();
    for latency in row["blame"]["latencies"].as_array().unwrap() {
        let cause = latency["cause"].as_str().unwrap();
        if cause != "ordinary" && cause != "not known" {
            let beyond = latency["value_ns"].as_u64().unwrap() - median;
            assert!(latency["parts"][0]["ns"].as_u64().unwrap() * 2 >= beyond, "{latency:#}");
        }
    }
    parts_are_the_latency(row);
    nothing_is_left();
}

#[test]
fn a_measurement_ends_with_the_first_latency_that_it_is_to_stop_above_and_says_who_had_the_cpu() {
    let Some(_alone) = alone() else { return };
    let words = ["measure", "-a", "1", "-D", "20", "--no-self-test", "--quiet", "--stop-above", "300"];
    let (data, text) =
        beside(timer_storm, || (output(tactus().args(words).arg("--json")), output(tactus().args(words))));
    let document = json(&data);
    let row = &document["scenarios"][0];
    if let Some(why) = row["blame"]["unavailable"].as_str() {
        return skipped(why);
    }
    assert_eq!(row["ended"], "broke", "{row:#}");
    let (_, of) = laid(row, "", 300_000);
    assert!((1..=3).contains(&of), "{:#}", row["blame"]);
    assert!(row["duration_s"].as_f64().unwrap() < 19.0, "{row:#}");
    let text = stdout(&text);
    assert!(text.contains("# Blame: of the ") && text.contains(" s: "), "{text}");
    nothing_is_left();
}

/// A guest whose virtual CPU is kept from running by a thread of the machine. It has one: see "A guest that hangs" in
/// docs/design/blame.md.
const HELD: &str = r#"
name = "held"
[environment.guest]
kind = "qemu"
cpus = "1"
[[scenario]]
name = "held"
duration = "8s"
interval = "1ms"
control = false
stop_above = "100s"
[[scenario.activity]]
measure = "timer"
in = "guest"
cpus = "0"
[[scenario.activity]]
fault = { kind = "hold-vcpu", length = "100ms", every = "500ms", by = "fifo" }
in = "guest"
cpus = "0"
"#;

#[test]
fn a_vcpu_that_the_machine_held_is_laid_to_the_hypervisor_and_to_the_thread_that_had_its_cpu() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (plan, out) = (dir.path().join("plan.toml"), dir.path().join("bundle"));
    fs::write(&plan, HELD).unwrap();
    let result = output(tactus().arg("run").arg(&plan).args(["--json", "--out"]).arg(&out));
    let document = json(&result);
    let row = &document["scenarios"][0];
    if let Some(why) = obstacle(row) {
        return skipped(&why);
    }
    parts_are_the_latency(row);
    let (to, of) = laid(row, "hypervisor", 80_000_000);
    assert!(of >= 5 && to * 10 >= of * 7, "{to} of {of}: {:#}\n{}", row["blame"], stderr(&result));
    let latencies = row["blame"]["latencies"].as_array().unwrap();
    let host: Vec<&Value> = latencies.iter().map(|one| &one["host"]).filter(|host| !host.is_null()).collect();
    let named = |host: &&&Value| host["by"].as_str().is_some_and(|by| by.ends_with("hold-vcpu"));
    assert!(host.iter().filter(named).count() * 2 >= host.len(), "{host:#?}");
    assert!(host.iter().all(|host| host["within_ns"].as_u64().unwrap() > 0), "{host:#?}");
    nothing_is_left();
}

#[test]
fn where_the_kernel_refuses_bpf_and_tracefs_counters_name_candidates_and_there_is_no_account() {
    let Some(_alone) = alone() else { return };
    if !Path::new("/usr/sbin/capsh").exists() {
        return skipped("no capsh (libcap2-bin)");
    }
    // Without capabilities it cannot be mounted again, where it is not.
    let script = "for at in /sys/kernel/debug/tracing /sys/kernel/debug /sys/kernel/tracing; do umount -l \"$at\"; done 2>&-
        exec /usr/sbin/capsh --drop=cap_sys_admin,cap_bpf,cap_perfmon -- -c 'exec \"$0\" measure -a 1 -D 2 --no-self-test \
        --blame-above 100 \"$1\"' \"$0\" \"$1\"";
    let run = |json: &str| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", script]);
        output(command.arg(tactus().get_program()).arg(json).stdin(Stdio::null()))
    };
    let document = json(&run("--json"));
    let row = &document["scenarios"][0];
    assert_eq!(row["status"], "measured");
    let blame = &row["blame"];
    assert_eq!(blame["source"], "proc", "{row:#}");
    assert!(blame["unavailable"].is_null(), "{blame:#}");
    let notes = document.to_string();
    assert!(notes.contains("not visible here") && notes.contains("CAP_BPF"), "{notes}");
    let latencies = blame["latencies"].as_array().unwrap();
    assert!(latencies.len() >= 10, "{blame:#}");
    for latency in latencies {
        assert_eq!(latency["parts"].as_array().map(Vec::len), Some(0), "{latency:#}");
        assert_eq!(latency["unaccounted_ns"], latency["value_ns"], "{latency:#}");
        assert!(["ordinary", "not known"].contains(&latency["cause"].as_str().unwrap()), "{latency:#}");
        for candidate in latency["candidates"].as_array().into_iter().flatten() {
            let longer = candidate["within_ns"].as_u64() > latency["value_ns"].as_u64();
            assert!(longer && (candidate["ns"].is_u64() || candidate["times"].is_u64()), "{latency:#}");
        }
    }
    let named = latencies.iter().filter(|latency| latency["candidates"].is_array()).count();
    assert!(named * 2 > latencies.len(), "{named} of {}: {blame:#}", latencies.len());
    let text = stdout(&run("--quiet"));
    assert!(text.contains("no record") && text.contains("candidates: "), "{text}");
    nothing_is_left();
}
