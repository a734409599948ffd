//! /proc/interrupts and /proc/softirqs: a row for each kind, a column for each CPU.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use tactus_model::outcome::breakdown::Arrivals;

/// How often each kind came, by CPU.
pub type Table = BTreeMap<String, BTreeMap<u32, u64>>;

/// Reads a table. Its head names the CPUs; rows without counts of CPUs (`ERR`, `MIS`) are left out.
pub fn table(text: &str) -> Table {
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default().split_ascii_whitespace();
    let cpus: Vec<u32> = head.filter_map(|word| word.strip_prefix("CPU")?.parse().ok()).collect();
    let mut table = Table::new();
    // Inserted one by one as in `add`: collecting a map would sort it first, with extra code.
    for (name, counts) in lines.filter_map(|line| row(line, &cpus)) {
        *table.entry(name).or_default() = counts;
    }
    table
}

fn row(line: &str, cpus: &[u32]) -> Option<(String, BTreeMap<u32, u64>)> {
    let (key, rest) = line.split_once(':')?;
    let mut words = rest.split_ascii_whitespace();
    let mut counts = BTreeMap::new();
    for cpu in cpus {
        *counts.entry(*cpu).or_default() = words.next()?.parse().ok()?;
    }
    let words: Vec<&str> = words.collect();
    let key = key.trim();
    // For a device's interrupt, the text after its controller and trigger: its handlers.
    let is_trigger = |word: &&str| {
        let word = word.to_ascii_lowercase();
        word.ends_with("edge") || word.ends_with("level")
    };
    let behind = match words.iter().position(is_trigger) {
        Some(trigger) if key.parse::<u32>().is_ok() => &words[trigger + 1..],
        _ => &words,
    };
    Some(([&[key], behind].concat().join(" "), counts))
}

/// The arrivals after `before`.
pub fn since(now: &Table, before: &Table) -> Table {
    let mut more = Table::new();
    for (name, counts) in now {
        let before = before.get(name);
        for (cpu, count) in counts {
            let before = before.and_then(|counts| counts.get(cpu)).copied().unwrap_or(0);
            if *count > before {
                *more.entry(name.clone()).or_default().entry(*cpu).or_default() = count - before;
            }
        }
    }
    more
}

/// Adds what came at another time.
pub fn add(to: &mut Table, other: &Table) {
    for (name, counts) in other {
        let own = to.entry(name.clone()).or_default();
        counts.iter().for_each(|(cpu, count)| *own.entry(*cpu).or_default() += count);
    }
}

/// The rows that came most often, the most frequent first.
pub fn most_frequent(table: Table, most: usize) -> Vec<Arrivals> {
    let told =
        |(name, counts): (String, BTreeMap<_, _>)| Arrivals { name, counts: counts.into_iter().collect() };
    largest(table.into_iter().map(told).collect(), most, Arrivals::total)
}

/// The entries with the largest numbers, the largest first; of equal ones the first of them.
pub fn largest<T>(all: Vec<T>, most: usize, number: impl Fn(&T) -> u64) -> Vec<T> {
    let mut places: BinaryHeap<_> =
        all.iter().enumerate().map(|(at, one)| (number(one), Reverse(at))).collect();
    let mut all: Vec<Option<T>> = all.into_iter().map(Some).collect();
    let next = || places.pop().and_then(|(_, Reverse(at))| all[at].take());
    std::iter::from_fn(next).take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERRUPTS: &str = "           CPU0       CPU2       
  1:          0          9   IO-APIC   1-edge      i8042
 26:          3          4  PCI-MSIX-0000:00:02.0   1-edge      virtio0-input.0, other
 27:          1          0     GICv3  27 Level     arch_timer
LOC:       1000       2000   Local timer interrupts
ERR:          0
MIS:          7
";

    #[test]
    fn an_interrupt_is_named_by_its_number_and_who_handles_it() {
        let table = table(INTERRUPTS);
        let names: Vec<&str> = table.keys().map(String::as_str).collect();
        let known = ["1 i8042", "26 virtio0-input.0, other", "27 arch_timer", "LOC Local timer interrupts"];
        assert_eq!(names, known);
        assert_eq!(table["26 virtio0-input.0, other"], BTreeMap::from([(0, 3), (2, 4)]));
    }

    #[test]
    fn soft_interrupts_have_names_alone_and_what_did_not_come_is_not_told() {
        let softirqs = |net, timer| table(&format!("      CPU0 CPU1\nTIMER: {timer} 5\nNET_RX: 1 {net}\n"));
        let came = since(&softirqs(50, 3), &softirqs(8, 3));
        assert_eq!(came, Table::from([("NET_RX".to_owned(), BTreeMap::from([(1, 42)]))]));
        let mut sum = came.clone();
        add(&mut sum, &came);
        assert_eq!(sum["NET_RX"][&1], 84);
        assert!(since(&softirqs(0, 0), &softirqs(8, 3)).is_empty());
    }

    #[test]
    fn the_most_frequent_are_told_and_nonsense_is_no_table() {
        let told = most_frequent(table(INTERRUPTS), 2);
        let names: Vec<&str> = told.iter().map(|own| own.name.as_str()).collect();
        assert_eq!(names, ["LOC Local timer interrupts", "1 i8042"]);
        for text in ["", "CPU0\n", "CPU0 CPU1\n1: 2\n", "CPU0\nx: y\n", "no head\nTIMER:\n"] {
            let table = table(text);
            assert!(table.values().all(BTreeMap::is_empty), "{text}: {table:?}");
        }
    }
}
