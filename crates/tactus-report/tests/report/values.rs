//! Measurements that yield values, in every format.

use serde_json::Value;
use tactus_model::Evidence;
use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::document::Outcome;
use tactus_model::outcome::{Better, Repeats, Unit, ValueResult};
use tactus_model::plan::Require;
use tactus_report::document;
use tactus_report::figure::{standalone, themed};
use tactus_report::part::{Part, Reader};
use tactus_report::render::text::{Style, render};
use tactus_report::render::{html, markdown, svg};
use tactus_report::row::verdict;
use tactus_report::section::{Section, values};

use crate::common::{item, overheads, planned, valued};

fn plain(width: usize) -> Style {
    Style { colour: false, width }
}

#[test]
fn the_text_of_values() {
    insta::assert_snapshot!(render(&overheads(), plain(100)));
}

#[test]
fn the_text_of_values_where_there_is_room() {
    let text = render(&overheads(), plain(160));
    insta::assert_snapshot!(text.split("\nRequirements").next().unwrap());
}

#[test]
fn the_markdown_of_values() {
    insta::assert_snapshot!(markdown::render(&overheads()));
}

#[test]
fn the_json_of_values() {
    let mut json = serde_json::to_value(document(&overheads())).unwrap();
    let entries: Vec<Value> = json["scenarios"].as_array_mut().unwrap().drain(1..2).collect();
    insta::assert_snapshot!(serde_json::to_string_pretty(&entries).unwrap());
}

#[test]
fn a_row_has_values_or_latencies_and_the_other_is_null() {
    let json = serde_json::to_value(document(&overheads())).unwrap();
    let rows = json["scenarios"].as_array().unwrap();
    for row in &rows[..3] {
        assert!(row["values"].as_array().is_some_and(|values| values.len() == 3) && row["all"].is_null());
    }
    assert!(rows[3]["values"].is_null() && !rows[3]["all"].is_null(), "latencies have no values");
    assert_eq!(rows[4]["values"].as_array().map(Vec::len), Some(0), "nothing was measured of them");
}

#[test]
fn the_page_of_values() {
    let page = html::render(&overheads()).unwrap();
    let from = page.find("<section id=\"measurements\">").unwrap();
    let to = page[from..].find("<figure class=\"plot\">").unwrap();
    insta::assert_snapshot!(&page[from..from + to]);
}

fn drawn(contents: &Contents) -> Vec<tactus_report::figure::Figure> {
    values::ENTRY.parts(contents, Reader::Page).into_iter().flat_map(Part::figures).collect()
}

#[test]
fn values_are_drawn_side_by_side_with_what_was_published() {
    let figures = drawn(&overheads());
    assert_eq!(figures.len(), 1);
    let svg = figures[0].svg();
    for text in ["signal handler, in us (less is better)", "podman, services (bare metal)", "published"] {
        assert!(svg.contains(text), "{text}");
    }
    assert!(svg.contains("qemu, services (emulated)"), "the evidence stands at each bar");
    let marks = |svg: &str| standalone(svg).matches("#8a1538").count();
    assert_eq!(marks(&svg), 3, "two values and the legend");
    assert!(!standalone(&svg).contains("var(--") && themed(&svg).contains("var(--s3)"));
    assert!(svg::render(&overheads()).contains("signal handler"));
    let mut without = overheads();
    without.plan.reference.clear();
    assert_eq!(marks(&drawn(&without)[0].svg()), 0);
}

#[test]
fn a_bar_alone_is_not_drawn_and_what_is_drawn_is_folded() {
    let mut alone = overheads();
    alone.rows.truncate(1);
    assert!(drawn(&alone).is_empty());
    // The container's items of which something was published.
    let mut published = overheads();
    published.rows = published.rows.drain(1..2).collect();
    let about: String = drawn(&published).into_iter().map(|figure| figure.about).collect();
    assert!(about.contains("signal handler") && about.contains("AF_UNIX bandwidth"), "{about}");
    assert!(!about.contains("system call"), "{about}");
    let parts = values::ENTRY.parts(&overheads(), Reader::Page);
    assert!(parts.iter().all(|part| matches!(part, Part::Folded(..))), "{parts:?}");
}

