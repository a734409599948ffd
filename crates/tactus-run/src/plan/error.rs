//! Errors in a plan: file, line, key, and a correct form.

use std::fmt;

/// An error in a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// The file, or the name of the study; empty: it is not said.
    pub file: String,
    /// Line from 1, where it is known.
    pub line: Option<usize>,
    /// The key, as `environment.guest.kernel`.
    pub key: Option<String>,
    /// The problem.
    pub message: String,
    /// The correct form.
    pub hint: Option<String>,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.file.is_empty() {
            f.write_str(": ")?;
        }
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for PlanError {}
