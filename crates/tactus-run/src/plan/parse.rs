//! TOML to a plan; nothing is asked of the machine.

use serde::de::DeserializeOwned;
use tactus_model::plan::Plan;

use super::{PlanError, Source};

/// Reads a plan.
///
/// # Errors
/// Text that is not TOML, an unknown key, a value of the wrong kind or unit: with line and key.
pub fn parse(source: &Source) -> Result<Plan, PlanError> {
    read(source)
}

/// Reads what is written in TOML.
///
/// # Errors
/// As [`parse`].
pub(super) fn read<T: DeserializeOwned>(source: &Source) -> Result<T, PlanError> {
    toml::from_str(&source.text).map_err(|error| {
        let span = error.span();
        let key = span.as_ref().and_then(|span| key_at(&source.text, span.start));
        let (message, hint) = readable(error.message());
        PlanError {
            file: source.file.clone(),
            line: span.map(|span| source.line_at(span.start)),
            key,
            message,
            hint,
        }
    })
}

/// The key of the line that an error points into.
fn key_at(text: &str, offset: usize) -> Option<String> {
    let offset = offset.min(text.len());
    let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    let line = text[start..].lines().next()?.trim();
    let key = line.split('=').next()?.trim();
    (!key.is_empty() && !key.starts_with('#')).then(|| key.trim_matches(['[', ']']).to_owned())
}

/// A value of another type than expected, with how to write it.
fn mistaken(got: &str, wanted: &str) -> (String, Option<String>) {
    let is_number = ["u8", "u16", "u32", "u64", "usize", "i64", "f64"].contains(&wanted);
    let wanted = match wanted {
        "f64" => "a number",
        _ if is_number => "a whole number",
        "a map" => "a table",
        "a sequence" => "a list",
        "a string" => "a text in quotes",
        "a boolean" => "true or false",
        other => other,
    };
    let found = match got.split_once(' ') {
        Some(("string", text)) => format!("the text {text}"),
        Some((_, value)) => value.trim_matches('`').to_owned(),
        None if got == "sequence" => "a list".to_owned(),
        None if got == "map" => "a table".to_owned(),
        None => got.to_owned(),
    };
    let hint = match (got, wanted) {
        ("sequence", "a table") => Some("write `[NAME]` once for each table instead of `[[...]]`"),
        ("map", "a list") => Some("write `[[...]]` for each table of the list"),
        _ if is_number && got.starts_with("string") => Some("write the number without quotes"),
        _ if wanted.contains("unit") => Some("write the number with a unit, in quotes: \"200us\""),
        _ => None,
    };
    (format!("{wanted} is expected here, and this is {found}"), hint.map(str::to_owned))
}

/// The library's message in our words, and a hint where it knows what was expected.
fn readable(message: &str) -> (String, Option<String>) {
    let message = message.lines().next().unwrap_or("not TOML");
    for (unknown, what) in [("unknown field ", "unknown key"), ("unknown variant ", "unknown word")] {
        if let Some(rest) = message.strip_prefix(unknown) {
            let (name, expected) = rest.split_once(", ").unwrap_or((rest, ""));
            let hint = match expected.strip_prefix("expected ") {
                Some(known) if !known.is_empty() => Some(format!("write {known}")),
                _ => None,
            };
            return (format!("{what} {name}"), hint.map(|h| h.replace("write one of", "write one of:")));
        }
    }
    if let Some((got, wanted)) =
        message.strip_prefix("invalid type: ").and_then(|rest| rest.split_once(", expected "))
    {
        return mistaken(got, wanted);
    }
    let hint = match message {
        "missing field `name`" => {
            Some("add `name = \"...\"`; the file's own stands above its first table".to_owned())
        }
        _ => message.contains("missing field").then(|| "add the missing key".to_owned()),
    };
    (message.to_owned(), hint)
}
