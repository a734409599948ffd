//! An OCI bundle, run by crun or runc without a container engine.

use std::path::Path;

use serde_json::{Value, json};
use tactus_model::plan::{self, PathKind};
use tactus_model::undo::{Runtime, Tool, Undo};
use tactus_system::{Invocation, System};

use crate::network::file;
use crate::support::{self, DMA_LATENCY, ENGINE, Privileges, RtGroup, cgroup_v2, container_name};
use crate::{Environment, OptionError, OptionKey, Running, Setting, StartError, Usable};

/// See [`Environment::about`].
pub struct Oci;

/// The entry of the table.
pub static ENTRY: Oci = Oci;

const RUNTIMES: [&str; 2] = [Runtime::Crun.program(), Runtime::Runc.program()];

impl Environment for Oci {
    fn kind(&self) -> &'static str {
        "oci"
    }

    fn about(&self) -> &'static str {
        "An OCI bundle, run directly by crun or runc: a container without an engine around it. Its \
configuration comes from tactus: separate namespaces, a cpuset, the capabilities SYS_NICE and IPC_LOCK and \
no others."
    }

    fn options(&self) -> &'static [OptionKey] {
        &[
            OptionKey { name: "runtime", about: "crun or runc; default: crun if it is installed, else runc" },
            OptionKey {
                name: "tracing",
                about: "true: the kernel's tracers are mounted in the container, so that it can block its \
machine; default: false",
            },
            ENGINE,
        ]
    }

    fn check(&self, spec: &plan::Environment, _system: &dyn System) -> Result<(), OptionError> {
        support::boolean(spec, "tracing")?;
        Privileges::of(spec)?;
        support::word(spec, "runtime", &RUNTIMES).map(drop)
    }

    fn can_lie_inside(&self) -> bool {
        true
    }

    fn programs(&self, spec: &plan::Environment, system: &dyn System) -> Vec<String> {
        let wanted = support::word(spec, "runtime", &RUNTIMES).ok().flatten();
        let mut runtimes =
            RUNTIMES.into_iter().filter(|runtime| wanted.is_none_or(|wanted| wanted == *runtime));
        runtimes
            .find(|runtime| system.find_program(runtime).is_some())
            .map(str::to_owned)
            .into_iter()
            .collect()
    }

    fn can_join(&self, path: PathKind) -> bool {
        !path.is_for_guests()
    }

    fn usable(&self, system: &dyn System) -> Usable {
        if RUNTIMES.iter().all(|runtime| system.find_program(runtime).is_none()) {
            return Usable::No {
                reason: "neither crun nor runc is installed".into(),
                remedy: "install the package crun (or runc)".into(),
            };
        }
        if !system.is_root() {
            return Usable::No {
                reason: "a bundle with real-time threads needs root".into(),
                remedy: "run tactus as root (sudo), or use a rootless podman environment".into(),
            };
        }
        Usable::Yes { remark: None }
    }

    fn start(&self, setting: &Setting<'_>) -> Result<Box<dyn Running>, StartError> {
        let system = setting.system;
        let wanted = support::word(setting.spec, "runtime", &RUNTIMES)
            .map_err(|error| support::cannot("runtime", error))?;
        let runtime = match wanted {
            Some(runtime) if system.find_program(runtime).is_none() => {
                return Err(StartError {
                    reason: format!("{runtime} is not installed"),
                    hint: Some(format!("install the package {runtime}, or leave out `runtime`")),
                });
            }
            Some(runtime) => runtime,
            None => RUNTIMES
                .into_iter()
                .find(|runtime| system.find_program(runtime).is_some())
                .unwrap_or(RUNTIMES[0]),
        };
        let kept = if runtime == Runtime::Runc.program() { Runtime::Runc } else { Runtime::Crun };
        support::rootfs(setting)?;
        let name = container_name(setting);
        let config = serde_json::to_vec_pretty(&config(setting, &name))
            .map_err(|error| support::cannot("config.json", error))?;
        let path = setting.workspace.join("config.json");
        system
            .install(&path, &config, 0o644)
            .map_err(|error| support::cannot(&path.display().to_string(), error))?;

        let state = setting.workspace.join("state").display().to_string();
        let bundle = setting.workspace.display().to_string();
        // By its path: a shell around it may not search the sbin directories.
        let runtime =
            system.find_program(runtime).map_or_else(|| runtime.into(), |path| path.display().to_string());
        let mut words: Vec<String> =
            [&*runtime, "--root", &state, "run", "--bundle", &bundle].map(str::to_owned).into();
        if root_is_initramfs(system) {
            words.push("--no-pivot".into());
        }
        words.push(name.clone());
        let mut hidden = Vec::new();
        let mut notes: Vec<_> = Privileges::checked(setting.spec).note().into_iter().collect();
        if let Some(group) = RtGroup::of(system) {
            notes.push(group.note());
            words = group.wrap(words);
            hidden = group.hidden;
        }
        let promise = support::promise(
            setting,
            Undo::Tool(Tool::OciContainer { runtime: kept, state: state.into(), name, hidden }),
        )?;
        support::start(setting, Invocation::new(words), vec![promise], notes)
    }
}

