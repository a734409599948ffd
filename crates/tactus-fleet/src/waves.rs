//! Chooses the machines that get the next jobs. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::Ready;
use crate::row::{Row, State};

/// The machines, by their place in `rows`, that get a job now. No more than `wave` machines are under way at a time.
/// Machines that never had a turn come first, among equals the idle ones, then in the order of the list. `tried` are
/// the machines (by key) that had a job in this campaign: they get no second one. A machine that is away, or that the
/// engine no longer lists, gets none.
#[must_use]
pub fn next(
    rows: &[Row],
    ready: &BTreeMap<String, Ready>,
    tried: &BTreeSet<String>,
    wave: usize,
) -> Vec<usize> {
    let under_way = rows.iter().filter(|row| row.state.is_under_way()).count();
    let may = |row: &Row| {
        matches!(row.state, State::Listed | State::Away | State::Failed | State::Refused)
            && !tried.contains(&row.key)
    };
    let turn = |row: &Row| match ready.get(&row.machine) {
        None | Some(Ready::Away(_)) => None,
        Some(ready) => {
            let before = match row.state {
                State::Listed => 0,
                State::Away => 1,
                _ => 2,
            };
            Some((before, *ready != Ready::Idle))
        }
    };
    let open = rows.iter().enumerate().filter(|(_, row)| may(row));
    let mut chosen: Vec<_> = open.filter_map(|(at, row)| Some((turn(row)?, at))).collect();
    chosen.sort_unstable();
    chosen.into_iter().map(|(_, at)| at).take(wave.saturating_sub(under_way)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(states: &[State]) -> Vec<Row> {
        let row = |(n, state): (usize, &State)| Row { state: *state, ..Row::new(&format!("n{n}")) };
        states.iter().enumerate().map(row).collect()
    }

    fn ready(of: &[Ready]) -> BTreeMap<String, Ready> {
        of.iter().enumerate().map(|(n, ready)| (format!("n{n}"), ready.clone())).collect()
    }

    #[test]
    fn idle_machines_come_first_busy_ones_after_and_those_away_never() {
        let rows = fleet(&[State::Listed; 5]);
        let of = [
            Ready::Busy("allocated".into()),
            Ready::Away("drained".into()),
            Ready::Idle,
            Ready::Busy("mixed".into()),
            Ready::Idle,
        ];
        let chosen = |wave| next(&rows, &ready(&of), &BTreeSet::new(), wave);
        assert_eq!(chosen(10), [2, 4, 0, 3]);
        assert_eq!(chosen(3), [2, 4, 0]);
        assert_eq!(
            next(&rows, &BTreeMap::new(), &BTreeSet::new(), 10),
            [0; 0],
            "none that the engine does not name"
        );
    }

    #[test]
    fn no_more_are_under_way_than_a_wave() {
        let rows = fleet(&[State::Running, State::Waiting, State::Listed, State::Measured, State::Listed]);
        let idle = ready(&[Ready::Idle, Ready::Idle, Ready::Idle, Ready::Idle, Ready::Idle]);
        assert_eq!(next(&rows, &idle, &BTreeSet::new(), 3), [2]);
        assert_eq!(next(&rows, &idle, &BTreeSet::new(), 2), [0; 0]);
    }

    #[test]
    fn whose_turn_never_came_comes_before_who_failed_though_he_is_busy() {
        let rows = fleet(&[State::Failed, State::Refused, State::Listed, State::Listed]);
        let of = [Ready::Idle, Ready::Idle, Ready::Busy("allocated".into()), Ready::Idle];
        assert_eq!(next(&rows, &ready(&of), &BTreeSet::new(), 3), [3, 2, 0]);
    }

    #[test]
    fn who_failed_before_is_tried_again_once_and_who_is_measured_never() {
        let rows = fleet(&[State::Failed, State::Refused, State::Measured, State::Away]);
        let idle = ready(&[Ready::Idle, Ready::Idle, Ready::Idle, Ready::Idle]);
        assert_eq!(next(&rows, &idle, &BTreeSet::new(), 9), [3, 0, 1]);
        assert_eq!(next(&rows, &idle, &["n0".to_owned(), "n3".into()].into(), 9), [1]);
    }
}
