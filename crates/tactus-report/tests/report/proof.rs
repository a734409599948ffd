//! What settings are worth, from pairs of rows.

use tactus_model::Evidence;
use tactus_model::bundle::Contents;
use tactus_model::outcome::{Ending, Outcome, RowEnd};
use tactus_model::plan::Proof;
use tactus_report::document;
use tactus_report::render::{html, markdown, text};
use tactus_report::section::proofs::words;
use tactus_report::stats::{Answer, proofs};

use crate::common::{self, Shape, Span, measured, planned, unmeasured};

const SPAN: Span = Span { ticks: 4, samples: 1_000, per_interval: 1, series: 1 };

/// Ten pairs of one setting; `with` draws the latencies of those with it.
fn tested(contents: &mut Contents, setting: &str, with: Shape) {
    let names = |word: &str| (1..=10).map(|n| format!("{setting} {word}, {n}")).collect::<Vec<_>>();
    let proof = Proof {
        setting: setting.into(),
        environment: "host".into(),
        what: format!("/sys/{setting}: never against always"),
        with: names("with"),
        without: names("without"),
        reason: None,
    };
    for (seed, (on, off)) in (1..).zip(proof.with.iter().zip(&proof.without)) {
        for (name, shape, seed) in [(on, with, seed), (off, Shape::IDLE, 100 + seed)] {
            let row = planned(name, "host", "host", Vec::new());
            contents.rows.push(measured(row, Evidence::BareMetal, shape, SPAN, seed));
        }
    }
    contents.plan.proof.push(proof);
}

fn contents() -> Contents {
    let mut contents = common::empty();
    tested(&mut contents, "thp", Shape::IDLE);
    tested(&mut contents, "smt", Shape { base: 1_400.0, ..Shape::IDLE });
    contents.plan.proof.push(Proof {
        setting: "ksm".into(),
        environment: "host".into(),
        reason: Some("this kernel has no such setting".into()),
        ..Proof::default()
    });
    contents
}

#[test]
fn an_effect_is_shown_where_there_is_one_and_bounded_where_there_is_none() {
    let proofs = proofs(&contents());
    let Answer::Effects(none) = &proofs[0].answer else { panic!("{:?}", proofs[0].answer) };
    let Answer::Effects(some) = &proofs[1].answer else { panic!("{:?}", proofs[1].answer) };
    assert_eq!(proofs[0].pairs, (10, 10));
    assert!(none.iter().all(|change| words(change).starts_with("no effect larger than")), "{none:?}");
    assert!(words(&some[0]).starts_with("lower by"), "{some:?}");
    assert!(matches!(&proofs[2].answer, Answer::None(reason) if reason.contains("no such setting")));
}

#[test]
fn pairs_that_were_not_measured_whole_do_not_count_and_the_reason_is_told() {
    let mut contents = contents();
    for row in &mut contents.rows[..8] {
        let result = row.result.clone();
        *row = unmeasured(result, RowEnd::Failed, "the guest broke");
        row.result.outcome = Outcome::default();
    }
    let proofs = proofs(&contents);
    assert_eq!(proofs[0].pairs, (6, 10));
    let Answer::None(reason) = &proofs[0].answer else { panic!("{:?}", proofs[0].answer) };
    assert_eq!(
        reason,
        "6 of 10 pairs were measured whole, too few to judge among all that is tested here: 8 are needed: the guest broke"
    );
}

#[test]
fn names_of_no_row_are_no_pair() {
    let mut contents = contents();
    contents.rows.clear();
    assert!(proofs(&contents).iter().all(|proven| matches!(proven.answer, Answer::None(_))));
}

#[test]
fn ten_pairs_are_enough_for_one_setting_and_not_for_forty() {
    let mut contents = contents();
    let proof = contents.plan.proof[0].clone();
    contents.plan.proof.extend(std::iter::repeat_n(proof, 38));
    let Answer::None(reason) = &proofs(&contents)[1].answer else { panic!("each is judged among all") };
    assert!(reason.starts_with("10 of 10 pairs") && reason.contains("13 are needed"), "{reason}");
}

#[test]
fn a_half_that_was_interrupted_is_no_half() {
    let mut contents = contents();
    for row in &mut contents.rows[..6] {
        row.result.end(Ending::because(RowEnd::Interrupted, "interrupted after 3 s"));
    }
    let proofs = proofs(&contents);
    assert_eq!(proofs[0].pairs, (7, 10));
    let Answer::None(reason) = &proofs[0].answer else { panic!("{:?}", proofs[0].answer) };
    assert!(reason.ends_with("8 are needed: interrupted after 3 s"), "{reason}");
}

#[test]
fn a_setting_is_not_judged_where_a_control_was_not_seen() {
    let mut contents = contents();
    contents.rows[5].result.control[0].passed = false;
    let Answer::None(reason) = &proofs(&contents)[0].answer else { panic!() };
    assert!(reason.contains("self-test not passed"), "{reason}");
}

#[test]
fn a_setting_that_acts_on_into_the_next_half_is_told_by_the_order() {
    let mut contents = common::empty();
    tested(&mut contents, "thp", Shape::IDLE);
    assert_eq!(proofs(&contents)[0].caution, None);
    // In every second pair the half without comes first; whichever comes second is slow.
    for pair in 0..10 {
        let (first, second) = (2 * pair, 2 * pair + 1);
        if pair % 2 == 1 {
            contents.rows.swap(first, second);
        }
        let slow = Shape { base: 3_000.0, ..Shape::IDLE };
        for (row, shape) in [(first, Shape::IDLE), (second, slow)] {
            let again = planned(&contents.rows[row].result.name, "host", "host", Vec::new());
            contents.rows[row] = measured(again, Evidence::BareMetal, shape, SPAN, 300 + row as u64);
        }
    }
    let caution = proofs(&contents)[0].caution.clone().unwrap();
    assert!(caution.contains("depends on which half of a pair came first"), "{caution}");
}

#[test]
fn stalls_count_with_the_periods_that_they_swallowed() {
    let mut contents = common::empty();
    tested(&mut contents, "thp", Shape::IDLE);
    // With the setting one wake-up in 2000 is 10 ms late: 49 periods of 200 us more.
    for (seed, row) in (700..).zip(contents.rows.iter_mut().step_by(2)) {
        let stalls = Shape { late: 0.0005, lateness: 10_000_000.0, ..Shape::IDLE };
        let again = planned(&row.result.name, "host", "host", Vec::new());
        *row = measured(again, Evidence::BareMetal, stalls, SPAN, seed);
    }
    let proofs = proofs(&contents);
    let Answer::Effects(changes) = &proofs[0].answer else { panic!() };
    assert!(proofs[0].corrected && changes[1].with_ns > 1e6, "{changes:?}");
}

#[test]
fn every_format_shows_the_answers() {
    let contents = contents();
    insta::assert_snapshot!(
        text::render(&contents, text::Style::default()).split("self-test:").next().unwrap()
    );
    for page in [markdown::render(&contents), html::render(&contents).unwrap()] {
        assert!(page.contains("lower by") && page.contains("no such setting"), "{page}");
    }
    let document = document(&contents);
    assert_eq!(document.proofs.len(), 3);
    assert!(
        document.proofs[1].effects[0].shown
            && document.proofs[1].effects[0].high_ns.is_some_and(|high| high < 0.0)
    );
}

#[test]
fn the_json_of_proofs() {
    insta::assert_snapshot!(common::sections(&document(&contents())));
}
