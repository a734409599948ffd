//! The lines that are written again and again while it measures.

use std::path::Path;

use tactus_model::event::{Event, Stamped, Ticked};
use tactus_model::scheduling::Policy;
use tactus_run::Sink;
use tactus_system::{Real, System};

use super::lines::{Figures, back, block, line};
use super::options::Thread;
use crate::commands::drop_in::say_failure;
use crate::output;

/// cyclictest's display during a measurement.
pub struct Live {
    threads: Vec<Thread>,
    figures: Vec<Figures>,
    policy: Policy,
    in_ns: bool,
    quiet: bool,
    /// Only when the largest has grown.
    on_max: bool,
}

impl Live {
    pub fn new(threads: &[Thread], policy: Policy, in_ns: bool, quiet: bool, on_max: bool) -> Self {
        let figures = vec![Figures::default(); threads.len()];
        Self { threads: threads.to_vec(), figures, policy, in_ns, quiet, on_max }
    }

    fn tick(&mut self, ticked: &Ticked) {
        let (Some(figures), Some(whole)) = (self.figures.get_mut(ticked.row), &ticked.whole) else { return };
        let before = figures.max_ns;
        let total = &whole.total;
        let any = total.cycles > 0;
        *figures = Figures {
            cycles: total.cycles,
            min_ns: any.then_some(total.min_ns),
            newest_ns: ticked.mean_ns,
            mean_ns: total.mean_ns(),
            max_ns: any.then_some(total.max_ns),
        };
        if self.on_max && figures.max_ns <= before {
            return;
        }
        let text: String = self
            .threads
            .iter()
            .zip(&self.figures)
            .enumerate()
            .map(|(number, (thread, figures))| line(number, thread, figures, self.in_ns))
            .collect();
        let loadavg = Real.read(Path::new("/proc/loadavg")).unwrap_or_default();
        let block = block(self.policy, &String::from_utf8_lossy(&loadavg), &text);
        // A reader that has left does not end the measurement.
        let _ = output::data(&(block + &back(self.threads.len())));
    }
}

impl Sink for Live {
    fn take(&mut self, stamped: &Stamped) {
        match &stamped.event {
            Event::Ticked(ticked) if !self.quiet => self.tick(ticked),
            event => say_failure(event),
        }
    }
}
