//! A container of systemd-nspawn.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tactus_model::message::Note;
use tactus_model::plan::{self, PathKind};
use tactus_model::topology::Topology;
use tactus_model::undo::Undo;
use tactus_system::guardian::Promise;
use tactus_system::{Invocation, System};

use crate::network::file;
use crate::support::{
    self, Cgroups, DMA_LATENCY, ENGINE, Hooks, Privileges, attach, cannot, container_name, groups,
};
use crate::{Environment, Layout, OptionError, OptionKey, Running, Setting, StartError, Usable};

/// See [`Environment::about`].
pub struct Nspawn;

/// The entry of the table.
pub static ENTRY: Nspawn = Nspawn;

const PROGRAM: &str = "systemd-nspawn";
/// Where systemd runs as init: only there can a scope have a cpuset.
const SYSTEMD: &str = "/run/systemd/system";
/// How long the tools may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

impl Environment for Nspawn {
    fn kind(&self) -> &'static str {
        "nspawn"
    }

    fn about(&self) -> &'static str {
        "A container of systemd-nspawn: the probe as its only program, nspawn's own capabilities and IPC_LOCK, no \
network, its CPUs as a cpuset where one can be had. nspawn's own --cpu-affinity is soft: what runs inside can take it \
back; where nothing better can be had the report says so. With `attach` a container that runs: the probe enters its \
namespaces and cgroups with its capabilities. Run as root."
    }

    fn options(&self) -> &'static [OptionKey] {
        const OPTIONS: [OptionKey; 1] = [ENGINE];
        &OPTIONS
    }

    fn check(&self, spec: &plan::Environment, _system: &dyn System) -> Result<(), OptionError> {
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

    fn usable(&self, system: &dyn System) -> Usable {
        if system.find_program(PROGRAM).is_none() {
            return Usable::No {
                reason: "systemd-nspawn is not installed".into(),
                remedy: "install the package systemd-container (Arch: it is part of systemd)".into(),
            };
        }
        if !system.is_root() {
            return Usable::No {
                reason: "systemd-nspawn needs root".into(),
                remedy: "run tactus as root (sudo), or use a rootless podman environment".into(),
            };
        }
        Usable::Yes { remark: None }
    }

    fn usable_as(&self, spec: &plan::Environment, system: &dyn System) -> Usable {
        if spec.attach.is_some() && system.find_program("nsenter").is_none() {
            return Usable::No {
                reason: "nsenter is not installed, by which a container of systemd-nspawn is entered".into(),
                remedy: "install the package util-linux".into(),
            };
        }
        self.usable(system)
    }

    fn attached(
        &self,
        spec: &plan::Environment,
        system: &dyn System,
        machine: &Topology,
    ) -> Result<Layout, StartError> {
        let name = spec.attach.as_deref().unwrap_or_default();
        attach::layout(name, first_process(name, system)?, system, machine)
    }

    fn start(&self, setting: &Setting<'_>) -> Result<Box<dyn Running>, StartError> {
        if let Some(name) = &setting.spec.attach {
            return enter(setting, name);
        }
        let system = setting.system;
        let root = support::rootfs(setting)?;
        // Without it nspawn takes the directory for no system at all.
        let empty = root.join("usr");
        system.make_dir(&empty).map_err(|error| cannot(&empty.display().to_string(), error))?;
        let name = container_name(setting);
        let (marker, id) = setting.guardian.marker();
        let cpus = setting.layout.outside();
        let mut words = vec![
            PROGRAM.to_owned(),
            "-q".into(),
            "--register=no".into(),
            "--console=pipe".into(),
            match setting.network {
                None => "--private-network".into(),
                Some(place) => format!("--network-namespace-path={}", file(place.holder)),
            },
            "--capability=CAP_IPC_LOCK".into(),
            format!("--machine={name}"),
            format!("--setenv={marker}={id}"),
            format!("--directory={}", root.display()),
        ];
        if system.exists(Path::new(DMA_LATENCY)) {
            words.push(format!("--bind={DMA_LATENCY}"));
        }
        let privileges = Privileges::checked(setting.spec);
        words.extend(privileges.capabilities().map(|name| format!("--capability={name}")));
        if privileges.unfiltered() {
            words.push("--system-call-filter=bpf perf_event_open".into());
        }
        let mut notes: Vec<Note> = privileges.note().into_iter().collect();
        let systemd = system.exists(Path::new(SYSTEMD));
        let own = Own::make(setting, &name, systemd)?;
        if !systemd {
            words.push("--keep-unit".into());
        }
        if systemd && !own.has_cpuset {
            words.push(format!("--property=AllowedCPUs={cpus}"));
        } else if !own.has_cpuset {
            words.push(format!("--cpu-affinity={cpus}"));
            notes.push(Note::obstacle(
                "no cpuset could be had: the CPUs of this container are its affinity, which what runs inside can take back",
                "boot with systemd, or enable the controller: echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control",
            ));
        }
        words.push("/probe".into());
        let words = groups::within(&own.groups, words);
        // nspawn removes it only after a good end.
        let propagate = Path::new("/run/systemd/nspawn/propagate").join(&name);
        let promise = support::promise(setting, Undo::Remove(propagate))?;
        // The lock is against a second container in the same directory, and stays behind after a kill.
        let command = Invocation::new(words).with_env(("SYSTEMD_NSPAWN_LOCK", "0"));
        let running = support::start(setting, command, vec![promise], notes)?;
        Ok(Hooks::new(running, || Ok(Vec::new()), own.promises))
    }
}

