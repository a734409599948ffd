//! The first page: the question, the answer, a figure and a table.

use super::paper::{Colour, END, INK, LINE, Lines, MARGIN, MUTED, Paper, ROOM, TOP, Type};
use crate::certificate::rows::HEAD;
use crate::certificate::{Certificate, CertificateError};
use crate::part::Tone;

/// Where values begin that have a name before them.
const VALUES: f32 = 100.0;
/// The parts of the page's width that the columns of the table have.
const COLUMNS: [f32; HEAD.len()] = [0.18, 0.10, 0.15, 0.085, 0.085, 0.085, 0.115, 0.085, 0.115];
/// Space beside the text of a cell, above and below it.
const BESIDE: f32 = 2.5;
const ABOVE: f32 = 2.2;
/// How the table is set.
const CELL: Type = Type::plain(7.5);
/// Below this height a figure cannot be read.
const LEAST_FIGURE: f32 = 80.0;

/// Draws it.
pub fn draw(paper: &mut Paper<'_, '_>, of: &Certificate) -> Result<(), CertificateError> {
    let mut y = head(paper, of);
    y = paper.text(of.question, Type::bold(10.5), (MARGIN, y + 10.0), ROOM, 1) + 3.0;
    for entry in &of.asked {
        paper.text(entry.name, Type::plain(9.0).in_colour(MUTED), (MARGIN, y), VALUES, 1);
        let value = (MARGIN + VALUES, y);
        y = paper.text(&entry.value, Type::plain(9.0), value, ROOM - VALUES, entry.lines) + 2.5;
    }
    y = verdict(paper, of, y + 8.0);
    // The figure has what room the table leaves.
    let rows = rows(paper, of);
    let remark = paper.set(&of.table.remark, CELL.in_colour(MUTED), ROOM, 2);
    let table = END - remark.high() - 4.0 - rows.iter().map(|row| high(row)).sum::<f32>();
    if let Some(figure) = of.figure.as_ref().filter(|_| table - y > LEAST_FIGURE) {
        let caption = paper.text(&figure.title, Type::bold(10.5), (MARGIN, y + 12.0), ROOM, 1) + 3.0;
        y = paper.figure(figure, caption, table - 10.0)?;
    }
    let end = draw_table(paper, &rows, y + 10.0);
    paper.lines(&remark, MARGIN, end + 4.0);
    paper.foot(&of.title, 1);
    Ok(())
}

fn head(paper: &mut Paper<'_, '_>, of: &Certificate) -> f32 {
    let kind = Type::plain(8.0).in_colour(MUTED);
    let y = paper.text("CERTIFICATE OF REAL-TIME LATENCY", kind, (MARGIN, TOP), ROOM, 1);
    let y = paper.text(&of.title, Type::bold(17.0), (MARGIN, y + 2.0), ROOM, 2);
    let y = paper.text(&of.under, Type::plain(9.0).in_colour(MUTED), (MARGIN, y), ROOM, 1);
    paper.rule(y + 5.0, 1.6, INK);
    y + 6.6
}

/// The colour of good and of bad news, and a light one to write on.
const fn colours(tone: Tone) -> [Colour; 2] {
    match tone {
        Tone::Good => [[0x00, 0x66, 0x4a], [0xee, 0xf7, 0xf3]],
        Tone::Bad => [[0xa8, 0x33, 0x0a], [0xfb, 0xf1, 0xec]],
        Tone::Doubt | Tone::Quiet | Tone::Heading => [[0x7a, 0x5a, 0x00], [0xfa, 0xf6, 0xe8]],
    }
}

/// The answer in large letters, and by how much.
fn verdict(paper: &mut Paper<'_, '_>, of: &Certificate, y: f32) -> f32 {
    const FRAME: f32 = 0.9;
    const BAND: f32 = 7.0;
    let [colour, light] = colours(of.tone);
    let (x, width) = (MARGIN + BAND + 10.0, ROOM - BAND - 20.0);
    let word = paper.set(of.word, Type::bold(24.0).in_colour(colour), width, 1);
    let said = paper.set(&of.sentence.replace('`', ""), Type::plain(9.0), width, 7);
    let high = word.high() + said.high() + 16.0;
    paper.bar((MARGIN, y), (ROOM, high), colour);
    paper.bar((MARGIN + BAND, y + FRAME), (ROOM - BAND - FRAME, high - 2.0 * FRAME), light);
    let below = paper.lines(&word, x, y + 5.0);
    paper.lines(&said, x, below + 3.0);
    y + high
}

/// All rows of the table, its head first.
fn rows(paper: &Paper<'_, '_>, of: &Certificate) -> Vec<Vec<Lines>> {
    let room = |column: f32| column * ROOM - 2.0 * BESIDE;
    let head = HEAD
        .iter()
        .zip(COLUMNS)
        .map(|((name, _), column)| paper.set(name, Type { bold: true, ..CELL }, room(column), 1));
    let row = |row: &[String; HEAD.len()]| {
        row.iter().zip(COLUMNS).map(|(text, column)| paper.set(text, CELL, room(column), 2)).collect()
    };
    std::iter::once(head.collect()).chain(of.table.rows.iter().map(row)).collect()
}

fn high(row: &[Lines]) -> f32 {
    row.iter().map(Lines::high).fold(0.0, f32::max) + 2.0 * ABOVE
}

fn draw_table(paper: &mut Paper<'_, '_>, rows: &[Vec<Lines>], y: f32) -> f32 {
    let mut y = y;
    for (number, row) in rows.iter().enumerate() {
        let mut x = MARGIN;
        for ((cell, (_, is_number)), column) in row.iter().zip(HEAD).zip(COLUMNS) {
            let end = x + column * ROOM;
            match is_number {
                true => paper.lines_to(cell, end - BESIDE, y + ABOVE),
                false => paper.lines(cell, x + BESIDE, y + ABOVE),
            };
            x = end;
        }
        y += high(row);
        let (thick, colour) = if number == 0 { (1.1, INK) } else { (0.5, LINE) };
        paper.rule(y - thick, thick, colour);
    }
    y
}
