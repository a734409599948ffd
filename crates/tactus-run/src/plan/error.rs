//! What is wrong in a plan: file, line, key, and what would be right.

use std::fmt;

/// An error in a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// The file, or the name of the study.
    pub file: String,
    /// Line from 1, where it is known.
    pub line: Option<usize>,
    /// The key, as `environment.guest.kernel`.
    pub key: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub hint: Option<String>,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        f.write_str(": ")?;
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for PlanError {}
