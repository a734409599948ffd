//! Owners of the CPU during the largest latencies.

use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::document::{BlameEntry, BlamedLatency, Owner};
use tactus_model::number::float;
use tactus_model::trace::{Candidate, CandidateKind, Source};

use super::Section;
use crate::figure::{Figure, Kind, Shade, Timeline, timelines};
use crate::part::{Cell, Head, Part, Reader, Table};
use crate::row::{blame, owner_name, title, worst_runs};
use crate::units::{clean, latency_up, listed};

/// The section.
pub struct Blame;
/// Its entry.
pub static ENTRY: Blame = Blame;

/// Latencies that are shown of a row.
const SHOWN: usize = 10;
/// Parts that are named of each.
const PARTS: usize = 3;
/// Latencies with a line each.
const LINES: usize = 3;
/// Owners of a CPU, as they are drawn; unaccounted time is not drawn.
const KINDS: [(Owner, Kind); 10] = [
    (Owner::Thread, Kind { name: "thread", colour: 0, shade: Shade::Dark }),
    (Owner::NotPreempted, Kind { name: "not preempted", colour: 0, shade: Shade::Light }),
    (Owner::InterruptsOff, Kind { name: "interrupts off", colour: 1, shade: Shade::Dark }),
    (Owner::Interrupt, Kind { name: "irq", colour: 2, shade: Shade::Dark }),
    (Owner::Vector, Kind { name: "own irq", colour: 2, shade: Shade::Light }),
    (Owner::Timer, Kind { name: "timer", colour: 2, shade: Shade::Middle }),
    (Owner::SoftInterrupt, Kind { name: "softirq", colour: 3, shade: Shade::Dark }),
    (Owner::Idle, Kind { name: "idle", colour: 1, shade: Shade::Light }),
    (Owner::Blocked, Kind { name: "blocked", colour: 1, shade: Shade::Middle }),
    (Owner::Itself, Kind { name: "itself", colour: 3, shade: Shade::Light }),
];

impl Section for Blame {
    fn name(&self) -> &'static str {
        "blame"
    }

    fn heading(&self) -> &'static str {
        "Who had the CPU"
    }

    fn about(&self) -> &'static str {
        "The thread or interrupt that had the CPU from the moment a wake-up was due until it was seen, by \
         the kernel's records. A gap is unaccounted time. Interrupts off: the timer's interrupt did not come \
         while that thread ran. Timer: the function of a timer, until the next one or the end of its \
         interrupt. Not preempted: the interrupt came, and the thread did not give up the CPU in time. \
         Blocked: the measured program slept or waited. Idle: it could have run. A latency is blamed on the \
         thread or interrupt that had at least half of the time beyond the median. A latency up to twice the \
         median and 10 us is ordinary and has no cause. In a virtual machine the hypervisor may have had the \
         CPU instead: then the cause is \"kernel or hypervisor\" or \"idle or hypervisor\". Without BPF \
         tracefs keeps the same events, to the microsecond. Without both, counters of /proc name candidates \
         and no cause."
    }

    fn draws(&self) -> bool {
        true
    }

    fn folded(&self, contents: &Contents, _: &[Part]) -> Option<String> {
        Some(listed(
            &told(contents).map(|(row, _)| clean(&title(contents, &row.result))).collect::<Vec<_>>(),
            ", ",
        ))
    }

    fn applies(&self, contents: &Contents) -> bool {
        told(contents).next().is_some()
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        let mut parts = Vec::new();
        for (row, entry) in told(contents) {
            let name = clean(&title(contents, &row.result));
            if let Some(why) = &entry.unknowable {
                parts.push(Part::Remark(format!("{name}: {}.", clean(why))));
                continue;
            }
            parts.push(Part::Remark(format!("{name}: {}.", causes(&entry))));
            match reader {
                Reader::Terminal => {}
                Reader::Markdown => parts.push(Part::Table(table(&entry))),
                Reader::Page => {
                    if entry.source != Some(Source::Proc) {
                        parts.push(Part::Figure(figure(&name, &entry)));
                    }
                    parts.push(Part::Table(table(&entry)));
                }
            }
        }
        parts
    }
}

/// The rows of which something was kept; of repeated runs the worst.
fn told(contents: &Contents) -> impl Iterator<Item = (&Row, BlameEntry)> {
    let rows = worst_runs(contents).into_iter();
    rows.filter_map(move |row| Some((row, blame(contents, &row.result)?)))
}

