//! The caches and the memory bandwidth of this machine, divided between the measured CPUs and the
//! others for as long as a scenario lasts (resctrl). Two groups are made and removed: the CPUs of a
//! group that is removed are the default group's again, so that nothing else has to be put back.

mod allocate;
mod resctrl_info;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use tactus_model::CpuSet;
use tactus_model::event::Event;
use tactus_model::message::Note;
use tactus_model::partition::{CacheUse, Partition, Phase};
use tactus_model::resctrl::ROOT;
use tactus_model::size::Bytes;
use tactus_model::undo::Undo;
use tactus_system::{Invocation, System};

use self::allocate::{Division, divide};
use self::resctrl_info::Offer;

/// How long mounting may take.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// A partition that is on. Dropping it takes it back, newest first.
pub(super) struct Divided<P> {
    promises: Vec<P>,
    /// The partition in words, for the reader.
    pub words: Vec<String>,
    groups: [(PathBuf, &'static str, CpuSet); 2],
    /// The least and the most that each group held of the cache, in bytes.
    held: [Option<(u64, u64)>; 2],
    before: CacheUse,
}

impl<P> Drop for Divided<P> {
    fn drop(&mut self) {
        while self.promises.pop().is_some() {}
    }
}

/// Divides the machine. `promise` writes down how something is taken back, before it is done; `id` is
/// the run's.
///
/// # Errors
/// Why it cannot be done, in words. Nothing is then left of it.
pub(super) fn make<P>(
    system: &dyn System,
    id: &str,
    wanted: Partition,
    measured: &CpuSet,
    online: &CpuSet,
    mut promise: impl FnMut(Undo) -> io::Result<P>,
) -> Result<Divided<P>, String> {
    let mut promised = |how| {
        promise(how).map_err(|error| format!("the guardian process of tactus cannot be reached: {error}"))
    };
    let directory = |part: &str| Path::new(ROOT).join(format!("tactus-{id}-{part}"));
    let mut divided = Divided {
        promises: Vec::new(),
        words: Vec::new(),
        groups: [
            (directory("measured"), "measured", measured.clone()),
            (directory("others"), "others", online.minus(measured)),
        ],
        held: [None; 2],
        before: CacheUse {
            phase: Phase::Before,
            group: "all".into(),
            cpus: online.clone(),
            occupancy_bytes: None,
            memory_bytes: None,
        },
    };
    if !system.exists(Path::new(&format!("{ROOT}info"))) {
        able(system)?;
        divided.promises.push(promised(Undo::Unmount(ROOT.trim_end_matches('/').into()))?);
        mount(system)?;
    }
    let offer = Offer::read(system);
    let level = offer.cache.as_ref().map_or(3, |cache| cache.level);
    let division = divide(&offer, wanted, measured, online, domains(system, level, measured).as_ref())?;
    divided.before = used(system, Path::new(ROOT), "all", online, Phase::Before);
    for (at, schemata, cpus) in
        [(0, &division.measured, &division.measured_cpus), (1, &division.others, &division.other_cpus)]
    {
        let group = divided.groups[at].0.clone();
        divided.promises.push(promised(Undo::RemoveEmpty(group.clone()))?);
        system.make_dir(&group).map_err(|error| told(system, &group, &error))?;
        if !schemata.is_empty() {
            write(system, &group.join("schemata"), schemata)?;
        }
        write(system, &group.join("cpus_list"), &format!("{cpus}\n"))?;
    }
    let Division { words, .. } = division;
    divided.words = words;
    Ok(divided)
}

impl<P> Divided<P> {
    /// The present use of the cache by every group.
    pub fn uses(&mut self, system: &dyn System) -> Vec<CacheUse> {
        let now = |(path, name, cpus): &(PathBuf, &str, CpuSet)| used(system, path, name, cpus, Phase::With);
        let uses: Vec<CacheUse> = self.groups.iter().map(now).collect();
        for (held, one) in self.held.iter_mut().zip(&uses) {
            if let Some(bytes) = one.occupancy_bytes {
                let (least, most) = held.unwrap_or((bytes, bytes));
                *held = Some((least.min(bytes), most.max(bytes)));
            }
        }
        uses
    }

    /// The use of the caches before the partition was made.
    pub const fn before(&self) -> &CacheUse {
        &self.before
    }

    /// Whether occupancy or traffic is counted here.
    pub const fn is_watched(&self) -> bool {
        self.before.occupancy_bytes.is_some() || self.before.memory_bytes.is_some()
    }

    /// Takes it back, and says what there is then (nothing where resctrl is unmounted again), and what
    /// there was in the meantime, in words.
    pub fn take_back(self, system: &dyn System) -> (CacheUse, Option<Note>) {
        let (cpus, held, before) = (self.before.cpus.clone(), self.held, self.before.occupancy_bytes);
        drop(self);
        let after = used(system, Path::new(ROOT), "all", &cpus, Phase::After);
        // Whole KiB are easier to read.
        let size = |bytes: u64| Bytes(bytes / 1024 * 1024).to_string();
        let at = |bytes: Option<u64>| bytes.map_or_else(|| "not known".into(), size);
        let note = held[0].zip(held[1]).map(|((least, most), (others_least, others_most))| {
            Note::info(format!(
                "the cache was held (llc_occupancy) before the partition by all CPUs: {}; with it by the measured CPUs: {} \
                 to {}, by the others: {} to {}; after it by all: {}",
                at(before),
                size(least),
                size(most),
                size(others_least),
                size(others_most),
                at(after.occupancy_bytes),
            ))
        });
        (after, note)
    }

    /// Notes for the reader of the result.
    pub fn notes(&self) -> Vec<Note> {
        let mut notes: Vec<Note> =
            self.words.iter().map(|words| Note::side_effect(format!("cache partition: {words}"))).collect();
        notes.push(if self.is_watched() {
            Note::side_effect(
                "the caches' use is read once a second (llc_occupancy, mbm_total_bytes): for each cache the kernel asks \
                 one of its CPUs, which may be a measured one",
            )
        } else {
            Note::info("this processor does not count who uses its caches (no llc_occupancy)")
        });
        notes
    }
}

/// The events of what was seen.
pub(super) fn seen(uses: Vec<CacheUse>) -> impl Iterator<Item = Event> {
    let counted = |one: &CacheUse| one.occupancy_bytes.is_some() || one.memory_bytes.is_some();
    uses.into_iter().filter(counted).map(Event::CacheUsed)
}

/// Whether this kernel and processor have resctrl at all.
fn able(system: &dyn System) -> Result<(), String> {
    let known = system.text("/proc/filesystems").unwrap_or_default();
    if known.split_whitespace().any(|word| word == "resctrl") {
        return Ok(());
    }
    Err("this machine cannot divide its caches: its kernel offers no resctrl, because the processor has neither cache \
         allocation nor bandwidth allocation (cat_l3, cat_l2, mba), or shows none to a guest; run on one that has it, \
         or leave out `partition`"
        .into())
}

fn mount(system: &dyn System) -> Result<(), String> {
    let words = ["mount", "-t", "resctrl", "resctrl", ROOT.trim_end_matches('/')];
    match system.run(&Invocation::new(words).within(PATIENCE)) {
        Ok(finished) if finished.code == Some(0) => Ok(()),
        Ok(finished) => {
            let words = String::from_utf8_lossy(&finished.stderr);
            Err(format!("resctrl cannot be mounted: {}", words.trim()))
        }
        Err(error) => Err(format!("resctrl cannot be mounted: {error}")),
    }
}

fn write(system: &dyn System, path: &Path, text: &str) -> Result<(), String> {
    system.write(path, text.as_bytes()).map_err(|error| told(system, path, &error))
}

/// An error with the kernel's own reason.
fn told(system: &dyn System, path: &Path, error: &io::Error) -> String {
    let status = system.text(&format!("{ROOT}info/last_cmd_status")).unwrap_or_default();
    let status = status.trim();
    let status = if status.is_empty() || status == "ok" { String::new() } else { format!(" ({status})") };
    format!("{}: {error}{status}", path.display())
}

/// The numbers of the caches of a level that belong to some CPUs; none where the kernel does not say.
fn domains(system: &dyn System, level: u32, cpus: &CpuSet) -> Option<BTreeSet<u32>> {
    let of = |cpu: u32| {
        (0..8).find_map(|index| {
            let dir = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
            let number = |file: &str| system.text(&format!("{dir}/{file}"))?.trim().parse::<u32>().ok();
            let kind = system.text(&format!("{dir}/type")).unwrap_or_default();
            (number("level") == Some(level) && kind.trim() != "Instruction").then(|| number("id")).flatten()
        })
    };
    cpus.iter().map(of).collect()
}

/// The use of a group, summed over all caches; `None` for a number that one of them does not report.
fn used(system: &dyn System, group: &Path, name: &str, cpus: &CpuSet, phase: Phase) -> CacheUse {
    let caches = system.list(&group.join("mon_data")).unwrap_or_default();
    let caches: Vec<PathBuf> = caches
        .into_iter()
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("mon_L3_")))
        .collect();
    let sum = |file: &str| -> Option<u64> {
        // `Unavailable` and `Error` are what the kernel writes where it cannot count.
        let read = |path: &PathBuf| {
            let bytes = system.read(&path.join(file)).ok()?;
            std::str::from_utf8(&bytes).ok()?.trim().parse::<u64>().ok()
        };
        (!caches.is_empty()).then(|| caches.iter().map(read).sum::<Option<u64>>()).flatten()
    };
    CacheUse {
        phase,
        group: name.into(),
        cpus: cpus.clone(),
        occupancy_bytes: sum("llc_occupancy"),
        memory_bytes: sum("mbm_total_bytes"),
    }
}
