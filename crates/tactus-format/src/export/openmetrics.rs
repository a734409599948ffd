//! OpenMetrics text (1.0): what a run measured, for Prometheus and its kin.

use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};

use tactus_model::buckets::Packed;
use tactus_model::document::Outcome;
use tactus_model::number::float;
use tactus_model::outcome::RowStatus;
use tactus_model::text::clean;

use super::series::{self, Counted};
use super::{Export, ExportError, Measured, Out, Shape, Source};

/// The entry.
pub static ENTRY: Export = Export {
    name: "openmetrics",
    about: "OpenMetrics text for Prometheus: histograms, extremes, missed periods, verdicts, findings by severity",
    ending: "txt",
    shape: Shape::Bundle(write),
    cannot: "quantiles finer than its buckets, the time of each value, findings one by one, reasons",
    notes: |source, _| {
        let lost: u64 = source.rows().filter_map(|one| one.entry.all.as_ref()).map(|all| all.lost).sum();
        let mut notes = Vec::new();
        if lost > 0 {
            notes.push(format!("{lost} values that reached no histogram are only in `tactus_lost_total`"));
        }
        notes
    },
};

/// Upper ends of the buckets in ns, and as they are written in seconds: two or three for each power of ten.
pub const BOUNDS: [(u64, &str); 22] = [
    (1_000, "1e-06"),
    (2_000, "2e-06"),
    (5_000, "5e-06"),
    (10_000, "1e-05"),
    (15_000, "1.5e-05"),
    (20_000, "2e-05"),
    (30_000, "3e-05"),
    (40_000, "4e-05"),
    (50_000, "5e-05"),
    (75_000, "7.5e-05"),
    (100_000, "0.0001"),
    (150_000, "0.00015"),
    (200_000, "0.0002"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_000_000, "0.002"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (20_000_000, "0.02"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (1_000_000_000, "1.0"),
];

fn write(source: &Source<'_>, out: Out<'_>) -> Result<(), ExportError> {
    let mut text = Stream { out: BufWriter::with_capacity(64 << 10, out), written: Ok(()) };
    of_bundle(source, &mut text);
    of_scenarios(source, &mut text);
    of_series(source, &mut text);
    of_values(source, &mut text);
    of_findings(source, &mut text);
    let _ = writeln!(text, "# EOF");
    text.written?;
    Ok(text.out.flush()?)
}

/// Where the text goes as it comes: that of a bundle of very many threads is many times as long as the bundle.
struct Stream<'a> {
    out: BufWriter<Out<'a>>,
    /// The result so far: nothing is written after an error.
    written: std::io::Result<()>,
}

impl std::fmt::Write for Stream<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if self.written.is_ok() {
            self.written = self.out.write_all(text.as_bytes());
        }
        if self.written.is_ok() { Ok(()) } else { Err(std::fmt::Error) }
    }
}

/// Names and values of labels, as they are written: in one line, and fit for a terminal and a log.
#[must_use]
pub fn labels(pairs: &[(&str, &str)]) -> String {
    let escaped = |text: &str| clean(text).replace('\\', "\\\\").replace('"', "\\\"");
    let one = |(name, value): &(&str, &str)| format!("{name}=\"{}\"", escaped(value));
    pairs.iter().map(one).collect::<Vec<_>>().join(",")
}

