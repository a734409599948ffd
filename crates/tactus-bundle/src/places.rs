//! What a bundle knows of its environments: a directory of one JSON file for each.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::de::DeserializeOwned;
use tactus_model::bundle::{Format, Row, file_name};
use tactus_system::Directory;

use super::limits::{self, Memory};
use super::older;

/// What stands in such a directory, by environment: a file is read for one of them or for none.
pub fn by_environment<T: DeserializeOwned>(
    dir: &Directory,
    sub: &str,
    (rows, format): (&[Row], Format),
    memory: &mut Memory,
    damage: &mut Vec<String>,
) -> BTreeMap<String, T> {
    let names: BTreeSet<String> = rows.iter().map(|row| row.result.environment_key()).collect();
    let today: BTreeSet<String> = names.iter().map(|name| file_name(name)).collect();
    let before = |name: &String| older::file_name(format, name).filter(|file| !today.contains(file));
    let mut sharing: BTreeMap<String, usize> = BTreeMap::new();
    for file in names.iter().filter_map(before) {
        *sharing.entry(file).or_default() += 1;
    }
    let mut read = |file: &str| -> io::Result<T> {
        let bytes = memory.read(dir, &format!("{sub}/{file}.json"), limits::FACTS)?;
        serde_json::from_slice(&bytes).map_err(io::Error::from)
    };
    let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let mut all = BTreeMap::new();
    for name in &names {
        let mut file = file_name(name);
        let mut found = read(&file);
        if found.as_ref().is_err_and(is_missing)
            && let Some(own) = before(name).filter(|file| sharing.get(file) == Some(&1))
        {
            found = read(&own);
            file = own;
        }
        match found {
            Ok(found) => {
                all.insert(name.clone(), found);
            }
            Err(error) if is_missing(&error) => {}
            Err(error) => damage.push(format!("{sub}/{file}.json cannot be read: {error}")),
        }
    }
    for (file, count) in sharing.into_iter().filter(|(_, count)| *count > 1) {
        let file = format!("{sub}/{file}.json");
        if dir.entry(&file).is_ok() {
            damage
                .push(format!("{file}: nobody knows of which of {count} environments it is: it is left out"));
        }
    }
    all
}
