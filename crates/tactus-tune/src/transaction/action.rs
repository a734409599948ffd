//! One step: its action, and the former value.

use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tactus_model::CpuSet;
use tactus_model::change::{Form, Thread};
use tactus_model::threads::Policy;
use tactus_system::{Invocation, System};
use tracing::{info, warn};

use super::state::task;

/// How long a command may take. Making a boot menu looks at every disk.
const COMMAND: Duration = Duration::from_secs(180);

/// A step. All texts are as they were read, byte for byte, or as they are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Write a value to a file of `/proc` or `/sys`.
    Write {
        /// The file.
        path: String,
        /// How its text says its value.
        form: Form,
        /// Its whole text before.
        former: String,
        /// The value.
        then: String,
        /// Another file that the kernel sets to 0 when this one is written, and its text before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        linked: Option<(String, String)>,
    },
    /// Give a thread a policy and priority.
    Schedule {
        /// The thread, of this boot.
        thread: Thread,
        /// `OTHER 0`.
        former: String,
        /// `FIFO 4`.
        then: String,
    },
    /// Give a thread its CPUs.
    Place {
        /// The thread, of this boot.
        thread: Thread,
        /// A cpulist.
        former: String,
        /// A cpulist.
        then: String,
    },
    /// Start or stop a service.
    Service {
        /// The unit.
        unit: String,
        /// `active` or `inactive`.
        former: String,
        /// The same.
        then: String,
    },
    /// Put a file of ours in its place.
    Install {
        /// Where.
        path: String,
        /// Our former text there.
        former: Option<String>,
        /// The new text.
        then: String,
    },
    /// Run a command now, and another one when it is taken back.
    Run {
        /// Now.
        now: Option<Vec<String>>,
        /// When it is taken back.
        back: Option<Vec<String>>,
    },
    /// Choose TuneD's profile.
    TunedProfile {
        /// The one before; empty: none.
        former: String,
        /// Whether TuneD had chosen it by itself.
        automatic: bool,
        /// The new one.
        then: String,
    },
}

/// Why a step could not be done, or undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The action.
    pub what: String,
    /// The system's word.
    pub word: String,
    /// The remedy.
    pub hint: String,
    /// Whether the rest may be done without it.
    pub bearable: bool,
}

impl Action {
    /// Whether a reboot takes it back by itself.
    #[must_use]
    pub fn ends_with_the_boot(&self) -> bool {
        matches!(self, Self::Write { .. } | Self::Schedule { .. } | Self::Place { .. } | Self::Service { .. })
    }

    /// Whether it is quick, so that many are written down together.
    #[must_use]
    pub fn is_quick(&self) -> bool {
        matches!(self, Self::Write { .. } | Self::Schedule { .. } | Self::Place { .. })
    }

    /// The subject of the action: two actions on the same thing have the same one.
    #[must_use]
    pub fn subject(&self) -> String {
        match self {
            Self::Write { path, .. } | Self::Install { path, .. } => path.clone(),
            Self::Schedule { thread, .. } => format!("scheduling of {} ({})", thread.name, thread.tid),
            Self::Place { thread, .. } => format!("CPUs of {} ({})", thread.name, thread.tid),
            Self::Service { unit, .. } => unit.clone(),
            Self::Run { now, back } => {
                now.as_ref().or(back.as_ref()).map(|words| words.join(" ")).unwrap_or_default()
            }
            Self::TunedProfile { .. } => "TuneD's profile".into(),
        }
    }

    /// Whether two texts say the same of what it is about.
    #[must_use]
    pub fn same(&self, one: &str, other: &str) -> bool {
        match self {
            Self::Write { form, .. } => form.same(one, other) || form.value(one) == form.value(other),
            Self::Place { .. } => Form::List.same(one, other),
            _ => one == other,
        }
    }

    /// The former value, if it is a text.
    #[must_use]
    pub fn former(&self) -> Option<&str> {
        match self {
            Self::Write { former, .. }
            | Self::Schedule { former, .. }
            | Self::Place { former, .. }
            | Self::Service { former, .. }
            | Self::TunedProfile { former, .. } => Some(former),
            Self::Install { former, .. } => former.as_deref(),
            Self::Run { .. } => None,
        }
    }

    /// The new value, if it is a text.
    #[must_use]
    pub fn then(&self) -> Option<&str> {
        match self {
            Self::Write { then, .. }
            | Self::Schedule { then, .. }
            | Self::Place { then, .. }
            | Self::Service { then, .. }
            | Self::Install { then, .. }
            | Self::TunedProfile { then, .. } => Some(then),
            Self::Run { .. } => None,
        }
    }

