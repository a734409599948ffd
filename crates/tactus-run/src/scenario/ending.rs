//! How each row of a scenario ends.

use std::time::Instant;

use tactus_model::event::Event;
use tactus_model::outcome::{Ending, RowEnd};

use super::ScenarioRun;
use crate::context::{Context, RunError};

/// How a row ended, and after how long; if the probe could not say how long, `None`: then its last tick counts.
pub(super) struct Ended {
    ending: Ending,
    measured_ns: Option<u64>,
}

impl ScenarioRun<'_> {
    /// Notes how the rows of an environment ended; the first word counts.
    pub(super) fn finish(
        &mut self,
        context: &Context<'_>,
        environment: &str,
        ending: &Ending,
        measured_ns: Option<u64>,
    ) {
        for row in self.rows.clone() {
            if context.resolved.rows[row].result.environment == environment {
                self.ended.entry(row).or_insert_with(|| Ended { ending: ending.clone(), measured_ns });
            }
        }
    }

    /// An environment has ended that others have as their peer: their rows are without it from now on.
    pub(super) fn peer_ended(&mut self, context: &Context<'_>, name: &str, words: &str) {
        let is_peer = |row: &usize| context.resolved.rows[*row].peer.as_deref() == Some(name);
        let rows: Vec<usize> = self.rows.clone().filter(is_peer).collect();
        if rows.is_empty() {
            return;
        }
        let reason = format!("{name}, the peer of this measurement, ended: {words}");
        for row in rows {
            let ending = Ending::because(RowEnd::Failed, reason.clone());
            self.ended.entry(row).or_insert(Ended { ending, measured_ns: None });
        }
    }

    /// Reports the values that are left, and the end of every row whose end is known.
    pub(super) fn end(&mut self, context: &mut Context<'_>) -> Result<(), RunError> {
        for (row, value) in self.values.untold() {
            context.emit(Event::ValueMeasured { row, value })?;
        }
        for (environment, frames) in self.lost.due(Instant::now(), true) {
            context.emit(Event::FramesLost { environment, frames })?;
        }
        for (row, Ended { ending, measured_ns }) in std::mem::take(&mut self.ended) {
            let ending =
                if self.counted.contains(&row) { ending } else { self.numberless(context, row, ending) };
            let measured_ns = measured_ns.or_else(|| self.reached.get(&row).copied()).unwrap_or(0);
            context.emit(Event::RowFinished { row, ending, measured_ns })?;
        }
        Ok(())
    }

    /// A number of a row has arrived.
    pub(super) fn counted(&mut self, row: usize, number: bool) {
        if number {
            self.counted.insert(row);
        }
    }

    /// The ending of a row without any number: even if it came to its end, it was not measured.
    fn numberless(&self, context: &Context<'_>, row: usize, ending: Ending) -> Ending {
        if !ending.ended.is_planned() {
            return ending;
        }
        let environment = &context.resolved.rows[row].result.environment;
        let reason = match self.lost.of(environment) {
            0 => format!("{environment} measured, but reported no number"),
            lost => format!(
                "none of its numbers arrived: {lost} frames were lost between {environment} and tactus; keep \
                 other output off the line (quiet console, loglevel=1), or use a longer tick"
            ),
        };
        Ending::because(RowEnd::Failed, reason)
    }

    /// Ends every row; rows without an ending yet get this one.
    pub(super) fn end_all(&mut self, context: &mut Context<'_>, ending: &Ending) -> Result<(), RunError> {
        for row in self.rows.clone() {
            self.ended.entry(row).or_insert_with(|| Ended { ending: ending.clone(), measured_ns: None });
        }
        self.end(context)
    }

    /// The row of an activity, whichever of its ends says something of it.
    pub(super) fn row_of(&self, context: &Context<'_>, activity: u32) -> Option<usize> {
        self.rows.clone().find(|row| context.resolved.rows[*row].activity == activity)
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
