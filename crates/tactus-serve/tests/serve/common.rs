//! Directories of bundles, a run that lasts as long as a test wants, and a server of them in this process.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use tactus_bundle::{RowLog, Writer};
use tactus_model::Nanos;
use tactus_model::bundle::{Machine, RowResult};
use tactus_model::event::{Event, RunStatus, Stamped, Ticked};
use tactus_model::latency::{Latency, Sparse, Totals};
use tactus_model::message::{ThreadCounters, Tick};
use tactus_model::outcome::{Ending, LatencyOutcome, Outcome, RowEnd, SeriesResult};
use tactus_model::plan::{Environment, Plan, Scenario};
use tactus_model::series::SeriesKey;
use tactus_serve::{Bundles, Gate, Token};
use tactus_system::Directory;
use tactus_watch::http::listen;

const SECOND: u64 = 1_000_000_000;

/// A bundle of a real run, as a release before recorded it.
pub fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tactus-bundle/tests/recorded").join(name)
}

/// Puts such a bundle into a directory.
pub fn put(dir: &Path, name: &str, called: &str) {
    copy(&recorded(name), &dir.join(called));
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
}

/// Serves a directory on a free port.
pub fn serve(dir: &Path, token: Option<Token>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let gate = Gate::new(token, listener.local_addr().unwrap().port());
    listen(listener, "serve", Bundles::new(Directory::open(dir).unwrap(), gate).unwrap()).unwrap()
}

/// An answer.
#[derive(Debug)]
pub struct Got {
    pub code: u16,
    pub head: String,
    pub body: String,
}

/// The page at a path, with headers beside the usual ones.
pub fn get(at: SocketAddr, path: &str, headers: &str) -> Got {
    asked(at, &format!("GET {path} HTTP/1.1\r\nHost: {at}\r\n{headers}\r\n"))
}

pub fn asked(at: SocketAddr, request: &str) -> Got {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer}"));
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    Got { code, head: head.to_owned(), body: body.to_owned() }
}

/// Events of a path, each with its name and its data.
pub fn events(at: SocketAddr, path: &str) -> impl Iterator<Item = (String, String)> {
    let mut stream = TcpStream::connect(at).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {at}\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    std::iter::from_fn(move || {
        let name = lines.find_map(|line| Some(line.strip_prefix("event: ")?.to_owned()))?;
        let data = lines.by_ref().take_while(|line| !line.is_empty());
        let data: Vec<String> = data.map(|line| line.trim_start_matches("data: ").to_owned()).collect();
        Some((name, data.join("\n")))
    })
}

/// A run in progress.
pub struct Running {
    writer: Writer,
    log: Option<RowLog>,
    row: RowResult,
    ticks: u64,
    latencies: Vec<(SeriesKey, Latency)>,
}

impl Running {
    /// One that measures two threads for an hour, and has another measurement to make.
    pub fn begin(dir: &Path, scenario: &str) -> Self {
        let rows = [scenario, "what comes after it"].map(|name| RowResult {
            interval_ns: 1_000_000,
            planned_ns: 3_600 * SECOND,
            ..RowResult::unmeasured(name, "host", "host")
        });
        let mut plan = Plan { name: "night".into(), ..Plan::default() };
        plan.environment.insert("host".into(), Environment { kind: "host".into(), ..Environment::default() });
        plan.scenario = rows.iter().map(|row| of_plan(&row.name)).collect();
        let machine = || Machine { name: "bench-7".into(), ..Machine::default() };
        let mut writer = Writer::create(dir, &plan, &rows, machine()).unwrap();
        writer.begin_session(machine(), None, None).unwrap();
        let [row, _] = rows;
        // As the recorder does it: the result in case it dies now.
        let mut died = row.clone();
        died.end(Ending::because(RowEnd::Died, "the run died while this was measured"));
        let (name, environment) = (row.name.clone(), row.environment.clone());
        let event = Event::RowStarted { row: 0, name, environment, duration_ns: row.planned_ns };
        writer.event(&Stamped { at_ms: 0, event }).unwrap();
        let log = Some(writer.begin_row(0, &died, SECOND).unwrap());
        let key = |cpu| SeriesKey { cpu, thread: cpu, priority: 95, kind: "thread".into() };
        let latencies = [0, 1].map(|cpu| (key(cpu), Latency::new())).into();
        let mut own = Self { writer, log, row, ticks: 0, latencies };
        own.tick(1_500);
        own
    }

    /// One more second: each thread wakes up a thousand times, once with a latency of `max_ns`.
    pub fn tick(&mut self, max_ns: u64) {
        let log = self.log.as_mut().unwrap();
        for (key, latency) in &mut self.latencies {
            let usual = 1_200;
            let now =
                Totals { cycles: 1_000, overruns: 0, min_ns: usual, max_ns, sum_ns: 999 * usual + max_ns };
            let counts = Sparse(vec![usual, 999, max_ns - usual, 1]);
            latency.totals.add(&now);
            counts.add_to(&mut latency.raw).unwrap();
            let tick = Tick {
                activity: 0,
                series: key.clone(),
                n: self.ticks,
                at_ns: (self.ticks + 1) * SECOND,
                now,
                total: latency.totals,
                counts,
                missed: Sparse::default(),
                thread: ThreadCounters::default(),
            };
            log.tick(&Ticked::of(0, tick, Some(usual))).unwrap();
        }
        self.ticks += 1;
        log.sync().unwrap();
        self.writer.sync().unwrap();
    }

    /// Ends it.
    pub fn end(mut self) {
        self.log.take().unwrap().finish().unwrap();
        let mut all = Latency::new();
        let mut series = Vec::new();
        for (key, latency) in self.latencies {
            all.merge(&latency);
            let (summary, counters) = (latency.summary(), ThreadCounters::default());
            series.push(SeriesResult { key, summary, counters, outliers: Vec::new(), whole: true });
        }
        self.row.outcome = Outcome::Latency(LatencyOutcome { series, all: Some(all.summary()) });
        self.row.measured_ns = self.ticks * SECOND;
        self.row.end(Ending::complete());
        self.writer.result(0, &self.row).unwrap();
        self.writer.finish(RunStatus::Complete).unwrap();
    }
}

fn of_plan(name: &str) -> Scenario {
    Scenario {
        name: Some(name.into()),
        environment: Some("host".into()),
        duration: Some(Nanos(60 * SECOND)),
        ..Scenario::default()
    }
}
