//! The word that was meant: the nearest of those that there are.

/// Below this likeness two words have nothing to do with each other.
const ALIKE: f64 = 0.85;

/// The known word that is most like `word`, if any is (Jaro-Winkler's measure: swapped letters count little, and a common
/// beginning much).
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The comparison takes time with the square of the length, and the word is not trusted.
    if word.len() > 64 {
        return None;
    }
    let word = word.to_lowercase();
    known
        .into_iter()
        .map(|known| (strsim::jaro_winkler(&word, &known.to_lowercase()), known))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, known)| known)
}

/// A hint: the word that was meant, or else this.
pub fn hint<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
    otherwise: impl Into<String>,
) -> String {
    let otherwise = otherwise.into();
    nearest(word, known)
        .map_or_else(|| otherwise.clone(), |near| format!("did you mean `{near}`? {otherwise}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 5] = ["timer", "spin", "interrupt", "preempt-rt", "rt-throttling"];

    #[test]
    fn letters_that_were_swapped_left_out_or_cut_are_seen() {
        for (word, meant) in [
            ("tmier", "timer"),
            ("Timer", "timer"),
            ("intrrupt", "interrupt"),
            ("preempt_rt", "preempt-rt"),
            ("rt-thr", "rt-throttling"),
        ] {
            assert_eq!(nearest(word, KNOWN), Some(meant), "{word}");
        }
    }

    #[test]
    fn what_is_like_nothing_is_not_guessed() {
        for word in ["", "mainframe", "x", "\u{1b}[2J", &"timer".repeat(100_000)] {
            assert_eq!(nearest(word, KNOWN), None, "{word:.20}");
        }
        assert_eq!(nearest("no-such-check", ["no-rescue"]), None);
        assert_eq!(nearest("timer", []), None);
        assert_eq!(hint("xyz", KNOWN, "see the list"), "see the list");
        assert_eq!(hint("tmier", KNOWN, "see the list"), "did you mean `timer`? see the list");
    }
}
