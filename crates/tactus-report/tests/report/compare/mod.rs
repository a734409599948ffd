//! Bundles compared with each other: verdicts, refusals, and the words of every format.

use serde_json::json;
use tactus_model::Evidence;
use tactus_model::buckets::{BUCKETS, Counts, Packed};
use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::catalogue::{Item, Measure, measure::Os};
use tactus_model::document::{CompareDocument, ComparedEntry, Judgement};
use tactus_model::facts::Facts;
use tactus_model::outcome::{Better, Ending, LatencyOutcome, Outcome, Repeats, RowEnd, Unit, ValueResult};
use tactus_model::plan::Scenario;
use tactus_model::scheduling::Policy;
use tactus_model::{Nanos, series::Thread};
use tactus_report::compare::{
    Alike, Condition, Expected, FORMATS, Margins, Options, against_itself, compare, expected, is_fit,
};

use crate::common::{self, Shape, Span, measured, planned, sittings};
use crate::document::fits;

const SPAN: Span = Span { ticks: 2, samples: 25_000, per_interval: 1, series: 1 };

/// A bundle of `runs` runs of one scenario, `slower` times as slow as others; runs differ by about 2 %.
fn bundle(runs: u32, slower: f64, seed: u64) -> Contents {
    let mut contents = common::empty();
    contents.manifest.plan = "gate".into();
    contents.plan.scenario = vec![Scenario {
        name: Some("idle".into()),
        tick: Some(Nanos::from_ms(1_000)),
        ..Scenario::default()
    }];
    for run in 1..=runs {
        let own = 1.0 + 0.02 * (f64::from((run * 7 + u32::try_from(seed).unwrap() * 3) % 5) - 2.0) / 2.0;
        let shape =
            Shape { base: 40_000.0 * slower * own, spread: 9_000.0 * slower * own, late: 0.0, lateness: 0.0 };
        let mut result = planned("idle", "host", "host", Vec::new());
        result.repeat = (runs > 1).then_some(run);
        contents.rows.push(measured(result, Evidence::BareMetal, shape, SPAN, seed * 100 + u64::from(run)));
    }
    let mut facts = Facts::default();
    facts.keep("uname:release", "6.12.1");
    facts.keep("/proc/cmdline", "quiet");
    contents.facts.insert("host".into(), facts);
    contents
}

fn held_with(base: Vec<Contents>, now: Vec<Contents>, options: Options) -> (CompareDocument, [Condition; 2]) {
    let both = [Condition::new("base", base), Condition::new("new", now)];
    (compare(&both, &options), both)
}

/// Compares the runs of two bundles as if each run were a sitting.
#[expect(clippy::needless_pass_by_value, reason = "most are made for it")]
fn held(base: Contents, now: Contents) -> CompareDocument {
    held_with(sittings(&base), sittings(&now), Options::default()).0
}

fn written(format: &str, of: &(CompareDocument, [Condition; 2])) -> String {
    let format = FORMATS.iter().find(|own| own.name == format).unwrap();
    String::from_utf8((format.render)(&of.0, &of.1).unwrap()).unwrap()
}

/// The page of a comparison.
pub fn page() -> String {
    written("html", &slower_kernel())
}

fn slower_kernel() -> (CompareDocument, [Condition; 2]) {
    let mut now = bundle(8, 1.4, 2);
    now.facts.get_mut("host").unwrap().keep("uname:release", "6.18.0");
    now.facts.get_mut("host").unwrap().keep("/proc/cmdline", "quiet mitigations=off");
    held_with(sittings(&bundle(8, 1.0, 1)), sittings(&now), Options { explore: true, ..Options::default() })
}

#[test]
fn a_slower_kernel_is_a_regression_and_what_changed_stands_beside_it() {
    let found = slower_kernel();
    assert_eq!(found.0.outcome, Judgement::Regression, "{}", found.0.reason);
    let p99 = &found.0.scenarios[0].quantities[1];
    assert!(p99.low.unwrap() > p99.limit && p99.p_adjusted.unwrap() <= 0.05, "{p99:?}");
    let changes: Vec<&str> = found.0.changes.iter().map(|change| change.what.as_str()).collect();
    assert_eq!(changes, ["kernel", "command line"]);
    insta::assert_snapshot!(written("text", &found));
}

