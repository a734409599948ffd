//! Properties that machines with outliers share.
//!
//! The unit is a machine, not a run: runs of one machine do not confirm each other. Each value of each
//! property divides the machines in two. A test asks of each division whether outliers are more frequent in
//! it than by chance (Fisher's exact test), and all answers together err with 5 % at most (Holm). Properties
//! that divide the machines alike are one question: the data cannot tell them apart.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tactus_model::number::float;
use tactus_statistics::{ERROR, holm, median};

use super::deadline::{Judged, MachineEntry};
use super::fisher::fisher;
use super::set::{PROPERTIES, Set};

/// Fewer machines than this on either side of a division, or with outliers, say nothing that is worth a name.
pub const LEAST: usize = 4;
/// Machines below which no test is made.
pub const LEAST_MACHINES: usize = 10;
/// Without a deadline, a machine is an outlier if its largest latency is above the upper quartile by this
/// many times the distance of the quartiles, of logarithms (J. W. Tukey, "Exploratory Data Analysis", 1977).
const FENCE: f64 = 1.5;
/// Pairs of properties that are tested together, by column.
const PAIRS: [(usize, usize); 3] = [(0, 1), (0, 2), (1, 2)];
/// Most candidates that are written, the likeliest first.
const MOST_CANDIDATES: usize = 5;

/// Properties that machines with outliers share.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Explained {
    /// The definition of an outlier.
    pub outlier: String,
    /// Machines that were looked at.
    pub machines: usize,
    /// Those of them with outliers.
    pub outliers: usize,
    /// Divisions that were tested.
    pub asked: usize,
    /// Properties that go together with outliers: with 95 % none of them by chance.
    pub found: Vec<Property>,
    /// The likeliest of the unproven ones.
    pub candidates: Vec<Property>,
    /// Why nothing was tested, or nothing found, in a sentence.
    pub nothing: Option<String>,
}

/// A property of machines.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Property {
    /// Its name, and the names of all properties of the same machines: the data cannot tell them apart.
    pub is: Vec<String>,
    /// Machines that have it.
    pub with: usize,
    /// Those of them with outliers.
    pub with_outliers: usize,
    /// Machines that lack it.
    pub without: usize,
    /// Those of them with outliers.
    pub without_outliers: usize,
    /// The chance of this number or more, if the property had nothing to do with it.
    pub chance: f64,
    /// The same, adjusted for the number of all properties that were tested.
    pub chance_of_all: f64,
}

