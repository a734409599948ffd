//! The data behind the questions: runs, and the worst of each of their scenarios.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tactus_format::export::columnar::{Found, Values};

use crate::identity::{MOST_NAME, cut, named};
use crate::table::{FINDING, RUN, SERIES, Table, columns};
use crate::{DataError, DataSet};

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Its key.
    pub run: String,
    /// Key of its machine.
    pub machine: String,
    /// How that is known.
    pub identity: Option<String>,
    /// The machine's name.
    pub name: String,
    /// When it began, in microseconds since 1970.
    pub started_us: i64,
    /// Properties of the machine at the time: kernel, firmware and the like, by [`PROPERTIES`].
    pub properties: Vec<Option<String>>,
    /// Findings of its host, by check.
    pub findings: BTreeSet<String>,
    /// Whether its plan came to its end, and all of its scenarios were measured.
    pub complete: bool,
}

/// Properties of the machine at each run, by column of `run`.
pub const PROPERTIES: [(&str, &str); 8] = [
    ("bios", "firmware"),
    ("microcode", "microcode"),
    ("kernel", "kernel"),
    ("profile", "profile"),
    ("processor", "processor"),
    ("system", "system"),
    ("tactus", "tactus"),
    ("plan", "plan"),
];

/// A scenario of a run, in an environment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// Number of its run.
    pub run: usize,
    /// The environment.
    pub environment: String,
    /// The scenario's name.
    pub scenario: String,
    /// The evidence of its numbers.
    pub evidence: Option<String>,
    /// Its largest latency, in ns.
    pub max_ns: Option<u64>,
    /// The largest 99.9th percentile of its series, in ns.
    pub p999_ns: Option<u64>,
    /// Wake-ups.
    pub cycles: u64,
    /// Whether every thread passed its self-test; `None` without a self-test.
    pub self_test_passed: Option<bool>,
    /// The verdict on the plan's requirements.
    pub verdict: Option<String>,
    /// Whether the measurement suffices to say that the largest latency keeps a limit.
    pub suffices: Option<bool>,
    /// How often its environment died while it was measured and was restarted; `None` if that was not
    /// recorded.
    pub restarts: Option<u64>,
}

/// The place of the plan among them.
pub const PLAN: usize = PROPERTIES.len() - 1;

/// The runs of a data set, in the order of their time.
#[derive(Clone, Debug, Default)]
pub struct Set {
    /// The runs.
    pub runs: Vec<Run>,
    /// Their scenarios.
    pub places: Vec<Place>,
}

/// Every day of a table.
fn all(data: &DataSet, table: &Table, names: &[&str], take: &mut dyn FnMut(&Found)) -> Result<(), DataError> {
    let wanted = columns(table, names);
    for day in data.days(table)? {
        if let Some(found) = data.read(table, &day, &wanted)? {
            take(&found);
        }
    }
    Ok(())
}

fn whole(values: &Values, row: usize) -> Option<u64> {
    u64::try_from(values.whole(row)?).ok()
}

/// For each text of a column which run it is.
fn numbers(values: &Values, runs: &HashMap<String, usize>) -> Vec<Option<usize>> {
    match values {
        Values::Text { words, .. } => words.iter().map(|word| runs.get(word).copied()).collect(),
        _ => Vec::new(),
    }
}

/// The number of the text in a row.
fn word(values: &Values, row: usize) -> Option<usize> {
    let Values::Text { of, .. } = values else { return None };
    usize::try_from((*of.get(row)?)?).ok()
}

impl Set {
    /// Reads what the questions need.
    ///
    /// # Errors
    /// When a table cannot be read.
    pub fn read(data: &DataSet) -> Result<Self, DataError> {
        let mut own = Self::default();
        let mut names = vec!["run", "machine", "identity", "name", "started"];
        names.extend(PROPERTIES.iter().map(|(column, _)| *column));
        let of_plan = names.len();
        names.extend(["status", "scenarios", "measured"]);
        all(data, &RUN, &names, &mut |found| {
            for row in 0..found.rows {
                let text =
                    |column: usize| found.columns.get(column).and_then(|of| of.text(row)).map(str::to_owned);
                let number = |column: usize| found.columns.get(column).and_then(|of| whole(of, row));
                let (Some(run), Some(machine)) = (text(0), text(1)) else { continue };
                own.runs.push(Run {
                    run,
                    machine,
                    identity: text(2),
                    name: cut(&text(3).unwrap_or_default(), MOST_NAME).to_owned(),
                    started_us: found.columns.get(4).and_then(|of| of.whole(row)).unwrap_or(0),
                    properties: (5..of_plan).map(text).collect(),
                    findings: BTreeSet::new(),
                    complete: text(of_plan).as_deref() == Some("complete")
                        && number(of_plan + 1).is_some()
                        && number(of_plan + 1) == number(of_plan + 2),
                });
            }
        })?;
        own.runs.sort_by(|one, other| (one.started_us, &one.run).cmp(&(other.started_us, &other.run)));
        let runs: HashMap<String, usize> =
            own.runs.iter().enumerate().map(|(number, run)| (run.run.clone(), number)).collect();
        own.read_series(data, &runs)?;
        own.read_findings(data, &runs)?;
        Ok(own)
    }

