//! Attaching to a container that runs: the probe is put in, started there, and taken out.
//!
//! The probe is one file. It goes into a directory of the container that is in memory, if there is one. So it also
//! gets into an image without a shell or with a read-only root, and nothing reaches a disk. Its name is removed as
//! soon as the probe has spoken, because a running program needs no name.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tactus_model::message::Note;
use tactus_model::topology::Topology;
use tactus_system::System;
use tactus_system::guardian::Promise;
use tactus_system::probe;

use super::{Cgroups, Hooks, cannot, container_name};
use crate::{Layout, Running, Setting, StartError};

/// How long the probe is looked for among the processes.
const SEARCH: Duration = Duration::from_secs(2);

/// The layout of a container that runs, from the cpuset of its first process.
///
/// # Errors
/// When that cannot be read.
pub fn layout(name: &str, pid: u32, system: &dyn System, machine: &Topology) -> Result<Layout, StartError> {
    let cpus = Cgroups::of(system).cpus(system, pid).map(|cpus| cpus.and(&machine.online));
    let Some(cpus) = cpus.filter(|cpus| !cpus.is_empty()) else {
        return Err(StartError {
            reason: format!("the CPUs of `{name}` cannot be read (process {pid})"),
            hint: Some("run tactus as root, on the machine that runs the container".into()),
        });
    };
    let best = cpus.and(&machine.measuring());
    let measuring = if best.is_empty() { cpus.clone() } else { best };
    Ok(Layout { cpus: cpus.iter().map(|cpu| (cpu, cpu)).collect(), measuring })
}

/// The probe within a container that runs.
pub struct Delivered {
    /// Its path as the container sees it, by which its process is called.
    pub inside: String,
    /// The promise to remove it; `None`: there is no file.
    promise: Option<Promise>,
}

/// The probe where it comes into the container as memory: there is no file, and only its process has a name.
pub fn in_memory(setting: &Setting<'_>) -> Delivered {
    Delivered { inside: format!("/.{}", container_name(setting)), promise: None }
}

/// Puts the probe into the container whose first process is `pid`.
///
/// # Errors
/// When no directory of it takes a program.
pub fn deliver(setting: &Setting<'_>, pid: u32) -> Result<Delivered, StartError> {
    let system = setting.system;
    let bytes = probe::own().map_err(|error| cannot("no probe", error))?;
    let file = format!(".{}", container_name(setting));
    let mounts = system.text(&format!("/proc/{pid}/mountinfo")).unwrap_or_default();
    let mut failures = Vec::new();
    for dir in places(&mounts) {
        let inside = dir.join(&file);
        let outside = through(pid, &inside);
        let promise = setting
            .guardian
            .promise(tactus_model::undo::Undo::Remove(outside.clone()))
            .map_err(|error| cannot("the guardian process of tactus cannot be reached", error))?;
        // A process that may mount in the container could replace one of these by a link meanwhile, which would lead
        // out.
        match system.install_beneath(&root(pid), beneath(&inside), bytes, 0o755) {
            Ok(()) => return Ok(Delivered { inside: inside.display().to_string(), promise: Some(promise) }),
            Err(error) => failures.push(format!("{}: {error}", dir.display())),
        }
    }
    let reason = match failures.is_empty() {
        true => "no directory in it allows to write and execute a file".to_owned(),
        false => failures.join(", "),
    };
    Err(StartError {
        reason: format!(
            "the probe cannot be put into `{}`: {reason}",
            setting.spec.attach.as_deref().unwrap_or_default()
        ),
        hint: Some(if system.is_root() {
            "give it a tmpfs of 2 MiB that may contain programs, for example on /run".into()
        } else {
            "run tactus as root, or as the user who runs the container".into()
        }),
    })
}

/// A path of a process's own file system, as seen from here.
fn through(pid: u32, inside: &Path) -> PathBuf {
    root(pid).join(beneath(inside))
}

/// The root of a process's own file system, as seen from here.
fn root(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string()).join("root")
}

fn beneath(inside: &Path) -> &Path {
    inside.strip_prefix("/").unwrap_or(inside)
}

