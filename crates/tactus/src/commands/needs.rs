//! How long a pass needs, said before the run: after it the time is lost.

use tactus_model::Nanos;
use tactus_model::text::quoted;
use tactus_report::answer::called_again;
use tactus_report::row::{PassNeeds, pass_needs};
use tactus_report::units::{clean, duration};
use tactus_run::plan::Resolved;

use crate::say::say;

const SECOND_NS: u64 = 1_000_000_000;

/// A measurement with limits.
struct Asked {
    name: String,
    planned_ns: u64,
    needs: PassNeeds,
}

/// Says how long each measurement must last to pass its limits, and which cannot pass. `words`: the command line, if
/// it may be repeated with a longer time.
pub fn say_needs(resolved: &Resolved, words: Option<impl Iterator<Item = String>>) {
    let scenarios = resolved.scenarios.iter().filter(|scenario| scenario.skip.is_none() && !scenario.kept);
    // A scenario without self-test has no verdict.
    let scenarios = scenarios.filter(|scenario| scenario.control.is_some());
    let rows = scenarios.flat_map(|scenario| resolved.rows.get(scenario.rows.clone()).unwrap_or_default());
    let asked: Vec<Asked> = rows
        .map(|row| &row.result)
        // One for all of its slices, and for all of its runs.
        .filter(|result| result.repeat.is_none_or(|run| run == 1))
        .filter(|result| result.slice.is_none_or(|slice| slice.number == 1))
        .filter_map(|result| {
            let needs = pass_needs(result.require.as_ref()?, &result.measurement, result.interval_ns)?;
            let planned_ns = result.slice.map_or(result.planned_ns, |slice| slice.whole_ns);
            Some(Asked { name: result.name.clone(), planned_ns, needs })
        })
        .collect();
    let Some((sentence, longer_ns)) = sentence(&asked) else { return };
    say(format_args!("note: {sentence}"));
    if let (Some(ns), Some(words)) = (longer_ns, words) {
        say(format_args!("hint: {}", for_longer(words, Nanos(ns))));
    }
}

/// The sentence, and how long it must last if it is too short now.
fn sentence(asked: &[Asked]) -> Option<(String, Option<u64>)> {
    let most = asked.iter().max_by_key(|one| one.needs.ns)?;
    let needed = |of: &Asked| of.needs.ns.div_ceil(SECOND_NS).saturating_mul(SECOND_NS);
    let short: Vec<&Asked> = asked.iter().filter(|one| one.planned_ns < one.needs.ns).collect();
    let Some(first) = short.iter().max_by_key(|one| one.needs.ns) else {
        let least = asked.iter().map(|one| one.planned_ns).min().unwrap_or(0);
        let (needed, least) = (duration(needed(most)), duration(least));
        return Some((
            format!(
                "a pass needs {needed} or more of each measurement ({}); {least} is planned",
                most.needs.why
            ),
            None,
        ));
    };
    let others = match short.len() - 1 {
        0 => String::new(),
        1 => " and 1 more measurement".into(),
        more => format!(" and {more} more measurements"),
    };
    let said = format!(
        "{} of {}{others} can fail, but not pass: a pass needs {} or more ({})",
        duration(first.planned_ns),
        clean(&first.name),
        duration(needed(first)),
        first.needs.why
    );
    Some((said, Some(needed(first))))
}

/// The same command with another duration, into a new bundle.
fn for_longer(mut words: impl Iterator<Item = String>, time: Nanos) -> String {
    let program = words.next().map(|program| quoted(&program)).unwrap_or_default();
    let arguments: Vec<String> = words.collect();
    format!("{program} {}", called_again(&arguments, "--duration", &time.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: &str, planned: u64, needs: u64) -> Asked {
        let needs = PassNeeds { ns: needs * SECOND_NS, why: "p99.99".into() };
        Asked { name: name.into(), planned_ns: planned * SECOND_NS, needs }
    }

    #[test]
    fn a_run_that_cannot_pass_says_so_and_for_how_long_it_would_have_to_go_on() {
        let (said, longer_ns) = sentence(&[asked("host idle", 10, 300), asked("qemu idle", 10, 60)]).unwrap();
        assert_eq!(
            said,
            "10 s of host idle and 1 more measurement can fail, but not pass: a pass needs 5 min or more (p99.99)"
        );
        assert_eq!(longer_ns, Some(300 * SECOND_NS));
    }

    #[test]
    fn a_run_that_can_pass_says_what_a_pass_needs_and_one_of_which_nothing_is_required_says_nothing() {
        let (said, longer_ns) = sentence(&[asked("host idle", 600, 300)]).unwrap();
        assert_eq!(said, "a pass needs 5 min or more of each measurement (p99.99); 10 min is planned");
        assert_eq!(longer_ns, None);
        assert!(sentence(&[]).is_none());
    }

    #[test]
    fn the_command_to_type_is_the_one_that_was_typed_with_another_time() {
        let again =
            |line: &[&str]| for_longer(line.iter().map(|word| (*word).to_owned()), Nanos::from_secs(300));
        for line in [
            &["tactus", "run", "my plan.toml", "-D", "10", "--max", "100us"][..],
            &["tactus", "run", "my plan.toml", "-D10", "--max", "100us"],
            &["tactus", "run", "--quick", "my plan.toml", "--duration=10s", "--max", "100us"],
            &["tactus", "run", "my plan.toml", "--duration", "10s", "--max", "100us"],
            &["tactus", "run", "my plan.toml", "--out", "there", "-D", "10", "--max", "100us", "--into=it"],
        ] {
            assert_eq!(again(line), "tactus run 'my plan.toml' --max 100us --duration 5min");
        }
    }
}
