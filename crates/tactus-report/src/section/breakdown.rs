//! Where the time of CPUs went while values were measured.

use tactus_model::bundle::{BreakdownIn, Contents, Row};
use tactus_model::number::{float, ratio};
use tactus_model::outcome::breakdown::{Arrivals, CpuTime, KINDS};

use super::Section;
use crate::figure::{Figure, Kind, Shade, Stack, Stacks, stacked};
use crate::part::{Cell, Head, Part, Reader, Table};
use crate::row::title;
use crate::stats::valued;
use crate::units::{NONE, clean, listed, number};

/// The section.
pub struct Breakdown;
/// Its entry.
pub static ENTRY: Breakdown = Breakdown;

/// CPUs that are shown one by one; of more, those that were busiest.
const CPUS: usize = 32;
/// Kinds of interrupts that are shown.
const KINDS_SHOWN: usize = 8;
/// Kinds of time, idle left out: that is the rest.
const BUSY: [Kind; KINDS.len() - 1] = [
    Kind { name: KINDS[0], colour: 0, shade: Shade::Dark },
    Kind { name: KINDS[1], colour: 0, shade: Shade::Light },
    Kind { name: KINDS[2], colour: 1, shade: Shade::Dark },
    Kind { name: KINDS[3], colour: 2, shade: Shade::Dark },
    Kind { name: KINDS[4], colour: 2, shade: Shade::Light },
    Kind { name: KINDS[5], colour: 3, shade: Shade::Dark },
    Kind { name: KINDS[6], colour: 3, shade: Shade::Light },
];

impl Section for Breakdown {
    fn name(&self) -> &'static str {
        "breakdown"
    }

    fn heading(&self) -> &'static str {
        "Where the time goes"
    }

    fn about(&self) -> &'static str {
        "How each CPU spent its time while values were measured, from the counters of the environment's \
         kernel and of the machine's. Everything that ran there is included, also other work. A kernel \
         without CONFIG_IRQ_TIME_ACCOUNTING only samples softirq time, and does not see hardirq time. Threads \
         that ended meanwhile are not named."
    }

    fn draws(&self) -> bool {
        true
    }

    fn folded(&self, contents: &Contents, _: &[Part]) -> Option<String> {
        Some(listed(
            &told(contents).into_iter().map(|row| clean(&title(contents, &row.result))).collect::<Vec<_>>(),
            ", ",
        ))
    }

    fn applies(&self, contents: &Contents) -> bool {
        contents.rows.iter().any(|row| !row.result.breakdown.is_empty())
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        let mut parts = vec![Part::Table(whole(contents))];
        let mut folded = Vec::new();
        for row in told(contents) {
            match reader {
                Reader::Terminal => {}
                Reader::Markdown => {
                    let name = clean(&title(contents, &row.result));
                    parts.extend(row.result.breakdown.iter().map(|of| Part::Table(threads(&name, of))));
                }
                Reader::Page => {
                    let mut one_by_one = vec![Part::Figure(figure(contents, row))];
                    for of in &row.result.breakdown {
                        one_by_one.extend([cpus(of), threads("", of), interrupts(of)].map(Part::Table));
                    }
                    let whose = clean(&title(contents, &row.result));
                    folded.push(Part::Folded(format!("{whose}: CPUs, threads and interrupts"), one_by_one));
                }
            }
        }
        if folded.len() > FEW {
            folded = vec![Part::Folded("CPUs, threads and interrupts, each measurement".into(), folded)];
        }
        parts.extend(folded);
        parts
    }
}

/// More folded parts than this are folded together.
const FEW: usize = 5;

/// The rows that have any; of repeated runs the first.
fn told(contents: &Contents) -> Vec<&Row> {
    let rows = valued(contents).into_iter().map(|(_, row)| row);
    rows.filter(|row| !row.result.breakdown.is_empty()).collect()
}

/// The owner of the time, and the phase.
fn whose(of: &BreakdownIn) -> String {
    let whose = of.environment.as_deref().map_or_else(|| "the machine".to_owned(), clean);
    match &of.breakdown.phase {
        Some(phase) => format!("{}, {whose}", clean(phase)),
        None => whose,
    }
}

