//! The log: actions and decisions of tactus, with time. All crates send it to [`tracing`]. This module keeps the last
//! lines, for the bundle of a run that breaks, and shows lines of the levels that the user chose. The probe logs
//! nothing: it measures.

use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tactus_model::event::Event as RunEvent;
use tactus_model::text::{clean, no_order};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber, debug, info, warn};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::{Layer, Registry};

use crate::allowance::clip;
use crate::plan::Resolved;

/// How many lines are kept.
pub const KEPT: usize = 200;
/// The longest line, in bytes.
pub const LONGEST_LINE: usize = 2000;

/// Begins the log of this program; a second call changes nothing. Lines of the levels in `shown` go to `show`, one at a time.
pub fn begin(shown: Option<Targets>, show: fn(&str)) {
    if tracing::subscriber::set_global_default(log(shown, show)).is_err() {
        debug!("the log has begun already");
    }
}

pub(crate) fn log(shown: Option<Targets>, show: fn(&str)) -> impl Subscriber + Send + Sync {
    let kept = Targets::new().with_target("tactus", LevelFilter::DEBUG);
    let shown = shown.map(|levels| Shown(show).with_filter(levels));
    Registry::default().with(Kept::default().with_filter(kept)).with(shown)
}

/// The levels that a text names: `info`, or those of crates: `warn,tactus_system=debug`.
///
/// # Errors
/// What is wrong with it.
pub fn levels(text: &str) -> Result<Targets, String> {
    for part in text.split(',') {
        let level = part.rsplit_once('=').map_or(part, |(_, level)| level).trim();
        if level.is_empty() || level.parse::<LevelFilter>().is_err() {
            return Err(format!("{level:?} is not a level"));
        }
    }
    text.parse::<Targets>().map_err(|error| error.to_string())
}

/// The last lines, oldest first; `None`: nothing was logged.
#[must_use]
pub fn last_lines() -> Option<String> {
    let text = |kept: &Kept| kept.lines().iter().fold(String::new(), |text, line| text + line + "\n");
    let text = tracing::dispatcher::get_default(|log| log.downcast_ref::<Kept>().map(text));
    text.filter(|text| !text.is_empty())
}

/// The last lines.
#[derive(Default)]
struct Kept(Mutex<VecDeque<String>>);

impl Kept {
    fn lines(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Subscriber> Layer<S> for Kept {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let line = line(event);
        let mut lines = self.lines();
        if lines.len() >= KEPT {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

/// Shows each event.
struct Shown(fn(&str));

impl<S: Subscriber> Layer<S> for Shown {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        (self.0)(&line(event));
    }
}

/// An event as a line, whatever is in it: no control characters, no line break, and no longer than [`LONGEST_LINE`].
fn line(event: &Event<'_>) -> String {
    let mut words = Words::default();
    event.record(&mut words);
    let (at, own) = (jiff::Timestamp::now(), event.metadata());
    let mut line =
        clean(&format!("{at:.3} {:>5} {}: {}{}", own.level(), own.target(), words.message, words.fields));
    clip(&mut line, LONGEST_LINE);
    no_order(&line).into_owned()
}

/// The message of an event, and its fields as ` name=value`.
#[derive(Default)]
struct Words {
    message: String,
    fields: String,
}

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

/// Logs what was decided about a plan: which environments are usable, their CPUs, and what is changed or left out.
pub(crate) fn resolved(resolved: &Resolved) {
    for (name, environment) in &resolved.environments {
        let kind = environment.spec.kind.as_str();
        if let Some(why) = &environment.obstacle {
            info!(kind, why, "environment {name} is not usable");
            continue;
        }
        info!(
            kind,
            cpus = %environment.layout.outside(),
            measured = %resolved.measured_in(name),
            housekeeping = %environment.housekeeping,
            "environment {name} is usable",
        );
    }
    for scenario in &resolved.scenarios {
        match &scenario.skip {
            Some(why) => info!(why, "scenario {} is skipped", scenario.name),
            None => debug!(duration_ns = scenario.duration_ns, "scenario {} is measured", scenario.name),
        }
        for less in &scenario.reduced {
            info!(less, "scenario {} is changed for this machine", scenario.name);
        }
    }
    for row in &resolved.rows {
        if let Some(require) = &row.result.require {
            info!(environment = row.result.environment, "limits of {}: {}", row.result.name, limits(require));
        }
    }
}

fn limits(require: &tactus_model::plan::Require) -> String {
    serde_json::to_string(require).unwrap_or_default()
}

/// Logs an event of a run, except events of every tick.
pub(crate) fn event(event: &RunEvent) {
    match event {
        RunEvent::RunStarted { plan, rows, .. } => info!(rows, "the run of plan {plan} begins"),
        RunEvent::EnvironmentStarting { environment } => info!("environment {environment} starts"),
        RunEvent::EnvironmentKept { environment } => info!("environment {environment} is used again"),
        RunEvent::EnvironmentUp { environment, evidence, after_ms } => {
            info!(after_ms, evidence = ?evidence, "environment {environment} is up");
        }
        RunEvent::RowStarted { row, name, environment, .. } => {
            info!(row = row + 1, environment, "measuring {name} begins");
        }
        RunEvent::Restarted { row, restart } => warn!(row = row + 1, "{}", restart.sentence()),
        RunEvent::FramesLost { environment, frames } => {
            warn!(frames, "environment {environment} lost frames");
        }
        RunEvent::Noted { environment, note } => {
            info!(environment, hint = note.hint, "note: {}", note.text);
        }
        RunEvent::RowFinished { row, ending, .. } => {
            info!(row = row + 1, reason = ending.reason, "measuring ended: {}", ending.ended);
        }
        RunEvent::RunFinished { status } => info!(status = ?status, "the run ends"),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_of_the_field_and_other_words_are_refused() {
        assert!(levels("info").unwrap().would_enable("tactus_system", &tracing::Level::INFO));
        assert!(!levels("info").unwrap().would_enable("tactus_system", &tracing::Level::DEBUG));
        let one = levels("warn,tactus_system=debug").unwrap();
        assert!(one.would_enable("tactus_system", &tracing::Level::DEBUG));
        assert!(!one.would_enable("tactus_run", &tracing::Level::INFO));
        for wrong in ["verbose", "tactus_system=much", "info,", "yes"] {
            assert!(levels(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_last_lines_are_kept_each_clean_and_none_without_an_end() {
        let hostile = "a\u{1b}[31m\n::error::b\u{202e}";
        let text = tracing::subscriber::with_default(log(None, |_| {}), || {
            for n in 0..3 * KEPT {
                info!(target: "tactus_test", "line {n}");
                debug!(target: "other", "not ours");
            }
            info!(target: "tactus_test", path = hostile, "{hostile}{}", "x".repeat(100_000));
            last_lines()
        });
        let text = text.unwrap();
        assert_eq!(text.lines().count(), KEPT);
        assert!(text.contains(" INFO tactus_test: line 599\n") && !text.contains("not ours"), "{text}");
        let long = text.lines().find(|line| line.ends_with(" [...]")).unwrap();
        assert_eq!(long.len(), LONGEST_LINE);
        assert!(long.contains("a\u{fffd}[31m ::error::b\u{fffd}xxx"), "{long}");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
    }
}
