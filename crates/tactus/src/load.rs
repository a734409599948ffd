//! A load on the command line: `WORD`, `WORD:KEY=VALUE,...` or `command:PROGRAM ARGUMENT...`.

use serde_json::{Map, Value, json};
use tactus_model::catalogue::Load;
use tactus_model::catalogue::load::LOADS;
use tactus_model::plan::Placed;

use crate::exit::Failure;
use crate::{nearest, synonyms};

/// The load that has a program for a parameter, and not keys.
const COMMAND: &str = "command";

/// Words that a shell completes.
pub fn words() -> Vec<&'static str> {
    LOADS.iter().map(|load| load.name).collect()
}

/// The load that `text` describes, in the environment of the measurement.
pub fn load(text: &str) -> Result<Placed<Load>, Failure> {
    let (word, rest) = text.split_once(':').map_or((text, None), |(word, rest)| (word, Some(rest)));
    let word = synonyms::load(word);
    let wrong = |why: &str| {
        let hint = format!(
            "loads are {}; parameters follow as in `cache:bytes=8M,blocks=16`, a program as in \
             `command:stress-ng --cpu 1`; `tactus explain {}` lists the parameters",
            words().join(", "),
            nearest::nearest(word, words()).unwrap_or("scheduler")
        );
        Failure::say(
            format!("--load {text}: {why}"),
            nearest::hint(word, words().into_iter().filter(|known| *known != word), hint),
        )
    };
    if !words().contains(&word) {
        return Err(wrong("this load does not exist"));
    }
    let mut table = Map::from_iter([("kind".to_owned(), Value::from(word))]);
    match rest {
        None => {}
        // No shell reads it: words are between spaces.
        Some(program) if word == COMMAND => {
            table.insert("run".into(), program.split_whitespace().collect());
        }
        Some(parameters) => {
            for one in parameters.split(',') {
                let (key, value) =
                    one.split_once('=').ok_or_else(|| wrong(&format!("`{one}` is not KEY=VALUE")))?;
                if table.insert(key.trim().into(), parameter(value.trim())).is_some() {
                    return Err(wrong(&format!("`{key}` is given twice")));
                }
            }
        }
    }
    let what = serde_json::from_value(json!(table)).map_err(|error| wrong(&error.to_string()))?;
    Ok(Placed { what, environment: None, cpus: None })
}

/// A value as a plan would have it. Of sizes `8M` is enough.
fn parameter(text: &str) -> Value {
    if let Ok(number) = text.parse::<u64>() {
        return number.into();
    }
    if let Ok(flag) = text.parse::<bool>() {
        return flag.into();
    }
    let digits = text.strip_suffix(['K', 'M', 'G']);
    if digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())) {
        return format!("{text}iB").into();
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Value {
        let load = load(text).unwrap_or_else(|failure| panic!("{text}: {}", failure.words()));
        serde_json::to_value(load.what).unwrap()
    }

    #[test]
    fn each_load_is_said_by_its_word_with_its_parameters() {
        assert_eq!(table("scheduler")["kind"], "scheduler");
        assert_eq!(table("hackbench:groups=2"), table("scheduler:groups=2"));
        let cache = table("cache:bytes=8M,blocks=16");
        assert_eq!((&cache["bytes"], &cache["blocks"]), (&json!("8MiB"), &json!(16)));
        assert_eq!(table("cache:bytes=512KiB")["bytes"], "512KiB");
        let command = table("command:stress-ng --malloc 1");
        assert_eq!(command["run"], json!(["stress-ng", "--malloc", "1"]));
        // A program's own colons, commas and equals signs stay.
        assert_eq!(table("command:env A=1,2 x:y")["run"], json!(["env", "A=1,2", "x:y"]));
    }

    #[test]
    fn what_is_no_load_is_named_with_what_would_be_one() {
        for (text, says) in [
            ("fire", "this load does not exist"),
            ("", "this load does not exist"),
            ("cache:bytes", "`bytes` is not KEY=VALUE"),
            ("cache:", "`` is not KEY=VALUE"),
            ("cache:byts=8M", "unknown field `byts`"),
            ("cache:bytes=8X", "is not a size"),
            ("cache:bytes=1M,bytes=2M", "twice"),
            ("cache:kind=cpu", "twice"),
        ] {
            let failure = load(text).unwrap_err();
            assert!(failure.words().contains(says), "{text}: {}", failure.words());
        }
    }
}
