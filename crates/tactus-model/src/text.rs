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

/// Whether a character is none that is read, but does something or nothing that can be seen: control characters (C0, DEL
/// and C1), those that reorder a line, those that no font shows (`Default_Ignorable_Code_Point` of Unicode: two names
/// that differ in them look the same), and those that XML has not.
#[must_use]
pub fn drives_a_terminal(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{fffe}'..='\u{ffff}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_can_see_is_not_in_a_name() {
        for hidden in
            ["\u{200b}", "\u{200d}", "\u{2060}", "\u{feff}", "\u{ad}", "\u{e0041}", "\u{fe0f}", "\u{3164}"]
        {
            assert_eq!(clean(&format!("gu{hidden}est")), "gu\u{fffd}est", "{hidden:?}");
        }
        assert_eq!(clean("Größe 10 µs, 日本語, a\u{301}"), "Größe 10 µs, 日本語, a\u{301}");
    }
}
