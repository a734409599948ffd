//! Results compared with those of SciPy: with its stored answers, and with those of SciPy on this machine.

use std::process::Command;

use serde_json::Value;
use tactus_model::number::float;
use tactus_statistics::tail::{Against, Excesses, Gpd, Maxima, Tail};
use tactus_statistics::{Samples, Stratum, TwoSamples, benjamini_hochberg, drawn, paired_p};

use crate::python::python;

/// Its answers as they were kept, and those that it gives here, under a name.
#[expect(clippy::disallowed_methods, reason = "another program is asked")]
fn answers(to: &str) -> Vec<Value> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/statistics/scipy/answers.py");
    let mut all = vec![include_str!("kept.json").to_owned()];
    if let Some(python) = python("scipy") {
        let out = Command::new(python).arg(script).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        all.push(String::from_utf8(out.stdout).unwrap());
    }
    let of = |text: &String| serde_json::from_str::<Value>(text).unwrap()[to].as_array().unwrap().clone();
    all.iter().flat_map(of).collect()
}

fn number(of: &Value) -> f64 {
    of.as_f64().unwrap()
}

fn near(what: &str, own: f64, theirs: f64) {
    assert!((own - theirs).abs() <= 1e-6 * theirs.abs().max(1.0), "{what}: {own} for {theirs}");
}

fn numbers(of: &Value) -> Vec<f64> {
    of.as_array().unwrap().iter().map(number).collect()
}

#[test]
fn p_values_of_runs_are_those_of_scipy() {
    let (cases, test) = (answers("samples"), TwoSamples::default());
    assert!(cases.len() >= 14, "{}", cases.len());
    for case in &cases {
        let (base, now) = (numbers(&case["base"]), numbers(&case["now"]));
        let (samples, factor) = (Samples { base: &base, with: &now }, number(&case["factor"]));
        for (name, found) in
            [("larger", test.larger_p(samples, factor)), ("smaller", test.smaller_p(samples, factor))]
        {
            near(&format!("{} and {}, {name}", base.len(), now.len()), found, number(&case[name]));
        }
    }
}

#[test]
fn false_finds_are_counted_as_scipy_does() {
    for family in answers("families") {
        let found = benjamini_hochberg(&numbers(&family["p"]));
        for (found, wanted) in found.iter().zip(numbers(&family["bh"])) {
            near("one of a family", *found, wanted);
        }
    }
}

#[test]
fn pairs_have_the_chance_that_its_signed_ranks_have() {
    for case in answers("signed_ranks") {
        let differences = numbers(&case["differences"]);
        near(&format!("{} pairs", differences.len()), paired_p(&differences), number(&case["p"]));
    }
}

#[test]
fn what_fell_by_lot_has_the_chance_that_its_binomials_have() {
    for case in answers("binomials") {
        let whole = |of: &Value| usize::try_from(of.as_u64().unwrap()).unwrap();
        let times = whole(&case["times"]);
        let periods = case["places"].as_array().unwrap().iter().zip(case["marked"].as_array().unwrap());
        let period = |(n, (places, marked)): (usize, (&Value, &Value))| {
            let (places, marked) = (whole(places), whole(marked));
            let values = (0..places).map(|place| u64::from(place < marked)).collect();
            // The first place has the property, the last has it not.
            Stratum { values, drawn: if n < times { 0 } else { places - 1 }, reach: 0 }
        };
        let strata: Vec<Stratum> = periods.enumerate().map(period).collect();
        let found = drawn(&strata, |stratum, place| stratum.values[place] == 1);
        assert_eq!(found.times, times);
        near(&format!("{times} of {}", strata.len()), found.chance, number(&case["p"]));
    }
}

#[test]
fn laws_of_tails_and_the_tests_of_their_maxima_are_its_own() {
    for case in answers("tails") {
        let maxima: Vec<u64> =
            case["maxima"].as_array().unwrap().iter().map(|ns| ns.as_u64().unwrap()).collect();
        let theirs = |name: &str| number(&case[name]);
        let law = Gpd { sigma: theirs("sigma"), xi: theirs("xi") };
        let above = maxima.iter().map(|ns| float(*ns) - theirs("threshold")).filter(|x| *x > 0.0).collect();
        let excesses = Excesses::new(above).unwrap();
        let fit = excesses.fit();
        near("shape", fit.gpd.xi, law.xi);
        near("scale", fit.gpd.sigma / law.sigma, 1.0);
        near("likelihood", fit.log_likelihood, theirs("likelihood"));
        near("likelihood of theirs", excesses.log_likelihood(law), theirs("likelihood"));
        let series = Maxima { values: maxima, ticks: 1, tick_ns: 1_000_000_000, starts: Vec::new() };
        let tail = Tail::of(&series, 1).unwrap();
        near("threshold", tail.tried[0].value, theirs("threshold"));
        near("shape above it", tail.tried[0].xi, law.xi);
        let test = |against| tail.tests.iter().find(|test| test.against == against).unwrap();
        near("Ljung-Box", test(Against::Correlation).statistic, theirs("ljung_box"));
        near("KPSS", test(Against::Drift).statistic, theirs("kpss"));
        near("halves", test(Against::Halves).p, theirs("halves"));
    }
}
