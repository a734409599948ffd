//! A figure of a measurement is the same everywhere, and no format shows less of it: bundles of every shape,
//! in every format.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;
use tactus_format::export::Options;
use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::document::Outcome as Verdict;
use tactus_model::event::{RowStatus, RunStatus};
use tactus_model::latency::{Latency, Summary};
use tactus_model::number::float;
use tactus_model::outcome::{Ending, LatencyOutcome, Outcome, Restart, RowEnd};
use tactus_model::plan::Require;
use tactus_model::{Evidence, Nanos};
use tactus_report::answer::{answer, headline};
use tactus_report::part::{Group, Part, Reader};
use tactus_report::render::text::{Style, render};
use tactus_report::render::{github, html, json, junit, markdown};
use tactus_report::section::SECTIONS;
use tactus_report::stats::{Line, comparison};
use tactus_report::units::{count, latency, latency_up};

use crate::common::{self, Shape, Span, empty, environment, measured, planned, unmeasured};
use crate::export::exported;

/// How a run came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    Whole,
    /// It ended before its time.
    Short,
    /// Its environment died and was started again.
    Restarted,
    /// Its figures are there, and its histograms are not.
    Unread,
    Skipped,
    Failed,
    /// Nothing came of it, though it ended as planned.
    Nothing,
    /// The run was interrupted before its turn.
    Waiting,
}

/// A scenario.
#[derive(Clone, Debug)]
struct Made {
    kind: &'static str,
    evidence: Evidence,
    /// Several: it is repeated.
    runs: Vec<(Run, u64)>,
    series: u32,
    limit_us: Option<u64>,
}

fn run() -> impl Strategy<Value = (Run, u64)> {
    let run = prop_oneof![
        5 => Just(Run::Whole),
        1 => Just(Run::Short),
        1 => Just(Run::Restarted),
        1 => Just(Run::Unread),
        1 => Just(Run::Skipped),
        1 => Just(Run::Failed),
        1 => Just(Run::Nothing),
        1 => Just(Run::Waiting),
    ];
    (run, 1u64..1_000)
}

fn made() -> impl Strategy<Value = Made> {
    let place = prop_oneof![
        Just(("host", Evidence::BareMetal)),
        Just(("podman", Evidence::VirtualHost)),
        Just(("qemu", Evidence::Emulated)),
        Just(("imported", Evidence::Imported)),
    ];
    let runs =
        prop_oneof![1 => proptest::collection::vec(run(), 1), 2 => proptest::collection::vec(run(), 2..14)];
    (place, runs, 1u32..3, proptest::option::of(1u64..400)).prop_map(
        |((kind, evidence), runs, series, limit_us)| Made { kind, evidence, runs, series, limit_us },
    )
}

