//! The facts of this machine, as its own probe reads them.

use std::io;
use std::time::Duration;

use tactus_model::facts::Facts;
use tactus_model::topology::Topology;

use crate::probe;
use crate::{Invocation, System};

/// How long the probe may take. It needs milliseconds; a loaded machine may hold it up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Reads the facts of this machine on its housekeeping CPUs. `machine` is its known topology. Only the CPUs of the
/// calling thread change, while the probe runs.
///
/// # Errors
/// When the probe cannot be run, or its output is not JSON.
pub fn facts(system: &dyn System, machine: &Topology, thread: u32) -> io::Result<Facts> {
    let program = probe::installed(system)?;
    let housekeeping = machine.housekeeping(&machine.measuring());
    // The probe inherits the CPUs of this thread. If placing fails, it runs on the allowed CPUs.
    let placed = system.place(thread, &housekeeping).is_ok();
    let finished =
        system.run(&Invocation::new([program.display().to_string(), "facts".into()]).within(PATIENCE));
    if placed {
        // If this fails, the thread stays on the housekeeping CPUs. The door logs it.
        let _ = system.place(thread, &machine.allowed);
    }
    let finished = finished?;
    if !finished.success() {
        let words = String::from_utf8_lossy(&finished.stderr).trim().to_owned();
        return Err(io::Error::other(format!("{} facts: {words}", program.display())));
    }
    let mut facts: Facts = serde_json::from_slice(&finished.stdout).map_err(|error| {
        io::Error::new(io::ErrorKind::InvalidData, format!("facts of the probe: {error}"))
    })?;
    // The probe's allowed CPUs differ from those that this machine allows.
    facts.keep("sched:affinity", machine.allowed.to_string());
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Real;
    use crate::topology::topology;

    #[test]
    fn facts_are_read_where_no_real_time_work_runs_and_say_what_the_machine_allows() {
        let machine = topology(&Real);
        let facts = facts(&Real, &machine, std::process::id()).unwrap();
        assert_eq!(facts.text("sched:affinity"), Some(machine.allowed.to_string().as_str()));
        assert!(facts.text("uname:release").is_some());
        assert_eq!(topology(&Real).allowed, machine.allowed);
    }
}