/// Every breakdown in a line: how many CPUs each kind of time used.
fn whole(contents: &Contents) -> Table {
    let rows = told(contents);
    // A kind without time gets no column.
    let came =
        |kind: &usize| rows.iter().flat_map(|row| &row.result.breakdown).any(|of| in_cpus(of, *kind) > 0.0);
    let (kinds, none): (Vec<usize>, Vec<usize>) = (0..KINDS.len()).partition(came);
    let mut head = vec![Head::words("scenario"), Head::words("CPUs of")];
    head.extend(kinds.iter().map(|kind| Head::number(KINDS[*kind])));
    head.extend([Head::number("switches/s"), Head::words("busiest thread")]);
    let repeated = rows.iter().any(|row| row.result.repeat.is_some());
    let lines = rows.into_iter().flat_map(|row| row.result.breakdown.iter().map(move |of| (row, of)));
    let line = |(row, of): (&Row, &BreakdownIn)| -> Vec<Cell> {
        let mut cells = vec![clean(&title(contents, &row.result)).into(), whose(of).into()];
        cells.extend(kinds.iter().map(|kind| number(in_cpus(of, *kind)).into()));
        cells.push(a_second(of.breakdown.switches, of).into());
        let busiest = of.breakdown.threads.first();
        cells.push(busiest.map_or_else(|| NONE.into(), |thread| clean(&thread.name)).into());
        cells
    };
    let mut table = Table::whole("", head, lines.map(line).collect());
    let none: Vec<&str> = none.into_iter().map(|kind| KINDS[kind]).collect();
    let none =
        if none.is_empty() { String::new() } else { format!(" There was none of: {}.", none.join(", ")) };
    table.remarks.push(format!("In CPUs: 1 is the whole time of one CPU.{none}"));
    if repeated {
        table.remarks.push("Of repeated runs the first; the JSON has them all.".into());
    }
    table
}

/// How many CPUs a kind of time used.
fn in_cpus(of: &BreakdownIn, kind: usize) -> f64 {
    of.breakdown.cpus.iter().filter_map(CpuTime::parts).map(|parts| parts[kind]).sum()
}

/// How often in a second.
fn a_second(count: u64, of: &BreakdownIn) -> String {
    match of.breakdown.ns {
        0 => NONE.into(),
        ns => number(float(count) * 1e9 / float(ns)),
    }
}

/// The CPUs that are shown, and whether that is all of them.
fn shown(of: &BreakdownIn) -> (Vec<&CpuTime>, bool) {
    let mut cpus: Vec<&CpuTime> = of.breakdown.cpus.iter().collect();
    let all = cpus.len() <= CPUS;
    cpus.sort_by(|a, b| idle(a).total_cmp(&idle(b)));
    cpus.truncate(CPUS);
    cpus.sort_by_key(|cpu| cpu.cpu);
    (cpus, all)
}

fn idle(cpu: &CpuTime) -> f64 {
    cpu.parts().map_or(1.0, |parts| parts[KINDS.len() - 1])
}

/// A bar for each CPU, for each phase, in the environment and on the machine.
fn figure(contents: &Contents, row: &Row) -> Figure {
    let panels: Vec<Stacks> = row.result.breakdown.iter().map(panel).collect();
    stacked(&format!("CPU time: {}", clean(&title(contents, &row.result))), &BUSY, KINDS[BUSY.len()], &panels)
}

fn panel(of: &BreakdownIn) -> Stacks {
    let (cpus, all) = shown(of);
    let bars = cpus.into_iter().filter_map(|cpu| {
        let parts = cpu.parts()?[..BUSY.len()].to_vec();
        Some(Stack { name: format!("CPU {}", cpu.cpu), parts })
    });
    let title = if all { whose(of) } else { format!("{} (the {CPUS} busiest CPUs)", whose(of)) };
    Stacks { title, bars: bars.collect() }
}

fn cpus(of: &BreakdownIn) -> Table {
    let mut head = vec![Head::words("CPU")];
    head.extend(KINDS.map(|kind| Head::number(format!("{kind} %"))));
    let (cpus, all) = shown(of);
    let line = |cpu: &CpuTime| -> Vec<Cell> {
        let parts = cpu.parts().map_or_else(
            || vec![NONE.to_owned(); KINDS.len()],
            |parts| parts.map(|part| format!("{:.1}", part * 100.0)).to_vec(),
        );
        std::iter::once(cpu.cpu.to_string()).chain(parts).map(Cell::from).collect()
    };
    let mut table = Table::whole(whose(of), head, cpus.into_iter().map(line).collect());
    if !all {
        table.remarks.push(format!("The {CPUS} busiest of {} CPUs.", of.breakdown.cpus.len()));
    }
    table
}

