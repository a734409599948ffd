//! Findings of the audit on one system.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cpus::CpuSet;

/// How bad it is when a check fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Costs microseconds, or matters in some systems.
    Minor,
    /// Costs tens of microseconds or more from time to time.
    Major,
    /// No promise about time can be made like this.
    Blocker,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is as it should be.
    Ok,
    /// It is not as it should be.
    Finding,
    /// It does not concern this system.
    NotApplicable,
    /// It is not visible from here: a guest cannot see the machine below it.
    Unknowable,
    /// It could not be read; the reason says why.
    Unreadable,
}

impl State {
    /// As programs read it: in JSON and labels.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Finding => "finding",
            Self::NotApplicable => "not_applicable",
            Self::Unknowable => "unknowable",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Which part a system plays, and so which checks concern it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The machine itself, which may carry guests and containers.
    Host,
    /// A virtual machine.
    Guest,
    /// A container.
    Container,
}

/// The CPUs that are meant for real-time work, and those that are not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// CPUs for real-time work.
    pub isolated: CpuSet,
    /// All other CPUs that are online.
    pub housekeeping: CpuSet,
    /// The source of this division.
    pub by: By,
}

/// The source of the CPUs for real-time work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The user, or the plan.
    Asked,
    /// The kernel's command line.
    Boot,
    /// A cpuset (a partition of cgroup v2, or balancing that is off in v1), and perhaps the kernel's command line.
    Cpuset,
    /// Boot settings that are not in effect: a profile of TuneD, a misspelt parameter, a file of the next boot.
    Intended,
    /// No source: it is the value that tactus would choose.
    #[default]
    Assumed,
}

/// A value that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Read {
    /// The path; several of a kind are written together: `/sys/devices/system/cpu/cpu{2-7}/online`.
    pub path: String,
    /// The value, or why it is missing.
    pub value: String,
}

/// The result of one check on one system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Id of the check.
    pub id: String,
    /// Its result.
    pub state: State,
    /// Its severity if `state` is `finding`, else the severity of a possible finding.
    pub severity: Severity,
    /// The group that it is shown in.
    #[serde(default)]
    pub family: String,
    /// The problem in a few words: "hardware threads share a core".
    #[serde(default)]
    pub title: String,
    /// One sentence about this system: what is wrong, or why it is no finding.
    pub message: String,
    /// The values that were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<Read>,
    /// The expected value.
    #[serde(default)]
    pub expected: String,
    /// Why it matters. Only for findings, as the following.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// How to fix it on this system.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fix: String,
    /// The risk of the fix.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub risk: String,
}

/// A fix of one finding or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Action {
    /// The action: "Boot with these parameters".
    pub title: String,
    /// The line that does it; empty if the fix is in each finding.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// The worst severity of its findings.
    pub severity: Severity,
    /// Ids of the checks whose findings it fixes, the worst first.
    pub fixes: Vec<String>,
}

/// Commands that install a kernel.
pub const INSTALLS: [&str; 6] = [
    "sudo apt-get install linux-image-rt-amd64",
    "sudo apt-get install linux-image-rt-arm64",
    "sudo pro enable realtime-kernel",
    "sudo dnf install kernel-rt",
    "sudo pacman -S linux-rt",
    "sudo zypper install kernel-rt",
];
/// How each command that sets something begins.
pub const TUNES: &str = "sudo tactus tune apply --profile ";

impl Action {
    /// The command, if an audit gives it. Users copy it into a root shell, and the file from which it was read may come
    /// from any source: other commands are not shown.
    #[must_use]
    pub fn known_command(&self) -> Option<&str> {
        let tunes = self.command.strip_prefix(TUNES).is_some_and(tunes_plainly);
        (tunes || INSTALLS.contains(&self.command.as_str())).then_some(&self.command)
    }
}

/// Whether it is `PROFILE --isolate CPUS [--persist] --only IDS`.
fn tunes_plainly(rest: &str) -> bool {
    let plain = |word: &str| {
        !word.starts_with('-') && word.chars().all(|c| c.is_ascii_alphanumeric() || ",-".contains(c))
    };
    let words: Vec<&str> = rest.split(' ').collect();
    match words[..] {
        [profile, "--isolate", cpus, "--only", ids]
        | [profile, "--isolate", cpus, "--persist", "--only", ids] => {
            [profile, cpus, ids].into_iter().all(plain)
        }
        _ => false,
    }
}

/// The audit of one system: `audit/<environment>.json` of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// The role of the system.
    pub role: Role,
    /// The intended isolation.
    pub isolation: Isolation,
    /// All checks, worst findings first.
    pub findings: Vec<Finding>,
    /// The fixes: those of several findings first, by their number; then the worst.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
}

impl Audit {
    /// The findings proper, worst first.
    pub fn found(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.state == State::Finding)
    }

    /// How many checks came to this.
    #[must_use]
    pub fn count(&self, state: State) -> usize {
        self.findings.iter().filter(|finding| finding.state == state).count()
    }

    /// The worst severity that was found.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.found().map(|finding| finding.severity).max()
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Info => "info",
            Self::Minor => "minor",
            Self::Major => "major",
            Self::Blocker => "blocker",
        })
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Finding => "finding",
            Self::NotApplicable => "not applicable",
            Self::Unknowable => "not visible here",
            Self::Unreadable => "read failed",
        })
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Host => "host",
            Self::Guest => "guest",
            Self::Container => "container",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_read_the_words_that_they_always_did() {
        for state in [State::Ok, State::Finding, State::NotApplicable, State::Unknowable, State::Unreadable] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.key());
        }
    }
}
