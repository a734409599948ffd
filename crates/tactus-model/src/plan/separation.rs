//! Which environments a disturbance in one of them reaches.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::catalogue::{Fault, Load, optional_word_or_table};
use crate::duration::Nanos;
use crate::lot::{LOAD_ON_NS, PARTS, SHORTEST_WINDOW_NS};
use crate::message::LockIn;

/// The environments that a disturbance in one of them reaches. All are measured at once, on the same CPUs of the
/// machine. They are measured at rest, and while one of them is disturbed on one of these CPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Separation {
    /// Names of the environments; each is disturbed in turn.
    pub environments: Vec<String>,
    /// The disturbances.
    pub disturb: Vec<Disturbance>,
    /// Time between two wake-ups in all of its scenarios; left out: as in other scenarios.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Nanos>,
    /// Duration of each scenario with a disturbance with `--quick`; left out: as in other scenarios.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quick: Option<Nanos>,
    /// Names of the scenarios at rest. Filled in together with the scenarios when the plan is resolved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rest: Vec<String>,
    /// The scenarios with a disturbance. Filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbed: Vec<Disturbed>,
    /// Environments that this machine does not have, and why. Filled in.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: BTreeMap<String, String>,
    /// Random seed for the times of disturbances. Filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

impl Separation {
    /// The disturbance of a scenario.
    #[must_use]
    pub fn disturbance(&self, scenario: &str) -> Option<&Disturbance> {
        let disturbed = self.disturbed.iter().find(|disturbed| disturbed.scenario == scenario)?;
        self.disturb.iter().find(|one| one.kind() == Some(disturbed.what.as_str()))
    }

    /// The windows and the draws of a scenario; `None`: it has no disturbance, or one that comes too often for windows.
    #[must_use]
    pub fn lock_in(&self, scenario: &str) -> Option<LockIn> {
        let every = self.disturbance(scenario)?.fault.as_ref().map_or(LOAD_ON_NS, |fault| fault.size().1);
        let window_ns = every / PARTS;
        Some(LockIn { window_ns, seed: self.seed? }).filter(|own| own.window_ns >= SHORTEST_WINDOW_NS)
    }
}

/// A load or fault that disturbs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Disturbance {
    /// A load.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional_word_or_table")]
    pub load: Option<Load>,
    /// Or a fault.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional_word_or_table")]
    pub fault: Option<Fault>,
}

impl Disturbance {
    /// The word of what disturbs; nothing where neither or both are said.
    #[must_use]
    pub const fn kind(&self) -> Option<&'static str> {
        match (&self.load, &self.fault) {
            (Some(load), None) => Some(load.kind()),
            (None, Some(fault)) => Some(fault.kind()),
            _ => None,
        }
    }
}

/// A scenario in which one environment is disturbed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Disturbed {
    /// Its name.
    pub scenario: String,
    /// The environment that is disturbed.
    #[serde(rename = "in")]
    pub environment: String,
    /// `block`, `cache`, ...
    pub what: String,
    /// The CPU of the machine on which it is. Series on it are measured on the same CPU, all others on another. Absent
    /// for an environment that has no CPU of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
}
