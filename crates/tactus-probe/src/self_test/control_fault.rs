//! The control by a fault that the plan names: it is injected on all measuring CPUs, and every measuring thread must
//! see it at its size.
//!
//! The kernel does not report when it began a block, as the default control's hog does. The result is the largest value
//! of a time that contains a whole block. So it must stand out: the noise is measured just before over an equally long
//! time, and if it is more than half of the block, the control proves nothing.

use std::sync::Arc;
use std::time::Duration;

use tactus_measure::lane::{Lane, Order, Run};
use tactus_measure::series::Series;
use tactus_model::catalogue::Fault;
use tactus_model::message::{Activity, Control, Counted, Note, Refusal, Stage, Trial, What};
use tactus_model::{CpuSet, Nanos};

use super::control::{deadline_note, no_control};
use crate::sys;
use crate::work::Pace;
use crate::worker::{Ended, Worker};

/// Rounds until a thread counts as not having seen it: other disturbances may interfere.
const ATTEMPTS: u32 = 4;
/// The least time from one injection to the next, in ns: the plan's `every` need not be waited for.
const LEAST_EVERY_NS: u64 = 20_000_000;
/// The least time between two wake-ups, in ns.
const LEAST_INTERVAL_NS: u64 = 20_000;
/// The number of wake-ups that every ring can hold.
const SAMPLES: u64 = 1_000;

/// Injects `fault` on the CPUs of all `lanes` at once; `above` is a priority above theirs.
pub fn run(fault: &Fault, lanes: &[Arc<Lane>], above: u32, stage: Stage) -> (Vec<Trial>, Vec<Note>) {
    let fault = &often(fault);
    let (length, every) = fault.size();
    let window = every + 2 * length + LEAST_EVERY_NS;
    let quiet = measure(lanes, length, window);
    let cpus: CpuSet = lanes.iter().map(|lane| lane.spec.cpu()).collect();
    let worker = match start(fault, &cpus, above) {
        Ok(worker) => worker,
        Err(refusal) => return (Vec::new(), vec![no_control(&format!("CPUs {cpus}"), refusal)]),
    };
    let trial = |(lane, quiet): (&Arc<Lane>, Counted)| Trial {
        activity: lane.spec.activity,
        series: lane.spec.series.clone(),
        stage,
        by: fault.kind().into(),
        injected_ns: length,
        attempts: 0,
        quiet,
        held: Counted::default(),
    };
    let mut trials: Vec<Trial> = lanes.iter().zip(quiet).map(trial).collect();
    for _ in 0..ATTEMPTS {
        for (trial, held) in trials.iter_mut().zip(measure(lanes, length, window)) {
            if !trial.control().passed {
                trial.attempts += 1;
                trial.held = held;
            }
        }
        if trials.iter().all(|trial| trial.control().passed) {
            break;
        }
    }
    let mut notes = Vec::new();
    match worker.stop() {
        Ok(Ended::Fault(injected)) if injected.times == Some(0) => notes.push(Note::obstacle(
            format!(
                "the self-test's {} was never made by {}: the self-test shows nothing",
                fault.kind(),
                injected.way
            ),
            "use `hog` as the `control`, or leave it out: then a thread of the probe takes the CPU",
        )),
        Ok(Ended::Fault(injected)) if stage == Stage::Before => notes.push(Note::info(format!(
            "the self-test was {} of {} by {}",
            fault.kind(),
            Nanos(length),
            injected.way
        ))),
        Ok(_) => {}
        Err(words) => notes.push(Note::obstacle(words, "check whether everything is as it was")),
    }
    if stage == Stage::Before {
        notes.extend(deadline_note(lanes.iter()));
    }
    notes.extend(
        trials
            .iter()
            .map(Trial::control)
            .find(|control| control.noise_ns > length / 2)
            .map(|loud| too_loud(&loud)),
    );
    (trials, notes)
}

fn too_loud(loud: &Control) -> Note {
    let noise = match loud.noise_ns {
        u64::MAX => "is not known".into(),
        noise => format!("was {} just before", Nanos(noise)),
    };
    Note::obstacle(
        format!(
            "the self-test of {} cannot be distinguished from the noise on CPU {}, which {noise}",
            Nanos(loud.injected_ns),
            loud.series.cpu
        ),
        "give the `control` a length of at least twice the noise (`emulated` where the processor is emulated)",
    )
}

/// The fault as often as it takes for a control that soon comes to its end.
fn often(fault: &Fault) -> Fault {
    let mut fault = fault.clone();
    let (length, _) = fault.size();
    let most = length.saturating_mul(4).max(LEAST_EVERY_NS);
    if let Fault::Block(activity) = &mut fault {
        activity.every.0 = activity.every.0.min(most);
    } else if let Fault::Hog(activity) = &mut fault {
        activity.every.0 = activity.every.0.min(most);
    }
    fault
}

fn start(fault: &Fault, cpus: &CpuSet, above: u32) -> Result<Worker, Refusal> {
    if !matches!(fault, Fault::Block(_) | Fault::Hog(_)) {
        let reason = format!(
            "`{}` cannot be the self-test: it does not delay every thread by a known time",
            fault.kind()
        );
        return Err(Refusal { reason, hint: Some("use `block` or `hog` as the `control`".into()) });
    }
    let what = What::Fault(fault.clone());
    let mut worker = Worker::start(&Activity::new(0, cpus.clone(), what), above, Pace::default())?;
    worker.go().map_err(|reason| Refusal { reason, hint: None })?;
    Ok(worker)
}

/// Lets all lanes measure for `window` ns and returns what each counted.
fn measure(lanes: &[Arc<Lane>], length: u64, window: u64) -> Vec<Counted> {
    let series: Vec<Series> = lanes.iter().map(|lane| Series::uncounted(Arc::clone(lane))).collect();
    let start = sys::now() + 3_000_000;
    let end = start + window;
    let fine = (length / 20).max(window / SAMPLES).max(LEAST_INTERVAL_NS);
    for lane in lanes {
        let interval_ns = if lane.spec.interval_ns == 0 { fine } else { lane.spec.interval_ns.min(fine) };
        lane.give(Order::Run(Run { start, end, interval_ns, control: true, open: false }));
    }
    let patience = Duration::from_nanos(window) + Duration::from_secs(5);
    let counted = |(lane, series): (&Arc<Lane>, Series)| {
        lane.wait_finished(patience);
        series.counted()
    };
    lanes.iter().zip(series).map(counted).collect()
}

#[cfg(test)]
mod tests {
    use tactus_model::catalogue::fault::{Hog, Overcommit};
    use tactus_model::message::NoteKind;

    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_control_does_not_wait_for_the_plans_next_injection() {
        let hog = |length, every| Fault::Hog(Hog { length: Nanos(length * MS), every: Nanos(every * MS) });
        assert_eq!(often(&hog(50, 1_000)), hog(50, 200));
        assert_eq!(often(&hog(1, 1_000)), hog(1, 20));
        assert_eq!(often(&hog(1, 5)), hog(1, 5));
    }

    #[test]
    fn a_fault_without_a_size_cannot_be_a_control() {
        let over = Overcommit { threads: None, length: Nanos(MS), every: Nanos(100 * MS) };
        let (results, notes) = run(&Fault::Overcommit(over), &[], 99, Stage::Before);
        assert!(results.is_empty());
        assert!(notes[0].text.contains("does not delay every thread by a known time"), "{notes:?}");
        assert_eq!((notes[0].kind, notes[0].hint.is_some()), (NoteKind::Obstacle, true));
    }
}
