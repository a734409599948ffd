//! How checks put many things into one sentence.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tactus_model::CpuSet;
use tactus_model::threads::Thread;

use super::Judgement;

/// How many things a sentence names before it counts.
const NAMED: usize = 3;

/// The first of many things: `irq/24-nvme0q1, irq/25-nvme0q2, irq/26-nvme0q3 (5 more)`.
#[must_use]
pub fn few<I: IntoIterator<Item = S>, S: AsRef<str>>(things: I) -> String {
    let mut text = String::new();
    let mut more = 0usize;
    for (n, thing) in things.into_iter().enumerate() {
        if n >= NAMED {
            more += 1;
            continue;
        }
        if n > 0 {
            text += ", ";
        }
        text += thing.as_ref();
    }
    if more > 0 {
        text += &format!(" ({more} more)");
    }
    text
}

/// `1 thread`, `3 threads`.
#[must_use]
pub fn count(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

/// Adds what was read of threads: those with the same value together.
#[must_use]
pub fn read_threads<'a>(
    judgement: Judgement,
    what: &str,
    threads: impl IntoIterator<Item = &'a Thread>,
    value: impl Fn(&Thread) -> String,
) -> Judgement {
    let mut values: BTreeMap<String, Vec<&Thread>> = BTreeMap::new();
    for thread in threads {
        values.entry(value(thread)).or_default().push(thread);
    }
    values.into_iter().fold(judgement, |judgement, (value, threads)| {
        judgement.read(format!("{what} of {}", few_threads(&threads)), value)
    })
}

/// [`read_threads`] of the CPUs that threads may use. Thousands of threads share a few sets, and a set
/// is written once.
#[must_use]
pub fn read_places<'a>(judgement: Judgement, threads: impl IntoIterator<Item = &'a Thread>) -> Judgement {
    let mut at: HashMap<*const CpuSet, usize> = HashMap::new();
    let mut groups: Vec<(String, Vec<&Thread>)> = Vec::new();
    for thread in threads {
        let group = *at.entry(Arc::as_ptr(&thread.cpus)).or_insert_with(|| {
            groups.push((thread.cpus.to_string(), Vec::new()));
            groups.len() - 1
        });
        if let Some((_, members)) = groups.get_mut(group) {
            members.push(thread);
        }
    }
    groups.into_iter().fold(judgement, |judgement, (value, threads)| {
        judgement.read(format!("Cpus_allowed_list of {}", few_threads(&threads)), value)
    })
}

/// [`few`] threads with their ids.
#[must_use]
pub fn few_threads(threads: &[&Thread]) -> String {
    let named = threads.iter().take(NAMED).map(|thread| format!("{} ({})", thread.name, thread.tid));
    let names = few(named);
    match threads.len().saturating_sub(NAMED) {
        0 => names,
        more => format!("{names} ({more} more)"),
    }
}

/// Policy and priority of a thread: `FIFO 50`.
#[must_use]
pub fn scheduling(thread: &Thread) -> String {
    format!("{} {}", thread.policy.word(), thread.priority)
}

/// `CPUs 2-7`, `CPU 2`, `none`.
#[must_use]
pub fn cpus_or_none(cpus: &CpuSet) -> String {
    match cpus.len() {
        0 => "none".to_owned(),
        1 => format!("CPU {cpus}"),
        _ => format!("CPUs {cpus}"),
    }
}

/// Whether two sets have a CPU in common. Cheaper than [`CpuSet::and`]: nothing is built.
#[must_use]
pub fn meet(one: &CpuSet, other: &CpuSet) -> bool {
    let (small, large) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    small.iter().any(|cpu| large.contains(cpu))
}

/// Whether all CPUs of `one` are in `other`.
#[must_use]
pub fn within(one: &CpuSet, other: &CpuSet) -> bool {
    one.len() <= other.len() && one.iter().all(|cpu| other.contains(cpu))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_things_are_counted_after_the_third() {
        assert_eq!(few(["a"]), "a");
        assert_eq!(few(["a", "b", "c"]), "a, b, c");
        assert_eq!(few(["a", "b", "c", "d", "e"]), "a, b, c (2 more)");
        assert_eq!(few::<_, &str>([]), "");
        assert_eq!((count(1, "thread"), count(0, "thread")), ("1 thread".into(), "0 threads".into()));
    }

    #[test]
    fn sets_are_compared_without_building_one() {
        let set = |text: &str| text.parse::<CpuSet>().unwrap();
        assert!(
            meet(&set("0-3"), &set("3-5")) && !meet(&set("0-3"), &set("4")) && !meet(&set(""), &set("0"))
        );
        assert!(
            within(&set("1,2"), &set("0-3"))
                && within(&set(""), &set("1"))
                && !within(&set("3-4"), &set("0-3"))
        );
    }
}
