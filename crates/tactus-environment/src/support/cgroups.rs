//! Where the groups of processes lie that the kernel divides the machine by.

use std::path::{Path, PathBuf};

use tactus_model::CpuSet;

use tactus_system::System;

/// The hierarchies of cgroups that are mounted on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroups {
    /// Those of v1: mount point, and its controllers or `name=...`.
    v1: Vec<(PathBuf, Vec<String>)>,
    /// That of v2.
    v2: Option<PathBuf>,
}

impl Cgroups {
    /// The mounts of the hierarchies.
    pub fn of(system: &dyn System) -> Self {
        let mounts = system.text("/proc/self/mounts").unwrap_or_default();
        let mut found = Self::default();
        for line in mounts.lines() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                [_, point, "cgroup", options, ..] => {
                    let words = options.split(',').map(str::to_owned).collect();
                    found.v1.push((point.into(), words));
                }
                [_, point, "cgroup2", ..] if found.v2.is_none() => found.v2 = Some(point.into()),
                _ => {}
            }
        }
        found
    }

    /// Every mount point.
    pub fn mounts(&self) -> impl Iterator<Item = &Path> {
        self.v1.iter().map(|(point, _)| point.as_path()).chain(self.v2.as_deref())
    }

    /// The mount point of a v1 hierarchy.
    pub fn v1(&self, controller: &str) -> Option<&Path> {
        let has = |words: &Vec<String>| words.iter().any(|word| word == controller);
        self.v1.iter().find(|(_, words)| has(words)).map(|(point, _)| point.as_path())
    }

    /// The mount point of the v2 hierarchy.
    pub fn v2(&self) -> Option<&Path> {
        self.v2.as_deref()
    }

    /// The directories of the groups that a process is in, one for each hierarchy.
    pub fn groups(&self, system: &dyn System, pid: u32) -> Vec<PathBuf> {
        let lines = system.text(&format!("/proc/{pid}/cgroup")).unwrap_or_default();
        lines.lines().filter_map(|line| self.directory(line)).map(|(_, dir)| dir).collect()
    }

    /// The directory of a process's group for a controller, in v1 where it is there, else in v2.
    pub fn group(&self, system: &dyn System, pid: u32, controller: &str) -> Option<PathBuf> {
        let lines = system.text(&format!("/proc/{pid}/cgroup"))?;
        let groups: Vec<_> = lines.lines().filter_map(|line| self.directory(line)).collect();
        let named = groups.iter().find(|(names, _)| names.split(',').any(|name| name == controller));
        let unified = || groups.iter().find(|(names, _)| names.is_empty());
        named.or_else(unified).map(|(_, dir)| dir.clone())
    }

    /// A line of `/proc/PID/cgroup`: `4:cpu,cpuacct:/path`, `1:name=systemd:/path` or `0::/path`.
    fn directory<'l>(&self, line: &'l str) -> Option<(&'l str, PathBuf)> {
        let (_, rest) = line.split_once(':')?;
        let (names, path) = rest.split_once(':')?;
        let point = match names.split(',').next() {
            Some("") | None => self.v2()?,
            Some(name) => self.v1(name)?,
        };
        // A path beyond what this process may see begins with `/..`.
        (path.starts_with('/') && !path.starts_with("/..")).then(|| (names, point.join(&path[1..])))
    }

    /// The CPUs that a process may use: those of its cpuset, not its own affinity.
    pub fn cpus(&self, system: &dyn System, pid: u32) -> Option<CpuSet> {
        let set = |path: &Path, name: &str| -> Option<CpuSet> {
            let bytes = system.read(&path.join(name)).ok()?;
            let set: CpuSet = String::from_utf8_lossy(&bytes).trim().parse().ok()?;
            (!set.is_empty()).then_some(set)
        };
        let effective = |dir: &Path| {
            // Of v2 and v1; a v1 group without the effective set has the other.
            ["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"]
                .iter()
                .find_map(|name| set(dir, name))
        };
        let group = self.group(system, pid, "cpuset");
        // A v2 group without the controller has the CPUs of the first one above that has it.
        let found = group.as_deref().and_then(|group| {
            group.ancestors().take_while(|dir| self.mounts().any(|m| dir.starts_with(m))).find_map(effective)
        });
        found.or_else(|| {
            let status = system.text(&format!("/proc/{pid}/status"))?;
            let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
            list.trim().parse().ok()
        })
    }

    /// The real-time budget of the v1 `cpu` group of a process, in us per period; `None` where the
    /// kernel has no such budgets.
    pub fn rt_runtime_us(&self, system: &dyn System, pid: u32) -> Option<i64> {
        self.v1("cpu")?;
        let group = self.group(system, pid, "cpu")?;
        let text = system.read(&group.join("cpu.rt_runtime_us")).ok()?;
        String::from_utf8_lossy(&text).trim().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tactus_system::Memory;

    use super::*;

    const HYBRID: &str = "cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0
";

    #[test]
    fn the_cpus_are_those_of_the_cpuset_and_not_an_affinity_within_it() {
        let machine = Memory::new()
            .file("/proc/self/mounts", HYBRID)
            .file("/proc/7/cgroup", "3:cpuset:/docker/abc\n1:cpu,cpuacct:/docker/abc\n0::/docker/abc\n")
            .file("/proc/7/status", "Cpus_allowed_list:\t2\n")
            .file("/sys/fs/cgroup/cpuset/docker/abc/cpuset.effective_cpus", "2-3\n")
            .file("/sys/fs/cgroup/cpu/docker/abc/cpu.rt_runtime_us", "0\n");
        let groups = Cgroups::of(&machine);
        assert_eq!(groups.cpus(&machine, 7).unwrap().to_string(), "2,3");
        assert_eq!(groups.rt_runtime_us(&machine, 7), Some(0));
        assert_eq!(groups.groups(&machine, 7).len(), 3);
        assert_eq!(groups.cpus(&machine, 8), None, "there is no such process");
    }

    #[test]
    fn a_v2_group_without_the_controller_has_the_cpus_of_the_one_above() {
        let machine = Memory::new()
            .file("/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
            .file("/proc/7/cgroup", "0::/machine.slice/a.scope/payload\n")
            .file("/sys/fs/cgroup/machine.slice/cpuset.cpus.effective", "4-5\n")
            .file("/sys/fs/cgroup/cpuset.cpus.effective", "0-7\n");
        let groups = Cgroups::of(&machine);
        assert_eq!(groups.cpus(&machine, 7).unwrap().to_string(), "4,5");
        assert_eq!(groups.rt_runtime_us(&machine, 7), None);
    }

    #[test]
    fn without_cgroups_the_affinity_is_what_is_known() {
        let machine = Memory::new().file("/proc/7/status", "Name:\tx\nCpus_allowed_list:\t0-1\n");
        assert_eq!(Cgroups::of(&machine).cpus(&machine, 7).unwrap().to_string(), "0,1");
    }

    proptest! {
        #[test]
        fn no_table_of_mounts_or_groups_is_too_strange(mounts in "(.|\n){0,200}", lines in "(.|\n){0,200}") {
            let machine =
                Memory::new().file("/proc/self/mounts", mounts + "\n" + HYBRID).file("/proc/7/cgroup", lines);
            let groups = Cgroups::of(&machine);
            let _ = (groups.cpus(&machine, 7), groups.groups(&machine, 7), groups.rt_runtime_us(&machine, 7));
        }
    }
}
