//! The answer to a claim about values.

use tactus_model::document::Degradation;

use crate::part::Tone;
use crate::stats::{Degraded, DegradedItem};
use crate::units::{number, quantity};

/// Effects from this size on are written as a factor.
const FACTOR: f64 = 9.0;

/// The answer in a few words; `least`: how many rounds it takes.
pub fn answer(of: &Degraded, least: usize) -> String {
    if of.rounds < least {
        let are = if of.rounds == 1 { "is" } else { "are" };
        return format!("cannot compare: {least} rounds are needed, there {are} {}", of.rounds);
    }
    let broke = match of.broken {
        0 => String::new(),
        broken => format!("; in {broken} of {} rounds a run did not complete", of.rounds + broken),
    };
    let seen: Vec<String> = of.items.iter().filter(|item| item.degradation.seen).map(name).collect();
    let said = match seen.as_slice() {
        [] => "no effect shown".into(),
        [one] => format!("an effect on {one}"),
        [one, other] => format!("an effect on {one} and {other}"),
        [one, other, rest @ ..] => format!("an effect on {one}, {other} and {} more", rest.len()),
    };
    said + &broke
}

/// A sentence for each item.
pub fn sentences(of: &Degraded, least: usize) -> Vec<String> {
    let sentence = |item: &DegradedItem| {
        let [base, with] = [&item.base, &item.with].map(|value| quantity(value.value, value.unit));
        format!("{}: {base} and {with}, {}", name(item), difference(item.degradation, least))
    };
    of.items.iter().map(sentence).collect()
}

/// How it is judged.
pub fn method(of: &Degraded, least: usize) -> String {
    if of.rounds < least {
        return format!(
            "run-to-run variation is unknown with so few rounds: use `repeat = {least}` in the plan"
        );
    }
    format!("{} rounds in randomised order; all items of a claim are judged together (maxT)", of.rounds)
}

/// Good without an effect, bad with one, doubtful with too few rounds or broken ones.
pub fn tone(of: &Degraded, least: usize) -> Tone {
    if of.rounds < least {
        Tone::Doubt
    } else if of.items.iter().any(|item| item.degradation.seen) {
        Tone::Bad
    } else if of.broken > 0 {
        Tone::Doubt
    } else {
        Tone::Good
    }
}

fn name(item: &DegradedItem) -> String {
    format!("`{}`", item.base.name())
}

fn difference(of: Degradation, least: usize) -> String {
    match of.low.zip(of.high).filter(|_| usize::try_from(of.rounds).is_ok_and(|rounds| rounds >= least)) {
        None => format!("{} in {} of {least} rounds", by(of.value), of.rounds),
        Some((low, high)) if of.seen => format!("{} (95 % interval {})", by(of.value), range(low, high)),
        Some((low, high)) => {
            format!("no difference is shown (95 % interval {} worse)", range(low, high))
        }
    }
}

/// `worse by 12 %`: of what is worse over what is better.
fn by(value: f64) -> String {
    if value >= FACTOR {
        format!("worse by a factor of {}", number(value + 1.0))
    } else if value >= 0.0 {
        format!("worse by {} %", number(value * 100.0))
    } else {
        format!("better by {} %", number(-value * 100.0))
    }
}

/// The ends in the order of their sizes where both are better.
fn range(low: f64, high: f64) -> String {
    if high >= FACTOR {
        format!("{} to {}", number(low + 1.0), number(high + 1.0))
    } else if high < 0.0 {
        format!("{} to {} %", number(-high * 100.0), number(-low * 100.0))
    } else {
        format!("{} to {} %", number(low * 100.0), number(high * 100.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(value: f64, low: f64, high: f64) -> String {
        difference(Degradation { value, low: Some(low), high: Some(high), rounds: 8, seen: true }, 6)
    }

    #[test]
    fn a_difference_is_said_in_per_cent_and_a_large_one_as_a_factor() {
        assert_eq!(seen(0.12, 0.1, 0.14), "worse by 12 % (95 % interval 10 to 14 %)");
        assert_eq!(seen(-0.12, -0.14, -0.1), "better by 12 % (95 % interval 10 to 14 %)");
        assert_eq!(seen(30.0, 28.0, 33.0), "worse by a factor of 31 (95 % interval 29 to 34)");
    }
}
