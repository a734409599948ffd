//! Changes as rows of words, for the way to a probe: an enum in JSON costs a small program more than all
//! it does with it.
//!
//! A row is `check, effect, then, kind, name`, what else the target needs, and `now` where it is known
//! (written `=VALUE`).

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Change, Effect, Form, Target, Thread};

/// Words for effects.
const EFFECTS: [(Effect, &str); 3] =
    [(Effect::Runtime, "runtime"), (Effect::Boot, "boot"), (Effect::Restart, "restart")];

/// Words for forms.
const FORMS: [(Form, &str); 6] = [
    (Form::Plain, "plain"),
    (Form::Choice, "choice"),
    (Form::Mask, "mask"),
    (Form::List, "list"),
    (Form::Flag, "flag"),
    (Form::Words, "words"),
];

/// For `#[serde(with)]`.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(changes: &[Change], serializer: S) -> Result<S::Ok, S::Error> {
    changes.iter().map(row).collect::<Vec<_>>().serialize(serializer)
}

/// For `#[serde(with)]`.
///
/// # Errors
/// When a row is no change.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Change>, D::Error> {
    let rows = Vec::<Vec<String>>::deserialize(deserializer)?;
    rows.iter().map(|row| change(row)).collect::<Option<_>>().ok_or_else(|| D::Error::custom("no change"))
}

fn word<T: PartialEq>(words: &[(T, &'static str)], value: &T) -> String {
    words.iter().find(|(known, _)| known == value).map_or("", |(_, word)| word).to_owned()
}

fn value<T: Copy>(words: &[(T, &'static str)], word: &str) -> Option<T> {
    words.iter().find(|(_, known)| *known == word).map(|(value, _)| *value)
}

fn row(change: &Change) -> Vec<String> {
    let target = match &change.target {
        Target::File { path, form } => vec!["file".into(), path.clone(), word(&FORMS, form)],
        Target::Scheduling(thread) => vec!["scheduling".into(), thread.name.clone(), thread.tid.to_string()],
        Target::Affinity(thread) => vec!["affinity".into(), thread.name.clone(), thread.tid.to_string()],
        Target::Kernel { parameter } => vec!["kernel".into(), parameter.clone()],
        Target::Module { module, parameter } => vec!["module".into(), module.clone(), parameter.clone()],
        Target::Service { unit } => vec!["service".into(), unit.clone()],
        Target::DropIn { unit, section, key } => {
            vec!["drop_in".into(), unit.clone(), section.clone(), key.clone()]
        }
    };
    let mut row = vec![change.check.clone(), word(&EFFECTS, &change.effect), change.then.clone()];
    row.extend(target);
    row.extend(change.now.iter().map(|now| format!("={now}")));
    row
}

fn change(row: &[String]) -> Option<Change> {
    let (head, rest) = row.split_at_checked(5)?;
    let name = head[4].clone();
    let mut rest = rest.iter();
    let mut more = || rest.next().cloned();
    let thread = |tid: String| Some(Thread { tid: tid.parse().ok()?, name: name.clone() });
    let target = match head[3].as_str() {
        "file" => Target::File { form: value(&FORMS, &more()?)?, path: name },
        "scheduling" => Target::Scheduling(thread(more()?)?),
        "affinity" => Target::Affinity(thread(more()?)?),
        "kernel" => Target::Kernel { parameter: name },
        "module" => Target::Module { parameter: more()?, module: name },
        "service" => Target::Service { unit: name },
        "drop_in" => Target::DropIn { section: more()?, key: more()?, unit: name },
        _ => return None,
    };
    let now = match more() {
        Some(now) => Some(now.strip_prefix('=')?.to_owned()),
        None => None,
    };
    Some(Change {
        check: head[0].clone(),
        target,
        now,
        then: head[2].clone(),
        effect: value(&EFFECTS, &head[1])?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_change_comes_back_as_it_was() {
        let thread = Thread { tid: 17, name: "rcuc/1 =".into() };
        let targets = [
            Target::Kernel { parameter: "isolcpus".into() },
            Target::Module { module: "kvm".into(), parameter: "halt_poll_ns".into() },
            Target::Scheduling(thread.clone()),
            Target::Affinity(thread),
            Target::Service { unit: "irqbalance.service".into() },
            Target::DropIn {
                unit: "system.conf".into(),
                section: "Manager".into(),
                key: "CPUAffinity".into(),
            },
        ];
        let files = FORMS.map(|(form, _)| Target::File { path: "/proc/x".into(), form });
        for target in targets.into_iter().chain(files) {
            for now in [None, Some(String::new()), Some("=1 2".into())] {
                for (effect, _) in EFFECTS {
                    let check = "a-check".to_owned();
                    let one =
                        Change { check, target: target.clone(), now: now.clone(), then: "".into(), effect };
                    assert_eq!(change(&row(&one)), Some(one));
                }
            }
        }
    }

    #[test]
    fn rows_that_are_cut_or_of_another_kind_are_no_change() {
        let whole = ["check", "runtime", "then", "file", "/proc/x", "plain"].map(str::to_owned);
        assert!(change(&whole).is_some());
        for length in 0..whole.len() {
            assert_eq!(change(&whole[..length]), None);
        }
        for (at, wrong) in [(1, "soon"), (3, "planet"), (5, "round")] {
            let mut row = whole.clone();
            row[at] = wrong.into();
            assert_eq!(change(&row), None, "{wrong}");
        }
    }
}
