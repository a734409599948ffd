//! Numbers as people read them. Latencies come in ns and are shown in us, ms or s with their unit;
//! a column of a table is in us throughout.

use tactus_model::number::float;
use tactus_model::outcome::Unit;
pub use tactus_model::text::{clean, drives_a_terminal};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Shown instead of a missing value. Never 0.
pub const NONE: &str = "-";

/// A latency in running text, to three digits: `7.30 us`, `1.02 ms`. A value that is not finite is unknown.
#[must_use]
pub fn latency(ns: f64) -> String {
    if !ns.is_finite() {
        return "unknown".into();
    }
    let size = ns.abs();
    // The limits are where rounding to three digits would give 1000 of the smaller unit.
    let (value, unit) = if size < 999.5e3 {
        (ns / 1e3, "us")
    } else if size < 999.5e6 {
        (ns / 1e6, "ms")
    } else {
        (ns / 1e9, "s")
    };
    format!("{} {unit}", digits(value))
}

/// A latency that must not look smaller than it is: to four digits, rounded up.
#[must_use]
pub fn latency_up(ns: u64) -> String {
    // In thousandths of the unit that is shown, rounded up to four digits.
    let (thousandths, unit) = match ns {
        0..1_000_000 => (ns, "us"),
        1_000_000..1_000_000_000 => (ns.div_ceil(1_000), "ms"),
        _ => (ns.div_ceil(1_000_000), "s"),
    };
    let step = match thousandths {
        0..10_000 => 1,
        10_000..100_000 => 10,
        100_000..1_000_000 => 100,
        _ => 1_000,
    };
    let shown = thousandths.div_ceil(step) * step;
    let text = format!("{}.{:03}", shown / 1_000, shown % 1_000);
    format!("{} {unit}", grouped(text.trim_end_matches('0').trim_end_matches('.')))
}

/// A latency with all its digits, for a limit or figure that a user or a document wrote.
#[must_use]
pub fn latency_in_full(ns: u64) -> String {
    let (unit, name, places) = match ns {
        0..1_000_000 => (1_000, "us", 3),
        1_000_000..1_000_000_000 => (1_000_000, "ms", 6),
        _ => (1_000_000_000, "s", 9),
    };
    let rest = format!("{:0places$}", ns % unit);
    let text = match rest.trim_end_matches('0') {
        "" => (ns / unit).to_string(),
        rest => format!("{}.{rest:0<2}", ns / unit),
    };
    format!("{} {name}", grouped(&text))
}

/// A required limit: every digit of a whole number of ns.
#[must_use]
pub fn exactly(ns: f64) -> String {
    let whole = tactus_model::number::whole(ns);
    if ns >= 0.0 && float(whole) == ns { latency_in_full(whole) } else { latency(ns).trim_end().to_owned() }
}

/// A latency beside a limit: in full where fewer digits would make it the limit, which it is not.
#[must_use]
pub fn beside(ns: f64, limit: f64) -> String {
    let short = latency(ns);
    if ns.total_cmp(&limit).is_ne() && short == latency(limit) { exactly(ns) } else { short }
}

/// As [`latency`], for a whole number of ns that may be absent.
#[must_use]
pub fn latency_or_none(ns: Option<u64>) -> String {
    ns.map_or_else(|| NONE.into(), |ns| latency(float(ns)))
}

/// The same in a sentence, where a dash would not be understood.
#[must_use]
pub fn latency_or_unknown(ns: Option<u64>) -> String {
    ns.map_or_else(|| "unknown".into(), |ns| latency(float(ns)))
}

/// A difference of latencies in running text, with its sign.
#[must_use]
pub fn signed(ns: f64) -> String {
    let text = latency(ns);
    if ns > 0.0 && !text.starts_with("0 ") { format!("+{text}") } else { text }
}

/// A difference of latencies in a column, with its sign, to two digits or what is left of the point: `+39 us`, `-0.3 us`.
#[must_use]
pub fn difference(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        size if size < 999.5e3 => (ns / 1e3, "us"),
        size if size < 999.5e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let places = usize::from(value.abs() < 9.95);
    if value.abs() < 0.05 { format!("0 {unit}") } else { format!("{value:+.places$} {unit}") }
}

/// A value with its unit, to three digits: `3.48 us`, `2140 MB/s`.
#[must_use]
pub fn quantity(value: f64, unit: Unit) -> String {
    format!("{} {unit}", number(value))
}

