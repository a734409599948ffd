//! The report as Markdown (the dialect of GitHub and GitLab).

use std::fmt::Write;

use tactus_model::bundle::Contents;
use tactus_model::text::no_orders;

use crate::answer::answer;
use crate::part::{
    Card, Cell, Chapters, Grid, GridLine, Group, Head, Item, List, Part, Reader, Stacked, Table,
};
use crate::units::{NONE, clean, moment};
use crate::walkthrough::{headline, pages, sections};

/// The report of a bundle, to be pasted into a README, an issue or a pull request.
#[must_use]
pub fn render(contents: &Contents) -> String {
    let mut out = String::new();
    let answer = answer(contents);
    let _ = writeln!(out, "**{}**: {}\n", answer.led(), text(&answer.sentence));
    if let Some(next) = &answer.next {
        let _ = writeln!(out, "**Next**: {}\n", text(&next.line()));
    }
    let title = contents.plan.title.as_deref().unwrap_or(&contents.manifest.plan);
    let _ = writeln!(out, "## {}\n", text(title));
    let manifest = &contents.manifest;
    let machine = &manifest.machine;
    let started = moment(&manifest.started);
    let about = [&machine.name, &machine.processor, &machine.system, &machine.kernel, &started];
    let about: Vec<String> =
        about.into_iter().filter(|part| !part.is_empty()).map(|part| text(part)).collect();
    let _ = writeln!(out, "{} · tactus {}\n", about.join(" · "), text(&manifest.tactus));
    for sentence in headline(contents) {
        let _ = writeln!(out, "- {}", text(&sentence));
    }
    for shows in pages(contents) {
        let _ = writeln!(out, "\n### {}", text(&shows.page.title));
        if let Some(words) = &shows.page.words {
            let _ = writeln!(out);
            for line in words.trim().lines() {
                let _ = writeln!(out, "> {}  ", text(line));
            }
        }
        shows.parts.iter().for_each(|part| write_part(&mut out, part));
    }
    for told in sections(contents, Reader::Markdown) {
        let _ = writeln!(out, "\n### {}\n\n{}", told.heading, told.section.about());
        told.parts.iter().for_each(|part| write_part(&mut out, part));
    }
    no_orders(&out)
}

/// A page of chapters.
#[must_use]
pub fn chapters(of: &Chapters) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "## {}\n", text(&of.title));
    for (name, value) in &of.about {
        let _ = writeln!(out, "- {}: {}", text(name), text(value));
    }
    let _ = writeln!(out);
    for (n, sentence) in of.headline.iter().enumerate() {
        let strong = if n == 0 { "**" } else { "" };
        let _ = writeln!(out, "{strong}{}{strong}\n", text(sentence));
    }
    for chapter in &of.chapters {
        let _ = writeln!(out, "\n### {}\n\n{}", chapter.heading, chapter.about);
        chapter.parts.iter().for_each(|part| write_part(&mut out, part));
    }
    no_orders(&out)
}

fn write_part(out: &mut String, part: &Part) {
    match part {
        Part::Heading(heading, _) => {
            let _ = writeln!(out, "\n#### {}", text(heading));
        }
        Part::Remark(remark) => {
            let _ = writeln!(out, "\n{}", text(remark));
        }
        Part::List(all) => list(out, all),
        Part::Table(one) => table(out, one),
        Part::Tables(all) => all.iter().for_each(|one| table(out, one)),
        Part::Grid(all) => grid(out, all),
        Part::Cards(cards) => cards.iter().for_each(|answer| card(out, answer)),
        Part::Folded(_, parts) => parts.iter().for_each(|part| write_part(out, part)),
        // The answer opens a report; the others need an HTML page.
        Part::Answer(_) | Part::Figure(_) | Part::Finding(_) | Part::Readings(_) | Part::Source(..) => {}
    }
}

fn line(out: &mut String, cells: &[String]) {
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

fn header<'a>(out: &mut String, columns: impl Iterator<Item = &'a Head> + Clone) {
    let _ = writeln!(out);
    line(out, &columns.clone().map(|head| text(&head.name)).collect::<Vec<_>>());
    let rule: String = columns.map(|head| if head.number { "--:|" } else { "---|" }).collect();
    let _ = writeln!(out, "|{rule}");
}

