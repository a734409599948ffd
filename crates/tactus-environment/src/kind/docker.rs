//! A Docker container.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tactus_model::message::Note;
use tactus_model::plan::{self, PathKind};
use tactus_model::topology::Topology;
use tactus_model::undo::{Tool, Undo};
use tactus_system::probe;
use tactus_system::{Invocation, System};

use crate::network;
use crate::support::{
    self, Cgroups, DMA_LATENCY, ENGINE, Hooks, Privileges, attach, cannot, container_name, engine, tar,
};
use crate::{Environment, Layout, OptionError, OptionKey, Running, Setting, StartError, Usable};

/// See [`Environment::about`].
pub struct Docker {
    /// The images that runs of this process have imported.
    imported: Mutex<BTreeSet<String>>,
}

/// The entry of the table.
pub static ENTRY: Docker = Docker { imported: Mutex::new(BTreeSet::new()) };

const SOCKET: &str = "/var/run/docker.sock";
const HOST_HINT: &str = "the daemon's socket on this machine, as \"unix:///var/run/docker.sock\"";
/// How long the daemon may take to answer.
const ANSWER: Duration = Duration::from_secs(10);
/// How long it may take to import the probe.
const IMPORT: Duration = Duration::from_secs(60);

impl Environment for Docker {
    fn kind(&self) -> &'static str {
        "docker"
    }

    fn about(&self) -> &'static str {
        "A Docker container whose whole image is the probe. The image is imported for the run and removed \
after it. The container has the capabilities that a real-time container needs (SYS_NICE, IPC_LOCK), its CPUs \
as a cpuset, no network and no log. With `attach` a running container: the probe is executed in it as \
`docker exec` does, on the CPUs of its cpuset."
    }

    fn options(&self) -> &'static [OptionKey] {
        const OPTIONS: [OptionKey; 3] = [
            OptionKey {
                name: "host",
                about: "the daemon's socket, as unix:///run/user/1000/docker.sock; default: DOCKER_HOST, \
else the daemon of the system",
            },
            engine::USER,
            ENGINE,
        ];
        &OPTIONS
    }

    fn check(&self, spec: &plan::Environment, _system: &dyn System) -> Result<(), OptionError> {
        engine::check(spec)?;
        Privileges::of(spec)?;
        match support::text(spec, "host", HOST_HINT)? {
            Some(host) if !host.starts_with("unix:///") => Err(OptionError {
                key: "host".into(),
                message: format!("`host` cannot be {host:?}: only a daemon of this machine can be measured"),
                hint: HOST_HINT.into(),
            }),
            _ => Ok(()),
        }
    }

    fn can_join(&self, path: PathKind) -> bool {
        !path.is_for_guests()
    }

    fn can_attach(&self) -> bool {
        true
    }

    fn usable(&self, system: &dyn System) -> Usable {
        self.usable_as(&plan::Environment::default(), system)
    }

    fn usable_as(&self, spec: &plan::Environment, system: &dyn System) -> Usable {
        let no = |reason: String, remedy: &str| Usable::No { reason, remedy: remedy.into() };
        if system.find_program("docker").is_none() {
            return no(
                "docker is not installed".into(),
                "install it (Debian, Ubuntu: `apt-get install docker.io`; Fedora: `dnf install moby-engine`; Arch: \
`pacman -S docker`) and start its daemon",
            );
        }
        let host = match host(spec, system) {
            Ok(host) => host,
            Err(error) => return no(error.reason, &error.hint.unwrap_or_default()),
        };
        let start = "start it (`systemctl start docker`), or give the socket of another one: `host = \
                \"unix:///...\"`";
        let socket = host.trim_start_matches("unix://");
        if !system.exists(Path::new(socket)) {
            return no(format!("no Docker daemon runs here: {socket} does not exist"), start);
        }
        let asked = ["docker", "-H", &host, "version", "--format", "{{.Server.Version}}"];
        match system.run(&Invocation::new(asked).within(ANSWER)) {
            Ok(answer) if answer.success() => Usable::Yes { remark: None },
            Ok(answer) if answer.words().contains("permission denied") => no(
                format!("this user may not use {socket}"),
                "run tactus as root, or as a member of the group docker",
            ),
            Ok(answer) => no(format!("no Docker daemon answers at {socket}: {}", answer.words()), start),
            Err(error) => no(format!("no Docker daemon answers at {socket}: {error}"), start),
        }
    }

    fn attached(
        &self,
        spec: &plan::Environment,
        system: &dyn System,
        machine: &Topology,
    ) -> Result<Layout, StartError> {
        let name = spec.attach.as_deref().unwrap_or_default();
        let pid = engine::first_process(&client(spec, system)?, name, system)?;
        attach::layout(name, pid, system, machine)
    }

    fn start(&self, setting: &Setting<'_>) -> Result<Box<dyn Running>, StartError> {
        let system = setting.system;
        let client = client(setting.spec, system)?;
        if setting.spec.attach.is_some() {
            return engine::execute(setting, &client, |_, words| words);
        }
        let image = self.import(setting, &client)?;
        let name = container_name(setting);
        let (marker, id) = setting.guardian.marker();
        let mut words = client.clone();
        let run = ["run", "--rm", "-i", "--pull=never", "--log-driver=none", "--network=none"];
        words.extend(run.map(str::to_owned));
        words.extend(["--cap-add=SYS_NICE", "--cap-add=IPC_LOCK"].map(str::to_owned));
        let privileges = privileges(setting, &client);
        words.extend(privileges.words());
        words.push(format!("--name={name}"));
        words.push(format!("--env={marker}={id}"));
        words.push(format!("--cpuset-cpus={}", setting.layout.outside()));
        if system.exists(Path::new(DMA_LATENCY)) {
            words.push(format!("--device={DMA_LATENCY}"));
        }
        words.push(image);
        let promise = support::promise(
            setting,
            Undo::Tool(Tool::DockerContainer { host: host(setting.spec, system)?, name: name.clone() }),
        )?;
        let running = support::start(
            setting,
            Invocation::new(words),
            vec![promise],
            privileges.note().into_iter().collect(),
        )?;
        // The daemon makes a container's network namespace itself and accepts no existing one: the interface of the
        // path is moved into it.
        let (system, place) = (system.share(), setting.network);
        let settle = move || {
            let pid = engine::first_process(&client, &name, &*system);
            let Some(place) = place else {
                return Ok(pid.map_or_else(|_| Vec::new(), |pid| with_budget(pid, &*system)));
            };
            let pid = pid?;
            network::hand_over(&place, pid, &*system)?;
            Ok(with_budget(pid, &*system))
        };
        Ok(Hooks::new(running, settle, Vec::new()))
    }
}

