//! Limits on the data that an environment may send. An attacker who controls a guest, a container or a line may have
//! replaced its probe: the limits protect the memory, the disk and the time of this machine.
//!
//! Three limits, each far above the needs of any measurement. An environment that exceeds one is ended, with a reason
//! that names the environment and the limit.
//!
//! - [`Backlog`]: bytes that were heard and wait to be handled. It makes the sender wait, and never ends it.
//! - [`Allowance`]: messages, series, values and text of a job. The plan determines how many there can be.
//! - [`overtime`]: how long a job may take in all, whatever its probe says meanwhile.

mod backlog;
mod overtime;
mod reports;
mod text;

use std::time::Instant;

use tactus_model::facts::{Facts, Reading};
use tactus_model::message::{FromProbe, Hello, Job, Note, Refusal};
use tactus_model::rpc::WINDOW;
use tactus_model::wire::Item;

pub(crate) use backlog::{Backlog, Share, of_breakdown, of_outlier, weight};
pub(crate) use overtime::{is_over, longest};
pub(crate) use reports::Before;
use reports::{LATEST_NS, Reports};
use text::Text;

/// Most bytes of readings, each with what it takes beside its name and text: all are said when a probe begins, and once
/// more when it has made settings. A machine of 512 CPUs with 8192 threads has some 6 MB.
const MOST_FACTS: usize = 16 << 20;
/// The size of a reading beside its name and text, in bytes.
const READING: usize = 128;
/// Most remarks in one job beside those of its threads: a probe has some twenty, and one more for each worker that ends
/// early.
const MOST_NOTES: u64 = 256;
/// Most remarks for each measuring thread: its control is tried before and after.
const NOTES_PER_THREAD: u64 = 4;
/// Most bytes of all remarks of one job, and for each measuring thread: they are some hundred bytes each. Every row of
/// the job keeps them until the run ends.
const MOST_REMARKED: usize = 64 << 10;
const REMARKED_PER_THREAD: usize = 1 << 10;
/// Most messages of each kind that there is one of in a job, or one for each time that somebody takes a line anew.
const MOST_TURNS: u64 = 64;
/// Most answers that nothing awaits any more. They answer a call that took too long, or carry output of a child that
/// was given up. A child may send the rest of what it was allowed, and that may come byte by byte.
const MOST_UNASKED: u64 = 2 * WINDOW;
/// Most clocks that one clock is compared with.
const MOST_CLOCKS: usize = 16;
/// The longest text within a message that is kept, in bytes: two screens.
const LONGEST_TEXT: usize = 4096;
/// The longest name of anything: a series' kind, a measured item.
const LONGEST_NAME: usize = 64;
/// Most frames that can be lost at once. A line of 4 Mbaud carries 70 million a day.
const MOST_LOST: u64 = 1 << 32;

/// The sender exceeded a limit; in words that follow its name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; a probe never does this, so it was ended")]
pub(crate) struct Excess(String);

/// The messages of an environment in its job so far, and their limits.
#[derive(Debug)]
pub(crate) struct Allowance {
    reports: Reports,
    text: Text,
    facts: usize,
    notes: u64,
    /// Bytes of the notes.
    remarked: usize,
    turns: u64,
    unasked: u64,
}

impl Allowance {
    /// Of an environment that has no job yet.
    pub fn new(now: Instant) -> Self {
        let (reports, text) = (Reports::default(), Text::new(now));
        Self { reports, text, facts: 0, notes: 0, remarked: 0, turns: 0, unasked: 0 }
    }

    /// It gets a job. `imported`: the sender is not a probe but a foreign instrument, which numbers its threads as it
    /// likes. `before`: what earlier starts of it reported of the job.
    pub fn begin(&mut self, job: &Job, imported: bool, before: Option<&Before>) {
        self.reports = Reports::of(job, imported, before);
        (self.notes, self.remarked, self.turns, self.unasked) = (0, 0, 0, 0);
    }

    /// The state that the next start of the environment continues with; `None`: it was given no job.
    pub fn before(&self) -> Option<Before> {
        self.reports.before()
    }

    /// Takes in what has arrived; numbers and texts that are too large to be kept come back cut.
    ///
    /// # Errors
    /// When it is more than there can be.
    pub fn admit(&mut self, item: Item<FromProbe>, now: Instant) -> Result<Item<FromProbe>, Excess> {
        match item {
            Item::Message(message) => self.message(message).map(Item::Message),
            Item::Foreign(line) => self.text.take(line.len(), now).map(|()| Item::Foreign(line)),
            Item::Unknown(frame) => self.text.take(frame.len(), now).map(|()| Item::Unknown(frame)),
            Item::Lost(frames) if frames > MOST_LOST => {
                Err(Excess(format!("skipped {frames} frame numbers")))
            }
            Item::Lost(frames) => Ok(Item::Lost(frames)),
        }
    }

