//! The control of `application`: a thread of the probe marks cycles in separate memory of the same form. They are read
//! like the cycles of a program. A hog that delays this thread must be seen.

use std::fs::File;

use rustix::fs::{MemfdFlags, memfd_create};
use tactus_application::Application;
use tactus_model::catalogue::measure::MarkedValue;

use super::cycles::Asked;
use super::file::Source;
use crate::reading::{Due, Marked};
use crate::sys;

/// Cycles of its ring: a second at the shortest interval of a control.
const CYCLES: u64 = 1 << 12;

/// Marks cycles in the place of a program.
#[derive(Debug)]
pub struct StandIn {
    marking: Application,
    source: Source,
}

impl StandIn {
    /// Marks in memory that only this process uses.
    ///
    /// # Errors
    /// When the memory cannot be created.
    pub fn new(interval_ns: u64) -> Result<Self, String> {
        let made =
            memfd_create("tactus-application", MemfdFlags::CLOEXEC).map_err(|error| error.to_string())?;
        let file = File::from(made);
        let marking = Application::within(&file, interval_ns, CYCLES).map_err(|error| error.to_string())?;
        Ok(Self { marking, source: Source::of(file)? })
    }

    /// Marks a cycle at each due time, and hands over the cycles that are read.
    pub fn run(
        &mut self,
        asked: Asked,
        of: Due,
        stopped: &dyn Fn() -> bool,
        each: &mut dyn FnMut(Marked),
    ) -> Result<(), String> {
        let interval_ns = of.interval_ns.max(1);
        let asked = Asked { interval_ns, ..asked };
        let mut cycles = self.source.begin(asked, (of.first, of.end))?;
        let (mut due, mut marked) = (of.first, 0_u64);
        while due < of.end && !stopped() {
            if !sys::sleep_until(due) && sys::now() < due {
                continue;
            }
            let now = sys::now();
            // The hog comes before it begins: of an execution it is what it would be in the middle.
            let start = if asked.value == MarkedValue::Execution { due } else { now };
            self.marking.mark(due, start, now);
            due += (1 + (now - due) / interval_ns) * interval_ns;
            marked += 1;
            // The ring is read before it is written over.
            if marked.is_multiple_of(CYCLES / 4) {
                self.source.read(&mut cycles, each)?;
            }
        }
        self.source.read(&mut cycles, each)?;
        cycles.finish(each);
        Ok(())
    }
}
