//! Readings that a profile needs, of files that the facts do not have.

use std::path::Path;

use tactus_audit::settable::is_of_pattern;
use tactus_model::facts::{Facts, Reading};
use tactus_system::System;

use super::{PROFILES, What};

/// The files of a pattern that the facts know.
pub(super) fn matching(facts: &Facts, pattern: &str) -> Vec<String> {
    let beginning = pattern.split('*').next().unwrap_or(pattern);
    if beginning.len() == pattern.len() {
        let there = matches!(facts.0.get(pattern), Some(Reading::Text(_) | Reading::Cut(_)));
        return if there { vec![pattern.to_owned()] } else { Vec::new() };
    }
    let mut found: Vec<String> = facts
        .under(beginning)
        .filter(|(name, reading)| {
            matches!(reading, Reading::Text(_) | Reading::Cut(_)) && is_of_pattern(name, pattern)
        })
        .map(|(name, _)| name.to_owned())
        .collect();
    found.sort_by_key(|name| numbers(name));
    found
}

/// `cpu10` behind `cpu9`.
fn numbers(name: &str) -> (Vec<u64>, String) {
    let digits = name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect();
    (digits, name.to_owned())
}

/// Reads what the profiles set and the facts do not say, on the machine that the facts are of.
/// Nothing else is read, and nothing that the facts say already.
pub fn complete(facts: &mut Facts, system: &dyn System) {
    for profile in PROFILES {
        for setting in profile.all() {
            let What::File(path, _) = setting.what else { continue };
            for path in expand(path, system) {
                if facts.0.contains_key(&path) {
                    continue;
                }
                if let Some(text) = system.text(&path) {
                    facts.keep(path, text.trim_end_matches('\n'));
                }
            }
        }
    }
}

fn expand(pattern: &str, system: &dyn System) -> Vec<String> {
    let Some((front, back)) = pattern.split_once('*') else { return vec![pattern.to_owned()] };
    let (dir, _) = front.rsplit_once('/').unwrap_or(("/", front));
    let (rest, below) = back.split_once('/').unwrap_or((back, ""));
    let one = format!("{front}*{rest}");
    let entries = system.list(Path::new(dir)).unwrap_or_default();
    entries
        .iter()
        .filter_map(|path| path.to_str())
        .filter(|path| is_of_pattern(path, &one))
        .map(|path| format!("{path}/{below}"))
        .flat_map(|path| expand(&path, system))
        .collect()
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;

    #[test]
    fn what_the_facts_lack_is_read_and_what_they_say_is_kept() {
        let machine = Memory::new()
            .file("/proc/sys/net/core/busy_read", "0\n")
            .file("/proc/sys/vm/swappiness", "60\n")
            .file("/sys/devices/system/machinecheck/machinecheck0/ignore_ce", "0\n")
            .file("/sys/devices/system/machinecheck/uevent", "");
        let mut facts = Facts::default();
        facts.keep("/proc/sys/vm/swappiness", "1");
        complete(&mut facts, &machine);
        assert_eq!(facts.text("/proc/sys/vm/swappiness"), Some("1"));
        assert_eq!(facts.text("/proc/sys/net/core/busy_read"), Some("0"));
        assert_eq!(
            matching(&facts, "/sys/devices/system/machinecheck/machinecheck*/ignore_ce"),
            ["/sys/devices/system/machinecheck/machinecheck0/ignore_ce"]
        );
        assert_eq!(facts.0.len(), 3);
    }
}
