//! What each setting under test is worth on this machine.

use std::collections::BTreeMap;

use tactus_model::Evidence;
use tactus_model::bundle::{Contents, RowResult};
use tactus_model::document::{Document, EffectEntry, ProofEntry};
use tactus_model::latency::Summary;
use tactus_model::number::float;
use tactus_model::plan::Proof;

use super::Section;
use crate::part::{Cell, Head, Item, List, Mark, Part, Reader, Table, Tone};
use crate::row::figures;
use crate::stats::{Paired, paired};
use crate::units::{clean, latency};

/// The section.
pub struct Proofs;
/// Its entry.
pub static ENTRY: Proofs = Proofs;

impl Section for Proofs {
    fn name(&self) -> &'static str {
        "proofs"
    }

    fn heading(&self) -> &'static str {
        "What each setting is worth"
    }

    fn about(&self) -> &'static str {
        "With the setting against without it, in pairs whose order was drawn by lot: medians of the pairs, and effects \
         by the signed-rank test; the three intervals of a setting hold together at 95 %."
    }

    fn applies(&self, contents: &Contents) -> bool {
        !contents.plan.proof.is_empty()
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        let proofs = proofs(contents);
        let first = match reader {
            Reader::Terminal => Part::List(list(&proofs)),
            Reader::Markdown | Reader::Page => Part::Table(table(&proofs)),
        };
        let method = (reader == Reader::Terminal).then(|| METHOD.to_owned());
        std::iter::once(first).chain(method.into_iter().chain(caution(&proofs)).map(Part::Remark)).collect()
    }

    fn fill(&self, contents: &Contents, document: &mut Document) {
        document.proofs = proofs(contents).into_iter().map(entry).collect();
    }
}

/// How the answers are come by, for those who are not told in a paragraph.
const METHOD: &str = "medians of the pairs; effects by the signed-rank test, the three intervals of a setting hold \
                      together at 95 %";

/// The three quantities of a setting are judged together: the error is shared out among them
/// (Bonferroni), so that all three intervals hold at once at 95 %.
pub const ERROR: f64 = 0.05;
/// A figure of a row, in ns.
type Quantity = fn(&Summary) -> Option<u64>;
const QUANTITIES: [(&str, Quantity); 3] =
    [("p99", |all| all.p99_ns), ("p99.9", |all| all.p999_ns), ("maximum", |all| all.max_ns)];

/// A setting under test and what came of it.
#[derive(Clone, Debug)]
pub struct Proven {
    /// Id of its check.
    pub setting: String,
    /// Name of the environment.
    pub environment: String,
    /// What differed.
    pub what: String,
    /// What the numbers are worth.
    pub evidence: Option<Evidence>,
    /// Pairs that were measured whole, and those that were planned.
    pub pairs: (usize, usize),
    /// The effect on each quantity, or why there is none.
    pub answer: Answer,
}

/// What came of a test.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Effects on p99, p99.9 and the maximum.
    Effects(Vec<Worth>),
    /// It was not tested, or not often enough.
    None(String),
}

/// The effect on one quantity, in ns.
#[derive(Clone, Debug)]
pub struct Worth {
    /// `p99`, `p99.9`, `maximum`.
    pub quantity: &'static str,
    /// Median without the setting.
    pub without_ns: f64,
    /// Median with it.
    pub with_ns: f64,
    /// The difference.
    pub effect: Paired,
}

impl Worth {
    /// "lower by 3.2 us (1.1 us to 5.0 us)", or "no effect larger than 2.1 us".
    #[must_use]
    pub fn words(&self) -> String {
        let effect = &self.effect;
        if !effect.is_shown() {
            return format!("no effect larger than {}", latency(effect.at_most()));
        }
        let (word, near, far) = if effect.high < 0.0 {
            ("lower", -effect.high, -effect.low)
        } else {
            ("higher", effect.low, effect.high)
        };
        format!("{word} by {} ({} to {})", latency(effect.estimate.abs()), latency(near), latency(far))
    }

    /// "3.9 us without, 3.4 us with".
    #[must_use]
    pub fn medians(&self) -> String {
        format!("{} without, {} with", latency(self.without_ns), latency(self.with_ns))
    }

    /// The interval in numbers: "-5.0 us to +1.1 us".
    #[must_use]
    pub fn interval(&self) -> String {
        format!("{} to {}", signed(self.effect.low), signed(self.effect.high))
    }
}

/// Every setting under test of a bundle, in the plan's order.
#[must_use]
pub fn proofs(contents: &Contents) -> Vec<Proven> {
    let rows: BTreeMap<&str, &RowResult> =
        contents.rows.iter().map(|row| (row.result.name.as_str(), &row.result)).collect();
    contents.plan.proof.iter().map(|proof| proven(proof, &rows)).collect()
}

fn proven(proof: &Proof, rows: &BTreeMap<&str, &RowResult>) -> Proven {
    let planned = proof.with.len().min(proof.without.len());
    let pairs: Vec<(&RowResult, &RowResult)> = proof
        .with
        .iter()
        .zip(&proof.without)
        .filter_map(|(with, without)| {
            let pair = (*rows.get(with.as_str())?, *rows.get(without.as_str())?);
            (figures(pair.0).is_some() && figures(pair.1).is_some()).then_some(pair)
        })
        .collect();
    let evidence = pairs.first().and_then(|(with, _)| with.evidence);
    let answer = answer(proof, &pairs, rows);
    Proven {
        setting: proof.setting.clone(),
        environment: proof.environment.clone(),
        what: proof.what.clone(),
        evidence,
        pairs: (pairs.len(), planned),
        answer,
    }
}

