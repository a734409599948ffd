//! Whether the kernel's audit is on and by what rules, asked of the kernel itself over netlink
//! (`auditctl -s` and `auditctl -l` ask the same).

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use tactus_model::facts::Reading;

use crate::read::Collector;

/// `AUDIT_GET` (linux/audit.h): asks for a `struct audit_status`.
const AUDIT_GET: u16 = 1000;
/// `AUDIT_LIST_RULES`: asks for a `struct audit_rule_data` of each rule.
const AUDIT_LIST_RULES: u16 = 1013;
/// `NLMSG_DONE`: there are no more.
const NLMSG_DONE: u16 = 3;
/// `NLMSG_ERROR` (linux/netlink.h).
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
/// How long an answer may take.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Length of `struct nlmsghdr`.
const HEADER: usize = 16;
/// The lists of rules, by number (`AUDIT_FILTER_*`), as auditctl calls them.
const LISTS: [&str; 8] = ["user", "task", "entry", "watch", "exit", "exclude", "filesystem", "io_uring"];
/// The action of a rule (`AUDIT_NEVER`, `AUDIT_POSSIBLE`, `AUDIT_ALWAYS`).
const ACTIONS: [&str; 3] = ["never", "possible", "always"];
/// More rules than these are not asked for.
const MOST_RULES: u32 = 10_000;

/// Keeps the answers.
pub fn keep(it: &mut Collector) {
    for (name, answer) in
        [("audit:enabled", enabled().map(|word| word.to_string())), ("audit:rules", rules())]
    {
        let reading = match answer {
            Ok(text) => Reading::Text(text),
            // A kernel without audit has no such protocol, or no process that listens to it.
            Err(rustix::io::Errno::PROTONOSUPPORT) => Reading::Absent,
            Err(rustix::io::Errno::CONNREFUSED) => Reading::Unreadable(
                "the kernel does not answer here (no audit, or a separate namespace)".into(),
            ),
            Err(error) => Reading::Unreadable(io::Error::from(error).to_string()),
        };
        it.facts.0.insert(name.into(), reading);
    }
}

/// A question, and the socket that its answers come by.
fn ask(kind: u16) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::AUDIT))?;
    let mut question = Vec::with_capacity(HEADER);
    question.extend(16u32.to_ne_bytes());
    question.extend(kind.to_ne_bytes());
    question.extend(NLM_F_REQUEST.to_ne_bytes());
    question.extend([0; 8]);
    send(&socket, &question, SendFlags::empty())?;
    Ok(socket)
}

/// The next message. A thread of the kernel sends it (`audit_send_reply` in kernel/audit.c).
fn next<'a>(socket: &OwnedFd, bytes: &'a mut [u8]) -> rustix::io::Result<&'a [u8]> {
    let mut descriptors = [PollFd::new(socket, PollFlags::IN)];
    if poll(&mut descriptors, Some(&PATIENCE))? == 0 {
        return Err(rustix::io::Errno::TIMEDOUT);
    }
    let (_, length) = recv(socket, &mut *bytes, RecvFlags::empty())?;
    Ok(&bytes[..length.min(bytes.len())])
}

fn enabled() -> rustix::io::Result<u32> {
    let socket = ask(AUDIT_GET)?;
    let mut bytes = [0; 256];
    answer(next(&socket, &mut bytes)?)
}

/// The rules in their order, equal neighbours on one line: `3 exit,always -F`.
fn rules() -> rustix::io::Result<String> {
    let socket = ask(AUDIT_LIST_RULES)?;
    // The deciding fields are at the beginning of a rule; the rest of a long one is cut.
    let mut bytes = [0; 256];
    let mut lines: Vec<(u32, String)> = Vec::new();
    for _ in 0..MOST_RULES {
        let Some(rule) = rule(next(&socket, &mut bytes)?)? else {
            return Ok(lines.iter().map(|(count, rule)| format!("{count} {rule}\n")).collect());
        };
        match lines.last_mut() {
            Some((count, last)) if *last == rule => *count += 1,
            _ => lines.push((1, rule)),
        }
    }
    Err(rustix::io::Errno::TOOBIG)
}

/// A word of a message, and the kind of it; or the error that the kernel sent instead.
fn open(bytes: &[u8]) -> rustix::io::Result<(u16, impl Fn(usize) -> rustix::io::Result<u32>)> {
    let kind = bytes.get(4..6).and_then(|two| two.try_into().ok()).map(u16::from_ne_bytes);
    let word = |at: usize| {
        let four = bytes.get(HEADER + at * 4..HEADER + at * 4 + 4).and_then(|four| four.try_into().ok());
        four.map(u32::from_ne_bytes).ok_or(rustix::io::Errno::BADMSG)
    };
    match kind {
        Some(NLMSG_ERROR) => {
            let code = word(0).map_or(0, u32::cast_signed);
            Err(rustix::io::Errno::from_raw_os_error(code.saturating_neg()))
        }
        Some(kind) => Ok((kind, word)),
        None => Err(rustix::io::Errno::BADMSG),
    }
}

/// `enabled` of a `struct audit_status`, its second word.
fn answer(bytes: &[u8]) -> rustix::io::Result<u32> {
    match open(bytes)? {
        (AUDIT_GET, word) => word(1),
        _ => Err(rustix::io::Errno::BADMSG),
    }
}

/// A rule by the first three words of a `struct audit_rule_data` (list, action, number of fields), as
/// auditctl calls them; `None`: there are no more.
fn rule(bytes: &[u8]) -> rustix::io::Result<Option<String>> {
    match open(bytes)? {
        (AUDIT_LIST_RULES, word) => {
            let name = |names: &[&str], number: u32| {
                let known = usize::try_from(number).ok().and_then(|number| names.get(number));
                known.map_or_else(|| number.to_string(), |name| (*name).to_owned())
            };
            let fields = if word(2)? == 0 { "" } else { " -F" };
            Ok(Some(format!("{},{}{fields}", name(&LISTS, word(0)?), name(&ACTIONS, word(1)?))))
        }
        (NLMSG_DONE, _) => Ok(None),
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

    #[test]
    fn a_rule_is_told_by_its_list_its_action_and_whether_it_has_fields() {
        let of = |words: &[i32]| rule(&message(AUDIT_LIST_RULES, words));
        assert_eq!(of(&[1, 0, 0, -1]).unwrap().unwrap(), "task,never");
        assert_eq!(of(&[4, 2, 3, -1]).unwrap().unwrap(), "exit,always -F");
        assert_eq!(of(&[9, -1, 0]).unwrap().unwrap(), "9,4294967295");
        assert_eq!(rule(&message(NLMSG_DONE, &[])), Ok(None));
        assert_eq!(rule(&message(NLMSG_ERROR, &[-1])), Err(rustix::io::Errno::PERM));
        assert_eq!(of(&[4, 2]), Err(rustix::io::Errno::BADMSG));
    }
}
