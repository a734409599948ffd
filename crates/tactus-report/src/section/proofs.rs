//! The benefit of each setting under test on this machine.

use tactus_model::bundle::Contents;
use tactus_model::document::{Document, ProofEntry};
use tactus_statistics::Difference;

use super::Section;
use crate::part::{Cell, Head, Item, List, Mark, Part, Reader, Table, Tone};
use crate::stats::{Change, PROVEN, Proven, proofs};
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
        "Each setting with and without, in pairs of random order: medians of the pairs, and effects by the \
         signed-rank test. The family-wise error rate is 5 %: for all statements (Holm), and for all \
         intervals (Bonferroni). Quantiles are corrected for missed periods."
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
const METHOD: &str = "medians of the pairs; effects by the signed-rank test; family-wise error rate 5 %, \
                      for all effects (Holm) and for all intervals (Bonferroni)";

/// "3.9 us without, 3.4 us with".
fn medians(change: &Change) -> String {
    let value = |ns: f64| if ns.is_finite() { latency(ns) } else { "all broke".into() };
    format!("{} without, {} with", value(change.base_ns), value(change.with_ns))
}

/// The interval in numbers: "-5.0 us to +1.1 us".
fn interval(change: &Change) -> String {
    let ends = |difference: Difference| {
        let interval = difference.interval;
        format!("; {} to {}", signed(interval.low_ns), signed(interval.high_ns))
    };
    change.difference.map(ends).unwrap_or_default()
}

fn signed(ns: f64) -> String {
    let size = if ns.is_finite() { latency(ns.abs()) } else { "any size".into() };
    format!("{}{size}", if ns < 0.0 { "-" } else { "+" })
}

fn entry(proven: Proven) -> ProofEntry {
    ProofEntry {
        setting: proven.setting,
        environment: proven.environment,
        what: proven.what,
        evidence: proven.evidence,
        pairs: proven.whole,
        planned: proven.planned,
        broken: proven.broken,
        reason: proven.reason,
        cautions: proven.cautions,
        effects: proven.effects.iter().map(Change::entry).collect(),
    }
}

/// Each setting in a few lines.
fn list(proofs: &[Proven]) -> List {
    proofs.iter().flat_map(items).collect::<Vec<Item>>().into()
}

fn items(proven: &Proven) -> Vec<Item> {
    let lead = format!("  {}", clean(&proven.setting));
    let not_tested = proven.reason.as_ref().map(|reason| format!("not tested: {reason}"));
    let mut items = Vec::new();
    match (&not_tested, proven.effects.is_empty()) {
        (Some(why), true) => items.push(Item::led(lead, Tone::Doubt, why.clone())),
        _ => {
            items.push(Item::led(lead, Tone::Heading, place(proven)));
            items.push(Item::led("   ", Tone::Quiet, proven.what.clone()));
            items.extend(not_tested.map(|why| Item::led("   ", Tone::Doubt, why)));
        }
    }
    items.extend(proven.effects.iter().map(|change| {
        let tone = if change.is_shown() { Tone::Good } else { Tone::Quiet };
        let said = if proven.is_tested() { format!(": {}", change.words()) } else { String::new() };
        let name = change.quantity.said(proven.corrected);
        Item::led(format!("    {name:<8}"), tone, medians(change) + &said)
    }));
    items.extend(proven.cautions.iter().map(|text| Item::led("   ", Tone::Doubt, text.clone())));
    items
}

/// "(host, 10 of 10 pairs, bare metal)".
fn place(proven: &Proven) -> String {
    let evidence = proven.evidence.map(|evidence| format!(", {evidence}")).unwrap_or_default();
    format!("({}, {} of {} pairs{evidence})", clean(&proven.environment), proven.whole, proven.planned)
}

/// A row for each setting, a column for each quantity.
fn table(proofs: &[Proven]) -> Table {
    let row = |proven: &Proven| {
        let evidence = proven.evidence.map(|evidence| format!(", {evidence}")).unwrap_or_default();
        let below = format!("{}{evidence}: {}", clean(&proven.environment), clean(&proven.what));
        let lead =
            [clean(&proven.setting), below].into_iter().chain(proven.cautions.iter().map(|text| clean(text)));
        let mut cells = vec![Cell::from(lead.collect::<Vec<_>>())];
        cells.push(format!("{} of {}", proven.whole, proven.planned).into());
        cells.extend(PROVEN.into_iter().enumerate().map(|(n, quantity)| {
            let change = proven.effects.iter().find(|change| change.quantity == quantity);
            let reason = proven.reason.iter().filter(|_| n == 0);
            let mut lines: Vec<String> =
                reason.flat_map(|reason| ["not tested".to_owned(), clean(reason)]).collect();
            match change {
                Some(change) if proven.is_tested() => {
                    lines.extend([change.words(), format!("{}{}", medians(change), interval(change))]);
                }
                Some(change) => lines.push(medians(change)),
                None => {}
            }
            let mark = match proven.is_tested() {
                false if n == 0 => Mark::Tone(Tone::Doubt),
                true if change.is_some_and(Change::is_shown) => Mark::Tone(Tone::Heading),
                _ => Mark::None,
            };
            Cell { mark, ..Cell::from(lines) }
        }));
        cells
    };
    let corrected = proofs.iter().any(|proven| proven.corrected);
    let quantities = PROVEN.map(|quantity| quantity.said(corrected));
    let [p99, p999, maximum] = quantities.each_ref();
    let head = Head::all(["setting", "pairs", p99, p999, maximum]);
    Table::whole("", head, proofs.iter().map(row).collect())
}
