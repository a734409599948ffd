//! By /proc, where no events can be recorded. It takes three readings before a latency is due and again after it was
//! seen. They are the counts of each interrupt and soft interrupt of a CPU, the time stolen by the hypervisor, and the
//! run time of threads last seen on the CPU. The time between the readings is longer than the latency, so the result
//! names candidates, not causes.
//!
//! A reading costs some system calls for each thread of the system. Threads are read once a second, and less often if
//! that takes more than a hundredth of the time.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fs::read_to_string;

use tactus_measure::stat::Stat;
use tactus_model::CpuSet;
use tactus_model::trace::{Candidate, CandidateKind, LONGEST_CANDIDATE, MOST_CANDIDATES, Source, Trace, cut};

use crate::arrivals::{self, Table};
use crate::sys;

/// More of them would make a reading of /proc/interrupts long.
const MOST_CPUS: usize = 64;
/// Time between two readings of counters, at least, in ns, and of threads.
const COUNTERS_NS: u64 = 50_000_000;
const THREADS_NS: u64 = 1_000_000_000;
/// A reading of threads takes no more than this part of the time.
const PART: u64 = 100;
/// Readings that are kept: latencies of a second and more have one from before.
const KEPT: usize = 16;
/// Limit of the threads, interrupts and soft interrupts reported for one latency, each.
const OF_A_KIND: usize = 4;

/// The counts, as long as it lives.
pub struct Counters {
    cpus: Vec<u32>,
    readings: RefCell<Readings>,
}

#[derive(Default)]
struct Readings {
    counters: VecDeque<Counted>,
    threads: VecDeque<Ran>,
    /// When threads are read again, in ns.
    next: u64,
}

/// The counts up to a moment.
struct Counted {
    at: u64,
    interrupts: Table,
    softirqs: Table,
    stat: Stat,
}

/// How long threads have run until a moment, in ns, and on which CPU they were last seen.
struct Ran {
    at: u64,
    threads: BTreeMap<u32, (u32, u64)>,
}

impl Counters {
    /// Begins for these CPUs.
    ///
    /// # Errors
    /// Why it cannot be known.
    pub fn begin(cpus: &CpuSet) -> Result<Self, String> {
        if cpus.len() > MOST_CPUS {
            return Err(["more than ", &MOST_CPUS.to_string(), " CPUs"].concat());
        }
        if Stat::now().cpus.is_empty() {
            return Err("/proc/stat has no CPUs".to_owned());
        }
        let counters = Self { cpus: cpus.iter().collect(), readings: RefCell::default() };
        counters.readings.borrow_mut().take(sys::now());
        Ok(counters)
    }

    /// The counted CPUs.
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// Takes the readings that are due.
    pub fn look(&self) {
        let mut readings = self.readings.borrow_mut();
        let now = sys::now();
        if readings.counters.back().is_none_or(|last| now.saturating_sub(last.at) >= COUNTERS_NS) {
            readings.take(now);
        }
    }

    /// The counts of a CPU in a time that contains this one, by its place among the CPUs.
    pub fn between(&self, place: usize, due: u64, seen: u64) -> Trace {
        let mut readings = self.readings.borrow_mut();
        if readings.counters.back().is_none_or(|last| last.at < seen) {
            readings.take(sys::now());
        }
        let cpu = self.cpus[place];
        let mut candidates = readings.threads(cpu, due, seen);
        candidates.extend(readings.counted(cpu, due, seen));
        candidates.truncate(MOST_CANDIDATES);
        Trace { source: Source::Proc, candidates, ..Trace::default() }
    }
}

impl Readings {
    fn take(&mut self, now: u64) {
        if now >= self.next {
            let ran = Ran { at: now, threads: threads() };
            push(&mut self.threads, ran);
            let took = sys::now().saturating_sub(now);
            self.next = now + THREADS_NS.max(took.saturating_mul(PART));
        }
        let read = |path| arrivals::table(&read_to_string(path).unwrap_or_default());
        let (interrupts, softirqs) = (read("/proc/interrupts"), read("/proc/softirqs"));
        let stat = Stat::now();
        push(&mut self.counters, Counted { at: stat.ns, interrupts, softirqs, stat });
    }

