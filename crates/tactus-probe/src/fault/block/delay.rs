//! A block by the kernel's own test module preemptirq_delay_test: loaded with a length and a CPU, it
//! blocks once and then each time that something is written to its trigger.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tactus_model::catalogue::fault::Off;
use tactus_model::undo::block::{MODULE, PARAMETERS, unload};
use tactus_model::undo::{Actions, undo};

use super::{No, Wanted, no};
use crate::actions::LocalSystem;
use crate::fault::{Count, Disturbance, Held, repeat};
use crate::sys;
use crate::work::promise;

const TRIGGER: &str = "/sys/kernel/preemptirq_delay_test/trigger";

/// How long loading may take: the session waits for 10 s.
const LOADING: Duration = Duration::from_secs(7);

/// The module, loaded until it is dropped.
struct Loaded;

pub(super) fn prepare(wanted: &Wanted<'_>) -> Result<Disturbance, No> {
    let (Some(cpu), 1) = (wanted.cpus.first(), wanted.cpus.len()) else {
        return no(false, &[MODULE, " blocks only one CPU"]);
    };
    if Path::new(TRIGGER).exists() {
        return no(true, &[MODULE, " is already loaded by another program"]);
    }
    let mode = if wanted.off == Off::Interrupts { "irq" } else { "preempt" };
    let values = [
        ("delay=", (wanted.length / 1_000).to_string()),
        ("test_mode=", mode.to_owned()),
        ("burst_size=", "1".to_owned()),
        ("cpu_affinity=", cpu.to_string()),
    ];
    promise(&unload());
    let mut words = vec!["modprobe".to_owned(), MODULE.to_owned()];
    words.extend(values.iter().map(|(name, value)| [*name, value].concat()));
    // The result is checked below.
    let _ = LocalSystem.run(&words, LOADING);
    let loaded = Loaded;
    // The module may be missing, or an older one that ignores unknown parameters.
    for (name, value) in &values {
        let is = fs::read_to_string([PARAMETERS, name.trim_end_matches('=')].concat()).unwrap_or_default();
        if is.trim() != value {
            return no(false, &[MODULE, " cannot be loaded with ", name, value]);
        }
    }
    let longest = sys::shared(1).map_err(|error| error.to_string())?;
    let rhythm = wanted.rhythm;
    let work = move |rounds: &std::sync::atomic::AtomicU64| {
        repeat(rhythm, &longest[0], rounds, &|| {
            let _ = fs::write(TRIGGER, "1");
            0
        });
    };
    Ok(Disturbance {
        way: MODULE.to_owned(),
        works: vec![Box::new(work)],
        longest: &[],
        held: Some(Box::new(loaded)),
        made: wanted.rhythm.made(),
    })
}

impl Held for Loaded {
    fn begin(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn end(&mut self) -> Result<Count, String> {
        if Path::new(PARAMETERS).exists() {
            let _ = undo(&unload(), &LocalSystem);
        }
        if Path::new(PARAMETERS).exists() {
            Err([MODULE, " cannot be unloaded"].concat())
        } else {
            Ok(Count::default())
        }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::PATIENCE_S;

    #[test]
    fn a_module_that_does_not_load_is_given_up_before_the_session_gives_up() {
        assert!(LOADING.as_secs() < PATIENCE_S.unsigned_abs());
    }
}
