//! The threads that had the CPU while a wake-up was late, on the real kernel of this machine.

use tactus_model::catalogue::Fault;
use tactus_model::catalogue::fault::Hog;
use tactus_model::catalogue::measure::Timer;
use tactus_model::message::{Activity, FromProbe, Job, Outlier, Unknowable, What};
use tactus_model::{CpuSet, Nanos};

use crate::common::{Probe, job, skipped, timer};

const MS: u64 = 1_000_000;

/// A timer every ms, and a hog of 20 ms above it every 200 ms.
fn disturbed(probe: &Probe, cpu: CpuSet) -> Job {
    let hog = Fault::Hog(Hog { length: Nanos(20 * MS), every: Nanos(200 * MS) });
    let activities = vec![timer(0, cpu.clone(), Timer::default()), Activity::new(1, cpu, What::Fault(hog))];
    Job { duration_ns: 2_000 * MS, blame_above: Some(2 * MS), ..job(probe, activities) }
}

fn outliers(heard: Vec<FromProbe>) -> Vec<Outlier> {
    heard.into_iter().filter_map(|m| if let FromProbe::Outlier(own) = m { Some(own) } else { None }).collect()
}

/// For how long the thread of this name had the CPU of a latency, in ns, if it was not interrupted.
fn had(outlier: &Outlier, name: &str) -> u64 {
    let trace = outlier.trace.as_ref().unwrap();
    let (mut before, mut had) = (0, 0);
    for (at, _, number) in trace.events().filter(|(_, kind, _)| kind.is_switch()) {
        if trace.threads[usize::try_from(number).unwrap()].ends_with(name) {
            had += at - before;
        }
        before = at;
    }
    had
}

#[test]
fn a_hog_is_seen_to_leave_the_cpu_at_the_end_of_the_latencies_that_it_made() {
    let mut probe = Probe::start();
    let job = disturbed(&probe, probe.cpu());
    let Some((heard, _)) = probe.perform(job) else { return };
    if let Some(why) = probe.notes.iter().find(|note| note.unknowable == Some(Unknowable::Blame)) {
        return skipped(&why.text);
    }
    let large: Vec<Outlier> =
        outliers(heard).into_iter().filter(|outlier| outlier.value_ns >= 15 * MS).collect();
    assert!(large.len() >= 5, "{large:?}");
    assert!(large.iter().all(|outlier| outlier.trace.is_some()));
    let hogged = large.iter().filter(|outlier| had(outlier, " tactus-hog") >= 10 * MS).count();
    assert!(hogged * 10 >= large.len() * 8, "{hogged} of {}: {large:?}", large.len());
    probe.quit();
}

#[test]
fn nothing_is_kept_unless_a_job_asks_and_where_the_system_is_left_as_it_is() {
    for (blame_above, no_side_effects) in [(None, false), (Some(0), true)] {
        let mut probe = Probe::start();
        let job = Job { blame_above, no_side_effects, ..disturbed(&probe, probe.cpu()) };
        let Some((heard, _)) = probe.perform(Job { duration_ns: 500 * MS, ..job }) else { return };
        let all = outliers(heard);
        assert!(!all.is_empty() && all.iter().all(|outlier| outlier.trace.is_none()));
        probe.quit();
    }
}
