//! The comparison of technologies as tables: the document's words and ours, and the numbers behind each.

use tactus_model::bundle::{Contents, slug};
use tactus_model::document::{LeakEntry, TechnologyEntry, WordEntry};

use super::judgement::{about, technologies};
use crate::part::{Cell, Head, Table};
use crate::section::separation::{anchor, separation};
use crate::units::clean;

/// The document's table, and what the measurements say.
#[must_use]
pub fn technology_table(contents: &Contents) -> Option<Table> {
    let all = technologies(contents);
    let first = all.first()?;
    let column_head = |own: &TechnologyEntry| {
        let evidence = own.evidence.map(|evidence| format!(", {evidence}")).unwrap_or_default();
        format!("{} ({}{evidence})", clean(&own.name), clean(&own.kind))
    };
    let head = std::iter::once(String::new()).chain(all.iter().map(column_head)).map(Head::words).collect();
    let cell = |own: &TechnologyEntry, word: &WordEntry| {
        let mut lines = vec![word.word.clone()];
        lines.extend(word.published.as_ref().map(|text| format!("document: {}", clean(text))));
        lines.extend(word.differs.filter(|differs| *differs).map(|_| "differs".to_owned()));
        Cell { link: Some(why(own, word)), ..Cell::from(lines) }
    };
    let rows = (0..first.words.len())
        .map(|n| {
            let label = Cell::from(about(first.words[n].row).to_owned());
            std::iter::once(label).chain(all.iter().map(|own| cell(own, &own.words[n]))).collect()
        })
        .collect();
    let remarks =
        vec!["The rules behind the words: docs/design/separation.md; below, the numbers behind each.".into()];
    Some(Table { remarks, ..Table::whole("Comparison of technologies", head, rows) })
}

/// Id of the reasons of a word.
fn why(own: &TechnologyEntry, word: &WordEntry) -> String {
    format!("why-{}-{}", slug(&own.name), slug(about(word.row)))
}

/// The numbers behind each word, one row each.
#[must_use]
pub fn reasons_table(contents: &Contents) -> Option<Table> {
    let all = technologies(contents);
    if all.is_empty() {
        return None;
    }
    let separation = separation(contents);
    let leak = |own: &TechnologyEntry, scenario: &String| {
        let cells = separation.iter().flat_map(|all| &all.cells);
        let of = |cell: &&LeakEntry| {
            cell.scenario == *scenario
                && (cell.disturbed == own.environment || cell.measured == own.environment)
                && cell.disturbed != cell.measured
        };
        cells.into_iter().find(of).map(anchor)
    };
    let mut rows = Vec::new();
    for own in &all {
        for word in &own.words {
            let mut first = Cell::from(vec![clean(&own.name), about(word.row).to_owned()]);
            first.id = Some(why(own, word));
            let link = word.scenarios.iter().find_map(|name| leak(own, name)).or_else(|| {
                let row = contents.rows.iter().position(|row| {
                    word.scenarios.contains(&row.result.name) && row.result.environment == own.environment
                });
                row.map(|n| format!("row-{n}"))
            });
            let said = Cell { link, ..Cell::from(word.word.clone()) };
            rows.push(vec![first, said, Cell::from(word.reasons.clone())]);
        }
    }
    Some(Table::whole("Why these words", Head::all(["about", "word", "numbers behind it"]), rows))
}
