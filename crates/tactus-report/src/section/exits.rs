//! Why guests left their virtual CPUs for KVM, and for how long.

use std::collections::{BTreeMap, BTreeSet};

use tactus_model::bundle::{Contents, Row};
use tactus_model::number::{float, ratio};
use tactus_model::outcome::exits::{CountedExits, ExitKind, KvmExits};

use super::Section;
use crate::part::{Cell, Head, Part, Reader, Table};
use crate::row::{title, worst_runs};
use crate::units::{NONE, clean, count, latency, latency_up, listed, number};

/// The section.
pub struct Exits;
/// Its entry.
pub static ENTRY: Exits = Exits;

/// Reasons that are shown of a row, those that took longest.
const MOST: usize = 12;

impl Section for Exits {
    fn name(&self) -> &'static str {
        "exits"
    }

    fn heading(&self) -> &'static str {
        "Exits to KVM"
    }

    fn about(&self) -> &'static str {
        "Why the virtual CPUs of a guest left it while it was measured, and the time from each exit to the next \
         entry, by the kernel's tracepoints. During a halt (HLT, hlt) the guest had nothing to do; during an \
         interrupt the machine did other work. Tracing makes each exit some tenths of a microsecond longer, and \
         the values beside it include that."
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

    fn parts(&self, contents: &Contents, _: Reader) -> Vec<Part> {
        let mut table = Table::whole("", head("exit"), Vec::new());
        let mut users = Table::whole("To user space", head("KVM_EXIT_"), Vec::new());
        let mut unknowable = Vec::new();
        for (row, exits) in told(contents) {
            let name = clean(&title(contents, &row.result));
            match exits {
                KvmExits::Unknowable(why) => {
                    unknowable.push(Part::Remark(format!("{name}: not visible here: {}.", clean(why))));
                }
                KvmExits::Counted(counted) => {
                    add(&mut table, &name, reasons(row, counted, &counted.kinds));
                    if counted.kinds.is_empty() {
                        table.remarks.push(format!("{name}: {INTERPRETED}"));
                    }
                    let to_user = counted.to_user.as_deref().unwrap_or_default();
                    add(&mut users, &name, reasons(row, counted, to_user));
                }
            }
        }
        if told(contents).any(|(row, _)| row.result.repeat.is_some()) {
            table
                .remarks
                .push("Of repeated runs the one with the largest latency; the JSON has them all.".into());
        }
        let mut parts: Vec<Part> = Vec::new();
        if table.rows.is_empty() {
            parts.extend(std::mem::take(&mut table.remarks).into_iter().map(Part::Remark));
        } else {
            parts.push(Part::Table(table));
        }
        if !users.rows.is_empty() {
            users.remarks.push(TO_USER.into());
            parts.push(Part::Table(users));
        }
        parts.extend(unknowable);
        parts
    }
}

const INTERPRETED: &str = "KVM's tracepoint of the processor's exits reported none: KVM emulates this guest \
instruction by instruction, and only exits to user space are counted.";
const TO_USER: &str = "Exits that KVM could not handle in the kernel, by its reason (KVM_EXIT_*). Their time \
is that in user space, in QEMU, and the time of the exit includes it.";

fn head(reason: &str) -> Vec<Head> {
    vec![
        Head::words("scenario"),
        Head::words(reason),
        Head::number("times"),
        Head::number("in a second"),
        Head::number("mean"),
        Head::number("longest"),
        Head::number("% of its CPUs' time"),
    ]
}

fn add(table: &mut Table, name: &str, (shown, left): (Vec<Vec<Cell>>, usize)) {
    table.rows.extend(shown.into_iter().map(|line| [vec![name.to_owned().into()], line].concat()));
    let more = || format!("{name}: {left} reasons that took less time are in the JSON.");
    table.remarks.extend((left > 0).then(more));
}

/// The rows with exits; of repeated runs the worst.
fn told(contents: &Contents) -> impl Iterator<Item = (&Row, &KvmExits)> {
    let rows = worst_runs(contents).into_iter();
    rows.filter_map(|row| Some((row, row.result.exits.as_ref()?)))
}

