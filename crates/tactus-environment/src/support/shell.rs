//! A shell on another system that takes the probe in and becomes it, over one stream. The script is one
//! line without single quotes: it passes through a login shell, whichever that is, and is read by `sh`.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use tactus_system::probe;

use super::write_within::write_within;
use crate::{StartError, Stream};

/// How long the other system may take until it can take the probe.
pub const PATIENCE: Duration = Duration::from_secs(40);
/// The longest greeting of the machine, in bytes.
const LONGEST_GREETING: u64 = 64 * 1024;
/// How the line begins in which the other system names its architecture. Lines before it are those of
/// the user's own start-up files.
const GREETING: &str = "tactus finds ";

/// Why the probe is not there.
pub enum Failure {
    /// The stream ended: its carrier knows why.
    Ended,
    /// Any other reason.
    Told(StartError),
}

/// Gives the probe to a shell that executes [`run`].
///
/// # Errors
/// When it ends or stays silent, or is of an architecture that this program has no probe for.
pub fn deliver(stream: Stream, patience: Duration) -> Result<Stream, Failure> {
    let Stream { reader, writer } = stream;
    let patience = PATIENCE.min(patience);
    let (sender, greeting) = channel();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        // After the timeout the receiver is gone.
        let _ = sender.send(greet(&mut reader).map(|arch| (arch, reader)));
    });
    let (arch, reader) = match greeting.recv_timeout(patience) {
        Ok(Some(greeted)) => greeted,
        Ok(None) | Err(RecvTimeoutError::Disconnected) => return Err(Failure::Ended),
        Err(RecvTimeoutError::Timeout) => {
            return Err(Failure::Told(StartError {
                reason: format!("it did not answer within {} s", patience.as_secs()),
                hint: Some("do its shell's start-up files wait for something?".into()),
            }));
        }
    };
    let Some(bytes) = probe::bytes(&arch) else {
        return Err(Failure::Told(StartError {
            reason: format!("it is an {arch} machine, for which this tactus has no probe"),
            hint: Some("there are probes for x86_64 and aarch64".into()),
        }));
    };
    let message = [format!("{}\n", bytes.len()).as_bytes(), bytes].concat();
    match write_within(writer, message, patience) {
        Ok(writer) => Ok(Stream { reader: Box::new(reader), writer }),
        Err(error) if error.kind() == ErrorKind::TimedOut => Err(Failure::Told(StartError {
            reason: format!("it did not accept the probe within {} s", patience.as_secs()),
            hint: Some("is its disk full, or its shell stopped?".into()),
        })),
        Err(_) => Err(Failure::Ended),
    }
}

/// Reads up to the line that names the architecture.
fn greet(reader: &mut impl BufRead) -> Option<String> {
    let mut limited = reader.by_ref().take(LONGEST_GREETING);
    let mut line = Vec::new();
    while limited.read_until(b'\n', &mut line).ok()? > 0 {
        if let Some(arch) = architecture(&String::from_utf8_lossy(&line)) {
            return Some(arch.to_owned());
        }
        line.clear();
    }
    None
}

/// The architecture that a greeting names.
pub fn architecture(line: &str) -> Option<&str> {
    line.trim_end().strip_prefix(GREETING).filter(|name| !name.is_empty() && !name.contains(' '))
}

/// The script that receives the probe and runs it. It prints its architecture, reads a line with the number of bytes
/// and then these bytes. The probe lies in a new directory where programs may be executed, until it removes both. If
/// the shell ends before that, it removes them.
pub fn run((marker, id): (&str, &str), sudo: bool) -> String {
    let sudo = if sudo { "sudo -n " } else { "" };
    format!(
        "exec sh -c 'umask 077; d=; trap \"rm -rf \\\"\\$d\\\"\" EXIT; trap \"exit 1\" HUP INT TERM; \
for b in \"$XDG_RUNTIME_DIR\" /dev/shm /run /var/tmp /tmp \"$HOME\"; do [ -d \"$b\" ] || continue; \
d=$(mktemp -d \"$b/tactus-{id}.XXXXXX\" 2>/dev/null) || continue; \
printf \"#\\041/bin/sh\\n\" >\"$d/probe\" && chmod 700 \"$d/probe\" && \"$d/probe\" 2>/dev/null && break; \
rm -rf \"$d\"; d=; done; \
[ -n \"$d\" ] || {{ echo no directory there can hold a program: each is missing, full, read-only or noexec >&2; exit 126; }}; \
echo tactus finds $(uname -m); read n; head -c \"$n\" >\"$d/probe\"; \
[ \"$(wc -c <\"$d/probe\")\" -eq \"$n\" ] || {{ echo the probe arrived cut >&2; exit 125; }}; \
{sudo}env {marker}={id} \"$d/probe\" fleeting'"
    )
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn the_script_passes_through_any_login_shell() {
        let script = run(("TACTUS_RUN", "1-a"), true);
        let inner = script.strip_prefix("exec sh -c '").and_then(|s| s.strip_suffix('\'')).unwrap();
        assert!(!inner.contains(['\'', '\n', '!', '`']), "{inner}");
    }

    #[test]
    fn a_greeting_names_one_architecture() {
        assert_eq!(architecture("tactus finds x86_64\r"), Some("x86_64"));
        assert_eq!(architecture("tactus finds what it wants"), None);
    }

    #[test]
    fn what_ends_or_is_of_another_kind_is_told_apart() {
        let of = |said: &str| {
            let reader = Box::new(Cursor::new(said.as_bytes().to_owned()));
            deliver(Stream { reader, writer: Box::new(std::io::sink()) }, PATIENCE)
        };
        assert!(matches!(of("Welcome!\n"), Err(Failure::Ended)));
        let Err(Failure::Told(error)) = of("Welcome!\ntactus finds vax\n") else {
            panic!("no probe runs there")
        };
        assert!(error.reason.contains("vax") && error.hint.is_some());
    }

    /// A stream that takes nothing for a minute.
    struct Stuck;

    impl std::io::Write for Stuck {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            std::thread::sleep(Duration::from_secs(60));
            Err(ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_system_that_greets_and_then_does_not_read_is_given_up() {
        let greeting = format!("tactus finds {}\n", std::env::consts::ARCH);
        let stream = Stream { reader: Box::new(Cursor::new(greeting.into_bytes())), writer: Box::new(Stuck) };
        match deliver(stream, Duration::from_secs(1)) {
            Err(Failure::Told(error)) => {
                assert!(error.reason.contains("did not accept the probe"), "{}", error.reason);
            }
            _ => panic!("it was not given up"),
        }
    }
}
