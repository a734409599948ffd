//! Lines: to a probe over a terminal that is as slow as a real one, and to instruments that are no probe.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tactus_environment::{Environment, find};
use tactus_model::Evidence;
use tactus_model::latency::Latency;
use tactus_model::message::{Done, End, FromProbe, Note, Tick};
use tactus_model::plan;
use tactus_system::Real;
use tactus_system::probe;

use super::conversation::{Conversation, PATIENCE};
use super::{beside_others, leftovers, skipped};

const BAUD: u32 = 115_200;

fn serial() -> &'static (dyn Environment + Sync) {
    find("serial").unwrap()
}

fn spec(options: &[(&str, &str)], baud: Option<u32>) -> plan::Environment {
    let mut spec = super::spec("serial", options);
    if let Some(baud) = baud {
        spec.options.insert("baud".into(), baud.into());
    }
    spec
}

/// A pseudo-terminal: its own side, and the name of the other.
fn pty() -> (File, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    (File::from(master), name)
}

/// Two terminals with a cable of `baud` between them; their names.
fn cable(baud: u32) -> (String, String) {
    let ((one, one_name), (other, other_name)) = (pty(), pty());
    carry(one.try_clone().unwrap(), other.try_clone().unwrap(), baud);
    carry(other, one, baud);
    (one_name, other_name)
}

/// Carries bytes at the speed of a line until it is cut.
fn carry(mut from: File, mut to: File, baud: u32) {
    let at_once = usize::try_from(baud / 10 / 100).unwrap();
    std::thread::spawn(move || {
        let mut buffer = vec![0; at_once];
        loop {
            match from.read(&mut buffer) {
                Ok(read @ 1..) if to.write_all(&buffer[..read]).is_ok() => {}
                // The other side is not open yet, or not any more.
                Err(_) => {}
                _ => return,
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    });
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Everything that is said until a job is done.
fn until_done(talk: &mut Conversation) -> (Vec<Tick>, Vec<Note>, Done) {
    let (mut ticks, mut notes) = (Vec::new(), Vec::new());
    loop {
        match talk.hear(PATIENCE) {
            FromProbe::Tick(tick) => ticks.push(tick),
            FromProbe::Note(note) => notes.push(note),
            FromProbe::Done(done) => return (ticks, notes, done),
            _ => {}
        }
    }
}

/// The sum of the ticks of one series.
fn sum(ticks: &[Tick], thread: u32) -> Latency {
    let mut all = Latency::new();
    for tick in ticks.iter().filter(|tick| tick.series.thread == thread) {
        tick.counts.add_to(&mut all.raw).unwrap();
        all.totals = tick.total;
    }
    all
}

fn end(talk: Conversation) {
    let id = talk.id().to_owned();
    talk.end();
    leftovers::none_within(&id, Duration::from_secs(5)).unwrap_or_else(|left| panic!("serial leaves {left}"));
}

#[test]
fn a_probe_at_the_end_of_a_slow_line_says_less_and_nothing_wrong_and_serves_again() {
    let _turn = beside_others();
    let (here, there) = cable(BAUD);
    let program = probe::installed(&Real).unwrap();
    let served =
        Command::new(program).args(["serve", &there, &BAUD.to_string()]).stdin(Stdio::null()).spawn();
    let _served = Killed(served.unwrap());
    let spec = spec(&[("device", &here), ("format", "probe"), ("boot_timeout", "60s")], Some(BAUD));
    for (time, seconds) in [("first", 3), ("second", 1)] {
        let mut talk = Conversation::begin(serial(), &spec).unwrap_or_else(|error| panic!("{time}: {error}"));
        assert_eq!(talk.running.budget(), Some(9_216));
        let began = Instant::now();
        let facts = talk.greet();
        eprintln!("{time}: {} readings after {:?}", facts.0.len(), began.elapsed());
        assert!(facts.text("/proc/version").is_some());
        assert_ne!(talk.running.evidence(&facts), Evidence::Imported);
        talk.measure_for(Duration::from_secs(seconds));
        let (ticks, _, done) = until_done(&mut talk);
        assert_eq!(done.end, End::Complete, "{:?}", done.reason);
        let series: std::collections::BTreeSet<_> = ticks.iter().map(|tick| tick.series.clone()).collect();
        assert!(!series.is_empty());
        for key in &series {
            let own: Vec<&Tick> = ticks.iter().filter(|tick| tick.series == *key).collect();
            eprintln!("{time}: {key}: {} ticks of {} planned", own.len(), seconds * 10);
            let counted: u64 = own.iter().map(|tick| tick.now.cycles).sum();
            assert_eq!(counted, own.last().unwrap().total.cycles, "ticks add up");
        }
        // 3 s, or 1 s, at 2 ms, as far as a shared machine lets them be.
        let all = sum(&ticks, series.first().unwrap().thread);
        assert!(3 * all.totals.cycles > 200 * seconds && all.lost() == 0, "{:?}", all.totals);
        end(talk);
    }
}

#[test]
fn a_probe_over_a_socket_is_a_probe() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("line");
    let listener = UnixListener::bind(&path).unwrap();
    let program = probe::installed(&Real).unwrap();
    let serving = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let stdin = std::os::fd::OwnedFd::from(stream.try_clone().unwrap());
        let stdout = std::os::fd::OwnedFd::from(stream);
        Command::new(program).stdin(stdin).stdout(stdout).status().unwrap()
    });
    // By `auto`: a probe that speaks by itself is recognized.
    let mut talk = Conversation::begin(serial(), &spec(&[("socket", path.to_str().unwrap())], None)).unwrap();
    talk.greet();
    talk.measure_for(Duration::from_millis(300));
    let (ticks, _, done) = until_done(&mut talk);
    assert!(done.end == End::Complete && !ticks.is_empty());
    end(talk);
    assert!(serving.join().unwrap().success());
}

