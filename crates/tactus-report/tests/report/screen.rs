//! The end of a run in a terminal: one screen, and what came of each limit.

use tactus_model::Nanos;
use tactus_model::bundle::Contents;
use tactus_model::document::Outcome;
use tactus_model::outcome::RowEnd;
use tactus_model::plan::Require;
use tactus_report::answer::{Closed, closing as closing_of};
use tactus_report::render::text::{Style, screen};
use tactus_report::stats::comparison;
use tactus_report::units::columns;

use crate::common::{
    day, empty, hostile, interrupted, overheads, planned, study, this_machine, unmeasured, whole_minute,
};

const FULL: &str = "tactus report first";

fn shown(contents: &Contents, width: usize) -> String {
    screen(contents, Style { colour: false, width }, FULL)
}

fn closing(contents: &Contents) -> Vec<Closed> {
    closing_of(contents, &comparison(contents))
}

fn minute(require: Require) -> Contents {
    let mut contents = empty();
    let mut row = whole_minute();
    row.result.require = Some(Require { cycles: Some(1), ..require });
    contents.rows.push(row);
    contents
}

#[test]
fn whatever_was_measured_the_end_of_a_run_fits_a_screen() {
    for contents in [study(), this_machine(), interrupted(), empty(), hostile(), day(), overheads()] {
        for width in [80, 120] {
            let text = shown(&contents, width);
            // One row is left for the page's path, and one for the shell.
            assert!(text.lines().count() <= 22, "{width}: {}\n{text}", text.lines().count());
            for line in text.lines().filter(|line| !line.contains("next: ")) {
                assert!(columns(line) <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn the_end_of_a_run_of_this_machine_is_read_at_a_glance() {
    insta::assert_snapshot!(shown(&this_machine(), 80));
}

#[test]
fn each_limit_has_a_line_and_the_worst_comes_first() {
    let contents = minute(Require {
        max: Some(Nanos::from_us(3)),
        jitter: Some(Nanos::from_ms(10)),
        overruns: Some(0),
        ..Require::default()
    });
    let closed = closing(&contents);
    let words: Vec<(&str, Outcome)> = closed.iter().map(|one| (one.word(), one.outcome)).collect();
    assert_eq!(words[0], ("NOT MET", Outcome::Fail));
    assert_eq!(words.len(), 3, "{closed:?}");
    assert!(closed[0].limit.starts_with("max 3"), "{closed:?}");
    assert!(closed[0].said.contains("in host, idle, ") && closed[0].said.contains("too much"), "{closed:?}");
    assert!(closed[1..].iter().all(|one| one.outcome == Outcome::Pass), "{closed:?}");
    let text = shown(&contents, 80);
    assert!(text.contains("\nNOT MET"), "{text}");
    assert!(text.contains("  NOT MET     max 3"), "{text}");
    assert!(text.contains("  met         jitter 10 ms: "), "{text}");
}

#[test]
fn a_jitter_is_the_largest_latency_less_the_smallest() {
    let jitter = |limit| {
        let contents = minute(Require { jitter: Some(limit), ..Require::default() });
        let row = &contents.rows[0].result;
        let all = row.all().unwrap();
        let own = all.max_ns.unwrap() - all.min_ns.unwrap();
        (own, closing(&contents)[0].outcome)
    };
    let (own, _) = jitter(Nanos::from_us(1));
    assert_eq!(jitter(Nanos(own)).1, Outcome::Pass);
    assert_eq!(jitter(Nanos(own - 1)).1, Outcome::Fail);
}

#[test]
fn without_a_limit_there_is_no_closing_list() {
    let mut contents = empty();
    contents.rows.push(whole_minute());
    contents.rows[0].result.require = None;
    assert_eq!(closing(&contents), []);
    let text = shown(&contents, 80);
    assert!(text.contains("NO LIMIT GIVEN: ") && text.contains("For scale: "), "{text}");
    assert!(text.contains("tactus run -i 1ms --max 100us"), "{text}");
}

#[test]
fn where_nothing_was_measured_the_whole_reason_is_told() {
    let mut contents = empty();
    let why = "host: SCHED_FIFO at priority 95 on CPU 1 was refused (Operation not permitted (os error 1)): \
               CAP_SYS_NICE is missing and RLIMIT_RTPRIO is 0; run as root";
    for name in ["host, idle", "host, loaded"] {
        contents.rows.push(unmeasured(planned(name, "host", "host", Vec::new()), RowEnd::Refused, why));
    }
    let text = shown(&contents, 80).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&format!("NO ANSWER: nothing was measured: \"{why}\". ")), "{text}");
}
