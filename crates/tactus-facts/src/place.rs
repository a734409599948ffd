//! Where this process is: cgroups, limits, container, the kernel's name.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};
use tactus_model::facts::{Facts, Reading};
use tactus_model::isolation;
use tactus_model::own_groups::own_groups;

use crate::Door;
use crate::files::{ABOVE_CGROUP, OF_CGROUP};
use crate::read::{Collector, of_process, refused, text};

/// Keeps all of it.
pub fn keep(it: &mut Collector, door: &Door) {
    keep_cgroup(it);
    isolation::look(it);
    keep_system(&mut it.facts, door);
    for name in ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"] {
        let link = fs::read_link(format!("/proc/self/ns/{name}"));
        it.keep_result(format!("namespace:{name}"), link.map(|link| link.to_string_lossy().into_owned()));
    }
    let kind = container();
    it.facts.0.insert("container:kind".into(), kind);
}

/// Readings of the cgroups that this process is in, and of those above them, as far as they are mounted in the usual places.
fn keep_cgroup(it: &mut Collector) {
    let Some(text) = it.facts.text("/proc/self/cgroup").map(str::to_owned) else { return };
    let mut seen: Vec<String> = Vec::new();
    for controller in ["cpu", "cpuset", "memory"] {
        for group in own_groups(&text, controller) {
            if seen.contains(&group.directory) {
                continue;
            }
            let is_own = text.lines().any(|line| line.ends_with(&format!(":{}", group.path)));
            let names = match (is_own, controller) {
                (true, _) => OF_CGROUP,
                (false, "cpuset") => continue,
                (false, _) => ABOVE_CGROUP,
            };
            for name in names {
                it.maybe(format!("{}/{name}", group.directory));
            }
            seen.push(group.directory);
        }
    }
}

impl isolation::Files for Collector {
    fn text(&mut self, path: &str) -> Option<String> {
        self.maybe(path.to_owned());
        self.facts.text(path).map(str::to_owned)
    }

    fn names(&mut self, directory: &str) -> Vec<String> {
        self.list(directory).to_vec()
    }

    fn keep(&mut self, name: &str, text: &str) {
        self.facts.keep(name, text);
    }
}

/// Keeps facts that are not files.
fn keep_system(facts: &mut Facts, door: &Door) {
    let uname = rustix::system::uname();
    for (name, text) in [
        ("uname:sysname", uname.sysname()),
        ("uname:nodename", uname.nodename()),
        ("uname:release", uname.release()),
        ("uname:version", uname.version()),
        ("uname:machine", uname.machine()),
    ] {
        facts.keep(name, text.to_string_lossy());
    }
    facts.keep("sched:affinity", door.allowed.to_string());
    if let Ok(nice) = rustix::process::getpriority_process(None) {
        facts.keep("sched:nice", nice.to_string());
    }
    for (name, resource) in [("limit:rtprio", Resource::Rtprio), ("limit:memlock", Resource::Memlock)] {
        let text = getrlimit(resource).current.map_or("unlimited".to_owned(), |limit| limit.to_string());
        facts.keep(name, text);
    }
    facts.keep("probe:version", door.version);
    facts.keep("probe:pid", std::process::id().to_string());
    facts.keep("probe:ppid", std::os::unix::process::parent_id().to_string());
    for (name, path) in [("device:kvm", "/dev/kvm"), ("device:msr", "/dev/cpu/0/msr")] {
        facts.keep(name, if Path::new(path).exists() { "present" } else { "absent" });
    }
}

/// The runtime of this container: systemd's word, PID 1's `container=`, the marks that engines leave.
fn container() -> Reading {
    if let Some(kind) = text("/run/systemd/container").filter(|kind| !kind.is_empty()) {
        return Reading::Text(kind);
    }
    let environment = of_process("/proc/1/environ");
    if let Ok(bytes) = &environment
        && let Some(kind) = of_environment(bytes)
    {
        return Reading::Text(kind);
    }
    // Images keep such marks when they become disks of virtual machines.
    if first_namespaces() {
        return Reading::Absent;
    }
    for (mark, kind) in [("/run/.containerenv", "podman"), ("/.dockerenv", "docker")] {
        if Path::new(mark).exists() {
            return Reading::Text(kind.into());
        }
    }
    environment.map_or_else(|error| refused(&error), |_| Reading::Absent)
}

/// Whether this process is in the namespaces that the kernel booted with: their numbers are fixed
/// (`PROC_PID_INIT_INO`, `PROC_CGROUP_INIT_INO` in include/linux/proc_ns.h).
fn first_namespaces() -> bool {
    [("pid", "pid:[4026531836]"), ("cgroup", "cgroup:[4026531835]")].iter().all(|(name, first)| {
        fs::read_link(format!("/proc/self/ns/{name}")).is_ok_and(|link| link.as_os_str() == *first)
    })
}

fn of_environment(bytes: &[u8]) -> Option<String> {
    let value = bytes.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(b"container="))?;
    Some(String::from_utf8_lossy(value).into_owned()).filter(|kind| !kind.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_processs_environment_names_the_container() {
        assert_eq!(of_environment(b"PATH=/bin\0container=podman\0TERM=x\0"), Some("podman".into()));
        assert_eq!(of_environment(b"PATH=/bin\0my_container=x\0container=\0"), None);
        assert_eq!(of_environment(b""), None);
    }
}
