//! A plan as text.

use std::collections::BTreeMap;
use std::fmt::Write;

use tactus_audit::cpus_or_none;
use tactus_model::change::{Change, Effect, Target};
use tactus_report::units::wrapped;
use tactus_tune::plan::{Layer, Plan, PlannedChange};

/// Several changes of one kind and value, on one line.
struct Line<'a> {
    step: &'a PlannedChange,
    what: String,
    count: usize,
    now: Vec<String>,
}

/// The plan; `all`: each line, and what holds already.
pub fn plan(plan: &Plan, all: bool, width: usize) -> String {
    let mut text = String::new();
    let open = plan.open().count();
    let _ = writeln!(
        text,
        "profile {}: {} isolated, {} for housekeeping. {open} to change, {} already set.\n",
        plan.profile,
        cpus_or_none(&plan.isolation.isolated),
        cpus_or_none(&plan.isolation.housekeeping),
        plan.entries.len() - open
    );
    for refusal in &plan.refusals {
        write_wrapped(&mut text, "refused: ", &refusal.what, width);
        write_wrapped(&mut text, "   hint: ", &refusal.hint, width);
    }
    for (effect, title) in [
        (
            Effect::Runtime,
            "Takes effect at once (`tactus tune apply`), until `tactus tune revert` or a reboot",
        ),
        (Effect::Boot, "With --persist, from the next boot on"),
        (Effect::Restart, "With --persist, when the module or service is loaded again"),
    ] {
        let steps: Vec<&PlannedChange> =
            plan.entries.iter().filter(|s| s.change.effect == effect && (all || !s.holds)).collect();
        if !steps.is_empty() {
            let _ = writeln!(text, "{title}");
            let mut last = "";
            for line in &folded(&steps, all) {
                // The risk of a setting is shown once.
                let again = last == line.step.change.check;
                write_line(&mut text, line, again, width);
                last = &line.step.change.check;
            }
            text.push('\n');
        }
    }
    write_withheld(&mut text, plan, width);
    write_pitfalls(&mut text, plan, width);
    text
}

/// Threads, and files of each CPU or interrupt, with the same new value are one line.
fn folded<'a>(steps: &[&'a PlannedChange], all: bool) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'a>> = Vec::new();
    let mut places: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    for step in steps {
        let change = &step.change;
        let kind = if all { change.target.to_string() } else { kind(change) };
        let key = (change.check.clone(), kind.clone(), change.then.clone());
        let now = change.now.clone().unwrap_or_else(|| "-".into());
        match places.get(&key) {
            Some(at) => {
                let line = &mut lines[*at];
                line.count += 1;
                if !line.now.contains(&now) {
                    line.now.push(now);
                }
            }
            None => {
                places.insert(key, lines.len());
                lines.push(Line { step, what: kind, count: 1, now: vec![now] });
            }
        }
    }
    for line in &mut lines {
        if line.count == 1 {
            line.what = line.step.change.target.to_string();
        }
    }
    lines
}

/// The kind of a change: its target, without the numbers that tell it from others of its kind.
fn kind(change: &Change) -> String {
    match &change.target {
        Target::File { path, .. } => {
            let parts: Vec<String> = path.split('/').map(starred).collect();
            parts.join("/")
        }
        Target::Scheduling(thread) => {
            format!("scheduling of {}", thread.name.split('/').next().unwrap_or_default())
        }
        Target::Affinity(_) => "CPUs of threads".into(),
        other => other.to_string(),
    }
}

/// `cpu12` is `cpu*`, `24` is `*`.
fn starred(part: &str) -> String {
    let front = part.trim_end_matches(|c: char| c.is_ascii_digit());
    if front.len() < part.len() { format!("{front}*") } else { part.to_owned() }
}

fn write_line(text: &mut String, line: &Line<'_>, again: bool, width: usize) {
    let PlannedChange { change, layer, risk, gives_up, pitfalls, holds } = line.step;
    let count = if line.count > 1 { format!(" ({})", line.count) } else { String::new() };
    let mut now = line.now.iter().take(3).cloned().collect::<Vec<_>>().join(" | ");
    if line.now.len() > 3 {
        now += " | ...";
    }
    let then = if change.then.is_empty() { "set" } else { &change.then };
    let who = match layer {
        Layer::Profile => "",
        Layer::Beyond => ", beyond TuneD",
        Layer::Chosen => ", asked for",
    };
    let held = if *holds { ", holds" } else { "" };
    let _ = writeln!(text, "  {:<24} {}{count}", change.check, line.what);
    let _ = writeln!(text, "  {:<24} {now} -> {then}  ({}{who}{held})", "", how(change));
    let mut notes = if again || risk.is_empty() { String::new() } else { format!("Risk: {risk}") };
    if !gives_up.is_empty() {
        notes +=
            &format!("{}It weakens a safety feature: {gives_up}.", if notes.is_empty() { "" } else { " " });
    }
    if !pitfalls.is_empty() {
        let numbers: Vec<String> = pitfalls.iter().map(u8::to_string).collect();
        notes += &format!("{}See pitfall {}.", if notes.is_empty() { "" } else { " " }, numbers.join(", "));
    }
    for row in wrapped(&notes, width.saturating_sub(29).max(30)).iter().filter(|row| !row.is_empty()) {
        let _ = writeln!(text, "  {:<24}   {row}", "");
    }
}

