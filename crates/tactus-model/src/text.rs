//! Makes text from other sources safe to show.

use std::borrow::Cow;

/// Text of others without what could drive a terminal, break XML or reorder a line: control
/// characters and bidirectional overrides become the replacement character, line breaks spaces. What CI servers
/// obey wherever it stands in a line (`##vso[...]`, `##[...]`, `<LAVA_SIGNAL_...>`) is broken.
#[must_use]
pub fn clean(text: &str) -> String {
    let text = without_orders(text);
    text.chars()
        .map(|c| match c {
            '\n' | '\t' | '\r' | '\u{2028}' | '\u{2029}' => ' ',
            c if drives_a_terminal(c) => char::REPLACEMENT_CHARACTER,
            c => c,
        })
        .collect()
}

/// A word to be typed into a shell, which takes nothing in it for anything but itself.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A line that GitHub's runner does not take for an order, as it does one that begins with `::`, however far indented.
#[must_use]
pub fn no_order(line: &str) -> Cow<'_, str> {
    let indent = line.len() - line.trim_start().len();
    match line[indent..].strip_prefix("::") {
        Some(rest) => format!("{}\u{fffd}:{rest}", &line[..indent]).into(),
        None => line.into(),
    }
}

/// A text of which no line is one: [`no_order`].
#[must_use]
pub fn no_orders(text: &str) -> String {
    text.split_inclusive('\n').map(no_order).collect()
}

/// How a signal begins that LAVA's dispatcher obeys, wherever it stands in a line of a console.
pub const LAVA_SIGNAL: &str = "<LAVA_";

/// Without the beginnings of what Azure Pipelines, TeamCity, GitHub's runner and LAVA's dispatcher take for orders.
fn without_orders(text: &str) -> Cow<'_, str> {
    let text: Cow<'_, str> = match text.contains(LAVA_SIGNAL) {
        true => text.replace(LAVA_SIGNAL, "\u{fffd}LAVA_").into(),
        false => text.into(),
    };
    match without_numbered_orders(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(other) => other.into(),
    }
}

/// The same of those that begin with `##`.
fn without_numbered_orders(text: &str) -> Cow<'_, str> {
    let (mut out, mut kept, mut from) = (String::new(), 0, 0);
    while let Some(found) = text[from..].find("##") {
        let at = from + found;
        // All of a run of them are looked at once: each is followed by the same.
        let end = text.len() - text[at..].trim_start_matches('#').len();
        let word =
            text[end..].find(|c: char| !c.is_ascii_alphanumeric()).map_or(text.len(), |more| end + more);
        if text[word..].starts_with('[') {
            out.push_str(&text[kept..at]);
            // All but the last of many.
            out.extend((at + 1..end).map(|_| char::REPLACEMENT_CHARACTER));
            kept = end - 1;
        }
        from = word;
    }
    if kept == 0 && out.is_empty() {
        return text.into();
    }
    out.push_str(&text[kept..]);
    out.into()
}

/// Whether a character is invisible or acts on the terminal instead of being read. These are control characters (C0,
/// DEL and C1), those that reorder a line, and those that XML does not allow. Also those that no font shows
/// (`Default_Ignorable_Code_Point` of Unicode), since two names that differ only in them look the same.
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

    #[test]
    fn a_shell_reads_a_quoted_text_as_one_word() {
        for plain in ["cpu-pm=on", "/srv/rt-1/first", "2026-11-28T07:00"] {
            assert_eq!(quoted(plain), plain);
        }
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted("/srv/a b;'c/first"), r"'/srv/a b;'\''c/first'");
        assert_eq!((quoted(""), quoted("!0"), quoted("~x")), ("''".into(), "'!0'".into(), "'~x'".into()));
    }

    #[test]
    fn what_ci_servers_obey_is_broken_wherever_it_stands() {
        for order in [
            "##vso[task.prependpath]/tmp",
            "##[error]x",
            "##teamcity[message]",
            "####[group]",
            "<LAVA_SIGNAL_X>",
        ] {
            for text in [order.to_owned(), format!("a {order} b"), format!("# {order}{order}")] {
                let cleaned = clean(&text);
                assert!(
                    !cleaned.contains("##") && !cleaned.contains("<LAVA_"),
                    "{text:?} became {cleaned:?}"
                );
                assert_eq!(cleaned.chars().count(), text.chars().count(), "{cleaned:?}");
            }
        }
        assert_eq!(clean("CPU ## 2, #[1]"), "CPU ## 2, #[1]");
        assert_eq!(clean("##a##b#[x]"), "##a##b#[x]");
        // Each character is looked at once: by the square of the length this takes minutes.
        let many = "#".repeat(1_000_000);
        assert_eq!(clean(&many), many);
        assert_eq!(no_order("  ::error::x"), "  \u{fffd}:error::x");
        assert_eq!(no_order("a ::error::x"), "a ::error::x");
    }
}
