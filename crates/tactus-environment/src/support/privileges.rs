//! Privileges of a container beyond those that measuring takes: for the run, and because its table in the plan asks
//! for them.

use serde_json::Value;
use tactus_model::message::Note;
use tactus_model::plan;

use crate::{OptionError, OptionKey};

/// The key that says what a container's engine gives it besides.
pub const ENGINE: OptionKey = OptionKey {
    name: "engine",
    about: "more rights of the container for the run; default: those that its engine gives every container. \
In a container `block` needs engine = { capabilities = [\"BPF\", \"PERFMON\"] }. With BPF its filter of \
system calls (seccomp) is also off",
};

const HINT: &str = "as { capabilities = [\"BPF\", \"PERFMON\"] }";

/// The additional privileges of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Privileges {
    /// Names of capabilities without their CAP_.
    names: Vec<String>,
    /// The filter of system calls, which engines have by default, would make them useless: those of before CAP_BPF
    /// let SYS_ADMIN alone through.
    unfiltered: bool,
}

/// The two of Linux 5.8, and what had to be had before for either.
const NEW: [&str; 2] = ["BPF", "PERFMON"];
const BEFORE: &str = "SYS_ADMIN";

impl Privileges {
    /// Reads them from the table of an environment.
    ///
    /// # Errors
    /// When the key has another form, or the container is one that runs already.
    pub fn of(spec: &plan::Environment) -> Result<Self, OptionError> {
        let wrong =
            |message: String, hint: &str| OptionError { key: ENGINE.name.into(), message, hint: hint.into() };
        let Some(value) = spec.options.get(ENGINE.name) else { return Ok(Self::default()) };
        let other = || wrong(format!("`engine` cannot be {value}"), HINT);
        let table = value.as_object().ok_or_else(other)?;
        let list = table.get("capabilities").and_then(Value::as_array).filter(|_| table.len() == 1);
        let names: Option<Vec<&str>> = list.and_then(|list| list.iter().map(Value::as_str).collect());
        let names = names.ok_or_else(other)?;
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
        };
        if let Some(name) = names.iter().find(|name| !is_name(name) || name.starts_with("CAP_")) {
            return Err(wrong(
                format!("`{name}` is not a capability"),
                "write it in capitals and without its CAP_, as BPF",
            ));
        }
        if let Some(running) = spec.attach.as_ref().filter(|_| !names.is_empty()) {
            return Err(wrong(
                format!("`{running}` already runs: it cannot get more capabilities"),
                "leave `engine` out, and start the container with these capabilities",
            ));
        }
        let unfiltered = names.contains(&NEW[0]);
        Ok(Self { names: names.into_iter().map(str::to_owned).collect(), unfiltered })
    }

    /// Those of an environment that has been checked.
    #[must_use]
    pub fn checked(spec: &plan::Environment) -> Self {
        Self::of(spec).unwrap_or_default()
    }

    /// The capabilities as the kernel's documentation writes them.
    pub fn capabilities(&self) -> impl Iterator<Item = String> + '_ {
        self.names.iter().map(|name| format!("CAP_{name}"))
    }

    /// Whether its filter of system calls is off.
    #[must_use]
    pub const fn unfiltered(&self) -> bool {
        self.unfiltered
    }

    /// The same for an engine that knows no capability of Linux 5.8.
    #[must_use]
    pub fn before_linux_5_8(self) -> Self {
        let (new, mut names): (Vec<_>, Vec<_>) =
            self.names.into_iter().partition(|name| NEW.contains(&name.as_str()));
        if !new.is_empty() && !names.iter().any(|name| name == BEFORE) {
            names.push(BEFORE.into());
        }
        Self { names, ..self }
    }

    /// The arguments for `docker run` and `podman run`.
    pub fn words(&self) -> impl Iterator<Item = String> + '_ {
        let given = self.names.iter().map(|name| format!("--cap-add={name}"));
        given.chain(self.unfiltered.then(|| "--security-opt=seccomp=unconfined".to_owned()))
    }

    /// The note for the reader; `None` if no privilege is added.
    #[must_use]
    pub fn note(&self) -> Option<Note> {
        let given: Vec<String> = self.capabilities().collect();
        let filter = if self.unfiltered { " and no filter of system calls" } else { "" };
        let words = format!("the container has {} for the run{filter}, as in the plan", given.join(", "));
        (!given.is_empty()).then(|| Note::side_effect(words))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(engine: Value) -> plan::Environment {
        let options = [("engine".to_owned(), engine)].into_iter().collect();
        plan::Environment { kind: "podman".into(), options, ..plan::Environment::default() }
    }

    #[test]
    fn a_container_is_given_what_the_plan_says_and_nothing_else() {
        assert_eq!(Privileges::of(&plan::Environment::default()), Ok(Privileges::default()));
        assert_eq!((Privileges::default().words().count(), Privileges::default().note()), (0, None));
        let given = Privileges::of(&spec(json!({"capabilities": ["BPF", "PERFMON"]}))).unwrap();
        let words: Vec<String> = given.words().collect();
        assert_eq!(words, ["--cap-add=BPF", "--cap-add=PERFMON", "--security-opt=seccomp=unconfined"]);
        assert!(given.note().unwrap().text.contains("CAP_BPF, CAP_PERFMON for the run and no filter"));
        let words: Vec<String> = given.before_linux_5_8().words().collect();
        assert_eq!(words, ["--cap-add=SYS_ADMIN", "--security-opt=seccomp=unconfined"]);
        let other = Privileges::of(&spec(json!({"capabilities": ["SYS_RAWIO"]}))).unwrap();
        assert_eq!(other.clone().before_linux_5_8(), other);
        assert_eq!(other.words().collect::<Vec<_>>(), ["--cap-add=SYS_RAWIO"], "the filter stays");
    }

    #[test]
    fn what_is_no_list_of_capabilities_is_refused_with_what_would_be() {
        for value in [
            json!("BPF"),
            json!(["BPF"]),
            json!({}),
            json!({"capabilities": "BPF"}),
            json!({"capabilities": [7]}),
            json!({"capabilities": ["BPF"], "words": []}),
            json!({"capabilities": ["bpf"]}),
            json!({"capabilities": ["CAP_BPF"]}),
            json!({"capabilities": ["BPF --privileged"]}),
            json!({"capabilities": [""]}),
        ] {
            let error = Privileges::of(&spec(value.clone())).unwrap_err();
            assert!(error.key == "engine" && error.hint.contains("BPF"), "{value}: {error}");
        }
        let running =
            plan::Environment { attach: Some("plc".into()), ..spec(json!({"capabilities": ["BPF"]})) };
        assert!(Privileges::of(&running).unwrap_err().message.contains("`plc` already runs"));
    }
}