/// Cgroups of our own that the container lies in: nspawn makes its own below them.
struct Own {
    groups: Vec<PathBuf>,
    has_cpuset: bool,
    promises: Vec<Promise>,
}

impl Own {
    fn make(setting: &Setting<'_>, name: &str, systemd: bool) -> Result<Self, StartError> {
        let system = setting.system;
        let mounts = Cgroups::of(system);
        let mut own = Self { groups: Vec::new(), has_cpuset: false, promises: Vec::new() };
        // Where systemd runs, the other hierarchies are its own.
        let named = mounts.v1("name=systemd").filter(|_| !systemd);
        let unified = mounts.v2().filter(|_| !systemd);
        let cpuset = mounts.v1("cpuset");
        let dirs: Vec<PathBuf> =
            [cpuset, named, unified].into_iter().flatten().map(|m| m.join(name)).collect();
        if dirs.is_empty() {
            return Ok(own);
        }
        let inner = dirs.iter().flat_map(|dir| ["payload", "supervisor"].map(|part| dir.join(part)));
        own.promises = groups::promise_removal(setting, inner.chain(dirs.iter().cloned()))?;
        for dir in dirs {
            system.make_dir(&dir).map_err(|error| cannot(&dir.display().to_string(), error))?;
            own.groups.push(dir);
        }
        let cpus = setting.layout.outside().to_string();
        let set = |file: PathBuf, value: &str| {
            system.write(&file, value.as_bytes()).map_err(|error| cannot(&file.display().to_string(), error))
        };
        if let Some(mount) = cpuset {
            let mems = system.read(&mount.join("cpuset.mems")).unwrap_or_default();
            set(mount.join(name).join("cpuset.mems"), String::from_utf8_lossy(&mems).trim())?;
            set(mount.join(name).join("cpuset.cpus"), &cpus)?;
            own.has_cpuset = true;
        } else if let Some(dir) = unified.map(|mount| mount.join(name))
            && system.exists(&dir.join("cpuset.cpus"))
        {
            set(dir.join("cpuset.cpus"), &cpus)?;
            own.has_cpuset = true;
        }
        Ok(own)
    }
}

/// The first process of a container that runs, as this machine numbers it: from systemd-machined, else
/// the child of the systemd-nspawn of that name.
fn first_process(name: &str, system: &dyn System) -> Result<u32, StartError> {
    if system.exists(Path::new(SYSTEMD)) && system.find_program("machinectl").is_some() {
        let words = ["machinectl", "show", "--property=Leader", "--value", "--", name];
        let answer = system.run(&Invocation::new(words).within(ANSWER));
        let leader = answer.ok().filter(tactus_system::Finished::success);
        if let Some(pid) = leader.and_then(|answer| answer.text().trim().parse().ok()) {
            return Ok(pid);
        }
    }
    let processes = system.list(Path::new("/proc")).unwrap_or_default();
    let pids: Vec<u32> =
        processes.iter().filter_map(|path| path.file_name()?.to_str()?.parse().ok()).collect();
    let line = |pid: u32| {
        let bytes = system.read(Path::new(&format!("/proc/{pid}/cmdline"))).unwrap_or_default();
        String::from_utf8_lossy(&bytes).split('\0').map(str::to_owned).collect::<Vec<_>>()
    };
    let nspawn = pids.iter().copied().find(|pid| is_nspawn_of(&line(*pid), name));
    let child = nspawn.and_then(|parent| {
        pids.iter().copied().find(|pid| {
            let stat = system.text(&format!("/proc/{pid}/stat")).unwrap_or_default();
            // pid (comm) state ppid: the name may have spaces and parentheses of its own.
            let after = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
            after.split(' ').nth(1).and_then(|ppid| ppid.parse().ok()) == Some(parent)
        })
    });
    child.ok_or_else(|| StartError {
        reason: format!("no container `{name}` of systemd-nspawn runs here"),
        hint: Some("name one that runs; `machinectl list` lists those that are registered".into()),
    })
}

