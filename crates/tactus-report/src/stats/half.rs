//! The state of one half of a pair: it was measured whole, it broke, or it is unknown.

use tactus_model::bundle::RowResult;
use tactus_model::clock::ClockCheck;
use tactus_model::outcome::RowEnd;

use super::runs::is_whole;
use crate::row::lacking;

/// A run that is compared with another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Half {
    /// It was measured to its end: it has values.
    Whole,
    /// It was tried and did not come to its end: it is worse than each that did, for this reason.
    Broken(String),
    /// It says nothing of what is compared, for this reason: it was interrupted, or its turn never came.
    Unknown(String),
}

impl Half {
    /// The state of a run.
    #[must_use]
    pub fn of(result: &RowResult) -> Self {
        if result.damaged {
            return Self::Unknown("the bundle is damaged".into());
        }
        let why = |else_said: &str| result.reason.clone().unwrap_or_else(|| else_said.to_owned());
        match result.ended {
            RowEnd::Waiting | RowEnd::Interrupted | RowEnd::Died | RowEnd::Refused | RowEnd::Unavailable => {
                Self::Unknown(why("it was not measured to its end"))
            }
            RowEnd::Failed => Self::Broken(why("it failed")),
            RowEnd::Stopped => Self::Broken(why("it ended early")),
            RowEnd::Broke => Self::Broken(why("a latency exceeded the limit of `break`")),
            RowEnd::Complete => complete(result),
        }
    }
}

/// The state of a run that came to its end.
fn complete(result: &RowResult) -> Half {
    if let Some(restart) = result.restarts.first() {
        return Half::Broken(restart.sentence());
    }
    if let Some(thread) = result.missing().next() {
        return Half::Broken(format!("nothing arrived of thread {} on CPU {}", thread.thread, thread.cpu));
    }
    let cut = result.threads.is_some() && result.series().iter().any(|series| !series.whole);
    if cut || result.clock.as_ref().is_some_and(ClockCheck::jumped) {
        return Half::Unknown(lacking(result).unwrap_or_else(|| "a part of it did not arrive".into()));
    }
    match is_whole(result) {
        true => Half::Whole,
        false => Half::Broken(result.reason.clone().unwrap_or_else(|| "nothing was measured".into())),
    }
}