fn row(of: &Made, name: &str, number: Option<u32>, (run, seed): (Run, u64)) -> Row {
    let mut result =
        RowResult { interval_ns: 20_000, repeat: number, ..planned(name, of.kind, of.kind, Vec::new()) };
    let max = of.limit_us.map(|us| Nanos(us * 1_000));
    let overruns = Some(1).filter(|_| max.is_none() && of.series == 2);
    result.require = (max.is_some() || overruns.is_some()).then(|| Require {
        max,
        overruns,
        cycles: Some(1),
        ..Require::default()
    });
    match run {
        Run::Skipped => return unmeasured(result, RowEnd::Unavailable, "it is not installed"),
        Run::Failed => return unmeasured(result, RowEnd::Failed, "it broke"),
        Run::Waiting => {
            return unmeasured(result, RowEnd::Waiting, "the run was interrupted before this measurement");
        }
        Run::Whole | Run::Short | Run::Restarted | Run::Unread | Run::Nothing => {}
    }
    let shape = Shape { late: 0.1, lateness: float(seed) * 100.0, ..Shape::IDLE };
    let span = Span { ticks: 3, samples: 40, per_interval: 1, series: of.series };
    let mut row = measured(result, of.evidence, shape, span, seed);
    match run {
        Run::Short => {
            row.result.measured_ns /= 2;
            row.result.end(Ending::because(RowEnd::Stopped, "stopped after 5.0 s"));
        }
        Run::Restarted => {
            let (at_ns, first_tick, gap_ns) = (1_000_000_000, 1, 4_000_000_000);
            row.result.restarts.push(Restart { at_ns, first_tick, gap_ns, reason: "it died".into() });
        }
        Run::Unread => row = Row::of(row.result),
        Run::Nothing => {
            let own = row.result.outcome.latency_mut().unwrap();
            own.series.iter_mut().for_each(|series| series.summary = Summary::default());
            own.all = None;
            row = Row::of(row.result);
        }
        Run::Whole | Run::Skipped | Run::Failed | Run::Waiting => {}
    }
    if of.evidence == Evidence::Imported {
        (row.result.interval_ns, row.result.planned_ns, row.result.measured_ns) = (0, 0, 0);
        row.result.control.clear();
        let own = row.result.outcome.latency_mut().unwrap();
        own.series
            .iter_mut()
            .map(|series| &mut series.summary)
            .chain(&mut own.all)
            .for_each(|of| of.overruns = None);
    }
    row
}

fn contents(all: &[Made]) -> Contents {
    let mut contents = empty();
    for (n, of) in all.iter().enumerate() {
        contents.plan.environment.insert(of.kind.into(), environment(of.kind));
        let repeated = of.runs.len() > 1;
        for (number, run) in (1..).zip(&of.runs) {
            contents.rows.push(row(of, &format!("s{n}"), repeated.then_some(number), *run));
        }
    }
    let waits = |row: &Row| row.result.ended == RowEnd::Waiting;
    if contents.rows.iter().any(waits) {
        contents.manifest.status = RunStatus::Interrupted;
    }
    contents
}

/// All that was measured of each scenario, as it is defined: every value of every run in one distribution.
fn wanted(contents: &Contents) -> Vec<(String, Option<Summary>)> {
    let mut all: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in &contents.rows {
        match all.iter_mut().find(|(name, _)| *name == row.result.name) {
            Some((_, rows)) => rows.push(row),
            None => all.push((row.result.name.clone(), vec![row])),
        }
    }
    let together = |rows: &[&Row]| {
        let rows: Vec<&&Row> = rows.iter().filter(|row| row.result.all().is_some()).collect();
        if let [one] = rows.as_slice() {
            return one.result.all().cloned();
        }
        let (mut all, mut unread) = (Latency::new(), false);
        for row in &rows {
            let own = row.result.all().unwrap();
            all.totals.add(&own.totals());
            all.raw.add(row.histogram()).unwrap();
            for missed in row.missed.series.values() {
                missed.add_to(&mut all.missed);
            }
            unread |= row.histogram().is_empty();
        }
        let counted = rows.iter().all(|row| row.result.all().unwrap().overruns.is_some());
        let summary = Summary { overruns: Some(all.totals.overruns).filter(|_| counted), ..all.summary() };
        (!rows.is_empty()).then(|| if unread { summary.without_quantiles() } else { summary })
    };
    all.into_iter().map(|(name, rows)| (name, together(&rows))).collect()
}

/// The page as it is read.
fn page(contents: &Contents) -> String {
    html::render(contents).unwrap().replace('\u{a0}', " ").replace("µs", "us")
}

fn us(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".into(), |ns| latency(float(ns)))
}

/// The cells of the table for these figures, except p99.99, which it leaves out if no row has it.
fn cells(all: &Summary) -> Vec<String> {
    let of = &all.corrected;
    let mean = all.mean_ns.map_or_else(|| "-".into(), latency);
    let quantiles = [of.p50_ns, of.p99_ns, of.p999_ns].map(us);
    let counts = [all.overruns, Some(all.cycles)].map(|n| n.map_or_else(|| "unknown".into(), count));
    [us(all.min_ns), mean].into_iter().chain(quantiles).chain([us(all.max_ns)]).chain(counts).collect()
}