#[test]
fn whatever_may_be_why_is_named_by_what_it_is() {
    let other = || {
        let mut other = bundle(8, 1.0, 2);
        other.manifest.tactus = "0.2.0".into();
        other.manifest.machine.processor = "another one".into();
        let facts = other.facts.get_mut("host").unwrap();
        facts.keep("uname:release", "6.18.0");
        facts.keep("/proc/cmdline", "quiet mitigations=off");
        facts.keep("/proc/cpuinfo", "processor\t: 0\nmicrocode\t: 0x2f\n");
        facts.keep("/etc/tuned/active_profile", "realtime");
        let mut audit = common::audits::audit();
        audit.findings.retain(|finding| finding.id != "smt");
        other.audits.insert("host".into(), audit);
        other
    };
    let mut base = bundle(8, 1.0, 1);
    base.facts.get_mut("host").unwrap().keep("/proc/cpuinfo", "processor\t: 0\nmicrocode\t: 0x2e\n");
    base.audits.insert("host".into(), common::audits::audit());
    let changes = held(base, other()).changes;
    let named: Vec<&str> = changes.iter().map(|change| change.what.as_str()).collect();
    assert_eq!(named, ["processor", "tactus", "kernel", "command line", "microcode", "profile", "findings"]);
    let of = |what: &str| changes.iter().find(|change| change.what == what).unwrap();
    assert!(of("microcode").base == ["0x2e"] && of("microcode").now == ["0x2f"], "{changes:#?}");
    assert!(of("profile").base.is_empty() && of("profile").now == ["realtime"], "{changes:#?}");
    assert!(of("findings").base == ["smt"] && of("findings").now.is_empty(), "{changes:#?}");
    assert!(held(other(), other()).changes.is_empty());
}

/// Two kernels in emulated guests: they say nothing about hardware, and a slower one is found only on
/// request.
#[test]
fn what_was_emulated_is_judged_only_where_that_is_asked_for_and_is_marked() {
    let emulated = |slower, seed| {
        let mut contents = bundle(8, slower, seed);
        contents.rows.iter_mut().for_each(|row| row.result.evidence = Some(Evidence::Emulated));
        contents
    };
    let told = |judges, slower| {
        let conditions = [("base", 1.0, 1), ("new", slower, 2)].map(|(name, slower, seed)| {
            Condition::new(name, sittings(&emulated(slower, seed))).with_emulated(judges)
        });
        (compare(&conditions, &Options::default()), conditions)
    };
    let refused = told(false, 1.4).0;
    assert_eq!(refused.outcome, Judgement::Inconclusive);
    assert!(refused.reason.contains("--judge-emulated"), "{}", refused.reason);
    for (slower, outcome) in [(1.4, Judgement::Regression), (1.0, Judgement::Pass)] {
        let found = told(true, slower);
        assert_eq!(found.0.outcome, outcome, "{}", found.0.reason);
        assert!(found.0.reason.ends_with("(under emulation)"), "{}", found.0.reason);
        for format in ["text", "markdown", "html"] {
            let said = written(format, &found).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(said.contains("under emulation") && said.contains("says nothing about"), "{format}");
        }
    }
    // A measurement on the machine itself is not marked.
    assert!(!held(bundle(8, 1.0, 1), bundle(8, 1.0, 2)).reason.contains("emulation"));
}

#[test]
fn each_condition_is_compared_with_the_first_one() {
    let conditions = [("base", 1.0, 1), ("same", 1.0, 2), ("slower", 1.4, 3)]
        .map(|(name, slower, seed)| Condition::new(name, sittings(&bundle(8, slower, seed))));
    let document = compare(&conditions, &Options::default());
    let with: Vec<&str> = document.scenarios.iter().map(|one| one.with.as_str()).collect();
    assert_eq!(with, ["same", "slower"]);
    let regresses =
        |one: &ComparedEntry| one.quantities.iter().any(|of| of.outcome == Some(Judgement::Regression));
    assert_eq!(document.scenarios.iter().map(regresses).collect::<Vec<_>>(), [false, true]);
    assert_eq!((document.outcome, document.gated), (Judgement::Regression, 8));
}

#[test]
fn every_format_says_it() {
    let found = slower_kernel();
    insta::assert_snapshot!("markdown", written("markdown", &found));
    insta::assert_snapshot!("junit", written("junit", &found));
    let page = written("markdown", &found);
    let heading = page.lines().find_map(|line| line.strip_prefix("## ")).unwrap();
    let named = format!("<testsuites name=\"{heading}\"");
    assert!(written("junit", &found).contains(&named), "{named}: one direction in every format");
    insta::assert_snapshot!("github", written("github", &found));
    let page = written("html", &found);
    for said in ["new against base", "regression", "times worse", "mitigations=off", "99.9 %", "<svg"] {
        assert!(page.contains(said), "{said}");
    }
    assert!(!page.contains("src=\"http") && !page.contains("href=\"http"), "it needs no network");
    let plots =
        page.split("class=\"plot-data\">").skip(1).map(|data| data.split("</script>").next().unwrap());
    let overlaid = plots.map(|data| serde_json::from_str::<serde_json::Value>(data).unwrap()).any(|plot| {
        let names: Vec<&serde_json::Value> =
            plot["series"].as_array().unwrap().iter().map(|line| &line["name"]).collect();
        let places = plot["at"].as_array().unwrap();
        let thousandth = places.iter().any(|at| at.as_f64() == Some(1_000.0));
        names == ["base", "new"] && plot["x"]["kind"] == "percentile" && thousandth
    });
    assert!(overlaid, "the percentiles of both lie over each other, 99.9 % among them");
}