/// A number to three digits, with its thousands apart.
#[must_use]
pub fn number(value: f64) -> String {
    grouped(&digits(value))
}

/// A value to three digits; whole numbers without a decimal part. A huge value has an exponent, not a page of
/// digits.
fn digits(value: f64) -> String {
    let size = value.abs();
    if size < 0.0005 {
        return "0".into();
    }
    if size >= 1e15 {
        return format!("{value:.2e}");
    }
    let places = if size < 0.9995 {
        3
    } else if size < 9.995 {
        2
    } else if size < 99.95 {
        1
    } else {
        0
    };
    let text = format!("{value:.places$}");
    match text.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|b| b == b'0') => whole.into(),
        _ => text,
    }
}

/// Decimal places for a column of us, so that its smallest value is not lost in rounding and all
/// points stand below each other.
#[must_use]
pub fn places(values_ns: impl Iterator<Item = f64>) -> usize {
    let smallest = values_ns.map(f64::abs).filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
    if smallest < 100.0 {
        3
    } else if smallest < 1_000.0 {
        2
    } else {
        1
    }
}

/// A latency in a column of us.
#[must_use]
pub fn column(ns: Option<f64>, places: usize) -> String {
    ns.map_or_else(|| NONE.into(), |ns| grouped(&format!("{:.places$}", ns / 1e3)))
}

/// A moment (RFC 3339) to the second: `2026-11-24T03:08:13Z`.
#[must_use]
pub fn moment(text: &str) -> String {
    match text.split_once('.') {
        Some((seconds, rest)) => seconds.to_owned() + rest.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => text.to_owned(),
    }
}

/// A relative difference: `+12 %`, or as a factor (`x35`) where a percentage would be unreadable.
#[must_use]
pub fn relative(part: Option<f64>) -> String {
    let Some(part) = part else { return NONE.into() };
    if part >= 9.995 {
        return format!("x{}", digits(part + 1.0));
    }
    let percent = part * 100.0;
    if percent.abs() < 0.05 {
        "0 %".into()
    } else if percent.abs() < 9.95 {
        format!("{percent:+.1} %")
    } else {
        format!("{percent:+.0} %")
    }
}

/// A count with its thousands apart: `1 234 567`.
#[must_use]
pub fn count(n: u64) -> String {
    grouped(&n.to_string())
}

/// Puts spaces between the thousands of a number of five and more digits.
fn grouped(number: &str) -> String {
    let start = number.find(|c: char| c.is_ascii_digit()).unwrap_or(0);
    let (sign, rest) = number.split_at(start);
    let (whole, fraction) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    if whole.len() < 5 {
        return number.into();
    }
    let mut text = String::from(sign);
    for (n, digit) in whole.chars().enumerate() {
        if n > 0 && (whole.len() - n) % 3 == 0 {
            text.push(' ');
        }
        text.push(digit);
    }
    text + fraction
}

/// A length of time for readers: `10 s`, `5 min 30 s`, `24 h`.
#[must_use]
pub fn duration(ns: u64) -> String {
    if ns < 1_000_000 {
        return latency(float(ns));
    }
    if ns < 1_000_000_000 {
        return format!("{} ms", ns / 1_000_000);
    }
    if ns < 60_000_000_000 {
        let seconds = format!("{:.1}", float(ns) / 1e9);
        return format!("{} s", seconds.trim_end_matches(".0"));
    }
    let seconds = ns.saturating_add(500_000_000) / 1_000_000_000;
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let parts: Vec<String> = [(hours, "h"), (minutes, "min"), (if hours == 0 { rest } else { 0 }, "s")]
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, unit)| format!("{n} {unit}"))
        .collect();
    parts.join(" ")
}

/// How many columns of a terminal `text` takes.
#[must_use]
pub fn columns(text: &str) -> usize {
    text.width()
}

/// `text` cut to `most` columns, with an ellipsis where something is missing.
#[must_use]
pub fn shortened(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.into();
    }
    let mut short = String::new();
    let mut wide = 1;
    for c in text.chars() {
        wide += c.width().unwrap_or(0);
        if wide > most {
            break;
        }
        short.push(c);
    }
    short.trim_end().to_owned() + "…"
}

/// The first `most` characters of `text`, with an ellipsis if something is missing. It is for texts that may
/// be repeated often, so characters without a column count as well.
#[must_use]
pub fn beginning(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => text.get(..at).unwrap_or_default().trim_end().to_owned() + "…",
        None => text.into(),
    }
}

