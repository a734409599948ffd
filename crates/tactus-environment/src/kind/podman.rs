//! A Podman container.

use std::path::Path;

use tactus_model::message::Note;
use tactus_model::plan::{self, PathKind};
use tactus_model::topology::Topology;
use tactus_model::undo::{Tool, Undo};
use tactus_system::{Invocation, System};

use crate::network::file;
use crate::support::{
    self, Cgroups, DMA_LATENCY, ENGINE, Privileges, RtGroup, attach, container_name, engine,
};
use crate::{Environment, Layout, OptionError, OptionKey, Running, Setting, StartError, Usable};

/// See [`Environment::about`].
pub struct Podman;

/// The entry of the table.
pub static ENTRY: Podman = Podman;

/// CAP_SYS_RESOURCE: without it no limit can be raised, and Podman raises two by default.
const CAP_SYS_RESOURCE: u32 = 24;

/// Gives the ids of /etc/subuid to a container of a user who is not root.
const NEWUIDMAP: &str = "newuidmap";

/// Whether users have such ids: without any, Podman does without the program.
fn has_ids(system: &dyn System) -> bool {
    system.text("/etc/subuid").is_some_and(|ids| !ids.trim().is_empty())
}

impl Environment for Podman {
    fn kind(&self) -> &'static str {
        "podman"
    }

    fn about(&self) -> &'static str {
        "A Podman container whose whole image is the probe, with the capabilities that a real-time container \
needs (SYS_NICE, IPC_LOCK), its CPUs as a cpuset, no network and no log. Run as root; a rootless container \
can also be measured, within the user's limits. With `attach` a running container: the probe is executed in \
it as `podman exec` does, on the CPUs of its cpuset."
    }

    fn options(&self) -> &'static [OptionKey] {
        const OPTIONS: [OptionKey; 2] = [engine::USER, ENGINE];
        &OPTIONS
    }

    fn check(&self, spec: &plan::Environment, _system: &dyn System) -> Result<(), OptionError> {
        engine::check(spec)?;
        Privileges::of(spec).map(drop)
    }

    fn can_lie_inside(&self) -> bool {
        true
    }

    fn can_join(&self, path: PathKind) -> bool {
        !path.is_for_guests()
    }

    fn can_attach(&self) -> bool {
        true
    }

    fn attached(
        &self,
        spec: &plan::Environment,
        system: &dyn System,
        machine: &Topology,
    ) -> Result<Layout, StartError> {
        let name = spec.attach.as_deref().unwrap_or_default();
        let pid = engine::first_process(&["podman".into()], name, system)?;
        attach::layout(name, pid, system, machine)
    }

    fn usable(&self, system: &dyn System) -> Usable {
        if system.find_program("podman").is_none() {
            return Usable::No {
                reason: "podman is not installed".into(),
                remedy:
                    "install the packages podman and crun (Debian, Ubuntu: `apt-get install --no-install-recommends podman crun uidmap`; \
Fedora: `dnf install podman`; Arch: `pacman -S podman crun`)"
                        .into(),
            };
        }
        if !system.is_root() && has_ids(system) && system.find_program(NEWUIDMAP).is_none() {
            return Usable::No {
                reason: format!("{NEWUIDMAP} is not installed, but podman needs it for users other than root"),
                remedy: "install it (Debian, Ubuntu: `apt-get install uidmap`; Fedora: `dnf install shadow-utils`; \
Arch: `pacman -S shadow`), or run as root"
                    .into(),
            };
        }
        let remark = (!system.is_root()).then(|| {
            "rootless: real-time priority and locked memory are limited by the user's rtprio and memlock; \
run as root for what a real-time container gets"
                .to_owned()
        });
        Usable::Yes { remark }
    }

    fn start(&self, setting: &Setting<'_>) -> Result<Box<dyn Running>, StartError> {
        let system = setting.system;
        if setting.spec.attach.is_some() {
            return engine::execute(setting, &["podman".into()], |pid, words| {
                // A container without a separate cpu cgroup was started without that hierarchy, and the runtime finds
                // it again only without it.
                match RtGroup::of(system) {
                    Some(group) if system.is_root() && has_our_budget(pid, system) => group.wrap(words),
                    _ => words,
                }
            });
        }
        let name = container_name(setting);
        let root = support::rootfs(setting)?;
        let mut notes = Vec::new();
        let mut words: Vec<String> = [
            "podman",
            "run",
            "--rm",
            "-i",
            "--name",
            &name,
            // No log: with one, every frame of the probe is written to the disk.
            "--log-driver=none",
            "--no-hosts",
            "--cap-add=SYS_NICE",
            "--cap-add=IPC_LOCK",
        ]
        .map(str::to_owned)
        .into();
        words.push(match setting.network {
            None => "--network=none".into(),
            Some(place) => format!("--network=ns:{}", file(place.holder)),
        });
        let privileges = Privileges::checked(setting.spec);
        words.extend(privileges.words());
        notes.extend(privileges.note());
        let (marker, id) = setting.guardian.marker();
        words.push(format!("--env={marker}={id}"));
        if system.find_program("crun").is_some() {
            words.push("--runtime=crun".into());
        }
        if system.exists(Path::new(DMA_LATENCY)) && system.opens(Path::new(DMA_LATENCY)) {
            words.push(format!("--device={DMA_LATENCY}"));
        }
        if system.exists(Path::new("/sys/fs/selinux/enforce")) {
            // The root file system lies in our cache, which has no container label.
            words.push("--security-opt=label=disable".into());
        }
        words.extend(limits(system));
        match cpuset(setting) {
            Ok(cpus) => words.push(format!("--cpuset-cpus={cpus}")),
            Err(note) => notes.push(note),
        }
        words.extend(["--rootfs".to_owned(), root.display().to_string(), "/probe".to_owned()]);

        let mut hidden = Vec::new();
        if system.is_root()
            && let Some(group) = RtGroup::of(system)
        {
            notes.push(group.note());
            words = group.wrap(words);
            hidden = group.hidden;
        }
        let promise = support::promise(setting, Undo::Tool(Tool::PodmanContainer { name, hidden }))?;
        support::start(setting, Invocation::new(words), vec![promise], notes)
    }
}

