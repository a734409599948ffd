//! Joins sentences that differ only in their amounts into one with the range of the amounts.

/// Words before a number that is a name: two such numbers are two things, and no range.
const NAMES: [&str; 15] = [
    "CPU",
    "CPUs",
    "vCPU",
    "vCPUs",
    "IRQ",
    "interrupt",
    "thread",
    "threads",
    "activity",
    "node",
    "port",
    "pid",
    "channel",
    "version",
    "socket",
];
/// Units of time, in ns.
const UNITS: [(&str, f64); 6] =
    [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 6e10), ("h", 3.6e12)];

/// A sentence whose amounts are ranges.
#[derive(Clone, Debug, PartialEq)]
pub struct Alike(Vec<Word>);

#[derive(Clone, Debug, PartialEq)]
enum Word {
    Text(String),
    Amount { low: Amount, high: Amount, before: String, after: String },
}

#[derive(Clone, Debug, PartialEq)]
struct Amount {
    size: f64,
    digits: String,
    unit: String,
}

impl Alike {
    /// A sentence: each amount from itself to itself.
    pub fn of(text: &str) -> Self {
        let words: Vec<&str> = text.split(' ').collect();
        let (mut found, mut n) = (Vec::new(), 0);
        while n < words.len() {
            let named = n > 0 && NAMES.contains(&words[n - 1].trim_matches(|c: char| !c.is_alphanumeric()));
            let taken = if named { None } else { amount(&words[n..]) };
            match taken {
                Some((word, many)) => {
                    found.push(word);
                    n += many;
                }
                None => {
                    found.push(Word::Text(words[n].to_owned()));
                    n += 1;
                }
            }
        }
        Self(found)
    }

    /// The sentence without the amounts: sentences with equal keys are alike.
    pub fn key(&self) -> String {
        let word = |word: &Word| match word {
            Word::Text(text) => text.clone(),
            Word::Amount { before, after, .. } => format!("{before}\0{after}"),
        };
        self.0.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    /// Takes in a sentence with the same key.
    pub fn absorb(&mut self, other: Self) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            if let (Word::Amount { low, high, .. }, Word::Amount { low: one, high: most, .. }) = (own, other)
            {
                if one.size < low.size {
                    *low = one;
                }
                if most.size > high.size {
                    *high = most;
                }
            }
        }
    }

    /// The sentence, with `4 to 46` where the amounts differ.
    pub fn text(&self) -> String {
        let word = |word: &Word| match word {
            Word::Text(text) => text.clone(),
            Word::Amount { low, high, before, after } => {
                let amount = |of: &Amount| match of.unit.as_str() {
                    "" => of.digits.clone(),
                    unit => format!("{} {unit}", of.digits),
                };
                let said = match low == high {
                    true => amount(low),
                    false if low.unit == high.unit => format!("{} to {}", low.digits, amount(high)),
                    false => format!("{} to {}", amount(low), amount(high)),
                };
                format!("{before}{said}{after}")
            }
        };
        self.0.iter().map(word).collect::<Vec<_>>().join(" ")
    }
}

/// The amount that these words begin with, and how many of them it takes: its thousands, its unit.
fn amount(words: &[&str]) -> Option<(Word, usize)> {
    let (before, mut digits, mut after) = number(words.first()?)?;
    let mut taken = 1;
    // Thousands stand apart.
    while after.is_empty() {
        match words.get(taken).and_then(|next| number(next)) {
            Some(("", next, rest)) if next.len() == 3 && !next.contains('.') => {
                digits = format!("{digits} {next}");
                after = rest;
                taken += 1;
            }
            _ => break,
        }
    }
    let mut size: f64 = digits.replace(' ', "").parse().ok()?;
    let mut unit = String::new();
    if after.is_empty()
        && let Some(next) = words.get(taken)
    {
        let bare = next.trim_end_matches([',', ';', ':', '.', ')']);
        if let Some((name, ns)) = UNITS.iter().find(|(name, _)| *name == bare) {
            (size, unit, after) = (size * ns, (*name).to_owned(), next[bare.len()..].to_owned());
            taken += 1;
        }
    }
    let amount = Amount { size, digits, unit };
    Some((Word::Amount { low: amount.clone(), high: amount, before: before.to_owned(), after }, taken))
}

/// A number among its punctuation; `None` if it is part of a name.
fn number(word: &str) -> Option<(&str, String, String)> {
    let rest = word.trim_start_matches('(');
    let digits = rest.trim_end_matches(|c: char| !c.is_ascii_digit());
    let (before, after) = (&word[..word.len() - rest.len()], &rest[digits.len()..]);
    let plain = !digits.is_empty()
        && digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.matches('.').count() < 2
        && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
        && after.chars().all(|c| ",;:.)%".contains(c));
    plain.then(|| (before, digits.to_owned(), after.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn together(all: &[&str]) -> Option<String> {
        let (first, others) = all.split_first()?;
        let mut first = Alike::of(first);
        for other in others {
            let other = Alike::of(other);
            if other.key() != first.key() {
                return None;
            }
            first.absorb(other);
        }
        Some(first.text())
    }

    #[test]
    fn sentences_that_differ_in_amounts_alone_are_one_with_a_range() {
        assert_eq!(
            together(&[
                "in 4 periods the card was kept",
                "in 46 periods the card was kept",
                "in 5 periods the card was kept"
            ])
            .unwrap(),
            "in 4 to 46 periods the card was kept"
        );
        assert_eq!(
            together(&[
                "median 0.2 us, at most 18.2 us (1800 rounds)",
                "median 0.1 us, at most 1.02 ms (1800 rounds)"
            ])
            .unwrap(),
            "median 0.1 to 0.2 us, at most 18.2 us to 1.02 ms (1800 rounds)"
        );
        assert_eq!(together(&["100 000 cycles", "20 000 cycles"]).unwrap(), "20 000 to 100 000 cycles");
    }

    #[test]
    fn names_with_numbers_are_no_amounts() {
        for two in [
            ["on CPU 1 only", "on CPU 2 only"],
            ["vCPU 0 on CPU 1", "vCPU 1 on CPU 1"],
            ["the kernel is 6.12.1-rt", "the kernel is 6.12.2-rt"],
            ["/dev/vfio/1 is held", "/dev/vfio/2 is held"],
            ["4 periods", "4 rounds"],
        ] {
            assert_eq!(together(&two), None, "{two:?}");
        }
    }

    #[test]
    fn any_sentence_alone_stays_as_it_is() {
        for text in [
            "",
            " ",
            "a  b",
            "(3 of 4)",
            "1. 2. 3.",
            "12 345 678 ns.",
            "9.9.9",
            "5 %",
            "é 7 us; 日本",
            "100 000 000 us",
        ] {
            assert_eq!(Alike::of(text).text(), text);
        }
    }
}
