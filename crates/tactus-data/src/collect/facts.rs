//! Changes in a machine's readings since its last run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tactus_model::facts::{Facts, Reading};

use super::Present;
use crate::table::{Change, FACT, Fact, columns};
use crate::{DataError, DataSet};

/// Readings that differ from run to run whatever is changed: counters, times, what runs, what names one process.
const VOLATILE: [&str; 20] = [
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/interrupts",
    "/proc/softirqs",
    "/proc/stat",
    "/proc/swaps",
    "/proc/uptime",
    "/proc/vmstat",
    "/proc/self/",
    "/proc/sys/kernel/random/",
    "/sys/kernel/mm/ksm/pages_",
    "cpu:",
    "device:",
    "dmesg:",
    "namespace:",
    "process:",
    "threads:",
    "probe:",
    "vm:",
    "vms:",
];
/// The same, by how they end.
const VOLATILE_ENDS: [&str; 7] =
    ["/time", "/usage", "/above", "/below", "/free_hugepages", "cpu.stat", "/surplus_hugepages"];
/// Lines of `/proc/cpuinfo` that are so.
const VOLATILE_LINES: [&str; 2] = ["cpu MHz", "bogomips"];

fn is_volatile(path: &str) -> bool {
    VOLATILE.iter().any(|start| path.starts_with(start))
        || VOLATILE_ENDS.iter().any(|end| path.ends_with(end))
}

/// A reading, in its state and words.
type Value = (&'static str, Option<Arc<str>>);
/// Environment and path.
type Key = (Arc<str>, Arc<str>);
/// The readings of a machine.
type State = BTreeMap<Key, Value>;
/// The rows about a machine: readings, and those that are gone.
type Told = (String, Vec<(Key, Option<Value>)>);

/// The readings of machines, as their last runs had them.
#[derive(Debug, Default)]
pub struct History {
    machines: BTreeMap<String, (i64, State)>,
    /// No run began after this moment. A run that claims so has a wrong clock, and no later run is compared
    /// with it.
    until_us: i64,
    /// Texts that many have, once.
    texts: BTreeSet<Arc<str>>,
}

impl History {
    /// As the data set has them.
    pub fn read(data: &DataSet, present: &Present, until_us: i64) -> Result<Self, DataError> {
        let mut own = Self { until_us, ..Self::default() };
        let wanted = columns(&FACT, &["run", "environment", "path", "value", "state", "change"]);
        // Of a machine in the order of its runs.
        let mut told: BTreeMap<(i64, String), Told> = BTreeMap::new();
        for day in data.days(&FACT)? {
            let Some(found) = data.read(&FACT, &day, &wanted)? else { continue };
            let [run, environment, path, value, state, change] = found.columns.as_slice() else { continue };
            for row in 0..found.rows {
                let Some(run) = run.text(row) else { continue };
                // A run without a row in `run` was being written when the collection was interrupted.
                let Some((machine, started)) = present.of.get(run) else { continue };
                if change.text(row) == Some("late") || *started > until_us {
                    continue;
                }
                let key = (
                    own.text(environment.text(row).unwrap_or_default()),
                    own.text(path.text(row).unwrap_or_default()),
                );
                let state = match state.text(row) {
                    Some("text") => Some("text"),
                    Some("cut") => Some("cut"),
                    Some("unreadable") => Some("unreadable"),
                    Some("absent") => Some("absent"),
                    _ => None,
                };
                let value = value.text(row).map(|text| own.text(text));
                let of =
                    told.entry((*started, run.to_owned())).or_insert_with(|| (machine.clone(), Vec::new()));
                of.1.push((key, state.map(|state| (state, value))));
            }
        }
        for ((started, _), (machine, rows)) in told {
            let (last, all) = own.machines.entry(machine).or_default();
            *last = started;
            for (key, value) in rows {
                match value {
                    Some(value) => drop(all.insert(key, value)),
                    None => drop(all.remove(&key)),
                }
            }
        }
        // A run in which nothing changed has no rows.
        for (machine, started) in present.of.values().filter(|(_, started)| *started <= until_us) {
            if let Some((last, _)) = own.machines.get_mut(machine) {
                *last = (*last).max(*started);
            }
        }
        Ok(own)
    }

    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let text: Arc<str> = text.into();
        self.texts.insert(text.clone());
        text
    }

    /// The facts to report for a run; after it the machine's readings are these.
    pub fn changes(&mut self, machine: &str, started_us: i64, facts: &BTreeMap<String, Facts>) -> Vec<Fact> {
        let mut now = State::new();
        for (environment, facts) in facts {
            let environment = self.text(environment);
            for (path, reading) in facts.0.iter().filter(|(path, _)| !is_volatile(path)) {
                let value = match reading {
                    Reading::Text(text) if path == "/proc/cpuinfo" => {
                        ("text", Some(self.text(&lasting(text))))
                    }
                    Reading::Text(text) => ("text", Some(self.text(text))),
                    Reading::Cut(text) => ("cut", Some(self.text(text))),
                    Reading::Unreadable(why) => ("unreadable", Some(self.text(why))),
                    Reading::Absent => ("absent", None),
                };
                let path = self.text(path);
                now.insert((environment.clone(), path), value);
            }
        }
        let none = State::new();
        let before = self.machines.get(machine);
        let (change, before) = match before {
            _ if started_us > self.until_us => (Change::Late, &none),
            None => (Change::First, &none),
            Some((last, _)) if started_us < *last => (Change::Late, &none),
            Some((_, state)) => (Change::Changed, state),
        };
        let fact = |(environment, path): &Key, state, value: Option<&Arc<str>>| Fact {
            environment: environment.to_string(),
            path: path.to_string(),
            value: value.map(ToString::to_string),
            state,
            change,
        };
        let mut told: Vec<Fact> = now
            .iter()
            .filter(|(key, value)| before.get(*key) != Some(*value))
            .map(|(key, (state, value))| fact(key, state, value.as_ref()))
            .collect();
        // An environment that this run lacks is not gone: another plan was run.
        let measured = |environment: &str| facts.contains_key(environment);
        let gone = before.keys().filter(|key| measured(&key.0) && !now.contains_key(*key));
        told.extend(gone.map(|key| fact(key, "gone", None)));
        if change != Change::Late {
            let (last, all) = self.machines.entry(machine.to_owned()).or_default();
            *last = started_us;
            all.retain(|(environment, _), _| !measured(environment));
            all.extend(now);
        }
        told
    }
}

