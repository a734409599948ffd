//! Counts why the virtual CPUs of a guest leave it, and for how long. A process of the probe has BPF programs at
//! KVM's tracepoints while it runs, and prints the counts when its stdin ends.

use tactus_model::CpuSet;
use tactus_model::outcome::exits::{CountedExits, ExitKind, reason, user_reason};
use tactus_system::System;
use tactus_system::guardian::Guardian;

use crate::counting::Counting;

/// One that counts.
pub struct ExitCounter(Counting);

impl ExitCounter {
    /// Begins to count the exits of these threads (virtual CPU, thread id). The programs run where the threads do.
    ///
    /// # Errors
    /// Why it cannot be known, in words.
    pub fn start(
        system: &dyn System,
        guardian: &Guardian,
        threads: &[(u32, u32)],
        housekeeping: &CpuSet,
    ) -> Result<Self, String> {
        if threads.is_empty() {
            return Err("the threads of its virtual CPUs on this machine are unknown".into());
        }
        let threads = threads.iter().map(|(cpu, thread)| format!("thread={cpu}:{thread}"));
        let words = std::iter::once("exits".to_owned()).chain(threads);
        Counting::start(system, guardian, housekeeping, words).map(Self)
    }

    /// Ends it, and says what it has counted.
    ///
    /// # Errors
    /// Why that is not known.
    pub fn finish(self) -> Result<CountedExits, String> {
        let said = self.0.finish();
        counted(&said.map_err(|error| format!("the counter could not be read to its end: {error}"))?)
    }
}

/// The counts of the process's output. A guest that runs exits: a count of zero means that the counting failed.
fn counted(said: &str) -> Result<CountedExits, String> {
    let ns = said.lines().find_map(|line| line.strip_prefix("counted ")?.parse().ok());
    let ns = ns.ok_or("the counter ended too early")?;
    let kinds: Vec<ExitKind> = said.lines().filter_map(kind).collect();
    let told = said.lines().any(|line| line == "users");
    let to_user: Option<Vec<ExitKind>> = told.then(|| said.lines().filter_map(user).collect());
    if kinds.is_empty() && to_user.as_ref().is_none_or(Vec::is_empty) {
        return Err("KVM's tracepoints reported no exit".into());
    }
    Ok(CountedExits { ns, kinds, to_user })
}

/// `user CPU REASON COUNT NS LONGEST`.
fn user(line: &str) -> Option<ExitKind> {
    let [cpu, number, count, ns, longest_ns] = numbers(line, "user ")?[..] else { return None };
    Some(ExitKind { cpu: u32::try_from(cpu).ok()?, reason: user_reason(number), count, ns, longest_ns })
}

fn numbers(line: &str, word: &str) -> Option<Vec<u64>> {
    line.strip_prefix(word)?.split_ascii_whitespace().map(|word| word.parse().ok()).collect()
}

/// `exit CPU ISA REASON COUNT NS LONGEST`.
fn kind(line: &str) -> Option<ExitKind> {
    let [cpu, isa, number, count, ns, longest_ns] = numbers(line, "exit ")?[..] else { return None };
    Some(ExitKind { cpu: u32::try_from(cpu).ok()?, reason: reason(isa, number), count, ns, longest_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_whole_or_not_at_all() {
        let hlt = kind("exit 1 1 12 50 2000000 90000").unwrap();
        let expected =
            ExitKind { cpu: 1, reason: "HLT".into(), count: 50, ns: 2_000_000, longest_ns: 90_000 };
        assert_eq!(hlt, expected);
        for wrong in [
            "",
            "exit",
            "exit 1 1 12 50 2000000",
            "exit 1 1 12 50 x 9",
            "exit 1 1 1 1 1 1 1",
            "left 1 1 1 1 1 1",
        ] {
            assert_eq!(kind(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_guest_without_any_exit_was_not_looked_at() {
        assert!(counted("counted 5\n").unwrap_err().contains("no exit"));
        assert!(counted("").unwrap_err().contains("too early"));
        assert!(counted("counted 5\nusers\n").unwrap_err().contains("no exit"));
        let told = counted("counted 5\nexit 0 2 114 7 40 9\nnonsense\n").unwrap();
        assert_eq!(told.to_user, None, "the kernel does not tell");
        assert_eq!((told.ns, told.kinds.len(), told.kinds[0].reason.as_str()), (5, 1, "cpuid"));
    }

    #[test]
    fn where_kvm_itself_carries_the_guest_out_exits_are_those_to_user_space() {
        let told = counted("counted 5\nusers\nuser 0 2 1000 90 9\nuser 0 2 1 1\n").unwrap();
        let io = ExitKind { cpu: 0, reason: "IO".into(), count: 1000, ns: 90, longest_ns: 9 };
        assert_eq!((told.kinds, told.to_user), (Vec::new(), Some(vec![io])));
    }
}
