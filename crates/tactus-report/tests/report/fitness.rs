//! Fitness from latencies, and when it is unknown.

use serde_json::json;
use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::{Application, MarkedValue};
use tactus_model::document::{Fit, FitnessEntry};
use tactus_model::event::{RowStatus, RunStatus};
use tactus_model::outcome::{Ending, RowEnd};
use tactus_model::plan::{Fitness, Plan, Reference, Require};
use tactus_model::{Evidence, Nanos};
use tactus_report::fitness::{built_in, entries, read};
use tactus_report::render::text::Style;
use tactus_report::render::{FORMATS, text};
use tactus_report::{document, render};

use crate::common::{self, Shape, Span, empty, latency, measured, planned};

/// 100 s at 1 ms, all of it, by a proven instrument, from 2 us to 4 us.
fn good(name: &str) -> Row {
    let (planned_ns, interval_ns) = (100_000_000_000, 1_000_000);
    let result = RowResult { planned_ns, interval_ns, ..planned(name, "host", "host", Vec::new()) };
    let span = Span { ticks: 10, samples: 10_000, per_interval: 1, series: 1 };
    let mut row = measured(result, Evidence::BareMetal, Shape::IDLE, span, 3);
    from_to(&mut row, 2_000, 4_000);
    row
}

fn from_to(row: &mut Row, best: u64, worst: u64) {
    let own = latency(row);
    for summary in own.series.iter_mut().map(|one| &mut one.summary).chain(&mut own.all) {
        (summary.min_ns, summary.max_ns) = (Some(best), Some(worst));
    }
}

#[test]
fn reasons_that_differ_in_their_number_alone_are_one_sentence_with_the_least() {
    let short = |name: &str, cycles: u64| {
        let mut row = good(name);
        let own = latency(&mut row);
        for summary in own.series.iter_mut().map(|one| &mut one.summary).chain(&mut own.all) {
            summary.cycles = cycles;
        }
        row
    };
    let shown = |rows| text::render(&of(rows), Style { width: 400, ..Style::default() });
    let all = shown(vec![good("kept"), short("one", 7_994), short("other", 7_923), short("third", 8_000)]);
    assert_eq!(all.matches("Inconclusive for").count(), 1, "{all}");
    assert!(all.contains("7923 cycles of a thread are too few") && all.contains("; third"), "{all}");
}

#[test]
fn a_documents_classes_are_left_out_where_the_user_has_a_limit_and_say_whose_they_are() {
    let mut late = good("host, idle");
    from_to(&mut late, 2_000, 80_000);
    let mut contents = of(vec![late]);
    let shown = said(&contents);
    assert!(shown.contains("come from a document of 2014") && shown.contains("unfit"), "{shown}");
    contents.rows[0].result.require = Some(Require { max: Some(Nanos::from_us(100)), ..Require::default() });
    for format in FORMATS.iter().filter(|format| format.name != "png") {
        let shown = String::from_utf8((format.render)(&contents).unwrap()).unwrap();
        assert!(!shown.contains("unfit") && !shown.contains("motion control"), "{}", format.name);
    }
    assert!(document(&contents).fitness.is_empty());
    // Asked for by the plan, or by the command, they are judged.
    let own = "[[class]]\nname = \"press\"\ncycle = \"250us\"\njitter = \"1us\"\n";
    contents.plan.fitness = Some(Fitness { claim: None, class: read(own).unwrap() });
    let classes: Vec<String> =
        document(&contents).fitness[0].classes.iter().map(|class| class.class.clone()).collect();
    assert_eq!(classes, ["press"]);
    assert_eq!(one(&contents).classes.len(), 3);
}

/// The same of a user's own program.
fn application(name: &str, value: MarkedValue, worst_ns: u64) -> Row {
    let mut row = good(name);
    let file = "/dev/shm/control".to_owned();
    row.result.measurement =
        Measure::Application(Application { file, value: Some(value), ..Application::default() });
    from_to(&mut row, 2_000, worst_ns);
    row
}

