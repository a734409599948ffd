//! The benefit of settings, from pairs of rows.

use tactus_model::Evidence;
use tactus_model::bundle::Contents;
use tactus_model::event::RunStatus;
use tactus_model::message::Stage;
use tactus_model::outcome::{Ending, Outcome, RowEnd};
use tactus_model::plan::Proof;
use tactus_report::answer::{answer, question};
use tactus_report::document;
use tactus_report::render::{html, markdown, text};
use tactus_report::stats::proofs;

use crate::common::{self, Shape, Span, measured, planned, unmeasured};

const SPAN: Span = Span { ticks: 4, samples: 1_000, per_interval: 1, series: 1 };

/// Ten pairs of one setting; `with` draws the latencies of those with it.
fn tested(contents: &mut Contents, setting: &str, with: Shape) {
    tested_in(contents, setting, with, 10);
}

fn tested_in(contents: &mut Contents, setting: &str, with: Shape, pairs: u32) {
    let names = |word: &str| (1..=pairs).map(|n| format!("{setting} {word}, {n}")).collect::<Vec<_>>();
    let proof = Proof {
        setting: setting.into(),
        environment: "host".into(),
        what: format!("/sys/{setting}: compares never (tuned) with always (now)"),
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

/// One setting in ten pairs, whose halves are no different.
fn one() -> Contents {
    let mut contents = common::empty();
    tested(&mut contents, "thp", Shape::IDLE);
    contents
}

/// The rows with the setting, or those without it.
fn halves(contents: &mut Contents, with: bool) -> impl Iterator<Item = &mut tactus_model::bundle::Row> {
    contents.rows.iter_mut().skip(usize::from(!with)).step_by(2)
}

/// The terminal's text of a bundle; the page and the JSON must say the same.
fn said(contents: &Contents) -> String {
    let told = text::worth(contents, text::Style { width: 1000, ..text::Style::default() });
    let first = told.lines().next().unwrap().to_owned();
    let said = document(contents).answer.unwrap();
    assert_eq!(first, format!("{}: {}", said.word, said.sentence));
    let page = html::render(contents).unwrap();
    assert!(page.contains(question(contents)) && !page.contains("meet the deadline"), "{page}");
    assert!(page.contains(&format!(">{}<", said.word)), "{page}");
    told
}

#[test]
fn an_effect_is_shown_if_there_is_one_and_bounded_otherwise() {
    let proofs = proofs(&contents());
    assert_eq!((proofs[0].whole, proofs[0].planned), (10, 10));
    let mut none = proofs[0].effects.iter();
    assert!(none.all(|change| change.words().starts_with("no effect larger than")), "{:?}", proofs[0]);
    assert!(proofs[1].effects[0].words().starts_with("lower by"), "{:?}", proofs[1]);
    assert!(proofs[2].reason.as_ref().is_some_and(|reason| reason.contains("no such setting")));
}

#[test]
fn pairs_that_broke_count_as_worse_and_are_named() {
    let mut contents = one();
    for row in halves(&mut contents, true).take(8) {
        *row = unmeasured(row.result.clone(), RowEnd::Failed, "the guest broke");
        row.result.outcome = Outcome::default();
    }
    let proven = &proofs(&contents)[0];
    assert_eq!((proven.whole, proven.broken, proven.planned), (2, 8, 10));
    assert!(proven.is_tested() && proven.effects[2].is_shown(), "{proven:?}");
    assert_eq!(proven.effects[2].words(), "higher by an unknown amount: too many runs failed");
    assert_eq!(
        proven.cautions,
        ["in 8 of 10 pairs a measurement broke and counts as worse than every latency: 8 with it: `thp \
             with, 1` and 7 more: the guest broke"]
    );
    assert!(
        said(&contents).starts_with("EFFECT SHOWN: the one setting that was tested does not lower latency")
    );
    // An unknown number is left out.
    let effect = &document(&contents).proofs[0].effects[2];
    assert!(effect.effect_ns.is_none() && effect.high_ns.is_none() && effect.with_ns.is_some());
}

#[test]
fn what_broke_with_it_as_often_as_without_it_shows_nothing() {
    let mut contents = one();
    for row in &mut contents.rows[..8] {
        *row = unmeasured(row.result.clone(), RowEnd::Failed, "the guest broke");
        row.result.outcome = Outcome::default();
    }
    let proven = &proofs(&contents)[0];
    assert_eq!((proven.whole, proven.broken), (6, 4));
    assert!(proven.is_tested() && proven.effects.iter().all(|change| !change.is_shown()), "{proven:?}");
}

#[test]
fn names_of_no_row_are_no_pair() {
    let mut contents = contents();
    contents.rows.clear();
    assert!(proofs(&contents).iter().all(|proven| !proven.is_tested()));
    assert!(said(&contents).starts_with("NOT TESTED: none of 3 settings was tested"));
}

#[test]
fn ten_pairs_are_enough_for_one_setting_and_not_for_forty() {
    let mut contents = contents();
    let proof = contents.plan.proof[0].clone();
    contents.plan.proof.extend(std::iter::repeat_n(proof, 38));
    let proven = &proofs(&contents)[1];
    let reason = proven.reason.as_ref().expect("each is judged among all");
    assert!(reason.starts_with("10 of 10 pairs") && reason.contains("13 are needed"), "{reason}");
    assert!(proven.effects[0].with_ns > 0.0, "what was measured is still there");
}

#[test]
fn a_prove_that_was_interrupted_is_judged_as_far_as_it_came() {
    let interrupted = |whole: usize| {
        let mut contents = one();
        contents.manifest.status = RunStatus::Interrupted;
        contents.rows[2 * whole].result.end(Ending::because(RowEnd::Interrupted, "interrupted after 3 s"));
        for row in &mut contents.rows[2 * whole + 1..] {
            let reason = "the run was interrupted before its turn";
            *row = unmeasured(row.result.clone(), RowEnd::Waiting, reason);
        }
        contents
    };
    // Nine pairs are enough for one setting.
    let proven = &proofs(&interrupted(9))[0];
    assert_eq!((proven.whole, proven.planned, proven.is_tested()), (9, 10, true));
    assert_eq!(
        proven.cautions,
        [
            "1 of 10 pairs does not count: `thp with, 10`: interrupted after 3 s",
            "no self-test was made after pair 9: the last pair was not measured completely"
        ]
    );
    let told = said(&interrupted(9));
    assert!(told.contains("interrupted: ") && told.contains("9 of 10 pairs"), "{told}");
    // Three do not suffice: that is said, beside their values.
    let contents = interrupted(3);
    let proven = &proofs(&contents)[0];
    assert_eq!(
        proven.reason.as_deref(),
        Some("3 of 10 pairs can be judged, too few for all that is tested here: 7 are needed")
    );
    let told = said(&contents);
    assert!(told.starts_with("NOT TESTED: thp: 3 of 10 pairs"), "{told}");
    assert!(told.contains(" us without, ") && !told.contains(" 0 us"), "{told}");
    assert!(told.contains("`thp with, 5` and 5 more: the run was interrupted before its turn"), "{told}");
    // None at all: there is no figure.
    let told = said(&interrupted(0));
    assert!(
        told.contains("none of 10 pairs was measured completely") && !told.contains(" us without"),
        "{told}"
    );
}

#[test]
fn fewer_pairs_than_can_show_an_effect_are_not_tested() {
    let mut contents = common::empty();
    tested_in(&mut contents, "thp", Shape::IDLE, 2);
    let told = said(&contents);
    assert!(told.starts_with("NOT TESTED: thp: 2 of 2 pairs can be judged, too few"), "{told}");
    for row in &mut contents.rows {
        *row = unmeasured(row.result.clone(), RowEnd::Failed, "the probe died");
    }
    let told = said(&contents);
    assert!(told.starts_with("NOT TESTED: thp: none of 2 pairs was measured completely"), "{told}");
    assert!(told.contains("the probe died") && !told.contains(" us without"), "{told}");
}

#[test]
fn a_fine_self_test_that_is_too_noisy_to_tell_ends_nothing() {
    let mut contents = one();
    for row in &mut contents.rows[..2] {
        let coarse = row.result.control[0].clone();
        let fine = tactus_model::message::Control {
            stage: Stage::Fine,
            injected_ns: 50_000,
            seen_ns: 180_000,
            noise_ns: 150_000,
            passed: false,
            ..coarse
        };
        assert!(!fine.is_seen() && !fine.is_resolvable());
        row.result.control.push(fine);
    }
    let proven = &proofs(&contents)[0];
    assert!(proven.is_tested() && proven.cautions.is_empty(), "{proven:?}");
    assert_eq!((proven.whole, proven.planned), (10, 10));
    assert!(
        document(&contents).scenarios.iter().all(|row| row.self_test.as_ref().is_none_or(|own| own.passed))
    );
}

#[test]
fn a_self_test_that_was_not_passed_ends_its_pair_and_is_named_with_its_reason() {
    let mut contents = contents();
    let control = &mut contents.rows[5].result.control[0];
    (control.passed, control.seen_ns) = (false, 2_000);
    let proven = &proofs(&contents)[0];
    assert_eq!((proven.whole, proven.is_tested()), (9, true));
    assert_eq!(
        proven.cautions,
        [
            "1 of 10 pairs does not count: `thp without, 3`: self-test not passed: not at its size on 1 of 1 threads"
        ]
    );
}

#[test]
fn a_setting_is_not_judged_whose_first_or_last_pair_did_not_see_the_self_test() {
    for pair in [0, 9] {
        let mut contents = one();
        for row in &mut contents.rows[2 * pair..2 * pair + 2] {
            let control = &mut row.result.control[0];
            (control.passed, control.seen_ns) = (false, 2_000);
        }
        let reason = proofs(&contents)[0].reason.clone().unwrap();
        assert!(reason.starts_with("self-test not passed in `thp with"), "{reason}");
        // A passed self-test in one half is enough: the instrument worked in between.
        let control = &mut contents.rows[2 * pair].result.control[0];
        (control.passed, control.seen_ns) = (true, 1_001_000);
        assert_eq!((proofs(&contents)[0].whole, proofs(&contents)[0].is_tested()), (9, true));
    }
    let mut contents = one();
    contents.rows.iter_mut().for_each(|row| row.result.control.clear());
    assert_eq!(proofs(&contents)[0].reason.as_deref(), Some("no self-test was made in any of its pairs"));
}

#[test]
fn nothing_is_kept_that_makes_any_quantity_worse() {
    // The usual latency is a little lower; once in 1000 wake-ups it is late by half a millisecond.
    let mixed = Shape { base: 1_100.0, late: 0.001, lateness: 500_000.0, ..Shape::IDLE };
    let mut contents = common::empty();
    tested(&mut contents, "thp", mixed);
    let own = answer(&contents);
    let effects = &proofs(&contents)[0].effects;
    assert!(effects[0].is_shown() && effects[2].is_shown(), "{effects:?}");
    assert!(own.next.is_none(), "{own:?}");
    assert!(
        own.sentence
            .starts_with("the one setting that was tested lowers one quantity and raises another; thp has a"),
        "{own:?}"
    );
    assert!(said(&contents).contains(" that is higher by "), "{own:?}");
    // Beside one that helps it is still named.
    tested(&mut contents, "smt", Shape { base: 1_400.0, ..Shape::IDLE });
    let own = answer(&contents);
    assert!(own.sentence.contains("1 of 2 settings lowers latency: smt has a"), "{own:?}");
    assert!(own.sentence.contains("; thp has a ") && own.sentence.contains(" that is higher by "), "{own:?}");
    assert!(own.next.is_some_and(|next| next.title.starts_with("Keep smt")), "thp is not kept");
}

#[test]
fn runs_of_a_plan_that_repeats_its_pairs_all_count() {
    let mut contents = one();
    for (n, row) in (0..).zip(&mut contents.rows) {
        row.result.repeat = Some(1 + n / 2);
        row.result.name = if n % 2 == 0 { "thp with".into() } else { "thp without".into() };
    }
    let proof = &mut contents.plan.proof[0];
    (proof.with, proof.without) = (vec!["thp with".into()], vec!["thp without".into()]);
    let proven = &proofs(&contents)[0];
    assert_eq!((proven.whole, proven.planned, proven.is_tested()), (10, 10, true));
}

#[test]
fn a_setting_that_acts_on_into_the_next_half_is_told_by_the_order() {
    let mut contents = common::empty();
    tested(&mut contents, "thp", Shape::IDLE);
    assert_eq!(proofs(&contents)[0].cautions, [""; 0]);
    // In every second pair the half without comes first; the later half is always slow.
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
    let cautions = &proofs(&contents)[0].cautions;
    assert!(cautions[0].contains("depends on which half of a pair came first"), "{cautions:?}");
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
    let changes = &proofs[0].effects;
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

#[test]
fn halves_of_a_damaged_bundle_show_no_effect_and_the_answer_names_the_damage() {
    let mut contents = common::empty();
    tested(&mut contents, "smt", Shape { base: 1_400.0, ..Shape::IDLE });
    assert_eq!(answer(&contents).word, "EFFECT SHOWN");
    contents.damage.push("scenarios/01-x/result.json is not as the run wrote it".into());
    contents.rows.iter_mut().for_each(|row| row.result.damaged = true);
    let answer = answer(&contents);
    assert_eq!((answer.word, answer.next), ("NOT TESTED", None));
    assert!(answer.sentence.contains("The bundle is damaged"), "{}", answer.sentence);
}
