//! The state of one machine of a fleet, and how the engine's answers change it. Pure.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::pending::JobState;

/// Where a machine stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is on the list, and its turn has not come.
    Listed,
    /// The engine says that nothing can be started there now.
    Away,
    /// Its job waits.
    Waiting,
    /// Its job runs.
    Running,
    /// Its job has ended, or could not be made, and there is no finished bundle.
    Failed,
    /// There is a bundle that is not what was written, or not of this machine or plan.
    Refused,
    /// Its bundle is here, and holds.
    Measured,
}

impl State {
    /// In one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Listed => "listed",
            Self::Away => "away",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Measured => "measured",
        }
    }

    /// Whether the engine has a job of it.
    #[must_use]
    pub fn is_under_way(self) -> bool {
        matches!(self, Self::Waiting | Self::Running)
    }
}

/// The longest words of an engine or a bundle that are kept, in characters, and the longest name.
const MOST_WORDS: usize = 600;
const MOST_NAME: usize = 256;

/// One machine: a file of the fleet's directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Its name, as the engine has it.
    pub machine: String,
    /// Its name as that of files.
    pub key: String,
    /// Where it stands.
    pub state: State,
    /// Why, in the engine's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its last job, as the engine names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// How many jobs it had.
    #[serde(default)]
    pub attempts: u32,
    /// When the last one was given to the engine, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted: Option<String>,
    /// Its bundle, once that is here and holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<Home>,
}

/// A bundle that is here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    /// SHA-256 of its manifest, which has those of all its files.
    pub manifest_sha256: String,
    /// The tactus that wrote it.
    pub tactus: String,
    /// When its run ended, RFC 3339.
    pub finished: String,
    /// The machine, for as long as its system is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_id: Option<String>,
}

impl Row {
    /// A machine whose turn has not come.
    #[must_use]
    pub fn new(machine: &str) -> Self {
        Self {
            machine: machine.into(),
            key: crate::name::file_name(machine),
            state: State::Listed,
            reason: None,
            job: None,
            attempts: 0,
            submitted: None,
            bundle: None,
        }
    }

    /// The same with its texts as long as they may be: they are strangers' words.
    #[must_use]
    pub fn cut(mut self) -> Self {
        let cut = |text: &mut String, most: usize| {
            if let Some((end, _)) = text.char_indices().nth(most) {
                text.truncate(end);
            }
        };
        self.reason.iter_mut().for_each(|text| cut(text, MOST_WORDS));
        self.job.iter_mut().for_each(|text| cut(text, MOST_NAME));
        if let Some(home) = &mut self.bundle {
            let Home { tactus, finished, machine_id, manifest_sha256: _ } = home;
            [Some(tactus), Some(finished), machine_id.as_mut()]
                .into_iter()
                .flatten()
                .for_each(|text| cut(text, MOST_NAME));
        }
        self
    }

    /// Its bundle as one file, in the fleet's directory: where no machine's own name is one.
    #[must_use]
    pub fn archive(&self) -> String {
        format!("archives/{}.tar.gz", self.key)
    }

    /// The engine took its job.
    pub fn submitted(&mut self, job: String, now: String) {
        (self.state, self.reason) = (State::Waiting, None);
        (self.job, self.submitted) = (Some(job), Some(now));
        self.attempts += 1;
    }

    /// Takes in the engine's answer on its job. Only a bundle makes the machine measured: the end of a job is just a
    /// message.
    pub fn heard(&mut self, job: &JobState) {
        if !self.state.is_under_way() {
            return;
        }
        (self.state, self.reason) = match job {
            JobState::Waiting(reason) => (State::Waiting, Some(reason.clone())),
            JobState::Running(reason) => (State::Running, reason.clone()),
            JobState::Ended(reason) => (State::Failed, Some(reason.clone())),
        };
    }

    /// Its job fails if it is still under way and was given to the engine longer ago than this. One whose time is not known has
    /// none left.
    pub fn limited(&mut self, limit: Duration, now: Timestamp) {
        let submitted = self.submitted.as_deref().and_then(|text| text.parse::<Timestamp>().ok());
        let most = i64::try_from(limit.as_secs()).unwrap_or(i64::MAX);
        let is_over = submitted.is_none_or(|then| now.as_second().saturating_sub(then.as_second()) > most);
        if self.state.is_under_way() && is_over {
            let said = self.reason.take().map(|said| format!(": {said}")).unwrap_or_default();
            let over = format!("its job did not end within {most} s (a later bundle still counts){said}");
            (self.state, self.reason) = (State::Failed, Some(over));
        }
    }