fn groups(contents: &Contents) -> Vec<Group> {
    let section = SECTIONS.iter().find(|section| section.name() == "measurements").unwrap();
    let parts = section.parts(contents, Reader::Page).into_iter();
    parts
        .filter_map(|part| if let Part::Grid(grid) = part { Some(grid.groups) } else { None })
        .flatten()
        .collect()
}

/// Whether these stand in the text, each behind the one before it.
fn in_order(text: &str, values: &[String]) -> bool {
    let mut rest = text;
    values.iter().all(|value| {
        let found = rest.find(value.as_str());
        rest = found.map_or("", |at| &rest[at + value.len()..]);
        found.is_some()
    })
}

fn table_of_each_format(contents: &Contents, wanted: &[(String, Option<Summary>)]) {
    let text = render(contents, Style { colour: false, width: 200 });
    let marked = markdown::render(contents);
    let page = page(contents);
    let groups = groups(contents);
    assert_eq!(groups.len(), wanted.len(), "a row for each scenario");
    for (group, (name, all)) in groups.iter().zip(wanted) {
        let Some(all) = all else {
            assert!(group.values.is_empty() && group.instead.is_some(), "{group:?}");
            continue;
        };
        let cells = cells(all);
        let shown: Vec<String> = group.values.iter().map(|value| value.first.clone()).collect();
        assert!(in_order(&shown.join(" | "), &cells), "{shown:?} is not {cells:?}");
        let line = text.lines().find(|line| line.starts_with(&group.name) && in_order(line, &cells));
        assert!(line.is_some(), "{name}: {cells:?} in\n{text}");
        let line = marked.lines().find(|line| line.contains(&group.name) && in_order(line, &cells));
        assert!(line.is_some(), "{name}: {cells:?} in\n{marked}");
        let at =
            page.find(&format!("id=\"{}\"", group.id)).unwrap_or_else(|| panic!("{} is not in it", group.id));
        assert!(in_order(&page[at..], &cells), "{name}: {cells:?}");
        let runs: Vec<&Row> = contents.rows.iter().filter(|row| row.result.name == *name).collect();
        if runs.len() > 1 {
            let measured: Vec<&Summary> = runs.iter().filter_map(|row| row.result.all()).collect();
            let together = match measured.len() {
                1 => format!("1 of {} runs", runs.len()),
                many => format!("{many} runs together"),
            };
            assert!(group.name.contains(&together), "{}", group.name);
            let own = |label: String| group.lines.iter().find(|line| line.label == label);
            let listed = (1..).zip(&runs).filter(|(n, _)| own(format!("run {n}")).is_some()).count();
            assert_eq!(listed, measured.len().min(10), "each run, or the worst");
            let worst = runs.iter().max_by_key(|row| row.result.all().and_then(|all| all.max_ns)).unwrap();
            let number = worst.result.repeat.unwrap();
            let line = own(format!("run {number}")).expect("the worst run is there");
            assert!(line.values.iter().any(|value| value.first == us(all.max_ns)), "{line:?}");
        }
    }
}

