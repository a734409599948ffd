use proptest::prelude::*;
use tactus_format::lines::{Format, read};

use super::*;

fn collector(unit_ns: u64) -> Collector {
    Collector::new(Rules { activity: 0, cpus: vec![2, 3], priority: 95, unit_ns })
}

fn feed(collector: &mut Collector, format: Format, text: &str) {
    for line in text.lines() {
        if let Some(reading) = read(format, line) {
            collector.take(reading, 1_000);
        }
    }
}

fn of(tick: &Tick) -> Latency {
    let mut latency = Latency::new();
    latency.totals = tick.total;
    tick.counts.add_to(&mut latency.raw).unwrap();
    latency
}

#[test]
fn a_status_has_totals_and_no_quantiles() {
    let mut status = collector(1_000);
    let line = |cycles: u64, max: u64| {
        format!("T: 0 ( 2759) P:80 I:1000 C:{cycles:7} Min:     15 Act:   24 Avg:   33 Max:{max:8}\n")
    };
    feed(&mut status, Format::Cyclictest, &line(5_001, 900));
    status.tick(100);
    feed(&mut status, Format::Cyclictest, &line(6_000, 1_936));
    let ticks = status.tick(200);
    let (tick, _) = &ticks[0];
    assert_eq!((tick.series.cpu, tick.series.thread, tick.series.priority), (2, 0, 80));
    // Those of before are not ours; its maximum may be.
    assert_eq!((tick.total.cycles, tick.total.max_ns, tick.now.max_ns), (1_000, 1_936_000, 1_936_000));
    assert!(status.older && !status.has_distribution());
    let summary = of(tick).summary();
    assert_eq!((summary.min_ns, summary.max_ns, summary.p99_ns), (Some(15_000), Some(1_936_000), None));
    // Nothing is known of a stretch in which the maximum did not grow.
    feed(&mut status, Format::Cyclictest, &line(6_100, 1_936));
    let now = status.tick(300)[0].0.now;
    assert_eq!((now.cycles, now.min_ns, now.max_ns), (100, u64::MAX, 0));
    // It was started again.
    feed(&mut status, Format::Cyclictest, &line(50, 40));
    assert_eq!(status.tick(400)[0].0.total.cycles, 1_150);
}

#[test]
fn a_histogram_is_the_distribution_and_what_is_beyond_it_counts_as_its_maximum() {
    let recorded = include_str!("../../../../../tactus-format/tests/fixtures/cyclictest-histogram.txt");
    let mut histogram = collector(1_000);
    feed(&mut histogram, Format::Cyclictest, recorded);
    assert!(histogram.finished);
    let ticks = histogram.tick(1_000);
    assert_eq!(ticks.len(), 2);
    let summary = of(&ticks[0].0).summary();
    // `# Total: 000000158`, `# Histogram Overflows: 00778`.
    assert_eq!((summary.cycles, summary.lost), (936, 0));
    assert_eq!((summary.min_ns, summary.max_ns), (Some(15_000), Some(33_172_000)));
    assert_eq!(summary.p50_ns, Some(33_172_000), "more than half of them were beyond the histogram");
    // A row that does not arrive is lost, not made up.
    let cut: String =
        recorded.lines().filter(|line| !line.starts_with("000018")).map(|line| format!("{line}\n")).collect();
    let mut cut_one = collector(1_000);
    feed(&mut cut_one, Format::Cyclictest, &cut);
    assert_eq!(of(&cut_one.tick(1_000)[0].0).summary().lost, 70);
}

#[test]
fn values_that_their_own_numbers_miss_are_lost() {
    let mut verbose = collector(1_000);
    let text = "       0:       1:      40\n       1:       0:      46\n       0:       4:      23\n";
    feed(&mut verbose, Format::Cyclictest, text);
    let ticks = verbose.tick(1_000);
    let summary = of(&ticks[0].0).summary();
    assert_eq!((summary.cycles, summary.lost, summary.max_ns), (4, 2, Some(40_000)));
    assert_eq!(ticks[0].1[0].value_ns, 40_000);
    assert_eq!(ticks[1].0.series.cpu, 3);
}

#[test]
fn timers_of_a_demonstration_are_values_in_nanoseconds() {
    let uart = include_str!("../../../../../tactus-format/tests/fixtures/jailhouse-uart.txt");
    let mut demo = collector(1);
    feed(&mut demo, Format::Demo, uart);
    let ticks = demo.tick(1_000);
    let summary = of(&ticks[0].0).summary();
    assert!(summary.cycles > 20 && summary.lost == 0 && summary.p50_ns.is_some());
    assert!(summary.max_ns.unwrap() < 5_000_000);
}

proptest! {
    #[test]
    fn no_lines_make_the_collector_panic_or_count_less_than_it_has(
        lines in proptest::collection::vec("(# (Histogram|(Total|Min Latencies|Avg Latencies|Max Latencies|Histogram Overflows):( [0-9]{9,20}){1,3})|[0-9]{6} [0-9]{6,20}|T: [0-9] \\( 2759\\) P:80 I:1000 C:[0-9]{7,20} Min:[0-9]{7} Act:[0-9]{7} Avg:[0-9]{7} Max:[0-9]{8,20}| {7}[0-3]: {5}[0-9]{3,20}:[0-9]{8,20})", 0..30),
    ) {
        let mut all = collector(1_000);
        feed(&mut all, Format::Cyclictest, &lines.join("\n"));
        for (tick, _) in all.tick(1) {
            let mut counts = tactus_model::latency::histogram();
            if tick.counts.add_to(&mut counts).is_ok() {
                prop_assert!(tick.total.cycles >= counts.len());
            }
        }
    }
}