/// The threads behind it. `row` names their row if nothing above does.
fn threads(row: &str, of: &BreakdownIn) -> Table {
    let title = if row.is_empty() { "threads".to_owned() } else { format!("{row}: {}", whose(of)) };
    let head = vec![Head::words("thread"), Head::words("of"), Head::number("% of a CPU")];
    let line = |thread: &tactus_model::outcome::breakdown::ThreadTime| -> Vec<Cell> {
        let of_process = if thread.process == thread.name { String::new() } else { clean(&thread.process) };
        let percent = format!("{:.1}", ratio(thread.ns, of.breakdown.ns) * 100.0);
        vec![clean(&thread.name).into(), of_process.into(), percent.into()]
    };
    let mut table = Table::whole(title, head, of.breakdown.threads.iter().map(line).collect());
    if of.breakdown.threads.is_empty() {
        table.remarks.push(
            "Its kernel keeps no record of threads (CONFIG_SCHED_INFO), or the record is not visible.".into(),
        );
    }
    table
}

/// Interrupts and soft interrupts: how often in a second, and on which CPUs.
fn interrupts(of: &BreakdownIn) -> Table {
    let head = vec![Head::words("interrupt"), Head::number("in a second"), Head::words("on CPUs")];
    let line = |soft: bool| {
        move |kind: &Arrivals| -> Vec<Cell> {
            let name = clean(&kind.name);
            let mut cpus: Vec<&(u32, u64)> = kind.counts.iter().collect();
            cpus.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            let share =
                |(cpu, count): &&(u32, u64)| format!("{cpu} ({:.0} %)", ratio(*count, kind.total()) * 100.0);
            let on: Vec<String> = cpus.iter().take(4).map(share).collect();
            let more = if cpus.len() > 4 { ", ..." } else { "" };
            let name = if soft { format!("soft: {name}") } else { name };
            vec![name.into(), a_second(kind.total(), of).into(), format!("{}{more}", on.join(", ")).into()]
        }
    };
    let (hard, soft) = (&of.breakdown.interrupts, &of.breakdown.softirqs);
    let rows = hard.iter().take(KINDS_SHOWN).map(line(false));
    let rows = rows.chain(soft.iter().take(KINDS_SHOWN).map(line(true)));
    Table::whole("interrupts", head, rows.collect())
}

#[cfg(test)]
mod tests {
    use tactus_model::outcome::breakdown::{Breakdown, ThreadTime};

    use super::*;

    fn of(cpus: Vec<CpuTime>) -> BreakdownIn {
        let breakdown = Breakdown { phase: Some("TX".into()), ns: 1_000, cpus, ..Breakdown::default() };
        BreakdownIn { environment: None, breakdown }
    }

    #[test]
    fn kinds_are_told_in_cpus_and_an_unknown_cpu_has_no_bar() {
        let both = of(vec![
            CpuTime::of(0, [500, 0, 500, 0, 0, 0, 0, 0]),
            CpuTime::of(1, [250, 0, 0, 0, 0, 0, 0, 750]),
            CpuTime { cpu: 2, ..CpuTime::default() },
        ]);
        assert!((in_cpus(&both, 0) - 0.75).abs() < 1e-9 && (in_cpus(&both, 7) - 0.75).abs() < 1e-9);
        assert_eq!(panel(&both).bars.len(), 2);
        assert_eq!(cpus(&both).rows[2][1], NONE.to_owned().into());
        assert_eq!(whose(&both), "TX, the machine");
    }

    #[test]
    fn of_many_cpus_the_busiest_are_shown_in_their_order() {
        let many =
            of((0..100).map(|cpu| CpuTime::of(cpu, [u64::from(cpu), 0, 0, 0, 0, 0, 0, 100])).collect());
        let (cpus, all) = shown(&many);
        assert!(!all && cpus.len() == CPUS && cpus[0].cpu == 68 && cpus[31].cpu == 99);
        assert!(panel(&many).title.contains("32 busiest"));
    }

    #[test]
    fn a_thread_is_told_in_parts_of_a_cpu_and_a_kernel_without_record_says_so() {
        let mut one = of(Vec::new());
        assert!(threads("", &one).remarks[0].contains("CONFIG_SCHED_INFO"));
        let thread = |name: &str, process: &str| ThreadTime {
            name: name.into(),
            process: process.into(),
            pid: 7,
            ns: 250,
        };
        one.breakdown.threads = vec![thread("vhost-7", "vhost-7"), thread("CPU 0/KVM", "qemu-system-x86")];
        let rows = threads("", &one).rows;
        let said: Vec<&str> = rows.iter().flatten().map(|cell| cell.lines[0].as_str()).collect();
        assert_eq!(said, ["vhost-7", "", "25.0", "CPU 0/KVM", "qemu-system-x86", "25.0"]);
        one.breakdown.ns = 0;
        assert_eq!(a_second(5, &one), NONE);
    }
}