fn document_has_the_same(contents: &Contents, wanted: &[(String, Option<Summary>)]) {
    let json: Value = serde_json::from_str(&json::render(contents).unwrap()).unwrap();
    for (row, entry) in contents.rows.iter().zip(json["scenarios"].as_array().unwrap()) {
        // As it is read: a mean may differ in its last digit from what was written.
        let written = serde_json::to_string(&row.result.all()).unwrap();
        assert_eq!(entry["all"], serde_json::from_str::<Value>(&written).unwrap());
    }
    let no_entries = Vec::new();
    let repeated = json["repeated"].as_array().unwrap_or(&no_entries);
    for (name, all) in wanted {
        let runs = contents.rows.iter().filter(|row| row.result.name == *name).count();
        let entry = repeated.iter().find(|entry| entry["name"] == **name);
        assert_eq!(entry.is_some(), runs > 1);
        let Some(entry) = entry else { continue };
        let found: Option<Summary> = serde_json::from_value(entry["all"].clone()).unwrap();
        let same = |one: &Summary| {
            (one.cycles, one.overruns, one.lost, one.min_ns, one.max_ns, one.corrected.clone())
        };
        assert_eq!(found.as_ref().map(same), all.as_ref().map(same));
        assert_eq!(entry["runs"], runs);
    }
    // The answer speaks of the worst of each place.
    let sentence = json["answer"]["sentence"].as_str().unwrap();
    if json["answer"]["word"] == "NO LIMIT GIVEN" {
        let mut worst: BTreeMap<&str, u64> = BTreeMap::new();
        for row in &contents.rows {
            let Some(max) = row.result.all().and_then(|all| all.max_ns) else { continue };
            let known = worst.entry(&row.result.environment).or_default();
            *known = max.max(*known);
        }
        for (place, max) in worst {
            let said = format!("{} in {place}", latency(float(max)));
            assert!(sentence.contains(&said), "{said} is not in: {sentence}");
        }
    }
}

fn verdicts_quote_the_worst(contents: &Contents, wanted: &[(String, Option<Summary>)]) {
    let (xml, annotations) = (junit::render(contents).unwrap(), github::render(contents));
    for (name, all) in wanted {
        let runs: Vec<&Row> = contents.rows.iter().filter(|row| row.result.name == *name).collect();
        let Some(max) = all.as_ref().and_then(|all| all.max_ns) else { continue };
        let Some(limit) = runs[0].result.require.as_ref().and_then(|require| require.max) else { continue };
        let judged = matches!(
            runs[0].result.evidence.or(runs.iter().find_map(|row| row.result.evidence)),
            Some(Evidence::BareMetal | Evidence::VirtualHost)
        );
        if !judged || max <= limit.0 {
            continue;
        }
        let said = format!("max {}, limit {}", latency(float(max)), latency(float(limit.0)));
        let case = xml.lines().position(|line| line.contains(&format!("name=\"{name}:"))).unwrap();
        let own: Vec<&str> = xml.lines().skip(case).take(16).collect();
        // A run without a passed self-test decides nothing.
        let undecided = ["is undecided", "was not judged"];
        if own.iter().any(|line| undecided.iter().any(|said| line.contains(said))) {
            continue;
        }
        assert!(own.join("\n").contains(&said), "{said} is not in {own:?}");
        let mut lines = annotations.lines().filter(|line| line.contains(&format!("title={name}::")));
        let said = format!("maximum {}", latency(float(max)));
        assert!(lines.any(|line| line.contains(&said)), "{said} is not in\n{annotations}");
    }
}

fn exports_have_the_same(contents: &Contents) {
    let (files, _) = exported(contents, "csv", Options::default());
    let table = String::from_utf8(files["scenarios.csv"].clone()).unwrap();
    let mut lines = table.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = |name: &str| head.iter().position(|column| *column == name).unwrap();
    let (files, _) = exported(contents, "openmetrics", Options::default());
    let metrics = String::from_utf8(files["bundle.txt"].clone()).unwrap();
    for (n, (row, line)) in contents.rows.iter().zip(lines).enumerate() {
        // The columns before the figures have no commas in these bundles, but for lists of tables, which are empty.
        let cells: Vec<&str> = line.split(',').collect();
        let max = row.result.all().and_then(|all| all.max_ns);
        assert_eq!(cells[at("max_ns")], max.map_or_else(String::new, |max| max.to_string()), "{line}");
        let own = format!("{{number=\"{}\",", n + 1);
        let overruns = row.result.all().and_then(|all| all.overruns);
        assert_eq!(cells[at("overruns")], overruns.map_or_else(String::new, |n| n.to_string()), "{line}");
        let counters =
            metrics.lines().filter(|line| line.starts_with("tactus_overruns_total{") && line.contains(&own));
        let counters: Vec<u64> =
            counters.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
        assert_eq!(
            overruns,
            (!counters.is_empty()).then(|| counters.iter().sum()),
            "what is unknown has no metric"
        );
        let largest = metrics
            .lines()
            .filter(|line| line.starts_with("tactus_latency_max_seconds{") && line.contains(&own));
        let largest =
            largest.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).reduce(f64::max);
        let wanted = max.map(|max| float(max) / 1e9);
        assert!(
            largest.zip(wanted).map_or(largest == wanted, |(one, other)| (one - other).abs() < 1e-9),
            "{largest:?} is not {wanted:?}"
        );
    }
}