    /// The present value of its subject; `None` if it does not exist (any more).
    #[must_use]
    pub fn current(&self, system: &dyn System) -> Option<String> {
        match self {
            Self::Write { path, .. } | Self::Install { path, .. } => {
                let bytes = system.read(Path::new(path)).ok()?;
                Some(String::from_utf8_lossy(&bytes).into_owned())
            }
            Self::Schedule { thread, .. } => Some(task(system, thread)?.scheduling),
            Self::Place { thread, .. } => Some(task(system, thread)?.cpus),
            Self::Service { unit, .. } => Some(service_state(system, unit)),
            Self::TunedProfile { .. } => {
                Some(system.text("/etc/tuned/active_profile").unwrap_or_default().trim().to_owned())
            }
            Self::Run { .. } => None,
        }
    }

    /// Does it.
    ///
    /// # Errors
    /// When the system refuses, with its own word.
    pub fn act(&self, system: &dyn System) -> Result<(), Failed> {
        let result = match self {
            Self::Write { path, then, .. } => system.write(Path::new(path), format!("{then}\n").as_bytes()),
            Self::Schedule { thread, then, .. } => schedule(system, thread, then),
            Self::Place { thread, then, .. } => place(system, thread, then),
            Self::Service { unit, then, .. } => service(system, unit, then),
            Self::Install { path, then, .. } => system.install(Path::new(path), then.as_bytes(), 0o644),
            Self::Run { now: None, .. } => Ok(()),
            Self::Run { now: Some(words), .. } => command(system, words),
            Self::TunedProfile { then, .. } => {
                command(system, &["tuned-adm".into(), "profile".into(), then.clone()])
            }
        };
        self.logged("changed", self.former(), self.then(), &result);
        result.map_err(|error| self.failed(&error))
    }

    /// Puts the former value back, whatever is there now.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn restore(&self, system: &dyn System) -> Result<(), Failed> {
        let result = match self {
            Self::Write { linked: Some((path, text)), .. } if text.trim() != "0" => {
                // Writing the ratio back would set the bytes to 0: the bytes were what counted.
                system.write(Path::new(path), text.as_bytes())
            }
            Self::Write { path, form, former, .. } => {
                wake(system, path, former);
                let text = if *form == Form::Choice { form.value(former) } else { former.clone() };
                system.write(Path::new(path), text.as_bytes())
            }
            Self::Schedule { thread, former, .. } => schedule(system, thread, former),
            Self::Place { thread, former, .. } => place(system, thread, former),
            Self::Service { unit, former, .. } => service(system, unit, former),
            Self::Install { path, former: None, .. } => uninstall(system, Path::new(path)),
            Self::Install { path, former: Some(text), .. } => {
                system.install(Path::new(path), text.as_bytes(), 0o644)
            }
            Self::Run { back: None, .. } => Ok(()),
            Self::Run { back: Some(words), .. } => command(system, words),
            Self::TunedProfile { former, automatic, .. } => {
                let words = match (former.as_str(), automatic) {
                    ("", _) => vec!["tuned-adm".into(), "off".into()],
                    (_, true) => vec!["tuned-adm".into(), "auto_profile".into()],
                    (name, false) => vec!["tuned-adm".into(), "profile".into(), name.to_owned()],
                };
                command(system, &words)
            }
        };
        self.logged("reverted", self.then(), self.former(), &result);
        result.map_err(|error| self.failed(&error))
    }

    /// Logs what was done. Texts of whole files are left out.
    fn logged(&self, what: &str, from: Option<&str>, to: Option<&str>, result: &io::Result<()>) {
        let value = |text: Option<&str>| match self {
            Self::Install { .. } => None,
            _ => text.map(|text| text.trim().to_owned()),
        };
        let (from, to, subject) = (value(from), value(to), self.subject());
        match result {
            Ok(()) => info!(from, to, "{what}: {subject}"),
            Err(error) => warn!(from, to, %error, "not {what}: {subject}"),
        }
    }

    fn failed(&self, error: &io::Error) -> Failed {
        Failed {
            what: self.to_string(),
            word: error.to_string(),
            hint: self.hint(error).to_owned(),
            bearable: self.bearable(error),
        }
    }

    /// Interrupts that the kernel or their chip holds fast, and threads that have ended or that the
    /// kernel binds, are no reason to take everything back.
    fn bearable(&self, error: &io::Error) -> bool {
        use rustix::io::Errno;
        let errno = error.raw_os_error().map(Errno::from_raw_os_error);
        match self {
            Self::Write { path, .. } if path.starts_with("/proc/irq/") => {
                matches!(errno, Some(Errno::IO | Errno::PERM | Errno::INVAL | Errno::NOSPC | Errno::NOENT))
            }
            Self::Schedule { .. } => matches!(errno, Some(Errno::SRCH)),
            Self::Place { .. } => matches!(errno, Some(Errno::SRCH | Errno::INVAL)),
            _ => false,
        }
    }

    fn hint(&self, error: &io::Error) -> &'static str {
        match (self, error.kind()) {
            (Self::Install { .. }, _) => {
                "make the directory writable; on an immutable system it is read-only"
            }
            (Self::Run { .. } | Self::TunedProfile { .. }, _) => "run the command by hand to see its error",
            (_, io::ErrorKind::InvalidInput) => {
                "this kernel or machine does not accept this value: leave the setting out with --without"
            }
            (_, io::ErrorKind::PermissionDenied) => {
                "be root; if root is refused too, a container or a lockdown forbids it: leave the setting out with \
--without"
            }
            (_, io::ErrorKind::ResourceBusy) => {
                "it is in use: end the program that uses it, or leave the setting out with --without"
            }
            (_, io::ErrorKind::NotFound) => "it no longer exists: plan again",
            _ => "leave the setting out with --without",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write { path, then, .. } => write!(f, "write {then} to {path}"),
            Self::Schedule { thread, then, .. } => write!(f, "make {} ({}) {then}", thread.name, thread.tid),
            Self::Place { thread, then, .. } => {
                write!(f, "allow {} ({}) CPUs {then}", thread.name, thread.tid)
            }
            Self::Service { unit, then, .. } => {
                write!(f, "{} {unit}", if then == "active" { "start" } else { "stop" })
            }
            Self::Install { path, .. } => write!(f, "write {path}"),
            Self::Run { now, back } => {
                let words = now.as_ref().or(back.as_ref()).map(|words| words.join(" ")).unwrap_or_default();
                write!(f, "run `{words}`")
            }
            Self::TunedProfile { then, .. } => write!(f, "tuned-adm profile {then}"),
        }
    }
}

