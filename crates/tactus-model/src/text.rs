//! Text that somebody else has written, and that is shown.

/// Text of others without what could drive a terminal, break XML or reorder a line: control
/// characters and bidirectional overrides become the replacement character, line breaks spaces.
#[must_use]
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' | '\r' | '\u{2028}' | '\u{2029}' => ' ',
            c if drives_a_terminal(c) => char::REPLACEMENT_CHARACTER,
            c => c,
        })
        .collect()
}

/// Whether a character is none that is read, but does something: control characters (C0, DEL and C1), those that reorder
/// a line, and those that XML has not.
#[must_use]
pub fn drives_a_terminal(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}'
        )
}
