//! The figures of a study's document, beside those measured here.

use std::borrow::Cow;
use std::collections::BTreeSet;

use tactus_model::bundle::Contents;
use tactus_model::document::Published;
use tactus_model::number::float;
use tactus_model::outcome::ValueResult;

use super::Section;
use crate::part::{Cell, Head, Item, List, Mark, Part, Reader, Table, Tone};
use crate::row::{PublishedValue, published_value};
use crate::stats::{Line, comparison};
use crate::units::{NONE, clean, latency, latency_in_full, quantity};

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
        "The published figures beside those of this machine. They were measured on other hardware, which is the \
         first reason for a difference."
    }

    fn applies(&self, contents: &Contents) -> bool {
        !contents.plan.reference.is_empty()
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        let lines = comparison(contents);
        if reader == Reader::Terminal {
            return sources(contents, &lines).into_iter().collect();
        }
        let rows: Vec<Vec<Cell>> = lines.iter().flat_map(|line| rows(contents, line)).collect();
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

/// Where the published numbers of the tables come from.
fn sources<'a>(contents: &'a Contents, lines: &'a [Line]) -> Option<Part> {
    let of_line = |line: &'a Line| {
        let of_values = line.values.iter().filter_map(move |value| theirs(contents, line, value));
        let own = line.published.as_ref().map(|published| Cow::Borrowed(published.source.as_str()));
        own.into_iter().chain(of_values.map(|theirs| theirs.source))
    };
    let mut told = BTreeSet::new();
    let items: Vec<Item> = lines
        .iter()
        .filter(|line| !line.apart)
        .flat_map(of_line)
        .filter(|source| told.insert(source.clone()))
        .map(|source| Item::led("published:", Tone::Quiet, source.into_owned()))
        .collect();
    (!items.is_empty()).then_some(Part::List(List { items, led: true }))
}

fn theirs<'a>(contents: &'a Contents, line: &Line, value: &ValueResult) -> Option<PublishedValue<'a>> {
    published_value(&contents.plan, &contents.rows.get(line.row)?.result, value)
}

/// A row for each published figure of a measurement, whatever it yields.
fn rows(contents: &Contents, line: &Line) -> Vec<Vec<Cell>> {
    let values = line.values.iter().filter_map(|value| {
        let theirs = theirs(contents, line, value)?;
        let (published, own) = (quantity(theirs.value, value.unit), quantity(value.value, value.unit));
        Some(row(line, &value.name(), published, own, &theirs.source))
    });
    latencies(line).into_iter().chain(values).collect()
}

fn latencies(line: &Line) -> Vec<Vec<Cell>> {
    let Some(Published { min_ns, mean_ns, max_ns, source, .. }) = &line.published else { return Vec::new() };
    let all = line.figures.as_ref();
    let three = [
        ("minimum", min_ns, all.and_then(|all| all.min_ns.map(float))),
        ("mean", mean_ns, all.and_then(|all| all.mean_ns)),
        ("maximum", max_ns, all.and_then(|all| all.max_ns.map(float))),
    ];
    let shown = |(figure, theirs, ours): (&str, &Option<u64>, Option<f64>)| {
        let published = latency_in_full((*theirs)?);
        Some(row(line, figure, published, ours.map_or_else(|| NONE.into(), latency), source))
    };
    three.into_iter().filter_map(shown).collect()
}

fn row(line: &Line, figure: &str, published: String, own: String, source: &str) -> Vec<Cell> {
    let evidence = line.evidence.map_or_else(
        || Cell::from(NONE.to_owned()),
        |evidence| Cell::marked(evidence.to_string(), Mark::Evidence(evidence)),
    );
    vec![
        clean(&line.name).into(),
        clean(figure).into(),
        published.into(),
        own.into(),
        evidence,
        clean(source).into(),
    ]
}
