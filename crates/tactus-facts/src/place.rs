//! Where this process is: cgroups, limits, container, the kernel's name.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};
use tactus_model::facts::{Facts, Reading};
use tactus_model::isolation;

use crate::Door;
use crate::files::OF_CGROUP;
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

/// Readings of the cgroups that this process is in, as far as they are mounted in the usual places.
fn keep_cgroup(it: &mut Collector) {
    let Some(text) = it.facts.text("/proc/self/cgroup").map(str::to_owned) else { return };
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let mounts: &[&str] = match controllers {
            "" => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
            "cpu" | "cpu,cpuacct" => &["/sys/fs/cgroup/cpu"],
            "cpuset" => &["/sys/fs/cgroup/cpuset"],
            _ => continue,
        };
        let path = path.trim_end_matches('/');
        for mount in mounts {
            for name in OF_CGROUP {
                it.maybe(format!("{mount}{path}/{name}"));
            }
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

/// What is no file.
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

/// What runs this container: systemd's word, PID 1's `container=`, the marks that engines leave.
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