/// A response is over when the program has computed: it has the whole cycle. Computing alone says nothing of when.
#[test]
fn of_a_program_the_response_has_the_whole_cycle_and_the_start_its_share_and_execution_is_not_judged() {
    let text = "[[class]]\nname = \"loop\"\ncycle = \"100us\"\njitter = \"1ms\"\nshare = 30\n";
    let classes = read(text).unwrap();
    let values = [MarkedValue::Response, MarkedValue::Start, MarkedValue::Execution];
    let names = ["response", "start", "execution"];
    let contents =
        of(names.into_iter().zip(values).map(|(name, value)| application(name, value, 90_000)).collect());
    let all = entries(&contents, &classes);
    let found: Vec<(&str, Fit)> = all.iter().map(|one| (one.scenario.as_str(), one.classes[0].fit)).collect();
    assert_eq!(found, [("response", Fit::Fit), ("start", Fit::Unfit)]);
    assert_eq!(all[1].classes[0].lacks, ["worst 90 us, limit 30 us (30 % of the cycle)"]);
    let late = of(vec![application("response", MarkedValue::Response, 100_001)]);
    assert_eq!(entries(&late, &classes)[0].classes[0].fit, Fit::Unfit, "later than its next cycle");
    let shown = text::render(&contents, Style::default());
    assert!(shown.contains("Not judged, because it is computing time, not a latency: execution"), "{shown}");
}

fn of(rows: Vec<Row>) -> Contents {
    Contents { rows, ..empty() }
}

fn one(contents: &Contents) -> FitnessEntry {
    let mut all = entries(contents, built_in());
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn fits(entry: &FitnessEntry) -> Vec<Fit> {
    entry.classes.iter().map(|class| class.fit).collect()
}

/// Nothing may be said of this row, and that is why.
fn unknowable(row: Row, why: &str) -> FitnessEntry {
    let entry = one(&of(vec![row]));
    for class in &entry.classes {
        assert_eq!(class.fit, Fit::Unknowable, "{class:?}");
        assert!(class.reason.as_deref().unwrap_or_default().contains(why), "{class:?}");
    }
    entry
}

/// The table of intel-industrial-2014, and a measurement of the first scenario.
fn industrial() -> Contents {
    const SOURCE: &str = "table 3";
    const ROWS: [(&str, u64, u64, u64); 4] = [
        ("native", 2_280, 2_500, 3_030),
        ("alone in a VM", 4_670, 5_530, 11_780),
        ("with two VMs", 4_900, 5_890, 12_380),
        ("with two VMs, console", 4_950, 5_840, 17_700),
    ];
    let mut contents = of(vec![good("native")]);
    for (name, ..) in &ROWS[1..] {
        let row = planned(name, "guest", "qemu", Vec::new());
        contents.rows.push(common::unmeasured(row, RowEnd::Unavailable, "QEMU is not installed"));
    }
    contents.plan.reference = ROWS
        .map(|(name, min, mean, max)| Reference {
            scenario: name.into(),
            min: Some(Nanos(min)),
            mean: Some(Nanos(mean)),
            max: Some(Nanos(max)),
            source: SOURCE.into(),
            ..Reference::default()
        })
        .to_vec();
    let claim = "\"some PLCs, and perhaps certain motion and motor drive\" (Conclusions)";
    contents.plan.fitness = Some(Fitness { claim: Some(claim.into()), class: Vec::new() });
    contents
}

/// The report in a terminal, on one line.
fn said(contents: &Contents) -> String {
    let text = text::render(contents, Style::default());
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn published_rows_stand_below_those_measured_here_and_the_documents_own_words_beside_them() {
    let contents = industrial();
    let all = entries(&contents, built_in());
    let said: Vec<(bool, Vec<Fit>)> =
        all.iter().map(|entry| (entry.published.is_some(), fits(entry))).collect();
    let plc_only = vec![Fit::Fit, Fit::Unfit, Fit::Unfit];
    let everything = vec![Fit::Fit; 3];
    assert_eq!(
        said,
        [
            (false, everything.clone()),
            (true, everything),
            (true, plc_only.clone()),
            (true, plc_only.clone()),
            (true, plc_only)
        ]
    );
    assert_eq!(all[4].classes[1].lacks, ["jitter 12.75 us, limit 5 us"]);
    assert_eq!(all[4].classes[0].shortest_cycle_ns, Some(17_700));
    for format in ["text", "markdown", "html"] {
        let format = FORMATS.iter().find(|known| known.name == format).unwrap();
        let page = String::from_utf8((format.render)(&contents).unwrap()).unwrap();
        let page =
            page.split_whitespace().collect::<Vec<_>>().join(" ").replace('\u{a0}', " ").replace("µs", "us");
        assert!(page.contains("some PLCs, and perhaps certain motion and motor drive"), "{}", format.name);
        assert!(page.contains("12.75 us"), "{}", format.name);
    }
    assert_eq!(document(&contents).fitness, all);
}

#[test]
fn the_text_of_fitness_at_100_columns() {
    let contents = industrial();
    let all = entries(&contents, built_in());
    insta::assert_snapshot!(text::fitness(&contents, &all, built_in(), Style::default()));
}

#[test]
fn the_text_of_fitness_that_nothing_is_known_of() {
    let contents = common::this_machine();
    let all = entries(&contents, built_in());
    insta::assert_snapshot!(text::fitness(&contents, &all, built_in(), Style::default()));
}

#[test]
fn the_json_of_fitness() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&document(&industrial()).fitness[..2]).unwrap());
}

