//! What each setting under test is worth on this machine.

use tactus_model::bundle::Contents;
use tactus_model::document::{Document, ProofEntry};

use super::Section;
use crate::part::{Cell, Head, Item, List, Mark, Part, Reader, Table, Tone};
use crate::stats::{Answer, Change, Difference, PROVEN, Proven, proofs};
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
        "A/B test of settings"
    }

    fn about(&self) -> &'static str {
        "With the setting against without it, in pairs of randomised order: medians of the pairs, and effects \
         by the signed-rank test. All that is shown holds together at 95 % (Holm), and so do the intervals. Quantiles \
         are corrected for missed periods."
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
        std::iter::once(first).chain(method.map(Part::Remark)).collect()
    }

    fn fill(&self, contents: &Contents, document: &mut Document) {
        document.proofs = proofs(contents).into_iter().map(entry).collect();
    }
}

/// How the answers are come by, for those who are not told in a paragraph.
const METHOD: &str = "medians of the pairs; effects by the signed-rank test; all that is shown holds together at 95 % \
                      (Holm), and so do the intervals";

/// "lower by 3.2 us (1.1 us to 5.0 us)", or "no effect larger than 2.1 us".
#[must_use]
pub fn words(change: &Change) -> String {
    let difference = match &change.difference {
        Ok(difference) => difference,
        Err(why) => return why.to_string(),
    };
    let interval = difference.interval;
    if !difference.is_shown() {
        let most = interval.largest();
        return match most <= change.base_ns {
            true => format!("no effect larger than {}", latency(most)),
            false => format!("no effect shown; up to {} cannot be excluded", latency(most)),
        };
    }
    let (word, near, far) = if difference.estimate_ns < 0.0 {
        ("lower", -interval.high_ns, -interval.low_ns)
    } else {
        ("higher", interval.low_ns, interval.high_ns)
    };
    let by = latency(difference.estimate_ns.abs());
    format!("{word} by {by} ({} to {})", latency(near.max(0.0)), latency(far))
}

/// "3.9 us without, 3.4 us with".
fn medians(change: &Change) -> String {
    format!("{} without, {} with", latency(change.base_ns), latency(change.with_ns))
}

/// The interval in numbers: "-5.0 us to +1.1 us".
fn interval(change: &Change) -> String {
    let ends = |difference: Difference| {
        let interval = difference.interval;
        format!("{} to {}", signed(interval.low_ns), signed(interval.high_ns))
    };
    change.difference.map(ends).unwrap_or_default()
}

fn signed(ns: f64) -> String {
    format!("{}{}", if ns < 0.0 { "-" } else { "+" }, latency(ns.abs()))
}

fn entry(proven: Proven) -> ProofEntry {
    let (reason, effects) = match proven.answer {
        Answer::None(reason) => (Some(reason), Vec::new()),
        Answer::Effects(effects) => (None, effects),
    };
    ProofEntry {
        setting: proven.setting,
        environment: proven.environment,
        what: proven.what,
        evidence: proven.evidence,
        pairs: proven.pairs.0,
        reason,
        caution: proven.caution,
        effects: effects.iter().map(Change::entry).collect(),
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
                items.extend(effects.iter().map(|change| {
                    let tone = if change.is_shown() { Tone::Good } else { Tone::Quiet };
                    let text = format!("{}: {}", medians(change), words(change));
                    let name = change.quantity.said(proven.corrected);
                    Item::led(format!("    {name:<8}"), tone, text)
                }));
                items.extend(proven.caution.iter().map(|text| Item::led("   ", Tone::Doubt, text.clone())));
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
        let lead = [clean(&proven.setting), below].into_iter().chain(proven.caution.clone());
        let mut cells = vec![Cell::from(lead.collect::<Vec<_>>())];
        cells.push(format!("{} of {}", proven.pairs.0, proven.pairs.1).into());
        match &proven.answer {
            Answer::None(reason) => {
                let why = vec!["not tested".to_owned(), clean(reason)];
                cells.push(Cell { mark: Mark::Tone(Tone::Doubt), ..Cell::from(why) });
                cells.extend([Cell::default(), Cell::default()]);
            }
            Answer::Effects(effects) => cells.extend(effects.iter().map(|change| {
                let lines = vec![words(change), format!("{}; {}", medians(change), interval(change))];
                let tone = if change.is_shown() { Mark::Tone(Tone::Heading) } else { Mark::None };
                Cell { mark: tone, ..Cell::from(lines) }
            })),
        }
        cells
    };
    let corrected = proofs.iter().any(|proven| proven.corrected);
    let quantities = PROVEN.map(|quantity| quantity.said(corrected));
    let [p99, p999, maximum] = quantities.each_ref();
    let head = Head::all(["setting", "pairs", p99, p999, maximum]);
    Table::whole("", head, proofs.iter().map(row).collect())
}
