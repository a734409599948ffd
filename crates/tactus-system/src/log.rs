//! The log of all that goes through the door: commands, with how they ended and how long they took, and changes. The
//! variables of commands and the contents of ordinary files are left out: they may contain secrets.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::time::Instant;

use tactus_model::threads::Policy;
use tracing::{debug, info};

use super::{Finished, Invocation};

/// The place of an action: this machine.
pub const HERE: &str = "this machine";
/// The place of an action: an environment, through its probe.
pub const THERE: &str = "the system of a probe";

/// The longest value of a setting that is logged, in bytes.
const LONGEST_VALUE: usize = 200;

/// The name under which a command is logged: its words, quoted where a shell would need it.
pub fn line(command: &Invocation) -> String {
    words(&command.argv)
}

pub fn words(words: &[impl AsRef<str>]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-+=/.,:@%^".contains(c);
    let quoted = |word: &str| match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("{word:?}"),
    };
    words.iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// Runs a command to its end, and logs it.
pub fn run(
    on: &str,
    command: &Invocation,
    run: impl FnOnce() -> io::Result<Finished>,
) -> io::Result<Finished> {
    let line = line(command);
    debug!(target: "tactus_system", on, "command starts: {line}");
    let began = Instant::now();
    let result = run();
    match &result {
        Ok(finished) => ended(on, &line, began, finished.code),
        Err(error) => info!(target: "tactus_system", on, ms = ms(began), %error, "command failed: {line}"),
    }
    result
}

/// Logs that a command was started that keeps running.
pub fn started(on: &str, command: &Invocation, pid: u32) {
    info!(target: "tactus_system", on, pid, "command started: {}", line(command));
}

/// Logs that a command has ended; without an exit status, a signal ended it.
pub fn ended(on: &str, line: &str, began: Instant, code: Option<i32>) {
    let exit = code.map_or_else(|| "signal".to_owned(), |code| code.to_string());
    info!(target: "tactus_system", on, exit, ms = ms(began), "command ended: {line}");
}

/// Logs a write to a file, or its failure. Bytes written to a file of the kernel are a setting and are logged too.
pub fn wrote(on: &str, path: &Path, bytes: &[u8], result: io::Result<()>) -> io::Result<()> {
    let is_setting = path.starts_with("/proc") || path.starts_with("/sys");
    let to = match std::str::from_utf8(bytes) {
        Ok(text) if is_setting && text.len() <= LONGEST_VALUE => format!("{:?}", text.trim_end()),
        _ => format!("{} bytes", bytes.len()),
    };
    changed(on, format_args!("wrote {to} to {}", path.display()), result)
}

/// A thread got a policy, or could not get it.
pub fn scheduled(thread: u32, policy: Policy, priority: u32, result: io::Result<()>) -> io::Result<()> {
    changed(HERE, format_args!("thread {thread} is scheduled as {policy:?} {priority}"), result)
}

/// Something else was changed, or could not be.
pub fn changed(on: &str, what: impl Display, result: io::Result<()>) -> io::Result<()> {
    match &result {
        Ok(()) => info!(target: "tactus_system", on, "{what}"),
        Err(error) => info!(target: "tactus_system", on, %error, "failed: {what}"),
    }
    result
}

fn ms(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_logged_so_that_its_words_can_be_told_apart() {
        let command = Invocation::new(["sh", "-c", "echo \u{1b}[31m", "", "--a=b"]).with_env(("TOKEN", "x"));
        assert_eq!(line(&command), r#"sh -c "echo \u{1b}[31m" "" --a=b"#);
    }
}
