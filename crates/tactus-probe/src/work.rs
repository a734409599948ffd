//! The work of a worker process, and its messages: for loads, faults and measurements of values. [`crate::worker`]
//! describes how it is started and ended.
#![expect(clippy::print_stdout, reason = "a process of the probe speaks to the one that has started it")]

use std::io::{self, Write};
use std::sync::atomic::AtomicU64;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use tactus_model::CpuSet;
use tactus_model::catalogue::OutOfRange;
use tactus_model::message::{Note, Refusal};
use tactus_model::outcome::ValueResult;
use tactus_model::outcome::breakdown::Breakdown;
use tactus_model::undo::Undo;

use crate::sys;

/// The work of one worker, for ever; it counts its rounds.
pub type Work = Box<dyn FnOnce(&AtomicU64)>;

/// For how long, and how often, a session measures, in ns.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Pace {
    /// How long.
    pub duration_ns: u64,
    /// How often it reports.
    pub tick_ns: u64,
    /// Seed of the random times of faults; they are reported.
    #[serde(default)]
    pub seed: Option<u64>,
}

/// A refusal of a parameter of the word `kind`.
pub fn out_of_range(kind: &str, error: &OutOfRange) -> Refusal {
    Refusal { reason: format!("{kind}: {error}"), hint: Some(error.hint()) }
}

/// Announces how others can undo the change that it is about to make.
pub fn promise(how: &Undo) {
    tell("undo", how);
}

/// Says what a value is so far.
pub fn tell_value(value: &ValueResult) {
    tell("value", value);
}

/// Says where the time of CPUs went.
pub fn tell_breakdown(breakdown: &Breakdown) {
    tell("breakdown", breakdown);
}

/// Says something that the reader must know.
pub fn tell_note(note: &Note) {
    tell("note", note);
}

fn tell(word: &str, what: &impl Serialize) {
    if let Ok(json) = serde_json::to_string(what) {
        // Without a reader of stdout there is no use for the message.
        let _ = writeln!(io::stdout(), "{word} {json}");
    }
}

/// Ends the load or fault whose worker calls it, and reports the reason: work never ends by itself.
pub fn over(reason: &str) -> ! {
    println!("over {reason}");
    let _ = rustix::process::kill_current_process_group(Signal::KILL);
    std::process::exit(1)
}

/// Ties the life of this process to its parent's; `false` when that one is gone already.
pub fn die_with(parent: u32) -> bool {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    std::os::unix::process::parent_id() == parent
}

/// Lets the calling worker run on `cpus` with ordinary scheduling.
pub fn reset_scheduling(cpus: &CpuSet) {
    let _ = sys::set_affinity(cpus);
    let _ = sys::set_scheduler(sys::SchedAttr::other());
}