/// All virtual CPUs together, by reason: how often, for how long, the longest.
type Sums<'a> = BTreeMap<&'a str, (u64, u64, u64)>;

/// The lines of a row, and how many reasons are left out.
fn reasons(row: &Row, counted: &CountedExits, kinds: &[ExitKind]) -> (Vec<Vec<Cell>>, usize) {
    let mut sums = Sums::new();
    for kind in kinds {
        let (times, ns, longest) = sums.entry(&kind.reason).or_default();
        *times = times.saturating_add(kind.count);
        *ns = ns.saturating_add(kind.ns);
        *longest = kind.longest_ns.max(*longest);
    }
    let seen: BTreeSet<u32> = kinds.iter().map(|kind| kind.cpu).collect();
    let cpus = row.result.layout.len().max(seen.len());
    let all = counted.ns.saturating_mul(u64::try_from(cpus).unwrap_or(u64::MAX));
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, (_, ns, _))| std::cmp::Reverse(*ns));
    let left = sums.len().saturating_sub(MOST);
    let line = |(reason, (times, ns, longest)): (&str, (u64, u64, u64))| -> Vec<Cell> {
        let of = |text: Option<String>| Cell::from(text.unwrap_or_else(|| NONE.into()));
        vec![
            clean(reason).into(),
            count(times).into(),
            of((counted.ns > 0).then(|| number(float(times) * 1e9 / float(counted.ns)))),
            of((times > 0).then(|| latency(float(ns) / float(times)))),
            latency_up(longest).into(),
            of((all > 0).then(|| format!("{:.2}", ratio(ns, all) * 100.0))),
        ]
    };
    (sums.into_iter().take(MOST).map(line).collect(), left)
}

#[cfg(test)]
mod tests {
    use tactus_model::bundle::RowResult;

    use super::*;

    fn row(kinds: Vec<ExitKind>) -> Row {
        let exits = Some(KvmExits::Counted(CountedExits { ns: 1_000_000_000, kinds, to_user: None }));
        let layout = vec![(0, 2), (1, 3)];
        Row::of(RowResult { exits, layout, ..RowResult::unmeasured("a", "guest", "qemu") })
    }

    fn kind(cpu: u32, reason: &str, count: u64, ns: u64) -> ExitKind {
        ExitKind { cpu, reason: reason.into(), count, ns, longest_ns: ns / 2 }
    }

    fn lines(row: &Row) -> (Vec<String>, usize) {
        let Some(KvmExits::Counted(counted)) = &row.result.exits else { panic!() };
        let (lines, left) = reasons(row, counted, &counted.kinds);
        let said =
            |cells: &Vec<Cell>| cells.iter().map(|cell| cell.lines.join(" ")).collect::<Vec<_>>().join("|");
        (lines.iter().map(said).collect(), left)
    }

    #[test]
    fn the_virtual_cpus_of_a_guest_are_added_and_what_took_longest_stands_first() {
        let row = row(vec![
            kind(0, "CPUID", 1_000, 2_000_000),
            kind(0, "HLT", 10, 400_000_000),
            kind(1, "HLT", 30, 800_000_000),
        ]);
        let (said, left) = lines(&row);
        assert_eq!(said, ["HLT|40|40|30 ms|400 ms|60.00", "CPUID|1000|1000|2 us|1 ms|0.10"]);
        assert_eq!(left, 0);
    }

    #[test]
    fn of_many_reasons_those_that_took_longest_are_shown_and_strange_numbers_are_no_panic() {
        let many = (0..40).map(|n| kind(0, &format!("reason {n}"), 1, n)).collect();
        let (said, left) = lines(&row(many));
        assert!(said.len() == MOST && left == 28 && said[0].starts_with("reason 39|"), "{said:?}");
        let (said, _) =
            lines(&row(vec![kind(0, "a\u{1b}[2J", u64::MAX, u64::MAX), kind(1, "a\u{1b}[2J", 1, 1)]));
        assert!(said.len() == 1 && !said[0].contains('\u{1b}'), "{said:?}");
    }
}
