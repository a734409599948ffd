//! `application`: what a user's own program marks of its cycles.

use std::sync::Arc;

use tactus_model::catalogue::measure::MarkedValue;
use tactus_model::catalogue::{Measure, measure};
use tactus_model::message::{Note, Refusal};

use crate::lane::{Lane, Run};
use crate::marks::Marks;
use crate::reading::Due;
use crate::sys;
use crate::timer::first_due;
use crate::{Measurement, Read, Wanted, stranger};

/// The measurement.
pub struct Application;

impl Measurement for Application {
    fn name(&self) -> &'static str {
        measure::Application::NAME
    }

    fn kind(&self, measure: &Measure) -> &'static str {
        let Measure::Application(table) = measure else { return "response" };
        match table.value() {
            MarkedValue::Response => "response",
            MarkedValue::Start => "start",
            MarkedValue::Execution => "execution",
        }
    }

    fn wanted(&self, measure: &Measure) -> Result<Wanted, Refusal> {
        let Measure::Application(_) = measure else { return Err(stranger(measure)) };
        Ok(Wanted { threads: 1, periodic: measure.has_periods(), limit_ns: None, busy: 0 })
    }

    fn reading(&self, measure: &Measure, interval_ns: u64, cpu: u32) -> Read {
        let Measure::Application(table) = measure else { return Err(stranger(measure)) };
        Ok(Some(Arc::new(Marks::new(table, interval_ns, cpu)?)))
    }

    fn notes(&self, _measure: &Measure) -> Vec<Note> {
        vec![Note::info(
            "the self-test delays a stand-in of the probe, which marks cycles as a program does, on the CPU \
             of its reader. The program itself is not delayed, and whether it marks in the right places is \
             not tested",
        )]
    }

    fn run(&self, lane: &Lane, run: Run) {
        read(lane, run);
    }
}

/// Reads the source of the lane: in a control, the stand-in.
pub(crate) fn read(lane: &Lane, run: Run) {
    let Some(reading) = &lane.reading else { return };
    let stopped = || lane.stopped();
    if run.control {
        let first = first_due(run, sys::now());
        reading.read_stand_in(Due { first, end: run.end, interval_ns: run.interval_ns }, &stopped);
    } else {
        reading.read((run.start, run.end), &stopped);
    }
}
