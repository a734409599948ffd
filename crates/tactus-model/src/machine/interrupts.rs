//! The interrupts of a system, from facts: their devices and handlers, the CPUs where they may arrive and where they
//! did.
//!
//! `/proc/interrupts` is kept whole if it fits into a reading. Otherwise, on a large machine, the probe keeps
//! `interrupts:0`, `interrupts:1` and so on, with a line for each row. Its fields are separated by tabs: `name`,
//! `cpu:count` of the CPUs that had any (separated by blanks), and the rest of the row.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::cpus::{CpuSet, MAX_CPU};
use crate::facts::Facts;

/// A device's interrupt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupt {
    /// Its Linux number.
    pub irq: u32,
    /// The controller: `IO-APIC`, `PCI-MSIX-0000:00:02.0`, `GICv3`; empty when `/proc/interrupts` has
    /// no row for it.
    pub chip: String,
    /// Names of its handlers; empty: the interrupt is not used.
    pub actions: Vec<String>,
    /// Number of its arrivals, by CPU.
    pub counts: BTreeMap<u32, u64>,
    /// The CPUs where it is allowed to arrive (`/proc/irq/N/smp_affinity_list`).
    pub affinity: Option<Arc<CpuSet>>,
    /// The CPUs where it does arrive (`/proc/irq/N/effective_affinity_list`).
    pub effective: Option<Arc<CpuSet>>,
}

impl Interrupt {
    /// The CPUs where it arrives, as far as known: the effective affinity, else the allowed one.
    #[must_use]
    pub fn arrives(&self) -> Option<&CpuSet> {
        self.effective.as_deref().filter(|set| !set.is_empty()).or(self.affinity.as_deref())
    }

    /// Whether it is a message from a PCI device (MSI or MSI-X).
    #[must_use]
    pub fn is_message(&self) -> bool {
        self.chip.contains("MSI")
    }
}

/// A row of `/proc/interrupts` without a device: `LOC`, `NMI`, `CAL`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Internal {
    /// Number of its arrivals, by CPU.
    pub counts: BTreeMap<u32, u64>,
    /// The kernel's name for it: `Local timer interrupts`.
    pub name: String,
}

/// All interrupts of a system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupts {
    /// The devices', by rising number.
    pub list: Vec<Interrupt>,
    /// The processor's and the kernel's own, by their short names.
    pub internal: BTreeMap<String, Internal>,
    /// The CPUs of new interrupts (`/proc/irq/default_smp_affinity`).
    pub default: Option<CpuSet>,
    /// Whether `/proc/interrupts` could be read, wholly or in part.
    pub known: bool,
}

impl Interrupts {
    /// Reads them out of facts. Damaged lines are left out.
    #[must_use]
    pub fn of(facts: &Facts) -> Self {
        let mut rows: BTreeMap<u32, Interrupt> = BTreeMap::new();
        let mut all = Self {
            default: facts.text("/proc/irq/default_smp_affinity").and_then(|t| CpuSet::from_mask(t).ok()),
            ..Self::default()
        };
        let mut parts = facts.parts("interrupts").peekable();
        if parts.peek().is_some() {
            all.known = true;
            parts.flat_map(str::lines).filter_map(compact_row).for_each(|row| all.take(row, &mut rows));
        } else if let Some(text) = facts.text("/proc/interrupts") {
            all.known = true;
            let mut lines = text.lines();
            let cpus: Vec<u32> =
                lines.next().unwrap_or_default().split_whitespace().filter_map(header).collect();
            lines.filter_map(|line| row(line, &cpus)).for_each(|row| all.take(row, &mut rows));
        }
        let mut sets = HashMap::new();
        for (name, _) in facts.under("/proc/irq/") {
            let Some((irq, file)) = name["/proc/irq/".len()..].split_once('/') else { continue };
            let Ok(irq) = irq.parse::<u32>() else { continue };
            let Some(text) = facts.text(name) else { continue };
            let mut set =
                || sets.entry(text).or_insert_with(|| text.parse::<CpuSet>().ok().map(Arc::new)).clone();
            match file {
                "smp_affinity_list" => rows.entry(irq).or_default().affinity = set(),
                "effective_affinity_list" => rows.entry(irq).or_default().effective = set(),
                _ => {}
            }
        }
        all.list = rows.into_iter().map(|(irq, row)| Interrupt { irq, ..row }).collect();
        all
    }

