//! Another machine, reached over ssh.

mod remote;
mod script;

use tactus_model::finding::Role;
use tactus_model::plan;
use tactus_model::topology::Topology;
use tactus_system::{Invocation, System};

use crate::support::{self, cannot, shell};
use crate::{Environment, OptionError, OptionKey, Running, Setting, StartError, Usable};
use remote::Remote;

/// See [`Environment::about`].
pub struct Ssh;

/// The entry of the table.
pub static ENTRY: Ssh = Ssh;

const TO_HINT: &str = "a user and a machine, as \"root@plc-7\", or a name of ~/.ssh/config";

impl Environment for Ssh {
    fn kind(&self) -> &'static str {
        "ssh"
    }

    fn role(&self) -> Role {
        Role::Host
    }

    fn about(&self) -> &'static str {
        "Another machine with Linux, reached by this machine's ssh with a key, never with a password. The \
probe of its architecture is copied to a private directory there, and removes its file when it starts. It \
communicates over the connection and ends with it: nothing stays, even when the connection is cut. Its CPUs \
are those of that machine, not of this one."
    }

    fn options(&self) -> &'static [OptionKey] {
        &[
            OptionKey {
                name: "to",
                about: "user and machine, as root@plc-7, or a name of ~/.ssh/config; default: none, and the \
                    environment is skipped",
            },
            OptionKey { name: "port", about: "its port; default: that of ssh's configuration, else 22" },
            OptionKey {
                name: "identity",
                about: "path of the private key; default: the keys that ssh itself finds",
            },
            OptionKey {
                name: "options",
                about: "a list of further options of ssh, as [\"ProxyJump=gateway\"]; default: none",
            },
            OptionKey {
                name: "sudo",
                about: "true: `sudo -n` runs the probe, if the user may not use real-time priority; default: \
                    false",
            },
        ]
    }

    fn usable(&self, system: &dyn System) -> Usable {
        if system.find_program("ssh").is_none() {
            return Usable::No {
                reason: "ssh is not installed".into(),
                remedy: "install OpenSSH's client (Debian, Ubuntu: `apt-get install openssh-client`; Fedora: `dnf install \
openssh-clients`; Arch: `pacman -S openssh`)"
                    .into(),
            };
        }
        Usable::Yes { remark: Some("for the machine that `to` names in a plan".into()) }
    }

    fn usable_as(&self, spec: &plan::Environment, system: &dyn System) -> Usable {
        match self.usable(system) {
            Usable::Yes { .. } if !spec.options.contains_key("to") => Usable::No {
                reason: "the plan does not name a machine".into(),
                remedy: format!("add `to`: {TO_HINT}"),
            },
            Usable::Yes { .. } => Usable::Yes { remark: None },
            no @ Usable::No { .. } => no,
        }
    }

    fn check(&self, spec: &plan::Environment, _system: &dyn System) -> Result<(), OptionError> {
        words(spec, "true").map(drop)?;
        support::boolean(spec, "sudo").map(drop)
    }

    fn can_nest(&self) -> bool {
        true
    }

    fn elsewhere(&self) -> bool {
        true
    }

    fn topology(&self, spec: &plan::Environment, system: &dyn System) -> Result<Topology, StartError> {
        let words = words(spec, script::TOPOLOGY).map_err(key)?;
        let asked = Invocation::new(words).within(shell::PATIENCE);
        let finished = system.run(&asked).map_err(|error| cannot("ssh", error))?;
        let said = script::topology(&finished.text());
        said.filter(|_| finished.success()).ok_or_else(|| {
            let words = finished.words();
            StartError { hint: script::hint(&words), reason: format!("it cannot be reached by ssh: {words}") }
        })
    }

    fn start(&self, setting: &Setting<'_>) -> Result<Box<dyn Running>, StartError> {
        let sudo = support::boolean(setting.spec, "sudo").map_err(key)?.unwrap_or(false);
        let words = words(setting.spec, &shell::run(setting.guardian.marker(), sudo)).map_err(key)?;
        Ok(Box::new(Remote::start(setting, words)?))
    }
}

fn key(error: OptionError) -> StartError {
    StartError { reason: error.message, hint: Some(error.hint) }
}

