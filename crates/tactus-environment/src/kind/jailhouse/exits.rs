//! How often CPUs of a cell entered the hypervisor.
//!
//! The counters are read one after the other while they keep counting, so that a total and the sum of its kinds
//! differ by the exits in between. They begin anew when a CPU is given to a cell. Some kinds have no counter (on
//! arm64 the interrupts that a CPU sends to others, SGIs): only the total contains them.

use std::collections::BTreeMap;
use std::path::Path;

use tactus_system::System;

use super::cells::SYSFS;

const TOTAL: &str = "total";

/// The counters of a cell, by CPU of the machine and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exits(BTreeMap<u32, BTreeMap<String, u64>>);

impl Exits {
    /// Reads the counters of every CPU of a cell.
    pub fn read(cell: u32, system: &dyn System) -> Self {
        let dir = format!("{SYSFS}/cells/{cell}/statistics");
        let entries = system.list(Path::new(&dir)).unwrap_or_default();
        let mut cpus = BTreeMap::new();
        for entry in entries {
            let name = entry.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let Some(cpu) = name.strip_prefix("cpu").and_then(|number| number.parse().ok()) else { continue };
            let counters = system.list(&entry).unwrap_or_default();
            let counters = counters.iter().filter_map(|path| {
                let kind = path.file_name()?.to_str()?.strip_prefix("vmexits_")?.to_owned();
                Some((kind, system.text(&path.to_string_lossy())?.trim().parse().ok()?))
            });
            cpus.insert(cpu, counters.collect());
        }
        Self(cpus)
    }

    /// The exits since, a sentence for each CPU; the kinds by their number.
    pub fn since(&self, before: &Self) -> Vec<String> {
        self.0.iter().map(|(cpu, now)| sentence(*cpu, now, before.0.get(cpu))).collect()
    }
}

fn sentence(cpu: u32, now: &BTreeMap<String, u64>, before: Option<&BTreeMap<String, u64>>) -> String {
    let Some(before) = before else {
        return format!("CPU {cpu} joined the cell during the measurement: its exits are unknown");
    };
    let mut counted = Vec::new();
    for (kind, value) in now {
        match value.checked_sub(before.get(kind).copied().unwrap_or(0)) {
            Some(count) => counted.push((kind, count)),
            None => {
                return format!(
                    "the counters of CPU {cpu} restarted during the measurement: its exits are unknown"
                );
            }
        }
    }
    let total = counted.iter().find(|(kind, _)| *kind == TOTAL).map(|(_, count)| *count);
    counted.retain(|(kind, count)| *kind != TOTAL && *count > 0);
    counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let sum = counted.iter().fold(0u64, |sum, (_, count)| sum.saturating_add(*count));
    let mut kinds: Vec<String> = counted.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    if let Some(rest) = total.and_then(|total| total.checked_sub(sum)).filter(|rest| *rest > 0 && sum > 0) {
        kinds.push(format!("of unknown kind {rest}"));
    }
    match (total, kinds.is_empty()) {
        (None, _) => format!("CPU {cpu} has no counter of its exits"),
        (Some(total), true) => {
            format!("CPU {cpu} entered the hypervisor {total} times during the measurement")
        }
        (Some(total), false) => {
            format!(
                "CPU {cpu} entered the hypervisor {total} times during the measurement: {}",
                kinds.join(", ")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;

    /// The sysfs listing of a transcript (`./1/statistics/cpu1/vmexits_total: 53`) as a machine.
    fn recorded() -> Memory {
        let transcript = include_str!("../../../tests/fixtures/jailhouse/root-cell-shell.txt");
        let lines = transcript.lines().filter_map(|line| line.strip_prefix("./")?.split_once(": "));
        lines.fold(Memory::new(), |machine, (path, value)| {
            machine.file(format!("{SYSFS}/cells/{path}"), value)
        })
    }

    #[test]
    fn what_was_counted_between_is_told_for_each_cpu() {
        let machine = recorded();
        let before = Exits::read(0, &machine);
        assert_eq!(before.0.keys().copied().collect::<Vec<_>>(), [0, 2, 3]);
        let machine = machine
            .file(format!("{SYSFS}/cells/0/statistics/cpu2/vmexits_total"), "1180\n")
            .file(format!("{SYSFS}/cells/0/statistics/cpu2/vmexits_virt_irq"), "648\n")
            .file(format!("{SYSFS}/cells/0/statistics/cpu2/vmexits_virt_sgi"), "246\n")
            .file(format!("{SYSFS}/cells/0/statistics/cpu3/vmexits_total"), "2\n");
        let said = Exits::read(0, &machine).since(&before);
        assert_eq!(said[0], "CPU 0 entered the hypervisor 0 times during the measurement");
        assert_eq!(
            said[1],
            "CPU 2 entered the hypervisor 14 times during the measurement: virt_irq 10, virt_sgi 3, of unknown kind 1"
        );
        assert!(said[2].starts_with("the counters of CPU 3 restarted"), "{}", said[2]);
    }

    #[test]
    fn a_cpu_that_came_later_and_one_without_counters_are_told() {
        let machine = recorded();
        let now = Exits::read(1, &machine);
        assert!(now.since(&Exits::default())[0].contains("joined the cell"));
        let none = Exits([(4, BTreeMap::new())].into());
        assert_eq!(none.since(&none), ["CPU 4 has no counter of its exits"]);
        assert_eq!(Exits::read(7, &machine), Exits::default());
    }
}