    /// The interrupts that a driver handles.
    pub fn active(&self) -> impl Iterator<Item = &Interrupt> {
        self.list.iter().filter(|interrupt| !interrupt.actions.is_empty())
    }

    /// The interrupt with a number.
    #[must_use]
    pub fn get(&self, irq: u32) -> Option<&Interrupt> {
        let at = self.list.binary_search_by_key(&irq, |interrupt| interrupt.irq).ok()?;
        self.list.get(at)
    }

    fn take(&mut self, row: Row, rows: &mut BTreeMap<u32, Interrupt>) {
        let Row { name, counts, rest } = row;
        match name.parse::<u32>() {
            Ok(irq) => {
                let (chip, actions) = describe(rest);
                let of = rows.entry(irq).or_default();
                (of.chip, of.actions, of.counts) = (chip.to_owned(), actions, counts);
            }
            Err(_) => {
                self.internal.insert(name.to_owned(), Internal { counts, name: rest.trim().to_owned() });
            }
        }
    }
}

struct Row<'a> {
    name: &'a str,
    counts: BTreeMap<u32, u64>,
    rest: &'a str,
}

/// `CPU12` of the first line.
fn header(word: &str) -> Option<u32> {
    word.strip_prefix("CPU")?.parse().ok().filter(|cpu| *cpu <= MAX_CPU)
}

/// ` 26:          0         15  IO-APIC   4-edge      ttyS0`
fn row<'a>(line: &'a str, cpus: &[u32]) -> Option<Row<'a>> {
    let (name, mut rest) = line.split_once(':')?;
    let mut counts = BTreeMap::new();
    // `ERR` and `MIS` have one count, and not for a CPU: it is counted for the first.
    for cpu in cpus {
        let trimmed = rest.trim_start();
        let end = trimmed.find(char::is_whitespace).unwrap_or(trimmed.len());
        let Ok(count) = trimmed[..end].parse::<u64>() else { break };
        if count > 0 {
            counts.insert(*cpu, count);
        }
        rest = &trimmed[end..];
    }
    Some(Row { name: name.trim(), counts, rest })
}

fn compact_row(line: &str) -> Option<Row<'_>> {
    let mut fields = line.splitn(3, '\t');
    let (name, counts, rest) = (fields.next()?.trim(), fields.next()?, fields.next()?);
    let counts = counts
        .split(' ')
        .filter_map(|pair| {
            let (cpu, count) = pair.split_once(':')?;
            Some((cpu.parse().ok().filter(|cpu| *cpu <= MAX_CPU)?, count.parse().ok()?))
        })
        .collect();
    (!name.is_empty()).then_some(Row { name, counts, rest })
}