/// The same of one row as lines: the causes of its largest latencies, and the owners of the CPU in the first
/// few. Empty if blame was not asked for; one line with the reason if it is unknown.
#[must_use]
pub fn lines(contents: &Contents, row: &Row) -> Vec<String> {
    let Some(entry) = blame(contents, &row.result) else { return Vec::new() };
    if let Some(why) = &entry.unknowable {
        return vec![clean(why)];
    }
    let one = |latency: &BlamedLatency| {
        let at = float(latency.at_ns) / 1e9;
        format!("{} at {at:.3} s: {}: {}", latency_up(latency.value_ns), clean(&latency.cause), had(latency))
    };
    let first = entry.latencies.iter().take(LINES).map(one);
    std::iter::once(causes(&entry)).chain(first).collect()
}

/// The causes of the largest latencies of a row, in a phrase; `None` if blame was not asked for, or is
/// unknown.
#[must_use]
pub fn causes_of(contents: &Contents, result: &RowResult) -> Option<String> {
    blame(contents, result).filter(|entry| entry.unknowable.is_none()).map(|entry| causes(&entry))
}

/// `of the 20 largest: 6 ksoftirqd/1, 3 irq 29, 2 not known`.
fn causes(entry: &BlameEntry) -> String {
    let each: Vec<String> =
        entry.causes.iter().map(|(cause, times)| format!("{times} {}", clean(cause))).collect();
    let by = match entry.source {
        None | Some(Source::Bpf) => "",
        Some(Source::Tracefs) => " (by tracefs, to the microsecond)",
        Some(Source::Proc) => " (by counters of /proc: only candidates, no record of what had the CPU)",
    };
    format!("of the {} largest: {}{by}", entry.of, each.join(", "))
}

/// Counters that changed during a time with a latency in it.
fn candidates(latency: &BlamedLatency) -> String {
    let one = |own: &Candidate| {
        let amount = match (own.ns, own.times) {
            (Some(ns), _) => latency_up(ns),
            (None, times) => format!("{} times", times.unwrap_or(0)),
        };
        let kind = match own.kind {
            CandidateKind::Thread => "thread ",
            CandidateKind::Interrupt => "interrupt ",
            CandidateKind::SoftInterrupt => "softirq ",
            CandidateKind::Steal => "",
        };
        format!("{kind}{} {amount} within {}", clean(&own.name), latency_up(own.within_ns))
    };
    let all: Vec<String> = latency.candidates.iter().map(one).collect();
    if all.is_empty() { String::new() } else { format!("; candidates: {}", all.join(", ")) }
}

fn table(entry: &BlameEntry) -> Table {
    let head = vec![
        Head::number("latency"),
        Head::number("at"),
        Head::words("laid to"),
        Head::words("who had the CPU"),
    ];
    let row = |latency: &BlamedLatency| -> Vec<Cell> {
        let at = format!("{:.3} s", float(latency.at_ns) / 1e9);
        vec![
            latency_up(latency.value_ns).into(),
            at.into(),
            clean(&latency.cause).into(),
            had(latency).into(),
        ]
    };
    let mut table = Table::whole("", head, entry.latencies.iter().take(SHOWN).map(row).collect());
    if entry.of > SHOWN {
        table.remarks.push(format!("The {SHOWN} largest of {}; the JSON has them all.", entry.of));
    }
    table
}

/// The parts, the largest first.
fn had(latency: &BlamedLatency) -> String {
    let part = |(name, ns): (String, u64)| format!("{} {}", clean(&name), latency_up(ns));
    let parts = latency.parts.iter().take(PARTS).map(|part| (owner_name(part.owner, &part.name), part.ns));
    let unaccounted =
        (latency.unaccounted_ns > 0).then(|| ("unaccounted".to_owned(), latency.unaccounted_ns));
    let had: Vec<String> = parts.chain(unaccounted).map(part).collect();
    let host = latency.host.as_ref().map(|host| {
        let by = host.by.as_deref().map_or("another", |by| by.split_once(' ').map_or(by, |(_, name)| name));
        let by = match (host.stopped, host.outside) {
            (true, _) => "a tracer".to_owned(),
            (_, true) => "the hypervisor itself, outside the guest".to_owned(),
            _ => clean(by),
        };
        let (waited, within) = (latency_up(host.waited_ns), latency_up(host.within_ns));
        format!("; on the machine: {by} {waited} (clocks: within {within})")
    });
    had.join(", ") + &candidates(latency) + &host.unwrap_or_default()
}

