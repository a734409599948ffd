//! Messages beside the data: on stderr, in lines that cannot drive a terminal. An error in writing one never ends a
//! measurement.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tactus_model::message::Note;
use tactus_model::text::{no_order, quoted};
use tactus_report::units::clean;

/// Messages held back while the live screen is shown; `None`: no screen.
static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);
/// Most lines that are held; the bundle has all that happened.
const MOST_HELD: usize = 10_000;

/// Clears a line that changes, lets something be written, and draws the line again.
type Draws = Box<dyn Fn(&dyn Fn()) + Send>;
/// Draws such a line on stderr now.
static DRAWS: Mutex<Option<Draws>> = Mutex::new(None);

/// Messages from now on are printed above a line that changes, such as a progress bar, until [`alone`].
pub fn above(draws: impl Fn(&dyn Fn()) + Send + 'static) {
    *DRAWS.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(draws));
}

/// There is no line that changes any more.
pub fn alone() {
    *DRAWS.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Holds messages back until [`release`].
pub fn hold() {
    HELD.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
}

/// Says what was held.
pub fn release() {
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner).take();
    for line in held.unwrap_or_default() {
        // A stderr that is gone ends nothing.
        let _ = io::stderr().lock().write_all(line.as_bytes());
    }
}

/// A path as a shell takes it, within a command that is to be typed.
pub fn typed(path: &Path) -> String {
    quoted(&path.display().to_string())
}

/// Prints a note about a place. A guest's probe may have written its hint, which begins no line as tactus's own hints do.
pub fn say_note(place: &str, note: &Note) {
    let hint = note.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    say(format_args!("note: {place}: {}{hint}", note.text));
}

/// Says something on stderr. Somebody who has stopped listening, or a disk that is full, does not end what is being done.
pub fn say(text: impl Display) {
    let mut line = lines(&text.to_string());
    line.push('\n');
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    match held.as_mut() {
        Some(held) if held.len() >= MOST_HELD => return,
        Some(held) => return held.push(line),
        None => drop(held),
    }
    // One write, so that the lines of two threads do not mix. A stderr that is gone ends nothing.
    let write = || drop(io::stderr().lock().write_all(line.as_bytes()));
    match &*DRAWS.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(draws) => draws(&write),
        None => write(),
    }
}

/// A text without what drives a terminal. Lines after the first are indented: none of them is taken for one of ours.
pub fn lines(text: &str) -> String {
    let mut lines = text.trim_end_matches('\n').split('\n');
    let clean = |line: &str| no_order(&clean(line)).into_owned();
    let first = lines.next().map(clean).unwrap_or_default();
    let indented = |line: &str| {
        let own = if line.is_empty() || line.starts_with(' ') { "" } else { "  " };
        ["\n", own, &clean(line)].concat()
    };
    lines.fold(first, |all, line| all + &indented(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drives_a_terminal_is_replaced_and_no_line_passes_for_one_of_ours() {
        let hostile = "note: a\u{1b}]0;title\u{7}\u{9b}31m\u{202e}b\nhint: run this\n  indented\n";
        assert_eq!(
            lines(hostile),
            "note: a\u{fffd}]0;title\u{fffd}\u{fffd}31m\u{fffd}b\n  hint: run this\n  indented"
        );
        assert_eq!(lines(""), "");
        assert_eq!(
            lines("a\n::error::x\n  ::stop-commands::y"),
            "a\n  \u{fffd}:error::x\n  \u{fffd}:stop-commands::y"
        );
    }
}