impl Docker {
    /// The image of this run, made by the first container that needs it and removed at the run's end.
    fn import(&self, setting: &Setting<'_>, client: &[String]) -> Result<String, StartError> {
        let image = format!("tactus-probe:{}", setting.guardian.id());
        let key = format!("{} {image}", client.join(" "));
        let mut imported = self.imported.lock().unwrap_or_else(PoisonError::into_inner);
        if imported.contains(&key) {
            return Ok(image);
        }
        let bytes = probe::own().map_err(|error| cannot("no probe", error))?;
        let archive =
            tar::of_program("probe", bytes).ok_or_else(|| cannot("no image", "its name is too long"))?;
        let path = setting.workspace.join("image.tar");
        let shown = path.display().to_string();
        setting.system.install(&path, &archive, 0o644).map_err(|error| cannot(&shown, error))?;
        let words = |rest: &[&str]| -> Vec<String> {
            client.iter().map(String::as_str).chain(rest.iter().copied()).map(str::to_owned).collect()
        };
        let host = host(setting.spec, setting.system)?;
        let promise = support::promise(setting, Undo::Tool(Tool::DockerImage { host, name: image.clone() }))?;
        let import = words(&["import", "--change", "ENTRYPOINT [\"/probe\"]", &shown, &image]);
        let done = setting.system.run(&Invocation::new(import).within(IMPORT));
        let done = done.map_err(|error| cannot("the probe cannot be imported as an image", error))?;
        if !done.success() {
            return Err(cannot("the probe cannot be imported as an image", done.words()));
        }
        promise.defer();
        imported.insert(key);
        Ok(image)
    }
}

/// The additional privileges of the container. A daemon of before version 23 may not know the capabilities of Linux
/// 5.8: Debian's 20.10 says `unknown capability: "CAP_BPF"`.
fn privileges(setting: &Setting<'_>, client: &[String]) -> Privileges {
    let privileges = Privileges::checked(setting.spec);
    if !privileges.unfiltered() {
        return privileges;
    }
    let asked = ["version", "--format", "{{.Server.Version}}"];
    let words = client.iter().map(String::as_str).chain(asked);
    let answer = setting.system.run(&Invocation::new(words).within(ANSWER));
    let version = answer.map(|answer| answer.text().trim().to_owned()).unwrap_or_default();
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_some_and(|major| major < 23) { privileges.before_linux_5_8() } else { privileges }
}

/// The daemon that is spoken to.
fn host(spec: &plan::Environment, system: &dyn System) -> Result<String, StartError> {
    let written = support::text(spec, "host", HOST_HINT).map_err(|error| cannot("host", error))?;
    if let Some(host) = written {
        return Ok(host.into());
    }
    match system.variable("DOCKER_HOST").filter(|host| !host.is_empty()) {
        Some(host) if host.starts_with("unix:///") => return Ok(host),
        Some(host) => {
            return Err(StartError {
                reason: format!(
                    "DOCKER_HOST is {host}: the containers of that daemon are not on this machine"
                ),
                hint: Some(format!("unset it, or add `host`: {HOST_HINT}")),
            });
        }
        None => {}
    }
    let own = system.variable("XDG_RUNTIME_DIR").map(|dir| format!("{dir}/docker.sock"));
    let own = own.filter(|socket| !system.is_root() && system.exists(Path::new(socket)));
    Ok(format!("unix://{}", own.as_deref().unwrap_or(SOCKET)))
}

