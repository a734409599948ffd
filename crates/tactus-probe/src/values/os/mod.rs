//! `os`: system call, clock, signals, page fault, select, processes, context switches, and bytes between processes.
//!
//! Each is done as in lmbench 3, if lmbench has it. The signal's value is that of sending and catching less that of
//! sending alone (`lat_sig catch`). The call select asks for duplicates of one connected socket, all of them writable
//! (`lat_select tcp`). Pipe and socket carry 64 KiB at a time (`bw_pipe`, `bw_unix`). The context switch is half of a
//! round trip through two pipes with its reads and writes, which lmbench subtracts.

mod process;
mod ring;
mod stream;

use std::hint::black_box;
use std::io;
use std::os::fd::AsFd;

use rustix::process::{Signal, getpid, getppid, kill_process, test_kill_process};
use tactus_model::catalogue::measure::os::{
    CLOCK_READ, CONTEXT_SWITCH, CONTEXT_SWITCHES, CONTEXT_SWITCHES_16K, CONTEXT_SWITCHES_64K, FORK,
    FORK_EXEC, PAGE_FAULT, PIPE_BANDWIDTH, PIPE_LATENCY, SELECT, SIGNAL_HANDLER, SIGNAL_INSTALL, SYSTEM_CALL,
    TCP_BANDWIDTH, TCP_LATENCY, UNIX_BANDWIDTH, UNIX_LATENCY,
};
use tactus_model::catalogue::{Item, Measure};

use super::{Bench, Curve, Make, Measurement, Place, TAKEN_BY_INTERRUPTS, alone, timed};
use crate::load::network::with_loopback;
use crate::sys::{self, OnSignal, PageSize, Pages, Writable};

/// The measurement.
pub struct Os;

static ITEMS: [(Item, Make); 15] = [
    (SYSTEM_CALL, system_call),
    (CLOCK_READ, clock_read),
    (SIGNAL_INSTALL, signal_install),
    (SIGNAL_HANDLER, signal_handler),
    (PAGE_FAULT, page_fault),
    (SELECT, select),
    (FORK, process::fork),
    (FORK_EXEC, process::fork_exec),
    (CONTEXT_SWITCH, stream::one_way),
    (PIPE_LATENCY, |_| stream::round_trip(stream::pipes()?)),
    (PIPE_BANDWIDTH, |_| stream::bandwidth(stream::pipes()?)),
    (UNIX_LATENCY, |_| stream::round_trip(stream::unix()?)),
    (UNIX_BANDWIDTH, |_| stream::bandwidth(stream::unix()?)),
    (TCP_LATENCY, |_| Ok(Bench { taken: TAKEN_BY_INTERRUPTS, ..stream::round_trip(stream::tcp()?)? })),
    (TCP_BANDWIDTH, |_| Ok(Bench { taken: TAKEN_BY_INTERRUPTS, ..stream::bandwidth(stream::tcp()?)? })),
];

static CURVES: [(Item, Curve); 3] = [
    (CONTEXT_SWITCHES, |_| ring::switches(0)),
    (CONTEXT_SWITCHES_16K, |_| ring::switches(16 << 10)),
    (CONTEXT_SWITCHES_64K, |_| ring::switches(64 << 10)),
];

/// Pages that are touched before the kernel takes them back.
const PAGES: usize = 256;

impl Measurement for Os {
    fn name(&self) -> &'static str {
        "os"
    }

    fn prepare(&self) {
        // Without a connection, the item reports it.
        let _ = with_loopback(stream::connection);
    }

    fn items(&self) -> &'static [(Item, Make)] {
        &ITEMS
    }

    fn curves(&self) -> &'static [(Item, Curve)] {
        &CURVES
    }
}

fn system_call(_: &Place<'_>) -> io::Result<Bench> {
    Ok(alone(|batch| {
        timed(|| {
            for _ in 0..batch {
                black_box(getppid());
            }
            Ok(())
        })
    }))
}

fn clock_read(_: &Place<'_>) -> io::Result<Bench> {
    Ok(alone(|batch| {
        timed(|| {
            for _ in 0..batch {
                black_box(sys::now());
            }
            Ok(())
        })
    }))
}

fn signal_install(_: &Place<'_>) -> io::Result<Bench> {
    Ok(alone(|batch| {
        timed(|| {
            for _ in 0..batch {
                sys::on_signal(libc::SIGUSR2, OnSignal::Wake);
            }
            Ok(())
        })
    }))
}

fn signal_handler(_: &Place<'_>) -> io::Result<Bench> {
    sys::on_signal(libc::SIGUSR1, OnSignal::Wake);
    let me = getpid();
    Ok(alone(move |batch| {
        let send = timed(|| (0..batch).try_for_each(|_| Ok(test_kill_process(me)?)))?;
        let catch = timed(|| (0..batch).try_for_each(|_| Ok(kill_process(me, Signal::USR1)?)))?;
        Ok(catch.saturating_sub(send))
    }))
}

fn page_fault(_: &Place<'_>) -> io::Result<Bench> {
    let mut pages = Pages::map(PAGES * rustix::param::page_size(), PageSize::Small)?;
    let words = rustix::param::page_size() / size_of::<u64>();
    Ok(alone(move |batch| {
        let (mut left, mut took) = (usize::try_from(batch).map_err(io::Error::other)?, 0);
        while left > 0 {
            pages.forget()?;
            let some = left.min(PAGES);
            took += timed(|| {
                pages.words_mut().iter_mut().step_by(words).take(some).for_each(|word| *word = 1);
                black_box(pages.words());
                Ok(())
            })?;
            left -= some;
        }
        Ok(took)
    }))
}

fn select(place: &Place<'_>) -> io::Result<Bench> {
    let Measure::Os(os) = place.measure else { return Err(io::ErrorKind::InvalidInput.into()) };
    let sockets = usize::try_from(os.descriptors()).map_err(io::Error::other)?;
    let (ours, theirs) = stream::connection()?;
    let copies = (0..sockets).map(|_| ours.try_clone()).collect::<io::Result<Vec<_>>>()?;
    let set = Writable::of(copies.iter().map(AsFd::as_fd))?;
    Ok(alone(move |batch| {
        // They must live as long as they are used.
        black_box((&copies, &theirs));
        timed(|| {
            (0..batch).try_for_each(|_| match set.select()? {
                ready if ready == sockets => Ok(()),
                ready => Err(io::Error::other(format!("{ready} of {sockets} sockets can be written"))),
            })
        })
    }))
}
