//! A probe on the other machine.

use tactus_model::Evidence;
use tactus_model::facts::Facts;
use tactus_model::message::Note;
use tactus_system::Invocation;

use super::script;
use crate::support::shell::{self, Failure};
use crate::support::{Piped, cannot};
use crate::{Running, Setting, StartError, Stream};

/// A probe on the other machine, and the ssh that carries its stream. Dropping it ends both.
pub struct Remote {
    ssh: Piped,
    stream: Option<Stream>,
}

impl Remote {
    /// Connects by `words`, and puts the probe there.
    ///
    /// # Errors
    /// When it cannot be reached, is of an architecture that this program has no probe for, or does not
    /// take the probe.
    pub fn start(setting: &Setting<'_>, words: Vec<String>) -> Result<Self, StartError> {
        let command = Invocation::new(words).with_env(setting.guardian.marker());
        let ssh = setting.system.spawn(&command).map_err(|error| cannot("ssh does not start", error))?;
        let mut ssh = Piped::new(ssh, Vec::new(), Vec::new());
        let stream = ssh.take_stream().ok_or_else(|| cannot("ssh", "it has no stdin and stdout"))?;
        match shell::deliver(stream, setting.patience) {
            Ok(stream) => Ok(Self { ssh, stream: Some(stream) }),
            Err(Failure::Ended) => Err(refused(&mut ssh)),
            Err(Failure::Told(error)) => Err(error),
        }
    }
}

fn refused(ssh: &mut Piped) -> StartError {
    let words = ssh.last_words().unwrap_or_default();
    StartError {
        hint: script::hint(&words),
        reason: format!("the other machine does not accept the probe: {words}"),
    }
}

impl Running for Remote {
    fn take_stream(&mut self) -> Option<Stream> {
        self.stream.take()
    }

    fn after_hello(&mut self) -> Result<Vec<Note>, StartError> {
        self.ssh.after_hello()
    }

    fn evidence(&self, facts: &Facts) -> Evidence {
        self.ssh.evidence(facts)
    }

    fn last_words(&mut self) -> Option<String> {
        let words = self.ssh.last_words()?;
        let hint = script::hint(&words).map(|hint| format!("; {hint}")).unwrap_or_default();
        Some(format!("{words}{hint}"))
    }

    fn stop(&mut self) {
        self.ssh.stop();
    }
}
