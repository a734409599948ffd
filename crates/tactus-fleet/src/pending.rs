//! A job that an engine has.

/// The state of a job, in the engine's own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobState {
    /// It waits, and for what.
    Waiting(String),
    /// It runs; with a remark, where the engine has one (its node does not answer).
    Running(Option<String>),
    /// It has ended, and how. Whether it measured, its bundle says.
    Ended(String),
}