#[test]
fn the_same_again_passes_and_is_certain_of_it() {
    let document = held(bundle(8, 1.0, 1), bundle(8, 1.0, 2));
    assert_eq!(document.outcome, Judgement::Pass, "{}", document.reason);
    assert_eq!(document.gated, 4);
    assert!(document.scenarios[0].quantities.iter().all(|of| of.high.unwrap() < of.limit));
    assert!(document.changes.is_empty() && document.baseline.is_none() && document.explored.is_empty());
    assert!(document.limits[0].contains("not measured in turn"));
}

#[test]
fn what_is_faster_is_better_and_passes() {
    let document = held(bundle(8, 1.0, 1), bundle(8, 0.6, 2));
    assert_eq!(document.outcome, Judgement::Pass);
    assert!(document.scenarios[0].quantities[1].improved, "{:?}", document.scenarios[0].quantities[1]);
}

#[test]
fn one_run_each_stands_side_by_side_and_nothing_follows() {
    let document = held(bundle(1, 1.0, 1), bundle(1, 3.0, 2));
    assert_eq!(document.outcome, Judgement::Inconclusive);
    assert!(document.reason.contains("run-to-run variation unknown"), "{}", document.reason);
    let p50 = &document.scenarios[0].quantities[0];
    assert!(p50.ratio.unwrap() > 2.0 && p50.outcome.is_none() && p50.p.is_none(), "{p50:?}");
}

#[test]
fn what_lies_near_the_margin_says_how_many_runs_would_decide() {
    let document = held(bundle(5, 1.0, 1), bundle(5, 1.09, 2));
    let open: Vec<_> = document.scenarios[0]
        .quantities
        .iter()
        .filter(|of| of.outcome == Some(Judgement::Inconclusive))
        .collect();
    assert!(!open.is_empty(), "{document:#?}");
    assert!(
        open.iter().all(|of| of.reason.contains("sittings") && of.reason.contains("margin")),
        "{open:#?}"
    );
}

/// Something else about a run.
type Change<'a> = &'a dyn Fn(&mut RowResult, &mut Contents);

#[test]
fn runs_that_were_not_made_alike_are_refused_by_what_differs() {
    let changed = |change: Change| {
        let mut now = bundle(5, 1.0, 2);
        for n in 0..now.rows.len() {
            let mut result = now.rows[n].result.clone();
            change(&mut result, &mut now);
            now.rows[n].result = result;
        }
        held(bundle(5, 1.0, 1), now)
    };
    let cases: [(Alike, Change); 9] = [
        (Alike::Evidence, &|own, _| own.evidence = Some(Evidence::VirtualHost)),
        (Alike::Interval, &|own, _| own.interval_ns = 100_000),
        (Alike::Policy, &|own, _| own.policy = Policy::Rr),
        (Alike::Priority, &|own, _| own.priority = 80),
        (Alike::Cpus, &|own, _| own.threads = Some(vec![Thread { cpu: 7, thread: 0 }])),
        (Alike::Load, &|own, _| own.load = vec![json!({ "kind": "cpu", "in": "host" })]),
        (Alike::Fault, &|own, _| own.fault = vec![json!({ "kind": "hog", "in": "host" })]),
        (Alike::Duration, &|own, _| own.planned_ns = 20_000_000_000),
        (Alike::Tick, &|_, all| all.plan.scenario[0].tick = Some(Nanos::from_ms(500))),
    ];
    for (what, change) in cases {
        let document = changed(change);
        let refused = document.scenarios[0].refused.as_ref().unwrap();
        assert_eq!(refused.kind, what.word(), "{}", refused.reason);
        assert_eq!(document.outcome, Judgement::Inconclusive);
        assert!(document.scenarios[0].quantities.iter().all(|of| of.outcome.is_none() && of.p.is_none()));
    }
    let mut mixed = bundle(5, 1.0, 2);
    mixed.rows[3].result.interval_ns = 100_000;
    let document = held(bundle(5, 1.0, 1), mixed);
    assert!(document.reason.contains("the runs of new were measured differently"), "{}", document.reason);
}

