//! The text of a plan, with the line of every key, so that an error can name it.

use std::collections::BTreeMap;

use tactus_model::plan::Plan;
use toml::de::{DeTable, DeValue};

use super::PlanError;

/// A plan's text.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file, or the name of the study.
    pub file: String,
    /// The text.
    pub text: String,
    /// Byte offset of every key, by its path.
    keys: BTreeMap<String, usize>,
}

impl Source {
    /// Indexes the keys of `text`. Text that is not TOML has none.
    pub fn new(file: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let mut keys = BTreeMap::new();
        if let Ok(table) = DeTable::parse(&text) {
            index(table.get_ref(), "", &mut keys);
        }
        Self { file: file.into(), text, keys }
    }

    /// The line, from 1, of a byte of the text.
    #[must_use]
    pub fn line_at(&self, offset: usize) -> usize {
        let end = offset.min(self.text.len());
        self.text.as_bytes()[..end].iter().filter(|b| **b == b'\n').count() + 1
    }

    /// An error at a key, given by its path: `environment.guest.kernel`, `scenario[2].cpus`. Where the
    /// key itself is not in the text, the nearest table around it gives the line.
    pub fn error(&self, key: &str, message: impl Into<String>, hint: impl Into<String>) -> PlanError {
        let mut path = key;
        let offset = loop {
            if let Some(offset) = self.keys.get(path) {
                break Some(*offset);
            }
            match path.rfind(['.', '[']) {
                Some(end) => path = &path[..end],
                None => break None,
            }
        };
        PlanError {
            file: self.file.clone(),
            line: offset.map(|offset| self.line_at(offset)),
            key: Some(key.to_owned()),
            message: message.into(),
            hint: Some(hint.into()),
        }
    }

    /// An error at a key that names an environment which the plan does not have.
    pub fn undefined(&self, plan: &Plan, key: &str, name: &str) -> PlanError {
        let known: Vec<&str> = plan.environment.keys().map(String::as_str).collect();
        let hint = if known.is_empty() {
            format!("add a table [environment.{name}] with its `kind`")
        } else {
            format!("defined are {}; or add a table [environment.{name}]", known.join(", "))
        };
        self.error(key, format!("environment `{name}` is not defined"), hint)
    }
}

fn index(table: &DeTable<'_>, prefix: &str, keys: &mut BTreeMap<String, usize>) {
    for (key, value) in table {
        let name = key.get_ref();
        let path = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
        keys.insert(path.clone(), key.span().start);
        index_value(value.get_ref(), &path, keys);
    }
}

fn index_value(value: &DeValue<'_>, path: &str, keys: &mut BTreeMap<String, usize>) {
    match value {
        DeValue::Table(table) => index(table, path, keys),
        DeValue::Array(array) => {
            for (at, item) in array.iter().enumerate() {
                let path = format!("{path}[{at}]");
                keys.insert(path.clone(), item.span().start);
                index_value(item.get_ref(), &path, keys);
            }
        }
        _ => {}
    }
}
