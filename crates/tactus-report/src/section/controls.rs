//! Whether the instrument is proven.

use std::collections::BTreeSet;

use tactus_model::bundle::{Contents, RowResult};
use tactus_model::event::RowStatus;
use tactus_model::message::Stage;
use tactus_model::number::float;
use tactus_model::outcome::Yields;

use super::Section;
use crate::part::{Cell, Head, Item, List, Mark, Part, Reader, Table, Tone};
use crate::row::{control, control_sentence, controls, spared, title};
use crate::units::{NONE, clean, count, latency, latency_or_unknown};

/// The section.
pub struct Controls;
/// Its entry.
pub static ENTRY: Controls = Controls;

impl Section for Controls {
    fn name(&self) -> &'static str {
        "controls"
    }

    fn heading(&self) -> &'static str {
        "Self-tests"
    }

    fn about(&self) -> &'static str {
        "Before and after it measures, each thread must see a fault of known size: a task of higher priority (a \
         FIFO spinner) holds its CPU. The fault is counted, sent and decoded like every latency. This shows that \
         a late thread is reported as late as it was. The rate of its clock is checked only if another clock is \
         named below. If the fault is not seen at its size, there is no verdict."
    }

    fn folded(&self, contents: &Contents, _: &[Part]) -> Option<String> {
        let own = contents.rows.iter().map(|row| &row.result).filter(|result| has_control(result));
        let passed = |result: &RowResult| control(result).is_some_and(|control| control.passed);
        let (passed, all) =
            own.fold((0_u64, 0_u64), |(yes, all), own| (yes + u64::from(passed(own)), all + 1));
        Some(format!("passed in {} of {} measurements", count(passed), count(all)))
    }

    fn applies(&self, contents: &Contents) -> bool {
        contents.rows.iter().any(|row| has_control(&row.result))
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        let item = |(proven, sentence): (bool, String)| match reader {
            Reader::Terminal => {
                Item::led("self-test:", if proven { Tone::Good } else { Tone::Bad }, sentence)
            }
            Reader::Markdown | Reader::Page => Item::said(sentence),
        };
        if reader == Reader::Page {
            let mut parts = vec![Part::Table(table(contents))];
            parts.extend(clocks(contents).into_iter().map(Part::Remark));
            return parts;
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

/// A row for every control, and one for a measurement that should have one and has none.
fn table(contents: &Contents) -> Table {
    let spared = spared(contents);
    let is_spared = |result: &RowResult| result.control.is_empty() && spared.contains(result.name.as_str());
    let measured = contents.rows.iter().filter(|row| has_control(&row.result) && !is_spared(&row.result));
    let head = vec![
        Head::words("scenario"),
        Head::words("thread"),
        Head::words("when"),
        Head::number("injected"),
        Head::number("seen"),
        Head::number("noise before"),
        Head::words("passed"),
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
            let known = |ns: Option<u64>| Cell::from(latency_or_unknown(ns));
            // Of a fault that was not made, because the place is too noisy for it, nothing can be seen.
            let [injected, seen] = match control.injected() {
                None => [Cell::from("not made".to_owned()), Cell::from(NONE.to_owned())],
                injected => [injected, control.seen()].map(known),
            };
            let noise = known(control.noise());
            let thread = Cell::from(clean(&control.series.to_string()));
            let (when, proven) = match control.stage {
                Stage::Before => ("before", word(control.is_seen())),
                Stage::After => ("after", word(control.is_seen())),
                Stage::Fine if control.is_seen() || control.is_resolvable() => {
                    ("before", word(control.is_seen()))
                }
                Stage::Fine => ("before", Cell::from("too noisy to tell".to_owned())),
            };
            vec![name.clone().into(), thread, Cell::from(when.to_owned()), injected, seen, noise, proven]
        })
        .collect();
    if !control(result).is_some_and(|entry| entry.passed) {
        let none = Cell::default;
        let sentence = Cell::from(control_sentence(result));
        rows.push(vec![name.into(), sentence, none(), none(), none(), none(), word(false)]);
    }
    rows
}

/// The properties of the clocks, a sentence for each environment.
fn clocks(contents: &Contents) -> Vec<String> {
    let (mut said, mut places) = (Vec::new(), BTreeSet::new());
    for result in contents.rows.iter().map(|row| &row.result).filter(|result| has_control(result)) {
        let Some(clock) = &result.clock else { continue };
        let place = clean(&result.environment);
        let step =
            clock.step_ns.map_or_else(String::new, |ns| format!(", steps of at most {}", latency(float(ns))));
        let rates: Vec<String> = clock.rates.iter().map(|rate| clean(&rate.against)).collect();
        let rate = match (clock.refusal(), rates.is_empty()) {
            (Some(why), _) => why,
            (None, true) => "no second clock to compare it with".into(),
            (None, false) => format!("its rate is within 2 % of {}", rates.join(" and ")),
        };
        let sentence = format!("Clock of {place}: {rate}{step}.");
        // A step differs from row to row by the duration of a reading: the first row speaks for the
        // environment.
        if places.insert(place) || clock.refusal().is_some() {
            said.push(sentence);
        }
    }
    said
}
