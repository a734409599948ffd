//! A table of words: columns as wide as their cells, cells of several lines.

use super::Page;
use crate::part::{Cell, Head, Length, Table, Tone};
use crate::units::{columns, shortened, wrapped};

/// Rows of a long table that a terminal is given; the other formats have all of them.
const ROWS: usize = 12;
/// Between two columns.
const GAP: usize = 2;
/// A column that must make room is never narrower.
const NARROWEST: usize = 12;

/// Writes a table.
pub(super) fn write(page: &mut Page, table: &Table) {
    if table.title.is_empty() {
        page.gap();
    } else {
        page.heading(&table.title);
    }
    let shown = match table.length {
        Length::Whole | Length::Drawn => table.rows.len(),
        Length::Long => table.rows.len().min(ROWS),
        Length::Behind => 0,
    };
    if shown > 0 {
        let head: Vec<Cell> = table.head.iter().map(|of| Cell::from(of.name.clone())).collect();
        let rows: Vec<&Vec<Cell>> = table.rows.iter().take(shown).collect();
        let widths = widths(&head, &rows, page.style.width);
        let columns: Vec<(&Head, usize)> = table.head.iter().zip(widths).collect();
        row(page, &head, &columns, Some(Tone::Quiet));
        for cells in rows {
            row(page, cells, &columns, None);
        }
    }
    match table.rows.len() - shown {
        0 => {}
        all if shown == 0 => {
            page.item("  ", Some(Tone::Quiet), &format!("{all} rows, which the report and the JSON have"));
            return;
        }
        more => page.line(&format!("  and {more} more; the report has all of them")),
    }
    for remark in &table.remarks {
        page.item("  ", Some(Tone::Quiet), remark);
    }
}

/// As wide as the widest line; where that is too much for the page the widest columns give way.
fn widths(head: &[Cell], rows: &[&Vec<Cell>], most: usize) -> Vec<usize> {
    let widest = |n: usize| {
        let cells = rows.iter().filter_map(|cells| cells.get(n)).chain(head.get(n));
        cells.flat_map(|cell| &cell.lines).map(|line| columns(line)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(widest).collect();
    narrowed(widths, most.saturating_sub(GAP * head.len()))
}

/// The widest columns as wide as there is room for all, and what is left over to the first of them. It is sought by halves: a
/// stranger's columns may be of any width.
fn narrowed(widths: Vec<usize>, room: usize) -> Vec<usize> {
    let sum = |most: usize| widths.iter().map(|wide| (*wide).min(most)).sum::<usize>();
    let (mut most, mut above) = (NARROWEST, widths.iter().max().map_or(0, |widest| widest + 1));
    while most + 1 < above {
        let middle = most.midpoint(above);
        if sum(middle) <= room {
            most = middle;
        } else {
            above = middle;
        }
    }
    let mut spare = room.saturating_sub(sum(most));
    let width = |wide: usize| {
        let more = usize::from(wide > most && spare > 0);
        spare -= more;
        wide.min(most) + more
    };
    widths.into_iter().map(width).collect()
}

fn row(page: &mut Page, cells: &[Cell], columns_of: &[(&Head, usize)], tone: Option<Tone>) {
    let cells: Vec<Vec<String>> = cells
        .iter()
        .zip(columns_of)
        .map(|(cell, (_, width))| cell.lines.iter().flat_map(|line| wrapped(line, *width)).collect())
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    for line in 0..height {
        let mut out = String::new();
        for (cell, (head, width)) in cells.iter().zip(columns_of) {
            let text = shortened(cell.get(line).map_or("", String::as_str), *width);
            let pad = " ".repeat(width.saturating_sub(columns(&text)));
            let (before, after) = if head.number { (pad, String::new()) } else { (String::new(), pad) };
            out += &format!("  {before}{text}{after}");
        }
        let out = tone.map_or_else(|| out.clone(), |tone| page.style.paint(tone, &out));
        page.line(&out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_columns_give_way_and_no_room_is_left_over() {
        assert_eq!(narrowed(vec![5, 20, 30], 55), [5, 20, 30]);
        assert_eq!(narrowed(vec![5, 20, 30], 46), [5, 20, 21]);
        assert_eq!(narrowed(vec![5, 20, 30], 44), [5, 20, 19]);
        assert_eq!(narrowed(vec![5, 30, 30, 30], 60), [5, 19, 18, 18]);
        assert_eq!(narrowed(vec![5, 20, 30], 3), [5, NARROWEST, NARROWEST]);
        assert_eq!(narrowed(vec![5, 1 << 40], 100), [5, 95]);
        assert!(narrowed(Vec::new(), 100).is_empty());
    }
}
