//! The conversation with the host side: hello, facts, jobs, quit.

use std::io;

use tactus_model::clock::ClockCheck;
use tactus_model::message::{
    CLOCK, Done, End, FromProbe, Hello, Job, Note, PROTOCOL, Proven, Refusal, ToProbe,
};

use crate::channel::{Channel, Incoming, SessionEnd};
use crate::job::{Prepared, Running};
use crate::{facts, fault, load, sys, values};

/// Bytes of readings that travel in one message: a lost frame then costs few of them.
const FACTS_PER_MESSAGE: usize = 8 * 1024;

/// Speaks with the host side until it says quit or the stream ends.
///
/// # Errors
/// When the stream breaks.
pub fn serve(channel: &mut Channel, late: impl FnOnce() -> Vec<Note>) -> io::Result<SessionEnd> {
    channel.say(&FromProbe::Hello(hello()))?;
    // Everything that the first word does not need comes after it.
    for note in late() {
        channel.note(note)?;
    }
    say_facts(channel)?;
    converse(channel)
}

/// Waits to be greeted or told, until the host side says quit or the stream ends.
///
/// # Errors
/// When the stream breaks.
pub fn converse(channel: &mut Channel) -> io::Result<SessionEnd> {
    // A job that has ended, whose threads wait for the control after it.
    let mut ended: Option<Prepared> = None;
    loop {
        channel.reap()?;
        match channel.next(None)? {
            Incoming::Message(ToProbe::Job(job)) => {
                drop(ended.take());
                if job.budget > 0 {
                    channel.narrow(job.budget);
                }
                match perform(channel, &job)? {
                    Ok(job) => ended = job,
                    Err(SessionEnd::Greeted) => answer(channel)?,
                    Err(end_of_session) => return Ok(end_of_session),
                }
            }
            Incoming::Message(ToProbe::Prove) if ended.is_some() => {
                let told_ns = sys::now();
                let clock = match ended.take() {
                    Some(mut job) => job.prove(channel)?,
                    None => ClockCheck::default(),
                };
                channel.say(&FromProbe::Proven(Proven { told_ns, proven_ns: sys::now(), clock }))?;
            }
            Incoming::Message(ToProbe::Stop) if ended.is_some() => ended = None,
            Incoming::Message(ToProbe::Greet) => {
                drop(ended.take());
                answer(channel)?;
            }
            Incoming::Message(ToProbe::Quit) => return Ok(SessionEnd::Quit),
            Incoming::Message(ToProbe::Prove | ToProbe::Go | ToProbe::Stop) => {
                channel.note(Note::info("there is no job to start or to stop"))?;
            }
            Incoming::Nothing | Incoming::Message(ToProbe::Call(_) | ToProbe::Clock(_)) => {}
            Incoming::Ended => return Ok(SessionEnd::Ended),
        }
    }
}

/// Answers a greeting.
fn answer(channel: &mut Channel) -> io::Result<()> {
    channel.begin_anew()?;
    channel.say(&FromProbe::Hello(hello()))?;
    say_facts(channel)
}

fn hello() -> Hello {
    let measurements = tactus_measure::MEASUREMENTS.iter().map(|entry| entry.name());
    let values = values::MEASUREMENTS.iter().map(|entry| entry.name());
    let beside = [load::NAMES, fault::NAMES, &[CLOCK]].concat();
    Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").into(),
        arch: std::env::consts::ARCH.into(),
        pid: std::process::id(),
        monotonic_ns: sys::now(),
        realtime_ns: sys::realtime(),
        can: measurements.chain(values).chain(beside).map(str::to_owned).collect(),
    }
}

fn say_facts(channel: &mut Channel) -> io::Result<()> {
    let mut rest = facts::collect().0;
    loop {
        let mut part = tactus_model::facts::Facts::default();
        let mut size = 0;
        while size < FACTS_PER_MESSAGE
            && let Some((name, reading)) = rest.pop_first()
        {
            use tactus_model::facts::Reading;
            size += name.len()
                + match &reading {
                    Reading::Text(text) | Reading::Cut(text) | Reading::Unreadable(text) => text.len(),
                    Reading::Absent => 0,
                };
            part.0.insert(name, reading);
        }
        let last = rest.is_empty();
        channel.say(&FromProbe::Facts { readings: part, last })?;
        if last {
            return Ok(());
        }
    }
}

/// Runs one job from its preparation to `done`. Returns the job for the control after it, or how the conversation ended
/// if it ended meanwhile.
fn perform(channel: &mut Channel, job: &Job) -> io::Result<Result<Option<Prepared>, SessionEnd>> {
    let mut prepared = match Prepared::new(job) {
        Ok(prepared) => prepared,
        Err(refusal) => {
            channel.say(&FromProbe::Refused(refusal))?;
            return Ok(Ok(None));
        }
    };
    for note in prepared.take_notes() {
        channel.note(note)?;
    }
    if !job.changes.is_empty() {
        // The measurement runs on the system as the job has set it.
        say_facts(channel)?;
    }
    channel.say(&FromProbe::Ready)?;
    loop {
        match channel.next(None)? {
            Incoming::Message(ToProbe::Prove) => {
                let told_ns = sys::now();
                let clock =
                    if prepared.is_unproven() { prepared.prove(channel)? } else { ClockCheck::default() };
                channel.say(&FromProbe::Proven(Proven { told_ns, proven_ns: sys::now(), clock }))?;
            }
            Incoming::Message(ToProbe::Go) => break,
            Incoming::Message(ToProbe::Stop) => {
                drop(prepared);
                let (reason, load_rounds) = (None, Vec::new());
                let done = Done { end: End::Stopped, reason, measured_ns: 0, load_rounds, jump_ns: 0 };
                channel.say(&FromProbe::Done(done))?;
                return Ok(Ok(None));
            }
            Incoming::Message(ToProbe::Quit) => return Ok(Err(SessionEnd::Quit)),
            Incoming::Message(ToProbe::Greet) => return Ok(Err(SessionEnd::Greeted)),
            Incoming::Ended => return Ok(Err(SessionEnd::Ended)),
            Incoming::Message(ToProbe::Job(_)) => {
                let reason = "a job is already prepared; stop it first".to_owned();
                channel.say(&FromProbe::Refused(Refusal { reason, hint: None }))?;
            }
            Incoming::Nothing | Incoming::Message(ToProbe::Call(_) | ToProbe::Clock(_)) => {}
        }
    }
    if prepared.is_unproven() {
        prepared.prove(channel)?;
    }
    Ok(Running::start(prepared).perform(channel)?.map(|job| Some(job).filter(Prepared::is_to_prove_again)))
}