#[test]
fn imported_values_are_compared_in_the_coarser_of_two_units() {
    let imported = |ns: [u64; 5]| {
        let mut contents = bundle(5, 1.0, 1);
        for row in &mut contents.rows {
            row.result.evidence = Some(Evidence::Imported);
            let Outcome::Latency(LatencyOutcome { all: Some(all), .. }) = &mut row.result.outcome else {
                panic!()
            };
            let corrected = &mut all.corrected;
            [all.min_ns, corrected.p50_ns, corrected.p99_ns, corrected.p999_ns, all.max_ns] = ns.map(Some);
        }
        contents
    };
    let ratios = |base, now| {
        let document = held(imported(base), imported(now));
        document.scenarios[0].quantities.iter().map(|of| of.ratio.unwrap()).collect::<Vec<_>>()
    };
    let whole = [2_000, 7_000, 17_000, 21_000, 31_000];
    let fine = [2_114, 7_312, 17_998, 21_001, 33_003];
    assert_eq!(ratios(whole, fine), [1.0, 1.0, 1.0, 33.0 / 31.0]);
    assert_eq!(ratios(fine, whole), [1.0, 1.0, 1.0, 31.0 / 33.0]);
    assert_eq!(ratios(fine, fine.map(|ns| ns + 500))[0], 7_812.0 / 7_312.0, "both count nanoseconds");
}

#[test]
fn imported_runs_that_last_equally_long_but_for_a_cycle_or_two_are_alike() {
    let imported = |planned_ns: u64| {
        let mut contents = bundle(5, 1.0, 1);
        for row in &mut contents.rows {
            row.result.evidence = Some(Evidence::Imported);
            row.result.planned_ns = planned_ns;
        }
        contents
    };
    let refused = |other: u64| {
        let document = held(imported(300_000_000_000), imported(other));
        document.scenarios[0].refused.as_ref().unwrap().kind.clone()
    };
    assert_eq!(refused(299_998_000_000), "no verdict", "shown side by side, and judged by nobody");
    assert_eq!(refused(290_000_000_000), Alike::Duration.word());
    assert_eq!(refused(0), Alike::Duration.word(), "unknown");
    let with_interval = |interval_ns: u64| {
        let mut contents = imported(300_000_000_000);
        contents.rows.iter_mut().for_each(|row| row.result.interval_ns = interval_ns);
        contents
    };
    let refused = |other: u64| {
        let document = held(with_interval(1_000_000), with_interval(other));
        document.scenarios[0].refused.as_ref().unwrap().kind.clone()
    };
    assert_eq!(
        (refused(1_000_300), refused(1_100_000)),
        ("no verdict".into(), Alike::Interval.word().into())
    );
}

#[test]
fn runs_that_are_not_whole_or_carry_no_verdict_are_refused() {
    let changed = |change: &dyn Fn(&mut RowResult)| {
        let mut now = bundle(5, 1.0, 2);
        change(&mut now.rows[2].result);
        let document = held(bundle(5, 1.0, 1), now);
        assert_eq!(document.outcome, Judgement::Inconclusive);
        document.scenarios[0].refused.clone().unwrap().kind
    };
    assert_eq!(changed(&|own| own.end(Ending::because(RowEnd::Failed, "it broke"))), "unmeasured");
    assert_eq!(changed(&|own| own.end(Ending::because(RowEnd::Broke, "above the limit"))), "incomplete");
    assert_eq!(changed(&|own| own.threads = None), "incomplete");
    assert_eq!(changed(&|own| own.damaged = true), "incomplete");
    assert_eq!(changed(&|own| own.control[0].seen_ns = 1), "unproven");
    for evidence in [Evidence::Emulated, Evidence::Imported] {
        let of = |seed| {
            let mut own = bundle(5, 1.0, seed);
            own.rows.iter_mut().for_each(|row| row.result.evidence = Some(evidence));
            own
        };
        let document = held(of(1), of(2));
        assert_eq!(document.scenarios[0].refused.as_ref().unwrap().kind, "no verdict");
        assert_ne!(document.outcome, Judgement::Pass);
    }
}

#[test]
fn runs_may_come_as_several_bundles_and_one_new_run_needs_nineteen() {
    let many = |n: u64| (1..=n).map(|seed| bundle(1, 1.0, seed)).collect::<Vec<_>>();
    let (document, _) = held_with(many(19), vec![bundle(1, 1.0, 40)], Options::default());
    assert_eq!(document.scenarios[0].runs, [19, 1]);
    assert!(document.scenarios[0].refused.is_none());
    let (document, _) = held_with(many(19), vec![bundle(1, 2.0, 40)], Options::default());
    assert_ne!(document.outcome, Judgement::Pass);
    let p50 = &document.scenarios[0].quantities[0];
    assert!(p50.reason.contains("too few to show a regression in this many"), "{}", p50.reason);
    let (document, _) = held_with(many(18), vec![bundle(1, 1.0, 40)], Options::default());
    assert_eq!(document.scenarios[0].refused.as_ref().unwrap().kind, "sittings");
}

