//! Verdicts in the kernel's test format (Documentation/dev-tools/ktap.rst): a line for each limit, and for each measurement of
//! which nothing is required.

use std::fmt::Write;

use tactus_model::bundle::Contents;

use crate::answer::{Came, Case, answer, cases};
use crate::units::clean;

/// The verdicts of a bundle as KTAP. An inconclusive verdict is `not ok` with the reason. A measurement that
/// this machine cannot make is skipped.
#[must_use]
pub fn render(contents: &Contents) -> String {
    let cases = cases(contents);
    let answer = clean(&answer(contents).line());
    let mut out = format!("KTAP version 1\n1..{}\n# {answer}\n", cases.len());
    for (number, case) in (1..).zip(&cases) {
        let Case { name, came, said, .. } = case;
        // A `#` begins a directive.
        let name = clean(name).replace('#', "_");
        let _ = match came {
            Came::Pass => writeln!(out, "ok {number} {name}"),
            Came::Skipped => writeln!(out, "ok {number} {name} # SKIP {}", clean(said)),
            Came::Fail | Came::Undecided => writeln!(out, "# {}\nnot ok {number} {name}", clean(said)),
        };
    }
    out
}
