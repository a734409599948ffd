//! A certificate: the answer of a bundle on two pages of A4, to be printed, signed and filed.
//!
//! The first page has the question, the result and the margin. The second one has the conditions of the
//! result, and lines for signatures. [`Certificate::of`] collects the contents from other parts of the
//! report; [`html()`] and `pdf()` write them. Every bundle gives two pages: long texts are cut.

mod conditions;
mod error;
mod html;
#[cfg(feature = "pdf")]
mod pdf;
mod refusal;
mod required;
mod rows;

use tactus_model::bundle::{Contents, Row};
use tactus_model::plan::Require;

use crate::answer::{answer, question};
use crate::figure::Figure;
use crate::part::Tone;
use crate::row::Runs;
use crate::section::answer::drawn_together;
use crate::stats::{Line, comparison};
use crate::units::{beginning, clean, moment, unbroken};

pub use error::CertificateError;
pub use html::html;
#[cfg(feature = "pdf")]
pub use pdf::pdf;

/// The texts that the user gives for a certificate. An empty one counts as none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// The heading; `None` for the title of the plan.
    pub title: Option<String>,
    /// The customer who receives it.
    pub customer: Option<String>,
    /// Where the machine stands.
    pub site: Option<String>,
    /// The person who measured.
    pub operator: Option<String>,
    /// The serial number of the machine.
    pub serial: Option<String>,
}

/// A text with its name, and in how many lines it must fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name of the entry.
    pub name: &'static str,
    /// Its text.
    pub value: String,
    /// Most lines it may take.
    pub lines: usize,
}

/// The contents of the two pages.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    /// The user's entries, as they are shown.
    given: Given,
    title: String,
    /// The machine, and when it was measured.
    under: String,
    question: &'static str,
    /// The requirements: which limits, where, how often and under which load.
    asked: Vec<Entry>,
    word: &'static str,
    tone: Tone,
    sentence: String,
    figure: Option<Figure>,
    table: rows::Rows,
    conditions: Vec<Entry>,
    notes: Vec<String>,
}

/// A measurement of which something is required.
struct Judged<'a> {
    line: &'a Line,
    require: &'a Require,
    /// All of its runs.
    runs: Vec<&'a Row>,
}

/// More characters than this of one value are never looked at.
const LONGEST: usize = 1500;

impl Certificate {
    /// The certificate of a bundle, whose manifest has this checksum (SHA-256, in hex).
    ///
    /// # Errors
    /// When there is nothing to certify, with the reason.
    pub fn of(contents: &Contents, sha256: &str, given: &Given) -> Result<Self, CertificateError> {
        let lines = comparison(contents);
        refusal::refused(contents, &lines)?;
        let all = Runs::new(contents);
        let judged: Vec<Judged<'_>> = lines.iter().filter_map(|line| judged(contents, &all, line)).collect();
        let given = given.shown();
        let (answer, machine) = (answer(contents), &contents.manifest.machine);
        let plan = contents.plan.title.as_deref().unwrap_or(&contents.manifest.plan);
        let is_judged = |row: &Row| row.result.require.is_some();
        let mut figure = drawn_together(contents, is_judged);
        let others = lines.len() - judged.len();
        if let Some(figure) = figure.as_mut().filter(|_| others > 0) {
            figure.title = "The measurements that have a limit".into();
        }
        Ok(Self {
            title: given.title.clone().unwrap_or_else(|| short(plan)),
            under: format!("{} · {}", short(&machine.name), moment(&contents.manifest.started)),
            question: question(contents),
            asked: required::asked(&judged),
            word: answer.word,
            tone: answer.tone,
            sentence: unbroken(&short(&answer.sentence)),
            figure,
            table: rows::rows(&judged, others),
            conditions: conditions::conditions(contents, &judged, &given, sha256),
            notes: conditions::notes(&answer.evidence),
            given,
        })
    }
}

fn judged<'a>(contents: &'a Contents, all: &Runs<'a>, line: &'a Line) -> Option<Judged<'a>> {
    line.verdict.as_ref()?;
    let require = contents.rows.get(line.row)?.result.require.as_ref()?;
    Some(Judged { line, require, runs: all.of(line.row).to_vec() })
}

impl Given {
    /// The same, safe to show on a page: terminal control characters are replaced, and an empty text becomes
    /// `None`.
    fn shown(&self) -> Self {
        let own = |text: &Option<String>| {
            text.as_deref().map(|text| short(text.trim())).filter(|text| !text.is_empty())
        };
        Self {
            title: own(&self.title),
            customer: own(&self.customer),
            site: own(&self.site),
            operator: own(&self.operator),
            serial: own(&self.serial),
        }
    }
}

/// A text on one line, and not longer than anything is looked at.
fn short(text: &str) -> String {
    clean(&beginning(text, LONGEST).replace(['\n', '\t', '\r'], " "))
}

/// Each of these once, in their order.
fn distinct(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for one in all {
        // A reader stops at this many.
        if seen.len() < MOST_NAMED && !seen.contains(&one) {
            seen.push(one);
        }
    }
    seen
}

/// Most values in one list.
const MOST_NAMED: usize = 64;