fn figure(name: &str, entry: &BlameEntry) -> Figure {
    let line = |latency: &BlamedLatency| {
        let place = |owner| KINDS.iter().position(|(kind, _)| *kind == owner).unwrap_or(KINDS.len());
        let spans = latency.spans.iter().map(|span| (span.from_ns, span.ns, place(span.owner)));
        Timeline { name: latency_up(latency.value_ns), words: clean(&latency.cause), spans: spans.collect() }
    };
    let lines: Vec<Timeline> = entry.latencies.iter().take(SHOWN).map(line).collect();
    timelines(&format!("Who had the CPU: {name}"), &KINDS.map(|(_, kind)| kind), &lines)
}

#[cfg(test)]
mod tests {
    use tactus_model::document::{BlamedPart, HostSide};

    use super::*;

    #[test]
    fn causes_are_counted_and_the_parts_of_each_latency_named() {
        let part = |owner, name: &str, ns| BlamedPart { owner, name: name.into(), ns };
        let latency = BlamedLatency {
            id: "host/cpu1/t0/thread".into(),
            at_ns: 1_500_000_000,
            value_ns: 910_000,
            cause: "hog\u{1b}[2J".into(),
            parts: vec![part(Owner::Thread, "hog", 900_000), part(Owner::Itself, "", 6_000)],
            unaccounted_ns: 4_000,
            spans: Vec::new(),
            candidates: Vec::new(),
            host: None,
        };
        let causes_of = vec![("hog".to_owned(), 9), ("not known".to_owned(), 1)];
        let entry = BlameEntry {
            unknowable: None,
            source: Some(Source::Bpf),
            of: 10,
            causes: causes_of,
            latencies: vec![latency],
        };
        assert_eq!(causes(&entry), "of the 10 largest: 9 hog, 1 not known");
        assert_eq!(had(&entry.latencies[0]), "hog 900 us, the thread itself 6 us, unaccounted 4 us");
        let host = HostSide {
            by: Some("7 hog".into()),
            stopped: false,
            outside: false,
            waited_ns: 900_000,
            at_ns: 0,
            within_ns: 20_000,
        };
        let outside = HostSide { by: None, outside: true, ..host.clone() };
        let own = BlamedLatency { host: Some(outside), ..entry.latencies[0].clone() };
        assert!(had(&own).contains("; on the machine: the hypervisor itself, outside the guest 900 us"));
        let held = BlamedLatency { host: Some(host), ..entry.latencies[0].clone() };
        assert!(
            had(&held).ends_with("; on the machine: hog 900 us (clocks: within 20 us)"),
            "{}",
            had(&held)
        );
        let table = table(&entry);
        assert!(!table.rows[0][2].lines.concat().contains('\u{1b}'));
        assert!(!figure("a", &entry).about.contains('\u{1b}'));
    }

    #[test]
    fn what_counters_say_is_called_candidates_and_no_account_and_none_is_drawn() {
        let candidate = |name: &str, kind, times, ns| Candidate {
            name: name.into(),
            kind,
            times,
            ns,
            within_ns: 100_000_000,
        };
        let latency = BlamedLatency {
            id: "host/cpu1/t0/thread".into(),
            at_ns: 1,
            value_ns: 910_000,
            cause: "not known".into(),
            parts: Vec::new(),
            unaccounted_ns: 910_000,
            spans: Vec::new(),
            candidates: vec![
                candidate("812 h\u{1b}og", CandidateKind::Thread, None, Some(20_000_000)),
                candidate("29 virtio0", CandidateKind::Interrupt, Some(7), None),
                candidate("NET_RX", CandidateKind::SoftInterrupt, Some(9), None),
                candidate("steal", CandidateKind::Steal, None, Some(10_000_000)),
            ],
            host: None,
        };
        let told = had(&latency);
        assert!(told.starts_with("unaccounted 910 us; candidates: thread 812 h"), "{told}");
        for part in [
            "20 ms within 100 ms",
            "interrupt 29 virtio0 7 times within 100 ms",
            "softirq NET_RX 9 times",
            "steal 10 ms",
        ] {
            assert!(told.contains(part), "{told}");
        }
        assert!(!told.contains('\u{1b}'), "{told}");
        let causes_of = vec![("not known".to_owned(), 1)];
        let mut entry = BlameEntry {
            unknowable: None,
            source: Some(Source::Proc),
            of: 1,
            causes: causes_of,
            latencies: vec![latency],
        };
        assert!(
            causes(&entry)
                .ends_with("(by counters of /proc: only candidates, no record of what had the CPU)")
        );
        entry.source = Some(Source::Tracefs);
        assert!(causes(&entry).ends_with("1 not known (by tracefs, to the microsecond)"));
    }
}