fn how(change: &Change) -> &'static str {
    match &change.target {
        Target::File { .. } => "file",
        Target::Kernel { .. } => "command line",
        Target::Module { .. } => "modprobe.d",
        Target::Scheduling(_) => "sched_setscheduler",
        Target::Affinity(_) => "sched_setaffinity",
        Target::Service { .. } => "systemctl",
        Target::DropIn { .. } => "drop-in",
    }
}

/// Lists the changes of the profile that the plan leaves out, by the guard that they would weaken.
fn write_withheld(text: &mut String, plan: &Plan, width: usize) {
    if plan.withheld.is_empty() {
        return;
    }
    let _ = writeln!(text, "Not applied, because it weakens a safety feature; add `--with NAME` to apply it");
    let mut guards: Vec<&str> = Vec::new();
    for first in &plan.withheld {
        if guards.contains(&first.guard) {
            continue;
        }
        guards.push(first.guard);
        let all = plan.withheld.iter().filter(|withheld| withheld.guard == first.guard);
        let (mut kinds, mut names): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
        for withheld in all {
            let then = if withheld.change.then.is_empty() { "set" } else { &withheld.change.then };
            let kind = format!("{} -> {then}", kind(&withheld.change));
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
            let (_, name) = withheld.ask.split_once(' ').unwrap_or_default();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let (option, _) = first.ask.split_once(' ').unwrap_or((&first.ask, ""));
        let _ = writeln!(text, "  {:<24} {}", first.change.check, kinds.join("; "));
        let names = names.join(",");
        let words = format!(
            "Turns off or weakens {}: {}. To apply it: {option} {names}",
            first.guard, first.gives_up
        );
        for row in wrapped(&words, width.saturating_sub(29).max(30)) {
            let _ = writeln!(text, "  {:<24}   {row}", "");
        }
    }
    text.push('\n');
}

fn write_pitfalls(text: &mut String, plan: &Plan, width: usize) {
    let conflicts = plan.contradictions.iter().map(|conflict| {
        format!(
            "{} becomes {}, as in the profile; {} wants {}",
            conflict.target, conflict.profile, conflict.check, conflict.wants
        )
    });
    for note in plan.remarks.iter().cloned().chain(conflicts) {
        write_wrapped(text, "note: ", &note, width);
    }
    if plan.pitfalls.is_empty() {
        return;
    }
    let _ = writeln!(text, "Pitfalls");
    for warning in &plan.pitfalls {
        let head = format!("{}: {}. ", warning.title, warning.here.trim_end_matches('.'));
        write_wrapped(text, &format!("  {:>2}. ", warning.number), &(head + warning.text), width);
    }
}

/// A paragraph behind a mark.
fn write_wrapped(text: &mut String, mark: &str, words: &str, width: usize) {
    let indent = " ".repeat(mark.len());
    let rows = wrapped(words, width.saturating_sub(mark.len()).max(30));
    for (n, row) in rows.iter().enumerate() {
        let _ = writeln!(text, "{}{row}", if n == 0 { mark } else { &indent });
    }
}

#[cfg(test)]
mod tests {
    use tactus_audit::{Intent, Subject};
    use tactus_model::facts::Facts;
    use tactus_model::finding::Role;
    use tactus_tune::plan::{Choice, Plan};
    use tactus_tune::profile;

    use super::*;

    fn planned(isolate: &str) -> Plan {
        let mut facts = Facts::default();
        for (name, text) in [
            ("uname:machine", "x86_64"),
            ("uname:release", "6.12.43-rt"),
            ("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t: fpu tsc"),
            ("/proc/cmdline", "quiet skew_tick=1"),
            ("/sys/devices/system/cpu/online", "0-7"),
            ("/sys/devices/system/node/node0/cpulist", "0-3"),
            ("/sys/devices/system/node/node1/cpulist", "4-7"),
            ("/sys/devices/system/cpu/intel_pstate/no_turbo", "1"),
            ("/proc/sys/kernel/sched_rt_runtime_us", "950000"),
            ("/proc/irq/24/smp_affinity_list", "0-7"),
            ("/proc/irq/25/smp_affinity_list", "4"),
            (
                "threads:0",
                "14\t14\t2\t4208040\tOTHER\t0\t0\tksoftirqd/0\n22\t22\t2\t4208040\tOTHER\t0\t1\tksoftirqd/1",
            ),
        ] {
            facts.keep(name, text);
        }
        let intent = Intent { isolated: Some(isolate.parse().unwrap()), ..Intent::default() };
        let subject = Subject::new(&facts, Role::Host, &intent);
        let choice = Choice { plain: true, ..Choice::default() };
        Plan::new(&subject, profile::find("realtime-virtual-host").unwrap(), &choice)
    }

    #[test]
    fn a_plan_is_good_to_read() {
        let text = plan(&planned("4-7"), false, 100);
        assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_refused_plan_says_so_first() {
        let text = plan(&planned("0-7"), false, 100);
        let second = text.lines().nth(2).unwrap();
        assert!(second.starts_with("refused: isolating 0-7 leaves no CPU"), "{text}");
    }
}
