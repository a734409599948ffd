//! Values of an environment's own keys.

use std::time::Duration;

use serde_json::Value;
use tactus_model::{Nanos, plan};

use crate::{BOOT_TIMEOUT, OptionError};

fn wrong(key: &str, value: &Value, hint: &str) -> OptionError {
    OptionError { key: key.into(), message: format!("`{key}` cannot be {value}"), hint: hint.into() }
}

/// A text.
pub fn text<'a>(spec: &'a plan::Environment, key: &str, hint: &str) -> Result<Option<&'a str>, OptionError> {
    match spec.options.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong(key, other, hint)),
    }
}

/// One of a few words.
pub fn word<'a>(
    spec: &'a plan::Environment,
    key: &str,
    words: &[&str],
) -> Result<Option<&'a str>, OptionError> {
    let hint = format!("one of {}", words.join(", "));
    match text(spec, key, &hint)? {
        Some(word) if !words.contains(&word) => Err(wrong(key, &Value::from(word), &hint)),
        word => Ok(word),
    }
}

/// True or false.
pub fn boolean(spec: &plan::Environment, key: &str) -> Result<Option<bool>, OptionError> {
    match spec.options.get(key) {
        None => Ok(None),
        Some(Value::Bool(value)) => Ok(Some(*value)),
        Some(other) => Err(wrong(key, other, "true or false")),
    }
}

/// A time, as `20s`.
pub fn duration(spec: &plan::Environment, key: &str) -> Result<Option<Duration>, OptionError> {
    let hint = "a time with its unit, as 20s or 2m";
    let Some(text) = text(spec, key, hint)? else { return Ok(None) };
    let time: Nanos = text.parse().map_err(|_| wrong(key, &Value::from(text), hint))?;
    Ok(Some(Duration::from_nanos(time.0)))
}

/// How long an environment may take to answer.
pub fn boot_timeout(spec: &plan::Environment) -> Result<Option<Duration>, OptionError> {
    duration(spec, BOOT_TIMEOUT)
}

/// A whole number within a range.
pub fn number(
    spec: &plan::Environment,
    key: &str,
    range: std::ops::RangeInclusive<u32>,
) -> Result<Option<u32>, OptionError> {
    let Some(value) = spec.options.get(key) else { return Ok(None) };
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    match number.filter(|number| range.contains(number)) {
        Some(number) => Ok(Some(number)),
        None => Err(wrong(key, value, &format!("a number from {} to {}", range.start(), range.end()))),
    }
}

/// A list of texts; empty when it is left out.
pub fn list<'a>(spec: &'a plan::Environment, key: &str, hint: &str) -> Result<Vec<&'a str>, OptionError> {
    let Some(value) = spec.options.get(key) else { return Ok(Vec::new()) };
    let texts = value.as_array().and_then(|list| list.iter().map(Value::as_str).collect());
    texts.ok_or_else(|| wrong(key, value, hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_wrong_kind_are_named_with_what_would_be_right() {
        let options = [("a", Value::from(3)), ("b", Value::from("no")), ("c", Value::from("20s"))];
        let options = options.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let spec = plan::Environment { kind: "qemu".into(), options, ..plan::Environment::default() };
        let error = text(&spec, "a", "a text").unwrap_err();
        assert_eq!((error.key.as_str(), error.hint.as_str()), ("a", "a text"));
        assert!(word(&spec, "b", &["auto", "kvm"]).unwrap_err().hint.contains("auto, kvm"));
        assert!(boolean(&spec, "b").is_err() && duration(&spec, "b").is_err());
        assert_eq!(duration(&spec, "c").unwrap(), Some(Duration::from_secs(20)));
        assert_eq!(number(&spec, "a", 1..=3).unwrap(), Some(3));
        assert!(number(&spec, "a", 4..=9).unwrap_err().hint.contains("4 to 9"));
        assert!(number(&spec, "b", 1..=3).is_err() && list(&spec, "b", "a list").is_err());
        assert_eq!(list(&spec, "d", "a list").unwrap(), [""; 0]);
        assert_eq!((text(&spec, "d", "").unwrap(), boolean(&spec, "d").unwrap()), (None, None));
    }
}
