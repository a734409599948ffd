//! How interrupts arrive: by messages or by lines, where, and which threads handle them.

use std::collections::BTreeMap;

use tactus_model::CpuSet;
use tactus_model::bundle::Contents;
use tactus_model::dependence::{Dependence, dependence};
use tactus_model::document::{Document, InterruptEntry, InterruptsEntry, PostedEntry};
use tactus_model::facts::Facts;
use tactus_model::interrupts::Interrupts;
use tactus_model::threads::{Thread, Threads};

use super::Section;
use crate::part::{Cell, Head, Length, Part, Reader, Table};
use crate::units::{NONE, clean, count, listed};

/// The section.
pub struct Arrivals;
/// Its entry.
pub static ENTRY: Arrivals = Arrivals;

impl Section for Arrivals {
    fn name(&self) -> &'static str {
        "interrupts"
    }

    fn heading(&self) -> &'static str {
        "How interrupts arrive"
    }

    fn about(&self) -> &'static str {
        "Which interrupts of devices are messages (MSI, MSI-X) and which are lines, which several devices may \
         share. On which CPUs they arrive, and which threads handle them, in each environment with a separate \
         kernel."
    }

    fn folded(&self, contents: &Contents, _: &[Part]) -> Option<String> {
        Some(format!(
            "in {}",
            listed(&places(contents).map(|(place, _)| clean(place)).collect::<Vec<_>>(), ", ")
        ))
    }

    fn applies(&self, contents: &Contents) -> bool {
        places(contents).next().is_some()
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        if reader != Reader::Page {
            return Vec::new();
        }
        let all = entries(contents);
        let tables = all.iter().filter(|entry| !entry.devices.is_empty()).map(devices);
        std::iter::once(summary(&all)).chain(tables).map(Part::Table).collect()
    }

    fn fill(&self, contents: &Contents, document: &mut Document) {
        document.interrupts = entries(contents);
    }
}

/// The places whose interrupts are known; a container has those of the machine.
fn places(contents: &Contents) -> impl Iterator<Item = (&String, &Facts)> {
    contents.facts.iter().filter(|(place, facts)| {
        let name = place.split_once('@').map_or(place.as_str(), |(name, _)| name);
        let kind = contents.plan.environment.get(name).map_or(name, |of| of.kind.as_str());
        dependence(kind) != Some(Dependence::Kernel) && Interrupts::of(facts).known
    })
}

fn entries(contents: &Contents) -> Vec<InterruptsEntry> {
    places(contents).map(|(place, facts)| entry(contents, place, facts)).collect()
}

fn entry(contents: &Contents, place: &str, facts: &Facts) -> InterruptsEntry {
    let (all, threads) = (Interrupts::of(facts), Threads::of(facts));
    let measured: CpuSet = contents
        .rows
        .iter()
        .filter(|row| row.result.environment_key() == place)
        .flat_map(|row| row.result.series().iter().map(|series| series.key.cpu))
        .collect();
    let mut handling: BTreeMap<u32, Vec<&Thread>> = BTreeMap::new();
    for thread in threads.kernel() {
        if let Some(irq) = handled(&thread.name) {
            handling.entry(irq).or_default().push(thread);
        }
    }
    let scheduled = |thread: &&Thread| match thread.priority {
        0 => thread.policy.word().to_owned(),
        priority => format!("{} {priority}", thread.policy.word()),
    };
    let devices = all.active().map(|one| InterruptEntry {
        irq: one.irq,
        message: one.is_message(),
        chip: one.chip.clone(),
        handlers: one.actions.clone(),
        allowed: one.affinity.as_deref().map(ToString::to_string),
        effective: one.effective.as_deref().map(ToString::to_string),
        count: one.counts.values().fold(0, |sum: u64, of| sum.saturating_add(*of)),
        threads: handling.get(&one.irq).into_iter().flatten().map(scheduled).collect(),
    });
    InterruptsEntry {
        place: place.to_owned(),
        measured: measured.to_string(),
        devices: devices.collect(),
        posted: posted(facts, &all),
    }
}

/// The interrupt that a thread handles, by its name: `irq/26-eth0`.
fn handled(name: &str) -> Option<u32> {
    let number = name.strip_prefix("irq/")?;
    number.split('-').next()?.parse().ok()
}

/// Rows of /proc/interrupts that count notifications of posted interrupts (arch/x86/kernel/irq.c).
const POSTED: [&str; 3] = ["PIN", "NPI", "PIW"];

