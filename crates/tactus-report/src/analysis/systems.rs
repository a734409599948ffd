//! What the interrupts and the timers of an environment run on, from its facts.

use std::collections::BTreeSet;

use tactus_model::bundle::Contents;
use tactus_model::document::{SystemEntry, ThreadEntry};
use tactus_model::facts::{Facts, Reading};
use tactus_model::plan::FigureKind;
use tactus_model::threads::Threads;

use super::matrix::{asked, rows};

/// An entry for every place in which the plan asks for it and whose facts are there.
#[must_use]
pub fn systems(contents: &Contents) -> Vec<SystemEntry> {
    let places: BTreeSet<String> = asked(contents, FigureKind::Threads)
        .flat_map(|figure| rows(contents, figure))
        .map(|row| row.result.environment_key())
        .collect();
    places.into_iter().filter_map(|place| Some(entry(&place, contents.facts.get(&place)?))).collect()
}

fn entry(place: &str, facts: &Facts) -> SystemEntry {
    let text = |name: &str| facts.text(name).map(str::to_owned);
    let threads = Threads::of(facts);
    let irq_threads = threads.kernel().filter(|thread| thread.name.starts_with("irq/"));
    SystemEntry {
        place: place.to_owned(),
        kernel: text("uname:release"),
        preempt_rt: facts.text("uname:version").map(|version| version.contains("PREEMPT_RT")),
        microcode: facts.field("/proc/cpuinfo", "microcode", ':').map(str::to_owned),
        clockevent: clockevent(facts),
        tsc_deadline: tsc_deadline(facts),
        sched_rt_runtime_us: text("/proc/sys/kernel/sched_rt_runtime_us"),
        threads_known: threads.known,
        irq_threads: irq_threads
            .map(|thread| ThreadEntry {
                tid: thread.tid,
                policy: thread.policy.word().to_owned(),
                priority: thread.priority,
                cpus: thread.cpus.to_string(),
                name: thread.name.clone(),
            })
            .collect(),
    }
}

/// The device whose interrupts wake the last CPU: `lapic-deadline` is the TSC-deadline timer.
fn clockevent(facts: &Facts) -> Option<String> {
    let per_cpu = facts
        .under("/sys/devices/system/clockevents/clockevent")
        .filter(|(name, _)| name.ends_with("/current_device"))
        .filter_map(|(name, _)| facts.text(name));
    let devices: BTreeSet<&str> = per_cpu.collect();
    (!devices.is_empty()).then(|| devices.into_iter().collect::<Vec<_>>().join(", "))
}

/// What the kernel's messages say of the TSC-deadline erratum.
fn tsc_deadline(facts: &Facts) -> Option<String> {
    let cut = facts.text("dmesg:start") != Some("whole");
    match facts.0.get("dmesg:tsc-deadline")? {
        Reading::Text(text) | Reading::Cut(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Reading::Text(_) | Reading::Cut(_) if cut => {
            Some("no message; the beginning of the kernel's messages is gone".into())
        }
        Reading::Text(_) | Reading::Cut(_) => Some("no message of an erratum".into()),
        Reading::Unreadable(reason) => Some(format!("unreadable: {reason}")),
        Reading::Absent => None,
    }
}
