//! What a study's document published, beside what was measured here.

use tactus_model::bundle::Contents;
use tactus_model::document::Published;
use tactus_model::number::float;

use super::Section;
use crate::part::{Cell, Head, Item, List, Mark, Part, Reader, Table, Tone};
use crate::stats::{Line, comparison};
use crate::units::{NONE, clean, latency};

/// The section.
pub struct Theirs;
/// Its entry.
pub static ENTRY: Theirs = Theirs;

impl Section for Theirs {
    fn name(&self) -> &'static str {
        "published"
    }

    fn heading(&self) -> &'static str {
        "Published and measured here"
    }

    fn about(&self) -> &'static str {
        "The figures of the document, beside those of this machine. They were measured on other hardware: \
         the difference is the machine's before it is anything else's."
    }

    fn applies(&self, contents: &Contents) -> bool {
        !contents.plan.reference.is_empty()
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        let lines = comparison(contents);
        if reader == Reader::Terminal {
            return sources(&lines).into_iter().collect();
        }
        let rows: Vec<Vec<Cell>> = lines.iter().flat_map(rows).collect();
        let words = |name: &str| Head::words(name);
        let head = vec![
            words("scenario"),
            words("figure"),
            Head::number("published"),
            Head::number("measured"),
            words("evidence"),
            words("source"),
        ];
        if rows.is_empty() { Vec::new() } else { vec![Part::Table(Table::whole("", head, rows))] }
    }
}

/// Where the published numbers of the table come from.
fn sources(lines: &[Line]) -> Option<Part> {
    let listed = lines.iter().filter(|line| !line.apart);
    let mut sources: Vec<&str> = listed.filter_map(|line| Some(line.published.as_ref()?.source.as_str())).collect();
    sources.dedup();
    let item = |source: &str| Item::led("published:", Tone::Quiet, source);
    let items: Vec<Item> = sources.into_iter().map(item).collect();
    (!items.is_empty()).then_some(Part::List(List { items, led: true }))
}

fn rows(line: &Line) -> Vec<Vec<Cell>> {
    let Some(Published { min_ns, mean_ns, max_ns, source, .. }) = &line.published else { return Vec::new() };
    let all = line.figures.as_ref();
    let three = [
        ("minimum", min_ns, all.and_then(|all| all.min_ns.map(float))),
        ("mean", mean_ns, all.and_then(|all| all.mean_ns)),
        ("maximum", max_ns, all.and_then(|all| all.max_ns.map(float))),
    ];
    let row = |(figure, theirs, ours): (&str, &Option<u64>, Option<f64>)| {
        let evidence = line.evidence.map_or_else(
            || Cell::from(NONE.to_owned()),
            |evidence| Cell::marked(evidence.to_string(), Mark::Evidence(evidence)),
        );
        Some(vec![
            clean(&line.name).into(),
            figure.to_owned().into(),
            latency(float((*theirs)?)).into(),
            ours.map_or_else(|| NONE.into(), latency).into(),
            evidence,
            clean(source).into(),
        ])
    };
    three.into_iter().filter_map(row).collect()
}