/// Whether a process is in the same `cpu` cgroup as tactus.
fn has_our_budget(pid: u32, system: &dyn System) -> bool {
    let groups = Cgroups::of(system);
    groups.group(system, pid, "cpu") == groups.group(system, std::process::id(), "cpu")
}

/// Podman raises the number of files and processes by default, which fails where no limit may be raised. Then it is
/// given the present limits. But Podman first lowers its own limit of processes to pid_max, and may not raise it
/// again: so that one is capped.
fn limits(system: &dyn System) -> Vec<String> {
    if !system.is_root() || support::has_capability(system, CAP_SYS_RESOURCE) {
        return Vec::new();
    }
    let limits = system.text("/proc/self/limits").unwrap_or_default();
    let hard = |name: &str| -> Option<u64> {
        let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    let pids: Option<u64> = system.text("/proc/sys/kernel/pid_max").and_then(|text| text.trim().parse().ok());
    let files = hard("Max open files");
    let processes = hard("Max processes").map(|hard| hard.min(pids.unwrap_or(hard)));
    [("nofile", files), ("nproc", processes)]
        .into_iter()
        .filter_map(|(key, limit)| limit.map(|limit| format!("--ulimit={key}={limit}:{limit}")))
        .collect()
}

/// The container's CPUs as a cpuset, where this user may make one.
fn cpuset(setting: &Setting<'_>) -> Result<String, Note> {
    let system = setting.system;
    let cpus = setting.layout.outside().to_string();
    if system.is_root() {
        return Ok(cpus);
    }
    // Rootless Podman works in the user's own part of the tree, where systemd must have delegated it.
    let own = system.text("/proc/self/cgroup").unwrap_or_default();
    let path = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let user = path.split_inclusive('/').take_while(|part| !part.starts_with("app")).collect::<String>();
    let delegated = system.text(&format!("/sys/fs/cgroup/{user}cgroup.controllers")).unwrap_or_default();
    if delegated.split_whitespace().any(|controller| controller == "cpuset") {
        return Ok(cpus);
    }
    Err(Note::obstacle(
        "the cpuset controller is not delegated to this user: the container may use every CPU",
        "run as root, or delegate it: `systemctl edit user@.service`, with `Delegate=cpu cpuset io memory \
            pids` in `[Service]`",
    ))
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;

    #[test]
    fn a_user_without_newuidmap_is_told_what_to_install() {
        let user = || Memory::new().program("podman").file("/etc/subuid", "user:100000:65536\n");
        let Usable::No { reason, remedy } = ENTRY.usable(&user()) else { panic!("podman would fail") };
        assert!(
            reason.contains("newuidmap") && remedy.contains("apt-get install uidmap"),
            "{reason}: {remedy}"
        );
        let usable = |machine: Memory| matches!(ENTRY.usable(&machine), Usable::Yes { .. });
        assert!(usable(user().root()) && usable(user().program("newuidmap")));
        assert!(usable(Memory::new().program("podman")));
    }

    #[test]
    fn limits_are_only_given_where_they_cannot_be_raised() {
        let limits_file = "Limit                     Soft Limit           Hard Limit           Units     
Max processes             96365                96365                processes 
Max open files            1024                 20000                files     
";
        let machine = |caps: &str| {
            Memory::new()
                .root()
                .file("/proc/self/limits", limits_file)
                .file("/proc/sys/kernel/pid_max", "32768\n")
                .file("/proc/self/status", format!("CapEff:\t{caps}\n"))
        };
        assert_eq!(
            limits(&machine("000001fffeffffff")),
            ["--ulimit=nofile=20000:20000", "--ulimit=nproc=32768:32768"]
        );
        assert!(limits(&machine("000001ffffffffff")).is_empty());
    }
}
