//! Changes that only a program of the system can undo, by name. The program's arguments are chosen here, at the time of
//! the undo: a journal names objects that tactus makes, and cannot contain a command.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Actions;
use super::actions::gone;
use crate::CpuSet;
use crate::change::Thread;
use crate::threads::Policy;

/// How long a program that takes something back may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// A cell may refuse to be ended once and agree when it is asked again.
const AGAIN: Duration = Duration::from_millis(200);

/// The kernel's own test module that blocks.
pub const BLOCK_MODULE: &str = "preemptirq_delay_test";

/// An object that a program made and can remove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    /// A container of Docker.
    DockerContainer {
        /// The daemon's socket.
        host: String,
        /// Its name.
        name: String,
    },
    /// An image of Docker.
    DockerImage {
        /// The daemon's socket.
        host: String,
        /// Its name.
        name: String,
    },
    /// A container of Podman.
    PodmanContainer {
        /// Its name.
        name: String,
        /// Mounts that Podman must not see.
        hidden: Vec<PathBuf>,
    },
    /// A container of an OCI runtime.
    OciContainer {
        /// The runtime.
        runtime: Runtime,
        /// The directory of its state.
        state: PathBuf,
        /// Its name.
        name: String,
        /// Mounts that the runtime must not see.
        hidden: Vec<PathBuf>,
    },
    /// A domain of libvirt.
    Domain {
        /// The connection.
        uri: String,
        /// Its name.
        name: String,
    },
    /// A device of a user's domain.
    DomainDevice {
        /// The connection.
        uri: String,
        /// The domain's name.
        domain: String,
        /// The device's.
        alias: String,
    },
    /// A cell of Jailhouse.
    Cell {
        /// The program `jailhouse`, by its name or its path.
        program: PathBuf,
        /// The cell's name.
        name: String,
    },
    /// Jailhouse itself.
    Jailhouse {
        /// The path of the program.
        program: PathBuf,
    },
    /// The settings of a terminal.
    Terminal {
        /// The device.
        path: PathBuf,
        /// The output of `stty -g` for it.
        settings: String,
    },
    /// The kernel's own module that blocks ([`BLOCK_MODULE`]).
    BlockModule,
    /// The CPUs of a thread.
    Affinity {
        /// The thread.
        thread: Thread,
        /// The CPUs on which it was allowed.
        cpus: CpuSet,
    },
    /// The policy and priority of a thread, as in `FIFO 4`.
    Scheduling {
        /// The thread.
        thread: Thread,
        /// The former scheduling.
        was: String,
    },
}

/// An OCI runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Runtime {
    /// crun.
    Crun,
    /// runc.
    Runc,
}

impl Runtime {
    /// The name of its program.
    #[must_use]
    pub const fn program(self) -> &'static str {
        match self {
            Self::Crun => "crun",
            Self::Runc => "runc",
        }
    }
}