    fn read_series(&mut self, data: &DataSet, runs: &HashMap<String, usize>) -> Result<(), DataError> {
        let names = [
            "run",
            "scenario",
            "name",
            "environment",
            "evidence",
            "max_ns",
            "p999_ns",
            "cycles",
            "self_test_passed",
            "verdict",
            "suffices",
            "restarts",
        ];
        all(data, &SERIES, &names, &mut |found| {
            let [
                run,
                scenario,
                name,
                environment,
                evidence,
                max,
                p999,
                cycles,
                self_test,
                verdict,
                suffices,
                restarts,
            ] = found.columns.as_slice()
            else {
                return;
            };
            let numbers = numbers(run, runs);
            let mut known: HashMap<(usize, u64), usize> = HashMap::new();
            for row in 0..found.rows {
                let number = word(run, row).and_then(|word| *numbers.get(word)?);
                let Some(number) = number else { continue };
                let at = *known.entry((number, whole(scenario, row).unwrap_or(0))).or_insert_with(|| {
                    let text = |values: &Values| values.text(row).map(str::to_owned);
                    self.places.push(Place {
                        run: number,
                        environment: text(environment).unwrap_or_default(),
                        scenario: text(name).unwrap_or_default(),
                        evidence: text(evidence),
                        self_test_passed: self_test.flag(row),
                        verdict: text(verdict),
                        suffices: suffices.flag(row),
                        restarts: whole(restarts, row),
                        ..Place::default()
                    });
                    self.places.len() - 1
                });
                let Some(place) = self.places.get_mut(at) else { continue };
                place.max_ns = place.max_ns.max(whole(max, row));
                place.p999_ns = place.p999_ns.max(whole(p999, row));
                place.cycles = place.cycles.saturating_add(whole(cycles, row).unwrap_or(0));
            }
        })
    }

    fn read_findings(&mut self, data: &DataSet, runs: &HashMap<String, usize>) -> Result<(), DataError> {
        all(data, &FINDING, &["run", "role", "id", "state"], &mut |found| {
            let [run, role, id, state] = found.columns.as_slice() else { return };
            let numbers = numbers(run, runs);
            for row in 0..found.rows {
                let number = word(run, row).and_then(|word| *numbers.get(word)?);
                let of_host = role.text(row) == Some("host") && state.text(row) == Some("finding");
                if let (true, Some(number), Some(id)) = (of_host, number, id.text(row)) {
                    self.runs[number].findings.insert(id.to_owned());
                }
            }
        })
    }

    /// Splits off the runs that begin after a moment: their clocks are wrong.
    #[must_use]
    pub fn until(&self, us: i64) -> (Self, Vec<&Run>) {
        // They are in the order of their time.
        let many = self.runs.partition_point(|run| run.started_us <= us);
        let places = self.places.iter().filter(|place| place.run < many).cloned().collect();
        (Self { runs: self.runs[..many].to_vec(), places }, self.runs[many..].iter().collect())
    }

    /// The runs of each machine, by number, in the order of their time.
    #[must_use]
    pub fn machines(&self) -> BTreeMap<&str, Vec<usize>> {
        let mut all: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (number, run) in self.runs.iter().enumerate() {
            all.entry(&run.machine).or_default().push(number);
        }
        all
    }

    /// The name of a machine: its last name, with its key if other machines have the same name.
    #[must_use]
    pub fn called(&self) -> BTreeMap<&str, String> {
        let machines = self.machines();
        let name = |runs: &[usize]| runs.last().map_or("", |run| self.runs[*run].name.as_str());
        let mut times: BTreeMap<&str, usize> = BTreeMap::new();
        for runs in machines.values() {
            *times.entry(name(runs)).or_default() += 1;
        }
        let called = |(key, runs): (&&'_ str, &Vec<usize>)| {
            let name = name(runs);
            let short: String = key.chars().take(8).collect();
            match times.get(name) {
                Some(1) if !name.is_empty() => name.to_owned(),
                // A file of another tool may not name its machine.
                _ if name.is_empty() && **key == named(name) => "unknown".to_owned(),
                _ if name.is_empty() => format!("unknown ({short})"),
                _ => format!("{name} ({short})"),
            }
        };
        machines.iter().map(|(key, runs)| (*key, called((key, runs)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_name_is_called_unknown() {
        let run =
            |machine: &str, name: &str| Run { machine: machine.into(), name: name.into(), ..Run::default() };
        let runs = vec![
            run("name:", ""),
            run("0123456789abcdef", ""),
            run("name:vm", "vm"),
            run("name:node", "node"),
        ];
        let set = Set { runs, places: Vec::new() };
        let called: Vec<String> = set.called().into_values().collect();
        assert_eq!(called, ["unknown (01234567)", "unknown", "node", "vm"]);
    }
}
