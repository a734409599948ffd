//! The tests that comparisons rest on, held against SciPy's: that of this machine, or its answers as they were kept.

use std::process::Command;

use serde_json::Value;
use tactus_report::stats::{Samples, TwoSamples, benjamini_hochberg};

/// SciPy's answers here, or those that are kept.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "another program is asked, or said not to be there"
)]
fn answers() -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/report/compare/scipy_answers.py");
    let said = Command::new("python3").arg(script).output();
    let text = match said {
        Ok(out) if out.status.success() => String::from_utf8(out.stdout).unwrap(),
        _ => {
            eprintln!("SciPy is not installed here: its answers as they were kept are held against");
            include_str!("scipy.json").to_owned()
        }
    };
    serde_json::from_str(&text).unwrap()
}

fn numbers(of: &Value) -> Vec<f64> {
    of.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

#[test]
fn p_values_of_runs_are_those_of_scipy() {
    let (answers, test) = (answers(), TwoSamples::default());
    let cases = answers["samples"].as_array().unwrap();
    assert!(cases.len() >= 14);
    for case in cases {
        let (base, now) = (numbers(&case["base"]), numbers(&case["now"]));
        let (samples, factor) = (Samples { base: &base, with: &now }, case["factor"].as_f64().unwrap());
        for (name, found) in
            [("larger", test.larger_p(samples, factor)), ("smaller", test.smaller_p(samples, factor))]
        {
            let wanted = case[name].as_f64().unwrap();
            assert!(
                (found - wanted).abs() < 1e-6,
                "{} and {}, {name}: {found} for {wanted}",
                base.len(),
                now.len()
            );
        }
    }
}

#[test]
fn false_finds_are_counted_as_scipy_does() {
    for family in answers()["families"].as_array().unwrap() {
        let found = benjamini_hochberg(&numbers(&family["p"]));
        for (found, wanted) in found.iter().zip(numbers(&family["bh"])) {
            assert!((found - wanted).abs() < 1e-6, "{found} for {wanted}");
        }
    }
}
