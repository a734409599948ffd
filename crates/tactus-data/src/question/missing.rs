//! Who is missing.

use serde::Serialize;

use super::set::Set;
use super::{Asked, DAY_US, moment};

/// A machine that is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// What it is called.
    pub name: String,
    /// Its key, where it was ever seen.
    pub machine: Option<String>,
    /// When its last run began; none: it was never seen.
    pub last: Option<String>,
    /// How many days ago that was.
    pub days: Option<i64>,
}

/// Machines without a run for so many days, and those that should be there and never were.
pub fn missing(set: &Set, asked: &Asked) -> Vec<Missing> {
    let called = set.called();
    let (mut all, mut never) = (Vec::new(), Vec::new());
    let expected = |key: &str, runs: &[usize]| {
        let named = |name: &str| asked.expect.iter().any(|expected| expected == name);
        asked.expect.is_empty() || named(key) || runs.iter().any(|run| named(&set.runs[*run].name))
    };
    let machines = set.machines();
    for (key, runs) in &machines {
        let Some(last) = runs.last().map(|run| set.runs[*run].started_us) else { continue };
        let days = asked.now_us.saturating_sub(last) / DAY_US;
        if days >= i64::from(asked.missing_after) && expected(key, runs) {
            all.push(Missing {
                name: called.get(key).cloned().unwrap_or_default(),
                machine: Some((*key).to_owned()),
                last: moment(last),
                days: Some(days),
            });
        }
    }
    for name in &asked.expect {
        let seen = machines.keys().any(|key| key == name) || set.runs.iter().any(|run| run.name == *name);
        let told = never.iter().any(|one: &Missing| one.name == *name);
        if !seen && !told {
            never.push(Missing { name: name.clone(), machine: None, last: None, days: None });
        }
    }
    all.sort_by(|one, other| (other.days, &one.name).cmp(&(one.days, &other.name)));
    never.extend(all);
    never
}