/// Directories that may hold a program for a moment, from a table of mounts: those in memory, the
/// root last. Only mount points: what is no mount point may be a link that leads out of the container.
fn places(mountinfo: &str) -> Vec<PathBuf> {
    const IN_MEMORY: [&str; 3] = ["/dev", "/run", "/tmp"];
    let mut found: Vec<(usize, PathBuf)> = Vec::new();
    for line in mountinfo.lines() {
        // 85 84 0:40 / /dev rw,relatime shared:3 - tmpfs none rw,size=492k
        let Some((mount, source)) = line.split_once(" - ") else { continue };
        let (mount, source): (Vec<&str>, Vec<&str>) =
            (mount.split(' ').collect(), source.split(' ').collect());
        let ([_, _, _, _, point, options, ..], [kind, ..]) = (&mount[..], &source[..]) else { continue };
        let all = source.get(2).copied().unwrap_or_default();
        let has = |word: &str| options.split(',').chain(all.split(',')).any(|option| option == word);
        let rank = match (*kind, IN_MEMORY.iter().position(|place| place == point)) {
            ("tmpfs", Some(rank)) => rank,
            _ if *point == "/" => IN_MEMORY.len(),
            _ => continue,
        };
        // A later mount lies over an earlier one.
        found.retain(|(other, _)| *other != rank);
        if !has("ro") && !has("noexec") {
            found.push((rank, (*point).into()));
        }
    }
    found.sort();
    found.into_iter().map(|(_, place)| place).collect()
}

/// Watches over a probe that was delivered and started: says where it has come to lie and takes its file, if it has one,
/// away once it runs. `pid` is the first process of the container.
pub fn watched(
    setting: &Setting<'_>,
    pid: u32,
    running: Box<dyn Running>,
    delivered: Delivered,
    promises: Vec<Promise>,
) -> Box<dyn Running> {
    let system = setting.system.share();
    let settle = move || {
        let mut notes = look(&delivered.inside, pid, &*system);
        // It runs: its file is no longer needed, and need not be found if the container ends first.
        if let Some(Err(error)) = delivered.promise.map(Promise::revert) {
            notes.push(Note::obstacle(
                format!("{} could not be removed from the container: {error}", delivered.inside),
                "tactus tries again at the end of the run",
            ));
        }
        Ok(notes)
    };
    Hooks::new(running, settle, promises)
}

/// Notes on the cgroups in which the probe was found.
fn look(path: &str, container: u32, system: &dyn System) -> Vec<Note> {
    let groups = Cgroups::of(system);
    let found = started_from(path, system);
    let Some(probe) = found.first().copied() else {
        return vec![Note::obstacle(
            "the probe was not found among the processes of this machine: it is unknown whether it is in the \
container's cgroups",
            "run tactus as root, on the machine that runs the container",
        )];
    };
    let mut notes = Vec::new();
    // The name of a process proves nothing: any process in the container can take the probe's name.
    let lies = |pid| ["cpuset", "cpu"].map(|name| groups.group(system, pid, name));
    if found.iter().any(|other| lies(*other) != lies(probe)) {
        return vec![Note::obstacle(
            format!(
                "{} processes of different cgroups claim to be the probe: it is unknown whether it is in the \
container's",
                found.len()
            ),
            "a process in the container has the probe's name: compare /proc/PID/exe and /proc/PID/cgroup",
        )];
    }
    let mut differ = vec!["cpuset", "cpu"];
    differ.retain(|name| groups.group(system, probe, name) != groups.group(system, container, name));
    if !differ.is_empty() {
        notes.push(Note::obstacle(
            format!("the probe is not in the container's own cgroup ({})", differ.join(", ")),
            "its CPUs or its budget may differ from the container's: compare /proc/PID/cgroup",
        ));
    }
    if groups.rt_runtime_us(system, probe) == Some(0) {
        notes.push(Note::obstacle(
            "this kernel gives the container's v1 cpu cgroup a real-time budget of 0 (RT_GROUP_SCHED), and \
refuses SCHED_FIFO in it",
            "start the container with a budget (docker, runc: --cpu-rt-runtime=800000 below a --cgroup-parent that has \
one), or boot with cgroup v2",
        ));
    }
    notes
}