#[test]
fn a_scenario_that_is_no_longer_measured_passes_nothing_and_a_new_one_stands_in_no_way() {
    let mut more = bundle(8, 1.0, 1);
    for row in bundle(8, 1.0, 3).rows {
        more.rows.push(row);
        more.rows.last_mut().unwrap().result.name = "loaded".into();
    }
    let lost = held(more.clone(), bundle(8, 1.0, 2));
    assert_eq!(lost.outcome, Judgement::Inconclusive);
    assert!(lost.reason.contains("`loaded` of base was not measured in new"), "{}", lost.reason);
    let new = held(bundle(8, 1.0, 2), more);
    assert_eq!((new.outcome, new.unmatched.len()), (Judgement::Pass, 1));
}

fn valued(runs: u32, value: impl Fn(u32) -> f64, better: Better) -> Contents {
    let mut contents = common::empty();
    for run in 1..=runs {
        let item = Item { name: "rate", unit: Unit::MegabytesPerSecond, better, about: "" };
        let mut repeats = Repeats { kept: vec![value(run)], dropped: 0, batch: 1 };
        let mut result = planned("values", "host", "host", Vec::new());
        (result.measurement, result.repeat) = (Measure::Os(Os::default()), Some(run));
        (result.evidence, result.measured_ns) = (Some(Evidence::BareMetal), result.planned_ns);
        result.outcome = Outcome::Values(vec![ValueResult::of(&item, &mut repeats).unwrap()]);
        result.end(Ending::complete());
        contents.rows.push(Row::of(result));
    }
    contents
}

#[test]
fn of_a_throughput_less_is_worse() {
    let fast = |run| 1000.0 + f64::from(run);
    let slow = |run| 700.0 + f64::from(run);
    let document = held(valued(8, fast, Better::Higher), valued(8, slow, Better::Higher));
    assert_eq!(document.outcome, Judgement::Regression);
    assert!((document.scenarios[0].quantities[0].ratio.unwrap() - 1.43).abs() < 0.01);
    let document = held(valued(8, slow, Better::Higher), valued(8, fast, Better::Higher));
    assert!(document.outcome == Judgement::Pass && document.scenarios[0].quantities[0].improved);
}

/// `count` sittings of eight runs. Their levels differ by `spread`, and all are `slower` times as slow.
fn days(count: u32, spread: f64, slower: f64) -> Vec<Contents> {
    let level = |day: u32| slower * (1.0 + spread * (f64::from(day * 3 % 7) - 3.0) / 2.0);
    (0..count)
        .map(|day| {
            valued(8, move |run| 1000.0 * level(day) * (1.0 + 0.01 * f64::from(run % 3)), Better::Lower)
        })
        .collect()
}

#[test]
fn what_a_gate_will_show_is_known_from_its_baseline_alone() {
    let of = |days| expected(&Condition::new("main", days), &Margins::default());
    let ratio = |spread| match of(days(5, spread, 1.0)) {
        Expected::Decides { ratio, scenario, quantity } => {
            assert_eq!((scenario.as_str(), quantity.as_str()), ("values", "rate"));
            ratio
        }
        few @ Expected::TooFew { .. } => panic!("{few:?}"),
    };
    assert!(1.1 < ratio(0.01) && ratio(0.01) < ratio(0.1) && ratio(0.1) < ratio(0.3));
    assert_eq!(of(days(2, 0.1, 1.0)), Expected::TooFew { sittings: 2, more: 3 });
    assert_eq!(of(days(1, 0.1, 1.0)), Expected::TooFew { sittings: 1, more: 4 });
    assert_eq!(
        of(vec![bundle(1, 1.0, 1)]),
        Expected::TooFew { sittings: 1, more: 4 },
        "one run is no sitting"
    );
}

#[test]
fn one_sitting_each_decides_nothing_beyond_these_two() {
    for (slower, here, words) in [
        (2.0, Judgement::Regression, "became worse by more than the margin"),
        (1.0, Judgement::Pass, "no quantity is worse than its margin allows"),
    ] {
        let found = held_with(vec![bundle(8, 1.0, 1)], vec![bundle(8, slower, 2)], Options::default());
        let document = &found.0;
        assert_eq!(document.outcome, Judgement::Inconclusive);
        assert!(document.reason.starts_with("between these two sittings"), "{}", document.reason);
        assert!(document.reason.contains(words), "{}", document.reason);
        assert!(document.reason.contains("3 of each"), "what would decide: {}", document.reason);
        for of in &document.scenarios[0].quantities {
            assert_eq!((of.outcome, of.between_sittings), (Some(Judgement::Inconclusive), Some(here)));
        }
        let table = written("markdown", &found);
        assert!(table.contains(&format!("| {} here |", here.word())), "{table}");
        assert!(!written("junit", &found).contains("<failure"), "nothing failed");
    }
}

