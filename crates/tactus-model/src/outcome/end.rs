//! How a row ended.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is known of a row in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RowStatus {
    /// It has numbers (perhaps fewer than planned: then `reason` says why).
    Measured,
    /// This machine cannot do it.
    Skipped,
    /// It was tried and broke.
    Failed,
}

/// How a row ended; a sentence beside it says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RowEnd {
    /// Its duration was over.
    Complete,
    /// Its measurement was ended early, though nobody had asked the run to end.
    Stopped,
    /// A latency exceeded the limit of `break`.
    Broke,
    /// The run was asked to end while it was measured.
    Interrupted,
    /// The run died while it was measured.
    Died,
    /// Its environment or its measurement broke.
    Failed,
    /// A probe may not do there what was asked for.
    Refused,
    /// This machine does not have what it needs, or is not in the state that it is for.
    Unavailable,
    /// Its turn has not come, or did not come before the run ended.
    Waiting,
}

impl RowEnd {
    /// The same in fewer words.
    #[must_use]
    pub const fn status(self) -> RowStatus {
        match self {
            Self::Complete | Self::Stopped | Self::Broke | Self::Interrupted | Self::Died => {
                RowStatus::Measured
            }
            Self::Failed => RowStatus::Failed,
            Self::Refused | Self::Unavailable | Self::Waiting => RowStatus::Skipped,
        }
    }

    /// Whether it was measured to the end that the plan gave it: its duration, or a limit.
    #[must_use]
    pub const fn is_planned(self) -> bool {
        matches!(self, Self::Complete | Self::Broke)
    }
}

impl fmt::Display for RowEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Complete => "complete",
            Self::Stopped => "stopped",
            Self::Broke => "broke",
            Self::Interrupted => "interrupted",
            Self::Died => "died",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
            Self::Waiting => "waiting",
        })
    }
}