    /// The times of threads that were last seen on the CPU, the longest first.
    fn threads(&self, cpu: u32, due: u64, seen: u64) -> Vec<Candidate> {
        let Some((before, after)) = around(&self.threads, due, seen, |own| own.at) else { return Vec::new() };
        let within_ns = after.at - before.at;
        let own = std::process::id();
        let mut ran: Vec<(u32, u64)> = Vec::new();
        for (thread, (on, ns)) in &after.threads {
            let was = before.threads.get(thread).map_or(0, |(_, ns)| *ns);
            // One that was not there before has had all its time since.
            if *on == cpu && *ns > was {
                ran.push((*thread, ns - was));
            }
        }
        let ran = largest_first(ran).filter(|(thread, _)| !is_of(own, *thread)).take(OF_A_KIND);
        let told = |(thread, ns): (u32, u64)| {
            let comm = read_to_string(["/proc/", &thread.to_string(), "/comm"].concat()).unwrap_or_default();
            let name = [&thread.to_string(), " ", comm.trim_end()].concat();
            candidate(name, CandidateKind::Thread, None, Some(ns), within_ns)
        };
        ran.map(told).collect()
    }

    /// The kernel's counts for the CPU, the most frequent of each kind first.
    fn counted(&self, cpu: u32, due: u64, seen: u64) -> Vec<Candidate> {
        let Some((before, after)) = around(&self.counters, due, seen, |own| own.at) else {
            return Vec::new();
        };
        let within_ns = after.at - before.at;
        let stolen = |of: &Counted| of.stat.stolen(cpu).unwrap_or(0);
        let steal = stolen(after).saturating_sub(stolen(before));
        let mut told = Vec::new();
        if steal > 0 {
            told.push(candidate("steal".into(), CandidateKind::Steal, None, Some(steal), within_ns));
        }
        for (kind, after, before) in [
            (CandidateKind::Interrupt, &after.interrupts, &before.interrupts),
            (CandidateKind::SoftInterrupt, &after.softirqs, &before.softirqs),
        ] {
            let came = arrivals::since(after, before)
                .into_iter()
                .filter_map(|(name, counts)| Some((name, *counts.get(&cpu)?)))
                .collect();
            told.extend(
                largest_first(came)
                    .take(OF_A_KIND)
                    .map(|(name, times)| candidate(name, kind, Some(times), None, within_ns)),
            );
        }
        told
    }
}

/// Each with its amount, the largest first; of equal ones the one that stood first. Few are taken of many: no sort, which
/// would be more of the probe's bytes than all that is here.
fn largest_first<T>(mut all: Vec<(T, u64)>) -> impl Iterator<Item = (T, u64)> {
    std::iter::from_fn(move || {
        let (place, _) = all.iter().enumerate().rev().max_by_key(|(_, (_, amount))| *amount)?;
        Some(all.remove(place))
    })
}

fn candidate(
    mut name: String,
    kind: CandidateKind,
    times: Option<u64>,
    ns: Option<u64>,
    within_ns: u64,
) -> Candidate {
    name.retain(|c| !c.is_control());
    cut(&mut name, LONGEST_CANDIDATE);
    Candidate { name, kind, times, ns, within_ns }
}

fn push<T>(all: &mut VecDeque<T>, one: T) {
    if all.len() == KEPT {
        all.pop_front();
    }
    all.push_back(one);
}

/// The last reading before a time and the first after it, as far as there are any.
fn around<T>(all: &VecDeque<T>, due: u64, seen: u64, at: impl Fn(&T) -> u64) -> Option<(&T, &T)> {
    let before = all.iter().rev().find(|own| at(own) <= due).or(all.front())?;
    let after = all.iter().find(|own| at(own) >= seen).or(all.back())?;
    (at(before) < at(after)).then_some((before, after))
}

