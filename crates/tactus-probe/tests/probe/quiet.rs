//! The probe disturbs nothing: between two ticks it neither maps nor unmaps a page beside the measuring threads. Its
//! changes to its process for the measurement do not affect other processes.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tactus_model::catalogue::Load;
use tactus_model::catalogue::load::Cpu;
use tactus_model::catalogue::measure::Timer;
use tactus_model::message::{Activity, End, FromProbe, Job, NoteKind, ToProbe, What};
use tactus_model::rpc::{Call, Verb};

use crate::common::{PROBE, Probe, eventually, job, marked, skipped, spin, timer};

/// System calls that change an address space, or take memory from it: strace's list, by name, so that a new name in it
/// does not change the test.
const CALLS: &str =
    "mmap,munmap,mprotect,mremap,brk,madvise,mlock,mlock2,munlock,mlockall,munlockall,membarrier";

/// A file of one's own that is gone afterwards.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

/// The calls of the session's process from its first tick to the end of the measurement; `None`, with a printed reason,
/// if it cannot be traced.
fn calls_between_ticks(name: &str, make: impl Fn(&Probe) -> Job) -> Option<Vec<String>> {
    let log = Scratch(std::env::temp_dir().join(format!("tactus-quiet-{}-{name}", std::process::id())));
    let words =
        ["strace", "-f", "-ttt", "-e", &format!("trace={CALLS}"), "-o", log.0.to_str().unwrap(), PROBE];
    if Command::new("strace")
        .args(["-f", "-o", "/dev/null", "true"])
        .output()
        .map_or(true, |o| !o.status.success())
    {
        skipped("strace is not installed, or may not trace");
        return None;
    }
    let mut probe = Probe::start_as(&words, "none");
    let job = make(&probe);
    let duration = job.duration_ns;
    if let Err(refusal) = probe.prepare(job) {
        skipped(&refusal.reason);
        return None;
    }
    probe.say(&ToProbe::Go);
    // The measurement ends later than this, and with it the threads.
    let end = now() + Duration::from_nanos(duration).as_secs_f64();
    let session = probe.hello.as_ref().unwrap().pid;
    let (mut own, mut ticks) = (BTreeSet::new(), Vec::new());
    loop {
        match probe.hear() {
            FromProbe::Tick(_) => {
                ticks.push(now());
                let tasks = fs::read_dir(format!("/proc/{session}/task")).unwrap().flatten();
                own.extend(tasks.map(|task| task.file_name().into_string().unwrap()));
            }
            FromProbe::Note(note) => probe.notes.push(note),
            FromProbe::Done(done) => {
                assert_eq!(done.end, End::Complete, "{done:?}");
                break;
            }
            _ => {}
        }
    }
    assert!(!probe.notes.iter().any(|note| note.text.contains("more memory")), "{:?}", probe.notes);
    probe.quit();
    let first = ticks[0];
    assert!(
        ticks.len() > 3 && first < end,
        "{name}: {} ticks, the first at {first}, the end at {end}",
        ticks.len()
    );
    let traced = fs::read_to_string(&log.0).unwrap();
    assert!(traced.contains("mlockall("), "{name}: the preparation was traced: {traced}");
    let between = |line: &&str| {
        let mut words = line.split_whitespace();
        let thread = words.next().unwrap_or_default();
        let at = words.next().and_then(|at| at.parse::<f64>().ok()).unwrap_or(0.0);
        own.contains(thread) && at > first && at < end && line.contains('(')
    };
    Some(traced.lines().filter(between).map(str::to_owned).collect())
}

fn long(job: Job) -> Job {
    Job { duration_ns: 2_000_000_000, tick_ns: 100_000_000, ..job }
}

#[test]
fn between_two_ticks_of_a_timer_no_page_is_mapped_or_unmapped() {
    let make = |probe: &Probe| {
        long(job(probe, vec![timer(0, probe.cpu(), Timer { threads: Some(3), break_at: None })]))
    };
    let Some(calls) = calls_between_ticks("timer", make) else { return };
    assert_eq!(calls, [""; 0]);
}

#[test]
fn between_two_ticks_of_polled_gaps_no_page_is_mapped_or_unmapped() {
    let make = |probe: &Probe| long(job(probe, vec![spin(0, probe.cpu())]));
    let Some(calls) = calls_between_ticks("spin", make) else { return };
    assert_eq!(calls, [""; 0]);
}

#[test]
fn nor_where_a_narrow_channel_keeps_what_was_said_waiting() {
    let make = |probe: &Probe| {
        let activities = vec![timer(0, probe.cpu(), Timer::default()), spin(1, probe.cpu())];
        Job { budget: 4_000, duration_ns: 6_000_000_000, ..long(job(probe, activities)) }
    };
    let Some(calls) = calls_between_ticks("narrow", make) else { return };
    assert_eq!(calls, [""; 0]);
}

