//! The second page: the conditions, and lines for signatures.

use super::paper::{END, INK, LINE, MARGIN, MUTED, Paper, ROOM, TOP, Type};
use crate::certificate::Certificate;

/// Where values begin.
const VALUES: f32 = 112.0;
/// How values are set.
const VALUE: Type = Type::plain(8.0);
/// The words below a line for signatures, and the width of the line.
const SIGNED: [(&str, f32); 3] = [("Date", 88.0), ("Name", 190.0), ("Signature", 192.0)];
/// Between two of them.
const BETWEEN: f32 = (ROOM - 88.0 - 190.0 - 192.0) / 2.0;
/// From one row of them to the next: so much room needs a hand.
const HAND: f32 = 44.0;

/// Draws it.
pub fn draw(paper: &mut Paper<'_, '_>, of: &Certificate) {
    let y = paper.text("CONDITIONS", Type::plain(8.0).in_colour(MUTED), (MARGIN, TOP), ROOM, 1);
    paper.rule(y + 3.0, 1.6, INK);
    let mut y = y + 7.0;
    for entry in &of.conditions {
        paper.text(entry.name, VALUE.in_colour(MUTED), (MARGIN, y), VALUES, 1);
        y = paper.text(&entry.value, VALUE, (MARGIN + VALUES, y), ROOM - VALUES, entry.lines) + 2.0;
        paper.rule(y, 0.5, LINE);
        y += 2.0;
    }
    y += 4.0;
    for note in &of.notes {
        let plain = note.replace('`', "");
        y = paper.text(&plain, Type::plain(7.5).in_colour(MUTED), (MARGIN, y), ROOM, 2) + 1.5;
    }
    for row in [1.0, 0.0] {
        let y = END - 14.0 - row * HAND;
        let mut x = MARGIN;
        for (name, wide) in SIGNED {
            paper.bar((x, y), (wide, 0.8), INK);
            paper.text(name, Type::plain(7.5).in_colour(MUTED), (x, y + 2.5), wide, 1);
            x += wide + BETWEEN;
        }
    }
    paper.foot(&of.title, 2);
}
