//! One measurement at a time.

use std::thread::sleep;
use std::time::{Duration, Instant};

use tactus_system::{MachineLock, Real};
use tactus_watch::screen::human;

use crate::cli::Lock;
use crate::exit::Failure;
use crate::say::say;

/// How often somebody who waits looks again.
const PAUSE: Duration = Duration::from_millis(200);

/// Takes this machine for a measurement, which is until what this returns goes; nothing where it goes on beside another
/// one.
pub fn lock(options: &Lock) -> Result<Option<MachineLock>, Failure> {
    if let Some(lock) = MachineLock::take()? {
        return Ok(Some(lock));
    }
    let holder = MachineLock::holder(&Real).map_or_else(|| "another process".to_owned(), |who| who);
    if options.beside {
        say(format_args!("note: {holder} measures this machine, too: both disturb each other"));
        return Ok(None);
    }
    let Some(patience) = options.wait.map(|wait| Duration::from_nanos(wait.0)) else {
        return Err(Failure::say(
            format!("{holder} measures this machine already: two measurements disturb each other"),
            "wait for its end with --wait 1h, or measure all the same with --beside",
        ));
    };
    say(format_args!("{holder} measures this machine: waiting for its end, {} at most", human(patience)));
    let began = Instant::now();
    while began.elapsed() < patience {
        sleep(PAUSE.min(patience.saturating_sub(began.elapsed())));
        if let Some(lock) = MachineLock::take()? {
            return Ok(Some(lock));
        }
    }
    Err(Failure::say(
        format!("{holder} measures this machine still, after {}", human(patience)),
        "wait for longer, or end that measurement",
    ))
}
