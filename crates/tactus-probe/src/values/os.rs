//! `os`: system call, signal, select, context switch and UNIX socket.
//!
//! Each is done as lmbench 3 does it, where lmbench has it: the signal's value is that of sending and catching
//! less that of sending alone (`lat_sig catch`), select asks for 100 duplicates of one connected socket, all of
//! which can be written (`lat_select -n 100 tcp`), the socket carries 64 KiB at a time (`bw_unix`). The context
//! switch is half of a round trip through two pipes with its reads and writes, which lmbench takes off.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::process::{Signal, getpid, getppid, kill_process, test_kill_process};
use tactus_model::catalogue::Item;
use tactus_model::catalogue::measure::os::{
    CONTEXT_SWITCH, SELECT, SIGNAL_HANDLER, SYSTEM_CALL, UNIX_BANDWIDTH,
};

use super::{Bench, Make, Measurement, Operation, Place, alone, partner, timed};
use crate::load::network::with_loopback;
use crate::sys::{self, OnSignal, Writable};

/// The measurement.
pub struct Os;

static ITEMS: [(Item, Make); 5] = [
    (SYSTEM_CALL, system_call),
    (SIGNAL_HANDLER, signal_handler),
    (SELECT, select),
    (CONTEXT_SWITCH, context_switch),
    (UNIX_BANDWIDTH, unix_bandwidth),
];

/// Sockets that select looks at.
const SOCKETS: usize = 100;
/// Bytes of one write into a UNIX socket.
const BLOCK: u32 = 64 * 1024;

impl Measurement for Os {
    fn name(&self) -> &'static str {
        "os"
    }

    fn prepare(&self) {
        // Where there is none, the item says so.
        let _ = with_loopback(connection);
    }

    fn items(&self) -> &'static [(Item, Make)] {
        &ITEMS
    }
}

fn system_call(_: &Place<'_>) -> io::Result<Bench> {
    Ok(alone(|batch| {
        timed(|| {
            for _ in 0..batch {
                std::hint::black_box(getppid());
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

fn select(_: &Place<'_>) -> io::Result<Bench> {
    let (ours, theirs) = connection()?;
    let copies = (0..SOCKETS).map(|_| ours.try_clone()).collect::<io::Result<Vec<_>>>()?;
    let set = Writable::of(copies.iter().map(AsFd::as_fd))?;
    Ok(alone(move |batch| {
        // They live as long as they are asked for.
        std::hint::black_box((&copies, &theirs));
        timed(|| {
            (0..batch).try_for_each(|_| match set.select()? {
                SOCKETS => Ok(()),
                ready => Err(io::Error::other(format!("{ready} of {SOCKETS} sockets can be written"))),
            })
        })
    }))
}

/// Two ends of a TCP connection within this environment.
fn connection() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let ours = TcpStream::connect(listener.local_addr()?)?;
    Ok((ours, listener.accept()?.0))
}

fn context_switch(_: &Place<'_>) -> io::Result<Bench> {
    let (from, back) = rustix::pipe::pipe()?;
    let (order, to) = rustix::pipe::pipe()?;
    let pass = |from: &OwnedFd, to: &OwnedFd| -> io::Result<()> {
        let mut byte = [0; 1];
        if rustix::io::read(from, &mut byte)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        rustix::io::write(to, &byte)?;
        Ok(())
    };
    let partner = partner(|| {
        loop {
            pass(&order, &back)?;
        }
    })?;
    let run = move |batch| {
        timed(|| {
            rustix::io::write(&to, &[0])?;
            (1..batch).try_for_each(|_| pass(&from, &to))?;
            rustix::io::read(&from, &mut [0; 1])?;
            Ok(())
        })
    };
    Ok(Bench { of: Operation::Parts(2), partner: Some(partner), ..alone(run) })
}

fn unix_bandwidth(_: &Place<'_>) -> io::Result<Bench> {
    let (mut ours, mut theirs) = UnixStream::pair()?;
    let length = usize::try_from(BLOCK).map_err(io::Error::other)?;
    let partner = partner(|| {
        let (block, mut count) = (vec![1; length], [0; 8]);
        // It is told how much to write: what it did beyond would be done while others are measured.
        while theirs.read_exact(&mut count).is_ok() {
            for _ in 0..u64::from_ne_bytes(count) {
                theirs.write_all(&block)?;
            }
        }
        Ok(())
    })?;
    let mut block = vec![0; length];
    let run = move |batch: u64| {
        timed(|| {
            ours.write_all(&batch.to_ne_bytes())?;
            let mut left = batch * u64::from(BLOCK);
            while left > 0 {
                let most = usize::try_from(left).unwrap_or(length).min(length);
                match ours.read(&mut block[..most])? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    read => left -= u64::try_from(read).unwrap_or(left),
                }
            }
            Ok(())
        })
    };
    Ok(Bench { of: Operation::Bytes(BLOCK), partner: Some(partner), ..alone(run) })
}
