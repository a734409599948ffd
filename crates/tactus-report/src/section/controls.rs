//! Whether the instrument is proven.

use tactus_model::bundle::{Contents, RowResult};
use tactus_model::event::RowStatus;
use tactus_model::outcome::Yields;
use tactus_model::number::float;

use super::Section;
use crate::part::{Cell, Head, Item, List, Mark, Part, Reader, Table, Tone};
use crate::row::{control, control_sentence, controls, title};
use crate::units::{clean, latency};

/// The section.
pub struct Controls;
/// Its entry.
pub static ENTRY: Controls = Controls;

impl Section for Controls {
    fn name(&self) -> &'static str {
        "controls"
    }

    fn heading(&self) -> &'static str {
        "Controls"
    }

    fn about(&self) -> &'static str {
        "Before it measures, every thread must see a fault of known size: a task above it holds its CPU. \
         Where it is not seen at its size, the instrument is not proven and there is no verdict."
    }

    fn applies(&self, contents: &Contents) -> bool {
        contents.rows.iter().any(|row| has_control(&row.result))
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        let item = |(proven, sentence): (bool, String)| match reader {
            Reader::Terminal => Item::led("control:", if proven { Tone::Good } else { Tone::Bad }, sentence),
            Reader::Markdown | Reader::Page => Item::said(sentence),
        };
        if reader == Reader::Page {
            return vec![Part::Table(table(contents))];
        }
        let items: Vec<Item> = controls(contents).into_iter().map(item).collect();
        let led = reader == Reader::Terminal;
        if items.is_empty() { Vec::new() } else { vec![Part::List(List { items, led })] }
    }
}

/// Whether its threads must have seen a control: values are no latencies of a thread that something could hold.
fn has_control(result: &RowResult) -> bool {
    result.status == RowStatus::Measured && result.outcome.yields() == Yields::Latency
}

/// A row for every control, and one for a measurement without.
fn table(contents: &Contents) -> Table {
    let measured = contents.rows.iter().filter(|row| has_control(&row.result));
    let head = vec![
        Head::words("scenario"),
        Head::words("thread"),
        Head::number("injected"),
        Head::number("seen"),
        Head::number("noise before"),
        Head::words("proven"),
    ];
    Table::whole("", head, measured.flat_map(|row| rows(contents, &row.result)).collect())
}

fn rows(contents: &Contents, result: &RowResult) -> Vec<Vec<Cell>> {
    let word = |proven: bool| {
        let (word, tone) = if proven { ("yes", Tone::Good) } else { ("no", Tone::Doubt) };
        Cell::marked(word, Mark::Tone(tone))
    };
    let name = clean(&title(contents, result));
    let mut rows: Vec<Vec<Cell>> = result
        .control
        .iter()
        .map(|control| {
            let ns = |ns: u64| Cell::from(latency(float(ns)));
            let [injected, seen, noise] = [control.injected_ns, control.seen_ns, control.noise_ns].map(ns);
            let thread = Cell::from(clean(&control.series.to_string()));
            vec![name.clone().into(), thread, injected, seen, noise, word(control.is_seen())]
        })
        .collect();
    if !control(result).is_some_and(|entry| entry.proven) {
        let none = Cell::default;
        let sentence = Cell::from(control_sentence(result));
        rows.push(vec![name.into(), sentence, none(), none(), none(), word(false)]);
    }
    rows
}