#[test]
fn several_sittings_are_judged_by_how_much_sittings_differ() {
    let outcome = |base, now| held_with(base, now, Options::default()).0.outcome;
    assert_eq!(outcome(days(5, 0.02, 1.0), days(1, 0.0, 1.4)), Judgement::Regression);
    assert_eq!(outcome(days(5, 0.02, 1.0), days(1, 0.0, 1.0)), Judgement::Pass);
    assert_eq!(outcome(days(5, 0.3, 1.0), days(1, 0.0, 1.4)), Judgement::Inconclusive, "days differ as much");
    assert_eq!(outcome(days(3, 0.02, 1.0), days(3, 0.02, 1.4)), Judgement::Regression);
    let (few, _) = held_with(days(4, 0.02, 1.0), days(1, 0.0, 1.4), Options::default());
    let refused = few.scenarios[0].refused.as_ref().unwrap();
    assert_eq!(refused.kind, "sittings");
    assert!(refused.reason.contains("6 in all are needed"), "{}", refused.reason);
    let (document, _) = held_with(days(5, 0.02, 1.0), days(1, 0.0, 1.4), Options::default());
    let one = &document.scenarios[0];
    assert_eq!((one.sittings, one.runs), ([5, 1], [40, 8]));
    assert_eq!((one.quantities[0].base_runs.len(), one.quantities[0].between_sittings), (40, None));
}

#[test]
fn some_bad_runs_of_a_sitting_forbid_a_pass_though_its_median_is_good() {
    let bad = |run: u32| if run % 5 < 2 { 5_000.0 } else { 1_000.0 };
    let lossy = |run: u32| if run % 5 < 2 { 100.0 } else { 0.0 };
    let sitting = |of: fn(u32) -> f64| vec![valued(5, of, Better::Lower)];
    let alike = |count: u32, value: f64| {
        (0..count)
            .map(|day| valued(5, move |_| value + 0.01 * value * f64::from(day), Better::Lower))
            .collect()
    };
    for (base, now) in [(alike(8, 1_000.0), sitting(bad)), (alike(8, 0.0), sitting(lossy))] {
        let (document, _) = held_with(base, now, Options::default());
        assert_eq!(document.outcome, Judgement::Inconclusive, "{}", document.reason);
        let of = &document.scenarios[0].quantities[0];
        assert!(of.reason.contains("2 of 5 runs are worse than every run of the base"), "{}", of.reason);
    }
    // A median of zero has no logarithm: ranks cannot show it with so few, and do not say that nothing could.
    let (document, _) = held_with(alike(8, 0.0), sitting(|_| 30.0), Options::default());
    let of = &document.scenarios[0].quantities[0];
    assert_eq!(of.outcome, Some(Judgement::Inconclusive));
    assert!(!of.reason.contains("so near the margin"), "{}", of.reason);
}

#[test]
fn of_sittings_of_unequal_numbers_of_runs_as_many_count_as_the_smallest_has() {
    let unequal = |runs: u32| valued(runs, |run| 1_000.0 * (1.0 + 0.1 * f64::from(run)), Better::Lower);
    let base: Vec<Contents> = (0..6).map(|_| unequal(40)).collect();
    let (document, _) = held_with(base, vec![unequal(5)], Options::default());
    let ratio = document.scenarios[0].quantities[0].ratio.unwrap();
    assert!((ratio - 1.0).abs() < 1e-9, "the first five of each: {ratio}");
    assert!(document.limits.iter().any(|said| said.contains("the first 5 runs")), "{:?}", document.limits);
    let (alike, _) = held_with(vec![unequal(5); 5], vec![unequal(5)], Options::default());
    assert!(!alike.limits.iter().any(|said| said.contains("unequal")), "{:?}", alike.limits);
}

#[test]
fn a_sitting_that_broke_or_did_not_pass_its_self_test_is_no_part_of_a_baseline() {
    let changed = |change: &dyn Fn(&mut RowResult)| {
        let mut one = bundle(5, 1.0, 2);
        change(&mut one.rows[2].result);
        is_fit(&one)
    };
    assert!(changed(&|_| ()) && changed(&|own| own.evidence = Some(Evidence::Emulated)));
    assert!(!changed(&|own| own.control[0].seen_ns = 1) && !changed(&|own| own.damaged = true));
    assert!(!changed(&|own| own.end(Ending::because(RowEnd::Broke, "above the limit"))));
}

#[test]
fn sittings_of_one_day_do_not_show_how_much_days_differ() {
    let said = |base: Vec<Contents>| held_with(base, days(3, 0.02, 1.0), Options::default()).0.limits;
    let of_base =
        |limits: &[String]| limits.iter().any(|said| said.contains("sittings of base are of one day"));
    assert!(of_base(&said(days(3, 0.02, 1.0))));
    let mut apart = days(3, 0.02, 1.0);
    apart[1].manifest.started = "2026-11-21T09:14:01Z".into();
    assert!(!of_base(&said(apart)));
}