/// The processes that say that they were started from a file that nothing else is started from.
fn started_from(path: &str, system: &dyn System) -> Vec<u32> {
    let until = Instant::now() + SEARCH;
    loop {
        let processes = system.list(Path::new("/proc")).unwrap_or_default();
        let pids = processes.iter().filter_map(|process| process.file_name()?.to_str()?.parse().ok());
        let says = |pid: &u32| {
            let line = system.read(Path::new(&format!("/proc/{pid}/cmdline"))).unwrap_or_default();
            line.split(|byte| *byte == 0).next() == Some(path.as_bytes())
        };
        let found: Vec<u32> = pids.filter(says).collect();
        if !found.is_empty() || Instant::now() > until {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use tactus_model::facts::Facts;

    use super::*;

    const LXC: &str = "84 49 254:0 /x/rootfs / rw,relatime shared:2 - ext4 /dev/vda rw,discard
85 84 0:40 / /dev rw,relatime shared:3 - tmpfs none rw,size=492k,mode=755
86 84 0:41 / /proc rw,nosuid,nodev,noexec,relatime shared:8 - proc proc rw
";

    #[test]
    fn memory_comes_before_the_root_and_links_are_never_followed() {
        assert_eq!(places(LXC), [Path::new("/dev"), Path::new("/")]);
        assert_eq!(places(""), [] as [&Path; 0]);
    }

    #[test]
    fn what_is_read_only_or_holds_no_programs_is_left_out() {
        let table = "1 0 0:1 / / ro,relatime - overlay overlay rw\n2 1 0:2 / /dev rw,noexec - tmpfs t rw\n\
3 1 0:3 / /tmp rw - tmpfs t rw\n4 1 0:4 / /run rw - tmpfs t rw\n5 1 0:4 / /run ro - tmpfs t rw\n";
        assert_eq!(places(table), [Path::new("/tmp")]);
    }

    #[test]
    fn a_process_that_goes_by_the_probes_name_in_another_group_is_not_taken_for_it_and_said() {
        let group = |name: &str| format!("0::/{name}\n");
        let machine = tactus_system::Memory::new()
            .file("/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
            .file("/proc/7/cgroup", group("box"))
            .file("/proc/20/cmdline", "/run/probe\0")
            .file("/proc/20/cgroup", group("elsewhere"));
        let alone = look("/run/probe", 7, &machine);
        assert!(
            alone.iter().any(|note| note.text.contains("not in the container's own cgroup")),
            "{alone:?}"
        );
        let machine = machine.file("/proc/19/cmdline", "/run/probe\0").file("/proc/19/cgroup", group("box"));
        let notes = look("/run/probe", 7, &machine);
        assert!(notes[0].text.contains("2 processes of different cgroups") && notes.len() == 1, "{notes:?}");
        let machine = machine.file("/proc/20/cgroup", group("box"));
        assert_eq!(look("/run/probe", 7, &machine), [], "the probe and what it has started");
    }

    #[test]
    fn a_layout_is_that_of_the_container_and_not_of_the_machine() {
        let machine = tactus_system::Memory::new().file("/proc/7/status", "Cpus_allowed_list:\t2-3\n");
        let mut facts = Facts::default();
        facts.keep("/sys/devices/system/cpu/online", "0-3");
        facts.keep("/sys/devices/system/cpu/isolated", "3");
        let found = layout("x", 7, &machine, &Topology::of(&facts)).unwrap();
        assert_eq!(found.cpus, [(2, 2), (3, 3)]);
        assert_eq!(found.measuring.to_string(), "3");
        let error = layout("x", 8, &machine, &Topology::of(&facts)).unwrap_err();
        assert!(error.reason.contains("`x`") && error.hint.is_some(), "{error}");
    }

    proptest! {
        #[test]
        fn no_table_of_mounts_is_too_strange(table in "([0-9a-z/:, -]|\n){0,300}") {
            for place in places(&table) {
                prop_assert!(place.is_absolute());
            }
        }
    }
}