#[test]
fn fit_says_at_which_cycle_with_what_margin_and_for_how_long_it_was_looked() {
    let entry = one(&of(vec![good("host, idle")]));
    assert_eq!(fits(&entry), [Fit::Fit; 3]);
    assert_eq!((entry.best_ns, entry.worst_ns, entry.jitter_ns), (2_000, 4_000, 2_000));
    assert_eq!((entry.duration_s, entry.cycles), (Some(100.0), Some(100_000)));
    assert_eq!(entry.worse_per_s, Some(0.03));
    let drive = &entry.classes[2];
    assert_eq!((drive.shortest_cycle_ns, drive.margin), (Some(10_000), 0.0));
    assert!(!drive.demanding, "the most demanding drives allow 1 us");
    let said = said(&of(vec![good("host, idle")]));
    assert!(
        said.contains("None occurred in 1 min 40 s, so at most 0.03 a second are to be expected"),
        "{said}"
    );
}

#[test]
fn ten_seconds_are_never_fit_however_good_they_were() {
    let mut row = good("host, idle");
    (row.result.planned_ns, row.result.measured_ns, row.result.interval_ns) =
        (10_000_000_000, 10_000_000_000, 100_000);
    unknowable(row, "10 s are too short for a pass, which needs 1 min");
}

#[test]
fn what_is_lacking_needs_no_second_value() {
    let mut row = good("host, idle");
    from_to(&mut row, 2_000, 7_001);
    (row.result.planned_ns, row.result.measured_ns, row.result.interval_ns) =
        (10_000_000_000, 10_000_000_000, 100_000);
    let entry = one(&of(vec![row]));
    assert_eq!(fits(&entry), [Fit::Unknowable, Fit::Unfit, Fit::Unfit]);
    assert_eq!(entry.classes[1].lacks, ["jitter 5.001 us, limit 5 us"]);
}

#[test]
fn too_few_cycles_show_that_nothing_is_lacking_never_and_that_something_is_at_once() {
    let few = |worst_ns| {
        let mut row = good("host, idle");
        from_to(&mut row, 2_000, worst_ns);
        for series in &mut latency(&mut row).series {
            series.summary.cycles = 99_999;
        }
        row
    };
    unknowable(few(3_000), "99 999 cycles of a thread are too few for a pass, which needs 100 000");
    let entry = one(&of(vec![few(90_000)]));
    assert_eq!(fits(&entry), [Fit::Unknowable, Fit::Unfit, Fit::Unfit], "no cycle more makes it less");
    assert_eq!(entry.classes[1].lacks, ["jitter 88 us, limit 5 us"]);
}

#[test]
fn what_was_emulated_is_neither_fit_nor_unfit() {
    for worst in [4_000, 400_000_000] {
        let mut row = good("guest");
        from_to(&mut row, 2_000, worst);
        row.result.evidence = Some(Evidence::Emulated);
        assert_eq!(fits(&one(&of(vec![row]))), [Fit::Emulated; 3]);
    }
    let contents = common::this_machine();
    for entry in entries(&contents, built_in()).iter().filter(|entry| entry.environment == "qemu") {
        assert_eq!(fits(entry), [Fit::Emulated; 3]);
    }
}

#[test]
fn an_instrument_that_is_not_proven_carries_no_answer() {
    let mut row = good("host, idle");
    row.result.control.clear();
    unknowable(row, "self-test not passed");
}

#[test]
fn what_was_imported_has_its_numbers_and_no_answer() {
    let mut row = good("host, idle");
    from_to(&mut row, 2_000, 90_000);
    row.result.evidence = Some(Evidence::Imported);
    row.result.control.clear();
    let entry = unknowable(row, "tactus did not measure it");
    assert_eq!(entry.worst_ns, 90_000);
    assert_eq!(entry.classes[1].lacks, ["jitter 88 us, limit 5 us"]);
}

