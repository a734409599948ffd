//! A bundle's knowledge of its environments: a directory with one JSON file for each.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::de::DeserializeOwned;
use tactus_model::bundle::{Row, file_name};
use tactus_system::Directory;

use super::limits::{self, Memory};

/// The contents of such a directory, by environment.
pub fn by_environment<T: DeserializeOwned>(
    dir: &Directory,
    sub: &str,
    rows: &[Row],
    memory: &mut Memory,
    damage: &mut Vec<String>,
) -> BTreeMap<String, T> {
    let names: BTreeSet<String> = rows.iter().map(|row| row.result.environment_key()).collect();
    let mut all = BTreeMap::new();
    for name in names {
        let file = format!("{sub}/{}.json", file_name(&name));
        let bytes = memory.read(dir, &file, limits::FACTS);
        match bytes.and_then(|bytes| serde_json::from_slice(&bytes).map_err(io::Error::from)) {
            Ok(found) => {
                all.insert(name, found);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => damage.push(format!("{file} cannot be read: {error}")),
        }
    }
    all
}