/// Chip and handlers of `IO-APIC   4-edge      ttyS0` and `GICv3  27 Level     arch_timer`
/// (`show_interrupts` in kernel/irq/proc.c): chip, number in its domain, kind of trigger, handlers with
/// `, ` between them.
fn describe(rest: &str) -> (&str, Vec<String>) {
    let rest = rest.trim();
    let (chip, mut rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    for kind in [is_hardware_number, is_trigger] {
        rest = rest.trim_start();
        let (word, more) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if kind(word) {
            rest = more;
        }
    }
    let actions =
        rest.split(", ").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    (chip, actions)
}

/// `4`, `4-edge`, `524288-edge`.
fn is_hardware_number(word: &str) -> bool {
    let digits = word.split('-').next().unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// `Edge`, `Level`, `-edge`, `-fasteoi`.
fn is_trigger(word: &str) -> bool {
    matches!(word, "Edge" | "Level" | "None") || word.starts_with('-')
}

/// A line of the `interrupts:*` readings for each row of `/proc/interrupts`.
pub fn compact(text: &str) -> impl Iterator<Item = String> {
    let mut lines = text.lines();
    let cpus: Vec<u32> = lines.next().unwrap_or_default().split_whitespace().filter_map(header).collect();
    lines.filter_map(move |line| {
        let Row { name, counts, rest } = row(line, &cpus)?;
        let mut compact = format!("{}\t", name.replace('\t', " "));
        for (n, (cpu, count)) in counts.iter().enumerate() {
            let blank = if n == 0 { "" } else { " " };
            compact.push_str(&format!("{blank}{cpu}:{count}"));
        }
        compact.push('\t');
        compact.push_str(&rest.trim().replace('\t', " "));
        Some(compact)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Rows of a virtual machine and of an arm64 board.
    const TEXT: &str = "           CPU0       CPU2       
  8:          1          0  IO-APIC   8-edge      rtc0
 26:          0         15  IO-APIC   4-fasteoi   ttyS0, ahci[0000:00:1f.2]
 28:          7          0 PCI-MSIX-0000:00:01.0   0-edge      virtio0-config
 11:       1215       1182     GICv3  27 Level     arch_timer
 61:          0          0  mxc-gpio   3 Edge      gpio key, with comma
 99:          0          0  dummy
NMI:          0          0   Non-maskable interrupts
LOC:      76958      82962   Local timer interrupts
ERR:          3
";

    fn facts(text: &str) -> Facts {
        let mut facts = Facts::default();
        facts.keep("/proc/interrupts", text);
        facts.keep("/proc/irq/26/smp_affinity_list", "0-2");
        facts.keep("/proc/irq/26/effective_affinity_list", "2");
        facts.keep("/proc/irq/44/smp_affinity_list", "0");
        facts.keep("/proc/irq/default_smp_affinity", "5");
        facts
    }

    #[test]
    fn rows_tell_chip_and_handlers() {
        let all = Interrupts::of(&facts(TEXT));
        let uart = all.get(26).unwrap();
        assert_eq!(uart.chip, "IO-APIC");
        assert_eq!(uart.actions, ["ttyS0", "ahci[0000:00:1f.2]"]);
        assert_eq!(uart.counts, BTreeMap::from([(2, 15)]));
        assert_eq!(
            (uart.affinity.as_ref().unwrap().len(), uart.arrives().unwrap().to_string()),
            (3, "2".into())
        );
        assert!(all.get(28).unwrap().is_message() && !uart.is_message());
        assert_eq!(all.get(11).unwrap().actions, ["arch_timer"]);
        assert_eq!(all.get(61).unwrap().actions, ["gpio key", "with comma"]);
        assert!(all.get(99).unwrap().actions.is_empty());
        assert_eq!(all.get(44).unwrap().arrives(), Some(&CpuSet::one(0)));
        assert_eq!(all.internal["LOC"].counts[&2], 82962);
        assert_eq!(all.internal["LOC"].name, "Local timer interrupts");
        assert_eq!(all.internal["ERR"].counts[&0], 3);
        assert_eq!(all.default.as_ref().unwrap().to_string(), "0,2");
        assert_eq!(all.active().count(), 5);
    }

    #[test]
    fn compact_lines_say_the_same() {
        let whole = Interrupts::of(&facts(TEXT));
        let mut facts = facts("CPU0 CPU1\n  1: 1");
        facts.keep_parts("interrupts", compact(TEXT));
        assert_eq!(Interrupts::of(&facts), whole);
    }

    #[test]
    fn facts_without_interrupts_are_not_a_system_without_interrupts() {
        assert!(!Interrupts::of(&Facts::default()).known);
        assert!(Interrupts::of(&facts("")).known);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(
            text in "(CPU[0-9]{0,6}|[0-9]{0,22}:?|\n|\t| |é|, |-edge|[A-Z]{3}:){0,60}",
            name in "/proc/irq/[0-9a-z/]{0,12}(/smp_affinity_list)?",
        ) {
            let mut facts = facts(&text);
            facts.keep(name, text.clone());
            let _ = Interrupts::of(&facts);
            facts.keep_parts("interrupts", text.lines().map(|line| line.replace(' ', "\t")));
            let _ = Interrupts::of(&facts);
            for line in compact(&text) {
                prop_assert!(!line.contains('\n'));
            }
        }
    }
}
