//! The CPUs that the scheduler's balancing leaves out, and the source of that: the kernel's command line, or cgroups at
//! run time.
//!
//! `/sys/devices/system/cpu/isolated` only shows the setting at boot. Partitions of cgroup v2 are shown by the root's
//! `cpuset.cpus.isolated` since Linux 6.7, and by each cgroup's files since 6.1. Under v1 a CPU is in no scheduling
//! domain if no cpuset with it is balanced (`generate_sched_domains` in kernel/cgroup/cpuset.c).

use crate::cmdline::Cmdline;
use crate::cpus::{CpuSet, MAX_CPU};
use crate::facts::Facts;

/// CPUs that were isolated at boot.
pub const BOOT: &str = "/sys/devices/system/cpu/isolated";
/// CPUs of all isolated partitions.
pub const PARTITIONS: &str = "/sys/fs/cgroup/cpuset.cpus.isolated";
/// The reading that says that there are more cgroups than were looked at.
pub const LEFT_OUT: &str = "cgroups:left-out";

const V2: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
const V1: &str = "/sys/fs/cgroup/cpuset";
const KIND: &str = "cpuset.cpus.partition";
const EFFECTIVE: &str = "cpuset.cpus.effective";
const BALANCED: &str = "cpuset.sched_load_balance";
/// A file that only the first cpuset of the machine has: a container sees another one in its place.
const OF_ROOT: &str = "cpuset.memory_pressure_enabled";
/// A limit, because a user may make any number of cgroups.
const MOST_GROUPS: usize = 4096;

/// A cgroup and its CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its directory; of the own cgroup the path within its hierarchy.
    pub path: String,
    /// CPUs that its processes may use.
    pub cpus: CpuSet,
}

/// Isolated CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Isolated {
    /// By `isolcpus=`.
    pub at_boot: CpuSet,
    /// By cgroups.
    pub at_run_time: CpuSet,
    /// The isolated partitions that are known by name.
    pub partitions: Vec<Group>,
}

