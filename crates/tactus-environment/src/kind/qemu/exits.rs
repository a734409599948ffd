//! How often the virtual CPUs of a guest left it: KVM's own statistics, by way of QEMU's monitor (`query-stats`, since
//! QEMU 7.1). They count kinds of exits; of time they know only that of halts. Pure.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use tactus_model::Nanos;

/// The command.
pub const COMMAND: &str = "query-stats";
/// All exits together.
const TOTAL: &str = "exits";
/// Kinds that are told of a virtual CPU.
const MOST: usize = 12;
/// The longest name of one: the answer comes from a process that the guest may have taken over.
const LONGEST: usize = 32;
/// Time of a virtual CPU without work: it polls, and then sleeps.
const HALTED: [&str; 3] = ["halt-poll-success-ns", "halt-poll-fail-ns", "halt-wait-ns"];

/// The counters of each virtual CPU, in QEMU's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exits(Vec<BTreeMap<String, u64>>);

/// The arguments of the command.
pub fn arguments() -> Value {
    json!({"target": "vcpu", "providers": [{"provider": "kvm"}]})
}

impl Exits {
    /// The counters of the first `vcpus` virtual CPUs in an answer; `None` without any, as when KVM does not count.
    pub fn of(answer: &Value, vcpus: usize) -> Option<Self> {
        #[derive(Deserialize)]
        struct Cpu {
            provider: String,
            stats: Vec<Stat>,
        }
        // Values are numbers, truths, or lists (histograms).
        #[derive(Deserialize)]
        struct Stat {
            name: String,
            value: Value,
        }
        let cpus = answer.as_array()?.iter().filter_map(|cpu| Cpu::deserialize(cpu).ok());
        let cpus = cpus.filter(|cpu| cpu.provider == "kvm").take(vcpus);
        let counters = |cpu: Cpu| -> BTreeMap<String, u64> {
            let known = cpu.stats.into_iter().filter_map(|stat| {
                // The kernel writes names with `_`.
                let name = stat.name.replace('_', "-");
                (is_told(&name) && name.len() <= LONGEST).then_some((name, stat.value.as_u64()?))
            });
            known.collect()
        };
        let cpus: Vec<_> = cpus.map(counters).collect();
        (!cpus.is_empty()).then_some(Self(cpus))
    }

    /// The exits since, a sentence for each virtual CPU; the kinds by their number.
    pub fn since(&self, before: &Self) -> Vec<String> {
        let both = self.0.iter().zip(&before.0).enumerate();
        both.map(|(cpu, (now, before))| sentence(cpu, now, before)).collect()
    }
}

/// Whether a counter is one of exits, or of time that was spent in one.
fn is_told(name: &str) -> bool {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    plain && (name.contains("exit") || HALTED.contains(&name))
}

fn sentence(cpu: usize, now: &BTreeMap<String, u64>, before: &BTreeMap<String, u64>) -> String {
    let since = |name: &str| Some(now.get(name)?.saturating_sub(*before.get(name)?));
    let Some(total) = since(TOTAL) else { return format!("KVM does not count the exits of vCPU {cpu}") };
    let kinds = now.keys().filter(|name| *name != TOTAL && !HALTED.contains(&name.as_str()));
    let mut kinds: Vec<(&str, u64)> =
        kinds.filter_map(|name| Some((name.as_str(), since(name).filter(|count| *count > 0)?))).collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let short = |name: &str| {
        name.trim_end_matches("-stat").trim_end_matches("-exits").trim_end_matches("-exit").to_owned()
    };
    let kinds: Vec<String> =
        kinds.into_iter().take(MOST).map(|(name, count)| format!("{} {count}", short(name))).collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(": {}", kinds.join(", ")) };
    let halted = HALTED.iter().try_fold(0_u64, |all, name| Some(all.saturating_add(since(name)?)));
    let halted = halted.map_or_else(String::new, |ns| format!("; it was idle (halted) for {}", Nanos(ns)));
    format!("KVM counted {total} exits of vCPU {cpu} during the measurement{kinds}{halted}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer in the form of QEMU's documentation (qapi/stats.json), with counters of Linux's KVM on x86.
    const ANSWER: &str = include_str!("../../../tests/fixtures/qemu/query-stats.json");

    fn answer() -> Value {
        serde_json::from_str(ANSWER).unwrap()
    }

    fn with(answer: &Value, name: &str, value: u64) -> Value {
        let mut answer = answer.clone();
        for stat in answer[1]["stats"].as_array_mut().unwrap() {
            if stat["name"] == name {
                stat["value"] = value.into();
            }
        }
        answer
    }

    /// Where the guest has taken QEMU over, it answers.
    #[test]
    fn the_largest_numbers_there_are_end_in_a_sentence() {
        let (before, mut now) = (answer(), answer());
        for name in HALTED {
            now = with(&now, name, u64::MAX);
        }
        let of = |answer: &Value| Exits::of(answer, 2).unwrap();
        let said = of(&now).since(&of(&before)).concat();
        assert!(said.contains("it was idle (halted) for"), "{said}");
    }

    #[test]
    fn what_was_counted_between_is_told_for_each_virtual_cpu_the_most_frequent_kind_first() {
        let before = Exits::of(&answer(), 2).unwrap();
        let later = with(&with(&with(&answer(), "exits", 10_100), "halt-exits", 660), "io-exits", 1_290);
        let later = with(&later, "halt-wait-ns", 5_002_000_000);
        let said = Exits::of(&later, 2).unwrap().since(&before);
        assert_eq!(
            said[0],
            "KVM counted 0 exits of vCPU 0 during the measurement; it was idle (halted) for 0ns"
        );
        assert_eq!(
            said[1],
            "KVM counted 100 exits of vCPU 1 during the measurement: halt 60, io 40; it was idle (halted) \
             for 2ms"
        );
    }

    #[test]
    fn the_exits_of_an_emulated_guest_are_unknown() {
        // The answer of QEMU 7.2 for a guest of TCG.
        assert_eq!(Exits::of(&json!([]), 2), None);
        assert_eq!(Exits::of(&json!([{"provider": "tcg", "stats": []}]), 2), None);
        assert_eq!(Exits::of(&json!({"return": 1}), 2), None);
    }

    #[test]
    fn a_qemu_that_has_been_taken_over_tells_of_no_more_than_there_is() {
        let stats: Vec<Value> =
            (0..1000).map(|n| json!({"name": format!("x{n}-exits"), "value": n})).collect();
        let strange = json!({"name": "a\u{1b}[2Jexits", "value": 1});
        let long = json!({"name": "exit".repeat(100), "value": 1});
        let stats = [stats, vec![strange, long]].concat();
        let cpu = json!({"provider": "kvm", "stats": stats});
        let exits = Exits::of(&json!([cpu, cpu, cpu]), 2).unwrap();
        assert_eq!(exits.0.len(), 2);
        assert_eq!(exits.0[0].len(), 1000);
        assert_eq!(exits.since(&exits)[0], "KVM does not count the exits of vCPU 0");
        let total = json!([{"provider": "kvm", "stats": [{"name": "exits", "value": u64::MAX}]}]);
        let total = Exits::of(&total, 1).unwrap();
        assert_eq!(total.since(&total)[0], "KVM counted 0 exits of vCPU 0 during the measurement");
    }
}
