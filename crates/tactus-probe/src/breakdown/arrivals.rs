//! /proc/interrupts and /proc/softirqs: a row for each kind, a column for each CPU.

use std::collections::BTreeMap;

use tactus_model::outcome::breakdown::Arrivals;

/// How often each kind came, by CPU.
pub type Table = BTreeMap<String, BTreeMap<u32, u64>>;

/// Reads a table. Its head names the CPUs; rows that are no rows of CPUs (`ERR`, `MIS`) are left out.
pub fn table(text: &str) -> Table {
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default().split_ascii_whitespace();
    let cpus: Vec<u32> = head.filter_map(|word| word.strip_prefix("CPU")?.parse().ok()).collect();
    lines.filter_map(|line| row(line, &cpus)).collect()
}

fn row(line: &str, cpus: &[u32]) -> Option<(String, BTreeMap<u32, u64>)> {
    let (key, rest) = line.split_once(':')?;
    let mut words = rest.split_ascii_whitespace();
    let counts: Option<BTreeMap<u32, u64>> =
        cpus.iter().map(|cpu| Some((*cpu, words.next()?.parse().ok()?))).collect();
    let words: Vec<&str> = words.collect();
    let key = key.trim();
    // Of a device's interrupt what stands behind its controller and trigger: who handles it.
    let is_trigger = |word: &&str| {
        let word = word.to_ascii_lowercase();
        word.ends_with("edge") || word.ends_with("level")
    };
    let behind = match words.iter().position(is_trigger) {
        Some(trigger) if key.parse::<u32>().is_ok() => &words[trigger + 1..],
        _ => &words,
    };
    Some(([&[key], behind].concat().join(" "), counts?))
}

/// What came after `before`.
pub fn since(now: &Table, before: &Table) -> Table {
    let more = |name: &str, counts: &BTreeMap<u32, u64>| -> BTreeMap<u32, u64> {
        let before = |cpu: &u32| before.get(name).and_then(|counts| counts.get(cpu)).copied().unwrap_or(0);
        let more = counts.iter().map(|(cpu, count)| (*cpu, count.saturating_sub(before(cpu))));
        more.filter(|(_, count)| *count > 0).collect()
    };
    let rows = now.iter().map(|(name, counts)| (name.clone(), more(name, counts)));
    rows.filter(|(_, counts)| !counts.is_empty()).collect()
}

/// Adds what came at another time.
pub fn add(to: &mut Table, other: &Table) {
    for (name, counts) in other {
        let own = to.entry(name.clone()).or_default();
        counts.iter().for_each(|(cpu, count)| *own.entry(*cpu).or_default() += count);
    }
}

/// Those that came most often, the most frequent first.
pub fn most_frequent(table: Table, most: usize) -> Vec<Arrivals> {
    let told =
        |(name, counts): (String, BTreeMap<_, _>)| Arrivals { name, counts: counts.into_iter().collect() };
    let mut all: Vec<Arrivals> = table.into_iter().map(told).collect();
    all.sort_by_key(|arrivals| std::cmp::Reverse(arrivals.total()));
    all.truncate(most);
    all
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