#[test]
fn a_real_cyclictest_is_read_from_a_terminal_and_from_its_own_histogram() {
    let _turn = beside_others();
    if Command::new("cyclictest").arg("--help").output().is_err() {
        return skipped("there is no cyclictest: install the package rt-tests");
    }
    // Its status, on a line that it writes to already.
    let (master, name) = pty();
    let words = ["-t", "1", "-i", "2000", "-D", "60"];
    let writes = Command::new("cyclictest").args(words).stdin(Stdio::null()).stdout(master).spawn().unwrap();
    let _writes = Killed(writes);
    let mut talk = Conversation::begin(serial(), &spec(&[("device", &name)], None)).unwrap();
    let facts = talk.greet();
    assert_eq!(
        (talk.running.evidence(&facts), facts.text("line:format")),
        (Evidence::Imported, Some("cyclictest"))
    );
    talk.measure_for(Duration::from_secs(2));
    let (ticks, notes, done) = until_done(&mut talk);
    assert_eq!(done.end, End::Complete, "{:?}", done.reason);
    let summary = sum(&ticks, 0).summary();
    eprintln!("status: {summary:?}");
    assert!(summary.cycles > 100 && summary.max_ns >= summary.min_ns);
    assert_eq!(summary.p50_ns, None, "no distribution was written, and none is made up");
    assert!(notes.iter().any(|note| note.text.contains("quantiles are unknown")), "{notes:?}");
    end(talk);

    // Its histogram: the command begins with the measurement and is told to end with it.
    let command = "cyclictest -q -t 1 -i 2000 -h 100000 -D 60";
    let spec = spec(&[("command", command), ("format", "cyclictest")], None);
    let mut talk = Conversation::begin(serial(), &spec).unwrap();
    talk.greet();
    talk.measure_for(Duration::from_secs(2));
    let (ticks, _, done) = until_done(&mut talk);
    assert_eq!(done.end, End::Complete, "{:?}", done.reason);
    let summary = sum(&ticks, 0).summary();
    eprintln!("histogram: {summary:?}");
    assert!(summary.cycles > 100 && summary.lost == 0);
    assert!(summary.p50_ns.is_some() && summary.p50_ns <= summary.max_ns);
    end(talk);
}

#[test]
fn a_recorded_demonstration_is_read_and_a_line_that_breaks_says_so() {
    let _turn = beside_others();
    let uart = concat!(env!("CARGO_MANIFEST_DIR"), "/../tactus-format/tests/fixtures/jailhouse-uart.txt");
    let command = format!("cat {uart}; exit 1");
    let talk_of = |format: &str| {
        let spec = spec(&[("command", &command), ("format", format)], None);
        let mut talk = Conversation::begin(serial(), &spec).unwrap();
        talk.greet();
        talk.measure_for(Duration::from_secs(20));
        let (ticks, _, done) = until_done(&mut talk);
        end(talk);
        (ticks, done)
    };
    let (ticks, done) = talk_of("gic-demo");
    let summary = sum(&ticks, 0).summary();
    assert!(summary.cycles > 20 && summary.max_ns == Some(2_623_677), "{summary:?}");
    assert_eq!(done.end, End::Failed);
    assert!(done.reason.as_ref().unwrap().contains("psci:"), "{done:?}");
    let (ticks, done) = talk_of("cyclictest");
    assert!(ticks.is_empty() && done.end == End::Failed);
    assert!(done.reason.unwrap().contains("sent nothing readable"));
}

#[test]
fn what_a_followed_console_still_holds_of_a_cell_that_is_gone_is_not_measured() {
    let _turn = beside_others();
    let fired = |jitter: u32| format!("Timer fired, jitter: {jitter:>6} ns, min:      1 ns, max: 999999 ns");
    // As `jailhouse console -f`: the ring first, at once, and then what the cell says.
    let ring = (0..31).map(|_| fired(999_999) + "\\r\\n").collect::<String>();
    let now = fired(4_000);
    let command = format!("printf '{ring}'; while sleep 0.1; do printf '{now}\\r\\n'; done");
    for format in ["gic-demo", "auto"] {
        let spec = spec(&[("command", &command), ("format", format)], None);
        let mut talk = Conversation::begin(serial(), &spec).unwrap();
        talk.greet();
        talk.measure_for(Duration::from_secs(3));
        let (ticks, notes, done) = until_done(&mut talk);
        assert_eq!(done.end, End::Complete, "{format}: {:?}", done.reason);
        let summary = sum(&ticks, 0).summary();
        assert!(summary.cycles > 3 && summary.max_ns == Some(4_000), "{format}: {summary:?}");
        let left_out = |note: &Note| note.text.contains("left out: they were made before the measurement");
        assert!(notes.iter().any(left_out), "{format}: {notes:?}");
        end(talk);
    }
}

#[test]
fn a_line_without_an_answer_is_given_up_with_what_came() {
    let _turn = beside_others();
    let (mut master, name) = pty();
    master.write_all(b"login: \n").unwrap();
    for (format, words) in [("probe", "no probe answers"), ("auto", "no line shows its format")] {
        let spec = spec(&[("device", &name), ("format", format), ("boot_timeout", "1s")], None);
        let Err(error) = Conversation::begin(serial(), &spec) else { panic!("nobody is there") };
        assert!(error.reason.contains(words) && error.reason.starts_with(&name), "{error}");
        assert!(error.hint.is_some());
    }
}