impl Isolated {
    /// Reads it out of facts of a machine with these CPUs.
    #[must_use]
    pub fn of(facts: &Facts, online: &CpuSet) -> Self {
        let set = |name: &str| {
            facts.text(name).and_then(|text| text.parse::<CpuSet>().ok()).unwrap_or_default().and(online)
        };
        let partition = |name: &str| {
            let path = name.strip_suffix(KIND)?.strip_suffix('/')?;
            // `isolated invalid (why)` is not a partition.
            (facts.text(name)? == "isolated")
                .then(|| Group { path: path.to_owned(), cpus: set(&format!("{path}/{EFFECTIVE}")) })
        };
        let partitions: Vec<Group> = facts
            .under("/sys/fs/cgroup/")
            .filter_map(|(name, _)| partition(name))
            .filter(|group| !group.cpus.is_empty())
            .collect();
        let named = partitions.iter().fold(set(PARTITIONS), |all, group| all.or(&group.cpus));
        Self { at_boot: set(BOOT), at_run_time: named.or(&unbalanced(facts, online)), partitions }
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> CpuSet {
        self.at_boot.or(&self.at_run_time)
    }
}

/// The isolated CPUs of a machine, in words for a reader; `None` if they are unknown.
#[must_use]
pub fn told(facts: &Facts) -> Option<String> {
    let online = facts.text("/sys/devices/system/cpu/online").and_then(|text| text.parse::<CpuSet>().ok());
    let isolated = Isolated::of(facts, &online.unwrap_or_else(|| (0..=MAX_CPU).collect()));
    let later = isolated.at_run_time.minus(&isolated.at_boot);
    match (isolated.at_boot.is_empty(), later.is_empty()) {
        (true, true) => facts.text(BOOT).map(str::to_owned),
        (false, true) => Some(isolated.at_boot.to_string()),
        (true, false) => Some(format!("{later} (by a cpuset)")),
        (false, false) => Some(format!("{} (at boot) and {later} (by a cpuset)", isolated.at_boot)),
    }
}

/// CPUs that are in no balanced cpuset of v1. None where one of these does not tell its CPUs.
fn unbalanced(facts: &Facts, online: &CpuSet) -> CpuSet {
    let text = |path: &str, name: &str| facts.text(&format!("{path}/{name}"));
    if text(V1, BALANCED) != Some("0") || text(V1, OF_ROOT).is_none() || facts.text(LEFT_OUT).is_some() {
        return CpuSet::default();
    }
    let mut rest = online.clone();
    for (name, _) in facts.under(V1) {
        let Some(path) = name.strip_suffix(BALANCED).and_then(|path| path.strip_suffix('/')) else {
            continue;
        };
        if text(path, BALANCED) == Some("0") {
            continue;
        }
        let cpus = text(path, "cpuset.effective_cpus").or_else(|| text(path, "cpuset.cpus"));
        match cpus.and_then(|cpus| cpus.parse::<CpuSet>().ok()) {
            Some(cpus) => rest = rest.minus(&cpus),
            None => return CpuSet::default(),
        }
    }
    rest
}

/// The cpuset that this process is in, and the CPUs that it may use.
#[must_use]
pub fn own_cpuset(facts: &Facts) -> Option<Group> {
    find_own(&mut |path| facts.text(path).map(str::to_owned))
}

fn find_own(text: &mut dyn FnMut(&str) -> Option<String>) -> Option<Group> {
    let table = text("/proc/self/cgroup")?;
    let line = |wanted: fn(&str) -> bool| {
        table.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            wanted(controllers).then_some(path)
        })
    };
    let (path, mounts, names): (_, &[&str], &[&str]) =
        match line(|names| names.split(',').any(|name| name == "cpuset")) {
            Some(path) => (path, &[V1], &["cpuset.effective_cpus", "cpuset.cpus"]),
            None => (line(str::is_empty)?, &V2, &[EFFECTIVE]),
        };
    // A path beyond what this process may see begins with `/..`.
    if !path.starts_with('/') || path.starts_with("/..") {
        return None;
    }
    // A group without the controller has the CPUs of the nearest one above with it.
    let mut at = path.trim_end_matches('/');
    loop {
        for mount in mounts {
            let mut lists = names.iter().filter_map(|name| text(&format!("{mount}{at}/{name}")));
            let cpus = lists.find_map(|list| list.parse().ok().filter(|cpus: &CpuSet| !cpus.is_empty()));
            if let Some(cpus) = cpus {
                return Some(Group { path: path.to_owned(), cpus });
            }
        }
        at = at.rsplit_once('/')?.0;
    }
}

/// Files of a system, which become readings as they are looked at.
pub trait Files {
    /// The text of a file; `None` if it cannot be read.
    fn text(&mut self, path: &str) -> Option<String>;
    /// The names in a directory.
    fn names(&mut self, directory: &str) -> Vec<String>;
    /// Keeps a reading of another name.
    fn keep(&mut self, name: &str, text: &str);
}

/// Reads the files of cgroups that [`Isolated::of`] and [`own_cpuset`] go by.
pub fn look(files: &mut dyn Files) {
    find_own(&mut |path| files.text(path));
    let mut left = MOST_GROUPS;
    let mut whole = true;
    for root in V2 {
        if files.text(&format!("{root}/cgroup.controllers")).is_some() {
            for name in ["cpuset.cpus.isolated", KIND, EFFECTIVE] {
                files.text(&format!("{root}/{name}"));
            }
            whole &= below(files, root, &mut left, partition);
        }
    }
    if files.text(&format!("{V1}/{OF_ROOT}")).is_some()
        && files.text(&format!("{V1}/{BALANCED}")).is_some_and(|text| text.trim() == "0")
    {
        whole &= below(files, V1, &mut left, cpuset);
    }
    if !whole {
        files.keep(LEFT_OUT, "more cgroups than were examined");
    }
}

/// Walks the groups below one. `open` reads a group, and says whether to walk it as well; `None`: it is not a group of
/// this kind. Returns whether all groups were read within the limit.
fn below(
    files: &mut dyn Files,
    root: &str,
    left: &mut usize,
    open: fn(&mut dyn Files, &str) -> Option<bool>,
) -> bool {
    let mut groups = vec![root.to_owned()];
    while let Some(group) = groups.pop() {
        for name in files.names(&group) {
            let child = format!("{group}/{name}");
            let Some(deeper) = open(files, &child) else { continue };
            if *left == 0 {
                return false;
            }
            *left -= 1;
            if deeper {
                groups.push(child);
            }
        }
    }
    true
}