/// The bundle's configuration (OCI runtime specification 1.0.2).
fn config(setting: &Setting<'_>, name: &str) -> Value {
    let system = setting.system;
    let (marker, id) = setting.guardian.marker();
    let mut capabilities = vec!["CAP_SYS_NICE".to_owned(), "CAP_IPC_LOCK".to_owned()];
    capabilities.extend(Privileges::checked(setting.spec).capabilities());
    let mount = |to: &str, kind: &str, options: &[&str]| json!({"destination": to, "type": kind, "source": kind, "options": options});
    let plain = ["nosuid", "noexec", "nodev"];
    let mut namespaces: Vec<Value> = ["pid", "ipc", "uts", "mount"].map(|kind| json!({"type": kind})).into();
    namespaces.push(match setting.network {
        None => json!({"type": "network"}),
        Some(place) => json!({"type": "network", "path": file(place.holder)}),
    });
    if cgroup_v2(system) {
        namespaces.push(json!({"type": "cgroup"}));
    }
    let mut devices = Vec::new();
    let mut allowed = vec![json!({"allow": false, "access": "rwm"})];
    if let Some((major, minor)) = dma_latency(system) {
        devices.push(
            json!({"path": DMA_LATENCY, "type": "c", "major": major, "minor": minor, "fileMode": 0o600}),
        );
        allowed.push(json!({"allow": true, "type": "c", "major": major, "minor": minor, "access": "rw"}));
    }
    let mut mounts = vec![
        mount("/proc", "proc", &[]),
        mount("/dev", "tmpfs", &["nosuid", "strictatime", "mode=755", "size=65536k"]),
        mount("/dev/shm", "tmpfs", &[&plain[..], &["mode=1777"]].concat()),
        mount("/sys", "sysfs", &[&plain[..], &["ro"]].concat()),
    ];
    // Checked before anything starts.
    if support::boolean(setting.spec, "tracing").is_ok_and(|tracing| tracing == Some(true)) {
        mounts.push(mount("/sys/kernel/tracing", "tracefs", &plain));
    }
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": false,
            "user": {"uid": 0, "gid": 0},
            "args": ["/probe"],
            "env": ["PATH=/", format!("{marker}={id}")],
            "cwd": "/",
            "capabilities": {
                "bounding": &capabilities, "effective": &capabilities, "permitted": &capabilities,
                "inheritable": [], "ambient": [],
            },
            "rlimits": [],
            "noNewPrivileges": true,
        },
        "root": {"path": "rootfs", "readonly": false},
        "hostname": "tactus",
        "mounts": mounts,
        "linux": {
            "cgroupsPath": format!("/{name}"),
            "namespaces": namespaces,
            "devices": devices,
            "resources": {"cpu": {"cpus": setting.layout.outside().to_string()}, "devices": allowed},
        },
    })
}

/// Whether the root file system is the kernel's first one, which nothing can take the place of
/// (pivot_root(2)).
fn root_is_initramfs(system: &dyn System) -> bool {
    let mounts = system.text("/proc/self/mounts").unwrap_or_default();
    let root = mounts
        .lines()
        .rev()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .find(|mount| mount.get(1) == Some(&"/"));
    root.is_some_and(|mount| mount.get(2) == Some(&"rootfs"))
}

/// The numbers of the device that keeps CPUs out of deep sleep.
fn dma_latency(system: &dyn System) -> Option<(u32, u32)> {
    if !system.exists(Path::new(DMA_LATENCY)) {
        return None;
    }
    let numbers = system.text("/sys/class/misc/cpu_dma_latency/dev")?;
    let (major, minor) = numbers.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
