//! A process of the probe that counts on the host from its first word until its stdin ends, and then says what it has.

use std::io::{self, BufRead, BufReader, Read};

use tactus_model::CpuSet;
use tactus_system::guardian::Guardian;
use tactus_system::{Child, Invocation, System, last_lines, probe};

/// The longest account that is read, in bytes: a thousand CPUs, or 128 virtual ones with a hundred reasons each.
const LONGEST: u64 = 1 << 20;
/// The longest first line, in bytes.
const LONGEST_WORD: u64 = 4096;

/// One that counts. Dropping it ends it.
pub struct Counting {
    child: Box<dyn Child>,
    stdout: BufReader<Box<dyn Read + Send>>,
}

impl Counting {
    /// Begins to count what `words` say to the probe. It stays off the measured CPUs.
    ///
    /// # Errors
    /// Why it cannot be done, in words.
    pub fn start(
        system: &dyn System,
        guardian: &Guardian,
        housekeeping: &CpuSet,
        words: impl IntoIterator<Item = String>,
    ) -> Result<Self, String> {
        let program = probe::installed(system).map_err(|error| format!("no probe: {error}"))?;
        let words: Vec<String> = std::iter::once(program.display().to_string()).chain(words).collect();
        let mut child = system
            .spawn(&Invocation::new(words).with_env(guardian.marker()))
            .map_err(|error| format!("it cannot be counted: {error}"))?;
        // Where it is refused the child runs on the CPUs of this thread. The door logs it.
        let _ = system.place(child.pid(), housekeeping);
        let stdout = child.take_stdout().ok_or("the counter has no output")?;
        let mut own = Self { child, stdout: BufReader::new(stdout) };
        let mut line = String::new();
        let said = own.stdout.by_ref().take(LONGEST_WORD).read_line(&mut line);
        let line = line.trim_end();
        match (said, line.strip_prefix("refused ")) {
            (Ok(_), Some(why)) => Err(why.to_owned()),
            (Ok(_), None) if line == "counting" => Ok(own),
            _ => Err(format!("the counter did not start: {}", last_lines(&own.child.stderr(), 2))),
        }
    }

    /// Ends it, and returns what it says.
    ///
    /// # Errors
    /// When it cannot be heard.
    pub fn finish(mut self) -> io::Result<String> {
        drop(self.child.take_stdin());
        let mut said = String::new();
        self.stdout.by_ref().take(LONGEST).read_to_string(&mut said)?;
        Ok(said)
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.child.kill();
    }
}
