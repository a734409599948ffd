//! How a row ended, and a run.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

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
    /// What stands where a bundle before format 1.3 has no word for it, until its reader has put it in.
    pub(crate) const fn unsaid() -> Self {
        Self::Complete
    }

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

    /// How a row of a bundle before format 1.3 ended, which said it in a sentence. Nothing else reads
    /// sentences.
    #[must_use]
    pub fn of_older(status: RowStatus, reason: Option<&str>) -> Self {
        match (status, reason) {
            (RowStatus::Failed, _) => Self::Failed,
            (RowStatus::Skipped, None) => Self::Waiting,
            (RowStatus::Skipped, Some(reason)) if reason.starts_with("the run was interrupted before") => {
                Self::Waiting
            }
            (RowStatus::Skipped, Some(_)) => Self::Unavailable,
            (RowStatus::Measured, None) => Self::Complete,
            (RowStatus::Measured, Some("the run died while this was measured")) => Self::Died,
            (RowStatus::Measured, Some(reason)) if reason.starts_with("interrupted after ") => {
                Self::Interrupted
            }
            (RowStatus::Measured, Some(reason)) if reason.starts_with("stopped after ") => Self::Stopped,
            (RowStatus::Measured, Some(_)) => Self::Broke,
        }
    }

    /// Whether it was measured to the end that the plan gave it: its duration, or a limit.
    #[must_use]
    pub const fn is_planned(self) -> bool {
        matches!(self, Self::Complete | Self::Broke)
    }
}

/// How a row ended, and why. It is written with its status beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// How.
    pub ended: RowEnd,
    /// Why, where it has no numbers or fewer than planned.
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

#[derive(Serialize, Deserialize)]
struct Written {
    status: RowStatus,
    #[serde(default)]
    ended: Option<RowEnd>,
    reason: Option<String>,
}

impl Serialize for Ending {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { ended, reason } = self.clone();
        Written { status: ended.status(), ended: Some(ended), reason }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Ending {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { status, ended, reason } = Written::deserialize(deserializer)?;
        let ended = ended.unwrap_or_else(|| RowEnd::of_older(status, reason.as_deref()));
        Ok(Self { ended, reason })
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
    fn what_older_bundles_said_in_sentences_is_what_this_one_says_in_a_word() {
        use RowStatus::{Failed, Measured, Skipped};
        for (status, reason, ended) in [
            (Measured, None, RowEnd::Complete),
            (Measured, Some("the run died while this was measured"), RowEnd::Died),
            (Measured, Some("interrupted after 3.2 s"), RowEnd::Interrupted),
            (Measured, Some("stopped after 0.5 s"), RowEnd::Stopped),
            (Measured, Some("CPU 1 woke 200000 ns late, more than the 100 ns of `break`"), RowEnd::Broke),
            (Failed, Some("guest ended while it measured: interrupted after all"), RowEnd::Failed),
            (Skipped, None, RowEnd::Waiting),
            (Skipped, Some("the run was interrupted before its turn"), RowEnd::Waiting),
            (Skipped, Some("the run was interrupted before this was measured"), RowEnd::Waiting),
            (Skipped, Some("podman is not installed"), RowEnd::Unavailable),
        ] {
            assert_eq!(RowEnd::of_older(status, reason), ended, "{reason:?}");
            assert_eq!(ended.status(), status);
            let text = serde_json::json!({ "status": status, "reason": reason });
            let ending: Ending = serde_json::from_value(text).unwrap();
            assert_eq!(ending, Ending { ended, reason: reason.map(str::to_owned) });
            let again = serde_json::to_value(&ending).unwrap();
            assert_eq!(serde_json::from_value::<Ending>(again).unwrap(), ending);
        }
    }

    #[test]
    fn a_word_is_written_as_it_is_said() {
        for ended in [RowEnd::Complete, RowEnd::Broke, RowEnd::Unavailable, RowEnd::Waiting, RowEnd::Died] {
            assert_eq!(serde_json::to_value(ended).unwrap(), ended.to_string());
        }
    }
}
