//! Machines that are missing.

use std::collections::BTreeSet;

use serde::Serialize;

use super::set::Set;
use super::{Asked, DAY_US, moment};

/// A machine that is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Its name.
    pub name: String,
    /// Its key, where it was ever seen.
    pub machine: Option<String>,
    /// When its last run began; `None` if it was never seen.
    pub last: Option<String>,
    /// How many days ago that was.
    pub days: Option<i64>,
}

/// Machines without a run for the days that are asked for, and expected ones that were never seen.
///
/// For an expected name the runs under that name count, for a key all runs of the machine. Copies of one
/// image have one key, so that one copy must not stand for another.
pub fn missing(set: &Set, asked: &Asked) -> Vec<Missing> {
    let called = set.called();
    let (mut all, mut never) = (Vec::new(), Vec::new());
    let mut add = |key: &str, name: &str, runs: &mut dyn Iterator<Item = &usize>| {
        let Some(last) = runs.map(|run| set.runs[*run].started_us).max() else { return };
        let days = asked.now_us.saturating_sub(last) / DAY_US;
        let one = Missing {
            name: name.to_owned(),
            machine: Some(key.to_owned()),
            last: moment(last),
            days: Some(days),
        };
        // One may be expected by its key and by its name.
        if days >= i64::from(asked.missing_after) && (asked.expect.is_empty() || !all.contains(&one)) {
            all.push(one);
        }
    };
    let expected: BTreeSet<&str> = asked.expect.iter().map(String::as_str).collect();
    let machines = set.machines();
    for (key, runs) in &machines {
        let called = called.get(key).map_or("", String::as_str);
        if expected.is_empty() || expected.contains(key) {
            add(key, called, &mut runs.iter());
        }
        let names: BTreeSet<&str> = runs.iter().map(|run| set.runs[*run].name.as_str()).collect();
        for name in names.intersection(&expected) {
            // Others of its name are told apart, unless it has another name by now.
            let is_last = runs.last().is_some_and(|run| set.runs[*run].name == *name);
            let under_it = &mut runs.iter().filter(|run| set.runs[**run].name == *name);
            add(key, if is_last { called } else { name }, under_it);
        }
    }
    for name in &asked.expect {
        let seen = machines.contains_key(name.as_str()) || set.runs.iter().any(|run| run.name == *name);
        let told = never.iter().any(|one: &Missing| one.name == *name);
        if !seen && !told {
            never.push(Missing { name: name.clone(), machine: None, last: None, days: None });
        }
    }
    all.sort_by(|one, other| (other.days, &one.name).cmp(&(one.days, &other.name)));
    never.extend(all);
    never
}