#[test]
fn a_baseline_of_sittings_says_how_often_its_gate_is_wrong() {
    let itself = |days| against_itself(&Condition::new("base", days), &Margins::default());
    let document = itself(days(7, 0.02, 1.0));
    let own = document.baseline.unwrap();
    assert_eq!((document.outcome, own.of.as_str(), own.count), (Judgement::Pass, "sittings", 7));
    assert_eq!(own.false_alarms, Some(0));
    let mut outlier = days(9, 0.02, 1.0);
    outlier.extend(days(1, 0.0, 2.0));
    assert_eq!(itself(outlier).baseline.unwrap().false_alarms, Some(1));
    let one = itself(vec![bundle(16, 1.0, 1)]);
    assert_eq!(one.outcome, Judgement::Inconclusive);
    assert!(one.reason.contains("is one sitting"), "{}", one.reason);
}

#[test]
fn nothing_lost_before_and_after_is_as_before_and_something_lost_is_worse() {
    let none = || valued(8, |_| 0.0, Better::Lower);
    assert_eq!(held(none(), none()).outcome, Judgement::Pass);
    assert_eq!(held(none(), valued(8, f64::from, Better::Lower)).outcome, Judgement::Regression);
    assert_eq!(
        held(none(), valued(8, |run| -f64::from(run), Better::Lower)).outcome,
        Judgement::Inconclusive
    );
}

#[test]
fn a_baseline_holds_against_itself_unless_it_drifts() {
    let steady = valued(16, |run| 100.0 + f64::from(run * 7 % 5), Better::Lower);
    let itself = |of: Contents| against_itself(&Condition::new("base", sittings(&of)), &Margins::default());
    let document = itself(steady.clone());
    let own = document.baseline.unwrap();
    assert_eq!((document.outcome, own.refused, own.tells), (Judgement::Pass, None, true));
    assert!(own.quantities[0].spread < 0.05 && own.quantities[0].detectable.unwrap() < 1.2);
    let drifting = valued(16, |run| 100.0 * (1.0 + 0.05 * f64::from(run)), Better::Lower);
    let document = itself(drifting.clone());
    assert_eq!(document.outcome, Judgement::Regression);
    assert!(document.reason.contains("it drifted"), "{}", document.reason);
    let gate = Options { gate: true, ..Options::default() };
    assert_eq!(held_with(sittings(&drifting), sittings(&steady), gate).0.outcome, Judgement::Inconclusive);
    assert_eq!(
        held_with(sittings(&steady), sittings(&valued(8, |_| 101.0, Better::Lower)), gate).0.outcome,
        Judgement::Pass
    );
}

#[test]
fn a_baseline_of_which_one_of_each_two_runs_is_slow_is_refused() {
    // So far apart that no margin matters, and in no order but that of neighbours.
    let level = |run: u32| 1.3_f64.powf(f64::from(run / 2 * 5 % 12));
    let alternating = valued(24, |run| level(run) * if run % 2 == 0 { 1.0 } else { 1e6 }, Better::Lower);
    let document = against_itself(&Condition::new("base", vec![alternating]), &Margins::default());
    let own = document.baseline.unwrap();
    assert!(own.regressions > 10 && own.refused.is_some(), "{} of {}", own.regressions, own.splits);
}

#[test]
fn too_few_runs_for_halves_say_nothing_of_a_baseline() {
    let document = against_itself(
        &Condition::new("base", vec![valued(9, f64::from, Better::Lower)]),
        &Margins::default(),
    );
    assert_eq!(document.outcome, Judgement::Inconclusive);
    assert!(document.baseline.is_none() && document.reason.contains("10 runs"), "{}", document.reason);
}

#[test]
fn a_wider_margin_lets_more_pass() {
    let margins = Margins::default().with("p50=60%").and_then(|all| all.with("p99=60%")).unwrap();
    let margins = margins.with("p99.9=60%").unwrap();
    let wide = Options { margins, ..Options::default() };
    let (document, _) = held_with(sittings(&bundle(8, 1.0, 1)), sittings(&bundle(8, 1.4, 2)), wide);
    assert_ne!(document.outcome, Judgement::Regression, "{}", document.reason);
}

#[test]
fn nothing_at_all_and_hostile_bundles_are_compared_without_a_panic() {
    assert_eq!(compare(&[], &Options::default()).outcome, Judgement::Inconclusive);
    let all = || vec![common::hostile()];
    let found = held_with(all(), all(), Options { gate: true, explore: true, ..Options::default() });
    assert_ne!(found.0.outcome, Judgement::Regression);
    for format in FORMATS {
        let text = written(format.name, &found);
        assert!(!text.contains('\u{1b}'), "{}", format.name);
        assert!(format.name != "html" || !text.contains("<script>alert"));
    }
}

