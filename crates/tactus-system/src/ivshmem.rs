//! The server behind QEMU's ivshmem-doorbell devices: it passes memory and interrupt vectors to its peers (QEMU,
//! `docs/specs/ivshmem-spec.rst`). QEMU is one of them, the card that raises interrupts another.
//!
//! It sends little-endian numbers of 64 bits, some with a descriptor: the version of the protocol (0), the peer's
//! number, and -1 with the memory. Then it sends the number of each other peer, and at last of this one, with the
//! eventfd of its vector. The number of a peer without a descriptor says that the peer has left.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

/// The version of the protocol.
const VERSION: i64 = 0;
/// In place of a peer's number: the memory.
const MEMORY: i64 = -1;
/// How much memory peers share: a page is the least that a device can have.
const BYTES: u64 = 4096;
/// Limit of the peers at once: QEMU, a second one when it was restarted, and a card.
const MOST: usize = 16;

/// A server. Dropping it ends it: peers keep the memory and vectors that they got.
pub struct Ivshmem {
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

struct Peer {
    number: i64,
    stream: UnixStream,
    vector: OwnedFd,
}

impl Ivshmem {
    /// Serves all peers that connect.
    ///
    /// # Errors
    /// When its memory, eventfd or thread cannot be made.
    pub fn serve(listener: UnixListener) -> io::Result<Self> {
        let memory = memfd_create("tactus-card", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&memory, BYTES)?;
        // If a peer could make it shorter, every reader of it would end by SIGBUS.
        fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        listener.set_nonblocking(true)?;
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("ivshmem".into())
            .spawn(move || serve(&listener, memory.as_fd(), told.as_fd()))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Ivshmem {
    fn drop(&mut self) {
        // The write fails only if the eventfd is full, and then the thread wakes all the same.
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &UnixListener, memory: BorrowedFd, stop: BorrowedFd) {
    let (mut peers, mut next): (Vec<Peer>, i64) = (Vec::new(), 0);
    loop {
        // Without room for one more peer, callers wait and are not polled.
        let calls = if peers.len() < MOST { PollFlags::IN } else { PollFlags::empty() };
        let mut watched = vec![PollFd::from_borrowed_fd(stop, PollFlags::IN), PollFd::new(listener, calls)];
        // Peers send nothing: a readable stream means that its peer has ended.
        watched.extend(peers.iter().map(|peer| PollFd::new(&peer.stream, PollFlags::IN)));
        if poll(&mut watched, None).is_err_and(|error| error != rustix::io::Errno::INTR) {
            return;
        }
        let [stopped, called, of_peers @ ..] = &watched[..] else { return };
        if !stopped.revents().is_empty() {
            return;
        }
        let called = !called.revents().is_empty();
        let over: Vec<bool> = of_peers.iter().map(|peer| !peer.revents().is_empty()).collect();
        let (gone, stay): (Vec<_>, Vec<_>) = peers.into_iter().zip(over).partition(|(_, over)| *over);
        peers = stay.into_iter().map(|(peer, _)| peer).collect();
        for (left, _) in gone {
            peers.iter().for_each(|peer| drop(say(&peer.stream, left.number, None)));
        }
        if called
            && let Ok((stream, _)) = listener.accept()
            && let Ok(peer) = greet(stream, next, memory, &peers)
        {
            peers.push(peer);
            next += 1;
        }
    }
}

/// Gives a new peer all that there is, and tells the others of him.
fn greet(stream: UnixStream, number: i64, memory: BorrowedFd, others: &[Peer]) -> io::Result<Peer> {
    let vector = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    say(&stream, VERSION, None)?;
    say(&stream, number, None)?;
    say(&stream, MEMORY, Some(memory))?;
    for other in others {
        say(&stream, other.number, Some(other.vector.as_fd()))?;
    }
    say(&stream, number, Some(vector.as_fd()))?;
    // A peer that does not read only harms itself.
    others.iter().for_each(|other| drop(say(&other.stream, number, Some(vector.as_fd()))));
    Ok(Peer { number, stream, vector })
}

fn say(stream: &UnixStream, number: i64, descriptor: Option<BorrowedFd>) -> io::Result<()> {
    let descriptors: Vec<BorrowedFd> = descriptor.into_iter().collect();
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut room);
    if !descriptors.is_empty() {
        beside.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    let bytes = number.to_le_bytes();
    // A peer that reads nothing is not waited for, and one that has gone raises no signal.
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(stream, &[IoSlice::new(&bytes)], &mut beside, flags)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::IoSliceMut;
    use std::path::Path;

    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

    use super::*;
    use crate::{Real, System};

    fn hear(stream: &UnixStream) -> (i64, Option<OwnedFd>) {
        let mut bytes = [0; 8];
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = RecvAncillaryBuffer::new(&mut room);
        recvmsg(stream, &mut [IoSliceMut::new(&mut bytes)], &mut beside, RecvFlags::WAITALL).unwrap();
        let descriptors = beside.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        (i64::from_le_bytes(bytes), descriptors.flatten().next())
    }

    fn server(dir: &Path) -> (Ivshmem, impl Fn() -> UnixStream + use<>) {
        let path = dir.join("card.sock");
        let server = Ivshmem::serve(Real.listen(&path).unwrap()).unwrap();
        (server, move || Real.connect(&path).unwrap())
    }

    #[test]
    fn peers_get_the_memory_and_each_others_vectors_and_hear_who_leaves() {
        let dir = tempfile::tempdir().unwrap();
        let (_server, connect) = server(dir.path());
        let guest = connect();
        assert_eq!((hear(&guest).0, hear(&guest).0), (VERSION, 0));
        let (memory, own) = (hear(&guest), hear(&guest));
        assert_eq!((memory.0, own.0), (MEMORY, 0));
        let card = connect();
        assert_eq!((hear(&card).0, hear(&card).0, hear(&card).0), (VERSION, 1, MEMORY));
        let (of_guest, of_card) = (hear(&card), hear(&card));
        assert_eq!((of_guest.0, of_card.0, hear(&guest).0), (0, 1, 1));
        // A write of the card to the guest's vector arrives at the guest.
        rustix::io::write(of_guest.1.unwrap(), &7u64.to_ne_bytes()).unwrap();
        let mut count = [0; 8];
        rustix::io::read(own.1.unwrap(), &mut count).unwrap();
        assert_eq!(u64::from_ne_bytes(count), 7);
        drop(guest);
        let (number, descriptor) = hear(&card);
        assert_eq!((number, descriptor.is_none()), (0, true));
        // A peer that comes again gets a new number.
        let again = connect();
        assert_eq!((hear(&again).0, hear(&again).0, hear(&card).0), (VERSION, 2, 2));
    }

    /// The time that this process's threads of a name have had on a CPU, in ns.
    fn took(name: &str) -> u64 {
        let threads = Real.list(Path::new("/proc/self/task")).unwrap();
        let own = threads
            .iter()
            .filter(|at| Real.text(&format!("{}/comm", at.display())).is_some_and(|own| own.trim() == name));
        let ns = |at: &std::path::PathBuf| {
            Real.text(&format!("{}/schedstat", at.display()))?.split(' ').next()?.parse::<u64>().ok()
        };
        own.filter_map(ns).sum()
    }

    #[test]
    fn more_peers_than_there_may_be_wait_and_those_that_hear_nothing_hold_nobody_up() {
        let dir = tempfile::tempdir().unwrap();
        let (_server, connect) = server(dir.path());
        let mut peers: Vec<UnixStream> = (0..MOST).map(|_| connect()).collect();
        peers.iter().for_each(|peer| assert_eq!(hear(peer).0, VERSION));
        let waiting = connect();
        waiting.set_read_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
        let before = took("ivshmem");
        let mut byte = [0; 1];
        assert!(io::Read::read(&mut &waiting, &mut byte).is_err(), "there is no room");
        // While a peer waited for 200 ms, its server slept.
        assert!(took("ivshmem") - before < 100_000_000);
        drop(peers.pop());
        waiting.set_read_timeout(None).unwrap();
        assert_eq!(hear(&waiting).0, VERSION);
        // Fifteen peers that have read one word each: peers that come and go are served all the same.
        drop(waiting);
        for _ in 0..300 {
            assert_eq!(hear(&connect()).0, VERSION);
        }
    }

    #[test]
    fn no_peer_can_take_the_memory_from_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let (_server, connect) = server(dir.path());
        let guest = connect();
        let (_, _, memory) = (hear(&guest), hear(&guest), hear(&guest));
        let memory = memory.1.unwrap();
        assert_eq!(rustix::fs::fstat(&memory).unwrap().st_size, 4096);
        assert_eq!(ftruncate(&memory, 0), Err(rustix::io::Errno::PERM));
    }
}
