//! The worker that has a tracer of the kernel for the threads that read of it.

use tactus_model::CpuSet;
use tactus_model::message::{Activity, Note, Refusal, What};

use crate::timerlat::{refusal, traces};
use crate::tracer::tracers;
use crate::work::Pace;
use crate::worker::Worker;

/// Starts the worker that runs the tracer for all activities that read from it; `None`: no activity does.
///
/// # Errors
/// Why the tracer cannot be used.
pub fn start(activities: &[Activity], pace: Pace, notes: &mut Vec<Note>) -> Result<Option<Worker>, Refusal> {
    let mut all = activities.iter().filter(|activity| traces(activity));
    let Some(mut one) = all.next().cloned() else { return Ok(None) };
    let pace_of = |activity: &Activity| match activity.what {
        What::Measure { interval_ns, priority, .. } => Some((interval_ns, priority)),
        _ => None,
    };
    for other in all {
        if pace_of(other) != pace_of(&one) {
            return Err(Refusal {
                reason: "timerlat has one period and one priority for all of its measurements".into(),
                hint: Some("give its activities the same `interval` and `priority`".into()),
            });
        }
        one.cpus = one.cpus.iter().chain(other.cpus.iter()).collect::<CpuSet>();
    }
    // If tracefs is not mounted yet, this mounts it; this process reads it as well.
    tracers().map_err(|why| refusal(&why.into()))?;
    let mut worker = Worker::start(&one, 0, pace)?;
    notes.append(&mut worker.take_notes());
    Ok(Some(worker))
}
