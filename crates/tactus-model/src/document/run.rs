//! Each run with its environments, tools and times, by which documents of several runs are joined.

use serde::{Deserialize, Serialize};

use crate::bundle::{Job, Machine};
use crate::message::Note;

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunEntry {
    /// Name of the plan.
    pub plan: String,
    /// SHA-256 of the plan as it was resolved, in hex; runs of the same plan and options have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_sha256: Option<String>,
    /// Version of the tactus that measured.
    pub tactus: String,
    /// When it began, RFC 3339.
    pub started: String,
    /// When it ended; `null` while it runs, or after it died.
    pub finished: Option<String>,
    /// Number of sessions: the start of the run, and each time that it was resumed.
    pub sessions: usize,
    /// The machine, as it was at first.
    pub machine: Machine,
    /// The job that started it, if an engine did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Job>,
    /// Remarks about the run as a whole, with the environment that each is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<RunNote>,
}

/// A remark about a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunNote {
    /// The environment that it is about; `null`: all of it.
    pub environment: Option<String>,
    /// The remark.
    #[serde(flatten)]
    pub note: Note,
}