/// A stranger's bundle: `rows` runs of one scenario, or `rows` scenarios of one run.
fn many(rows: u32, is_repeated: bool, slower: f64) -> Contents {
    let mut contents = common::empty();
    for n in 1..=rows {
        let name = if is_repeated { "idle".to_owned() } else { format!("idle {n}") };
        contents.plan.scenario.push(Scenario { name: Some(name.clone()), ..Scenario::default() });
        let mut result = planned(&name, "host", "host", Vec::new());
        result.repeat = is_repeated.then_some(n);
        let item = (common::item("system call", Unit::Ns, Better::Lower), slower * f64::from(100 + n % 7));
        contents.rows.push(common::valued(result, Evidence::BareMetal, &[item]));
    }
    contents
}

fn takes_as_long_as_it_is_large(of: impl Fn(u32)) {
    let time = |rows| common::cpu_time(|| of(rows));
    // Few are so quick that beside other work a tenth of the time is the machine's.
    let few = (0..3).map(|_| time(400)).max().unwrap();
    let more = time(4_000);
    assert!(more < few * 50, "{few:?}, {more:?}");
}

#[test]
fn ten_times_the_runs_are_compared_in_ten_times_the_time_and_not_a_hundred() {
    let of = |rows, slower| Condition::new("base", vec![many(rows, true, slower)]);
    let all: Vec<[Condition; 2]> = [400, 4_000].map(|rows| [of(rows, 1.0), of(rows, 1.3)]).into();
    takes_as_long_as_it_is_large(|rows| {
        let both = all.iter().find(|both| both[0].bundles()[0].rows.len() == rows as usize).unwrap();
        let document = compare(both, &Options { gate: true, ..Options::default() });
        assert_eq!(document.scenarios[0].runs, [rows as usize; 2]);
    });
}

#[test]
fn ten_times_the_runs_are_held_against_themselves_in_ten_times_the_time_and_not_a_hundred() {
    let all = [400, 4_000].map(|rows| Condition::new("base", vec![many(rows, true, 1.0)]));
    takes_as_long_as_it_is_large(|rows| {
        let base = all.iter().find(|of| of.bundles()[0].rows.len() == rows as usize).unwrap();
        assert_eq!(against_itself(base, &Margins::default()).baseline.unwrap().count, rows as usize);
    });
}

#[test]
fn ten_times_the_scenarios_are_compared_in_ten_times_the_time_and_not_a_hundred() {
    let of = |rows| Condition::new("base", vec![many(rows, false, 1.0)]);
    let all: Vec<[Condition; 2]> = [400, 4_000].map(|rows| [of(rows), of(rows)]).into();
    takes_as_long_as_it_is_large(|rows| {
        let both = all.iter().find(|both| both[0].bundles()[0].rows.len() == rows as usize).unwrap();
        assert_eq!(compare(both, &Options::default()).scenarios.len(), rows as usize);
    });
}

#[test]
fn what_is_kept_of_a_bundle_to_compare_it_is_one_histogram_of_each_run() {
    let mut own = bundle(3, 1.0, 1);
    let mut dense = Counts::default();
    (0..BUCKETS).for_each(|bucket| dense.add(bucket, 1));
    for thread in 0..400 {
        own.rows[0].histograms.series.insert(format!("cpu1/t{thread}/thread"), dense.pack());
        own.rows[0].missed.series.insert(format!("cpu1/t{thread}/thread"), dense.pack());
        own.rows[0].histograms.intervals.insert(thread, dense.pack());
    }
    let before: Vec<_> = own.rows.iter().map(Row::corrected).collect();
    Condition::reduce(&mut own);
    assert_eq!(own.rows.iter().map(Row::corrected).collect::<Vec<_>>(), before, "all of it together stays");
    let row = &own.rows[0];
    for kept in [&row.histograms, &row.missed] {
        let bytes: usize = kept.series.values().map(Packed::bytes).sum();
        assert!(kept.intervals.is_empty() && bytes <= 4 * BUCKETS, "{bytes}");
    }
}

/// The schema in the book is made from the types; `UPDATE_DOCS=1` writes it anew.
#[test]
#[expect(clippy::disallowed_methods, reason = "the book is looked at")]
fn the_published_schema_is_that_of_the_document() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/compare.schema.json");
    let schema = schemars::schema_for!(CompareDocument);
    let made = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(path, &made).unwrap();
    }
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(published, made, "docs/schema/compare.schema.json is out of date: run with UPDATE_DOCS=1");
    let schema = serde_json::to_value(schema).unwrap();
    let steady = valued(16, |run| 100.0 + f64::from(run * 7 % 5), Better::Lower);
    let itself = against_itself(&Condition::new("base", vec![steady]), &Margins::default());
    for document in [slower_kernel().0, held(bundle(1, 1.0, 1), bundle(1, 1.0, 2)), itself] {
        fits(&schema, &schema, &serde_json::to_value(document).unwrap(), "document");
    }
}
