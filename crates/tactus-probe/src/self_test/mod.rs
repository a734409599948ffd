//! The self-test of a job: its controls, before measuring and after it, and a look at the clock meanwhile.

mod control;
mod control_fault;
mod hog;

use std::collections::BTreeMap;
use std::sync::Arc;

use tactus_measure::lane::Lane;
use tactus_measure::thread::Measuring;
use tactus_model::clock::ClockCheck;
use tactus_model::control::ControlBy;
use tactus_model::message::{Note, Stage, Trial};

use crate::clock_check::Look;

use control::{CpuControl, no_control};

/// The controls of a job.
pub struct SelfTest {
    by: ControlBy,
    /// The hogs of the default control, until it is run.
    hogs: Vec<CpuControl>,
    /// The next control; `None`: no control is left, or none was asked for.
    pub stage: Option<Stage>,
    /// A priority above the measuring threads.
    above: u32,
}

impl SelfTest {
    /// Prepares the first control of these threads.
    pub fn prepare(by: &ControlBy, above: u32, threads: &[Measuring], notes: &mut Vec<Note>) -> Self {
        let hogs = if *by == ControlBy::Hog { prepare_controls(threads, notes) } else { Vec::new() };
        let stage = (by.is_some() && !threads.is_empty()).then_some(Stage::Before);
        Self { by: by.clone(), hogs, stage, above }
    }

    /// Runs the control that is the next.
    pub fn run(&mut self, threads: &[Measuring]) -> (ClockCheck, Vec<Trial>, Vec<Note>) {
        let mut notes = Vec::new();
        let free = threads.iter().all(|thread| thread.lane.is_finished());
        let Some(stage) = self.stage.take().filter(|_| free) else {
            return (ClockCheck::default(), Vec::new(), notes);
        };
        self.stage = (stage == Stage::Before).then_some(Stage::After);
        let look = Look::begin();
        let lanes = || threads.iter().map(|thread| Arc::clone(&thread.lane)).collect::<Vec<_>>();
        let trials = match &self.by {
            ControlBy::Fault(fault) => {
                let (trials, more) = control_fault::run(fault, &lanes(), self.above, stage);
                notes.extend(more);
                trials
            }
            _ => {
                let mut hogs = std::mem::take(&mut self.hogs);
                if stage == Stage::After {
                    hogs = prepare_controls(threads, &mut notes);
                }
                let stages: &[Stage] = if stage == Stage::Before { &[stage, Stage::Fine] } else { &[stage] };
                let mut trials = Vec::new();
                for stage in stages {
                    let (tried, more) = control::run(&mut hogs, *stage);
                    trials.extend(tried);
                    notes.extend(more);
                }
                trials
            }
        };
        (look.end(), trials, notes)
    }
}

fn prepare_controls(threads: &[Measuring], notes: &mut Vec<Note>) -> Vec<CpuControl> {
    let mut by_cpu: BTreeMap<u32, Vec<Arc<Lane>>> = BTreeMap::new();
    for thread in threads {
        by_cpu.entry(thread.lane.spec.cpu()).or_default().push(Arc::clone(&thread.lane));
    }
    let mut controls = Vec::new();
    for (cpu, lanes) in by_cpu {
        match CpuControl::prepare(cpu, lanes) {
            Ok(control) => controls.push(control),
            Err(refusal) => notes.push(no_control(&format!("CPU {cpu}"), refusal)),
        }
    }
    controls
}