/// Looks for properties that go together with outliers.
pub fn explained(set: &Set, judged: &[MachineEntry], max_ns: Option<u64>, from_us: i64) -> Explained {
    let all: Vec<&MachineEntry> =
        judged.iter().filter(|machine| machine.outcome != Judged::NotJudged).collect();
    let by_deadline = max_ns.is_some() || all.iter().any(|machine| machine.outcome == Judged::Missed);
    let limit = if by_deadline { None } else { fence(&all) };
    let hit: Vec<bool> = all
        .iter()
        .map(|machine| match limit {
            _ if by_deadline => machine.outcome == Judged::Missed,
            Some(limit) => machine.max_ns.is_some_and(|max| float(max) > limit),
            None => false,
        })
        .collect();
    let outliers = hit.iter().filter(|hit| **hit).count();
    let outlier = match (max_ns, by_deadline) {
        (Some(_), _) => "its largest latency is above the deadline",
        (None, true) => "it failed a requirement of its plan",
        (None, false) => {
            "its largest latency is far above those of the others (the upper quartile and 1.5 times the distance of the \
             quartiles, of logarithms)"
        }
    };
    let mut own =
        Explained { outlier: outlier.into(), machines: all.len(), outliers, ..Explained::default() };
    let nothing = |words: String| Some(words);
    if all.len() < LEAST_MACHINES {
        own.nothing = nothing(format!("{} machines are too few: {LEAST_MACHINES} are needed", all.len()));
        return own;
    }
    if outliers < LEAST || all.len() - outliers < LEAST {
        own.nothing = nothing(format!(
            "{outliers} of {} machines have outliers: {LEAST} with and {LEAST} without are needed",
            all.len()
        ));
        return own;
    }
    let divisions = divisions(set, &all, from_us);
    let mut asked: Vec<Property> = Vec::new();
    for (with, is) in divisions {
        let without = all.len() - with.len();
        if with.len() < LEAST || without < LEAST {
            continue;
        }
        let with_outliers = with.iter().filter(|machine| hit[**machine]).count();
        let chance = fisher(with_outliers, with.len(), outliers, all.len());
        asked.push(Property {
            is,
            with: with.len(),
            with_outliers,
            without,
            without_outliers: outliers - with_outliers,
            chance,
            chance_of_all: 1.0,
        });
    }
    let chances: Vec<f64> = asked.iter().map(|one| one.chance).collect();
    for (one, chance) in asked.iter_mut().zip(holm(&chances)) {
        one.chance_of_all = chance;
    }
    asked.sort_by(|one, other| {
        let order = one.chance.total_cmp(&other.chance);
        order.then_with(|| one.is.len().cmp(&other.is.len())).then_with(|| one.is.cmp(&other.is))
    });
    own.asked = asked.len();
    let (found, rest): (Vec<Property>, Vec<Property>) =
        asked.into_iter().partition(|one| one.chance_of_all <= ERROR);
    own.nothing = found.is_empty().then(|| match own.asked {
        0 => "the recorded properties of the machines do not differ".to_owned(),
        asked => format!(
            "no evidence: {asked} properties were tested, and none is associated with outliers more than by \
                chance"
        ),
    });
    own.found = found;
    own.candidates = rest.into_iter().filter(|one| one.chance <= ERROR).take(MOST_CANDIDATES).collect();
    own
}

/// The latency above which a machine is an outlier among the others; `None` if there are too few, or all are
/// alike.
fn fence(all: &[&MachineEntry]) -> Option<f64> {
    let mut logs: Vec<f64> =
        all.iter().filter_map(|machine| machine.max_ns).map(|max| float(max.max(1)).ln()).collect();
    logs.sort_by(f64::total_cmp);
    let half = logs.len() / 2;
    let low = median(logs.get(..half)?.to_vec())?;
    let high = median(logs.get(logs.len() - half..)?.to_vec())?;
    Some((high + FENCE * (high - low)).exp())
}

/// The divisions of the machines: the numbers of the machines on one side, and the names of all properties
/// that divide so.
fn divisions(set: &Set, all: &[&MachineEntry], from_us: i64) -> BTreeMap<BTreeSet<usize>, Vec<String>> {
    let machines = set.machines();
    let mut with: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for (number, machine) in all.iter().enumerate() {
        let mut runs = machines.get(machine.machine.as_str()).into_iter().flatten();
        // As it was in its last run.
        let Some(run) = runs.rfind(|run| set.runs[**run].started_us >= from_us) else {
            continue;
        };
        let run = &set.runs[*run];
        let said = |at: usize| {
            let value = run.properties.get(at)?.as_deref()?;
            Some(format!("{} {value}", PROPERTIES[at].1))
        };
        let mut add = |is: String| {
            with.entry(is).or_default().insert(number);
        };
        (0..PROPERTIES.len()).filter_map(said).for_each(&mut add);
        for (one, other) in PAIRS {
            if let (Some(one), Some(other)) = (said(one), said(other)) {
                add(format!("{one} with {other}"));
            }
        }
        run.findings.iter().for_each(|id| add(format!("finding {id}")));
    }
    let mut alike: BTreeMap<BTreeSet<usize>, Vec<String>> = BTreeMap::new();
    for (is, machines) in with {
        alike.entry(machines).or_default().push(is);
    }
    // A pair that has the machines of one of its parts says no more than that.
    for is in alike.values_mut() {
        let single: Vec<String> = is.iter().filter(|is| !is.contains(" with ")).cloned().collect();
        if !single.is_empty() {
            *is = single;
        }
    }
    alike
}
