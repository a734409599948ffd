//! How each row of a scenario ends.

use tactus_model::event::{Event, RowStatus};

use super::ScenarioRun;
use crate::engine::{Context, RunError};

/// How a row ended.
pub(super) struct Outcome {
    status: RowStatus,
    reason: Option<String>,
    /// Where the probe could not say it: how far its ticks came.
    measured_ns: Option<u64>,
}

impl ScenarioRun<'_> {
    /// Notes how the rows of a session ended; the first word counts.
    pub(super) fn finish(
        &mut self,
        context: &Context<'_>,
        at: usize,
        status: RowStatus,
        reason: Option<&String>,
        measured_ns: Option<u64>,
    ) {
        for row in self.rows.clone() {
            if context.resolved.rows[row].result.environment == self.sessions[at].name {
                self.outcome.entry(row).or_insert_with(|| Outcome {
                    status,
                    reason: reason.cloned(),
                    measured_ns,
                });
            }
        }
    }

    /// Tells how every row ended that has an outcome.
    pub(super) fn end(&mut self, context: &mut Context<'_>) -> Result<(), RunError> {
        for (row, outcome) in std::mem::take(&mut self.outcome) {
            let Outcome { status, reason, measured_ns } = outcome;
            let measured_ns = measured_ns.or_else(|| self.reached.get(&row).copied()).unwrap_or(0);
            context.emit(Event::RowFinished { row, status, reason, measured_ns })?;
        }
        Ok(())
    }

    /// Ends every row; those without an outcome of their own end with this one.
    pub(super) fn end_all(
        &mut self,
        context: &mut Context<'_>,
        status: RowStatus,
        reason: &str,
    ) -> Result<(), RunError> {
        for row in self.rows.clone() {
            let reason = Some(reason.to_owned());
            self.outcome.entry(row).or_insert(Outcome { status, reason, measured_ns: None });
        }
        self.end(context)
    }

    /// The row of an activity of a session.
    pub(super) fn row(&self, context: &Context<'_>, at: usize, activity: u32) -> Option<usize> {
        let name = &self.sessions.get(at)?.name;
        self.rows.clone().find(|row| {
            let planned = &context.resolved.rows[*row];
            planned.activity == activity && planned.result.environment == *name
        })
    }
}
