//! The environments that a disturbance reaches, as a grid: a row for each disturbed one, a column for each
//! measured one. Every field contains its word; its shade only repeats it.

use tactus_model::bundle::Contents;
use tactus_model::document::{Doubt, Leak, LeakEntry, SeparationEntry};
use tactus_model::number::float;

use super::leak::separation;
use super::leak_word::known;
use crate::figure::{Anchor, Canvas, Figure, MUTED, WIDTH, series};
use crate::units::{clean, latency, shortened};

/// Room for the names of the rows.
const NAMES: f64 = 130.0;
/// Room for the names of the columns.
const HEAD: f64 = 50.0;
/// Height of a field: the same CPU and the others, two lines each.
const FIELD: f64 = 92.0;
/// Height of a row in which nothing was measured.
const EMPTY: f64 = 52.0;
/// Room for the legend.
const FOOT: f64 = 42.0;
/// Width of a letter, at most.
const LETTER: f64 = 7.2;

/// A figure for each disturbance.
#[must_use]
pub fn leaks(contents: &Contents) -> Vec<Figure> {
    let Some(entry) = separation(contents) else { return Vec::new() };
    entry.disturbances().into_iter().map(|kind| grid(&entry, kind)).collect()
}

fn grid(entry: &SeparationEntry, kind: &str) -> Figure {
    let names = entry.present();
    let across = f64::from(WIDTH) - NAMES;
    let wide = across / float(names.len().max(1) as u64);
    let letters = tactus_model::number::whole((wide - 12.0) / LETTER);
    let most = usize::try_from(letters).unwrap_or(12);
    let own = |name: &str| {
        let own = |cell: &&LeakEntry| cell.disturbance == kind && cell.disturbed == name;
        entry.cells.iter().filter(own).collect::<Vec<_>>()
    };
    let empty = |name: &str| own(name).iter().all(|cell| cell.doubt == Some(Doubt::NotMeasured));
    let heights: Vec<f64> = names.iter().map(|name| if empty(name) { EMPTY } else { FIELD }).collect();
    let total = HEAD + heights.iter().sum::<f64>() + FOOT;
    let height = u32::try_from(tactus_model::number::whole(total)).unwrap_or(400);
    let elements = Canvas::draw(height, |canvas| {
        canvas.quiet("measured in", (NAMES, 12.0), Anchor::Start);
        for (n, name) in (0_u32..).zip(&names) {
            let middle = NAMES + wide * (f64::from(n) + 0.5);
            canvas.text(&shortened(&clean(name), most), (middle, 26.0), Anchor::Below);
        }
        let mut y = HEAD;
        for (name, height) in names.iter().zip(&heights) {
            let cells = own(name);
            canvas.text(&shortened(&clean(name), 17), (4.0, y + 22.0), Anchor::Start);
            let about = cells.first().map(|cell| about(cell)).unwrap_or_default();
            if empty(name) {
                canvas.quiet(&about.join(", "), (4.0, y + 42.0), Anchor::Start);
                let [x, wide] = [NAMES + 2.0, across - 4.0];
                border(canvas, [x, y + 2.0, wide, height - 4.0], 1);
                canvas.quiet(Doubt::NotMeasured.word(), (x + wide / 2.0, y + 16.0), Anchor::Below);
            } else {
                for (line, text) in (0_u32..).zip(&about) {
                    canvas.quiet(text, (4.0, y + 42.0 + 20.0 * f64::from(line)), Anchor::Start);
                }
                for (m, measured) in (0_u32..).zip(&names) {
                    let x = NAMES + wide * f64::from(m);
                    for cell in cells.iter().filter(|cell| cell.measured == *measured) {
                        let y = if cell.same_cpu { y } else { y + FIELD / 2.0 };
                        field(canvas, cell, [x + 2.0, y + 2.0, wide - 4.0, FIELD / 2.0 - 4.0], most);
                    }
                }
            }
            y += height;
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
            format!("{} to {}, {at}: {}", clean(&cell.disturbed), clean(&cell.measured), known(cell))
        })
        .collect();
    let about =
        format!("Whether {} in one environment is seen in another. {}", clean(kind), words.join("; "));
    Figure::still(&format!("Interference matrix: {}", clean(kind)), about, height, elements)
}

/// Where a disturbance is, and how long.
fn about(cell: &LeakEntry) -> Vec<String> {
    let place = cell.disturbed_cpu.map_or_else(|| "own CPU".into(), |cpu| format!("CPU {cpu}"));
    let place = match cell.disturbed_inside {
        Some(inside) if Some(inside) != cell.disturbed_cpu => format!("{place} ({inside} inside)"),
        _ => place,
    };
    std::iter::once(place).chain(cell.length_ns.map(|ns| latency(float(ns)))).collect()
}

/// The border of a field: its corner, its width and its height.
fn border(canvas: &Canvas, [x, y, wide, high]: [f64; 4], width: u32) {
    canvas.path(&[(x, y), (x + wide, y), (x + wide, y + high), (x, y + high), (x, y)], MUTED, width);
}

/// One field: a shade, a border, the word and the maxima.
fn field(canvas: &Canvas, cell: &LeakEntry, [x, y, wide, high]: [f64; 4], most: usize) {
    let corners = [(x, y), (x + wide, y), (x + wide, y + high), (x, y + high)];
    let shade = match cell.leak {
        Leak::Yes => Some((series(1), 0.42)),
        Leak::Sometimes => Some((series(1), 0.28)),
        Leak::Weaker => Some((series(1), 0.18)),
        Leak::No => Some((series(2), 0.12)),
        Leak::NotSeen => Some((series(2), 0.05)),
        Leak::NotKnown => None,
    };
    if let Some((colour, opacity)) = shade {
        canvas.fill(&corners, colour, opacity);
    }
    border(canvas, [x, y, wide, high], if cell.disturbed == cell.measured { 2 } else { 1 });
    let middle = x + wide / 2.0;
    let word = shortened(&known(cell), most);
    // Known results stand out.
    if cell.leak == Leak::NotKnown {
        canvas.quiet(&word, (middle, y + 5.0), Anchor::Below);
    } else {
        canvas.text(&word, (middle, y + 5.0), Anchor::Below);
    }
    let short = |ns: u64| latency(float(ns));
    let below = match (cell.with_max_ns, cell.rest_max_ns) {
        (Some(with), Some(rest)) => format!("{} / {}", short(with), short(rest)),
        _ => String::new(),
    };
    canvas.text(&shortened(&below, most), (middle, y + 23.0), Anchor::Below);
}
