//! `timerlat`: the values that the kernel's timerlat tracer writes for its timers.

use std::sync::Arc;

use tactus_model::Nanos;
use tactus_model::catalogue::measure::TimerlatValue;
use tactus_model::catalogue::{Measure, measure};
use tactus_model::message::{Note, Refusal};

use crate::application::read;
use crate::lane::{Lane, Run};
use crate::trace::{Context, Trace};
use crate::{Measurement, Read, Wanted, stranger};

/// The periods that the kernel allows, in ns: it counts in us.
const PERIODS_NS: std::ops::RangeInclusive<u64> = 100_000..=1_000_000_000;

/// The measurement.
pub struct Timerlat;

/// The context of which the kernel's lines are that have a value.
const fn context(value: TimerlatValue) -> Context {
    match value {
        TimerlatValue::Irq => Context::Irq,
        TimerlatValue::Thread => Context::Thread,
    }
}

impl Measurement for Timerlat {
    fn name(&self) -> &'static str {
        measure::Timerlat::NAME
    }

    fn kind(&self, measure: &Measure) -> &'static str {
        let Measure::Timerlat(table) = measure else { return Context::Irq.word() };
        context(table.value()).word()
    }

    fn wanted(&self, measure: &Measure) -> Result<Wanted, Refusal> {
        let Measure::Timerlat(_) = measure else { return Err(stranger(measure)) };
        Ok(Wanted { threads: 1, periodic: true, limit_ns: None, busy: 0 })
    }

    fn reading(&self, measure: &Measure, interval_ns: u64, cpu: u32) -> Read {
        let Measure::Timerlat(table) = measure else { return Err(stranger(measure)) };
        if !PERIODS_NS.contains(&interval_ns) || !interval_ns.is_multiple_of(1_000) {
            return Err(Refusal {
                reason: format!("timerlat has no period of {}", Nanos(interval_ns)),
                hint: Some("give an interval of whole microseconds from 100us to 1s".into()),
            });
        }
        Ok(Some(Arc::new(Trace::new(context(table.value()), interval_ns, cpu))))
    }

    fn notes(&self, measure: &Measure) -> Vec<Note> {
        let of = match measure {
            Measure::Timerlat(table) if table.value() == TimerlatValue::Thread => {
                "from the due time of a timer of this kernel until the tracer's thread ran, by timerlat's \
                    thread column"
            }
            _ => {
                "from the due time of a timer of this kernel until its interrupt handler began, by \
                 timerlat's IRQ column: not an interrupt that a device raised"
            }
        };
        vec![
            Note::info(of),
            Note::info(
                "the self-test delays a stand-in of the probe, which writes lines as the kernel does, on the \
                 CPU of its reader. The kernel's own lines are not tested",
            ),
        ]
    }

    fn run(&self, lane: &Lane, run: Run) {
        read(lane, run);
    }
}
