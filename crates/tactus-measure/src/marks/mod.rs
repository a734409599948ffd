//! Cycles that a user's program marks, and their reader (docs/design/application.md). The reader is a thread of
//! ordinary priority on a CPU that is not measured. The contents of the file are not trusted.

mod cycles;
mod file;
mod header;
mod stand_in;

use std::sync::Mutex;

use tactus_model::Nanos;
use tactus_model::catalogue::measure::Application;
use tactus_model::message::{Note, Refusal};

pub use cycles::{Asked, Cycles, LeftOut};
pub use header::{BYTES as HEADER_BYTES, RECORD as RECORD_BYTES, Shape};

pub use crate::reading::Marked;
use crate::reading::{Due, Inbox, Reading, lock};
use crate::sys;
use file::Source;
use stand_in::StandIn;

/// How often it is looked whether there are new cycles, in ns.
const LOOK_NS: u64 = 20_000_000;
/// The same of an application that is waited for.
const WAIT_NS: u64 = 2_000_000;

/// The data shared by the reader of an application and the session's thread.
#[derive(Debug)]
pub struct Marks {
    file: String,
    asked: Asked,
    patience_ns: u64,
    stand_in: Mutex<StandIn>,
    source: Mutex<Option<Source>>,
    inbox: Inbox,
    left_out: Mutex<LeftOut>,
}

impl Marks {
    /// Marks of a program whose thread is on `cpu`. The file is not opened yet.
    ///
    /// # Errors
    /// When the path is not valid, or memory for the control is missing.
    pub fn new(table: &Application, interval_ns: u64, cpu: u32) -> Result<Self, Refusal> {
        let file = table.file.clone();
        if !file.starts_with('/') || file.len() > 4000 || file.contains('\0') {
            return Err(Refusal {
                reason: format!(
                    "`file` is not an absolute path: {:?}",
                    file.chars().take(200).collect::<String>()
                ),
                hint: Some("write it from the root, as /dev/shm/control".into()),
            });
        }
        let asked = Asked { value: table.value(), interval_ns, cpu };
        let stand_in = StandIn::new(interval_ns)
            .map_err(|why| Refusal { reason: format!("no self-test can be made: {why}"), hint: None })?;
        Ok(Self {
            file,
            asked,
            patience_ns: table.patience().0,
            stand_in: Mutex::new(stand_in),
            source: Mutex::default(),
            inbox: Inbox::default(),
            left_out: Mutex::default(),
        })
    }

    /// One look for a file in which something new is marked.
    fn find(&self, until: u64) -> Result<Source, Wait> {
        let mut source = Source::open(&self.file).map_err(Wait::NotYet)?;
        let shape = source.shape().clone();
        let (own, said) = (self.asked.interval_ns, shape.period_ns);
        if said != 0 && said != own {
            let (said, own) = (Nanos(said), Nanos(own));
            return Err(Wait::Never(format!(
                "has a period of {said}, but the plan's interval is {own}: use the same"
            )));
        }
        let began = sys::now();
        let mut cycles = source.begin(self.asked, (0, u64::MAX)).map_err(Wait::NotYet)?;
        let silent = || {
            let name = if shape.name.is_empty() { "somebody" } else { &shape.name };
            format!("exists, made by {name} (process {}), but no cycle is marked in it", shape.process)
        };
        // A file that is replaced meanwhile is another one: it is opened anew from time to time.
        let look_until = until.min(began + 25 * LOOK_NS);
        loop {
            let mut newest = None;
            let seen = source.read(&mut cycles, &mut |_| ()).map_err(Wait::NotYet)?;
            if seen.new > 0 {
                newest = Some(cycles.last_end());
            }
            if let Some(end) = newest {
                // One that is marked while it is waited for has ended since, but for the time that its writer was held.
                if end.saturating_add(self.patience_ns) < began {
                    let why = match cycles.left_out.first_wrong.clone() {
                        Some(why) => why,
                        None => format!("its last cycle ended {} before it was marked", Nanos(began - end)),
                    };
                    return Err(Wait::Never(format!("has times of another clock than this one's: {why}")));
                }
                return Ok(source);
            }
            if seen.closed {
                return Err(Wait::NotYet("is closed: its program has ended".into()));
            }
            if sys::now() >= look_until {
                return Err(Wait::NotYet(silent()));
            }
            sys::sleep_until(sys::now() + WAIT_NS);
        }
    }

