//! RT_GROUP_SCHED: on kernels that have it, every new v1 `cpu` cgroup has a real-time budget of 0, and
//! SCHED_FIFO is refused in it in spite of every capability.

use std::path::{Path, PathBuf};

use tactus_model::message::Note;
use tactus_model::undo::without_mounts;

use tactus_system::System;

/// The v1 cgroup mounts that a container tool must not see, so that it leaves the container in our
/// own `cpu` cgroup, which has a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RtGroup {
    /// See above.
    pub hidden: Vec<PathBuf>,
}

impl RtGroup {
    /// The obstacle on this machine, if there is one.
    pub fn of(system: &dyn System) -> Option<Self> {
        let mounts = system.text("/proc/self/mounts").or_else(|| system.text("/proc/mounts"))?;
        let mounts: Vec<Vec<&str>> = mounts.lines().map(|line| line.split(' ').collect()).collect();
        let cpu = mounts.iter().find_map(|mount| match mount[..] {
            [_, point, "cgroup", options, ..] if options.split(',').any(|option| option == "cpu") => {
                Some(Path::new(point))
            }
            _ => None,
        })?;
        // Only a kernel with RT_GROUP_SCHED has the file.
        if !system.exists(&cpu.join("cpu.rt_runtime_us")) {
            return None;
        }
        // crun refuses the hybrid layout when the v1 hierarchies are not complete; without the v2
        // mount it is no hybrid.
        let unified = mounts.iter().find_map(|mount| match mount[..] {
            [_, point, "cgroup2", ..] if point != "/sys/fs/cgroup" => Some(PathBuf::from(point)),
            _ => None,
        });
        Some(Self { hidden: std::iter::once(cpu.to_owned()).chain(unified).collect() })
    }

    /// The same command in a separate mount namespace without those mounts.
    pub fn wrap(&self, command: Vec<String>) -> Vec<String> {
        without_mounts(&self.hidden, command)
    }

    /// The note for the reader of the result.
    pub fn note(&self) -> Note {
        Self::note_of_a_move()
    }

    /// The same of a container that was moved after its start.
    pub fn note_of_a_move() -> Note {
        Note::side_effect(
            "this kernel gives every new v1 cpu cgroup a real-time budget of 0 (RT_GROUP_SCHED). So the \
container runs in the cpu cgroup of tactus, and its CPU shares and quota are not those of a container",
        )
    }
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;

    const HYBRID: &str = "tmpfs /sys/fs/cgroup tmpfs rw 0 0
cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0
cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0
";

    #[test]
    fn the_cpu_hierarchy_is_hidden_only_where_the_kernel_has_budgets() {
        let machine = Memory::new().file("/proc/self/mounts", HYBRID);
        assert_eq!(RtGroup::of(&machine), None);
        let group = RtGroup::of(&machine.file("/sys/fs/cgroup/cpu/cpu.rt_runtime_us", "950000")).unwrap();
        let words = group.wrap(vec!["podman".into(), "run".into()]);
        let mounts = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/unified"];
        assert_eq!(words[5..], ["sh", mounts[0], mounts[1], "--", "podman", "run"]);
    }

    #[test]
    fn cgroup_v2_has_no_such_budgets() {
        let mounts = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
        assert_eq!(RtGroup::of(&Memory::new().file("/proc/self/mounts", mounts)), None);
        assert_eq!(RtGroup::of(&Memory::new()), None);
        let hostile = Memory::new().file("/proc/self/mounts", "cgroup\n\n a b\n");
        assert_eq!(RtGroup::of(&hostile), None);
    }
}
