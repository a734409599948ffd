//! The evidence of the numbers in this report.

use tactus_model::Evidence;
use tactus_model::bundle::Contents;

use super::Section;
use crate::part::{Item, List, Mark, Part, Reader};

/// The section.
pub struct Kinds;
/// Its entry.
pub static ENTRY: Kinds = Kinds;

impl Section for Kinds {
    fn name(&self) -> &'static str {
        "evidence"
    }

    fn heading(&self) -> &'static str {
        "Evidence"
    }

    fn about(&self) -> &'static str {
        "The kinds of evidence in this report, and the conclusions that each allows."
    }

    fn applies(&self, contents: &Contents) -> bool {
        contents.rows.iter().any(|row| row.result.evidence.is_some())
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        let mut kinds: Vec<Evidence> = contents.rows.iter().filter_map(|row| row.result.evidence).collect();
        kinds.sort_by_key(ToString::to_string);
        kinds.dedup();
        let item = |kind: Evidence| Item {
            lead: if reader == Reader::Terminal {
                format!("{} {kind}:", kind.mark())
            } else {
                format!("{kind}:")
            },
            mark: Mark::Evidence(kind),
            text: kind.meaning().into(),
            ..Item::default()
        };
        vec![Part::List(List { items: kinds.into_iter().map(item).collect(), led: true })]
    }

    fn opens(&self) -> bool {
        true
    }
}