#[test]
fn a_run_that_ended_early_is_not_called_fit() {
    let mut row = good("host, idle");
    row.result.planned_ns = 200_000_000_000;
    unknowable(row, "it ended before its");
}

#[test]
fn a_measurement_with_a_fault_and_one_that_failed_are_not_judged_but_named() {
    let mut faulty = good("host, blocked");
    faulty.result.fault = vec![json!({ "kind": "block", "in": "host" })];
    let mut failed = good("host, died");
    failed.result.end(Ending::because(RowEnd::Failed, "the probe was killed"));
    assert_eq!(failed.result.status, RowStatus::Failed);
    let contents = of(vec![good("host, idle"), faulty, failed]);
    assert_eq!(one(&contents).scenario, "host, idle");
    let said = said(&contents);
    assert!(said.contains("Not judged, because a fault was injected: host, blocked."), "{said}");
    assert!(said.contains("Not judged, because it failed: host, died."), "{said}");
}

#[test]
fn the_runs_of_a_measurement_are_judged_together_the_best_of_all_and_the_worst_of_all() {
    let runs = |n: u32, best, worst| {
        let mut row = good("host, idle");
        from_to(&mut row, best, worst);
        row.result.repeat = Some(n);
        row
    };
    let mut contents = of(vec![runs(1, 2_000, 3_000), runs(2, 6_000, 7_500)]);
    let entry = one(&contents);
    assert_eq!((entry.runs, entry.jitter_ns, entry.duration_s), (2, 5_500, Some(200.0)));
    assert_eq!(fits(&entry), [Fit::Fit, Fit::Unfit, Fit::Unfit]);
    contents.rows[1].result.end(Ending::because(RowEnd::Failed, "the probe was killed"));
    let entry = one(&contents);
    assert_eq!(fits(&entry), [Fit::Unknowable; 3]);
    assert_eq!(entry.classes[0].reason.as_deref(), Some("1 of 2 runs were measured"));
}

#[test]
fn an_interrupt_and_the_thread_that_it_wakes_are_judged_by_themselves() {
    let mut row = good("host, idle");
    let mut interrupt = latency(&mut row).series[0].clone();
    interrupt.key.kind = "irq".into();
    latency(&mut row).series[0].summary.max_ns = Some(40_000);
    let all = latency(&mut row);
    all.series.push(interrupt);
    let entries = entries(&of(vec![row]), built_in());
    let said: Vec<(Option<&str>, u64)> =
        entries.iter().map(|entry| (entry.latency.as_deref(), entry.worst_ns)).collect();
    assert_eq!(said, [(Some("thread"), 40_000), (Some("irq"), 4_000)]);
}

#[test]
fn a_bundle_without_latencies_has_no_fitness() {
    let mut values = common::overheads();
    values.rows.retain(|row| !row.result.values().is_empty());
    assert!(!values.rows.is_empty());
    for contents in [empty(), values] {
        assert!(document(&contents).fitness.is_empty());
        assert!(!render::html::render(&contents).unwrap().contains("Fitness for control"));
    }
}

#[test]
fn a_plan_may_define_classes_and_keeps_them() {
    let mut contents = of(vec![good("host, idle")]);
    let own = "[[class]]\nname = \"press\"\ncycle = \"250us\"\njitter = \"1us\"\nshare = 20\n";
    contents.plan.fitness = Some(Fitness { claim: None, class: read(own).unwrap() });
    let entry = &document(&contents).fitness[0];
    let press = entry.classes.last().unwrap();
    assert_eq!((press.class.as_str(), press.fit), ("press", Fit::Unfit));
    assert_eq!(press.lacks, ["jitter 2 us, limit 1 us"]);
    let text = toml::to_string(&contents.plan).unwrap();
    assert_eq!(toml::from_str::<Plan>(&text).unwrap(), contents.plan);
}

#[test]
fn an_interrupted_bundle_and_hostile_names_break_nothing() {
    for contents in [common::interrupted(), common::hostile()] {
        let all = entries(&contents, built_in());
        assert!(
            all.iter().all(|entry| !fits(entry).contains(&Fit::Fit)),
            "what is cut short proves nothing good"
        );
        let said = text::fitness(&contents, &all, built_in(), Style::default());
        assert!(!said.contains(['\u{1b}', '\u{202e}']));
        assert!(contents.manifest.status == RunStatus::Interrupted || said.contains("unfit"));
    }
}
