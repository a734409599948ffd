//! The groups of resctrl, from facts.

use std::collections::BTreeMap;

use tactus_model::CpuSet;
use tactus_model::facts::Facts;
use tactus_model::resctrl::{Entry, ROOT, entries, mask};

use crate::{Judgement, Subject};

/// A control group: what tasks and CPUs in it may use. The name of the root is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    pub name: String,
    /// CPUs whose tasks use it unless they are in another group.
    pub cpus: CpuSet,
    /// Cache ways by level and domain; code and data together.
    pub ways: BTreeMap<(u32, u32), u64>,
    /// Memory bandwidth by domain: percent, MB/s or a processor's own steps.
    pub bandwidth: BTreeMap<u32, u64>,
}

impl Group {
    /// How it is called to a reader.
    pub fn title(&self) -> String {
        if self.name.is_empty() { "the default group".into() } else { format!("group {}", self.name) }
    }

    fn of(facts: &Facts, name: &str) -> Option<Self> {
        let dir = if name.is_empty() { ROOT.to_owned() } else { format!("{ROOT}{name}/") };
        let schemata = facts.text(&format!("{dir}schemata"))?;
        let cpus = facts.text(&format!("{dir}cpus_list")).and_then(|text| text.parse().ok());
        let name = name.chars().take(60).collect();
        let mut group = Self { name, cpus: cpus.unwrap_or_default(), ..Self::default() };
        for entry in entries(schemata) {
            group.keep(entry);
        }
        Some(group)
    }

    fn keep(&mut self, entry: Entry<'_>) {
        match entry.level() {
            Some(level) => {
                if let Some(ways) = mask(entry.value) {
                    *self.ways.entry((level, entry.domain)).or_default() |= ways;
                }
            }
            None if entry.resource == "MB" => {
                if let Ok(value) = entry.value.parse() {
                    self.bandwidth.insert(entry.domain, value);
                }
            }
            None => {}
        }
    }
}

/// The root first, then the others by name.
///
/// # Errors
/// Not applicable where resctrl is not mounted, unreadable where it may not be read.
pub fn groups(subject: &Subject<'_>) -> Result<Vec<Group>, Judgement> {
    subject.value(&format!("{ROOT}schemata"))?;
    let others = subject.facts.under(ROOT).filter_map(|(path, _)| {
        let name = path.strip_prefix(ROOT)?.strip_suffix("/schemata")?;
        (!name.contains('/') && !matches!(name, "info" | "mon_groups" | "mon_data")).then_some(name)
    });
    Ok(std::iter::once("").chain(others).filter_map(|name| Group::of(subject.facts, name)).collect())
}

/// Whether the processor has one of these flags.
pub fn has_flag(subject: &Subject<'_>, wanted: &[&str]) -> bool {
    subject
        .facts
        .field("/proc/cpuinfo", "flags", ':')
        .is_some_and(|flags| flags.split_ascii_whitespace().any(|flag| wanted.contains(&flag)))
}

/// The judgement of a check without a mounted resctrl: a finding if the processor supports it.
pub fn unmounted(subject: &Subject<'_>, refused: Judgement, flags: &[&str], what: &str) -> Judgement {
    if refused.state != tactus_model::finding::State::NotApplicable {
        return refused;
    }
    if has_flag(subject, flags) {
        let said = format!("the processor can {what}, but resctrl is not mounted");
        return Judgement::finding(said).read("/sys/fs/resctrl", "not mounted");
    }
    Judgement::not_applicable(format!("neither the processor nor the kernel can {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Intent;
    use crate::testing::intel;

    fn read(readings: &[(&str, &str)]) -> Vec<Group> {
        let system = intel(readings);
        let intent = Intent::default();
        groups(&Subject::new(&system.facts, system.role, &intent)).unwrap_or_default()
    }

    #[test]
    fn schemata_are_read_as_the_kernel_writes_them() {
        let groups = read(&[
            ("/sys/fs/resctrl/schemata", "    MB:0=100;1=50\n    L3:0=7ff;1=00f\n"),
            ("/sys/fs/resctrl/cpus_list", "0-1"),
            ("/sys/fs/resctrl/rt/schemata", "L3CODE:0=1\nL3DATA:0=6\nSMBA:0=5"),
            ("/sys/fs/resctrl/rt/mon_groups/x/schemata", "L3:0=1"),
            ("/sys/fs/resctrl/info/schemata", "L3:0=1"),
        ]);
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[0].ways, BTreeMap::from([((3, 0), 0x7ff), ((3, 1), 0xf)]));
        assert_eq!(groups[0].bandwidth, BTreeMap::from([(0, 100), (1, 50)]));
        assert_eq!((groups[1].title(), groups[1].ways[&(3, 0)]), ("group rt".into(), 7));
    }

    #[test]
    fn rubbish_gives_a_group_without_shares() {
        for text in crate::testing::HOSTILE {
            let groups =
                read(&[("/sys/fs/resctrl/schemata", text), ("/sys/fs/resctrl/a/schemata", "L3:0=zz;=;1")]);
            assert!(groups.iter().all(|group| group.ways.is_empty() && group.bandwidth.is_empty()));
        }
    }
}