/// Linux 6.1 sets `watchdog` to 0 when that is only read while both watchdogs are off, and
/// then takes no 1 for either (`proc_watchdog_common` in kernel/watchdog.c). While one of them was on
/// it was 1.
fn wake(system: &dyn System, path: &str, former: &str) {
    const ALL: &str = "/proc/sys/kernel/watchdog";
    let one = ["/proc/sys/kernel/soft_watchdog", "/proc/sys/kernel/nmi_watchdog"].contains(&path);
    if one && former.trim() == "1" && system.text(ALL).is_some_and(|all| all.trim() == "0") {
        // Where this is refused the write that follows says so; the door logs both.
        let _ = system.write(Path::new(ALL), b"1\n");
    }
}

/// The thread must still be the one that was meant.
fn known(system: &dyn System, thread: &Thread) -> io::Result<()> {
    task(system, thread).map(drop).ok_or_else(|| rustix::io::Errno::SRCH.into())
}

fn schedule(system: &dyn System, thread: &Thread, words: &str) -> io::Result<()> {
    known(system, thread)?;
    let (policy, priority) = words.split_once(' ').ok_or(io::ErrorKind::InvalidInput)?;
    let priority = priority.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
    system.schedule(thread.tid, Policy::of(policy), priority)
}

fn place(system: &dyn System, thread: &Thread, cpus: &str) -> io::Result<()> {
    known(system, thread)?;
    let cpus: CpuSet = cpus.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
    system.place(thread.tid, &cpus)
}

/// A directory that bears our name goes with its last file.
fn uninstall(system: &dyn System, path: &Path) -> io::Result<()> {
    system.remove(path)?;
    match path.parent() {
        Some(dir) if dir.ends_with("tactus") && system.list(dir).is_ok_and(|files| files.is_empty()) => {
            system.remove(dir)
        }
        _ => Ok(()),
    }
}

/// `active` or `inactive`.
fn service_state(system: &dyn System, unit: &str) -> String {
    let asked = Invocation::new(["systemctl", "is-active", "--quiet", unit]);
    let active = system.run(&asked).is_ok_and(|finished| finished.success());
    if active { "active".into() } else { "inactive".into() }
}

fn service(system: &dyn System, unit: &str, state: &str) -> io::Result<()> {
    let verb = if state == "active" { "start" } else { "stop" };
    command(system, &["systemctl".into(), verb.into(), unit.into()])
}

fn command(system: &dyn System, words: &[String]) -> io::Result<()> {
    let finished = system.run(&Invocation::new(words.to_vec()).within(COMMAND))?;
    if finished.success() { Ok(()) } else { Err(io::Error::other(finished.words())) }
}
