//! A fault that was asked for and made 0 times: the measurement looks like one without it.

use tactus_model::bundle::{Contents, InjectedIn, Row};
use tactus_model::document::Outcome;
use tactus_model::message::Injected;
use tactus_model::plan::Require;
use tactus_model::windows::Moments;
use tactus_model::{CpuSet, Evidence, Nanos};
use tactus_report::render::markdown;
use tactus_report::row::verdict;
use tactus_report::stats::claims;

use crate::common::{Shape, Span, compared, measured, planned};

/// A block that was made this many times.
fn block(times: Option<u64>) -> InjectedIn {
    let injected = Injected {
        activity: 1,
        kind: "block".into(),
        way: "BPF program".into(),
        cpus: CpuSet::one(1),
        length_ns: 4_000_000,
        every_ns: 1_000_000_000,
        times,
        longest_ns: times.filter(|times| *times > 0).map(|_| 4_001_000),
        at: Moments::default(),
    };
    InjectedIn { environment: "host".into(), outside: CpuSet::one(1), injected }
}

fn row(name: &str, seed: u64, max: u64, injected: Vec<InjectedIn>) -> Row {
    let mut result = planned(name, "host", "host", Vec::new());
    result.require = Some(Require { max: Some(Nanos(max)), cycles: Some(1_000), ..Require::default() });
    result.injected = injected;
    measured(result, Evidence::BareMetal, Shape::IDLE, Span::QUICK, seed)
}

fn run(max: u64, times: Option<u64>) -> Contents {
    compared(vec![row("a", 1, 1_000_000, Vec::new()), row("b", 2, max, vec![block(times)])])
}

const NEVER: &str = "`block` in host was never made (0 times)";

#[test]
fn what_is_kept_without_the_fault_that_was_asked_for_is_no_pass() {
    let never = verdict(&run(1_000_000, Some(0)).rows[1]).unwrap();
    assert_eq!(never.outcome, Outcome::Inconclusive, "{}", never.reason);
    assert!(never.reason.ends_with(&format!("{NEVER}: its effect is unknown")), "{}", never.reason);
    let broken = verdict(&run(1, Some(0)).rows[1]).unwrap();
    assert_eq!(broken.outcome, Outcome::Fail, "it is broken without it already: {}", broken.reason);
    for times in [Some(9), None] {
        let reason = verdict(&run(1_000_000, times).rows[1]).unwrap().reason;
        assert!(!reason.contains("never made"), "{reason}");
    }
}

#[test]
fn the_effect_of_a_fault_that_was_never_made_is_not_known() {
    let effect = |times| claims(&run(1_000_000, times)).remove(0).effect().cloned().map_err(str::to_owned);
    assert_eq!(effect(Some(0)).unwrap_err(), NEVER);
    assert!(effect(Some(9)).is_ok() && effect(None).is_ok());
}

#[test]
fn the_report_says_it_at_its_top_and_beside_the_fault() {
    let text = |times| markdown::render(&run(1_000_000, times)).replace('\\', "");
    let never = text(Some(0));
    let said = format!("A fault was requested but not made: {NEVER} (b).");
    assert!(never.contains(&said), "{never}");
    assert!(never.contains("0: never made"), "{never}");
    assert!(!text(Some(9)).contains("not made") && !text(None).contains("not made"));
}

#[test]
fn runs_that_take_turns_are_one_scenario_each_at_the_top() {
    let turn = |name: &str, run: u32| {
        let mut row = row(name, run.into(), 1_000_000, vec![block(Some(0))]);
        row.result.repeat = Some(run);
        row
    };
    let contents = compared(vec![turn("a", 1), turn("b", 1), turn("a", 2), turn("b", 2)]);
    let text = markdown::render(&contents).replace('\\', "");
    assert!(text.contains(&format!("{NEVER} (a), and so in one further scenario.")), "{text}");
}
