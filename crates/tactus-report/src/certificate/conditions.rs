//! The conditions under which an answer holds, for the second page.

use tactus_model::Evidence;
use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::cpus::CpuSet;
use tactus_model::event::RowStatus;
use tactus_model::facts::Facts;
use tactus_model::message::NoteKind;

use super::required::{all_of, intervals};
use super::{Entry, Given, Judged, distinct, short};
use crate::row::{conditions as audited, controls_of, load_words, policy};
use crate::section::facts::telling;
use crate::units::{NONE, count, duration, moment, unbroken};

/// The facts that tell how a machine is tuned.
const TUNED: [&str; 8] = [
    "isolated CPUs",
    "CPUs without tick",
    "hyper-threading",
    "clock source",
    "idle driver",
    "frequency governor",
    "real-time throttling",
    "transparent huge pages",
];

/// The file with the active profile of TuneD.
const TUNED_PROFILE: &str = "/etc/tuned/active_profile";

/// All conditions. An unknown one has no entry, unless a reader would miss it.
pub fn conditions(contents: &Contents, judged: &[Judged<'_>], given: &Given, sha256: &str) -> Vec<Entry> {
    let manifest = &contents.manifest;
    let machine = &manifest.machine;
    let facts = facts(contents, judged);
    let told = |value: &str| Some(value.to_owned());
    let all = [
        ("Customer", given.customer.clone(), 2),
        ("Site", given.site.clone(), 2),
        ("Operator", given.operator.clone(), 1),
        ("Serial number", given.serial.clone(), 1),
        ("Machine", told(&machine.name), 1),
        ("Processor", told(&machine.processor), 1),
        ("Firmware", machine.bios.clone(), 1),
        ("Microcode", machine.microcode.clone(), 1),
        ("System", told(&machine.system), 1),
        ("Kernel", told(&machine.kernel), 2),
        ("Kernel command line", known(facts.and_then(|facts| facts.text("/proc/cmdline"))), 6),
        ("Kernels elsewhere", elsewhere(contents, judged, facts), 3),
        ("Tuning", known(tuning(contents, judged, facts).as_deref()), 4),
        ("Audit", audit(contents, judged), 2),
        ("Load", Some(loads(judged)), 3),
        ("CPUs", Some(cpus(contents, judged)), 2),
        ("Scheduling", Some(scheduling(judged)), 1),
        ("Interval", Some(intervals(judged)), 1),
        ("Self-test", Some(self_test(contents, judged)), 3),
        ("Started", Some(moment(&manifest.started)), 1),
        ("Ended", manifest.finished.as_deref().map(moment), 1),
        ("Measured for", Some(measured(judged)), 1),
        ("Plan", told(&manifest.plan), 1),
        ("tactus", told(&manifest.tactus), 1),
        ("Checksum", Some(format!("SHA-256 {sha256}")), 2),
    ];
    let entry = |(name, value, lines): (&'static str, Option<String>, usize)| {
        let value = unbroken(&short(value?.trim()));
        (!value.is_empty()).then_some(Entry { name, value, lines })
    };
    all.into_iter().filter_map(entry).collect()
}

/// The remarks below the conditions.
pub fn notes(evidence: &[Evidence]) -> Vec<String> {
    let meaning = evidence.iter().map(|kind| kind.meaning().to_owned());
    let checksum = "The checksum is that of the file manifest.json of the bundle (`sha256sum \
                    manifest.json`), which contains the checksum of every other file.";
    meaning.chain([checksum.to_owned()]).collect()
}

/// A value that a reader would miss.
fn known(value: Option<&str>) -> Option<String> {
    Some(value.filter(|value| !value.trim().is_empty()).unwrap_or("not known").to_owned())
}

/// The machine's facts; without them, those of the first place where something was judged.
fn facts<'a>(contents: &'a Contents, judged: &[Judged<'_>]) -> Option<&'a Facts> {
    let is_machine = |name: &&String| name.as_str() == "host" || name.starts_with("host@");
    let machine = contents.facts.keys().find(is_machine);
    let place = machine.or_else(|| judged.first().map(|one| &one.line.place))?;
    contents.facts.get(place)
}

/// Kernels of other places, where they are others: those of guests.
fn elsewhere(contents: &Contents, judged: &[Judged<'_>], machine: Option<&Facts>) -> Option<String> {
    let own = |facts: &Facts| {
        ["uname:release", "/proc/cmdline"].map(|name| facts.text(name).unwrap_or_default().trim().to_owned())
    };
    let machine = own(machine?);
    let of = |one: &Judged<'_>| {
        let [release, command_line] = own(contents.facts.get(&one.line.place)?);
        let differs = [&release, &command_line] != [&machine[0], &machine[1]];
        differs.then(|| format!("{}: {release} {command_line}", one.line.place))
    };
    let all = distinct(judged.iter().filter_map(of));
    (!all.is_empty()).then(|| all.join("; "))
}

/// The settings that change latency, as far as the bundle knows them.
fn tuning(contents: &Contents, judged: &[Judged<'_>], facts: Option<&Facts>) -> Option<String> {
    let state = contents.manifest.sessions.last().and_then(|session| session.state.as_ref());
    let state = state.map(|state| format!("state {} of the plan", state.name));
    let profile = facts.and_then(|facts| facts.text(TUNED_PROFILE)).map(str::trim);
    let profile =
        profile.filter(|profile| !profile.is_empty()).map(|profile| format!("TuneD profile {profile}"));
    let telling = facts.into_iter().flat_map(telling).filter(|(title, _)| TUNED.contains(title));
    let telling = telling.map(|(title, value)| match (title, value.trim()) {
        ("hyper-threading", "0") => format!("{title} off"),
        ("hyper-threading", "1") => format!("{title} on"),
        (title, value) => format!("{title} {value}"),
    });
    let notes = rows(judged).flat_map(|row| &row.result.notes);
    let changed = notes.filter(|note| note.kind == NoteKind::SideEffect).map(|note| note.text.clone());
    let all = distinct(state.into_iter().chain(profile).chain(telling).chain(changed));
    (!all.is_empty()).then(|| all.join("; "))
}

/// The findings of the audit, for each place where something was judged.
fn audit(contents: &Contents, judged: &[Judged<'_>]) -> Option<String> {
    let of = |one: &Judged<'_>| {
        let found = audited(contents, &one.line.place)?;
        Some(format!("{}: {found}", one.line.place))
    };
    let all = distinct(judged.iter().filter_map(of));
    (!all.is_empty()).then(|| all.join("; "))
}

fn rows<'a>(judged: &'a [Judged<'a>]) -> impl Iterator<Item = &'a Row> {
    judged.iter().flat_map(|one| one.runs.iter().copied())
}

fn loads(judged: &[Judged<'_>]) -> String {
    let measured = rows(judged).filter(|row| row.result.status == RowStatus::Measured);
    all_of(&distinct(measured.map(|row| load_words(&row.result))))
}

/// The CPUs that are on, and the measured ones, place by place.
fn cpus(contents: &Contents, judged: &[Judged<'_>]) -> String {
    let on = &contents.manifest.machine.cpus;
    let on = if on.is_empty() { String::new() } else { format!("{on} are on; ") };
    let was_measured =
        |one: &&Judged<'_>| one.runs.iter().any(|run| run.result.status == RowStatus::Measured);
    let measured = distinct(judged.iter().filter(was_measured).map(|one| {
        let series = one.runs.iter().flat_map(|run| run.result.series());
        let cpus: CpuSet = series.map(|series| series.key.cpu).collect();
        let cpus = if cpus.is_empty() { "not known".to_owned() } else { cpus.to_string() };
        format!("{cpus} in {}", one.line.subject)
    }));
    format!("{on}measured on {}", measured.join(", "))
}

fn scheduling(judged: &[Judged<'_>]) -> String {
    let words = |row: &Row| match (policy(&row.result), row.result.priority) {
        (None, _) => "not known".to_owned(),
        (Some(policy), 0) => policy.to_string(),
        (Some(policy), priority) => format!("{policy}, priority {priority}"),
    };
    all_of(&distinct(rows(judged).map(words)))
}

/// How the self-tests went: what speaks against them first.
fn self_test(contents: &Contents, judged: &[Judged<'_>]) -> String {
    let is_judged = |result: &RowResult| {
        rows(judged).any(|row| row.result.name == result.name && row.result.environment == result.environment)
    };
    let mut all = controls_of(contents, is_judged);
    all.sort_by_key(|(passed, _)| *passed);
    let said: Vec<String> = all.into_iter().map(|(_, sentence)| sentence).collect();
    if said.is_empty() { NONE.into() } else { said.join(" ") }
}

/// All time together in which something was measured that has a limit.
fn measured(judged: &[Judged<'_>]) -> String {
    let all = || judged.iter().filter(|one| one.line.has_numbers());
    let time = all().flat_map(|one| one.line.lasted()).fold(0, u64::saturating_add);
    let many = all().map(|one| one.line.lasted().count()).sum::<usize>();
    match many {
        1 => duration(time),
        many => format!("{} in {} measurements", duration(time), count(u64::try_from(many).unwrap_or(0))),
    }
}
