//! The cost of recording and watching a run. Eight made-up streams, as those of eight CPUs that are measured every
//! 200 us, are read, recorded, and kept for a screen and for metrics, as fast as possible.

use tactus_model::event::Ticked;
use tactus_model::outcome::Ending;
use tactus_model::random::SplitMix64;
use tactus_watch::screen::{Look, draw};
use tactus_watch::state::{Planned, Watched};
use tactus_watch::view::View;
use tactus_watch::{Shared, metrics};

use super::*;
use crate::sink::Sink;

const CPUS: u32 = 8;
/// Wake-ups in a tick of a second.
const CYCLES: u64 = 5_000;
const SECOND_NS: u64 = 1_000_000_000;
/// How often a screen is drawn in a second, and after how many seconds metrics are asked for.
const PICTURES: u32 = 4;
const SCRAPE: u64 = 5;

/// Takes in events as the live view does, draws and answers.
struct Watchers {
    shared: Shared,
    terminal: ratatui::Terminal<ratatui::backend::TestBackend>,
    answered: usize,
}

impl Sink for Watchers {
    fn take(&mut self, event: &Stamped) {
        self.shared.lock().take(event);
        let Event::Ticked(ticked) = &event.event else { return };
        if ticked.series.cpu != CPUS {
            return;
        }
        let look = Look { colour: true, unicode: true };
        for _ in 0..PICTURES {
            let drawn = self.terminal.draw(|frame| draw(&self.shared.lock(), &View::default(), look, frame));
            drawn.expect("memory");
        }
        if ticked.n.is_multiple_of(SCRAPE) {
            self.answered += metrics::text(&self.shared.lock(), "0").len();
        }
    }
}

/// The frames of `seconds` seconds: latencies around 3 us with a long tail, which is some 150 buckets a tick.
fn frames(seconds: u64) -> Vec<Vec<u8>> {
    let mut random = SplitMix64::new(7);
    let mut encoder = Encoder::new();
    let mut totals: Vec<Latency> = (0..CPUS).map(|_| Latency::new()).collect();
    let mut all = Vec::new();
    for n in 0..seconds {
        let mut bytes = Vec::new();
        for (cpu, total) in (1..=CPUS).zip(&mut totals) {
            let mut now = Latency::new();
            for _ in 0..CYCLES {
                let (one, two) = (random.draw() % 2_000, random.draw() % 1_000);
                let tail = if two == 0 { random.draw() % 60_000 } else { 0 };
                now.record(2_000 + one * one / 2_000 + tail, 200_000);
            }
            total.merge(&now);
            let tick = Tick {
                activity: 0,
                series: SeriesKey { cpu, thread: 0, priority: 95, kind: "thread".into() },
                n,
                at_ns: (n + 1) * SECOND_NS,
                now: now.totals,
                total: total.totals,
                counts: Sparse::of(&now.raw),
                missed: Sparse::of(&now.missed),
                thread: ThreadCounters::default(),
            };
            bytes.extend(encoder.encode(&FromProbe::Tick(tick)).expect("JSON"));
        }
        all.push(bytes);
    }
    all
}

/// CPU time of this process and of this thread so far, in ns.
fn cpu_ns() -> (u64, u64) {
    let stat = Real.text("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_ascii_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    let own = Real.text("/proc/thread-self/schedstat").unwrap();
    (ticks * 10_000_000, own.split_ascii_whitespace().next().unwrap().parse().unwrap())
}

#[test]
#[ignore = "a figure of costs: scripts/bench/watchers.py"]
fn what_recording_and_watching_eight_cpus_costs() {
    let seconds: u64 = std::env::var("SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let dir = tempfile::tempdir().unwrap();
    let mut plan = written(&[("eight", &GOOD)]);
    plan.scenario[0].duration = Some(tactus_model::Nanos(seconds * SECOND_NS));
    let resolved = resolved_as(&plan, &Choices::default(), &[("eight", &GOOD)]);
    let planned = Planned { name: "eight".into(), planned_ns: seconds * SECOND_NS, ..Planned::default() };
    let shared = Shared::new(Watched::new("eight", [planned]));
    let terminal = ratatui::Terminal::new(ratatui::backend::TestBackend::new(120, 40)).unwrap();
    let watchers = Watchers { shared: shared.clone(), terminal, answered: 0 };
    let recorder = Recorder::new(writer(&resolved, dir.path()), &resolved);
    let mut emitter = Emitter::new(Box::new(recorder), vec![Box::new(watchers)]);
    let frames = frames(seconds);
    let bytes: usize = frames.iter().map(Vec::len).sum();
    let begun = Event::RowStarted {
        row: 0,
        name: "eight".into(),
        environment: "eight".into(),
        duration_ns: seconds * SECOND_NS,
    };
    let (process, thread) = cpu_ns();
    emitter.emit(begun).unwrap();
    let (mut decoder, mut ticks, mut decoded_ns) = (Decoder::new(), 0, 0);
    for frame in frames {
        let before = cpu_ns().1;
        let items = decoder.feed::<FromProbe>(&frame);
        decoded_ns += cpu_ns().1 - before;
        for item in items {
            let Item::Message(FromProbe::Tick(tick)) = item else { panic!("a tick") };
            ticks += 1;
            emitter.emit(Event::Ticked(Ticked::of(0, tick, Some(7_000)))).unwrap();
        }
        // The channel is bounded, and drops what a watcher does not take in time: a second of it is let pass.
        let until = Instant::now() + Duration::from_secs(60);
        while shared.lock().events < ticks + 1 {
            assert!(Instant::now() < until, "a watcher takes nothing more");
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    let measured_ns = seconds * SECOND_NS;
    emitter.emit(Event::RowFinished { row: 0, ending: Ending::complete(), measured_ns }).unwrap();
    assert_eq!(emitter.finish(RunStatus::Complete).unwrap(), 0, "nothing was missed");
    let (process, thread) = (cpu_ns().0 - process, cpu_ns().1 - thread);
    assert_eq!(ticks, seconds * u64::from(CPUS));
    println!(
        "{}",
        serde_json::json!({
            "seconds": seconds, "cpus": CPUS, "ticks": ticks, "bytes": bytes,
            "process_ns": process, "recording_thread_ns": thread, "reading_ns": decoded_ns,
        })
    );
}