impl Tool {
    /// The command that undoes it; `None` if tactus makes no object of this name.
    #[must_use]
    pub fn words(&self) -> Option<Vec<String>> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        Some(match self {
            Self::DockerContainer { host, name } => {
                words(&["docker", "-H", socket(host)?, "rm", "-f", plain(name)?])
            }
            Self::DockerImage { host, name } => {
                words(&["docker", "-H", socket(host)?, "rmi", "-f", plain(name)?])
            }
            Self::PodmanContainer { name, hidden } => {
                without_mounts(hidden, words(&["podman", "rm", "-f", "-t", "0", "--ignore", plain(name)?]))
            }
            Self::OciContainer { runtime, state, name, hidden } => {
                let state = absolute(state)?;
                without_mounts(
                    hidden,
                    words(&[runtime.program(), "--root", state, "delete", "--force", plain(name)?]),
                )
            }
            Self::Domain { uri, name } => words(&["virsh", "-q", "-c", option(uri)?, "destroy", "--", name]),
            Self::DomainDevice { uri, domain, alias } => words(&[
                "virsh",
                "-q",
                "-c",
                option(uri)?,
                "detach-device-alias",
                "--live",
                "--",
                domain,
                alias,
            ]),
            Self::Cell { program, name } => {
                words(&[jailhouse(program)?, "cell", "destroy", "--name", option(name)?])
            }
            Self::Jailhouse { program } => words(&[jailhouse(program)?, "disable"]),
            Self::Terminal { path, settings } => {
                let digit = |byte: u8| byte.is_ascii_hexdigit() || byte == b':';
                words(&[
                    "stty",
                    "-F",
                    absolute(path)?,
                    Some(settings).filter(|text| text.bytes().all(digit))?,
                ])
            }
            Self::BlockModule => words(&["modprobe", "-r", BLOCK_MODULE]),
            Self::Affinity { thread, cpus } => {
                words(&["taskset", "--cpu-list", "--pid", &cpus.to_string(), &thread.tid.to_string()])
            }
            Self::Scheduling { thread, was } => {
                let (policy, priority) = was.split_once(' ')?;
                let policy = match Policy::of(policy) {
                    Policy::Fifo => "--fifo",
                    Policy::Rr => "--rr",
                    Policy::Batch => "--batch",
                    Policy::Idle => "--idle",
                    Policy::Other => "--other",
                    Policy::Deadline | Policy::Unknown => return None,
                };
                let priority: u32 = priority.parse().ok()?;
                words(&["chrt", policy, "--pid", &priority.to_string(), &thread.tid.to_string()])
            }
        })
    }

    /// The program that is run, or the file that decides it: a program by its path, and a runtime's state with its
    /// hooks.
    fn believes(&self) -> Option<&Path> {
        match self {
            Self::Cell { program: path, .. } | Self::Jailhouse { program: path } => {
                Some(&**path).filter(|path| path.is_absolute())
            }
            Self::OciContainer { state, .. } => Some(state),
            _ => None,
        }
    }

    /// Whether it is a former value, as a file's would be.
    pub(super) const fn is_setting(&self) -> bool {
        matches!(self, Self::Affinity { .. } | Self::Scheduling { .. })
    }

    /// Undoes it, by its program. A missing program has nothing to undo. A thread that has ended needs no undo: its
    /// number may belong to another process.
    pub(super) fn take_back(&self, actions: &impl Actions) -> io::Result<()> {
        if let Self::Affinity { thread, .. } | Self::Scheduling { thread, .. } = self {
            let stat = actions.read(Path::new(&format!("/proc/{}/stat", thread.tid))).unwrap_or_default();
            if !thread.is_in(&String::from_utf8_lossy(&stat)) {
                return Ok(());
            }
        }
        let words = self.words().ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is not something that tactus makes, and is left alone",
            )
        })?;
        if let Some(path) = self.believes() {
            match actions.is_believed(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                believed => believed?,
            }
        }
        gone(actions.run(&words, PATIENCE))?;
        if matches!(self, Self::Cell { .. } | Self::Jailhouse { .. }) {
            actions.pause(AGAIN);
            gone(actions.run(&words, PATIENCE))?;
        }
        Ok(())
    }
}

/// Names the action: `removing the container tactus-1`.
impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DockerContainer { name, .. }
            | Self::PodmanContainer { name, .. }
            | Self::OciContainer { name, .. } => write!(f, "removing the container {name}"),
            Self::DockerImage { name, .. } => write!(f, "removing the image {name}"),
            Self::Domain { name, .. } => write!(f, "ending the domain {name}"),
            Self::DomainDevice { domain, alias, .. } => {
                write!(f, "detaching {alias} from the domain {domain}")
            }
            Self::Cell { name, .. } => write!(f, "destroying the cell {name}"),
            Self::Jailhouse { .. } => f.write_str("disabling Jailhouse"),
            Self::Terminal { path, .. } => write!(f, "restoring the settings of {}", path.display()),
            Self::BlockModule => write!(f, "unloading the module {BLOCK_MODULE}"),
            Self::Affinity { thread, cpus } => {
                write!(f, "allowing {} ({}) CPUs {cpus}", thread.name, thread.tid)
            }
            Self::Scheduling { thread, was } => write!(f, "making {} ({}) {was}", thread.name, thread.tid),
        }
    }
}

/// A command in a separate mount namespace without these mounts.
#[must_use]
pub fn without_mounts(hidden: &[PathBuf], command: Vec<String>) -> Vec<String> {
    if hidden.is_empty() {
        return command;
    }
    // A shell may lack the directories of root's programs in its PATH.
    let script = "while [ \"$1\" != -- ]; do umount -- \"$1\" || exit 125; shift; done; shift; \
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; exec \"$@\"";
    let mut words: Vec<String> = ["unshare", "-m", "sh", "-c", script, "sh"].map(str::to_owned).into();
    words.extend(hidden.iter().map(|path| path.display().to_string()));
    words.push("--".into());
    words.extend(command);
    words
}

