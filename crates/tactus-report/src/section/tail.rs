//! The latency that is exceeded less than once in a longer time than was measured, or why it is unknown.

use tactus_model::bundle::{Contents, Row};
use tactus_statistics::tail::Bound;

use super::Section;
use crate::figure::{quantiles, return_levels, shapes};
use crate::part::{Item, Part, Reader, Tone};
use crate::row::{NoTail, apart, figures, not_covered, provisional, scenario_title, tail, title};
use crate::units::{clean, count, duration, latency};

/// The section.
pub struct Tails;
/// Its entry.
pub static ENTRY: Tails = Tails;

/// Precedes the reason for a missing bound.
const NO_BOUND: &str = "no bound";
/// Most bounds that are drawn: a page of hundreds of figures is too long to read.
const DRAWN: usize = 6;
/// Most rows that are named for one reason.
const NAMED: usize = 6;

impl Section for Tails {
    fn name(&self) -> &'static str {
        "tail"
    }

    fn heading(&self) -> &'static str {
        "Tail"
    }

    fn about(&self) -> &'static str {
        "The latency that is exceeded less than once in a time longer than the measurement, by extreme value \
         theory, if load, machine and configuration stay as measured. It is not a worst case. There is no \
         bound if the blocks of time depend on each other or drift, if they are too few, or if the tail fits \
         no single distribution. The worst of several threads decides. The bound is the upper end of the 95 \
         % interval by profile likelihood. With fewer than 1800 blocks (half an hour of blocks of 1 s) it is \
         provisional: no requirement passes on it."
    }

    fn folded(&self, contents: &Contents, parts: &[Part]) -> Option<String> {
        let items = parts.iter().flat_map(|part| match part {
            Part::List(list) => list.items.as_slice(),
            _ => &[],
        });
        let bounds = items.filter(|item| item.lead != NO_BOUND).count();
        // Each of these has a bound, or a reason why it has none.
        let all = contents.rows.iter().filter(|row| figures(&row.result).is_some()).count();
        Some(match bounds {
            0 => "no bound: the measurement is too short, or its data supports none".into(),
            _ => format!("a bound for {} of {} measurements", count(bounds as u64), count(all as u64)),
        })
    }

    fn applies(&self, contents: &Contents) -> bool {
        found(contents).next().is_some()
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        let (mut items, mut drawings) = (Vec::new(), Vec::new());
        let mut refused: Vec<(String, Option<u64>, Vec<String>)> = Vec::new();
        for (row, found) in found(contents) {
            let name = clean(&title(contents, &row.result));
            match found {
                Ok(bound) => {
                    let item = match (reader, bound.is_promise()) {
                        (Reader::Terminal, true) => Item::led("tail:", Tone::Heading, sentence(&bound)),
                        (Reader::Terminal, false) => Item::led("tail:", Tone::Doubt, sentence(&bound)),
                        (Reader::Markdown | Reader::Page, true) => Item::said(sentence(&bound)),
                        (Reader::Markdown | Reader::Page, false) => {
                            Item::led("provisional", Tone::Doubt, sentence(&bound))
                        }
                    };
                    items.push(Item { name: name.clone(), ..item });
                    if reader == Reader::Page && drawings.len() < 3 * DRAWN {
                        drawings.extend(drawn(row, &bound, &name).map(Part::Figure));
                    }
                }
                Err(why) => {
                    let asked = row.result.require.as_ref().is_some_and(|require| require.tail.is_some());
                    // A terminal shows only the bounds that the user asked for.
                    if reader != Reader::Terminal || (asked && !apart(contents, &row.result.name)) {
                        group(&mut refused, &why, clean(&scenario_title(contents, &row.result)));
                    }
                }
            }
        }
        let refusals: Vec<Item> = refused.into_iter().map(|one| refusal(one, reader)).collect();
        items.extend(refusals);
        let led = reader == Reader::Terminal;
        let list = (!items.is_empty()).then_some(Part::List(crate::part::List { items, led }));
        list.into_iter().chain(drawings).collect()
    }

    fn draws(&self) -> bool {
        true
    }
}

fn found(contents: &Contents) -> impl Iterator<Item = (&Row, Result<Bound, NoTail>)> {
    contents.rows.iter().filter_map(|row| Some((row, tail(row)?)))
}

/// Rows that are refused for the same reason stand together, each scenario once.
fn group(refused: &mut Vec<(String, Option<u64>, Vec<String>)>, why: &NoTail, name: String) {
    let said = why.to_string();
    match refused.iter_mut().find(|(other, ..)| *other == said) {
        Some((_, longer, names)) => {
            *longer = (*longer).max(why.longer_ns());
            if !names.contains(&name) {
                names.push(name);
            }
        }
        None => refused.push((said, why.longer_ns(), vec![name])),
    }
}

fn refusal((said, longer, names): (String, Option<u64>, Vec<String>), reader: Reader) -> Item {
    let longer = longer.map(|ns| format!("; {} more would be enough", duration(ns)));
    let named = match names.len() {
        many if many > NAMED => {
            format!("{} and {} more", names[..NAMED].join("; "), count((many - NAMED) as u64))
        }
        _ => names.join("; "),
    };
    let text = format!("{}{}", clean(&said), longer.unwrap_or_default());
    let item = match reader {
        Reader::Terminal => Item::led("tail:", Tone::Doubt, format!("no bound: {text}")),
        Reader::Markdown | Reader::Page => Item::led(NO_BOUND, Tone::Doubt, text),
    };
    Item { name: named, ..item }
}

/// "exceeded less than once in 24 h of this load: at most 187 us (95 %; ...), if all stays as measured".
fn sentence(bound: &Bound) -> String {
    let tail = &bound.tail;
    let doubt = provisional(bound)
        .map(|why| format!("; {why}; {} more of the same would be enough", duration(bound.lacking_ns)));
    let of_threads = match bound.among {
        1 => String::new(),
        many => format!("; the worst of {} threads", count(many as u64)),
    };
    let blocks = duration(tail.block_ns);
    format!(
        "exceeded less than once in {} of this load: at most {} (95 %; estimate {}; observed {} in {}). Fit: \
         generalised Pareto above {}, k = {}, xi = {:.2} [{:.2}, {:.2}], maxima of {blocks}{of_threads}. It \
         holds if load, machine and configuration stay as measured, and is not a worst case: {}{}",
        duration(bound.horizon_ns),
        latency(bound.level.high),
        latency(bound.estimate_ns),
        latency(bound.observed_ns),
        duration(tail.measured_ns()),
        latency(tail.threshold),
        count(tail.k() as u64),
        tail.fit.gpd.xi,
        tail.xi.low,
        tail.xi.high,
        not_covered(bound),
        doubt.unwrap_or_default(),
    )
}

/// Its figures.
fn drawn(row: &Row, bound: &Bound, name: &str) -> impl Iterator<Item = crate::figure::Figure> {
    let limit = row.result.require.as_ref().and_then(|require| require.tail).map(|limit| limit.max.0);
    let whose = |what: &str| format!("{name}: {what}");
    [
        return_levels(&whose("exceeded once in this time"), bound, limit),
        quantiles(&whose("the tail against the fitted distribution"), &bound.tail),
        shapes(&whose("shape by threshold"), &bound.tail),
    ]
    .into_iter()
}
