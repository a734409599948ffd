//! A probe on the other machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use tactus_model::facts::Facts;
use tactus_model::message::Note;
use tactus_model::Evidence;

use super::script;
use crate::environment::support::{Piped, cannot};
use crate::environment::{Running, Setting, StartError, Stream};
use crate::probe;
use crate::system::Invocation;

/// How long the other machine may take until it can take the probe.
pub const PATIENCE: Duration = Duration::from_secs(40);
/// The longest greeting of its own, in bytes.
const LONGEST_GREETING: u64 = 64 * 1024;

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
        let mut ssh = setting.system.spawn(&command).map_err(|error| cannot("ssh does not start", error))?;
        let (Some(stdout), Some(mut writer)) = (ssh.take_stdout(), ssh.take_stdin()) else {
            return Err(cannot("ssh", "it has no stdin and stdout"));
        };
        let (sender, greeting) = channel();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            let _ = sender.send(greet(&mut reader).map(|arch| (arch, reader)));
        });
        let greeted = greeting.recv_timeout(PATIENCE.min(setting.patience));
        let mut ssh = Piped::new(ssh, Vec::new(), Vec::new());
        let (arch, reader) = match greeted {
            Ok(Some(greeted)) => greeted,
            Ok(None) | Err(RecvTimeoutError::Disconnected) => return Err(refused(&mut ssh)),
            Err(RecvTimeoutError::Timeout) => {
                return Err(StartError {
                    reason: format!("it did not answer within {} s", PATIENCE.as_secs()),
                    hint: Some("do its shell's start-up files wait for something?".into()),
                });
            }
        };
        let bytes = probe::bytes(&arch).ok_or_else(|| StartError {
            reason: format!("it is an {arch} machine, and this tactus has no probe for that"),
            hint: Some("there are probes for x86_64 and aarch64".into()),
        })?;
        let put = writeln!(writer, "{}", bytes.len()).and_then(|()| writer.write_all(bytes));
        put.and_then(|()| writer.flush()).map_err(|_| refused(&mut ssh))?;
        Ok(Self { ssh, stream: Some(Stream { reader: Box::new(reader), writer }) })
    }
}

/// Reads up to the line that names the architecture.
fn greet(reader: &mut impl BufRead) -> Option<String> {
    let mut limited = reader.by_ref().take(LONGEST_GREETING);
    let mut line = Vec::new();
    while limited.read_until(b'\n', &mut line).ok()? > 0 {
        if let Some(arch) = script::architecture(&String::from_utf8_lossy(&line)) {
            return Some(arch.to_owned());
        }
        line.clear();
    }
    None
}

fn refused(ssh: &mut Piped) -> StartError {
    let words = ssh.last_words().unwrap_or_default();
    StartError { hint: script::hint(&words), reason: format!("the other machine does not take the probe: {words}") }
}

impl Running for Remote {
    fn take_stream(&mut self) -> Option<Stream> {
        self.stream.take()
    }

    fn settle(&mut self) -> Result<Vec<Note>, StartError> {
        self.ssh.settle()
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
