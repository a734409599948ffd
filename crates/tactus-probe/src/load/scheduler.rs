//! `scheduler`: groups of senders and receivers that exchange small messages, as hackbench does.
//!
//! Every sender of a group writes a message to every receiver of its group, in turn, for ever. A
//! round is a message received.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use tactus_model::CpuSet;
use tactus_model::catalogue::load::Scheduler;
use tactus_model::message::Refusal;

use super::{length, refuse};
use crate::work::{Work, reset_scheduling};

/// The most processes of one load.
const MOST_PROCESSES: u32 = 4_000;

pub fn works(table: &Scheduler, cpus: &CpuSet) -> Result<Vec<Work>, Refusal> {
    let shape = Shape::of(table)?;
    let mut works: Vec<Work> = Vec::new();
    for _ in 0..shape.groups {
        let ends = (0..shape.pairs)
            .map(|_| shape.ends())
            .collect::<io::Result<Vec<_>>>()
            .map_err(|error| no_ends(&error))?;
        let (inputs, outputs): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
        let outputs = Rc::new(outputs);
        for input in inputs {
            let cpus = cpus.clone();
            works.push(Box::new(move |rounds| {
                reset_scheduling(&cpus);
                receive(&input, shape.size, rounds);
            }));
        }
        for _ in 0..shape.pairs {
            let (cpus, outputs) = (cpus.clone(), Rc::clone(&outputs));
            works.push(Box::new(move |_| {
                reset_scheduling(&cpus);
                send(&outputs, shape.size);
            }));
        }
    }
    Ok(works)
}

fn no_ends(error: &io::Error) -> Refusal {
    Refusal {
        reason: format!("scheduler: its sockets or pipes could not be made: {error}"),
        hint: Some("use fewer groups or pairs, or raise the limit of open files (ulimit -n)".into()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    groups: u32,
    pairs: u32,
    size: usize,
    pipes: bool,
}

impl Shape {
    fn of(table: &Scheduler) -> Result<Self, Refusal> {
        let (groups, pairs) = (table.groups(), table.pairs());
        let processes = (u64::from(groups) * u64::from(pairs)).saturating_mul(2);
        if processes > u64::from(MOST_PROCESSES) {
            let reason = format!(
                "scheduler: {groups} groups of {pairs} pairs are {processes} processes; use 2 to {MOST_PROCESSES}"
            );
            return Err(refuse(reason, ""));
        }
        Ok(Self { groups, pairs, size: length(table.size().into()), pipes: table.pipes })
    }

    /// A reading and a writing end.
    fn ends(self) -> io::Result<(OwnedFd, OwnedFd)> {
        if self.pipes {
            return Ok(rustix::pipe::pipe()?);
        }
        Ok(socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None)?)
    }
}

fn receive(from: &OwnedFd, size: usize, rounds: &AtomicU64) {
    let mut message = vec![0; size];
    let mut rest = 0;
    // Messages may arrive in pieces: a round is a whole one.
    while let Ok(length @ 1..) = rustix::io::read(from, message.as_mut_slice()) {
        rest += length;
        if rest >= size {
            rest -= size;
            rounds.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn send(to: &[OwnedFd], size: usize) {
    let message = vec![0; size];
    loop {
        for end in to {
            let mut left = &message[..];
            while !left.is_empty() {
                let Ok(written) = rustix::io::write(end, left) else { return };
                left = &left[written..];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_every_group_is_two_processes() {
        let table = Scheduler { groups: Some(3), pairs: Some(4), ..Scheduler::default() };
        let works = works(&table, &CpuSet::one(0)).unwrap();
        assert_eq!(works.len(), 24);
    }

    #[test]
    fn a_size_or_number_without_sense_is_refused() {
        let none = Scheduler { groups: Some(0), ..Scheduler::default() };
        assert!(none.check().is_err());
        let many = Scheduler { groups: Some(u32::MAX), pairs: Some(u32::MAX), ..Scheduler::default() };
        assert!(many.check().is_err() && Shape::of(&many).is_err());
        let empty = Scheduler { size: Some(0), ..Scheduler::default() };
        assert!(empty.check().is_err());
    }

    #[test]
    fn rounds_are_whole_messages_however_they_arrive() {
        let shape = Shape { groups: 1, pairs: 1, size: 10, pipes: true };
        let (from, to) = shape.ends().unwrap();
        for piece in [4, 6, 10, 3] {
            rustix::io::write(&to, &vec![0; piece]).unwrap();
        }
        drop(to);
        let rounds = AtomicU64::new(0);
        receive(&from, 10, &rounds);
        assert_eq!(rounds.into_inner(), 2);
    }
}
