//! Verdicts as signals of LAVA (docs.lavasoftware.org, "Recording test case results"): a line for each limit,
//! with its measured value.

use std::fmt::Write;

use tactus_model::bundle::Contents;

use crate::answer::{Came, Case, answer, cases};
use crate::units::clean;

/// The verdicts of a bundle as lines that a LAVA job prints. An inconclusive verdict is `unknown`.
#[must_use]
pub fn render(contents: &Contents) -> String {
    // LAVA ignores lines that are not signals.
    let mut out = format!("{}\n", clean(&answer(contents).line()).replace('<', "("));
    for Case { name, came, measured, .. } in cases(contents) {
        let result = match came {
            Came::Pass => "pass",
            Came::Fail => "fail",
            Came::Skipped => "skip",
            Came::Undecided => "unknown",
        };
        let _ = write!(out, "<LAVA_SIGNAL_TESTCASE TEST_CASE_ID={} RESULT={result}", id(&name));
        if let Some((value, unit)) = measured {
            let _ = write!(out, " MEASUREMENT={value}");
            if !unit.is_empty() {
                let _ = write!(out, " UNITS={}", id(&unit));
            }
        }
        out.push_str(">\n");
    }
    out
}

/// A name as LAVA takes it: no blanks, nothing that ends the signal.
fn id(name: &str) -> String {
    clean(name)
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' })
        .collect()
}