/// The lines before the samples of a family.
pub fn family(text: &mut impl std::fmt::Write, name: &str, kind: &str, unit: Option<&str>, about: &str) {
    let _ = writeln!(text, "# TYPE {name} {kind}");
    if let Some(unit) = unit {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
    let _ = writeln!(text, "# HELP {name} {about}");
}

fn of_bundle(source: &Source<'_>, text: &mut Stream<'_>) {
    let manifest = &source.contents.manifest;
    family(text, "tactus_build", "info", None, "The version of tactus that wrote the bundle.");
    let format = format!("{}.{}", manifest.format.major, manifest.format.minor);
    let _ = writeln!(
        text,
        "tactus_build_info{{{}}} 1",
        labels(&[("version", &manifest.tactus), ("format", &format)])
    );
    family(text, "tactus_machine", "info", None, "The machine that was measured.");
    let machine = &manifest.machine;
    let of = [
        ("name", machine.name.as_str()),
        ("processor", &machine.processor),
        ("cpus", &machine.cpus),
        ("kernel", &machine.kernel),
        ("system", &machine.system),
    ];
    let _ = writeln!(text, "tactus_machine_info{{{}}} 1", labels(&of));
    let complete = manifest.status == tactus_model::outcome::RunStatus::Complete;
    family(text, "tactus_run_complete", "gauge", None, "1: the run is complete.");
    let _ = writeln!(
        text,
        "tactus_run_complete{{{}}} {}",
        labels(&[("plan", &manifest.plan)]),
        u8::from(complete)
    );
}

/// The labels by which a scenario is known.
fn known(one: &Measured<'_>) -> String {
    let number = one.number.to_string();
    let repeat = one.entry.repeat.map(|repeat| repeat.to_string());
    let mut pairs = vec![
        ("number", number.as_str()),
        ("scenario", one.entry.name.as_str()),
        ("environment", one.entry.environment.as_str()),
    ];
    pairs.extend(one.entry.host.as_deref().map(|host| ("host", host)));
    pairs.extend(repeat.as_deref().map(|repeat| ("repeat", repeat)));
    labels(&pairs)
}

fn of_scenarios(source: &Source<'_>, text: &mut Stream<'_>) {
    let rows: Vec<Measured<'_>> = source.rows().collect();
    if rows.is_empty() {
        return;
    }
    family(text, "tactus_scenario", "info", None, "What was measured where, and the evidence.");
    for one in &rows {
        let evidence = one.entry.evidence.map_or_else(String::new, |evidence| evidence.key().to_owned());
        let more = [
            ("kind", one.entry.kind.as_str()),
            ("measurement", &one.entry.measurement),
            ("evidence", &evidence),
        ];
        let _ = writeln!(text, "tactus_scenario_info{{{},{}}} 1", known(one), labels(&more));
    }
    family(text, "tactus_scenario_state", "stateset", None, "Whether it was measured, skipped or failed.");
    for one in &rows {
        for (state, word) in [
            (RowStatus::Measured, "measured"),
            (RowStatus::Skipped, "skipped"),
            (RowStatus::Failed, "failed"),
        ] {
            let is = u8::from(one.entry.status == state);
            let _ = writeln!(
                text,
                "tactus_scenario_state{{{},tactus_scenario_state=\"{word}\"}} {is}",
                known(one)
            );
        }
    }
    family(text, "tactus_measured_seconds", "gauge", Some("seconds"), "How long it measured.");
    for one in &rows {
        // A file of another tool may not give the time: then there is no sample.
        if let Some(seconds) = one.entry.duration_s {
            let _ = writeln!(text, "tactus_measured_seconds{{{}}} {seconds}", known(one));
        }
    }
    let judged = || rows.iter().filter_map(|one| Some((one, one.entry.verdict.as_ref()?)));
    if judged().next().is_some() {
        family(text, "tactus_verdict", "stateset", None, "The verdict of its requirements.");
        for (one, verdict) in judged() {
            for outcome in [Outcome::Pass, Outcome::Warn, Outcome::Fail, Outcome::Inconclusive] {
                let (word, is) = (outcome.word(), u8::from(verdict.outcome == outcome));
                let _ = writeln!(text, "tactus_verdict{{{},tactus_verdict=\"{word}\"}} {is}", known(one));
            }
        }
    }
    let bounded = || {
        rows.iter().filter_map(|one| {
            let tail = one.entry.tail.as_ref()?;
            Some((one, tail.level_ns?, tail.horizon_s?, tail.provisional.is_some()))
        })
    };
    if bounded().next().is_some() {
        let about = "Exceeded less than once in the horizon with 95 % confidence, if conditions stay as \
                     measured; no requirement passes on a provisional bound.";
        family(text, "tactus_tail_bound_seconds", "gauge", Some("seconds"), about);
        for (one, level_ns, horizon_s, provisional) in bounded() {
            let (horizon_s, provisional) = (horizon_s.to_string(), provisional.to_string());
            let horizon = labels(&[("horizon_seconds", &horizon_s), ("provisional", &provisional)]);
            let _ =
                writeln!(text, "tactus_tail_bound_seconds{{{},{horizon}}} {}", known(one), level_ns / 1e9);
        }
    }
}

fn of_series(source: &Source<'_>, text: &mut Stream<'_>) {
    let all: Vec<(String, Counted<'_>)> = source
        .latencies()
        .flat_map(|one| {
            series::of(one.row).map(move |counted| {
                let key = counted.result.key.to_string();
                let cpu = counted.result.key.cpu.to_string();
                (format!("{},{}", known(&one), labels(&[("series", &key), ("cpu", &cpu)])), counted)
            })
        })
        .collect();
    if all.is_empty() {
        return;
    }
    family(
        text,
        "tactus_latency_seconds",
        "histogram",
        Some("seconds"),
        "What was measured, without the periods that late wake-ups missed.",
    );
    // Without a histogram, nothing is known of the buckets of what was measured.
    let is_known = |counted: &Counted<'_>| counted.raw.is_some() || counted.result.summary.cycles == 0;
    for (labels, counted) in all.iter().filter(|(_, counted)| is_known(counted)) {
        buckets(text, labels, counted);
    }
    type Figure = fn(&Counted<'_>) -> Option<u64>;
    let extremes: [(&str, &str, Figure); 3] = [
        ("tactus_latency_max_seconds", "Largest latency, exact.", |counted| counted.result.summary.max_ns),
        ("tactus_latency_min_seconds", "Smallest latency, exact.", |counted| counted.result.summary.min_ns),
        ("tactus_latency_corrected_p99_seconds", "99th percentile with the missed periods.", |counted| {
            counted.result.summary.corrected.p99_ns
        }),
    ];
    for (name, about, of) in extremes {
        family(text, name, "gauge", Some("seconds"), about);
        for (labels, counted) in &all {
            if let Some(ns) = of(counted) {
                let _ = writeln!(text, "{name}{{{labels}}} {}", float(ns) / 1e9);
            }
        }
    }
    let counters: [(&str, &str, Figure); 2] = [
        ("tactus_overruns", "Periods that late wake-ups missed.", |counted| counted.result.summary.overruns),
        ("tactus_lost", "Values that reached no histogram.", |counted| Some(counted.result.summary.lost)),
    ];
    for (name, about, of) in counters {
        family(text, name, "counter", None, about);
        for (labels, counted) in &all {
            if let Some(count) = of(counted) {
                let _ = writeln!(text, "{name}_total{{{labels}}} {count}");
            }
        }
    }
}

/// Values of a bucket that a bound cuts count above it: no share below a bound is too large.
fn buckets(text: &mut Stream<'_>, labels: &str, counted: &Counted<'_>) {
    let count = cumulative(text, labels, counted.raw.into_iter().flat_map(Packed::buckets));
    let summary = &counted.result.summary;
    // Of the values that are counted, at their mean.
    let seconds = summary.mean_ns.unwrap_or(0.0) * float(count) / 1e9;
    let _ = writeln!(text, "tactus_latency_seconds_sum{{{labels}}} {seconds}");
}

/// The buckets of [`BOUNDS`] and the count of `tactus_latency_seconds`, from values in ns with their counts in rising
/// order. Returns the count.
pub fn cumulative(
    text: &mut impl std::fmt::Write,
    labels: &str,
    counts: impl Iterator<Item = (u64, u64)>,
) -> u64 {
    let mut counts = counts.peekable();
    let mut sum = 0_u64;
    for (bound_ns, written) in BOUNDS {
        while let Some((_, count)) = counts.next_if(|(value, _)| *value <= bound_ns) {
            sum = sum.saturating_add(count);
        }
        let _ = writeln!(text, "tactus_latency_seconds_bucket{{{labels},le=\"{written}\"}} {sum}");
    }
    let count = counts.fold(sum, |sum, (_, count)| sum.saturating_add(count));
    let _ = writeln!(text, "tactus_latency_seconds_bucket{{{labels},le=\"+Inf\"}} {count}");
    let _ = writeln!(text, "tactus_latency_seconds_count{{{labels}}} {count}");
    count
}

fn of_values(source: &Source<'_>, text: &mut Stream<'_>) {
    let rows: Vec<Measured<'_>> = source.rows().collect();
    let values = || {
        rows.iter().flat_map(|one| one.entry.values.iter().flatten().map(move |value| (one, &value.result)))
    };
    if values().next().is_none() {
        return;
    }
    family(text, "tactus_value", "gauge", None, "The median of what was measured of an item, in its unit.");
    for (one, value) in values() {
        let (unit, at) = (value.unit.to_string(), value.at.map(|at| at.number().to_string()));
        let mut pairs = vec![("item", value.item.as_str()), ("unit", unit.as_str())];
        pairs.extend(value.at.zip(at.as_deref()).map(|(point, at)| (point.axis(), at)));
        let _ = writeln!(text, "tactus_value{{{},{}}} {}", known(one), labels(&pairs), value.value);
    }
}

fn of_findings(source: &Source<'_>, text: &mut Stream<'_>) {
    if source.contents.audits.is_empty() {
        return;
    }
    use tactus_model::finding::{Severity, State};
    family(text, "tactus_findings", "gauge", None, "Findings of the audit, by severity.");
    for (environment, audit) in &source.contents.audits {
        for severity in [Severity::Blocker, Severity::Major, Severity::Minor, Severity::Info] {
            let count = audit.found().filter(|finding| finding.severity == severity).count();
            let of = labels(&[("environment", environment), ("severity", &severity.to_string())]);
            let _ = writeln!(text, "tactus_findings{{{of}}} {count}");
        }
    }
    family(
        text,
        "tactus_checks_unknown",
        "gauge",
        None,
        "Checks that could not be known or read there: not a pass.",
    );
    for (environment, audit) in &source.contents.audits {
        let count = audit.count(State::Unknowable) + audit.count(State::Unreadable);
        let _ =
            writeln!(text, "tactus_checks_unknown{{{}}} {count}", labels(&[("environment", environment)]));
    }
}
