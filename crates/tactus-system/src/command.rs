//! Commands, and how they ended.

use std::time::Duration;

/// The most that a command may write to be read, and the most that is kept of its stderr: lists of packages are 20 MB.
pub const MOST_OUTPUT: u64 = 64 << 20;

/// A command to be run, with everything that matters about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invocation {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Variables added to the environment; the marker of the run is one of them.
    pub env: Vec<(String, String)>,
    /// Its working directory; `None`: that of this process.
    pub dir: Option<std::path::PathBuf>,
    /// Its time limit; only for [`super::System::run`]. `None`: no limit, or ten minutes through a probe.
    pub patience: Option<Duration>,
    /// Whether it is handed on what `setcap` gave this program: real-time priorities, and memory that stays. Only for
    /// [`super::System::spawn`].
    pub with_capabilities: bool,
}

impl Invocation {
    /// A command from its words.
    pub fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Self {
        Self { argv: argv.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// The same with another variable in its environment.
    #[must_use]
    pub fn with_env(mut self, (name, value): (&str, &str)) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// The same with a limit to the time it may take.
    #[must_use]
    pub fn within(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// The same, with the capabilities that a probe needs, as far as this program has them.
    #[must_use]
    pub fn with_capabilities(mut self) -> Self {
        self.with_capabilities = true;
        self
    }

    /// The same in a directory.
    #[must_use]
    pub fn in_dir(mut self, dir: impl Into<std::path::PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }
}

/// How a command ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Its stdout.
    pub stdout: Vec<u8>,
    /// Its stderr.
    pub stderr: Vec<u8>,
}

impl Finished {
    /// Whether it exited with 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }

    /// Its stdout, as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Its own words about what went wrong: the last lines of stderr, else of stdout.
    #[must_use]
    pub fn words(&self) -> String {
        let stream = if self.stderr.is_empty() { &self.stdout } else { &self.stderr };
        last_lines(&String::from_utf8_lossy(stream), 5)
    }
}

/// The longest line that is quoted, in characters.
const LONGEST: usize = 1000;

/// The last lines of a text that say anything; of a line that is too long its beginning.
#[must_use]
pub fn last_lines(text: &str, count: usize) -> String {
    let said = text.lines().rev().map(str::trim_end).filter(|line| !line.is_empty());
    let mut lines: Vec<String> = said.take(count).map(quoted).collect();
    lines.reverse();
    lines.join("\n")
}

fn quoted(line: &str) -> String {
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} [...]", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_command_are_its_last_lines_on_stderr_else_on_stdout() {
        let both =
            Finished { stdout: b"out".to_vec(), stderr: b"1\n2\n\n3\n4\n5\n6\n".to_vec(), code: Some(1) };
        assert_eq!(both.words(), "2\n3\n4\n5\n6");
        let out = Finished { stdout: b"only this\n".to_vec(), ..Finished::default() };
        assert_eq!(out.words(), "only this");
        assert!(!out.success(), "ended by a signal");
    }

    #[test]
    fn of_a_line_without_an_end_the_beginning_is_quoted() {
        let text = format!("first\n{}\nlast\n", "ü".repeat(100_000));
        let words = last_lines(&text, 2);
        assert!(words.starts_with("üü") && words.ends_with("ü [...]\nlast"), "{}", words.len());
        assert_eq!(words.chars().count(), LONGEST + " [...]\nlast".len());
    }
}
