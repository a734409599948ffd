//! Whether the kernel's audit is on, asked of the kernel itself over netlink (`auditctl -s` asks the
//! same).

use std::io;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use tactus_model::facts::Reading;

use crate::read::Collector;

/// `AUDIT_GET` (linux/audit.h): asks for a `struct audit_status`.
const AUDIT_GET: u16 = 1000;
/// `NLMSG_ERROR` (linux/netlink.h).
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
/// How long an answer may take.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Length of `struct nlmsghdr`.
const HEADER: usize = 16;

/// Keeps the answer.
pub fn keep(it: &mut Collector) {
    let reading = match ask() {
        Ok(enabled) => Reading::Text(enabled.to_string()),
        // A kernel without audit has no such protocol, or nobody who listens.
        Err(rustix::io::Errno::PROTONOSUPPORT) => Reading::Absent,
        Err(rustix::io::Errno::CONNREFUSED) => {
            Reading::Unreadable("the kernel answers nobody here (no audit, or a namespace of its own)".into())
        }
        Err(error) => Reading::Unreadable(io::Error::from(error).to_string()),
    };
    it.facts.0.insert("audit:enabled".into(), reading);
}

fn ask() -> rustix::io::Result<u32> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::AUDIT))?;
    let mut question = Vec::with_capacity(HEADER);
    question.extend(16u32.to_ne_bytes());
    question.extend(AUDIT_GET.to_ne_bytes());
    question.extend(NLM_F_REQUEST.to_ne_bytes());
    question.extend([0; 8]);
    send(&socket, &question, SendFlags::empty())?;
    // A thread of the kernel sends the answer (`audit_send_reply` in kernel/audit.c).
    let mut descriptors = [PollFd::new(&socket, PollFlags::IN)];
    if poll(&mut descriptors, Some(&PATIENCE))? == 0 {
        return Err(rustix::io::Errno::TIMEDOUT);
    }
    let mut bytes = [0; 256];
    let (_, length) = recv(&socket, &mut bytes[..], RecvFlags::empty())?;
    answer(&bytes[..length.min(256)])
}

/// `enabled` of a `struct audit_status`, its second word; or the error that the kernel sent instead.
fn answer(bytes: &[u8]) -> rustix::io::Result<u32> {
    let kind = bytes.get(4..6).and_then(|two| two.try_into().ok()).map(u16::from_ne_bytes);
    let word =
        |at: usize| bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map(u32::from_ne_bytes);
    match kind {
        Some(NLMSG_ERROR) => {
            let code = word(HEADER).map_or(0, u32::cast_signed);
            Err(rustix::io::Errno::from_raw_os_error(code.saturating_neg()))
        }
        Some(AUDIT_GET) => word(HEADER + 4).ok_or(rustix::io::Errno::BADMSG),
        _ => Err(rustix::io::Errno::BADMSG),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, words: &[i32]) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        words.iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        bytes
    }

    #[test]
    fn the_second_word_says_whether_audit_is_on() {
        assert_eq!(answer(&message(AUDIT_GET, &[0, 1, 0])), Ok(1));
        assert_eq!(answer(&message(AUDIT_GET, &[0])), Err(rustix::io::Errno::BADMSG));
        assert_eq!(answer(&message(NLMSG_ERROR, &[-1])), Err(rustix::io::Errno::PERM));
        assert_eq!(answer(&[]), Err(rustix::io::Errno::BADMSG));
    }
}
