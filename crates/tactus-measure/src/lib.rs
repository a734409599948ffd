//! The probe's measurements of latency: one file for each, one line in the table. The other modules are shared: the
//! thread, its lane and ring, the series that its samples become, the clocks.
//!
//! It touches the CPUs that it measures on, and reads `/proc` and `/sys`. It writes only to stop a trace at a break.
#![expect(
    clippy::disallowed_methods,
    reason = "the probe is on the machine: it is what the door of others leads to"
)]

pub mod card;
pub mod channel;
pub mod clock;
pub mod clock_page;
pub mod counters;
pub mod ftrace;
pub mod gaps;
pub mod lane;
pub mod marks;
pub mod reading;
pub mod refuse;
mod ring;
pub mod series;
pub mod stat;
pub mod sys;
pub mod thread;
pub mod trace;
mod windows;

use std::sync::Arc;

use tactus_model::catalogue::Measure;
use tactus_model::message::{Activity, Note, Refusal};

use card::Card;
use lane::{Lane, Run};
use reading::Reading;

/// The source that a thread reads; `None`: the thread measures itself.
pub type Read = Result<Option<Arc<dyn Reading>>, Refusal>;

/// The requirements of a measurement, beside those that all share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Threads per CPU; each further one has a priority one lower.
    pub threads: u32,
    /// Whether it wakes at due times; else its interval has no meaning.
    pub periodic: bool,
    /// The job ends when a value exceeds this, in ns.
    pub limit_ns: Option<u64>,
    /// Part of the time it polls, in per cent.
    pub busy: u32,
}

/// A measurement.
pub trait Measurement: Sync {
    /// The word of the plan.
    fn name(&self) -> &'static str;

    /// The kind of its values, as the series name it.
    fn kind(&self, measure: &Measure) -> &'static str;

    /// Its requirements.
    ///
    /// # Errors
    /// When the table is that of another measurement.
    fn wanted(&self, measure: &Measure) -> Result<Wanted, Refusal>;

    /// Whether its threads need the counts of [`gaps`].
    fn counts_gaps(&self) -> bool {
        false
    }

    /// The card of its thread; `None`: it needs no card. Remarks on the card are added to `notes`.
    ///
    /// # Errors
    /// When it needs a card and none is available.
    fn card(
        &self,
        _measure: &Measure,
        _activity: &Activity,
        _notes: &mut Vec<Note>,
    ) -> Result<Option<Card>, Refusal> {
        Ok(None)
    }

    /// The source that its thread reads: a program or a kernel that measures this CPU, with this interval in ns. Such a
    /// thread runs on a housekeeping CPU, and the rules for measuring threads do not apply to it. `None`: the thread
    /// measures itself.
    ///
    /// # Errors
    /// When the source cannot be read.
    fn reading(&self, _measure: &Measure, _interval_ns: u64, _cpu: u32) -> Read {
        Ok(None)
    }

    /// Notes that the reader needs before the measurement runs.
    fn notes(&self, _measure: &Measure) -> Vec<Note> {
        Vec::new()
    }

    /// Measures. Runs on the measuring thread: nothing in it allocates, locks, logs or calls the
    /// system beyond what is measured.
    fn run(&self, lane: &Lane, run: Run);
}

/// The measurements among the files of this directory.
macro_rules! measurements {
    ($($file:ident::$name:ident),+) => {
        $(mod $file;)+

        /// Every measurement of this probe.
        pub static MEASUREMENTS: &[&dyn Measurement] = &[$(&$file::$name),+];
    };
}

measurements! { timer::Timer, spin::Spin, interrupt::Interrupt, application::Application, timerlat::Timerlat }

/// The measurement of a plan's table.
pub fn find(measure: &Measure) -> Option<&'static dyn Measurement> {
    MEASUREMENTS.iter().copied().find(|entry| entry.name() == measure.kind())
}

/// The refusal of another measurement's table.
fn stranger(measure: &Measure) -> Refusal {
    let reason = format!("`{}` is the table of another measurement", measure.kind());
    Refusal { reason, hint: Some("this is a bug in tactus".into()) }
}