/// The command that has the other machine execute `remote`.
fn words(spec: &plan::Environment, remote: &str) -> Result<Vec<String>, OptionError> {
    let wrong = |key: &str, value: &str, hint: &str| OptionError {
        key: key.into(),
        message: format!("`{key}` cannot be {value:?}"),
        hint: hint.into(),
    };
    // Of an option that is given twice, ssh takes the first. A connection that others share would be
    // ended by them, and a question could not be answered.
    let mut words: Vec<String> =
        ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ControlMaster=no", "-o", "ControlPath=none"]
            .map(str::to_owned)
            .into();
    for option in
        support::list(spec, "options", "a list of options as in ssh_config(5), as [\"ProxyJump=gateway\"]")?
    {
        if !option.contains(['=', ' ']) || option.starts_with('-') {
            return Err(wrong("options", option, "options as in ssh_config(5), as \"ProxyJump=gateway\""));
        }
        words.extend(["-o".to_owned(), option.to_owned()]);
    }
    // A machine that vanishes is noticed within seconds.
    for option in ["ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3", "LogLevel=ERROR"] {
        words.extend(["-o".to_owned(), option.to_owned()]);
    }
    if let Some(port) = support::number(spec, "port", 1..=65_535)? {
        words.extend(["-p".to_owned(), port.to_string()]);
    }
    if let Some(identity) = support::text(spec, "identity", "the path of a private key")? {
        words.extend([
            "-i".to_owned(),
            identity.to_owned(),
            "-o".to_owned(),
            "IdentitiesOnly=yes".to_owned(),
        ]);
    }
    let to = support::text(spec, "to", TO_HINT)?.unwrap_or_default();
    // ssh itself takes what stands behind the user for an option where it begins with a dash; some releases refuse it.
    let machine = to.rsplit('@').next().unwrap_or(to);
    if to.starts_with('-') || machine.starts_with('-') || to.contains(char::is_whitespace) {
        return Err(wrong("to", to, TO_HINT));
    }
    words.extend(["--".to_owned(), to.to_owned(), remote.to_owned()]);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tactus_system::Memory;

    use super::*;

    fn spec(options: Value) -> plan::Environment {
        let Value::Object(options) = options else { panic!("a table") };
        let options = options.into_iter().collect();
        plan::Environment { kind: "ssh".into(), options, ..plan::Environment::default() }
    }

    #[test]
    fn keys_become_words_that_cannot_be_taken_for_others() {
        let all =
            spec(json!({"to": "root@plc", "port": 2222, "identity": "/k", "options": ["ProxyJump=gw"]}));
        let words = words(&all, "true").unwrap();
        assert_eq!(words[..3], ["ssh", "-T", "-o"]);
        assert_eq!(words[words.len() - 3..], ["--", "root@plc", "true"]);
        for pair in [["-p", "2222"], ["-i", "/k"], ["-o", "ProxyJump=gw"], ["-o", "BatchMode=yes"]] {
            assert!(words.windows(2).any(|two| two == pair), "{pair:?}: {words:?}");
        }
        for (key, value) in [
            ("to", json!("-oProxyCommand=sh")),
            ("to", json!("root@-oProxyCommand=sh")),
            ("to", json!("root@plc@-oProxyCommand=sh")),
            ("to", json!("a b")),
            ("to", json!(7)),
            ("port", json!(0)),
            ("port", json!("22")),
            ("port", json!(70_000)),
            ("options", json!("ProxyJump=gw")),
            ("options", json!(["-v"])),
            ("options", json!([3])),
            ("sudo", json!("yes")),
            ("identity", json!(false)),
        ] {
            let error = ENTRY.check(&spec(json!({key: value.clone()})), &Memory::new()).expect_err(key);
            assert_eq!(error.key, key, "{value}");
            assert!(!error.hint.is_empty());
        }
    }

    #[test]
    fn a_machine_that_is_not_named_is_no_place_and_one_that_cannot_be_reached_says_why() {
        let machine = Memory::new().program("ssh");
        let Usable::No { remedy, .. } = ENTRY.usable_as(&spec(json!({})), &machine) else {
            panic!("no `to`")
        };
        assert!(remedy.contains("root@plc-7"));
        let there = spec(json!({"to": "plc"}));
        let machine = machine.answer(&["ssh"], 255, "", "Host key verification failed.\n");
        let error = ENTRY.topology(&there, &machine).unwrap_err();
        assert!(error.reason.contains("Host key verification failed"), "{error}");
        assert!(error.hint.unwrap().contains("accept-new"));
    }
}
