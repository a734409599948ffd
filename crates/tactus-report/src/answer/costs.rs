//! The costs of environments, for runs that measured values and no latency.

use tactus_model::Evidence;
use tactus_model::bundle::Contents;

use super::kinds;
use crate::part::{Answer, Next, Tone};
use crate::section::degradation::size;
use crate::stats::{Degraded, DegradedItem, degradations, least_rounds};
use crate::units::clean;

/// Something is worse than elsewhere.
pub const SHOWN: &str = "COSTS SHOWN";
/// Nothing is shown to be.
pub const NONE_SHOWN: &str = "NO COST SHOWN";
/// There were too few rounds.
pub const NOT_JUDGED: &str = "COSTS NOT JUDGED";

/// The answer, where the same values were measured in several environments.
pub fn answer(contents: &Contents) -> Option<Answer> {
    let all: Vec<Degraded> = degradations(contents, false).into_iter().filter(has_places).collect();
    let mut places: Vec<Place> = Vec::new();
    for pair in &all {
        let of = (pair.base.environment.as_str(), pair.with.environment.as_str());
        match places.iter_mut().find(|place| place.of == of) {
            Some(place) => place.add(pair),
            None => {
                let mut place = Place { of, evidence: pair.with.evidence, items: Vec::new(), broken: 0 };
                place.add(pair);
                places.push(place);
            }
        }
    }
    let evidence = || kinds(all.iter().flat_map(|pair| [pair.base.evidence, pair.with.evidence]).flatten());
    let judged = || places.iter().filter(|place| place.judged() > 0);
    if judged().next().is_none() {
        return places.first().map(|_| Answer { evidence: evidence(), ..undecided(&places) });
    }
    let worse = places.iter().any(|place| place.worse().next().is_some());
    let broke = places.iter().any(|place| place.broken > 0);
    let said: Vec<String> = judged().map(Place::said).collect();
    Some(Answer {
        word: if worse { SHOWN } else { NONE_SHOWN },
        tone: if broke { Tone::Doubt } else { Tone::Quiet },
        sentence: format!("{}.", said.join("; ")),
        evidence: evidence(),
        next: None,
    })
}

fn has_places(pair: &Degraded<'_>) -> bool {
    pair.base.environment != pair.with.environment
}

/// Nothing was repeated, or too seldom.
fn undecided(places: &[Place<'_>]) -> Answer {
    let mut names: Vec<&str> = places.iter().flat_map(|place| [place.of.0, place.of.1]).collect();
    names.sort_unstable();
    names.dedup();
    let names: Vec<String> = names.into_iter().map(clean).collect();
    let rounds = least_rounds(names.len().saturating_sub(1).max(1));
    Answer {
        word: NOT_JUDGED,
        tone: Tone::Doubt,
        sentence: format!(
            "{} were measured in too few rounds to separate their costs from run-to-run variation.",
            names.join(", ")
        ),
        evidence: Vec::new(),
        next: Some(Next {
            title: format!("Measure {rounds} rounds"),
            command: format!("--repeat {rounds}"),
            why: "fewer rounds cannot show a degradation, even one that is in every round".into(),
        }),
    }
}

/// The comparison of one environment with another.
struct Place<'a> {
    /// The environment compared with, and the compared one.
    of: (&'a str, &'a str),
    evidence: Option<Evidence>,
    items: Vec<&'a DegradedItem>,
    /// Most rounds of any measurement in which a run broke.
    broken: usize,
}

impl<'a> Place<'a> {
    fn add(&mut self, pair: &'a Degraded<'_>) {
        self.items.extend(&pair.items);
        self.broken = self.broken.max(pair.broken);
    }

    /// How many of its values were judged.
    fn judged(&self) -> usize {
        self.items.iter().filter(|item| item.degradation.rounds > 1 && item.degradation.low.is_some()).count()
    }

    fn worse(&self) -> impl Iterator<Item = &'a DegradedItem> {
        self.items.iter().copied().filter(|item| item.degradation.seen && item.degradation.value > 0.0)
    }

    /// "container: 2 of 29 values are worse than in host, most fork and exec by 13 %".
    fn said(&self) -> String {
        let (base, with) = (clean(self.of.0), clean(self.of.1));
        let with = match self.evidence {
            Some(Evidence::Emulated) => format!("{with} (emulated, which says nothing about hardware)"),
            _ => with,
        };
        let judged = self.judged();
        let most =
            self.worse().max_by(|one, other| one.degradation.value.total_cmp(&other.degradation.value));
        let broke = match self.broken {
            0 => String::new(),
            1 => ", though in 1 round a run did not complete".into(),
            many => format!(", though in {many} rounds a run did not complete"),
        };
        match most {
            None => format!("{with}: none of {judged} values is shown to be worse than in {base}{broke}"),
            Some(most) => {
                let count = self.worse().count();
                let verb = if count == 1 { "is" } else { "are" };
                let by = size(most.degradation.value);
                format!(
                    "{with}: {count} of {judged} values {verb} worse than in {base}, most {} ({by}){broke}",
                    clean(&most.with.name())
                )
            }
        }
    }
}
