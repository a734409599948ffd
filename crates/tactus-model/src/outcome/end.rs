//! How a row ended, and a run.

use std::fmt;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

/// The status of a row in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RowStatus {
    /// It has numbers. If they are fewer than planned, `reason` says why.
    Measured,
    /// This machine cannot do it.
    Skipped,
    /// It was tried and broke.
    Failed,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// Every row was done, skipped or failed.
    Complete,
    /// It was stopped, or died.
    Interrupted,
}

/// How a row ended; a sentence beside it says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RowEnd {
    /// Its duration was over.
    Complete,
    /// Its measurement ended early, although the run was not asked to end.
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

/// The end of a row, and its reason. It is written with its status beside it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Ending {
    /// How.
    pub ended: RowEnd,
    /// Why numbers are missing or fewer than planned.
    pub reason: Option<String>,
}

impl Ending {
    /// An ending with its reason.
    #[must_use]
    pub fn because(ended: RowEnd, reason: impl Into<String>) -> Self {
        Self { ended, reason: Some(reason.into()) }
    }

    /// The end that the plan gave it.
    #[must_use]
    pub const fn complete() -> Self {
        Self { ended: RowEnd::Complete, reason: None }
    }
}

impl Serialize for Ending {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("status", &self.ended.status())?;
        map.serialize_entry("ended", &self.ended)?;
        map.serialize_entry("reason", &self.reason)?;
        map.end()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_is_written_with_its_status_and_read_back() {
        for (ended, status) in [
            (RowEnd::Complete, RowStatus::Measured),
            (RowEnd::Died, RowStatus::Measured),
            (RowEnd::Failed, RowStatus::Failed),
            (RowEnd::Waiting, RowStatus::Skipped),
            (RowEnd::Unavailable, RowStatus::Skipped),
        ] {
            let ending = Ending::because(ended, "podman is not installed");
            let written = serde_json::to_value(&ending).unwrap();
            assert_eq!(serde_json::from_value::<RowStatus>(written["status"].clone()).unwrap(), status);
            assert_eq!(serde_json::from_value::<Ending>(written).unwrap(), ending);
        }
    }

    #[test]
    fn a_word_is_written_as_it_is_said() {
        for ended in [RowEnd::Complete, RowEnd::Broke, RowEnd::Unavailable, RowEnd::Waiting, RowEnd::Died] {
            assert_eq!(serde_json::to_value(ended).unwrap(), ended.to_string());
        }
    }
}
