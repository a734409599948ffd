//! How long a run still takes: what its scenarios measure, and what came before each of them on average.

use std::time::Duration;

use tactus_run::plan::Resolved;

/// The rows of a scenario are measured at the same time: it is the scenarios that take time.
#[derive(Default)]
pub struct TimeLeft {
    scenarios: Vec<Scenario>,
    /// The scenario of each row.
    of_row: Vec<usize>,
    /// When the run began, or when the last scenario that measured ended, in ms since the epoch.
    idle_since_ms: Option<i64>,
    starts: u32,
    starting_ms: u64,
}

struct Scenario {
    /// How long it measures.
    measures_ns: u64,
    /// How long it is to be left alone before that, as long as no scenario has shown how long they take to begin.
    settles_ns: u64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Over,
}

impl TimeLeft {
    pub fn of(resolved: &Resolved) -> Self {
        let mut of_row = vec![0; resolved.rows.len()];
        for (number, scenario) in resolved.scenarios.iter().enumerate() {
            of_row[scenario.rows.clone()].fill(number);
        }
        let scenarios = resolved.scenarios.iter().map(|scenario| Scenario {
            measures_ns: scenario.duration_ns,
            settles_ns: scenario.expected_ns().saturating_sub(scenario.duration_ns),
            state: if scenario.expected_ns() == 0 { State::Over } else { State::Waiting },
        });
        Self { scenarios: scenarios.collect(), of_row, ..Self::default() }
    }

    /// Something happened: the run has begun at the latest then.
    pub fn begun(&mut self, at_ms: i64) {
        self.idle_since_ms.get_or_insert(at_ms);
    }

    pub fn row_started(&mut self, row: usize, at_ms: i64) {
        let Some(scenario) = self.of_row.get(row).and_then(|number| self.scenarios.get_mut(*number)) else {
            return;
        };
        if scenario.state == State::Waiting {
            scenario.state = State::Running;
            self.starts += 1;
            self.starting_ms += u64::try_from(at_ms - self.idle_since_ms.unwrap_or(at_ms)).unwrap_or(0);
        }
    }

    /// The first row of a scenario that has ended ends it: the others end with it.
    pub fn row_ended(&mut self, row: usize, at_ms: i64) {
        let Some(scenario) = self.of_row.get(row).and_then(|number| self.scenarios.get_mut(*number)) else {
            return;
        };
        if scenario.state == State::Running {
            self.idle_since_ms = Some(at_ms);
        }
        scenario.state = State::Over;
    }

    /// The time that is left when the running scenario has measured for `done_ns`.
    pub fn after(&self, done_ns: u64) -> Duration {
        let of = |state| self.scenarios.iter().filter(move |own| own.state == state);
        let running = of(State::Running).map(|own| own.measures_ns.saturating_sub(done_ns)).sum::<u64>();
        // From the end of one measurement to the beginning of the next one, with the time that it is left alone.
        let began = (self.starts > 0).then(|| self.starting_ms * 1_000_000 / u64::from(self.starts));
        let waiting = of(State::Waiting).map(|own| own.measures_ns + began.unwrap_or(own.settles_ns));
        Duration::from_nanos(running + waiting.sum::<u64>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three_scenarios_of_two_rows() -> TimeLeft {
        let scenario =
            || Scenario { measures_ns: 10_000_000_000, settles_ns: 1_000_000_000, state: State::Waiting };
        TimeLeft {
            scenarios: vec![scenario(), scenario(), scenario()],
            of_row: vec![0, 0, 1, 1, 2, 2],
            ..TimeLeft::default()
        }
    }

    #[test]
    fn rows_that_are_measured_together_take_time_once() {
        let mut left = three_scenarios_of_two_rows();
        assert_eq!(left.after(0).as_secs(), 33, "each is left alone for a second");
        left.begun(0);
        for row in [0, 1] {
            left.row_started(row, 1_000);
        }
        // The second of rest before the first scenario is over: it is not counted twice.
        assert_eq!(left.after(4_000_000_000).as_secs(), 28);
        for row in [0, 1] {
            left.row_ended(row, 11_000);
        }
        assert_eq!(left.after(0).as_secs(), 22);
    }

    #[test]
    fn what_comes_before_a_scenario_is_expected_before_each_that_waits() {
        let mut left = three_scenarios_of_two_rows();
        left.begun(1_000);
        // Four seconds until the first, two until the second, whose environments are up already.
        left.row_started(0, 5_000);
        left.row_started(1, 5_001);
        assert_eq!(left.after(0).as_secs(), 30 + 2 * 4);
        left.row_ended(0, 15_000);
        left.row_ended(1, 15_500);
        left.row_started(2, 17_000);
        left.row_started(3, 17_000);
        assert_eq!(left.after(0).as_secs(), 20 + 3);
        left.row_ended(2, 27_000);
        left.row_ended(3, 27_000);
        assert_eq!(left.after(0).as_secs(), 10 + 3);
    }

    #[test]
    fn what_is_skipped_takes_no_time() {
        let mut left = three_scenarios_of_two_rows();
        left.begun(0);
        left.row_ended(0, 60_000);
        left.row_ended(1, 60_000);
        assert_eq!(left.after(0).as_secs(), 22);
        left.row_started(2, 61_000);
        left.row_ended(3, 71_000);
        left.row_ended(7, 71_000);
        left.row_started(7, 71_000);
        assert_eq!(left.after(0).as_secs(), 10 + 61);
    }
}
