//! The hardware behind the interrupts and the timers of an environment, from its facts.

use std::collections::BTreeSet;

use tactus_model::bundle::Contents;
use tactus_model::document::{Document, SystemEntry, ThreadEntry};
use tactus_model::facts::{Facts, Reading};
use tactus_model::plan::FigureKind;
use tactus_model::threads::Threads;

use super::Section;
use crate::part::{Cell, Head, Length, Part, Reader, Table};
use crate::row::{asked, rows_of, state};
use crate::units::{NONE, clean};

/// The section.
pub struct Systems;
/// Its entry.
pub static ENTRY: Systems = Systems;

impl Section for Systems {
    fn name(&self) -> &'static str {
        "systems"
    }

    fn heading(&self) -> &'static str {
        "Timers and interrupt threads"
    }

    fn about(&self) -> &'static str {
        "The clock devices of each environment, and the threads that handle its interrupts, with priorities and \
         CPUs."
    }

    fn applies(&self, contents: &Contents) -> bool {
        asked(contents, FigureKind::Threads).next().is_some()
    }

    fn parts(&self, contents: &Contents, _: Reader) -> Vec<Part> {
        let systems = systems(contents);
        let Some(figure) = asked(contents, FigureKind::Threads).next().filter(|_| !systems.is_empty()) else {
            return Vec::new();
        };
        let threads = systems.iter().filter(|system| system.threads_known).map(irq_threads);
        std::iter::once(timers(&figure.title, &systems)).chain(threads).map(Part::Table).collect()
    }

    fn fill(&self, contents: &Contents, document: &mut Document) {
        document.systems = systems(contents);
    }
}

/// An entry for every place in which the plan asks for it and whose facts are there.
#[must_use]
pub fn systems(contents: &Contents) -> Vec<SystemEntry> {
    let places: BTreeSet<String> = asked(contents, FigureKind::Threads)
        .flat_map(|figure| rows_of(contents, &figure.scenarios))
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

/// The kernel's messages about the TSC-deadline erratum.
fn tsc_deadline(facts: &Facts) -> Option<String> {
    let cut = facts.text("dmesg:start") != Some("whole");
    match facts.0.get("dmesg:tsc-deadline")? {
        Reading::Text(text) | Reading::Cut(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Reading::Text(_) | Reading::Cut(_) if cut => {
            Some("no message; the beginning of the kernel's messages is gone".into())
        }
        Reading::Text(_) | Reading::Cut(_) => Some("no message of an erratum".into()),
        Reading::Unreadable(reason) => Some(format!("read failed: {reason}")),
        Reading::Absent => None,
    }
}

fn timers(title: &str, systems: &[SystemEntry]) -> Table {
    let words = |value: &Option<String>| vec![value.as_deref().map_or_else(|| NONE.into(), clean)];
    let row = |system: &SystemEntry| {
        let rt = match system.preempt_rt {
            Some(true) => "PREEMPT_RT",
            Some(false) => "not PREEMPT_RT",
            None => NONE,
        };
        let mut kernel = words(&system.kernel);
        kernel.push(rt.to_owned());
        [
            place(&system.place),
            kernel,
            words(&system.microcode),
            words(&system.clockevent),
            words(&system.tsc_deadline),
            words(&system.sched_rt_runtime_us),
        ]
        .map(Cell::from)
        .to_vec()
    };
    Table {
        title: clean(title),
        head: Head::all(["place", "kernel", "microcode", "timer", "TSC-deadline", "RT runtime"]),
        rows: systems.iter().map(row).collect(),
        remarks: vec![
            "lapic-deadline is the TSC-deadline timer; where old microcode has an erratum, the kernel \
turns it off and prints a message. In a guest the hypervisor reports the microcode. RT runtime is \
sched_rt_runtime_us, the microseconds of a second that real-time threads may run; -1: all."
                .into(),
        ],
        length: Length::Whole,
    }
}

/// The environment, and the state of the machine below it.
fn place(place: &str) -> Vec<String> {
    match place.rsplit_once('@') {
        Some((environment, host)) => vec![clean(environment), format!("host {}", clean(state(Some(host))))],
        None => vec![clean(place)],
    }
}

fn irq_threads(system: &SystemEntry) -> Table {
    let row = |thread: &ThreadEntry| {
        [
            thread.tid.to_string(),
            thread.policy.clone(),
            thread.priority.to_string(),
            clean(&thread.cpus),
            clean(&thread.name),
        ]
        .map(Cell::from)
        .to_vec()
    };
    let none = "This kernel has no interrupt threads: interrupts are handled where they arrive.".to_owned();
    Table {
        title: format!("Interrupt threads: {}", place(&system.place).join(", ")),
        head: Head::all(["tid", "policy", "priority", "CPUs", "name"]),
        rows: system.irq_threads.iter().map(row).collect(),
        remarks: if system.irq_threads.is_empty() { vec![none] } else { Vec::new() },
        length: Length::Long,
    }
}
