//! Which environments a disturbance reaches, as a grid: a row for each one that is disturbed, a column for
//! each one that is measured. Every field says its word; its shade only repeats it.

use tactus_model::bundle::Contents;
use tactus_model::document::{Leak, LeakEntry, SeparationEntry};
use tactus_model::number::float;

use super::canvas::{Anchor, Canvas, Figure, Hover, WIDTH};
use super::theme::{MUTED, series};
use crate::analysis::separation;
use crate::units::{clean, latency, shortened};

/// Room for the names of the rows.
const NAMES: f64 = 130.0;
/// Room for the names of the columns.
const HEAD: f64 = 50.0;
/// Height of a field: the same CPU and the others, two lines each.
const FIELD: f64 = 92.0;
/// Room for the legend.
const FOOT: f64 = 42.0;
/// Width of a letter, at most.
const LETTER: f64 = 7.2;

/// A figure for each disturbance.
pub fn leaks(contents: &Contents) -> Vec<Figure> {
    let Some(entry) = separation(contents) else { return Vec::new() };
    let mut kinds: Vec<&str> = Vec::new();
    for cell in &entry.cells {
        if !kinds.contains(&cell.disturbance.as_str()) {
            kinds.push(&cell.disturbance);
        }
    }
    kinds.into_iter().map(|kind| grid(&entry, kind)).collect()
}

fn grid(entry: &SeparationEntry, kind: &str) -> Figure {
    let there = entry.environments.iter().filter(|name| !entry.absent.contains_key(*name));
    let names: Vec<&String> = there.collect();
    let across = f64::from(WIDTH) - NAMES;
    let wide = across / float(names.len().max(1) as u64);
    let letters = tactus_model::number::whole((wide - 12.0) / LETTER);
    let most = usize::try_from(letters).unwrap_or(12);
    let total = HEAD + FIELD * float(names.len() as u64) + FOOT;
    let height = u32::try_from(tactus_model::number::whole(total)).unwrap_or(400);
    let elements = Canvas::draw(height, |canvas| {
        canvas.quiet("measured in", (NAMES, 12.0), Anchor::Start);
        for (n, name) in (0_u32..).zip(&names) {
            let at = f64::from(n);
            let middle = NAMES + wide * (at + 0.5);
            canvas.text(&shortened(&clean(name), most), (middle, 26.0), Anchor::Below);
            let y = HEAD + FIELD * at;
            canvas.text(&shortened(&clean(name), 17), (4.0, y + 22.0), Anchor::Start);
            let own = entry.cells.iter().find(|cell| cell.disturbance == kind && cell.disturbed == **name);
            if let Some(cell) = own {
                let place = cell.disturbed_cpu.map_or_else(|| "own CPU".into(), |cpu| format!("CPU {cpu}"));
                let place = match cell.disturbed_inside {
                    Some(inside) if Some(inside) != cell.disturbed_cpu => {
                        format!("{place} ({inside} inside)")
                    }
                    _ => place,
                };
                canvas.quiet(&place, (4.0, y + 42.0), Anchor::Start);
                if let Some(ns) = cell.length_ns {
                    canvas.quiet(&latency(float(ns)), (4.0, y + 62.0), Anchor::Start);
                }
            }
            for (m, measured) in (0_u32..).zip(&names) {
                let x = NAMES + wide * f64::from(m);
                let pair: Vec<&LeakEntry> = entry
                    .cells
                    .iter()
                    .filter(|cell| {
                        cell.disturbance == kind && cell.disturbed == **name && cell.measured == **measured
                    })
                    .collect();
                let measured_at_all = pair.iter().any(|cell| !cell.inside.is_empty());
                for cell in pair {
                    let y = if cell.same_cpu { y } else { y + FIELD / 2.0 };
                    field(
                        canvas,
                        cell,
                        [x + 2.0, y + 2.0, wide - 4.0, FIELD / 2.0 - 4.0],
                        most,
                        measured_at_all,
                    );
                }
            }
        }
        let legend = "In each field: the same CPU above, other CPUs below; largest latency with the disturbance / at rest.";
        canvas.quiet(legend, (4.0, total - 16.0), Anchor::Start);
    });
    let words: Vec<String> = entry
        .cells
        .iter()
        .filter(|cell| cell.disturbance == kind && cell.disturbed != cell.measured)
        .map(|cell| {
            let at = if cell.same_cpu { "same CPU" } else { "other CPUs" };
            format!("{} to {}, {at}: {}", clean(&cell.disturbed), clean(&cell.measured), cell.leak)
        })
        .collect();
    Figure {
        title: format!("Whom does {} reach?", clean(kind)),
        about: format!("Whether {} in one environment is seen in another. {}", clean(kind), words.join("; ")),
        width: WIDTH,
        height,
        elements,
        hover: Hover::default(),
    }
}

/// One field: a shade, a border, the word and the maxima.
fn field(
    canvas: &Canvas,
    cell: &LeakEntry,
    [x, y, wide, high]: [f64; 4],
    most: usize,
    measured_at_all: bool,
) {
    let corners = [(x, y), (x + wide, y), (x + wide, y + high), (x, y + high)];
    let shade = match cell.leak {
        Leak::Yes => Some((series(1), 0.42)),
        Leak::Partly => Some((series(1), 0.18)),
        Leak::No => Some((series(2), 0.12)),
        Leak::NotKnown => None,
    };
    if let Some((colour, opacity)) = shade {
        canvas.fill(&corners, colour, opacity);
    }
    let border: Vec<(f64, f64)> = corners.into_iter().chain([corners[0]]).collect();
    let width = if cell.disturbed == cell.measured { 2 } else { 1 };
    canvas.path(&border, MUTED, width);
    let middle = x + wide / 2.0;
    canvas.text(&shortened(&cell.leak.to_string(), most), (middle, y + 5.0), Anchor::Below);
    let short = |ns: u64| latency(float(ns));
    let below = match (cell.with_max_ns, cell.rest_max_ns) {
        (Some(with), Some(rest)) => format!("{} / {}", short(with), short(rest)),
        _ if measured_at_all => "no such CPU".into(),
        _ => "not measured".into(),
    };
    canvas.text(&shortened(&below, most), (middle, y + 23.0), Anchor::Below);
}