/// All threads.
fn threads() -> BTreeMap<u32, (u32, u64)> {
    let mut all = BTreeMap::new();
    for process in numbers("/proc") {
        let tasks = ["/proc/", &process.to_string(), "/task"].concat();
        for thread in numbers(&tasks) {
            let file = |name: &str| read_to_string([&tasks, "/", &thread.to_string(), name].concat()).ok();
            let ran = || {
                let on = last_cpu(&file("/stat")?)?;
                let ns = file("/schedstat")?.split_ascii_whitespace().next()?.parse().ok()?;
                Some((on, ns))
            };
            all.extend(ran().map(|ran| (thread, ran)));
        }
    }
    all
}

fn numbers(dir: &str) -> impl Iterator<Item = u32> {
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten();
    names.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The CPU that a thread was last on: the 39th number of its stat, and the name before may hold anything (proc_pid_stat(5)).
fn last_cpu(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(36)?.parse().ok()
}

/// Whether a thread is this process's own.
fn is_of(process: u32, thread: u32) -> bool {
    let path = ["/proc/", &process.to_string(), "/task/", &thread.to_string()].concat();
    std::fs::exists(path).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn counted(at: u64, irq: u64, net: u64, steal: u64) -> Counted {
        Counted {
            at,
            interrupts: arrivals::table(&format!(
                "   CPU0 CPU1\n 29: 5 {irq} PCI-MSI 7-edge virtio0-input\nLOC: 9 9 Local timer interrupts\n"
            )),
            softirqs: arrivals::table(&format!("   CPU0 CPU1\n NET_RX: 1 {net}\n RCU: 4 4\n")),
            stat: Stat::of(&format!("cpu1 0 0 0 0 0 0 0 {steal} 0 0\n")),
        }
    }

    #[test]
    fn what_was_counted_between_a_reading_before_and_one_after_is_told_with_its_time() {
        let mut readings = Readings::default();
        for (at, irq, net, steal) in
            [(S, 10, 0, 0), (2 * S, 11, 0, 0), (3 * S, 18, 40, 3), (4 * S, 99, 99, 9)]
        {
            readings.counters.push_back(counted(at, irq, net, steal));
        }
        let told = readings.counted(1, 2 * S + 5, 2 * S + 7);
        let words: Vec<_> =
            told.iter().map(|own| (own.name.as_str(), own.kind, own.times, own.ns, own.within_ns)).collect();
        assert_eq!(
            words,
            [
                ("steal", CandidateKind::Steal, None, Some(30_000_000), S),
                ("29 virtio0-input", CandidateKind::Interrupt, Some(7), None, S),
                ("NET_RX", CandidateKind::SoftInterrupt, Some(40), None, S),
            ]
        );
        // One that lasted over readings, and one that began before all of them.
        assert_eq!(readings.counted(1, S + 5, 3 * S - 5)[1].times, Some(8));
        assert_eq!(readings.counted(1, 0, 3 * S)[1].within_ns, 2 * S);
        assert!(readings.counted(0, 2 * S, 3 * S).is_empty() && readings.counted(7, S, 3 * S).is_empty());
        assert!(Readings::default().counted(1, 0, S).is_empty());
    }

    #[test]
    fn threads_are_candidates_where_they_were_last_seen_except_this_process() {
        let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let ran = |ns| Ran { at: ns, threads: [(own, (1, ns)), (1, (1, ns)), (2, (0, ns))].into() };
        let readings = Readings { threads: [ran(S), ran(2 * S)].into(), ..Readings::default() };
        let told = readings.threads(1, S, S + 9);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].name.starts_with("1 ") && told[0].ns == Some(S) && told[0].within_ns == S);
    }

    #[test]
    fn the_last_cpu_of_a_thread_is_read_whatever_it_is_called() {
        let stat = |name: &str| {
            let numbers: Vec<String> = (4..=52).map(|n: u32| n.to_string()).collect();
            format!("7 ({name}) R {}\n", numbers.join(" "))
        };
        for name in ["a", "a) b", "", ") R 1 2"] {
            assert_eq!(last_cpu(&stat(name)), Some(39), "{name}");
        }
        assert_eq!(last_cpu("7 (a"), None);
        let counters = Counters::begin(&CpuSet::one(0)).unwrap();
        counters.look();
        let trace = counters.between(0, sys::now(), sys::now());
        assert_eq!((trace.source, trace.events.len()), (Source::Proc, 0));
    }
}