/// Whether a command line is that of the nspawn that runs this container.
fn is_nspawn_of(line: &[String], name: &str) -> bool {
    let Some((program, arguments)) = line.split_first() else { return false };
    if Path::new(program).file_name().is_none_or(|file| file != PROGRAM) {
        return false;
    }
    let value = |short: &str, long: &str| {
        arguments.iter().enumerate().find_map(|(at, word)| {
            if word == short || word == long {
                return arguments.get(at + 1).map(String::as_str);
            }
            let after = word.strip_prefix(long).and_then(|rest| rest.strip_prefix('='));
            after.or_else(|| {
                word.strip_prefix(short).filter(|rest| !rest.is_empty() && !word.starts_with("--"))
            })
        })
    };
    match (value("-M", "--machine"), value("-D", "--directory")) {
        (Some(machine), _) => machine == name,
        (None, Some(dir)) => Path::new(dir).file_name().is_some_and(|file| file == name),
        (None, None) => false,
    }
}

/// Starts the probe in a container that runs. nspawn has no command for it: the probe enters the
/// container's cgroups and namespaces and keeps no capability that the container's first process has not.
fn enter(setting: &Setting<'_>, name: &str) -> Result<Box<dyn Running>, StartError> {
    let system = setting.system;
    let pid = first_process(name, system)?;
    let status = system.text(&format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let Some(capabilities) = field("CapBnd:") else {
        return Err(cannot(name, format!("the capabilities of its process {pid} cannot be read")));
    };
    let mut notes = Vec::new();
    if field("Seccomp:").is_some_and(|mode| mode != "0") {
        notes.push(Note::side_effect(
            "the container filters system calls (seccomp); the probe in it is not filtered: a system call costs it a \
little less than it costs the container's own programs",
        ));
    }
    let delivered = attach::deliver(setting, pid)?;
    let target = pid.to_string();
    let words = ["nsenter", "--target", &target, "--all", "--root", "--wd", "--", &delivered.inside];
    let mut words: Vec<String> = words.map(str::to_owned).into();
    words.extend(["confined".to_owned(), "--capabilities".into(), capabilities.to_owned()]);
    let command = groups::within(&Cgroups::of(system).groups(system, pid), words);
    let running = support::start(setting, Invocation::new(command), Vec::new(), notes)?;
    Ok(attach::watched(setting, pid, running, delivered, Vec::new()))
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;

    fn line(words: &str) -> Vec<String> {
        words.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_container_is_known_by_its_machine_or_else_by_its_directory() {
        for (words, expected) in [
            ("/usr/bin/systemd-nspawn -q --machine=plc -D /x/other", true),
            ("systemd-nspawn -M plc -D /x", true),
            ("systemd-nspawn -Mplc -D /x", true),
            ("systemd-nspawn -D /var/lib/machines/plc", true),
            ("systemd-nspawn --directory=/var/lib/machines/plc --boot", true),
            ("systemd-nspawn --machine other -D /var/lib/machines/plc", false),
            ("systemd-nspawn", false),
            ("vim --machine=plc", false),
            ("", false),
        ] {
            assert_eq!(is_nspawn_of(&line(words), "plc"), expected, "{words}");
        }
    }

    #[test]
    fn the_first_process_is_what_machined_says_or_else_the_child_of_its_nspawn() {
        let machine = Memory::new()
            .file("/proc/10/cmdline", "systemd-nspawn\0-M\0plc\0")
            .file("/proc/11/cmdline", "/sbin/init\0")
            .file("/proc/11/stat", "11 (a (b) c) S 10 11 11 0\n");
        assert_eq!(first_process("plc", &machine), Ok(11));
        let error = first_process("other", &machine).unwrap_err();
        assert!(error.reason.contains("`other`") && error.hint.is_some());
        let registered = machine.program("machinectl").file("/run/systemd/system/x", "").answer(
            &["machinectl", "show"],
            0,
            "4711\n",
            "",
        );
        assert_eq!(first_process("plc", &registered), Ok(4711));
    }
}
