//! Damage of a journal: missing lines that a power cut cannot explain.

use std::fmt;
use std::path::PathBuf;

/// The unreadable part of a journal, and the readable one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The journal.
    pub path: PathBuf,
    /// The numbers of the lines that cannot be read.
    pub lines: Vec<usize>,
    /// Whether what was asked for was said by one of them.
    pub nameless: bool,
    /// How many steps they named that were done.
    pub lost: usize,
    /// How many steps the other lines name that were not taken back.
    pub steps: usize,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.lines.iter().map(ToString::to_string).collect();
        let lines = if all.len() == 1 { "line" } else { "lines" };
        write!(f, "{lines} {} of {} cannot be read", all.join(", "), self.path.display())?;
        if self.nameless {
            write!(f, ", so the applied changes are unknown")?;
        }
        match self.lost {
            0 => {}
            lost => write!(f, "; {lost} of the completed steps were in it")?,
        }
        match self.steps {
            0 => write!(f, "; no other line names a step"),
            1 => write!(f, "; the other lines name 1 step that was not reverted"),
            steps => write!(f, "; the other lines name {steps} steps that were not reverted"),
        }
    }
}