#[test]
fn many_rows_are_drawn_in_several_figures_and_no_item_is_lost() {
    let mut contents = overheads();
    let row = contents.rows[1].clone();
    contents.rows.extend(std::iter::repeat_n(row, 20));
    let figures = drawn(&contents);
    assert!(figures.len() > 1);
    for item in ["system call", "signal handler", "AF_UNIX bandwidth"] {
        assert_eq!(figures.iter().filter(|figure| figure.title.contains(item)).count(), 1, "{item}");
    }
}

fn outcome(row: &Row) -> (Outcome, String) {
    let verdict = verdict(row).expect("it requires something");
    (verdict.outcome, verdict.reason)
}

fn required(evidence: Evidence, name: &str, bound: &str) -> Row {
    let planned = planned("services", "host", "host", Vec::new());
    let mut result = RowResult { planned_ns: 60_000_000_000, ..planned };
    let values = [(name.to_owned(), bound.parse().unwrap())].into();
    result.require = Some(Require { values, ..Require::default() });
    let items = [
        (item("signal handler", Unit::Us, Better::Lower), 4.0),
        (item("bandwidth", Unit::MegabytesPerSecond, Better::Higher), 2_000.0),
    ];
    valued(result, evidence, &items)
}

#[test]
fn a_bound_is_kept_or_broken_when_the_whole_interval_is_on_one_side() {
    let of = |item: &str, bound: &str| outcome(&required(Evidence::BareMetal, item, bound));
    let (kept, reason) = of("signal handler", "5us");
    assert_eq!(kept, Outcome::Pass, "{reason}");
    assert!(reason.contains("signal handler 4 us is within the required 5 us, over 41 repeats"), "{reason}");
    assert_eq!(of("signal handler", "3500ns").0, Outcome::Fail, "units of one dimension are compared");
    let (open, reason) = of("signal handler", "4us");
    assert_eq!(open, Outcome::Inconclusive);
    assert!(reason.contains("may be above or below"), "{reason}");
    assert_eq!(of("bandwidth", "1.5GB/s").0, Outcome::Pass, "more is better");
    assert_eq!(of("bandwidth", "3GB/s").0, Outcome::Fail);
}

#[test]
fn what_was_not_measured_or_means_nothing_is_inconclusive() {
    let of = |evidence, item: &str, bound: &str| outcome(&required(evidence, item, bound));
    let emulated = of(Evidence::Emulated, "signal handler", "5us");
    assert_eq!(emulated.0, Outcome::Inconclusive);
    assert!(emulated.1.contains("says nothing about hardware"), "{}", emulated.1);
    let missing = of(Evidence::BareMetal, "select", "5us");
    assert_eq!(missing, (Outcome::Inconclusive, "`select` was not measured".into()));
    let other = of(Evidence::BareMetal, "bandwidth", "5us");
    assert_eq!(other, (Outcome::Inconclusive, "bandwidth is in MB/s, but 5us is required".into()));
    let mut few = required(Evidence::BareMetal, "signal handler", "5us");
    let mut repeats = Repeats { kept: vec![4.0, 4.1], dropped: 0, batch: 1 };
    let handler = item("signal handler", Unit::Us, Better::Lower);
    let value = ValueResult::of(&handler, &mut repeats).unwrap();
    few.result.outcome = tactus_model::outcome::Outcome::Values(vec![value]);
    assert!(outcome(&few).1.contains("too few for an interval"));
    let mut early = required(Evidence::VirtualHost, "signal handler", "5us");
    early.result.planned_ns *= 100;
    let (outcome, reason) = outcome(&early);
    assert_eq!(outcome, Outcome::Inconclusive);
    assert!(reason.contains("as seen inside this virtual machine, but it ended before its"), "{reason}");
}

#[test]
fn a_hostile_item_is_only_text() {
    let mut contents = overheads();
    let items = [(item("<script>x</script>|\u{1b}[31m", Unit::Us, Better::Lower), 1.0)];
    contents.rows[0] = valued(contents.rows[0].result.clone(), Evidence::BareMetal, &items);
    let page = html::render(&contents).unwrap();
    assert!(!page.contains("<script>x"));
    for text in [markdown::render(&contents), svg::render(&contents)] {
        assert!(!text.contains('\u{1b}') && !text.contains("<script>x</script>|"));
    }
    assert!(!render(&contents, plain(100)).contains('\u{1b}'));
}

#[test]
fn no_line_of_values_is_wider_than_its_terminal() {
    for width in [80, 100, 140] {
        for line in render(&overheads(), plain(width)).lines() {
            assert!(tactus_report::units::columns(line) <= width, "{width}: {line}");
        }
    }
}
