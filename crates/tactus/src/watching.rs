//! The viewers of a run: the live screen, and the metrics. Both are behind the run's bounded channel and, as all
//! threads of the command, on CPUs that are not measured. So neither can hold anything up.

mod terminal_guard;

use std::net::SocketAddr;
use std::time::Duration;

use tactus_model::event::{Event, Stamped};
use tactus_run::plan::{Resolved, RowPlan};
use tactus_run::{Audits, Interrupt, Marks, Sink};
use tactus_system::{Real, System};
use tactus_watch::Shared;
use tactus_watch::screen::{Look, human};
use tactus_watch::state::{Planned, Watched};
use tactus_watch::terminal::{Screen, is_possible};
use tactus_watch::view::{Asked, View};

use crate::cli::Screen as Options;
use crate::exit::Failure;
use crate::say::{self, say};
use crate::time_left::TimeLeft;

use terminal_guard::TerminalGuard;

/// Those who watch a run.
pub struct Watching {
    shared: Shared,
    screen: bool,
    metrics: Option<SocketAddr>,
}

impl Watching {
    /// Without a screen and without metrics.
    pub fn nobody() -> Self {
        Self { shared: Shared::new(Watched::default()), screen: false, metrics: None }
    }

    /// As the command line says. `screen`: a terminal can show one, and the user did not ask for lines.
    pub fn of(resolved: &Resolved, options: &Options, screen: bool) -> Self {
        let rows = resolved.rows.iter().enumerate().map(|(number, row)| planned(resolved, number, row));
        let shared = Shared::new(Watched::new(&resolved.plan.name, rows));
        Self { shared, screen: screen && !options.plain && is_possible(), metrics: options.metrics }
    }

    /// Whether there is a live screen.
    pub const fn has_screen(&self) -> bool {
        self.screen
    }

    /// Serves metrics from now on, where somebody asked for them.
    pub fn serve(&self) -> Result<(), Failure> {
        let Some(at) = self.metrics else { return Ok(()) };
        let bound = tactus_watch::http::serve(at, self.shared.clone(), env!("CARGO_PKG_VERSION")).map_err(
            |error| {
                Failure::say(
                    format!("--metrics {at}: {error}"),
                    "name another port, or 0 for a free one: --metrics :0",
                )
            },
        )?;
        say(format_args!("metrics: http://{bound}/metrics"));
        if !bound.ip().is_loopback() {
            say("note: everyone who can reach this address can read the metrics; there is no login");
        }
        Ok(())
    }

    /// The sink for a run's events; `None` without screen and metrics.
    pub fn sink(&self, resolved: &Resolved) -> Option<Box<dyn Sink>> {
        let left = TimeLeft::of(resolved);
        let (shared, audits) = (self.shared.clone(), Audits::of(resolved));
        let (at_ns, measuring_ms) = (0, 0);
        (self.screen || self.metrics.is_some())
            .then(|| Box::new(Follow { shared, left, audits, at_ns, measuring_ms }) as Box<dyn Sink>)
    }

    /// Shows the screen, where there is one, until what this returns is dropped.
    pub fn screen(&self, interrupt: &Interrupt, marks: &Marks) -> Option<Shown> {
        if !self.screen {
            return None;
        }
        let (shared, interrupt, marks) = (self.shared.clone(), interrupt.clone(), marks.clone());
        let ask = move |asked| match asked {
            Asked::End => interrupt.ask(),
            Asked::Mark => mark(&shared, &marks),
            Asked::Nothing => {}
        };
        shown(&self.shared, View::default(), ask)
    }
}

/// Shows the screen until the returned value is dropped; `None`: the terminal cannot be set, which is printed.
pub fn shown(shared: &Shared, view: View, ask: impl FnMut(Asked) + Send + 'static) -> Option<Shown> {
    // Start the guard first: it restores the terminal if all else is killed.
    let guard = TerminalGuard::start();
    say::hold();
    match Screen::open(shared.clone(), view, look(), ask) {
        Ok(screen) => Some(Shown { screen: Some(screen), _guard: guard }),
        Err(error) => {
            say::release();
            say(format_args!("note: there is no live screen: {error}"));
            None
        }
    }
}