fn fitness_is_of_the_worst(contents: &Contents) {
    let page = page(contents);
    for entry in tactus_report::document(contents).fitness {
        let own = contents
            .rows
            .iter()
            .filter(|row| row.result.name == entry.scenario && row.result.status == RowStatus::Measured);
        let worst = own.filter_map(|row| row.result.all()?.max_ns).max().unwrap();
        assert_eq!(entry.worst_ns, worst);
        assert!(page.contains(&format!("worst {}", latency_up(worst))));
    }
}

/// Every place says the same about how many measurements were made.
fn what_was_made_is_counted_once(contents: &Contents) {
    let made: Vec<&Row> = contents.rows.iter().filter(|row| row.result.all().is_some()).collect();
    let (many, all) = (made.len(), contents.rows.len());
    let wanted = match many {
        0 => format!("None of {all} measurements could be made"),
        _ if all == 1 => "1 measurement was made".into(),
        _ => format!("{many} of {all} measurements were made"),
    };
    let said = headline(contents).join(" ");
    assert!(said.contains(&wanted) && !said.contains("in ."), "{wanted} is not in: {said}");
    let answer = answer(contents).sentence;
    let interrupted = answer.to_lowercase().matches("the run was interrupted").count();
    assert!(interrupted <= 1, "it is said once: {answer}");
    let alike =
        |rows: &[&Row]| rows.windows(2).all(|two| two[0].result.measured_ns == two[1].result.measured_ns);
    assert!(!(answer.contains(" and more") && alike(&made)), "all measured for as long: {answer}");
    let xml = junit::render(contents).unwrap();
    assert!(xml.contains("<property name=\"answer\""), "{xml}");
    let waits = contents.rows.iter().any(|row| row.result.ended == RowEnd::Waiting);
    if made.is_empty() || waits {
        assert!(!xml.contains("failures=\"0\" errors=\"0\""), "it has not shown that it holds: {xml}");
    }
}

/// A broken limit is named, and a number of a single run is marked as that of one run.
fn answer_names_what_breaks(contents: &Contents) {
    let sentence = answer(contents).sentence;
    let lines = comparison(contents);
    let broken: Vec<&Line> = lines
        .iter()
        .filter(|line| line.verdict.as_ref().is_some_and(|verdict| verdict.outcome == Verdict::Fail))
        .collect();
    assert!(broken.iter().all(|line| sentence.contains(&line.name)), "{sentence}");
    let Some((number, rest)) = sentence.split_once("overruns ").and_then(|(_, rest)| rest.split_once(" > "))
    else {
        return;
    };
    let missed = |row: &Row| row.result.all().and_then(|all| all.overruns).map(count);
    let of_run = rest.split_once("(run ").and_then(|(_, rest)| rest.split_once(" of "));
    let known = contents.rows.iter().filter(|row| {
        broken.iter().any(|line| sentence.starts_with(&line.name) && line.name == row.result.name)
    });
    let known = known.filter(|row| of_run.is_none_or(|(run, _)| row.result.repeat == run.parse().ok()));
    let known: Vec<Option<String>> = known.filter(|row| row.result.all().is_some()).map(missed).collect();
    assert!(known.iter().all(|own| own.as_deref() == Some(number)), "{known:?} in: {sentence}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_figure_is_the_same_wherever_it_is_read(all in proptest::collection::vec(made(), 1..4)) {
        let contents = contents(&all);
        let wanted = wanted(&contents);
        table_of_each_format(&contents, &wanted);
        document_has_the_same(&contents, &wanted);
        verdicts_quote_the_worst(&contents, &wanted);
        exports_have_the_same(&contents);
        fitness_is_of_the_worst(&contents);
        what_was_made_is_counted_once(&contents);
        answer_names_what_breaks(&contents);
    }
}