fn answer(proof: &Proof, pairs: &[(&RowResult, &RowResult)], rows: &BTreeMap<&str, &RowResult>) -> Answer {
    if let Some(reason) = &proof.reason {
        return Answer::None(reason.clone());
    }
    let mut effects = Vec::new();
    for (quantity, value) in QUANTITIES {
        let values: Vec<(f64, f64)> = pairs
            .iter()
            .filter_map(|(with, without)| {
                Some((float(value(figures(with)?)?), float(value(figures(without)?)?)))
            })
            .collect();
        let differences: Vec<f64> = values.iter().map(|(with, without)| with - without).collect();
        let Some(effect) = paired(&differences, ERROR / 3.0) else {
            let why = proof.with.iter().chain(&proof.without).find_map(|name| {
                let row = rows.get(name.as_str())?;
                row.reason.clone().filter(|_| figures(row).is_none())
            });
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            let planned = proof.with.len();
            return Answer::None(format!(
                "{} of {planned} pairs were measured, too few to judge{why}",
                pairs.len()
            ));
        };
        effects.push(Worth {
            quantity,
            without_ns: median(values.iter().map(|(_, without)| *without).collect()),
            with_ns: median(values.iter().map(|(with, _)| *with).collect()),
            effect,
        });
    }
    Answer::Effects(effects)
}

fn signed(ns: f64) -> String {
    format!("{}{}", if ns < 0.0 { "-" } else { "+" }, latency(ns.abs()))
}

/// The median; there is at least one value.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// What a reader of many tests must know; `None` for few.
#[must_use]
pub fn caution(proofs: &[Proven]) -> Option<String> {
    let tested = proofs.iter().filter(|proven| matches!(proven.answer, Answer::Effects(_))).count();
    let by_chance = 0.05 * float(u64::try_from(tested).unwrap_or(u64::MAX));
    (by_chance >= 0.5).then(|| {
        format!(
            "Of {tested} settings without any effect about {by_chance:.0} would still seem to have one: prove again, \
             alone and with more pairs, what you mean to rely on."
        )
    })
}

fn entry(proven: Proven) -> ProofEntry {
    let (reason, effects) = match proven.answer {
        Answer::None(reason) => (Some(reason), Vec::new()),
        Answer::Effects(effects) => (None, effects),
    };
    let effect = |worth: Worth| EffectEntry {
        quantity: worth.quantity.into(),
        without_ns: worth.without_ns,
        with_ns: worth.with_ns,
        effect_ns: worth.effect.estimate,
        low_ns: worth.effect.low,
        high_ns: worth.effect.high,
        shown: worth.effect.is_shown(),
    };
    ProofEntry {
        setting: proven.setting,
        environment: proven.environment,
        what: proven.what,
        evidence: proven.evidence,
        pairs: proven.pairs.0,
        reason,
        effects: effects.into_iter().map(effect).collect(),
    }
}

/// Each setting in a few lines.
fn list(proofs: &[Proven]) -> List {
    let mut items = Vec::new();
    for proven in proofs {
        let lead = clean(&proven.setting);
        match &proven.answer {
            Answer::None(reason) => {
                items.push(Item::led(format!("  {lead}"), Tone::Doubt, format!("not tested: {reason}")));
            }
            Answer::Effects(effects) => {
                let (measured, planned) = proven.pairs;
                let evidence = proven.evidence.map(|evidence| format!(", {evidence}")).unwrap_or_default();
                let place = format!("({}, {measured} of {planned} pairs{evidence})", proven.environment);
                items.push(Item::led(format!("  {lead}"), Tone::Heading, place));
                items.push(Item::led("   ", Tone::Quiet, proven.what.clone()));
                items.extend(effects.iter().map(|worth| {
                    let tone = if worth.effect.is_shown() { Tone::Good } else { Tone::Quiet };
                    let text = format!("{}: {}", worth.medians(), worth.words());
                    Item::led(format!("    {:<8}", worth.quantity), tone, text)
                }));
            }
        }
    }
    items.into()
}

/// A row for each setting, a column for each quantity.
fn table(proofs: &[Proven]) -> Table {
    let row = |proven: &Proven| {
        let evidence = proven.evidence.map(|evidence| format!(", {evidence}")).unwrap_or_default();
        let below = format!("{}{evidence}: {}", clean(&proven.environment), clean(&proven.what));
        let mut cells = vec![Cell::from(vec![clean(&proven.setting), below])];
        cells.push(format!("{} of {}", proven.pairs.0, proven.pairs.1).into());
        match &proven.answer {
            Answer::None(reason) => {
                let why = vec!["not tested".to_owned(), clean(reason)];
                cells.push(Cell { mark: Mark::Tone(Tone::Doubt), ..Cell::from(why) });
                cells.extend([Cell::default(), Cell::default()]);
            }
            Answer::Effects(effects) => cells.extend(effects.iter().map(|worth| {
                let lines = vec![worth.words(), format!("{}; {}", worth.medians(), worth.interval())];
                let tone = if worth.effect.is_shown() { Mark::Tone(Tone::Heading) } else { Mark::None };
                Cell { mark: tone, ..Cell::from(lines) }
            })),
        }
        cells
    };
    let head = Head::all(["setting", "pairs", "p99", "p99.9", "maximum"]);
    Table::whole("", head, proofs.iter().map(row).collect())
}