/// The screen while it is shown. When it is dropped, the terminal is as before, and what was said meanwhile is said.
pub struct Shown {
    screen: Option<Screen>,
    _guard: Option<TerminalGuard>,
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Some(screen) = self.screen.take() {
            screen.close();
        }
        say::release();
    }
}

/// The abilities of the terminal.
fn look() -> Look {
    let set = |name: &str| Real.variable(name).filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    Look { colour: set("NO_COLOR").is_none(), unicode: locale.contains("utf-8") || locale.contains("utf8") }
}

/// Marks this moment, with where it is in the run.
fn mark(shared: &Shared, marks: &Marks) {
    let mut watched = shared.lock();
    let rows = watched.current().into_iter().map(|row| {
        let row = &watched.rows[row];
        format!("{} in {}", human(Duration::from_nanos(row.at_ns)), row.planned.environment)
    });
    let rows: Vec<String> = rows.collect();
    let scenario = watched.current().first().map(|row| watched.rows[*row].planned.name.clone());
    let into = scenario.map(|name| format!(": {}, of `{name}`", rows.join(", "))).unwrap_or_default();
    let at = jiff::Zoned::now().strftime("%H:%M:%S").to_string();
    if marks.add(format!("marked by the user at {at}{into}")) {
        watched.marks += 1;
    }
}

/// A row as it was planned.
fn planned(resolved: &Resolved, number: usize, row: &RowPlan) -> Planned {
    let result = &row.result;
    let run = result.repeat.map(|run| format!(" (run {run})")).unwrap_or_default();
    let word = |table: &serde_json::Value| {
        let kind = table.get("kind").and_then(|kind| kind.as_str()).unwrap_or("?").to_owned();
        let place = table.get("in").and_then(|place| place.as_str());
        let elsewhere = place.filter(|place| *place != result.environment);
        elsewhere.map_or(kind.clone(), |place| format!("{kind} in {place}"))
    };
    let scenario = resolved.scenarios.iter().find(|scenario| scenario.rows.contains(&number));
    let required = result.require.as_ref().or_else(|| scenario.and_then(|own| own.require.as_ref()));
    Planned {
        name: result.name.clone() + &run,
        environment: result.environment.clone(),
        measurement: result.measurement.entry().name.to_owned(),
        periods: result.measurement.has_periods(),
        beside: result.load.iter().chain(&result.fault).map(word).collect(),
        planned_ns: result.slice.map_or(result.planned_ns, |slice| slice.whole_ns),
        slice: result.slice,
        limit_ns: required.and_then(|require| require.max).map(|max| max.0),
    }
}

/// Takes in events for those who watch.
struct Follow {
    shared: Shared,
    left: TimeLeft,
    audits: Audits,
    /// How long what runs has measured.
    at_ns: u64,
    measuring_ms: i64,
}

impl Sink for Follow {
    fn take(&mut self, stamped: &Stamped) {
        self.left.begun(stamped.at_ms);
        match &stamped.event {
            Event::RowStarted { row, .. } => {
                self.left.row_started(*row, stamped.at_ms);
                (self.at_ns, self.measuring_ms) = (0, stamped.at_ms);
            }
            Event::Ticked(ticked) => self.at_ns = self.at_ns.max(ticked.at_ns),
            Event::ValueMeasured { .. } => {
                let passed = u64::try_from(stamped.at_ms.saturating_sub(self.measuring_ms)).unwrap_or(0);
                self.at_ns = passed.saturating_mul(1_000_000);
            }
            Event::RowFinished { row, .. } => {
                self.left.row_ended(*row, stamped.at_ms);
                self.at_ns = 0;
            }
            Event::FactsCollected { environment, facts: Some(facts), .. } => {
                if let Some(audit) = self.audits.of_environment(environment, facts) {
                    let found = audit.found().map(|finding| finding.severity);
                    self.shared.lock().found(environment, found);
                }
            }
            _ => {}
        }
        let mut watched = self.shared.lock();
        watched.take(stamped);
        watched.left = Some(self.left.after(self.at_ns));
    }
}