fn table(out: &mut String, table: &Table) {
    if !table.title.is_empty() {
        let _ = writeln!(out, "\n#### {}", text(&table.title));
    }
    if !table.rows.is_empty() {
        header(out, table.head.iter());
        for cells in &table.rows {
            let cell =
                |cell: &Cell| cell.lines.iter().map(|line| text(line)).collect::<Vec<_>>().join("<br>");
            line(out, &cells.iter().map(cell).collect::<Vec<_>>());
        }
    }
    for remark in &table.remarks {
        let _ = writeln!(out, "\n{}", text(remark));
    }
}

fn list(out: &mut String, list: &List) {
    let _ = writeln!(out);
    for Item { lead, name, text: said, place, hint, .. } in &list.items {
        let lead = if lead.is_empty() { String::new() } else { format!("**{}** ", text(lead)) };
        let name = if name.is_empty() { String::new() } else { format!("{}: ", text(name)) };
        let place = if place.is_empty() { String::new() } else { format!(" ({})", text(place)) };
        let hint = hint.as_deref().map(|hint| format!(" {}", text(hint))).unwrap_or_default();
        let _ = writeln!(out, "- {lead}{name}{}{place}{hint}", text(said));
    }
}

fn grid(out: &mut String, grid: &Grid) {
    let names = [Head::words(grid.corner.clone()), Head::words("evidence")];
    header(out, names.iter().chain(&grid.columns));
    for group in &grid.groups {
        rows(out, group, grid.columns.len());
    }
}

fn rows(out: &mut String, group: &Group, columns: usize) {
    let evidence = group.evidence.map_or_else(|| NONE.into(), |evidence| evidence.to_string());
    let filled = |label: String, evidence: String, mut cells: Vec<String>| {
        cells.resize(columns, String::new());
        [vec![label, evidence], cells].concat()
    };
    let values = |values: &[Stacked]| values.iter().map(value).collect::<Vec<String>>();
    let first = match &group.instead {
        Some((word, _, reason)) => vec![format!("{word}: {}", text(reason))],
        None => values(&group.values),
    };
    line(out, &filled(text(&group.name), evidence, first));
    for GridLine { label, values: own, text: said, .. } in &group.lines {
        let label = if said.is_empty() { text(label) } else { text(said) };
        line(out, &filled(format!("*{label}*"), String::new(), values(own)));
    }
}

fn value(value: &Stacked) -> String {
    let first = text(&value.first);
    if value.below.is_empty() { first } else { format!("{first} ({})", text(&value.below)) }
}

fn card(out: &mut String, card: &Card) {
    let _ = writeln!(out, "\n#### {}\n", text(&card.title));
    if let Some(words) = &card.quote {
        let _ = writeln!(out, "> {}\n", text(words));
    }
    let _ = writeln!(out, "{}: **{}**.", text(&card.pair), text(&card.answer));
    if let Some(caution) = &card.caution {
        let _ = writeln!(out, "{}", text(caution));
    }
    if !card.sentences.is_empty() {
        let _ = writeln!(out);
    }
    for sentence in &card.sentences {
        let _ = writeln!(out, "- {}", text(sentence));
    }
}

/// Text from a bundle as Markdown that shows it as it is.
pub(crate) fn text(raw: &str) -> String {
    let mut safe = String::new();
    let mut in_word = false;
    let raw = clean(raw);
    for (at, c) in raw.char_indices() {
        let is_before_a_name = || raw[at + 1..].starts_with(char::is_alphanumeric);
        // GitHub and GitLab tell a user of that name that the text mentions him, also where the sign is escaped.
        if c == '@' && !in_word && is_before_a_name() {
            safe.push_str("@<!-- -->");
            continue;
        }
        in_word = c.is_ascii_alphanumeric() || c == '_';
        if matches!(c, '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '#' | '~') {
            safe.push('\\');
        }
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '\u{a0}' => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_a_bundle_mentions_a_user() {
        assert_eq!(
            text("@boss see (@org/team), @@boss"),
            "@<!-- -->boss see (@<!-- -->org/team), @@<!-- -->boss"
        );
        assert_eq!(
            text("Gold 6338N CPU @ 2.20GHz, boss@example.com"),
            "Gold 6338N CPU @ 2.20GHz, boss@example.com"
        );
    }
}
