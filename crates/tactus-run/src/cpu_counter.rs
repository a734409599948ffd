//! The host's account of what its CPUs do while guests measure values: a process of the probe that reads the kernel's
//! records when it begins and when its stdin ends.

use std::io::{BufRead, BufReader, Read};

use tactus_model::CpuSet;
use tactus_model::outcome::breakdown::Breakdown;
use tactus_system::guardian::Guardian;
use tactus_system::{Child, Invocation, System, last_lines, probe};

/// The longest account that is read, in bytes: a thousand CPUs.
const LONGEST: u64 = 1 << 20;

/// One that counts.
pub struct Counter {
    child: Box<dyn Child>,
    stdout: BufReader<Box<dyn Read + Send>>,
}

impl Counter {
    /// Begins to count. It stays off the measured CPUs.
    ///
    /// # Errors
    /// Why it cannot be done, in words.
    pub fn start(system: &dyn System, guardian: &Guardian, housekeeping: &CpuSet) -> Result<Self, String> {
        let program = probe::installed(system).map_err(|error| format!("no probe: {error}"))?;
        let words = [program.display().to_string(), "breakdown".into()];
        let mut child = system
            .spawn(&Invocation::new(words).with_env(guardian.marker()))
            .map_err(|error| format!("it cannot be counted: {error}"))?;
        let _ = system.place(child.pid(), housekeeping);
        let stdout = child.take_stdout().ok_or("who counts has no output")?;
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        let said = stdout.by_ref().take(64).read_line(&mut line);
        if said.is_err() || line.trim_end() != "counting" {
            return Err(format!("nobody counts: {}", last_lines(&child.stderr(), 2)));
        }
        Ok(Self { child, stdout })
    }

    /// Ends it, and says what it has counted.
    pub fn finish(mut self) -> Option<Breakdown> {
        drop(self.child.take_stdin());
        let mut line = String::new();
        let read = self.stdout.by_ref().take(LONGEST).read_line(&mut line);
        read.ok().and_then(|_| said(&line))
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.child.kill();
    }
}

/// What a line says that begins as that of a worker does.
fn said(line: &str) -> Option<Breakdown> {
    serde_json::from_str(line.strip_prefix("breakdown ")?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_account_says_nothing() {
        let whole = "breakdown {\"ns\":5,\"switches\":1,\"cpus\":[],\"threads\":[],\"interrupts\":[],\"softirqs\":[]}\n";
        assert_eq!(said(whole).unwrap().ns, 5);
        for line in ["", "breakdown", "breakdown {}", "counting", &whole[..20]] {
            assert_eq!(said(line), None, "{line}");
        }
    }
}
