//! The order of a fleet: decided once, and the same whenever its command is repeated.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tactus_model::bundle::Format;

use crate::error::FleetError;
use crate::name::sha256;

/// The version of the directory's format. Another major version is refused.
pub const FORMAT: Format = Format { major: 1, minor: 0 };

/// `fleet.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// [`FORMAT`].
    pub format: Format,
    /// The tactus that began it.
    pub tactus: String,
    /// Its own name, which its jobs bear: eight hexadecimal digits.
    pub id: String,
    /// When it was begun, RFC 3339.
    pub started: String,
    /// The engine.
    pub engine: String,
    /// Which machines, in the engine's words.
    pub select: String,
    /// The user's options for the engine.
    pub options: BTreeMap<String, String>,
    /// Name of the plan.
    pub plan: String,
    /// SHA-256 of `plan.toml`, in hex.
    pub plan_sha256: String,
    /// Further words of `tactus run` on each machine.
    pub arguments: Vec<String>,
    /// The machines, as the engine named them when it began.
    pub machines: Vec<String>,
}

impl Order {
    /// Makes the name by which its jobs are known, of all that it is.
    #[must_use]
    pub fn named(mut self, nonce: u64) -> Self {
        let text = format!("{nonce}\0{}\0{}\0{}", self.started, self.plan_sha256, self.machines.join("\0"));
        self.id = sha256(text.as_bytes())[..8].to_owned();
        self
    }

    /// An option, if it was given.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    /// Refuses to resume another fleet than the one that was begun.
    ///
    /// # Errors
    /// The first difference.
    pub fn same(&self, other: &Self) -> Result<(), FleetError> {
        let differs = [
            ("engine", self.engine != other.engine),
            ("selection", self.select != other.select),
            ("plan", self.plan_sha256 != other.plan_sha256),
            ("options of the engine", self.options != other.options),
            ("arguments of `tactus run`", self.arguments != other.arguments),
        ];
        match differs.iter().find(|(_, differs)| *differs) {
            None => Ok(()),
            Some((what, _)) => Err(FleetError::new(
                format!("this fleet was begun differently: not the same {what}"),
                "repeat the same command to continue it, or begin another one with another --out",
            )),
        }
    }
}

/// The list of machines as it is frozen: each once, in the engine's order.
///
/// # Errors
/// When it is empty.
pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>, select: &str) -> Result<Vec<String>, FleetError> {
    let mut seen = BTreeSet::new();
    let machines: Vec<String> =
        names.into_iter().filter(|name| seen.insert(*name)).map(str::to_owned).collect();
    if machines.is_empty() {
        return Err(FleetError::new(
            format!("the engine has no machine for `{select}`"),
            "list the machines with the engine's own client (`tactus explain ENGINE` has the words of \
                --select)",
        ));
    }
    Ok(machines)
}
