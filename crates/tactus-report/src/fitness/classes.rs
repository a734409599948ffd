//! The classes that are judged by: those that ship with tactus, a plan's, a user's file.

use std::sync::LazyLock;

use serde::Deserialize;
use tactus_model::bundle::Contents;
use tactus_model::plan::{Class, Plan, Require};

/// A file of classes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    class: Vec<Class>,
}

/// Why a text is no file of classes.
#[derive(Debug, thiserror::Error)]
pub enum ClassError {
    /// It is not TOML, or not of this form.
    #[error("{}{message}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
    Form {
        /// Where, from 1.
        line: Option<usize>,
        /// The error.
        message: String,
    },
    /// Two classes of one name.
    #[error("a second class named `{0}`")]
    Twice(String),
    /// No class at all.
    #[error("it contains no class")]
    Empty,
}

/// The classes of a file.
///
/// # Errors
/// When it is not TOML, or has an unknown key or a value that no class can have.
pub fn read(text: &str) -> Result<Vec<Class>, ClassError> {
    let File { class } = toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        ClassError::Form { line, message: error.message().lines().next().unwrap_or("not TOML").to_owned() }
    })?;
    if class.is_empty() {
        return Err(ClassError::Empty);
    }
    for (n, one) in class.iter().enumerate() {
        if class[..n].iter().any(|other| other.name == one.name) {
            return Err(ClassError::Twice(one.name.clone()));
        }
    }
    Ok(class)
}

/// The classes that ship with tactus.
#[must_use]
pub fn built_in() -> &'static [Class] {
    static CLASSES: LazyLock<Vec<Class>> =
        LazyLock::new(|| read(include_str!("classes.toml")).expect("a test reads it"));
    &CLASSES
}

/// The classes that ship with tactus and those of a plan.
#[must_use]
pub fn classes_of(plan: &Plan) -> Vec<Class> {
    joined(built_in(), plan.fitness.as_ref().map_or(&[], |own| own.class.as_slice()))
}

/// The classes that a report judges by. The classes that ship with tactus are thresholds of a document. They
/// help a reader who set no limit. With a required limit they could contradict its verdict. Then only the
/// classes of the plan are judged, and those of the document that the plan is about.
#[must_use]
pub fn asked_classes(contents: &Contents) -> Vec<Class> {
    let plan = &contents.plan;
    let limits = |require: &Require| {
        require.bounds_latency() || require.warn.as_deref().is_some_and(Require::bounds_latency)
    };
    let is_limited = contents.rows.iter().any(|row| row.result.require.as_ref().is_some_and(limits));
    match &plan.fitness {
        Some(own) if is_limited && own.claim.is_none() => own.class.clone(),
        None if is_limited => Vec::new(),
        _ => classes_of(plan),
    }
}

/// Both: a class that has the name of another one takes its place.
#[must_use]
pub fn joined(classes: &[Class], own: &[Class]) -> Vec<Class> {
    let mut all = classes.to_vec();
    for class in own {
        match all.iter_mut().find(|known| known.name == class.name) {
            Some(known) => known.clone_from(class),
            None => all.push(class.clone()),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classes_that_ship_are_those_of_the_documents_table() {
        let names: Vec<&str> = built_in().iter().map(|class| class.name.as_str()).collect();
        assert_eq!(names, ["plc", "motion-control", "motor-drive"]);
        let jitter: Vec<(u64, u64)> =
            built_in().iter().map(|class| (class.jitter.from.0 / 1_000, class.jitter.to.0 / 1_000)).collect();
        assert_eq!(jitter, [(10, 1_000), (1, 5), (1, 2)]);
        assert!(built_in().iter().all(|class| class.share == 100));
    }

    #[test]
    fn a_class_of_the_users_takes_the_place_of_one_of_its_name_or_stands_behind_them() {
        let own = read(
            "[[class]]\nname = \"plc\"\ncycle = \"1ms\"\njitter = \"50us\"\n\
             [[class]]\nname = \"loop\"\ncycle = \"250us\"\njitter = \"20us\"\nshare = 20\n",
        )
        .unwrap();
        let all = joined(built_in(), &own);
        let names: Vec<&str> = all.iter().map(|class| class.name.as_str()).collect();
        assert_eq!(names, ["plc", "motion-control", "motor-drive", "loop"]);
        assert_eq!((all[0].cycle, all[3].share), (own[0].cycle, 20));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_line() {
        let said = |text: &str| read(text).unwrap_err().to_string();
        let head = "[[class]]\nname = \"a\"\ncycle = \"1ms\"\n";
        assert!(said(&format!("{head}jitter = \"5\"\n")).starts_with("line 4: `5` has no unit"));
        assert!(said(&format!("{head}jitter = \"5us\"\nslack = 1\n")).contains("unknown field `slack`"));
        assert!(said("[[class").starts_with("line 1: "));
        assert_eq!(said(""), "it contains no class");
        let one = format!("{head}jitter = \"5us\"\n");
        assert_eq!(said(&format!("{one}{one}")), "a second class named `a`");
    }
}