/// `/proc/cpuinfo` without what differs from moment to moment.
fn lasting(text: &str) -> String {
    let lines = text.lines().filter(|line| !VOLATILE_LINES.iter().any(|start| line.starts_with(start)));
    lines.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(readings: &[(&str, &str)]) -> BTreeMap<String, Facts> {
        let mut all = Facts::default();
        readings.iter().for_each(|(path, text)| all.keep(*path, *text));
        [("host".to_owned(), all)].into()
    }

    fn history() -> History {
        History { until_us: 100, ..History::default() }
    }

    fn said(told: &[Fact]) -> Vec<(&str, &str, Option<&str>)> {
        told.iter().map(|fact| (fact.path.as_str(), fact.state, fact.value.as_deref())).collect()
    }

    #[test]
    fn the_first_run_has_all_and_the_next_what_changed() {
        let mut history = history();
        let first =
            history.changes("m", 1, &facts(&[("/proc/cmdline", "quiet"), ("/proc/uptime", "5"), ("a", "1")]));
        assert_eq!(said(&first), [("/proc/cmdline", "text", Some("quiet")), ("a", "text", Some("1"))]);
        assert!(first.iter().all(|fact| fact.change == Change::First));
        let second =
            history.changes("m", 2, &facts(&[("/proc/cmdline", "isolcpus=1"), ("/proc/uptime", "9")]));
        assert_eq!(said(&second), [("/proc/cmdline", "text", Some("isolcpus=1")), ("a", "gone", None)]);
        assert!(second.iter().all(|fact| fact.change == Change::Changed));
        let third = history.changes("m", 3, &facts(&[("/proc/cmdline", "isolcpus=1")]));
        assert_eq!(third, []);
    }

    #[test]
    fn a_late_run_has_all_and_nothing_is_told_against_it() {
        let mut history = history();
        history.changes("m", 5, &facts(&[("a", "1")]));
        let late = history.changes("m", 3, &facts(&[("a", "2")]));
        assert!(late.len() == 1 && late[0].change == Change::Late);
        assert_eq!(history.changes("m", 6, &facts(&[("a", "1")])), []);
    }

    #[test]
    fn a_run_from_the_future_has_all_and_makes_no_run_late() {
        let mut history = history();
        history.changes("m", 1, &facts(&[("a", "1")]));
        let future = history.changes("m", 101, &facts(&[("a", "2")]));
        assert!(future.len() == 1 && future[0].change == Change::Late);
        assert_eq!(history.changes("m", 2, &facts(&[("a", "1")])), []);
    }

    #[test]
    fn an_environment_that_another_plan_did_not_have_is_not_gone() {
        let mut history = history();
        let mut both = facts(&[("a", "1")]);
        both.extend([("guest".to_owned(), facts(&[("b", "2")]).remove("host").unwrap())]);
        history.changes("m", 1, &both);
        assert_eq!(history.changes("m", 2, &facts(&[("a", "1")])), []);
        assert_eq!(history.changes("m", 3, &both), []);
    }

    #[test]
    fn the_clock_of_a_cpu_is_no_change_of_it() {
        let mut history = history();
        history.changes("m", 1, &facts(&[("/proc/cpuinfo", "model : x\ncpu MHz\t: 2000\nmicrocode : 1\n")]));
        let same = facts(&[("/proc/cpuinfo", "model : x\ncpu MHz\t: 2700\nmicrocode : 1\n")]);
        assert_eq!(history.changes("m", 2, &same), []);
        let other = facts(&[("/proc/cpuinfo", "model : x\ncpu MHz\t: 2700\nmicrocode : 2\n")]);
        assert_eq!(history.changes("m", 3, &other).len(), 1);
    }
}
