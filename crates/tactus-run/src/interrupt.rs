//! Ctrl-C: the first ends the scenario and keeps what was measured, the second ends the program. `tactus stop` asks for the
//! first, however often.

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
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // The order matters: the second signal finds the flag set and ends the process; the
            // guardian then takes back what is left.
            flag::register_conditional_shutdown(signal, 130, Arc::clone(&asked))?;
            flag::register(signal, Arc::clone(&asked))?;
        }
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
