//! A container of systemd-nspawn.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tactus_model::message::Note;
use tactus_model::plan::{self, PathKind};
use tactus_model::topology::Topology;
use tactus_model::undo::Undo;
use tactus_system::guardian::Promise;
use tactus_system::{Invocation, System, probe};

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
        "A container of systemd-nspawn: the probe as its only program, nspawn's capabilities and IPC_LOCK, \
no network, its CPUs as a cpuset where possible. The --cpu-affinity of nspawn is soft: programs inside can \
change it. The report notes where only that was possible. With `attach` a running container: the probe \
enters its namespaces and cgroups with its capabilities. Run as root."
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
                "no cpuset was possible: the CPUs of this container are its affinity, which programs inside \
                    can change",
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
    let say_so: Vec<u32> = pids.iter().copied().filter(|pid| is_nspawn_of(&line(*pid), name)).collect();
    let of_root = say_so.iter().copied().filter(|pid| is_roots_nspawn(*pid, system)).collect::<Vec<_>>();
    let refused = |reason| {
        let hint = "compare Uid and NSpid in /proc/PID/status and /proc/PID/exe: exactly one process must \
            belong to root";
        StartError { reason, hint: Some(hint.into()) }
    };
    let nspawn = match (&of_root[..], &say_so[..]) {
        ([one], _) => *one,
        ([], []) => {
            return Err(StartError {
                reason: format!("no running container `{name}` of systemd-nspawn was found here"),
                hint: Some("name a running one; `machinectl list` lists those that are registered".into()),
            });
        }
        ([], lies) => {
            return Err(refused(format!(
                "process {lies:?} claims to be the systemd-nspawn of `{name}`, but does not belong to root"
            )));
        }
        (several, _) => {
            return Err(refused(format!(
                "processes {several:?} all claim to be the systemd-nspawn of `{name}`"
            )));
        }
    };
    let is_first = |pid: &u32| {
        let stat = system.text(&format!("/proc/{pid}/stat")).unwrap_or_default();
        let numbers = status(*pid, "NSpid:", system).unwrap_or_default();
        let mut numbers = numbers.split_whitespace().rev();
        let inside = numbers.next();
        field(&stat, 4) == Some(u64::from(nspawn)) && inside == Some("1") && numbers.next().is_some()
    };
    pids.into_iter().find(is_first).ok_or_else(|| {
        refused(format!("the systemd-nspawn of `{name}` (process {nspawn}) has no container below it"))
    })
}

/// Whether a process is root's, of this machine and not of a container, and its program is systemd-nspawn. The
/// command line does not prove that: a process can choose it.
fn is_roots_nspawn(pid: u32, system: &dyn System) -> bool {
    let of_root =
        status(pid, "Uid:", system).is_some_and(|users| users.split_whitespace().all(|user| user == "0"));
    let of_here =
        status(pid, "NSpid:", system).is_some_and(|numbers| numbers.split_whitespace().count() == 1);
    let program = system.link(Path::new(&format!("/proc/{pid}/exe")));
    // "(deleted)" is added where the package was upgraded meanwhile.
    let real = program.is_ok_and(|path| {
        let path = path.to_string_lossy();
        Path::new(path.strip_suffix(" (deleted)").unwrap_or(&path))
            .file_name()
            .is_some_and(|file| file == PROGRAM)
    });
    of_root && of_here && real
}

/// A line of /proc/PID/status.
fn status(pid: u32, key: &str, system: &dyn System) -> Option<String> {
    let text = system.text(&format!("/proc/{pid}/status"))?;
    text.lines().find_map(|line| line.strip_prefix(key)).map(|value| value.trim().to_owned())
}

/// A field of /proc/PID/stat behind the name, as proc(5) numbers them.
fn field(stat: &str, number: usize) -> Option<u64> {
    // pid (comm) state ppid: the name may contain spaces and parentheses.
    stat.rsplit_once(") ")?.1.split_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
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

/// Starts the probe in a container that runs. nspawn has no command for it. A probe on this machine enters the
/// container's cgroups and namespaces, and gives up the privileges that its first process does not have. Only then
/// does it start again in the container, from memory. No file of the container is executed.
fn enter(setting: &Setting<'_>, name: &str) -> Result<Box<dyn Running>, StartError> {
    let system = setting.system;
    let pid = first_process(name, system)?;
    let stat = system.text(&format!("/proc/{pid}/stat")).unwrap_or_default();
    // Its number may be another's by the time it is entered.
    let Some(started) = field(&stat, 22) else {
        return Err(cannot(name, format!("its process {pid} cannot be read")));
    };
    if first_process(name, system)? != pid {
        return Err(cannot(name, "it was restarted meanwhile"));
    }
    let mut notes = Vec::new();
    if status(pid, "Seccomp:", system).is_some_and(|mode| mode != "0") {
        notes.push(Note::side_effect(
            "the container filters system calls (seccomp), but not those of the probe in it: a system call \
costs the probe a little less than the container's own programs",
        ));
    }
    let probe = probe::installed(system).map_err(|error| cannot("no probe", error))?;
    let delivered = attach::in_memory(setting);
    let words = [probe.display().to_string(), "enter".into(), pid.to_string(), started.to_string()];
    let words = words.into_iter().chain([delivered.inside.clone()]).collect();
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

    /// A machine with a systemd-nspawn of `plc`.
    fn machine(pid: u32, user: u32, numbers: &str, program: &str) -> Memory {
        Memory::new().nspawn(pid, user, numbers, program)
    }

    trait Nspawns {
        fn nspawn(self, pid: u32, user: u32, numbers: &str, program: &str) -> Self;
    }

    impl Nspawns for Memory {
        fn nspawn(self, pid: u32, user: u32, numbers: &str, program: &str) -> Self {
            let child = pid + 1;
            self.file(format!("/proc/{pid}/cmdline"), "systemd-nspawn\0-M\0plc\0")
                .file(
                    format!("/proc/{pid}/status"),
                    format!("Uid:\t{user}\t{user}\t{user}\t{user}\nNSpid:\t{numbers}\n"),
                )
                .links(format!("/proc/{pid}/exe"), program)
                .file(format!("/proc/{child}/cmdline"), "/sbin/init\0")
                .file(format!("/proc/{child}/status"), format!("NSpid:\t{child}\t1\n"))
                .file(format!("/proc/{child}/stat"), format!("{child} (a (b) c) S {pid} 11 11 0\n"))
        }
    }

    const REAL: &str = "/usr/bin/systemd-nspawn";

    #[test]
    fn the_first_process_is_what_machined_says_or_else_the_child_of_its_nspawn() {
        let machine = machine(10, 0, "10", REAL);
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

    #[test]
    fn who_only_says_that_he_is_a_container_of_nspawn_is_refused_by_name() {
        for (user, numbers, program) in [
            (65534, "10", REAL),
            (0, "10", "/usr/bin/python3"),
            (0, "10\t7", REAL),
            (0, "10", "/x/systemd-nspawn2"),
        ] {
            let error = first_process("plc", &machine(10, user, numbers, program)).unwrap_err();
            assert!(error.reason.contains("process [10] claims") && error.hint.is_some(), "{error}");
        }
        let beside = machine(10, 65534, "10", REAL).nspawn(20, 0, "20", REAL);
        assert_eq!(first_process("plc", &beside), Ok(21), "a lie beside the real one");
        let two = beside.nspawn(30, 0, "30", REAL);
        assert!(first_process("plc", &two).unwrap_err().reason.contains("[20, 30]"));
    }
}
