//! Common parts of several environments.

pub mod attach;
mod capped;
mod cgroups;
pub mod engine;
pub mod groups;
pub mod guest;
mod hooks;
mod names;
mod options;
mod piped;
mod privileges;
pub mod profiled;
pub mod programs;
mod rt_group;
pub mod shell;
pub mod tar;
mod tty;
pub mod write_within;

pub use capped::Capped;
pub use cgroups::Cgroups;
pub use hooks::Hooks;
pub use names::container_name;
pub use options::{boolean, boot_timeout, list, number, text, word};
pub use piped::Piped;
pub use privileges::{ENGINE, Privileges};
pub use rt_group::RtGroup;
pub use tty::Tty;

use std::path::{Path, PathBuf};

use tactus_model::message::Note;
use tactus_system::probe;
use tactus_system::{Invocation, System};

use crate::{Setting, StartError};

/// A failure to start, with what it was about.
pub fn cannot(what: &str, error: impl std::fmt::Display) -> StartError {
    StartError { reason: format!("{what}: {error}"), hint: None }
}

/// A root file system that holds the probe and nothing else, in the environment's workspace.
///
/// # Errors
/// When it cannot be written.
pub fn rootfs(setting: &Setting<'_>) -> Result<PathBuf, StartError> {
    let root = setting.workspace.join("rootfs");
    let arch = setting.system.arch();
    let bytes = probe::bytes(arch).ok_or_else(|| cannot("no probe", format!("none was built for {arch}")))?;
    let installed = setting.system.install(&root.join("probe"), bytes, 0o755);
    installed.map_err(|error| cannot(&root.display().to_string(), error))?;
    Ok(root)
}

/// The meaning of lines in which every character appears twice.
pub const DOUBLED: &str = "every character appears twice: the cell writes to a UART and to the hypervisor's \
console, which is the same UART; leave JAILHOUSE_CELL_VIRTUAL_CONSOLE_ACTIVE out of its configuration";

/// The device by which the probe keeps CPUs out of deep sleep, where there is one.
pub const DMA_LATENCY: &str = "/dev/cpu_dma_latency";

/// Starts a command that carries the probe's stream on its stdin and stdout.
///
/// # Errors
/// When it cannot be started; `promises` are then taken back.
pub fn start(
    setting: &Setting<'_>,
    command: Invocation,
    promises: Vec<tactus_system::guardian::Promise>,
    notes: Vec<Note>,
) -> Result<Box<dyn super::Running>, StartError> {
    let what = command.argv.join(" ");
    let child = setting
        .system
        .spawn(&command.with_env(setting.guardian.marker()))
        .map_err(|error| cannot(&format!("`{what}` does not start"), error))?;
    Ok(Box::new(Piped::new(child, promises, notes)))
}

/// Promises to take something back when the environment has ended.
///
/// # Errors
/// When that cannot be written down.
pub fn promise(
    setting: &Setting<'_>,
    how: tactus_model::undo::Undo,
) -> Result<tactus_system::guardian::Promise, StartError> {
    setting
        .guardian
        .promise(how)
        .map_err(|error| cannot("the guardian process of tactus cannot be reached", error))
}

/// Whether this process has a capability, by its number (capabilities(7)).
pub fn has_capability(system: &dyn System, number: u32) -> bool {
    let status = system.text("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> number & 1 == 1
}

/// Whether the unified cgroup hierarchy (v2) is the only one.
pub fn cgroup_v2(system: &dyn System) -> bool {
    system.exists(Path::new("/sys/fs/cgroup/cgroup.controllers"))
}
