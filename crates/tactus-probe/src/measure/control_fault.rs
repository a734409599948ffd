//! The control by a fault that the plan names: it is injected on all measuring CPUs, and every
//! measuring thread must see it at its size.
//!
//! Nobody tells when the kernel began a block, as the default control's hog can: what is seen is the
//! largest value of a time in which one was whole. So it must stand out: where the noise of the place,
//! measured just before over as long a time, comes near to it, nothing is proven.

use std::sync::Arc;
use std::time::Duration;

use tactus_model::catalogue::Fault;
use tactus_model::message::{Activity, Control, Note, Refusal, What};
use tactus_model::{CpuSet, Nanos};

use super::control::{deadline_note, no_control};
use super::lane::{Lane, Order, Run};
use crate::sys;
use crate::work::Pace;
use crate::worker::{Ended, Worker};

/// Rounds until a thread is said not to have seen it: others disturb, too.
const ATTEMPTS: u32 = 4;
/// The least time from one injection to the next, in ns: the plan's `every` need not be waited for.
const LEAST_EVERY_NS: u64 = 20_000_000;
/// The least time between two wake-ups, in ns.
const LEAST_INTERVAL_NS: u64 = 20_000;
/// What every ring holds of wake-ups.
const SAMPLES: u64 = 1_000;

/// Injects `fault` on the CPUs of all `lanes` at once; `above` is a priority above theirs.
pub fn run(fault: &Fault, lanes: &[Arc<Lane>], above: u32) -> (Vec<Control>, Vec<Note>) {
    let fault = &often(fault);
    let (length, every) = fault.size();
    let window = every + 2 * length + LEAST_EVERY_NS;
    let noise = measure(lanes, length, window);
    let cpus: CpuSet = lanes.iter().map(|lane| lane.spec.series.cpu).collect();
    let worker = match start(fault, &cpus, above) {
        Ok(worker) => worker,
        Err(refusal) => return (Vec::new(), vec![no_control(&format!("CPUs {cpus}"), refusal)]),
    };
    let control = |(lane, noise_ns): (&Arc<Lane>, &u64)| Control {
        activity: lane.spec.activity,
        series: lane.spec.series.clone(),
        injected_ns: length,
        seen_ns: 0,
        noise_ns: *noise_ns,
        proven: false,
        attempts: 0,
        by: fault.kind().into(),
    };
    let mut results: Vec<Control> = lanes.iter().zip(&noise).map(control).collect();
    for _ in 0..ATTEMPTS {
        for (result, seen) in results.iter_mut().zip(measure(lanes, length, window)) {
            if !result.proven {
                result.attempts += 1;
                result.seen_ns = seen;
                result.proven = is_proven(length, seen, result.noise_ns);
            }
        }
        if results.iter().all(|result| result.proven) {
            break;
        }
    }
    let mut notes = Vec::new();
    match worker.stop() {
        Ok(Ended::Fault(injected)) => notes.push(Note::info(format!(
            "the control was {} of {} by {}",
            fault.kind(),
            Nanos(length),
            injected.way
        ))),
        Ok(_) => {}
        Err(words) => notes.push(Note::obstacle(words, "see whether everything is as it was")),
    }
    notes.extend(deadline_note(lanes.iter()));
    if let Some(loud) = results.iter().find(|result| !stands_out(length, result.noise_ns)) {
        notes.push(Note::obstacle(
            format!(
                "the control of {} cannot be told from the noise on CPU {}, which was {} just before",
                Nanos(length),
                loud.series.cpu,
                Nanos(loud.noise_ns)
            ),
            "give the control a longer `length` (`emulated` where the processor is emulated)",
        ));
    }
    (results, notes)
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
        let reason = format!("`{}` has no size at which every thread would see it", fault.kind());
        return Err(Refusal { reason, hint: Some("use block or hog as the control".into()) });
    }
    let what = What::Fault(fault.clone());
    let mut worker = Worker::start(&Activity::new(0, cpus.clone(), what), above, Pace::default())?;
    worker.go().map_err(|reason| Refusal { reason, hint: None })?;
    Ok(worker)
}

/// Lets all lanes measure for `window` ns and returns the largest value of each, in ns.
fn measure(lanes: &[Arc<Lane>], length: u64, window: u64) -> Vec<u64> {
    let start = sys::now() + 3_000_000;
    let end = start + window;
    let fine = (length / 20).max(window / SAMPLES).max(LEAST_INTERVAL_NS);
    for lane in lanes {
        let interval_ns = if lane.spec.interval_ns == 0 { fine } else { lane.spec.interval_ns.min(fine) };
        lane.give(Order::Run(Run { start, end, interval_ns, control: true, open: false }));
    }
    let patience = Duration::from_nanos(window) + Duration::from_secs(5);
    let largest = |lane: &Arc<Lane>| {
        lane.wait_finished(patience);
        let mut largest = 0;
        lane.ring.drain(|sample| largest = sample.value.max(largest));
        largest
    };
    lanes.iter().map(largest).collect()
}

const fn stands_out(injected: u64, noise: u64) -> bool {
    noise < injected - injected / 10
}

/// Whether what was seen is what was injected: never less than nine tenths of it, not more than a tenth
/// or the noise of the place above it, and nothing that the place does by itself.
const fn is_proven(injected: u64, seen: u64, noise: u64) -> bool {
    let tenth = injected / 10;
    let above = if noise > tenth { noise } else { tenth };
    stands_out(injected, noise) && seen + tenth >= injected && seen <= injected + above
}

#[cfg(test)]
mod tests {
    use tactus_model::catalogue::fault::{Hog, Overcommit};
    use tactus_model::message::NoteKind;

    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_block_is_seen_within_a_tenth_or_the_noise_of_the_place() {
        assert!(is_proven(50 * MS, 49 * MS, MS));
        assert!(is_proven(50 * MS, 55 * MS, MS));
        assert!(!is_proven(50 * MS, 56 * MS, MS));
        assert!(is_proven(50 * MS, 62 * MS, 13 * MS));
        assert!(!is_proven(50 * MS, 44 * MS, 13 * MS), "never less, however loud the place");
        assert!(!is_proven(50 * MS, 50 * MS, 46 * MS), "the place does as much by itself");
    }

    #[test]
    fn a_control_does_not_wait_for_the_plans_next_injection() {
        let hog = |length, every| Fault::Hog(Hog { length: Nanos(length * MS), every: Nanos(every * MS) });
        assert_eq!(often(&hog(50, 1_000)), hog(50, 200));
        assert_eq!(often(&hog(1, 1_000)), hog(1, 20));
        assert_eq!(often(&hog(1, 5)), hog(1, 5));
    }

    #[test]
    fn what_has_no_size_of_its_own_is_no_control() {
        let over = Overcommit { threads: None, length: Nanos(MS), every: Nanos(100 * MS) };
        let (results, notes) = run(&Fault::Overcommit(over), &[], 99);
        assert!(results.is_empty());
        assert!(notes[0].text.contains("nothing proves the instrument"), "{notes:?}");
        assert_eq!((notes[0].kind, notes[0].hint.is_some()), (NoteKind::Obstacle, true));
    }
}
