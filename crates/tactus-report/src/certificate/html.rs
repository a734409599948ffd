//! The two pages for a browser and its printer.

use serde::Serialize;

use super::rows::HEAD;
use super::{Certificate, CertificateError, Entry};
use crate::figure::standalone;
use crate::part::Tone;
use crate::render::RenderError;
use crate::render::html::{escaping, hash};

/// Input of the template.
#[derive(Debug, Serialize)]
struct Pages<'a> {
    title: &'a str,
    under: &'a str,
    question: &'a str,
    asked: Vec<Line<'a>>,
    word: &'a str,
    class: &'static str,
    sentence: &'a str,
    figure: Option<Drawn<'a>>,
    head: Vec<(&'static str, bool)>,
    rows: Vec<Vec<(&'a str, bool)>>,
    remark: &'a str,
    conditions: Vec<Line<'a>>,
    notes: &'a [String],
}

#[derive(Debug, Serialize)]
struct Drawn<'a> {
    title: &'a str,
    /// Made by this program; texts in it are escaped.
    svg: String,
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    name: &'a str,
    value: &'a str,
    lines: usize,
}

/// A certificate as a page of HTML, which prints as two pages of A4.
///
/// # Errors
/// When the template cannot be rendered, which a test excludes.
pub fn html(certificate: &Certificate) -> Result<String, CertificateError> {
    Ok(filled(&pages(certificate))?)
}

fn filled(pages: &Pages<'_>) -> Result<String, RenderError> {
    let style = include_str!("certificate.css");
    let mut environment = escaping()?;
    environment.add_template("certificate.html", include_str!("certificate.html"))?;
    Ok(environment.get_template("certificate.html")?.render(minijinja::context! {
        page => minijinja::value::Serde(pages),
        style_hash => hash(style),
        style,
    })?)
}

fn pages(of: &Certificate) -> Pages<'_> {
    Pages {
        title: &of.title,
        under: &of.under,
        question: of.question,
        asked: lines(&of.asked),
        word: of.word,
        class: match of.tone {
            Tone::Good => "good",
            Tone::Bad => "bad",
            Tone::Doubt | Tone::Quiet | Tone::Heading => "doubt",
        },
        sentence: &of.sentence,
        figure: of
            .figure
            .as_ref()
            .map(|figure| Drawn { title: &figure.title, svg: standalone(&figure.svg()) }),
        head: HEAD.to_vec(),
        rows: of
            .table
            .rows
            .iter()
            .map(|row| row.iter().map(String::as_str).zip(HEAD.iter().map(|(_, number)| *number)).collect())
            .collect(),
        remark: &of.table.remark,
        conditions: lines(&of.conditions),
        notes: &of.notes,
    }
}

fn lines(entries: &[Entry]) -> Vec<Line<'_>> {
    entries.iter().map(|entry| Line { name: entry.name, value: &entry.value, lines: entry.lines }).collect()
}
