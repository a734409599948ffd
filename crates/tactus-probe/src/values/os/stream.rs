//! Bytes between two processes: through pipes, UNIX sockets and TCP.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use super::super::{Bench, Operation, Place, alone, partner, timed};

/// Bytes of one write, for bandwidth.
const BLOCK: u32 = 64 * 1024;

/// One of two ends, with the file that it reads and the one that it writes.
pub struct End {
    from: OwnedFd,
    to: OwnedFd,
}

/// Both.
pub type Ends = (End, End);

pub fn pipes() -> io::Result<Ends> {
    let (here, there) = (rustix::pipe::pipe()?, rustix::pipe::pipe()?);
    Ok((End { from: here.0, to: there.1 }, End { from: there.0, to: here.1 }))
}

pub fn unix() -> io::Result<Ends> {
    let (ours, theirs) = UnixStream::pair()?;
    Ok((End::of(ours.into())?, End::of(theirs.into())?))
}

pub fn tcp() -> io::Result<Ends> {
    let (ours, theirs) = connection()?;
    // Written data is sent at once: a byte would otherwise wait for the next one.
    ours.set_nodelay(true)?;
    theirs.set_nodelay(true)?;
    Ok((End::of(ours.into())?, End::of(theirs.into())?))
}

/// Two ends of a TCP connection within this environment.
pub fn connection() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let ours = TcpStream::connect(listener.local_addr()?)?;
    let own = ours.local_addr()?;
    loop {
        // Others of this machine may connect as well.
        let (theirs, from) = listener.accept()?;
        if from == own {
            return Ok((ours, theirs));
        }
    }
}

impl End {
    fn of(socket: OwnedFd) -> io::Result<Self> {
        Ok(Self { from: socket.try_clone()?, to: socket })
    }

    /// Waits for a byte and sends one.
    fn answer(&self) -> io::Result<()> {
        self.hear()?;
        self.say()
    }

    fn hear(&self) -> io::Result<()> {
        read(&self.from, &mut [0; 1]).map(drop)
    }

    fn say(&self) -> io::Result<()> {
        Ok(rustix::io::write(&self.to, &[0]).map(drop)?)
    }

    fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = rustix::io::write(&self.to, bytes)?;
            bytes = bytes.get(written..).unwrap_or_default();
        }
        Ok(())
    }
}

/// Reads at least one byte: the end of the stream is an error.
fn read(from: impl AsFd, bytes: &mut [u8]) -> io::Result<usize> {
    match rustix::io::read(from, bytes)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        read => Ok(read),
    }
}

/// A byte goes to another process and one comes back.
pub fn round_trip((ours, theirs): Ends) -> io::Result<Bench> {
    let partner = partner(|| {
        loop {
            theirs.answer()?;
        }
    })?;
    let run = move |batch| {
        timed(|| {
            ours.say()?;
            (1..batch).try_for_each(|_| ours.answer())?;
            ours.hear()
        })
    };
    Ok(Bench { partners: vec![partner], ..alone(run) })
}

/// Half of that: from the one process to the other.
pub fn one_way(_: &Place<'_>) -> io::Result<Bench> {
    Ok(Bench { of: Operation::Parts(2), ..round_trip(pipes()?)? })
}

/// Another process writes, this one reads.
pub fn bandwidth((ours, theirs): Ends) -> io::Result<Bench> {
    let length = usize::try_from(BLOCK).map_err(io::Error::other)?;
    let partner = partner(|| {
        let (block, mut count) = (vec![1; length], [0; 8]);
        // It is told how much to write: more would be written while other items are measured. The message arrives
        // whole, because it is short and nothing comes before it.
        while read(&theirs.from, &mut count)? == count.len() {
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
                left -= read(&ours.from, &mut block[..most])? as u64;
            }
            Ok(())
        })
    };
    Ok(Bench { of: Operation::Bytes(BLOCK), partners: vec![partner], ..alone(run) })
}
