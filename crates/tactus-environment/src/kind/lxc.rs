//! A container of LXC.

use std::path::Path;
use std::time::Duration;

use tactus_model::plan::{self, PathKind};
use tactus_model::topology::Topology;
use tactus_system::{Invocation, System};

use crate::support::{
    self, Cgroups, DMA_LATENCY, ENGINE, Privileges, RtGroup, attach, cannot, container_name, groups,
};
use crate::{Environment, Layout, OptionError, OptionKey, Running, Setting, StartError, Usable};

/// See [`Environment::about`].
pub struct Lxc;

/// The entry of the table.
pub static ENTRY: Lxc = Lxc;

/// How long the tools may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

impl Environment for Lxc {
    fn kind(&self) -> &'static str {
        "lxc"
    }

    fn about(&self) -> &'static str {
        "A container of LXC, run by lxc-execute: the probe as its only file, the capabilities SYS_NICE and \
IPC_LOCK and no others, its CPUs as a cpuset, no network. With `attach` a running container: the probe is \
started in it as lxc-attach does, on the CPUs of its cpuset. Run as root."
    }

    fn options(&self) -> &'static [OptionKey] {
        const OPTIONS: [OptionKey; 2] = [
            OptionKey {
                name: "path",
                about: "with `attach`: where LXC keeps its containers (-P of its tools); default: LXC's own \
                    default",
            },
            ENGINE,
        ];
        &OPTIONS
    }

    fn check(&self, spec: &plan::Environment, _system: &dyn System) -> Result<(), OptionError> {
        Privileges::of(spec)?;
        support::text(spec, "path", "a directory").map(drop)
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
        if system.find_program("lxc-execute").is_none() {
            return Usable::No {
                reason: "lxc is not installed".into(),
                remedy: "install the package lxc (it has the command lxc-execute; LXD and Incus do not)"
                    .into(),
            };
        }
        if !system.is_root() {
            return Usable::No {
                reason: "a container of LXC with real-time threads needs root".into(),
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
        attach::layout(name, first_process(name, &home(spec), system)?, system, machine)
    }

    fn start(&self, setting: &Setting<'_>) -> Result<Box<dyn Running>, StartError> {
        if let Some(name) = &setting.spec.attach {
            return enter(setting, name);
        }
        let system = setting.system;
        let root = support::rootfs(setting)?;
        let name = container_name(setting);
        let path = setting.workspace.join("lxc.conf");
        system
            .install(&path, configuration(setting, &root).as_bytes(), 0o600)
            .map_err(|error| cannot(&path.display().to_string(), error))?;
        let (path, home) = (path.display().to_string(), setting.workspace.display().to_string());
        let words = ["lxc-execute", "-P", &home, "-n", &name, "-f", &path, "--", "/probe"];
        let mut words: Vec<String> = words.map(str::to_owned).into();
        let mut notes: Vec<_> = Privileges::checked(setting.spec).note().into_iter().collect();
        // The cgroups that remain when lxc-execute is killed.
        let mounts = Cgroups::of(system);
        let left = mounts
            .mounts()
            .flat_map(|mount| ["payload", "monitor"].map(|part| mount.join(format!("lxc.{part}.{name}"))));
        let promises = groups::promise_removal(setting, left)?;
        if let Some(group) = RtGroup::of(system) {
            notes.push(group.note());
            words = group.wrap(words);
        }
        support::start(setting, Invocation::new(words), promises, notes)
    }
}

/// The container's configuration (lxc.container.conf(5)).
fn configuration(setting: &Setting<'_>, root: &Path) -> String {
    let system = setting.system;
    let (marker, id) = setting.guardian.marker();
    let given: Vec<String> = Privileges::checked(setting.spec).capabilities().collect();
    let given = given.iter().map(|name| format!(" {}", name.trim_start_matches("CAP_").to_lowercase()));
    let version = if Cgroups::of(system).v1("cpuset").is_some() { "cgroup" } else { "cgroup2" };
    let mut lines = vec![
        format!("lxc.rootfs.path = dir:{}", root.display()),
        "lxc.uts.name = tactus".into(),
        match setting.network {
            None => "lxc.net.0.type = empty".into(),
            Some(place) => format!("lxc.namespace.share.net = {}", place.holder),
        },
        "lxc.mount.auto = proc:mixed sys:ro".into(),
        "lxc.apparmor.profile = unconfined".into(),
        "lxc.pty.max = 1".into(),
        "lxc.tty.max = 0".into(),
        format!("lxc.cap.keep = sys_nice ipc_lock{}", given.collect::<String>()),
        format!("lxc.{version}.cpuset.cpus = {}", setting.layout.outside()),
        format!("lxc.environment = {marker}={id}"),
    ];
    if system.exists(Path::new(DMA_LATENCY)) {
        let inside = DMA_LATENCY.trim_start_matches('/');
        lines.push(format!("lxc.mount.entry = {DMA_LATENCY} {inside} none bind,optional,create=file 0 0"));
    }
    lines.join("\n") + "\n"
}

/// The words that say where LXC keeps its containers.
fn home(spec: &plan::Environment) -> Vec<String> {
    // A value of another kind has been refused by `check`.
    let path = support::text(spec, "path", "a directory").ok().flatten();
    path.map(|path| vec!["-P".to_owned(), path.to_owned()]).unwrap_or_default()
}

/// The first process of a container that runs, as this machine numbers it.
fn first_process(name: &str, home: &[String], system: &dyn System) -> Result<u32, StartError> {
    let hint = Some("name a running one; `lxc-ls --running` lists them".to_owned());
    let words = ["lxc-info", "-p", "-H", "-n", name].map(str::to_owned);
    let asked = Invocation::new(words.into_iter().chain(home.iter().cloned())).within(ANSWER);
    let answer = system.run(&asked).map_err(|error| cannot("lxc-info", error))?;
    match answer.text().trim().parse() {
        Ok(pid) if answer.success() && pid > 0 => Ok(pid),
        _ if answer.success() => {
            Err(StartError { reason: format!("the container `{name}` of LXC is not running"), hint })
        }
        _ => Err(StartError { reason: format!("LXC has no container `{name}`: {}", answer.words()), hint }),
    }
}

/// Starts the probe in a container that runs: in its cgroups and namespaces, with its capabilities.
fn enter(setting: &Setting<'_>, name: &str) -> Result<Box<dyn Running>, StartError> {
    let home = home(setting.spec);
    let pid = first_process(name, &home, setting.system)?;
    let delivered = attach::deliver(setting, pid)?;
    let (marker, id) = setting.guardian.marker();
    let variable = format!("{marker}={id}");
    let mut words = ["lxc-attach", "-n", name].map(str::to_owned).to_vec();
    words.extend(home);
    words.extend(["--clear-env", "-v", &variable, "--", &delivered.inside].map(str::to_owned));
    let running = support::start(setting, Invocation::new(words), Vec::new(), Vec::new())?;
    Ok(attach::watched(setting, pid, running, delivered, Vec::new()))
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;

    #[test]
    fn only_a_container_that_runs_has_a_first_process() {
        let asked = |code, stdout: &str, stderr: &str| {
            first_process(
                "plc",
                &[],
                &Memory::new().answer(&["lxc-info", "-p", "-H", "-n", "plc"], code, stdout, stderr),
            )
        };
        assert_eq!(asked(0, "4711\n", ""), Ok(4711));
        assert!(asked(0, "", "").unwrap_err().reason.contains("is not running"));
        assert!(asked(0, "-1\n", "").unwrap_err().reason.contains("is not running"));
        let unknown = asked(1, "", "plc doesn't exist\n").unwrap_err();
        assert!(unknown.reason.contains("doesn't exist") && unknown.hint.is_some());
        assert!(first_process("plc", &[], &Memory::new()).unwrap_err().reason.contains("lxc-info"));
    }
}
