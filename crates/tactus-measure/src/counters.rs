//! The kernel's counts of a measuring thread: read by the session thread, never by the measuring one.

use std::fs;

use tactus_model::message::ThreadCounters;

use crate::stat::Stat;

/// The processor's counts of a CPU from the beginning of the measurement to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfCpu {
    /// System management interrupts; `None`: this processor does not count them.
    pub smi: Option<u64>,
    /// Misses of the last-level cache; `None`: they were not requested, or could not be counted all the time.
    pub llc_misses: Option<u64>,
}

/// Reads the counters of a thread and of the CPU it is pinned to, without a word from that CPU. `stat` is
/// read once for all threads.
pub(crate) fn read(tid: u32, cpu: u32, stat: &Stat) -> ThreadCounters {
    let text = |name: &str| fs::read_to_string(format!("/proc/self/task/{tid}/{name}")).unwrap_or_default();
    let (minor_faults, major_faults) = faults(&text("stat"));
    let status = text("status");
    ThreadCounters {
        minor_faults,
        major_faults,
        voluntary_switches: field(&status, "voluntary_ctxt_switches:"),
        involuntary_switches: field(&status, "nonvoluntary_ctxt_switches:"),
        cpu_ns: text("schedstat").split_whitespace().next().and_then(|ns| ns.parse().ok()),
        steal_ns: stat.stolen(cpu),
        smi: None,
        llc_misses: None,
    }
}

/// The counts since `before`.
pub(crate) fn since(before: &ThreadCounters, now: &ThreadCounters) -> ThreadCounters {
    let less = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
    ThreadCounters {
        minor_faults: less(now.minor_faults, before.minor_faults),
        major_faults: less(now.major_faults, before.major_faults),
        voluntary_switches: less(now.voluntary_switches, before.voluntary_switches),
        involuntary_switches: less(now.involuntary_switches, before.involuntary_switches),
        cpu_ns: less(now.cpu_ns, before.cpu_ns),
        steal_ns: less(now.steal_ns, before.steal_ns),
        // Counted from the beginning on: see [`OfCpu`].
        smi: now.smi,
        llc_misses: now.llc_misses,
    }
}

/// minflt and majflt of a `stat` line; the name before them may hold anything, spaces and
/// parentheses included.
fn faults(stat: &str) -> (Option<u64>, Option<u64>) {
    let Some((_, rest)) = stat.rsplit_once(')') else { return (None, None) };
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let at = |index: usize| fields.get(index).and_then(|text| text.parse().ok());
    (at(7), at(9))
}

fn field(status: &str, key: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix(key))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_found_behind_any_name() {
        let line = "77 (a) b (c) S 1 77 77 0 -1 4194560 105 0 3 0 1 2 0 0 -96 0 2 0 9 1 2 3";
        assert_eq!(faults(line), (Some(105), Some(3)));
        assert_eq!(faults("cut"), (None, None));
        assert_eq!(faults("77 (a) S 1"), (None, None));
    }

    #[test]
    fn what_could_not_be_read_stays_unknown() {
        let some = ThreadCounters { cpu_ns: Some(5), ..ThreadCounters::default() };
        let later = ThreadCounters { cpu_ns: Some(9), minor_faults: Some(1), ..ThreadCounters::default() };
        let since = since(&some, &later);
        assert_eq!((since.cpu_ns, since.minor_faults, since.smi), (Some(4), None, None));
    }

    #[test]
    fn this_very_thread_has_counters() {
        let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let cpu = crate::sys::affinity().unwrap().first().unwrap();
        let counters = read(tid, cpu, &Stat::now());
        assert!(
            counters.cpu_ns.is_some()
                && counters.minor_faults.is_some()
                && counters.voluntary_switches.is_some()
        );
    }
}
