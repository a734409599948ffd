//! Exit codes and failures.

use std::io;
use std::process::ExitCode;

use tactus_bundle::BundleError;
use tactus_environment::kernel::KernelError;
use tactus_model::Evidence;
use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::document::{Outcome, ProofEntry};
use tactus_model::event::{RowStatus, RunStatus};
use tactus_model::outcome::RowEnd;
use tactus_report::document;
use tactus_report::row::{found_nothing, has_numbers};
use tactus_run::plan::PlanError;
use tactus_run::{ExecuteError, Executed};
use tactus_system::guardian;

use crate::say::say;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: good.
    Good,
    /// 1: findings, a failed verdict or a regression.
    Findings,
    /// 2: the tool could not do it, or was interrupted.
    Unable,
    /// 3: inconclusive.
    Inconclusive,
}

impl Exit {
    /// How the program ends that has made this run.
    pub fn after(run: Executed) -> Self {
        Self::of(&run.contents).and(Self::of_guardian(run.killed))
    }

    /// How it ends by what a run came to.
    pub fn of(contents: &Contents) -> Self {
        let document = document(contents);
        let verdicts = document.scenarios.iter().filter_map(|entry| entry.verdict.as_ref());
        let mut outcomes: Vec<Outcome> = verdicts.map(|verdict| verdict.outcome).collect();
        // A value that ends a measurement asks whether it is exceeded.
        let broke =
            |row: &Row| row.result.ended == RowEnd::Broke && row.result.evidence != Some(Evidence::Imported);
        if contents.rows.iter().any(broke) {
            outcomes.push(Outcome::Fail);
        }
        let is_untested = |proof: &ProofEntry| proof.reason.is_some();
        if !document.proofs.is_empty() && document.proofs.iter().all(is_untested) {
            outcomes.push(Outcome::Inconclusive);
        }
        let whole = is_measured(contents) && document.status != RunStatus::Interrupted;
        Self::judged(&outcomes, whole)
    }

    /// How it ends for its guardian: one that was killed is said.
    pub fn of_guardian(killed: Option<io::Error>) -> Self {
        killed.map_or(Self::Good, |error| Failure::without_guardian(error).report())
    }

    /// The exit of a run by its verdicts; a run without verdicts is good. `whole`: all planned rows were measured.
    fn judged(verdicts: &[Outcome], whole: bool) -> Self {
        if verdicts.contains(&Outcome::Fail) {
            Self::Findings
        } else if !whole {
            Self::Unable
        } else if verdicts.contains(&Outcome::Inconclusive) {
            Self::Inconclusive
        } else {
            Self::Good
        }
    }
}

/// Whether something was measured, and of every row that was not skipped.
pub fn is_measured(contents: &Contents) -> bool {
    let has_figures = |row: &RowResult| {
        // A file of another tool may say that it found nothing.
        row.status == RowStatus::Measured && (has_numbers(row) || found_nothing(row).is_some())
    };
    let rows = contents.rows.iter().map(|row| &row.result);
    let mut rows = rows.filter(|row| row.status != RowStatus::Skipped).peekable();
    rows.peek().is_some() && rows.all(has_figures)
}

impl Exit {
    /// The exit of a program with two results: the worse one, and [`Exit::Unable`] is the worst.
    pub const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unable, _) | (_, Self::Unable) => Self::Unable,
            (Self::Findings, _) | (_, Self::Findings) => Self::Findings,
            (Self::Inconclusive, _) | (_, Self::Inconclusive) => Self::Inconclusive,
            (Self::Good, Self::Good) => Self::Good,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Good => 0,
            Exit::Findings => 1,
            Exit::Unable => 2,
            Exit::Inconclusive => 3,
        })
    }
}

/// Why a command could not be done, and what would help.
#[derive(Debug)]
pub struct Failure {
    error: anyhow::Error,
    hint: Option<String>,
}

impl Failure {
    /// A failure with a hint.
    pub fn new(error: impl Into<anyhow::Error>, hint: impl Into<String>) -> Self {
        Self { error: error.into(), hint: Some(hint.into()) }
    }

    /// A failure in words, with a hint.
    pub fn say(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(anyhow::Error::msg(message.into()), hint)
    }

    /// The guardian of a run was killed.
    pub fn without_guardian(error: io::Error) -> Self {
        Self::new(error, "run it again; `dmesg` shows whether the kernel killed it for lack of memory")
    }

    /// The message, without the hint.
    #[cfg(test)]
    pub fn words(&self) -> String {
        format!("{:#}", self.error)
    }

    /// Prints it.
    pub fn report(&self) -> Exit {
        say(format_args!("error: {:#}", self.error));
        if let Some(hint) = &self.hint {
            say(format_args!("hint: {hint}"));
        }
        Exit::Unable
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self { error, hint: None }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self { error: error.into(), hint: None }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self { error: error.into(), hint: None }
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        let hint = error.hint.clone();
        Self { error: error.into(), hint }
    }
}

impl From<BundleError> for Failure {
    fn from(error: BundleError) -> Self {
        let hint = error.hint();
        Self { error: error.into(), hint }
    }
}

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Self {
        let hint = error.hint.clone();
        Self { error: error.into(), hint }
    }
}

/// The exit of a process of this program, by its exit code; `None`: a signal ended it.
impl From<Option<i32>> for Exit {
    fn from(code: Option<i32>) -> Self {
        match code {
            Some(0) => Self::Good,
            Some(1) => Self::Findings,
            Some(3) => Self::Inconclusive,
            _ => Self::Unable,
        }
    }
}

/// The hint for the directory of tactus's files.
pub const CACHE_HINT: &str = "set TACTUS_CACHE_DIR to a directory that only you can write to, on a file system that is not \
mounted noexec";

impl From<ExecuteError> for Failure {
    fn from(error: ExecuteError) -> Self {
        match error {
            ExecuteError::Guardian(error) | ExecuteError::Unannounced(error)
                if guardian::has_gone(&error) =>
            {
                Self::without_guardian(error)
            }
            ExecuteError::Guardian(error) => Self::new(
                error,
                format!(
                    "tactus changes nothing without its guardian, the process that reverts \
                     changes if tactus dies: {CACHE_HINT}"
                ),
            ),
            ExecuteError::Unannounced(_) => Self::new(error, CACHE_HINT),
            ExecuteError::Busy(_) => Self::new(
                error,
                "`tactus watch BUNDLE` follows that run, `tactus watch --stop BUNDLE` ends it",
            ),
            ExecuteError::Bundle(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_by_the_worst_of_its_verdicts_and_a_warning_does_not_count() {
        use Outcome::{Fail, Inconclusive, Pass, Warn};
        for (verdicts, whole, part) in [
            (&[][..], Exit::Good, Exit::Unable),
            (&[Pass], Exit::Good, Exit::Unable),
            (&[Pass, Warn], Exit::Good, Exit::Unable),
            (&[Warn, Inconclusive], Exit::Inconclusive, Exit::Unable),
            (&[Inconclusive, Fail, Pass], Exit::Findings, Exit::Findings),
        ] {
            assert_eq!([true, false].map(|all| Exit::judged(verdicts, all)), [whole, part], "{verdicts:?}");
        }
        let codes = [Exit::Good, Exit::Findings, Exit::Unable, Exit::Inconclusive].map(ExitCode::from);
        assert_eq!(codes, [0, 1, 2, 3].map(ExitCode::from));
    }
}
