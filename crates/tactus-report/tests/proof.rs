//! What settings are worth, from pairs of rows.

#[expect(dead_code, reason = "the fixtures serve other tests too")]
mod common;

use common::{Shape, Span, measured, planned, unmeasured};
use tactus_model::Evidence;
use tactus_model::bundle::Contents;
use tactus_model::outcome::{Outcome, RowEnd};
use tactus_model::plan::Proof;
use tactus_report::document;
use tactus_report::render::{html, markdown, text};
use tactus_report::section::proofs::{Answer, caution, proofs};

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
    assert!(none.iter().all(|worth| worth.words().starts_with("no effect larger than")), "{none:?}");
    assert!(some[0].words().starts_with("lower by"), "{some:?}");
    assert!(matches!(&proofs[2].answer, Answer::None(reason) if reason.contains("no such setting")));
    assert_eq!(caution(&proofs), None);
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
    assert_eq!(reason, "6 of 10 pairs were measured, too few to judge: the guest broke");
}

#[test]
fn names_of_no_row_are_no_pair() {
    let mut contents = contents();
    contents.rows.clear();
    assert!(proofs(&contents).iter().all(|proven| matches!(proven.answer, Answer::None(_))));
}

#[test]
fn many_tests_carry_a_caution() {
    let mut contents = contents();
    let proof = contents.plan.proof[0].clone();
    contents.plan.proof.extend(std::iter::repeat_n(proof, 38));
    assert!(caution(&proofs(&contents)).unwrap().contains("about 2 would still seem to have one"));
}

#[test]
fn every_format_shows_the_answers() {
    let contents = contents();
    insta::assert_snapshot!(
        text::render(&contents, text::Style::default()).split("control:").next().unwrap()
    );
    for page in [markdown::render(&contents), html::render(&contents).unwrap()] {
        assert!(page.contains("lower by") && page.contains("no such setting"), "{page}");
    }
    let document = document(&contents);
    assert_eq!(document.proofs.len(), 3);
    assert!(document.proofs[1].effects[0].shown && document.proofs[1].effects[0].high_ns < 0.0);
}

#[test]
fn the_json_of_proofs() {
    insta::assert_snapshot!(common::sections(&document(&contents())));
}