    fn message(&mut self, mut message: FromProbe) -> Result<FromProbe, Excess> {
        match &mut message {
            FromProbe::Facts { readings, .. } => {
                // Their texts were cut when they were read.
                if readings.0.keys().any(|name| name.len() > LONGEST_TEXT) {
                    let most = LONGEST_TEXT;
                    return Err(Excess(format!("sent a fact whose name is longer than {most} bytes")));
                }
                self.facts = self.facts.saturating_add(size(readings));
                if self.facts > MOST_FACTS {
                    let most = MOST_FACTS >> 20;
                    return Err(Excess(format!("sent more than {most} MiB of facts")));
                }
            }
            FromProbe::Note(note) => {
                let threads = self.reports.threads();
                count(&mut self.notes, MOST_NOTES + NOTES_PER_THREAD * threads, "notes")?;
                clip_note(note);
                self.remarked += note.text.len() + note.hint.as_ref().map_or(0, String::len);
                let threads = usize::try_from(threads).unwrap_or(usize::MAX);
                let most = MOST_REMARKED.saturating_add(REMARKED_PER_THREAD.saturating_mul(threads));
                if self.remarked > most {
                    return Err(Excess(format!("sent notes of more than {most} bytes")));
                }
            }
            FromProbe::Hello(hello) => {
                count(&mut self.turns, MOST_TURNS, "beginnings and ends of a job")?;
                clip_hello(hello);
            }
            FromProbe::Refused(Refusal { reason, hint }) => {
                count(&mut self.turns, MOST_TURNS, "beginnings and ends of a job")?;
                clip(reason, LONGEST_TEXT);
                hint.iter_mut().for_each(|hint| clip(hint, LONGEST_TEXT));
            }
            FromProbe::Ready => count(&mut self.turns, MOST_TURNS, "beginnings and ends of a job")?,
            FromProbe::Proven(proven) => {
                count(&mut self.turns, MOST_TURNS, "beginnings and ends of a job")?;
                proven.clock.rates.truncate(MOST_CLOCKS);
                // An environment whose clock stands still cannot know it.
                proven.clock.holes.clear();
                proven.clock.jump_ns = proven.clock.jump_ns.min(LATEST_NS);
                proven.clock.step_ns.iter_mut().for_each(|step_ns| *step_ns = (*step_ns).min(LATEST_NS));
                proven.clock.rates.iter_mut().for_each(|rate| clip(&mut rate.against, LONGEST_NAME));
            }
            FromProbe::Done(done) => {
                count(&mut self.turns, MOST_TURNS, "beginnings and ends of a job")?;
                done.reason.iter_mut().for_each(|reason| clip(reason, LONGEST_TEXT));
                self.reports.done(done)?;
            }
            FromProbe::Tick(tick) => self.reports.tick(tick)?,
            FromProbe::Total(total) => self.reports.total(total)?,
            FromProbe::Windows(windows) => self.reports.windows(windows)?,
            FromProbe::Outlier(outlier) => self.reports.outlier(outlier)?,
            FromProbe::Trial(trial) => self.reports.trial(trial)?,
            FromProbe::Value(value) => self.reports.value(value)?,
            FromProbe::Breakdown(of) => self.reports.breakdown(of)?,
            FromProbe::Card(card) => self.reports.card(card)?,
            FromProbe::Injected(injected) => self.reports.injected(injected)?,
            // The connection has taken those that were asked for.
            FromProbe::Clock(_) | FromProbe::Answer(_) | FromProbe::Output(_) | FromProbe::Exited(_) => {
                count(&mut self.unasked, MOST_UNASKED, "answers without a question")?;
            }
        }
        Ok(message)
    }
}

/// The size of readings, in bytes.
pub(crate) fn size(readings: &Facts) -> usize {
    let text = |reading: &Reading| match reading {
        Reading::Text(text) | Reading::Cut(text) | Reading::Unreadable(text) => text.len(),
        Reading::Absent => 0,
    };
    readings.0.iter().map(|(name, reading)| READING + name.len() + text(reading)).sum()
}

/// One more of something.
fn count(so_far: &mut u64, most: u64, what: &str) -> Result<(), Excess> {
    *so_far = so_far.saturating_add(1);
    if *so_far > most { Err(Excess(format!("sent more than {most} {what}"))) } else { Ok(()) }
}

fn clip_note(note: &mut Note) {
    clip(&mut note.text, LONGEST_TEXT);
    note.hint.iter_mut().for_each(|hint| clip(hint, LONGEST_TEXT));
}

fn clip_hello(hello: &mut Hello) {
    clip(&mut hello.version, LONGEST_NAME);
    clip(&mut hello.arch, LONGEST_NAME);
    hello.can.truncate(LONGEST_NAME);
    hello.can.iter_mut().for_each(|word| clip(word, LONGEST_NAME));
}

/// Cuts a text and marks it as cut.
pub(crate) fn clip(text: &mut String, longest: usize) {
    const MARK: &str = " [...]";
    if text.len() > longest {
        let room = longest.saturating_sub(MARK.len());
        let end = (0..=room).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str(MARK);
        text.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests;
