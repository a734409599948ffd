//! What the plan requires, and whether it is kept.

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
        "What the plan requires of each measurement, and whether it is kept: pass, warn (a limit that only warns is \
         exceeded), fail, or inconclusive where the evidence does not carry a verdict."
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

/// What several scenarios are told in the same words is told once.
fn together(items: impl Iterator<Item = Item>) -> Vec<Item> {
    let mut all: Vec<Item> = Vec::new();
    for item in items {
        match all.iter_mut().find(|other| other.mark == item.mark && other.text == item.text) {
            Some(other) => other.name = [other.name.as_str(), &item.name].join("; "),
            None => all.push(item),
        }
    }
    all
}