    /// Its bundle is here, and holds.
    pub fn measured(&mut self, bundle: Home) {
        (self.state, self.reason, self.bundle) = (State::Measured, None, Some(bundle));
    }

    /// The bundle that came is refused. While a job is under way, only the reason is kept: the job may bring a better
    /// bundle.
    pub fn refused(&mut self, reason: String) {
        if !self.state.is_under_way() {
            self.state = State::Refused;
        }
        (self.reason, self.bundle) = (Some(reason), None);
    }

    /// Takes in the engine's answer on the machine, if it has no job of it.
    pub fn away(&mut self, reason: String) {
        if matches!(self.state, State::Listed | State::Away) {
            (self.state, self.reason) = (State::Away, Some(reason));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundle_decides_and_not_how_the_engine_says_that_the_job_ended() {
        let mut row = Row::new("n1");
        row.submitted("7".into(), "now".into());
        row.heard(&JobState::Ended("NODE_FAIL".into()));
        assert_eq!((row.state, row.reason.as_deref()), (State::Failed, Some("NODE_FAIL")));
        row.measured(Home::default());
        row.heard(&JobState::Ended("FAILED".into()));
        assert_eq!((row.state, row.reason), (State::Measured, None), "a late word takes nothing back");
    }

    #[test]
    fn who_waits_or_runs_keeps_the_engines_reason_and_his_state() {
        let mut row = Row::new("n1");
        row.submitted("7".into(), "now".into());
        row.heard(&JobState::Waiting("ReqNodeNotAvail".into()));
        assert_eq!(row.reason.as_deref(), Some("ReqNodeNotAvail"));
        row.away("drained".into());
        assert_eq!(row.state, State::Waiting);
        row.refused("its checksum differs".into());
        assert_eq!(row.state, State::Waiting, "its job may bring a better one");
    }

    #[test]
    fn a_job_that_is_under_way_for_longer_than_its_limit_has_failed_with_the_engines_last_words() {
        let (limit, now) = (Duration::from_secs(60), "2026-03-02T10:01:30Z".parse::<Timestamp>().unwrap());
        let limited = |submitted: &str, job: &JobState| {
            let mut row = Row::new("n1");
            row.submitted("7".into(), submitted.into());
            row.heard(job);
            row.limited(limit, now);
            (row.state, row.reason)
        };
        let silent = JobState::Running(Some("unreachable".into()));
        for submitted in ["2026-03-02T10:00:30Z", "2026-03-02T11:00:00Z"] {
            assert_eq!(limited(submitted, &silent), (State::Running, Some("unreachable".into())));
        }
        for submitted in ["2026-03-02T10:00:29Z", "2026-03-01T10:00:00Z", "", "now"] {
            let (state, reason) = limited(submitted, &silent);
            let reason = reason.unwrap();
            assert_eq!(state, State::Failed, "{submitted}");
            assert!(reason.starts_with("its job did not end within 60 s"), "{reason}");
            assert!(reason.ends_with(": unreachable"), "{reason}");
        }
        let waits = limited("2026-03-01T10:00:00Z", &JobState::Waiting("ImagePullBackOff".into()));
        assert_eq!(waits.0, State::Failed, "a place in the wave is held by those that wait, too");
        let ended = limited("2026-03-01T10:00:00Z", &JobState::Ended("exit 0".into()));
        assert_eq!(ended, (State::Failed, Some("exit 0".into())), "how it ended is known");
    }

    #[test]
    fn a_machine_that_failed_keeps_its_reason_when_it_goes_away() {
        let mut row = Row::new("n1");
        row.away("drained: disk".into());
        assert_eq!(row.state, State::Away);
        row.submitted("7".into(), "now".into());
        row.heard(&JobState::Ended("TIMEOUT".into()));
        row.away("down*".into());
        assert_eq!((row.state, row.reason.as_deref()), (State::Failed, Some("TIMEOUT")));
    }
}
