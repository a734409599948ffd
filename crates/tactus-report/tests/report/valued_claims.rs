//! The effects on values from one scenario to another: answers that are known beforehand.

use tactus_model::Evidence;
use tactus_model::bundle::Contents;
use tactus_model::outcome::{Better, Ending, RowEnd, Unit};
use tactus_model::plan::Compare;
use tactus_report::document;
use tactus_report::render::{html, markdown};
use tactus_statistics::Random;

use crate::common::{empty, item, planned, valued};

/// `rounds` rounds of `a` and `b`; `b` has slower system calls, less bandwidth and the same divisions. Runs
/// differ by 1 %.
fn measured(rounds: u32, worse: f64, claims: usize) -> Contents {
    let mut contents = empty();
    let mut random = Random::new(3);
    for round in 1..=rounds {
        for (name, worse) in [("a", 1.0), ("b", worse)] {
            let mut result = planned(name, "host", "host", Vec::new());
            result.repeat = (rounds > 1).then_some(round);
            let mut noise = |value: f64| value * (1.0 + 0.01 * random.normal());
            let items = [
                (item("system call", Unit::Ns, Better::Lower), noise(112.0 * worse)),
                (item("integer divide", Unit::Ns, Better::Lower), noise(2.7)),
                (item("AF_UNIX bandwidth", Unit::MegabytesPerSecond, Better::Higher), noise(5_210.0 / worse)),
            ];
            contents.rows.push(valued(result, Evidence::BareMetal, &items));
        }
    }
    let claim = Compare { name: "b".into(), base: "a".into(), with: "b".into(), claim: None };
    contents.plan.compare = vec![claim; claims];
    contents
}

#[test]
fn values_that_are_worse_in_every_round_are_an_effect_and_those_that_are_alike_are_none() {
    let contents = measured(8, 1.5, 1);
    let claim = document(&contents).claims.remove(0);
    assert_eq!(
        (claim.answer.as_str(), claim.pairs),
        ("an effect on `system call` and `AF_UNIX bandwidth`", Some(8))
    );
    assert!(claim.effects.is_empty());
    for entry in &claim.values {
        let (low, high) = entry.degradation.low.zip(entry.degradation.high).unwrap();
        let worse = if entry.item == "integer divide" { 0.0 } else { 0.5 };
        assert!(low < worse && worse < high && high - low < 0.1, "{entry:?}");
    }
    let text = markdown::render(&contents);
    assert!(
        text.contains("112 ns and 168 ns, worse by 50.") && text.contains("no difference is shown"),
        "{text}"
    );
    let page = html::render(&contents).unwrap();
    assert!(page.contains("8 rounds in randomised order"), "{page}");
}

#[test]
fn of_too_few_rounds_the_answer_is_how_many_it_takes() {
    for (rounds, claims, answer) in [
        (1, 1, "cannot compare: 6 rounds are needed, there is 1"),
        (3, 1, "cannot compare: 6 rounds are needed, there are 3"),
        (3, 2, "cannot compare: 7 rounds are needed, there are 3"),
        (6, 2, "cannot compare: 7 rounds are needed, there are 6"),
    ] {
        let contents = measured(rounds, 1.5, claims);
        for claim in document(&contents).claims {
            assert_eq!(claim.answer, answer);
            assert!(claim.values.iter().all(|entry| !entry.degradation.seen));
        }
        assert!(markdown::render(&contents).contains("worse by 5"), "what was measured is told all the same");
    }
}

#[test]
fn rounds_that_broke_off_do_not_count() {
    let mut contents = measured(8, 1.5, 1);
    for row in contents.rows.iter_mut().take(5) {
        row.result.end(Ending::because(RowEnd::Interrupted, "interrupted after 1 s"));
    }
    assert_eq!(document(&contents).claims[0].answer, "cannot compare: 6 rounds are needed, there are 5");
}

#[test]
fn a_thing_against_itself_is_called_an_effect_in_one_of_twenty_at_most() {
    let wrong = (0..60).filter(|seed| {
        let mut contents = measured(6, 1.0, 1);
        let mut random = Random::new(50 + seed);
        for row in &mut contents.rows {
            let tactus_model::outcome::Outcome::Values(values) = &mut row.result.outcome else { continue };
            values.iter_mut().for_each(|value| value.value *= 1.0 + 0.02 * random.normal());
        }
        document(&contents).claims[0].answer != "no effect shown"
    });
    // 5 % of 60 are 3; 10 is four standard deviations more.
    assert!(wrong.count() <= 10);
}

#[test]
fn a_scenario_without_values_or_with_latencies_is_said_to_be_so() {
    let answer = |contents: &Contents| document(contents).claims.remove(0).answer;
    let mut contents = measured(1, 1.5, 1);
    contents.rows[1].result.end(Ending::because(RowEnd::Failed, "the probe could not be started"));
    contents.rows[1].result.outcome = tactus_model::outcome::Outcome::Values(Vec::new());
    assert_eq!(answer(&contents), "cannot compare: `b` has no values: the probe could not be started");
    contents.rows[1].result.outcome = tactus_model::outcome::Outcome::default();
    assert_eq!(answer(&contents), "cannot compare: `b` has no values: the probe could not be started");
    contents.rows.remove(1);
    assert_eq!(answer(&contents), "cannot compare: `b` is not in this bundle");
    let mut contents = measured(1, 1.5, 1);
    contents.rows[1].result.outcome = tactus_model::outcome::Outcome::Values(Vec::new());
    assert_eq!(answer(&contents), "cannot compare: `b` has no values: nothing was measured");
}