fn posted(facts: &Facts, all: &Interrupts) -> Option<PostedEntry> {
    let parameters = [("kvm_intel", "enable_apicv"), ("kvm_amd", "avic")];
    let parameter = parameters.into_iter().find_map(|(module, name)| {
        let value = facts.text(&format!("/sys/module/{module}/parameters/{name}"))?;
        Some(format!("{module}.{name}={}", value.trim()))
    })?;
    let rows = || POSTED.iter().filter_map(|name| all.internal.get(*name));
    let counted = rows().flat_map(|row| row.counts.values());
    let notified =
        rows().next().is_some().then(|| counted.fold(0, |sum: u64, count| sum.saturating_add(*count)));
    Some(PostedEntry { parameter, notified })
}

/// The CPUs at which it arrives; if they are unknown, those at which it may.
fn arrives(entry: &InterruptEntry) -> CpuSet {
    let parsed = |text: &Option<String>| text.as_ref().and_then(|text| text.parse::<CpuSet>().ok());
    let effective = parsed(&entry.effective).filter(|cpus| !cpus.is_empty());
    effective.or_else(|| parsed(&entry.allowed)).unwrap_or_default()
}

/// A row for each place.
fn summary(all: &[InterruptsEntry]) -> Table {
    let row = |entry: &InterruptsEntry| {
        let measured: CpuSet = entry.measured.parse().unwrap_or_default();
        let of =
            |which: &dyn Fn(&InterruptEntry) -> bool| entry.devices.iter().filter(|one| which(one)).count();
        let here = |one: &InterruptEntry| !arrives(one).and(&measured).is_empty();
        let threaded = of(&|one| !one.threads.is_empty());
        // A device whose CPUs are unknown is not counted as elsewhere.
        let unknown = of(&|one| one.allowed.is_none() && one.effective.is_none());
        let named = format!("CPU{} {measured}", if measured.len() == 1 { "" } else { "s" });
        let measured_there = match (measured.is_empty(), unknown) {
            (true, _) => NONE.to_owned(),
            (false, 0) => format!("{} ({})", of(&here), named),
            (false, unknown) if unknown == entry.devices.len() => "not known".to_owned(),
            (false, unknown) => format!("{} ({}), unknown for {unknown}", of(&here), named),
        };
        let posted = entry.posted.as_ref().map_or_else(
            || vec![NONE.to_owned()],
            |posted| {
                let counted = posted.notified.map(|notified| format!("{} notifications", count(notified)));
                std::iter::once(clean(&posted.parameter)).chain(counted).collect()
            },
        );
        vec![
            Cell::from(clean(&entry.place)),
            of(&|one| one.message).to_string().into(),
            of(&|one| !one.message).to_string().into(),
            of(&|one| !one.message && one.handlers.len() > 1).to_string().into(),
            measured_there.into(),
            threaded.to_string().into(),
            posted.into(),
        ]
    };
    let head = vec![
        Head::words("environment"),
        Head::number("messages"),
        Head::number("lines"),
        Head::number("shared lines"),
        Head::words("on measured CPUs"),
        Head::number("handled by a thread"),
        Head::words("posted interrupts"),
    ];
    Table::whole("", head, all.iter().map(row).collect())
}

/// The interrupts of a place, those first that arrive where it was measured.
fn devices(entry: &InterruptsEntry) -> Table {
    let measured: CpuSet = entry.measured.parse().unwrap_or_default();
    let mut order: Vec<(bool, &InterruptEntry)> =
        entry.devices.iter().map(|one| (arrives(one).and(&measured).is_empty(), one)).collect();
    order.sort_by_key(|(elsewhere, one)| (*elsewhere, one.irq));
    let said = |text: &Option<String>| text.as_deref().map_or_else(|| NONE.to_owned(), clean);
    let row = |(elsewhere, one): &(bool, &InterruptEntry)| {
        let handlers: Vec<String> = one.handlers.iter().map(|name| clean(name)).collect();
        let mut lands = vec![said(&one.effective)];
        if !elsewhere {
            lands.push("measured there".into());
        }
        let threads = if one.threads.is_empty() { NONE.to_owned() } else { one.threads.join(", ") };
        vec![
            Cell::from(one.irq.to_string()),
            if one.message { "message" } else { "line" }.to_owned().into(),
            clean(&one.chip).into(),
            handlers.join(", ").into(),
            said(&one.allowed).into(),
            lands.into(),
            threads.into(),
            count(one.count).into(),
        ]
    };
    let mut head =
        Head::all(["interrupt", "kind", "controller", "handlers", "allowed on", "arrives on", "threads"])
            .to_vec();
    head.push(Head::number("count"));
    Table {
        length: Length::Long,
        ..Table::whole(format!("Interrupts: {}", clean(&entry.place)), head, order.iter().map(row).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_told_by_its_interrupts_number() {
        assert_eq!(handled("irq/26-eth0-rx-0"), Some(26));
        assert_eq!(handled("irq/120-s-nvme0q1"), Some(120));
        for other in ["irq/", "irq/x-1", "irq_work/0", "ksoftirqd/0", "irq/99999999999-a"] {
            assert_eq!(handled(other), None, "{other}");
        }
    }
}
