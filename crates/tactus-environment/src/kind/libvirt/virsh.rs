//! libvirt's command.

use std::time::Duration;

use tactus_model::plan;
use tactus_model::text::quoted;
use tactus_model::undo::{Tool, Undo};
use tactus_system::{Invocation, System, last_lines};

use crate::support::{cannot, text};
use crate::{OptionError, StartError};

/// The libvirt of the machine.
const SYSTEM: &str = "qemu:///system";
/// How long an answer may take: a daemon that a socket starts first asks every QEMU what it can.
const ANSWER: Duration = Duration::from_secs(30);

/// The address of the plan's libvirt.
///
/// # Errors
/// When it is on another machine: the threads of its domains are not on this one.
pub fn uri(spec: &plan::Environment) -> Result<&str, OptionError> {
    let hint = "a libvirt of this machine, as qemu:///system or qemu:///session";
    let uri = text(spec, "uri", hint)?.unwrap_or(SYSTEM);
    let wrong = |message: String| OptionError { key: "uri".into(), message, hint: hint.into() };
    let (driver, rest) =
        uri.split_once("://").ok_or_else(|| wrong(format!("`uri` cannot be {uri:?}: it has no ://")))?;
    if !matches!(driver, "qemu" | "qemu+unix") {
        return Err(wrong(format!("`uri` cannot be {uri:?}: {driver} is not QEMU on this machine")));
    }
    if !rest.starts_with('/') {
        return Err(wrong(format!("`uri` cannot be {uri:?}: it names another machine")));
    }
    Ok(uri)
}

/// Whether libvirt says that a domain is paused.
pub fn is_paused(spec: &plan::Environment, system: &dyn System, name: &str) -> bool {
    let state = Virsh::of(spec, system).ok().and_then(|virsh| virsh.ask(&["domstate", "--", name]).ok());
    matches!(state.as_deref(), Some("paused" | "pmsuspended"))
}

/// libvirt's command, and the libvirt that it asks.
pub struct Virsh<'a> {
    system: &'a dyn System,
    uri: String,
}

impl<'a> Virsh<'a> {
    /// For a plan's environment.
    ///
    /// # Errors
    /// When its `uri` is wrong.
    pub fn of(spec: &plan::Environment, system: &'a dyn System) -> Result<Self, OptionError> {
        Ok(Self { system, uri: uri(spec)?.to_owned() })
    }

    /// The words of a call.
    pub fn words(&self, words: &[&str]) -> Vec<String> {
        ["virsh", "-q", "-c", &self.uri].iter().chain(words).map(|word| (*word).to_owned()).collect()
    }

    /// How a domain of ours is ended.
    pub fn destruction(&self, name: &str) -> Undo {
        Undo::Tool(Tool::Domain { uri: self.uri.clone(), name: name.into() })
    }

    /// How a device of ours is taken from somebody's domain.
    pub fn detachment(&self, domain: &str, alias: &str) -> Undo {
        Undo::Tool(Tool::DomainDevice { uri: self.uri.clone(), domain: domain.into(), alias: alias.into() })
    }

    /// The answer of libvirt.
    ///
    /// # Errors
    /// When it refuses, in its own words.
    pub fn ask(&self, words: &[&str]) -> Result<String, StartError> {
        // The output is parsed: it must be in English.
        let command = Invocation::new(self.words(words)).within(ANSWER).with_env(("LC_ALL", "C"));
        let what = format!("virsh {}", words.first().unwrap_or(&""));
        let finished = self.system.run(&command).map_err(|error| cannot(&what, error))?;
        if finished.success() {
            return Ok(finished.text().trim().to_owned());
        }
        Err(cannot(&what, finished.words()))
    }

    /// Whether libvirt answers at all.
    ///
    /// # Errors
    /// When it does not, with what would fix it.
    pub fn answers(&self) -> Result<(), StartError> {
        self.ask(&["uri"]).map(drop).map_err(|error| StartError {
            // The lines before say that it failed, the last one why.
            reason: format!("libvirt does not answer at {}: {}", self.uri, last_lines(&error.reason, 1)),
            hint: Some(
                "start its daemon (`systemctl start virtqemud.socket`, older ones `systemctl start libvirtd`), run as \
root or a member of the group libvirt, or install libvirt-daemon-system"
                    .into(),
            ),
        })
    }

    /// A domain's UUID.
    ///
    /// # Errors
    /// When the domain does not exist.
    pub fn uuid(&self, name: &str) -> Result<String, StartError> {
        self.ask(&["domuuid", "--", name]).map_err(|error| StartError {
            reason: format!("there is no domain `{name}`: {}", error.reason),
            hint: Some(format!("`virsh -c {} list --all` shows the existing ones", quoted(&self.uri))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(uri: &str) -> plan::Environment {
        let options = [("uri".to_owned(), uri.into())].into_iter().collect();
        plan::Environment { kind: "libvirt".into(), options, ..plan::Environment::default() }
    }

    #[test]
    fn a_domain_is_paused_where_libvirt_says_so_and_not_where_it_does_not_answer() {
        let asked = ["virsh", "-q", "-c", SYSTEM, "domstate", "--", "plc"];
        let spec = plan::Environment::default();
        for (code, said, paused) in [
            (0, "paused\n", true),
            (0, "pmsuspended\n", true),
            (0, "running\n", false),
            (0, "crashed\n", false),
            (0, "", false),
            (1, "paused\n", false),
        ] {
            let machine = tactus_system::Memory::new().answer(&asked, code, said, "");
            assert_eq!(is_paused(&spec, &machine, "plc"), paused, "{said:?}");
        }
        assert!(!is_paused(&spec, &tactus_system::Memory::new(), "plc"));
    }

    #[test]
    fn only_a_libvirt_of_this_machine_is_asked() {
        assert_eq!(uri(&plan::Environment::default()), Ok(SYSTEM));
        for good in ["qemu:///session", "qemu+unix:///system?socket=/run/x/libvirt-sock"] {
            assert_eq!(uri(&with(good)), Ok(good));
        }
        for bad in
            ["", "system", "qemu+ssh://lab/system", "qemu://lab/system", "xen:///system", "test:///default"]
        {
            let error = uri(&with(bad)).unwrap_err();
            assert!(error.key == "uri" && error.message.contains(bad) && !error.hint.is_empty(), "{error:?}");
        }
    }
}