    fn follow(
        &self,
        end: u64,
        stopped: &dyn Fn() -> bool,
        source: &mut Source,
        cycles: &mut Cycles,
    ) -> Result<(), String> {
        let mut heard = sys::now();
        loop {
            let stopped = stopped();
            let seen = source.read(cycles, &mut |marked| self.inbox.push(marked));
            self.note_left_out(cycles);
            let seen = seen?;
            let now = sys::now();
            // The cycle of the last due time has also ended.
            let over = cycles.last_due().saturating_add(self.asked.interval_ns) >= end;
            if stopped || (over && now >= end) {
                return Ok(());
            }
            if seen.new > 0 {
                heard = now;
            } else if seen.closed {
                let left = Nanos(end.saturating_sub(now));
                return Err(format!(
                    "is closed: its program has ended, {left} before the end of the measurement"
                ));
            } else if now.saturating_sub(heard) > self.patience_ns {
                return Err(format!("exists, but no cycle has been marked in it for {}", Nanos(now - heard)));
            }
            sys::sleep_until(now + LOOK_NS);
        }
    }

    /// Records the cycles left out until now.
    fn note_left_out(&self, cycles: &Cycles) {
        let mut left_out = lock(&self.left_out);
        let more = |of: &LeftOut| of.lost.saturating_add(of.wrong);
        let new = more(&cycles.left_out).saturating_sub(more(&left_out));
        self.inbox.lose(new);
        *left_out = cycles.left_out.clone();
    }

    fn fail(&self, why: &str) {
        self.inbox.fail(format!("{} {why}", self.file));
    }
}

impl Reading for Marks {
    fn wait(&self, began: u64) {
        let until = began.saturating_add(self.patience_ns);
        loop {
            let why = match self.find(until) {
                Ok(source) => {
                    *lock(&self.source) = Some(source);
                    return;
                }
                Err(Wait::Never(words)) => return self.fail(&words),
                Err(Wait::NotYet(words)) => words,
            };
            if sys::now() >= until {
                return self.fail(&format!("{why}, for {}", Nanos(self.patience_ns)));
            }
            sys::sleep_until(sys::now() + WAIT_NS);
        }
    }

    fn read(&self, span: (u64, u64), stopped: &dyn Fn() -> bool) {
        let Some(mut source) = lock(&self.source).take() else { return };
        let read = source.begin(self.asked, span);
        let cycles = read.and_then(|mut cycles| {
            let read = self.follow(span.1, stopped, &mut source, &mut cycles);
            cycles.finish(&mut |marked| self.inbox.push(marked));
            self.note_left_out(&cycles);
            read
        });
        if let Err(why) = cycles {
            self.fail(&why);
        }
    }

    fn read_stand_in(&self, due: Due, stopped: &dyn Fn() -> bool) {
        let mut stand_in = lock(&self.stand_in);
        if let Err(why) = stand_in.run(self.asked, due, stopped, &mut |marked| self.inbox.push(marked)) {
            self.fail(&format!("cannot be self-tested: {why}"));
        }
    }

    fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    fn account(&self) -> Vec<Note> {
        let LeftOut { lost, wrong, first_wrong, unmarked, elsewhere } = lock(&self.left_out).clone();
        let (file, cpu) = (&self.file, self.asked.cpu);
        let lost = lost.saturating_add(self.inbox.not_taken());
        let mut notes = Vec::new();
        if lost > 0 {
            notes.push(Note::obstacle(
                format!(
                    "{lost} cycles of {file} were overwritten before they were read, and are left out: \
                    the result never passes"
                ),
                "give the environment a housekeeping CPU, and the file a larger ring",
            ));
        }
        if wrong > 0 {
            let why = first_wrong.unwrap_or_default();
            notes.push(Note::obstacle(
                format!(
                    "{wrong} cycles of {file} contradict themselves and are left out ({why}): the result \
                        never passes"
                ),
                "mark times of CLOCK_MONOTONIC, from one thread",
            ));
        }
        if unmarked > 0 {
            notes.push(Note::info(format!(
                "at {unmarked} due times no cycle was marked in {file}, apart from those that a late cycle \
                    explains"
            )));
        }
        if elsewhere > 0 {
            notes.push(Note::obstacle(
                format!(
                    "{elsewhere} cycles of {file} were marked on another CPU than {cpu}, which the plan names"
                ),
                "pin the thread, or name its CPU with `cpus`",
            ));
        }
        notes
    }
}

/// Why there is nothing to read.
enum Wait {
    /// It may still come.
    NotYet(String),
    /// It will not come.
    Never(String),
}

#[cfg(test)]
mod tests;