/// The words that every command of the client begins with.
fn client(spec: &plan::Environment, system: &dyn System) -> Result<Vec<String>, StartError> {
    Ok(vec!["docker".into(), "-H".into(), host(spec, system)?])
}

/// The container's cgroup is made by the daemon, so that the client cannot keep it from being made. Where
/// it has no real-time budget, the container moves into the `cpu` cgroup of tactus before it measures.
fn with_budget(pid: u32, system: &dyn System) -> Vec<Note> {
    let groups = Cgroups::of(system);
    if groups.rt_runtime_us(system, pid) != Some(0) {
        return Vec::new();
    }
    let moved = match groups.group(system, std::process::id(), "cpu") {
        Some(own) => {
            system.write(&own.join("cgroup.procs"), pid.to_string().as_bytes()).map_err(|e| e.to_string())
        }
        None => Err("the cpu cgroup of tactus was not found".to_owned()),
    };
    match moved {
        Ok(()) => vec![support::RtGroup::note_of_a_move()],
        Err(error) => vec![Note::obstacle(
            format!(
                "this kernel gives every new v1 cpu cgroup a real-time budget of 0 (RT_GROUP_SCHED), and the \
container cannot leave its cgroup: {error}"
            ),
            "run tactus as root; or give the daemon's default parent a budget (cpu.rt_runtime_us) and boot with cgroup v2",
        )],
    }
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;

    fn spec(host: &str) -> plan::Environment {
        let options = [("host".to_owned(), host.into())].into_iter().collect();
        plan::Environment { kind: "docker".into(), options, ..plan::Environment::default() }
    }

    fn reason(machine: &Memory, spec: &plan::Environment) -> String {
        match ENTRY.usable_as(spec, machine) {
            Usable::Yes { .. } => "usable".into(),
            Usable::No { reason, remedy } => {
                assert!(!remedy.is_empty());
                reason
            }
        }
    }

    #[test]
    fn a_daemon_that_is_not_there_does_not_answer_or_is_elsewhere_is_told_apart() {
        let machine = Memory::new().root().program("docker");
        let default = plan::Environment::default();
        assert!(reason(&machine, &default).contains("/var/run/docker.sock does not exist"));
        let elsewhere = Memory::new().program("docker").set("DOCKER_HOST", "tcp://lab7:2375");
        assert!(reason(&elsewhere, &default).contains("DOCKER_HOST is tcp://lab7:2375"));
        let dead = machine.file("/var/run/docker.sock", "").answer(
            &["docker"],
            1,
            "",
            "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n",
        );
        assert!(reason(&dead, &default).contains("Is the docker daemon running"));
        let denied = dead.answer(&["docker"], 1, "", "permission denied while trying to connect\n");
        assert!(reason(&denied, &default).contains("may not use"));
        let alive = denied.answer(&["docker", "-H", "unix:///x/d.sock", "version"], 0, "20.10.24\n", "");
        assert!(reason(&alive, &spec("unix:///x/d.sock")).contains("/x/d.sock does not exist"));
        assert_eq!(reason(&alive.file("/x/d.sock", ""), &spec("unix:///x/d.sock")), "usable");
    }

    #[test]
    fn a_daemon_on_another_machine_is_refused_with_the_key() {
        let error = ENTRY.check(&spec("tcp://lab7:2375"), &Memory::new()).unwrap_err();
        assert_eq!(error.key, "host");
        assert!(error.message.contains("tcp://lab7:2375") && error.hint.contains("unix://"), "{error}");
        assert_eq!(ENTRY.check(&spec("unix:///run/docker.sock"), &Memory::new()), Ok(()));
    }

    #[test]
    fn a_container_without_a_budget_moves_into_our_cpu_cgroup() {
        let own = std::process::id();
        let machine = Memory::new()
            .file("/proc/self/mounts", "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n")
            .file("/proc/7/cgroup", "1:cpu:/docker/abc\n")
            .file(format!("/proc/{own}/cgroup"), "1:cpu:/\n")
            .file("/sys/fs/cgroup/cpu/docker/abc/cpu.rt_runtime_us", "0\n");
        assert_eq!(with_budget(7, &machine).len(), 1);
        assert_eq!(machine.text("/sys/fs/cgroup/cpu/cgroup.procs").as_deref(), Some("7"));
        let with = machine.file("/sys/fs/cgroup/cpu/docker/abc/cpu.rt_runtime_us", "800000\n");
        assert!(with_budget(7, &with).is_empty(), "the user gave it a budget: it stays");
    }
}
