//! The definition of a check.

use std::fmt;

use serde::{Serialize, Serializer};
use tactus_model::change::Change;
use tactus_model::finding::Severity;

use super::{Arch, Subject, Verdict};

/// An entry of the knowledge base: one thing that makes or spoils time, and how it is told.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Its name, as `tactus explain` takes it.
    pub id: &'static str,
    /// The problem in a few words, not the advice: "hardware threads share a core".
    pub title: &'static str,
    /// Which documents name it, and what else it rests on.
    pub sources: &'static [Source],
    /// The systems that it concerns.
    pub applies: &'static [Applies],
    /// How bad it is when it fails.
    pub severity: Severity,
    /// Processors that it concerns.
    pub arch: Arch,
    /// How it is set.
    pub set: &'static [SetBy],
    /// How a fix is taken back.
    pub reversible: Reversible,
    /// Whether it is about the hardware. In a virtual machine the answer is then unknown, because a guest sees what
    /// its hypervisor invents.
    pub hardware: bool,
    /// The readings.
    pub reads: &'static str,
    /// Their expected values.
    pub expected: &'static str,
    /// Why it matters.
    pub why: &'static str,
    /// How it is fixed. `{isolated}` and `{housekeeping}` stand for the CPUs.
    pub fix: &'static str,
    /// The risk of the fix.
    pub risk: &'static str,
    /// The rule. It is asked only where the check applies.
    pub judge: fn(&Subject<'_>) -> Verdict,
    /// Every setting that the fix consists of on this system, also those that hold already.
    pub changes: fn(&Subject<'_>) -> Vec<Change>,
}

/// For checks whose fix no program can carry out.
#[must_use]
pub fn no_change(_: &Subject<'_>) -> Vec<Change> {
    Vec::new()
}

/// A document that names the check, or that says what it says beyond the five documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// intel-xeon-2015.
    Xeon,
    /// freescale-qoriq-2014.
    Qoriq,
    /// redhat-openstack-2018.
    RedHat,
    /// intel-industrial-2014.
    Industrial,
    /// osadl-2023.
    Osadl,
    /// Linux: a file of its sources, or a commit.
    Kernel(&'static str),
    /// A profile of TuneD.
    Tuned(&'static str),
    /// Another project's manual: `libvirt, realtime`, `sched(7)`.
    Guide(&'static str),
}

impl Source {
    /// Whether the source is not one of the five documents.
    #[must_use]
    pub fn is_beyond(self) -> bool {
        matches!(self, Self::Kernel(_) | Self::Tuned(_) | Self::Guide(_))
    }
}

impl fmt::Display for Source {
    /// The document's name, as studies are called; of what lies beyond them, whose it is and where.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Xeon => f.write_str("intel-xeon-2015"),
            Self::Qoriq => f.write_str("freescale-qoriq-2014"),
            Self::RedHat => f.write_str("redhat-openstack-2018"),
            Self::Industrial => f.write_str("intel-industrial-2014"),
            Self::Osadl => f.write_str("osadl-2023"),
            Self::Kernel(place) => write!(f, "Linux {place}"),
            Self::Tuned(profile) => write!(f, "TuneD {profile}"),
            Self::Guide(place) => f.write_str(place),
        }
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The kinds of systems that a check can concern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Applies {
    /// The host.
    Host,
    /// A guest.
    Guest,
    /// A container.
    Container,
    /// The process of a virtual machine, seen from its host.
    Hypervisor,
}

/// How something is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SetBy {
    /// On the kernel's command line.
    KernelCommandLine,
    /// At run time.
    RunTime,
    /// In the firmware's setup.
    Firmware,
    /// In the libvirt domain.
    Libvirt,
    /// On QEMU's command line.
    Qemu,
    /// As a parameter of a module.
    ModuleParameter,
    /// By a service.
    Service,
    /// By a flag of the container runtime.
    ContainerFlag,
    /// By another kernel or package.
    Installation,
    /// By the place that is given to the work.
    Placement,
    /// In the application.
    Application,
}

/// How a fix is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reversible {
    /// At run time.
    Yes,
    /// By a reboot.
    Reboot,
    /// By restarting the virtual machine or container.
    Restart,
    /// There is nothing to take back.
    Nothing,
}
