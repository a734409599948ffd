//! How the card becomes a peer of the guest: QEMU's ivshmem protocol (docs/specs/ivshmem-spec.rst), as its clients speak it.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tactus_model::catalogue::measure::{AnswerBy, Interrupt};
use tactus_model::message::Refusal;

use super::{Card, Doorbell, Ring};
use crate::sys::Page;

/// The version of the protocol.
const VERSION: i64 = 0;
/// In place of a peer's number: the memory.
const MEMORY: i64 = -1;
/// How long the connection waits for the server.
const PATIENCE: Duration = Duration::from_secs(5);
/// More peers than a server of ours has. A server that announces more is refused.
const MOST: usize = 64;

impl Card {
    /// Connects to the server at `socket`, and takes the memory and the vector of the guest.
    ///
    /// # Errors
    /// When no server listens, it speaks another protocol, or no guest has connected.
    pub fn connect(socket: &str, table: &Interrupt, beside: Option<u32>) -> Result<Self, Refusal> {
        let failed = |error: io::Error| Refusal {
            reason: format!("the card cannot be connected to {socket}: {error}"),
            hint: Some("measure it from an environment of the kind host, beside the guest".into()),
        };
        let stream = UnixStream::connect(socket).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        let (page, vector) = take(&stream).map_err(failed)?;
        let Some(vector) = vector else {
            return Err(Refusal {
                reason: "no guest has taken the card".into(),
                hint: Some("`to` names a guest with an interrupt card, as one of the kind bare".into()),
            });
        };
        let ring = if table.answer() == AnswerBy::Poll { Ring::Nothing } else { Ring::Vector(vector) };
        let bell = Doorbell { page: Arc::new(page), ring };
        Ok(Self { _server: Some(stream), beside, ..Self::new(bell, table) })
    }
}

/// The memory, and the vector of the last peer that is not this one.
fn take(stream: &UnixStream) -> io::Result<(Page, Option<OwnedFd>)> {
    let odd = |what: &str| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "{what}, which no ivshmem server \
            sends"
            ),
        )
    };
    let (version, _) = hear(stream)?;
    if version != VERSION {
        return Err(odd(&format!("it speaks version {version}")));
    }
    let (own, _) = hear(stream)?;
    let (MEMORY, Some(memory)) = hear(stream)? else { return Err(odd("it has no memory")) };
    let page = Page::of(memory.as_fd())?;
    let mut vector = None;
    for _ in 0..MOST {
        match hear(stream)? {
            // The own vectors come last.
            (number, _) if number == own => return Ok((page, vector)),
            (_, Some(given)) => vector = Some(given),
            // Somebody has left.
            (_, None) => vector = None,
        }
    }
    Err(odd("it does not end"))
}

/// Receives a number and the descriptor sent with it.
fn hear(stream: &UnixStream) -> io::Result<(i64, Option<OwnedFd>)> {
    let mut bytes = [0; 8];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut room);
    let flags = RecvFlags::WAITALL | RecvFlags::CMSG_CLOEXEC;
    let said = recvmsg(stream, &mut [IoSliceMut::new(&mut bytes)], &mut beside, flags)?;
    if said.bytes < bytes.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let rights = beside.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(rights) => Some(rights),
        _ => None,
    });
    let descriptor = rights.flatten().next();
    Ok((i64::from_le_bytes(bytes), descriptor))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    use super::*;

    /// The message for a server that sent these bytes without a descriptor.
    fn refused(name: &str, bytes: Vec<u8>) -> String {
        let path = std::env::temp_dir().join(format!("tactus-card-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let serving = std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            let _ = stream.write_all(&bytes);
        });
        let refusal = Card::connect(path.to_str().unwrap(), &Interrupt::default(), None).unwrap_err();
        serving.join().unwrap();
        std::fs::remove_file(&path).unwrap();
        refusal.reason
    }

    #[test]
    fn who_is_no_ivshmem_server_is_no_card() {
        let numbers =
            |numbers: &[i64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>();
        assert!(refused("version", numbers(&[7, 0, -1])).contains("version 7"));
        assert!(refused("memory", numbers(&[0, 1, -1, 0, 1])).contains("no memory"));
        assert!(refused("short", vec![0; 7]).contains("cannot be connected"));
        let nobody = Card::connect("/nowhere/card.sock", &Interrupt::default(), None).unwrap_err();
        assert!(nobody.reason.contains("/nowhere/card.sock") && nobody.hint.is_some(), "{nobody:?}");
    }
}
