//! Ctrl-C: the first ends the scenario and keeps what was measured, the second ends the program, and the guardian takes back
//! what is left. `tactus watch --stop` asks for the first, however often.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use tactus_system::END;

/// Whether somebody asked the run to end.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// One that listens to SIGINT, SIGTERM and SIGHUP from now on, and to [`END`].
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn listen() -> io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        tactus_system::ask_then_exit(&[SIGINT, SIGTERM, SIGHUP], &asked, 130)?;
        flag::register(END, Arc::clone(&asked))?;
        Ok(Self(asked))
    }

    /// Whether the run was asked to end.
    #[must_use]
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Asks the run to end.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::thread;
    use std::time::Duration;

    use super::Interrupt;

    const BUSY: &str = "TACTUS_TEST_BUSY";

    /// A program that does not end when it is asked to.
    fn busy() {
        let interrupt = Interrupt::listen().unwrap();
        eprintln!("listens");
        while !interrupt.asked() {
            thread::sleep(Duration::from_millis(5));
        }
        eprintln!("asked");
        thread::sleep(Duration::from_secs(60));
    }

    /// timeout(1) sends its signal to the command and to its process group.
    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "this test is started once more, and signals are sent to that"
    )]
    fn two_signals_at_once_are_one_wish_and_a_later_one_ends_the_program() {
        if std::env::var_os(BUSY).is_some() {
            return busy();
        }
        let name = "interrupt::tests::two_signals_at_once_are_one_wish_and_a_later_one_ends_the_program";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(BUSY, "1")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let process = child.id().to_string();
        let interrupt = || assert!(Command::new("kill").args(["-INT", &process]).status().unwrap().success());
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(said.any(|line| line.contains("listens")));
        interrupt();
        assert!(said.any(|line| line.contains("asked")), "the first ended it");
        interrupt();
        thread::sleep(Duration::from_millis(1200));
        assert!(child.try_wait().unwrap().is_none(), "the second came at once, and ended it");
        interrupt();
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
}
