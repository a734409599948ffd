//! A simulated day: the recorder, a live view and metrics are fed with its ticks as fast as they take them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tactus_model::event::Ticked;
use tactus_model::outcome::Ending;
use tactus_watch::state::{Planned, Watched};
use tactus_watch::{Shared, metrics};

use super::*;
use crate::sink::Sink;

const HOUR: u64 = 3600;
/// By how much memory may differ between two hours, in KiB: pages that the allocator keeps. Keeping the ticks of a
/// day would take some 20 MB.
const NOISE_KIB: u64 = 2048;

/// Somebody who watches, and counts what was taken.
struct Watcher(Shared, Arc<AtomicU64>);

impl Sink for Watcher {
    fn take(&mut self, event: &Stamped) {
        self.0.lock().take(event);
        self.1.fetch_add(1, Ordering::Release);
    }
}

/// Resources of this process: private memory in KiB, descriptors, threads.
#[derive(Clone, Copy, Debug)]
struct Taken {
    memory_kib: u64,
    descriptors: usize,
    threads: usize,
}

impl Taken {
    fn now() -> Self {
        let status = Real.text("/proc/self/status").unwrap();
        let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        let memory_kib = own.trim().trim_end_matches("kB").trim().parse().unwrap();
        let count = |path: &str| Real.list(Path::new(path)).unwrap().len();
        Self { memory_kib, descriptors: count("/proc/self/fd"), threads: count("/proc/self/task") }
    }
}

/// A run of a day that measures one series, a tick each second.
struct Day {
    emitter: Emitter,
    shared: Shared,
    total: Latency,
    told: u64,
    taken: Arc<AtomicU64>,
}

impl Day {
    fn begin(dir: &Path) -> Self {
        let mut plan = written(&[("day", &GOOD)]);
        plan.scenario[0].duration = Some(tactus_model::Nanos::from_secs(24 * HOUR));
        let resolved = resolved_as(&plan, &Choices::default(), &[("day", &GOOD)]);
        let shared = Shared::new(Watched::new("day", [Planned { name: "day".into(), ..Planned::default() }]));
        let taken = Arc::new(AtomicU64::new(0));
        let watcher = Watcher(shared.clone(), Arc::clone(&taken));
        let recorder = Recorder::new(writer(&resolved, dir), &resolved);
        let emitter = Emitter::new(Box::new(recorder), vec![Box::new(watcher)]);
        let mut day = Self { emitter, shared, total: Latency::new(), told: 0, taken };
        day.tell(Event::RowStarted {
            row: 0,
            name: "day".into(),
            environment: "day".into(),
            duration_ns: 24 * HOUR * 1_000_000_000,
        });
        day
    }

    fn tell(&mut self, event: Event) {
        self.emitter.emit(event).unwrap();
        self.told += 1;
    }

    /// Ticks up to the end of this hour; then everybody has taken them.
    fn until(&mut self, from: u64, hour: u64) {
        for n in from..hour * HOUR {
            // Latencies wander over the day, so that no tick is like the one before it.
            let wander = n.wrapping_mul(2_654_435_761) >> 7;
            let mut tick = tick(wander % 90_000, &mut self.total);
            (tick.n, tick.at_ns) = (n, (n + 1) * 1_000_000_000);
            self.tell(Event::Ticked(Ticked::of(0, tick, Some(7_000))));
            if n.is_multiple_of(600) {
                self.taken();
            }
        }
        self.taken();
        assert!(metrics::text(&self.shared.lock(), "0").contains("tactus_latency_max_seconds"));
    }

    fn taken(&self) {
        let until = Instant::now() + Duration::from_secs(60);
        while self.taken.load(Ordering::Acquire) < self.told {
            assert!(Instant::now() < until, "a watcher takes nothing more");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_day_takes_no_more_memory_descriptors_and_threads_than_its_first_hours() {
    let dir = tempfile::tempdir().unwrap();
    let mut day = Day::begin(dir.path());
    // After two hours every structure of fixed size has reached it.
    day.until(0, 2);
    let first = Taken::now();
    day.until(2 * HOUR, 24);
    let last = Taken::now();
    println!("after 2 h: {first:?}, after 24 h: {last:?}");
    assert!(last.memory_kib <= first.memory_kib + NOISE_KIB, "{first:?}, a day later {last:?}");
    assert_eq!((last.descriptors, last.threads), (first.descriptors, first.threads));
    day.tell(Event::RowFinished {
        row: 0,
        ending: Ending::complete(),
        measured_ns: 24 * HOUR * 1_000_000_000,
    });
    assert_eq!(day.emitter.finish(RunStatus::Complete).unwrap(), 0, "nothing was missed");
    let read = bundle::read(&dir.path().join("bundle"), Trust::Whole).unwrap();
    assert_eq!(
        read.rows[0].result.series().iter().map(|series| series.summary.cycles).sum::<u64>(),
        3 * 24 * HOUR
    );
}