/// Five runs, the second of which is the worst, and the last the best.
fn five() -> Contents {
    let mut contents = empty();
    for (number, max_ns) in (1..).zip([823_000, 1_763_000, 815_000, 700_000, 9_000]) {
        let mut row = common::whole_minute();
        row.result.repeat = Some(number);
        row.result.require = None;
        let own = row.result.outcome.latency_mut().unwrap();
        own.all.as_mut().unwrap().max_ns = Some(max_ns);
        own.series[0].summary.max_ns = Some(max_ns);
        contents.rows.push(row);
    }
    contents
}

#[test]
fn the_maximum_of_five_runs_is_that_of_the_worst_and_a_median_is_called_one() {
    let contents = five();
    let text = render(&contents, Style { colour: false, width: 140 });
    assert!(text.contains("The largest latency was 1.76 ms in host"), "{text}");
    assert!(text.contains("host, idle (5 runs together)") && text.contains("median of 5 runs"), "{text}");
    let line = text.lines().find(|line| line.contains("median of 5 runs")).unwrap();
    assert!(line.contains("815 us"), "{line}");
    assert!(page(&contents).contains("5 runs of 1 min"));
}

#[test]
fn a_verdict_on_several_runs_is_that_of_the_worst_for_each_limit_and_says_which_run_it_is() {
    let mut contents = five();
    for row in &mut contents.rows {
        row.result.require = Some(Require {
            max: Some(Nanos::from_ms(1)),
            overruns: Some(0),
            cycles: Some(1),
            ..Require::default()
        });
    }
    contents.rows[4].result.outcome.latency_mut().unwrap().all.as_mut().unwrap().overruns = Some(3);
    let entry = &tactus_report::document(&contents).repeated[0];
    let verdict = entry.verdict.as_ref().unwrap();
    assert!(verdict.reason.starts_with("run "), "{}", verdict.reason);
    let xml = junit::render(&contents).unwrap();
    assert!(xml.contains("max 1.76 ms, limit 1 ms"), "{xml}");
    assert!(xml.contains("overruns 3, limit 0"), "a limit that another run broke: {xml}");
    // A limit that all runs keep is shown with the worst of them.
    contents.rows.iter_mut().for_each(|row| {
        row.result.require.as_mut().unwrap().overruns = None;
        row.result.require.as_mut().unwrap().max = Some(Nanos::from_ms(2));
    });
    let text = render(&contents, Style { colour: false, width: 140 });
    assert!(text.contains("max 1.76 ms, limit 2 ms"), "{text}");
}

#[test]
fn a_measurement_of_which_a_run_failed_has_the_figures_of_the_others_and_is_an_error() {
    let mut contents = five();
    contents.rows[1].result.end(Ending::because(RowEnd::Failed, "the guest died"));
    contents.rows[1].result.outcome = Outcome::Latency(LatencyOutcome::default());
    let text = render(&contents, Style { colour: false, width: 140 });
    assert!(text.contains("run 2 of 5: the guest died") && text.contains("4 runs together"), "{text}");
    assert!(junit::render(&contents).unwrap().contains("1 of 5 runs failed: the guest died"));
    let annotations = github::render(&contents);
    let error = |line: &str| line.starts_with("::error") && line.contains("the guest died");
    assert!(annotations.lines().any(error), "{annotations}");
}
