//! The guest agent of a domain: what is executed inside by it.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tactus_system::last_lines;

use super::virsh::Virsh;
use crate::StartError;
use crate::support::cannot;

/// How long the agent may take to an answer, in seconds.
const ANSWER: &str = "10";

/// The agent of a domain.
pub struct Agent<'a> {
    virsh: &'a Virsh<'a>,
    domain: &'a str,
}

/// How a program that the agent started has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i64>,
    /// Its output on stderr.
    pub words: String,
}

impl fmt::Display for Ended {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            // A shell's way to say it.
            Some(code @ 129..=159) => write!(out, "it was killed by signal {}", code - 128)?,
            Some(code) => write!(out, "it ended with exit code {code}")?,
            None => out.write_str("it was killed by a signal")?,
        }
        let words = last_lines(&self.words, 5);
        if words.is_empty() { Ok(()) } else { write!(out, ": {words}") }
    }
}

impl<'a> Agent<'a> {
    /// Of this domain.
    pub fn of(virsh: &'a Virsh<'a>, domain: &'a str) -> Self {
        Self { virsh, domain }
    }

    /// Whether it answers.
    ///
    /// # Errors
    /// When it does not, with what would fix it.
    pub fn answers(&self) -> Result<(), StartError> {
        self.ask("guest-ping", &json!({})).map(drop)
    }

    /// Starts a shell's script with its parameters; returns its number.
    ///
    /// # Errors
    /// When the agent may not, or the guest has no shell.
    pub fn script(&self, script: &str, parameters: &[&str]) -> Result<i64, StartError> {
        let words: Vec<&str> = ["-c", script, "sh"].into_iter().chain(parameters.iter().copied()).collect();
        let answer = self.ask("guest-exec", &json!({"path": "sh", "arg": words, "capture-output": true}))?;
        answer["pid"].as_i64().ok_or_else(|| cannot("guest-exec", format!("it answered {}", shown(&answer))))
    }

    /// How a program has ended; `None`: it has not.
    ///
    /// # Errors
    /// When the agent does not answer, or knows of it no more.
    pub fn ended(&self, number: i64) -> Result<Option<Ended>, StartError> {
        Ok(ended(&self.ask("guest-exec-status", &json!({ "pid": number }))?))
    }

    fn ask(&self, command: &str, arguments: &Value) -> Result<Value, StartError> {
        let text = json!({"execute": command, "arguments": arguments}).to_string();
        let answer = self.virsh.ask(&["qemu-agent-command", "--timeout", ANSWER, "--", self.domain, &text]);
        let answer = answer.map_err(|error| StartError {
            reason: format!("the guest agent of `{}`: {}", self.domain, error.reason),
            hint: hint(&error.reason),
        })?;
        if answer.len() > LONGEST {
            let said = format!("it answered with {} bytes, more than {LONGEST}", answer.len());
            return Err(cannot("the guest agent", said));
        }
        let answer: Value =
            serde_json::from_str(&answer).map_err(|error| cannot("the guest agent", error))?;
        answer
            .get("return")
            .cloned()
            .ok_or_else(|| cannot("the guest agent", format!("it answered {}", shown(&answer))))
    }
}

/// The longest answer that is read, in bytes. The guest is not trusted.
const LONGEST: usize = 1 << 20;
/// Most letters of an answer that are shown.
const SHOWN: usize = 200;

/// The beginning of an answer.
fn shown(answer: &Value) -> String {
    answer.to_string().chars().take(SHOWN).collect()
}

fn ended(status: &Value) -> Option<Ended> {
    if status["exited"] != Value::Bool(true) {
        return None;
    }
    let bytes = status["err-data"].as_str().and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default();
    let words = String::from_utf8_lossy(&bytes).trim().to_owned();
    Some(Ended { code: status["exitcode"].as_i64(), words })
}

/// The remedy for a failure in these words of libvirt or the agent.
fn hint(words: &str) -> Option<String> {
    let hints = [
        (
            "disabled",
            "the guest forbids it: allow guest-exec and guest-exec-status where its agent is started (Fedora, RHEL: \
/etc/sysconfig/qemu-ga), or use the kind `ssh`",
        ),
        (
            "not configured",
            "the domain has no channel org.qemu.guest_agent.0: add one (`virsh attach-device`: <channel type='unix'><target \
type='virtio' name='org.qemu.guest_agent.0'/></channel>), or use the kind `ssh` or `serial`",
        ),
        (
            "not connected",
            "install qemu-guest-agent in the guest and start it, or use the kind `ssh` or `serial`",
        ),
        ("not responding", "does qemu-guest-agent run in the guest?"),
        (
            "Failed to execute child",
            "a shell (`sh`) of the guest must start the probe, but the guest has none: use `serial`",
        ),
    ];
    hints.iter().find(|(word, _)| words.contains(word)).map(|(_, hint)| (*hint).to_owned())
}

#[cfg(test)]
mod tests {
    use tactus_model::plan;
    use tactus_system::Memory;

    use super::*;

    const CALL: [&str; 5] = ["virsh", "-q", "-c", "qemu:///system", "qemu-agent-command"];

    #[test]
    fn what_the_agent_executes_is_known_by_its_number_until_it_has_ended() {
        let machine = Memory::new().answer(&CALL, 0, "{\"return\":{\"pid\":128}}\n", "");
        let virsh = Virsh::of(&plan::Environment::default(), &machine).unwrap();
        assert_eq!(Agent::of(&virsh, "plc").script("true", &[]), Ok(128));
        // As qemu-ga 7.2 said it.
        assert_eq!(ended(&json!({"exited": false})), None);
        let status = json!({"exitcode": 124, "err-data": "bm8gcG9ydAo=", "exited": true});
        assert_eq!(ended(&status), Some(Ended { code: Some(124), words: "no port".into() }));
        assert_eq!(ended(&status).unwrap().to_string(), "it ended with exit code 124: no port");
        let killed = ended(&json!({"exited": true, "signal": 9})).unwrap();
        assert_eq!((killed.code, killed.to_string().as_str()), (None, "it was killed by a signal"));
        assert!(ended(&json!({"exited": true, "exitcode": 137})).unwrap().to_string().contains("signal 9"));
    }

    #[test]
    fn what_an_agent_refuses_comes_with_what_would_fix_it() {
        for (words, word) in [
            ("error: argument unsupported: QEMU guest agent is not configured", "org.qemu.guest_agent.0"),
            ("error: Guest agent is not responding: QEMU guest agent is not connected", "qemu-guest-agent"),
            (
                "error: internal error: unable to execute QEMU agent command 'guest-exec': Command guest-exec has been disabled",
                "allow guest-exec",
            ),
        ] {
            let machine = Memory::new().answer(&CALL, 1, "", words);
            let virsh = Virsh::of(&plan::Environment::default(), &machine).unwrap();
            let error = Agent::of(&virsh, "plc").answers().unwrap_err();
            assert!(error.reason.contains("`plc`") && error.hint.unwrap().contains(word), "{words}");
        }
        for strange in ["", "[]", "{\"return\":{}}", "{\"error\":{}}", "{\"return\":{\"pid\":\"x\"}}"] {
            let machine = Memory::new().answer(&CALL, 0, strange, "");
            let virsh = Virsh::of(&plan::Environment::default(), &machine).unwrap();
            assert!(Agent::of(&virsh, "plc").script("true", &[]).is_err(), "{strange}");
        }
    }
}
