//! The requirements of the plan, and whether they are kept.

use std::collections::BTreeMap;

use tactus_model::bundle::Contents;
use tactus_model::document::Outcome;

use super::Section;
use crate::part::{Item, Part, Reader};
use crate::stats::comparison;
use crate::units::{clean, unbroken};

/// The section.
pub struct Requirements;
/// Its entry.
pub static ENTRY: Requirements = Requirements;

impl Section for Requirements {
    fn name(&self) -> &'static str {
        "requirements"
    }

    fn heading(&self) -> &'static str {
        "Requirements"
    }

    fn about(&self) -> &'static str {
        "What the plan requires of each measurement, and whether it is met. Results: pass, warn (a limit \
         that only warns is exceeded), fail, or inconclusive if the evidence is too weak for a verdict."
    }

    fn applies(&self, contents: &Contents) -> bool {
        contents.rows.iter().any(|row| row.result.require.is_some())
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        let items = comparison(contents).into_iter().filter_map(|line| {
            let verdict = line.verdict.filter(|_| reader != Reader::Terminal || !line.apart)?;
            let word = match verdict.outcome {
                Outcome::Fail => "FAIL",
                other => other.word(),
            };
            let lead = if reader == Reader::Terminal { format!("{word:<13}") } else { word.to_owned() };
            let text = if reader == Reader::Page { unbroken(&verdict.reason) } else { verdict.reason };
            Some(Item { name: clean(&line.name), ..Item::led(lead, verdict.outcome.into(), text) })
        });
        let items = match reader {
            Reader::Page => together(items),
            Reader::Terminal | Reader::Markdown => items.collect(),
        };
        if items.is_empty() { Vec::new() } else { vec![Part::List(items.into())] }
    }

    fn opens(&self) -> bool {
        true
    }
}

/// Joins the items of several scenarios that have the same words.
fn together(items: impl Iterator<Item = Item>) -> Vec<Item> {
    let mut all: Vec<(Item, Vec<String>)> = Vec::new();
    let mut told: BTreeMap<(String, String), usize> = BTreeMap::new();
    for mut item in items {
        let at = *told.entry((item.lead.clone(), item.text.clone())).or_insert(all.len());
        let name = std::mem::take(&mut item.name);
        if at == all.len() {
            all.push((item, Vec::new()));
        }
        all[at].1.push(name);
    }
    all.into_iter().map(|(item, names)| Item { name: names.join("; "), ..item }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::Tone;

    #[test]
    fn what_is_told_in_the_same_words_is_told_once_with_all_names_in_their_order() {
        let item = |name: &str, text: &str| Item { name: name.into(), ..Item::led("FAIL", Tone::Bad, text) };
        let all = together(
            [item("a", "late"), item("b", "lost"), item("c", "late"), item("d", "late")].into_iter(),
        );
        let told: Vec<(&str, &str)> = all.iter().map(|item| (&*item.name, &*item.text)).collect();
        assert_eq!(told, [("a; c; d", "late"), ("b", "lost")]);
        // Looked for among all others, and joined anew for each, these would take minutes.
        let names = (0..100_000).map(|n| n.to_string());
        let many = together(names.clone().map(|name| item(&name, "late")));
        assert_eq!((many.len(), many[0].name.len()), (1, names.clone().collect::<Vec<_>>().join("; ").len()));
        let apart = together(names.map(|text| item("a", &text)));
        assert_eq!(apart.len(), 100_000);
    }
}