/// A group of v2. A partition lies below another one, or below groups that hold its CPUs for it (since 6.7).
fn partition(files: &mut dyn Files, group: &str) -> Option<bool> {
    let kind = files.text(&format!("{group}/{KIND}"))?;
    if kind.trim() != "member" {
        files.text(&format!("{group}/{EFFECTIVE}"));
        return Some(true);
    }
    Some(files.text(&format!("{group}/cpuset.cpus.exclusive")).is_some_and(|cpus| !cpus.trim().is_empty()))
}

/// A cpuset of v1. Groups below a balanced one contain only CPUs of it, so they need not be read.
fn cpuset(files: &mut dyn Files, group: &str) -> Option<bool> {
    let balanced = files.text(&format!("{group}/{BALANCED}"))?;
    for name in ["cpuset.effective_cpus", "cpuset.cpus"] {
        files.text(&format!("{group}/{name}"));
    }
    Some(balanced.trim() == "0")
}

/// The last CPU that the machine may have: what `N` means in a kernel parameter.
#[must_use]
pub fn last_cpu(facts: &Facts) -> u32 {
    let list =
        |name: &str| facts.text(&format!("/sys/devices/system/cpu/{name}"))?.parse::<CpuSet>().ok()?.last();
    ["possible", "present", "online"].into_iter().find_map(list).unwrap_or(0)
}

/// Whether two values of a kernel parameter say the same: the same words in front, and the same CPUs, however these are
/// written.
#[must_use]
pub fn same_value(one: &str, other: &str, last: u32) -> bool {
    let read = |value| {
        let (mut words, list) = words(value);
        words.sort_unstable();
        let cpus = CpuSet::of_parameter(list, last).ok().filter(|cpus| !cpus.is_empty())?;
        Some((words, cpus))
    };
    one == other || read(one).is_some_and(|read_one| read(other) == Some(read_one))
}

/// The meaning of `isolcpus=` on a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Isolcpus {
    /// CPUs that are left out of the balancing.
    pub domain: CpuSet,
    /// CPUs that managed interrupts keep away from.
    pub managed_irq: CpuSet,
    /// Why the kernel does without one of these parameters.
    pub refused: Option<String>,
}

impl Isolcpus {
    /// Reads it as the kernel does (`housekeeping_isolcpus_setup` in kernel/sched/isolation.c), on a machine whose CPUs go
    /// from 0 to `last`.
    #[must_use]
    pub fn of(cmdline: &Cmdline, last: u32) -> Self {
        let mut it = Self::default();
        let mut first: Option<CpuSet> = None;
        for value in cmdline.all("isolcpus").flatten() {
            let (words, list) = words(value);
            let wrong = words.iter().find(|word| !word.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_'));
            let cpus = match (wrong, CpuSet::of_parameter(list, last)) {
                (Some(word), _) => Err(format!("it does not know `{word}`")),
                (None, Err(error)) => Err(error.to_string()),
                (None, Ok(cpus)) if cpus.is_empty() => Err("it names no CPU".to_owned()),
                (None, Ok(cpus)) => match &first {
                    Some(first) if *first != cpus => Err(format!("an earlier one has CPUs {first}")),
                    _ => Ok(cpus),
                },
            };
            match cpus {
                Err(why) => it.refused = Some(format!("the kernel refuses isolcpus={value}: {why}")),
                Ok(cpus) => {
                    let has = |name| words.contains(&name);
                    if has("managed_irq") {
                        it.managed_irq = cpus.clone();
                    }
                    if has("domain") || !["nohz", "managed_irq"].into_iter().any(has) {
                        it.domain = cpus.clone();
                    }
                    first = Some(cpus);
                }
            }
        }
        it
    }
}

/// The words in front of the list, each of which begins with a letter, and the list.
fn words(value: &str) -> (Vec<&str>, &str) {
    let (mut words, mut rest) = (Vec::new(), value);
    while rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
        let (word, more) = rest.split_once(',').unwrap_or((rest, ""));
        words.push(word);
        rest = more;
    }
    (words, rest)
}

#[cfg(test)]
mod tests;