/// A name as tactus gives them: never an option, never a path.
fn plain(name: &str) -> Option<&str> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    Some(name).filter(|name| name.starts_with("tactus") && name.bytes().all(good))
}

/// The value of an option; text that is itself an option is refused.
fn option(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty() && !text.starts_with('-'))
}

fn absolute(path: &Path) -> Option<&str> {
    path.to_str().filter(|_| path.is_absolute())
}

/// Daemons of this machine alone.
fn socket(host: &str) -> Option<&str> {
    Some(host).filter(|host| host.starts_with("unix:///"))
}

/// The program by its own name, where PATH finds it, or wherever it lies.
fn jailhouse(program: &Path) -> Option<&str> {
    let named = program.file_name().is_some_and(|name| name == "jailhouse");
    program.to_str().filter(|text| named && (program.is_absolute() || !text.contains('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(tool: &Tool) -> Option<String> {
        tool.words().map(|words| words.join(" "))
    }

    #[test]
    fn a_thing_is_taken_back_by_the_words_of_its_kind() {
        let thread = Thread { tid: 7, name: "x".into(), started: None };
        let cases = [
            (
                Tool::DockerContainer { host: "unix:///run/d.sock".into(), name: "tactus-1".into() },
                "docker -H unix:///run/d.sock rm -f tactus-1",
            ),
            (
                Tool::PodmanContainer { name: "tactus-1".into(), hidden: Vec::new() },
                "podman rm -f -t 0 --ignore tactus-1",
            ),
            (
                Tool::Domain { uri: "qemu:///system".into(), name: "tactus-1".into() },
                "virsh -q -c qemu:///system destroy -- tactus-1",
            ),
            (Tool::Jailhouse { program: "/opt/jailhouse".into() }, "/opt/jailhouse disable"),
            (Tool::Affinity { thread: thread.clone(), cpus: CpuSet::one(3) }, "taskset --cpu-list --pid 3 7"),
            (Tool::Scheduling { thread, was: "FIFO 4".into() }, "chrt --fifo --pid 4 7"),
            (Tool::BlockModule, "modprobe -r preemptirq_delay_test"),
        ];
        for (tool, words) in cases {
            assert_eq!(said(&tool).as_deref(), Some(words));
        }
    }

    #[test]
    fn what_tactus_never_makes_is_not_taken_back() {
        let oci = |state: &str, name: &str| Tool::OciContainer {
            runtime: Runtime::Crun,
            state: state.into(),
            name: name.into(),
            hidden: Vec::new(),
        };
        for forged in [
            Tool::PodmanContainer { name: "somebody".into(), hidden: Vec::new() },
            Tool::PodmanContainer { name: "--all".into(), hidden: Vec::new() },
            Tool::PodmanContainer { name: "tactus $(reboot)".into(), hidden: Vec::new() },
            Tool::DockerContainer { host: "tcp://evil:2375".into(), name: "tactus-1".into() },
            Tool::DockerImage { host: "unix:///s".into(), name: "debian".into() },
            oci("state", "tactus-1"),
            oci("/state", "x"),
            Tool::Domain { uri: "-c".into(), name: "tactus-1".into() },
            Tool::Jailhouse { program: "/tmp/evil".into() },
            Tool::Cell { program: "sh".into(), name: "a".into() },
            Tool::Jailhouse { program: "tools/jailhouse".into() },
            Tool::Cell { program: "jailhouse".into(), name: "--help".into() },
            Tool::Terminal { path: "/dev/ttyS0".into(), settings: "raw".into() },
            Tool::Scheduling {
                thread: Thread { tid: 1, name: "init".into(), started: None },
                was: "DEADLINE 0".into(),
            },
        ] {
            assert_eq!(said(&forged), None, "{forged}");
        }
    }

    #[test]
    fn mounts_are_hidden_by_their_names_whatever_these_are() {
        let hidden = ["/sys/fs/cgroup/cpu".into(), "/a b;reboot".into()];
        let words = without_mounts(&hidden, vec!["crun".into(), "list".into()]);
        assert_eq!(words[..4], ["unshare", "-m", "sh", "-c"]);
        assert_eq!(words[5..], ["sh", "/sys/fs/cgroup/cpu", "/a b;reboot", "--", "crun", "list"]);
        assert!(!words[4].contains("reboot"));
        assert_eq!(without_mounts(&[], vec!["crun".into()]), ["crun"]);
    }
}
