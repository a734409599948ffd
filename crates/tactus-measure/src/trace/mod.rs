//! The output of the kernel's timerlat tracer, and its reader (docs/design/timerlat.md). The reader is a thread of
//! ordinary priority on a CPU that is not measured. The probe sets the tracer up.

mod line;
mod periods;
mod pipe;

use std::sync::{Arc, Mutex};

use tactus_model::Nanos;
use tactus_model::message::Note;

pub use line::{Context, Latency, Lines, Said, read};
pub use periods::Periods;

use crate::reading::{Due, Inbox, Reading, lock};
use crate::sys;
use pipe::{Pipe, Told};

/// How often it is looked whether there are new lines, in ns.
const LOOK_NS: u64 = 20_000_000;
/// How long no line may come, in ns.
const PATIENCE_NS: u64 = 5_000_000_000;

/// The data shared by the reader of a context on a CPU and the session's thread.
#[derive(Debug)]
pub struct Trace {
    context: Context,
    interval_ns: u64,
    cpu: u32,
    pipe: Mutex<Option<Arc<Mutex<Pipe>>>>,
    inbox: Inbox,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    lost: u64,
    unarmed: u64,
    told: Told,
}

impl Trace {
    /// Of timers every `interval_ns` on `cpu`. Nothing is opened yet.
    pub fn new(context: Context, interval_ns: u64, cpu: u32) -> Self {
        Self {
            context,
            interval_ns,
            cpu,
            pipe: Mutex::default(),
            inbox: Inbox::default(),
            counts: Mutex::default(),
        }
    }

    fn fail(&self, why: &str) {
        self.inbox.fail(format!("timerlat on CPU {}: {why}", self.cpu));
    }

    /// Looks until a latency has been written. That latency is not counted.
    fn find(&self, until: u64) -> Result<Arc<Mutex<Pipe>>, String> {
        let pipe = pipe::open(self.cpu, self.context)?;
        loop {
            if !lock(&pipe).take(self.context)?.is_empty() {
                return Ok(pipe);
            }
            if sys::now() >= until {
                let (word, patience) = (self.context.word(), Nanos(PATIENCE_NS));
                return Err(format!("the kernel wrote no latency of its {word} within {patience}"));
            }
            sys::sleep_until(sys::now() + LOOK_NS);
        }
    }

    fn follow(&self, pipe: &Mutex<Pipe>, span: (u64, u64), stopped: &dyn Fn() -> bool) -> Result<(), String> {
        let mut periods = Periods::new(self.interval_ns, span);
        let mut heard = sys::now();
        loop {
            let stopped = stopped();
            let new = lock(pipe).take(self.context)?;
            let now = sys::now();
            if !new.is_empty() {
                heard = now;
            }
            let taken = new
                .into_iter()
                .try_for_each(|latency| periods.take(latency, &mut |marked| self.inbox.push(marked)));
            self.count(&periods, &lock(pipe).told());
            taken?;
            if stopped || periods.over {
                return Ok(());
            }
            if now.saturating_sub(heard) > PATIENCE_NS {
                return Err(format!("the kernel wrote no more latencies, for {}", Nanos(now - heard)));
            }
            sys::sleep_until(now + LOOK_NS);
        }
    }

    /// Records the periods missing until now.
    fn count(&self, periods: &Periods, told: &Told) {
        let mut counts = lock(&self.counts);
        self.inbox.lose(periods.lost.saturating_sub(counts.lost));
        *counts = Counts { lost: periods.lost, unarmed: periods.unarmed, told: told.clone() };
    }
}

impl Reading for Trace {
    fn wait(&self, began: u64) {
        match self.find(began.saturating_add(PATIENCE_NS)) {
            Ok(pipe) => *lock(&self.pipe) = Some(pipe),
            Err(why) => self.fail(&why),
        }
    }

    fn read(&self, span: (u64, u64), stopped: &dyn Fn() -> bool) {
        // The pipe is closed at the end: the kernel refuses to end a tracer whose pipe is open.
        let Some(pipe) = lock(&self.pipe).take() else { return };
        if let Err(why) = self.follow(&pipe, span, stopped) {
            self.fail(&why);
        }
    }

    fn read_stand_in(&self, of: Due, stopped: &dyn Fn() -> bool) {
        let interval_ns = of.interval_ns.max(1);
        let mut periods = Periods::new(interval_ns, (of.first, of.end));
        let (mut lines, mut number, mut due, mut result) = (Lines::default(), 0_u64, of.first, Ok(()));
        while due < of.end && !stopped() && result.is_ok() {
            if !sys::sleep_until(due) && sys::now() < due {
                continue;
            }
            let now = sys::now();
            number += 1;
            let (cpu, context) = (self.cpu, self.context.word());
            let (seconds, micros, late) = (now / 1_000_000_000, now / 1_000 % 1_000_000, now - due);
            let line = format!(
                "        stand-in-1       [{cpu:03}] ..... {seconds:5}.{micros:06}: #{number:<5} context {context:>6} timer_latency {late:9} ns\n"
            );
            lines.feed(line.as_bytes(), &mut |line| {
                result = match read(line) {
                    Said::Latency(latency) => periods.take(latency, &mut |marked| self.inbox.push(marked)),
                    said => Err(format!("its stand-in's line was read as {said:?}")),
                };
            });
            due += (1 + (now - due) / interval_ns) * interval_ns;
        }
        if let Err(why) = result {
            self.fail(&why);
        }
    }

    fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    fn account(&self) -> Vec<Note> {
        let Counts { lost, unarmed, told } = &*lock(&self.counts);
        let (word, cpu) = (self.context.word(), self.cpu);
        let lost = lost.saturating_add(self.inbox.not_taken());
        let mut notes = Vec::new();
        if lost > 0 {
            notes.push(Note::obstacle(
                format!(
                    "{lost} {word} latencies of timerlat on CPU {cpu} were overwritten before they were read \
                     (the kernel reported that {} times), and are left out: the result never passes",
                    told.overwritten
                ),
                "give the environment a housekeeping CPU, or take a longer interval",
            ));
        }
        if *unarmed > 0 {
            notes.push(Note::info(format!(
                "{unarmed} periods of timerlat on CPU {cpu} have no {word} latency: its thread was late, and armed no timer"
            )));
        }
        if told.strange > 0 {
            let (strange, first) = (told.strange, &told.first);
            notes.push(Note::obstacle(
                format!("{strange} lines of timerlat on CPU {cpu} are not latencies; the first is `{first}`"),
                "check what else writes into its trace",
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests;