/// The longest sentence of somebody else within one of ours, in characters.
pub const TOLD: usize = 240;

/// Words of a probe, a peer or a file, for a sentence of ours: in quotes that they cannot end, and no longer than [`TOLD`].
#[must_use]
pub fn told(text: &str) -> String {
    let words = clean(&beginning(text, TOLD)).replace('"', "'");
    format!("\"{}\"", words.trim_end_matches('.'))
}

/// Most names that a phrase lists.
pub const NAMED: usize = 4;

/// Names in a phrase, the first of them where there are many.
#[must_use]
pub fn listed(names: &[String], between: &str) -> String {
    match names.len() {
        many if many > NAMED => format!("{} and {} more", names[..NAMED].join(between), many - NAMED),
        _ => names.join(between),
    }
}

/// `text` in lines of at most `most` columns, broken at spaces if there are any. It looks at each character
/// once, because texts of bundles may be of any length.
#[must_use]
pub fn wrapped(text: &str, most: usize) -> Vec<String> {
    let most = most.max(1);
    let (mut lines, mut line, mut wide) = (Vec::new(), String::new(), 0);
    for word in words(text) {
        let width = columns(&word);
        if !line.is_empty() && wide + 1 + width <= most {
            line.push(' ');
            line.push_str(&word);
            wide += 1 + width;
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        (line, wide) = (word, width);
        if wide > most {
            let long = std::mem::take(&mut line);
            wide = 0;
            for c in long.chars() {
                let own = c.width().unwrap_or(0);
                if wide + own > most && !line.is_empty() {
                    lines.push(std::mem::take(&mut line));
                    wide = 0;
                }
                line.push(c);
                wide += own;
            }
        }
    }
    lines.push(line);
    lines
}

/// `text` with no-break spaces between a number and its unit, for a page that breaks its own lines.
#[must_use]
pub fn unbroken(text: &str) -> String {
    let words: Vec<String> = words(text).into_iter().map(|word| word.replace(' ', "\u{a0}")).collect();
    words.join(" ")
}

/// The words of `text`; a number and its unit, or its next thousands, are one.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let bare = word.trim_end_matches([',', ';', ':', '.', ')']);
        let thousands = bare.len() == 3 && bare.bytes().all(|b| b.is_ascii_digit());
        let belongs = thousands || ["ns", "us", "ms", "s", "min", "h", "%", "MB/s", "GB/s"].contains(&bare);
        match words.last_mut() {
            Some(last) if belongs && last.ends_with(|c: char| c.is_ascii_digit()) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.into()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_text_is_so_many_characters_whatever_columns_they_take() {
        assert_eq!((beginning("abc", 3).as_str(), beginning("abcd", 3).as_str()), ("abc", "abc…"));
        assert_eq!(beginning("ä b", 2), "ä…");
        assert_eq!(beginning(&"e\u{301}".repeat(99), 64).chars().count(), 65);
    }

    #[test]
    fn latencies_carry_three_digits_and_their_unit() {
        let shown: Vec<String> =
            [34.0, 850.0, 7_300.0, 8_000.0, 23_440.0, 234_400.0, 999_700.0, 1_020_000.0, 2.5e9]
                .map(latency)
                .into();
        assert_eq!(
            shown,
            ["0.034 us", "0.850 us", "7.30 us", "8 us", "23.4 us", "234 us", "1 ms", "1.02 ms", "2.50 s"]
        );
        assert_eq!(
            (signed(3_100.0), signed(-3_100.0), signed(0.1)),
            ("+3.10 us".into(), "-3.10 us".into(), "0 us".into())
        );
    }

    #[test]
    fn what_nothing_measures_is_no_page_of_digits() {
        let shown = [999e12, 1e15, -1.25e308, f64::MAX].map(number);
        assert_eq!(shown, ["999 000 000 000 000", "1.00e15", "-1.25e308", "1.80e308"]);
    }

    #[test]
    fn a_latency_compared_with_a_limit_never_looks_smaller_than_it_is() {
        let shown: Vec<String> = [
            0,
            750,
            3_030,
            5_000,
            5_001,
            12_750,
            50_001,
            123_456,
            999_950,
            1_000_000,
            1_234_567,
            2_500_000_001,
        ]
        .map(latency_up)
        .into();
        assert_eq!(
            shown,
            [
                "0 us", "0.75 us", "3.03 us", "5 us", "5.001 us", "12.75 us", "50.01 us", "123.5 us",
                "1000 us", "1 ms", "1.235 ms", "2.501 s"
            ]
        );
    }

    #[test]
    fn what_somebody_else_has_written_keeps_all_its_digits() {
        for (ns, text) in [
            (2_500, "2.50 us"),
            (11_780, "11.78 us"),
            (8_000, "8 us"),
            (5, "0.005 us"),
            (27_331_000, "27.331 ms"),
            (3_000_000_000, "3 s"),
        ] {
            assert_eq!(latency_in_full(ns), text);
        }
    }

    #[test]
    fn an_absent_value_is_a_dash_and_not_zero() {
        assert_eq!(
            (latency_or_none(None), column(None, 1), relative(None)),
            ("-".into(), "-".into(), "-".into())
        );
    }

    #[test]
    fn a_difference_is_as_short_as_a_column_needs() {
        let shown = [0.0, 39.0, -296.0, 1_860.0, 9_960.0, 39_100.0, -999_600.0, 14_793_000.0].map(difference);
        assert_eq!(shown, ["0 us", "0 us", "-0.3 us", "+1.9 us", "+10 us", "+39 us", "-1.0 ms", "+15 ms"]);
    }

    #[test]
    fn a_column_shows_its_smallest_value() {
        assert_eq!(places([34.0, 5_000.0].into_iter()), 3);
        assert_eq!(places([1_200.0, 5_000.0].into_iter()), 1);
        assert_eq!(column(Some(34.0), 3), "0.034");
        assert_eq!(column(Some(12_345_678.0), 1), "12 345.7");
    }

    #[test]
    fn relative_differences_turn_into_factors_when_they_are_large() {
        assert_eq!(
            [0.0, 0.012, -0.123, 1.5, 34.0].map(|r| relative(Some(r))),
            ["0 %", "+1.2 %", "-12 %", "+150 %", "x35"]
        );
    }

    #[test]
    fn lengths_of_time_are_said_as_people_say_them() {
        let s = 1_000_000_000;
        let said: Vec<String> =
            [s / 4, s, 3 * s / 2, 60 * s, 330 * s, 5400 * s, 86_400 * s].map(duration).into();
        assert_eq!(said, ["250 ms", "1 s", "1.5 s", "1 min", "5 min 30 s", "1 h 30 min", "24 h"]);
    }

    #[test]
    fn escape_sequences_and_overrides_do_not_reach_a_terminal() {
        assert_eq!(clean("a\u{1b}[31mb\nc\u{202e}d"), "a\u{fffd}[31mb c\u{fffd}d");
    }

    #[test]
    fn words_of_somebody_else_end_no_quotes_and_are_never_long() {
        assert_eq!(told("no \"route\"\nPASS: all."), "\"no 'route' PASS: all\"");
        let long = told(&"\u{200b}\"x".repeat(100_000));
        assert!(long.chars().count() <= TOLD + 3 && long.ends_with("…\""), "{long}");
        assert_eq!(long.matches('"').count(), 2, "{long}");
    }

    #[test]
    fn long_words_are_broken_and_short_ones_kept_whole() {
        assert_eq!(wrapped("host, load on the neighbour", 14), ["host, load on", "the neighbour"]);
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("", 4), [""]);
        assert_eq!(wrapped("over 100 000 cycles in 10 s.", 11), ["over", "100 000", "cycles in", "10 s."]);
        assert_eq!(shortened("abcdefghij", 5), "abcd…");
        assert_eq!(wrapped("ab cdefghij k", 4), ["ab", "cdef", "ghij", "k"]);
        assert_eq!(wrapped("日本語", 1), ["日", "本", "語"]);
    }

    #[test]
    fn a_text_of_megabytes_is_wrapped_whatever_it_is_made_of() {
        // Broken word by word from what is left of it, this takes minutes.
        for text in ["x".repeat(4 << 20), "x ".repeat(2 << 20), "1 000 ".repeat(700_000)] {
            let lines = wrapped(&text, 100);
            assert!(lines.iter().all(|line| columns(line) <= 100));
            let letters = |text: &str| text.bytes().filter(|byte| *byte != b' ').count();
            assert_eq!(lines.iter().map(|line| letters(line)).sum::<usize>(), letters(&text));
        }
    }
}