#[test]
fn nor_where_a_load_runs_beside() {
    let make = |probe: &Probe| {
        let load = Activity::new(1, probe.house(), What::Load(Load::Cpu(Cpu::default())));
        long(job(probe, vec![timer(0, probe.cpu(), Timer::default()), load]))
    };
    let Some(calls) = calls_between_ticks("load", make) else { return };
    assert_eq!(calls, [""; 0]);
}

/// Whether a process may have huge pages.
fn huge_pages(pid: u32) -> Option<bool> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("THP_enabled:"))?;
    Some(line.trim() == "1")
}

#[test]
fn the_probe_disables_huge_pages_while_it_measures_only_for_itself() {
    let mut probe = Probe::start_as(&[PROBE], "thp");
    let session = probe.child.id();
    if huge_pages(session) != Some(true) {
        return skipped("this kernel does not say, or somebody has forbidden huge pages");
    }
    // The second round shows traces of the first one.
    for round in 1..=2 {
        let load = Activity::new(1, probe.house(), What::Load(Load::Cpu(Cpu::default())));
        let job = job(&probe, vec![timer(0, probe.cpu(), Timer::default()), load]);
        if let Err(refusal) = probe.prepare(job) {
            return skipped(&refusal.reason);
        }
        assert_eq!(huge_pages(session), Some(false), "round {round}");
        let beside: Vec<u32> = marked("thp").into_iter().filter(|pid| *pid != session).collect();
        assert!(!beside.is_empty());
        assert!(beside.iter().all(|pid| huge_pages(*pid) == Some(true)), "round {round}: {beside:?}");
        // A program that the host side starts meanwhile.
        let words = ["sleep", "60"].map(str::to_owned).to_vec();
        probe.say(&ToProbe::Call(Call { id: round, verb: Verb::Spawn, words, ..Call::default() }));
        let child = loop {
            if let FromProbe::Answer(answer) = probe.hear() {
                break u32::try_from(answer.number).unwrap();
            }
        };
        let is_sleep =
            || fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|name| name.trim() == "sleep");
        assert!(eventually(is_sleep));
        assert_eq!(huge_pages(child), Some(true), "round {round}");
        probe.say(&ToProbe::Call(Call { id: 10 + round, verb: Verb::Kill, child: round, ..Call::default() }));
        probe.say(&ToProbe::Go);
        let (_, done) = probe.finish();
        assert_eq!(done.end, End::Complete);
        // The job's end comes just after its last word.
        assert!(eventually(|| huge_pages(session) == Some(true)), "round {round}");
    }
    let said = |note: &&tactus_model::message::Note| {
        note.kind == NoteKind::SideEffect && note.text.contains("transparent huge pages")
    };
    assert_eq!(probe.notes.iter().filter(said).count(), 2, "{:?}", probe.notes);
}

#[test]
fn without_side_effects_nothing_of_the_processor_is_asked() {
    let mut probe = Probe::start();
    let activity = timer(0, probe.cpu(), Timer::default());
    let job = Job { no_side_effects: true, cache_misses: true, ..job(&probe, vec![activity]) };
    let Some((heard, _)) = probe.perform(job) else { return };
    for message in &heard {
        if let FromProbe::Tick(tick) = message {
            assert_eq!((tick.thread.smi, tick.thread.llc_misses), (None, None));
        }
    }
    let about = |note: &&tactus_model::message::Note| {
        ["cache", "management", "cpu_dma_latency"].iter().any(|word| note.text.contains(word))
    };
    assert_eq!(probe.notes.iter().find(about), None);
}

#[test]
fn cache_misses_are_counted_only_where_they_are_asked_for() {
    let mut probe = Probe::start();
    for cache_misses in [false, true] {
        let activity = timer(0, probe.cpu(), Timer::default());
        let job = Job { cache_misses, ..job(&probe, vec![activity]) };
        probe.notes.clear();
        let Some((heard, _)) = probe.perform(job) else { return };
        let counted = heard
            .iter()
            .any(|message| matches!(message, FromProbe::Tick(tick) if tick.thread.llc_misses.is_some()));
        let said = probe.notes.iter().any(|note| note.text.contains("the last-level cache are counted"));
        let refused = probe.notes.iter().any(|note| note.text.contains("cannot be counted"));
        assert_eq!(said, cache_misses, "{:?}", probe.notes);
        assert!(cache_misses || !refused && !counted);
        assert!(!(counted && refused), "{:?}", probe.notes);
    }
}
