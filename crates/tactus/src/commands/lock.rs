//! One measurement at a time.

use std::thread::sleep;
use std::time::{Duration, Instant};

use tactus_model::message::{Note, Unknowable};
use tactus_system::{MachineLock, Real};
use tactus_watch::screen::human;

use crate::cli::Lock;
use crate::exit::Failure;
use crate::say::say;

/// How often somebody who waits looks again.
const PAUSE: Duration = Duration::from_millis(200);

/// How a measurement has this machine.
pub enum Turn {
    /// For itself, which is until this goes.
    Alone { _lock: MachineLock },
    /// Together with somebody else, named.
    Beside(String),
}

impl Turn {
    /// The note for its bundle.
    pub fn remark(&self) -> Option<Note> {
        let Self::Beside(who) = self else { return None };
        let said = format!("{who} measured this machine at the same time: the two disturbed each other");
        Some(Note { unknowable: Some(Unknowable::Alone), ..Note::info(said) })
    }
}

/// Takes this machine for a measurement.
pub fn lock(options: &Lock) -> Result<Turn, Failure> {
    if let Some(lock) = MachineLock::take()? {
        return Ok(Turn::Alone { _lock: lock });
    }
    let holder = MachineLock::holder(&Real).unwrap_or_else(|| "another process".to_owned());
    if options.beside {
        say(format_args!("note: {holder} is also measuring this machine: the two disturb each other"));
        return Ok(Turn::Beside(holder));
    }
    let Some(patience) = options.wait.map(|wait| Duration::from_nanos(wait.0)) else {
        return Err(Failure::say(
            format!("{holder} is already measuring this machine: two measurements disturb each other"),
            "wait for its end with --wait 1h, or measure anyway with --beside",
        ));
    };
    say(format_args!("{holder} is measuring this machine: waiting for its end, up to {}", human(patience)));
    let began = Instant::now();
    while began.elapsed() < patience {
        sleep(PAUSE.min(patience.saturating_sub(began.elapsed())));
        if let Some(lock) = MachineLock::take()? {
            return Ok(Turn::Alone { _lock: lock });
        }
    }
    Err(Failure::say(
        format!("{holder} is still measuring this machine, after {}", human(patience)),
        "wait longer, end that measurement, or measure anyway with --beside",
    ))
}
