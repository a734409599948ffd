//! The streams of one end: a socket and a process each. They carry out orders, and count.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::super::partner;
use crate::sys::{self, Shared};

/// How long a receiver waits before it checks whether to continue.
const PATIENCE: Duration = Duration::from_millis(2);
/// How long a message is awaited that should have come back at once, in ns.
const LOST_NS: u64 = 200_000_000;
/// The shortest pause of a sender that is ahead of its rate, in ns: a pause costs CPU time, a long one fills queues.
const PAUSE_NS: u64 = 250_000;
/// The number of the turn and of the message, which each begins with.
const HEAD: usize = 16;
/// Bytes of a message that is to come back at once.
const ECHO: usize = 64;
/// The longest pause of a receiver that has taken all there was, in ns.
const LONGEST_PAUSE_NS: u64 = 100_000;
/// The part of its queue that may fill meanwhile. A message takes up to four times its bytes there.
const PART_OF_QUEUE: u64 = 8;
/// Limit of the messages that a receiver still takes once it is told to end: others may flood it.
const AFTERWARDS: u32 = 1 << 20;

/// Orders for streams.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// Send for `ns`, one message every `every_ns`; 0: as fast as possible.
    Send { ns: u64, every_ns: u64 },
    /// Receive until [`Flows::stop`].
    Receive,
    /// Send back what comes until [`Flows::stop`].
    Echo,
    /// Send a message and wait for its return, repeatedly for this many ns.
    Ping { ns: u64 },
}

/// The results of streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Did {
    /// Messages sent, received, or returned.
    pub messages: u64,
    /// Payload a second that was received, in bits.
    pub bits_per_second: u64,
    /// Messages that came after a later one.
    pub reordered: u64,
    /// Time that messages were on the way there and back, in ns.
    pub under_way_ns: u64,
}

/// The data that one stream shares with its process.
struct Told {
    messages: &'static AtomicU64,
    bytes: &'static AtomicU64,
    reordered: &'static AtomicU64,
    took_ns: &'static AtomicU64,
    error: &'static AtomicU64,
}

const TOLD: usize = 5;

impl Told {
    fn of(fields: &'static [AtomicU64]) -> Option<Self> {
        let [messages, bytes, reordered, took_ns, error] = fields else { return None };
        Some(Self { messages, bytes, reordered, took_ns, error })
    }

    fn put(&self, messages: u64, bytes: u64, reordered: u64, took_ns: u64) {
        let fields = [self.messages, self.bytes, self.reordered, self.took_ns];
        for (field, value) in fields.into_iter().zip([messages, bytes, reordered, took_ns]) {
            field.store(value, Ordering::Release);
        }
    }
}

/// How a receiver awaits the next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// In the kernel: each that finds it waiting wakes it.
    Blocked,
    /// It pauses while its queue can surely take in the messages. At full speed, a wake-up for each message would take
    /// the sender's time and disturb the measurement.
    Paused,
}

/// The streams of an end.
pub struct Flows {
    sockets: Vec<UdpSocket>,
    /// Bytes of a message.
    message: usize,
    /// How messages are awaited.
    wait: Wait,
    told: Vec<Told>,
    /// The turn that is over; they count from 1.
    over: &'static Shared,
    turn: u64,
    orders: Vec<OwnedFd>,
    done: Option<OwnedFd>,
}

impl Flows {
    /// Opens their sockets.
    ///
    /// # Errors
    /// Those of bind(2), and when shared memory cannot be made.
    pub fn open(own: Ipv4Addr, count: u32, message: u64, wait: Wait) -> io::Result<Self> {
        let sockets = (0..count).map(|_| {
            let socket = UdpSocket::bind((own, 0))?;
            socket.set_read_timeout(Some(PATIENCE))?;
            socket.set_write_timeout(Some(PATIENCE))?;
            Ok(socket)
        });
        let sockets = sockets.collect::<io::Result<Vec<_>>>()?;
        let told = sys::shared::<AtomicU64>(TOLD * sockets.len())?.chunks(TOLD).filter_map(Told::of);
        let over = sys::shared::<Shared>(1)?.first().ok_or(ErrorKind::OutOfMemory)?;
        let message = usize::try_from(message).unwrap_or(usize::MAX).max(HEAD);
        let (told, orders) = (told.collect(), Vec::new());
        Ok(Self { sockets, message, wait, told, over, turn: 0, orders, done: None })
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        self.sockets.len()
    }

    /// Bytes of a message.
    pub const fn message(&self) -> usize {
        self.message
    }

    /// Their ports.
    ///
    /// # Errors
    /// Those of getsockname(2).
    pub fn ports(&self) -> io::Result<Vec<u16>> {
        self.sockets.iter().map(|socket| Ok(socket.local_addr()?.port())).collect()
    }

    /// Connects each with its other end.
    ///
    /// # Errors
    /// Those of connect(2).
    pub fn connect(&self, other: Ipv4Addr, ports: &[u16]) -> io::Result<()> {
        if ports.len() != self.sockets.len() {
            return Err(ErrorKind::InvalidData.into());
        }
        self.sockets.iter().zip(ports).try_for_each(|(socket, port)| socket.connect((other, *port)))
    }

    /// Starts their processes, which end with this one.
    ///
    /// # Errors
    /// Those of fork(2) and pipe(2).
    pub fn start(&mut self) -> io::Result<()> {
        let (done, say) = rustix::pipe::pipe()?;
        for (n, (socket, told)) in self.sockets.iter().zip(&self.told).enumerate() {
            let (orders, order) = rustix::pipe::pipe()?;
            partner(|| {
                sys::set_name(&format!("tactus-flow-{n}"));
                serve(socket, (self.message, self.wait), told, &self.over.0, &orders, &say)
            })?;
            self.orders.push(order);
        }
        self.done = Some(done);
        Ok(())
    }

    /// Gives all of them an order; if the order has a set end, [`Flows::finished`] waits for it.
    ///
    /// # Errors
    /// When their processes are gone.
    pub fn order(&mut self, order: Order, turn: u64) -> io::Result<()> {
        self.turn = turn;
        self.over.0.store(0, Ordering::Release);
        let (word, first, second) = match order {
            Order::Send { ns, every_ns } => (0, ns, every_ns),
            Order::Receive => (1, 0, 0),
            Order::Echo => (2, 0, 0),
            Order::Ping { ns } => (3, ns, 0),
        };
        let bytes = [word, turn, first, second].map(u64::to_ne_bytes).concat();
        // One message after the other comes back on one stream.
        let of = if matches!(order, Order::Echo | Order::Ping { .. }) { 1 } else { self.orders.len() };
        self.orders.iter().take(of).try_for_each(|order| rustix::io::write(order, &bytes).map(drop))?;
        Ok(())
    }

    /// Ends an order without a set end.
    pub fn stop(&self) {
        self.over.0.store(self.turn, Ordering::Release);
    }

    /// Waits until `count` of them have carried out their orders.
    ///
    /// # Errors
    /// The failure of one of them.
    pub fn finished(&self, count: usize) -> io::Result<Did> {
        let done = self.done.as_ref().ok_or(ErrorKind::NotConnected)?;
        for _ in 0..count {
            if rustix::io::read(done, &mut [0; 1])? == 0 {
                return Err(ErrorKind::BrokenPipe.into());
            }
        }
        let mut did = Did::default();
        for told in self.told.iter().take(count) {
            let load = |field: &AtomicU64| field.load(Ordering::Acquire);
            if let error @ 1.. = load(told.error) {
                return Err(io::Error::from_raw_os_error(i32::try_from(error).unwrap_or(libc::EIO)));
            }
            did.messages += load(told.messages);
            did.reordered += load(told.reordered);
            did.under_way_ns += load(told.took_ns);
            let bits = u128::from(load(told.bytes)) * 8_000_000_000 / u128::from(load(told.took_ns).max(1));
            let bits = u64::try_from(bits).unwrap_or(u64::MAX);
            did.bits_per_second = did.bits_per_second.saturating_add(bits);
        }
        Ok(did)
    }
}

/// The work of a stream's process, until its orders end.
fn serve(
    socket: &UdpSocket,
    (message, wait): (usize, Wait),
    told: &Told,
    over: &AtomicU64,
    orders: &OwnedFd,
    done: &OwnedFd,
) -> io::Result<()> {
    let mut buffer = vec![0; message.max(ECHO)];
    let mut order = [0; 32];
    while rustix::io::read(orders.as_fd(), &mut order)? == order.len() {
        let mut numbers = order.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes));
        let mut next = || numbers.next().unwrap_or(0);
        let (word, turn, first, second) = (next(), next(), next(), next());
        told.put(0, 0, 0, 0);
        told.error.store(0, Ordering::Release);
        let is_over = || over.load(Ordering::Acquire) == turn;
        let went = match word {
            0 => send(socket, &mut buffer[..message], turn, first, second, told),
            1 => receive(socket, wait, &mut buffer, turn, is_over, told),
            2 => echo(socket, &mut buffer, is_over),
            _ => ping(socket, &mut buffer[..ECHO], turn, first, told),
        };
        if let Err(error) = went {
            told.error.store(
                u64::from(error.raw_os_error().unwrap_or(libc::EIO).cast_unsigned()),
                Ordering::Release,
            );
        }
        rustix::io::write(done, &[1])?;
    }
    Ok(())
}

/// Errors that are not a failure of a stream: no message came in time, queues are full, or the other end's process has
/// gone, which the control connection reports better.
fn is_nothing(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted | ConnectionRefused)
        || error.raw_os_error() == Some(libc::ENOBUFS)
}

/// As a number that may be missing.
fn some<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if is_nothing(&error) => Ok(None),
        result => result.map(Some),
    }
}

fn send(
    socket: &UdpSocket,
    message: &mut [u8],
    turn: u64,
    ns: u64,
    every_ns: u64,
    told: &Told,
) -> io::Result<()> {
    let began = sys::now();
    let (end, mut due, mut number) = (began + ns, began, 0_u64);
    loop {
        let now = sys::now();
        if now >= end {
            break;
        }
        if now < due {
            sys::sleep_until(due.max(now + PAUSE_NS).min(end));
            continue;
        }
        write_head(message, turn, number);
        if some(socket.send(message))?.is_some() {
            number += 1;
            due = due.saturating_add(every_ns);
        }
    }
    told.put(number, 0, 0, sys::now() - began);
    Ok(())
}

fn receive(
    socket: &UdpSocket,
    wait: Wait,
    buffer: &mut [u8],
    turn: u64,
    is_over: impl Fn() -> bool,
    told: &Told,
) -> io::Result<()> {
    let mut count = Count::default();
    let mut afterwards = 0;
    let queue = rustix::net::sockopt::socket_recv_buffer_size(socket).map_or(0, |bytes| bytes as u64);
    let mut paused_at = 0;
    let mut is_idle = wait == Wait::Blocked;
    while afterwards < AFTERWARDS {
        let got = if is_idle {
            some(socket.recv(buffer))?
        } else {
            let taken = rustix::net::recv(socket, &mut *buffer, rustix::net::RecvFlags::DONTWAIT);
            some(taken.map(|(length, _)| length).map_err(io::Error::from))?
        };
        match got {
            Some(length) => {
                count.take(&buffer[..length], turn, sys::now());
                afterwards += u32::from(is_over());
                is_idle = wait == Wait::Blocked;
            }
            None if is_over() => break,
            None if is_idle => {}
            // If nothing came during a pause, it waits in the kernel.
            None => {
                is_idle = paused_at == count.messages;
                paused_at = count.messages;
                sys::sleep_until(sys::now() + count.pause(queue));
            }
        }
    }
    told.put(count.messages, count.bytes, count.reordered, count.last_ns - count.first_ns);
    Ok(())
}

fn echo(socket: &UdpSocket, buffer: &mut [u8], is_over: impl Fn() -> bool) -> io::Result<()> {
    while !is_over() {
        if let Some(length) = some(socket.recv(buffer))? {
            some(socket.send(&buffer[..length]))?;
        }
    }
    Ok(())
}

fn ping(socket: &UdpSocket, message: &mut [u8], turn: u64, ns: u64, told: &Told) -> io::Result<()> {
    let end = sys::now() + ns;
    let (mut number, mut back, mut took) = (0, 0, 0);
    let mut answer = [0; ECHO];
    loop {
        let began = sys::now();
        if began >= end {
            break;
        }
        write_head(message, turn, number);
        some(socket.send(message))?;
        loop {
            let length = some(socket.recv(&mut answer))?.unwrap_or(0);
            let now = sys::now();
            if read_head(&answer[..length]) == Some((turn, number)) {
                back += 1;
                took += now - began;
                break;
            }
            if now > began + LOST_NS {
                break;
            }
        }
        number += 1;
    }
    told.put(back, 0, 0, took);
    Ok(())
}

fn write_head(message: &mut [u8], turn: u64, number: u64) {
    for (place, value) in message.chunks_exact_mut(8).zip([turn, number]) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

fn read_head(message: &[u8]) -> Option<(u64, u64)> {
    let [turn, number, ..] = message.as_chunks().0 else { return None };
    Some((u64::from_be_bytes(*turn), u64::from_be_bytes(*number)))
}

/// The counts of the messages received in a turn.
#[derive(Debug, Default)]
struct Count {
    messages: u64,
    /// Bytes of all but the first, with which the time begins.
    bytes: u64,
    reordered: u64,
    /// The number that should be the next at least.
    next: u64,
    first_ns: u64,
    last_ns: u64,
}

impl Count {
    /// For how many ns a part of a queue of this many bytes takes in messages, at the average rate so far.
    fn pause(&self, queue: u64) -> u64 {
        let took = u128::from(self.last_ns.saturating_sub(self.first_ns));
        let ns = u128::from(queue / PART_OF_QUEUE) * took / u128::from(self.bytes.max(1));
        u64::try_from(ns).unwrap_or(u64::MAX).min(LONGEST_PAUSE_NS)
    }

    /// Messages of an earlier turn are late, and other senders' messages do not count.
    fn take(&mut self, message: &[u8], turn: u64, now: u64) {
        let Some((own, number)) = read_head(message) else { return };
        if own != turn {
            return;
        }
        if self.messages == 0 {
            self.first_ns = now;
        } else {
            self.bytes += message.len() as u64;
        }
        self.messages += 1;
        self.last_ns = now;
        // RFC 4737, section 3.
        if number < self.next {
            self.reordered += 1;
        } else {
            self.next = number.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(numbers: &[(u64, u64)]) -> Count {
        let mut count = Count::default();
        for (at, (turn, number)) in (1_000..).zip(numbers) {
            let mut message = [0; 100];
            write_head(&mut message, *turn, *number);
            count.take(&message, 7, at);
        }
        count
    }

    #[test]
    fn what_comes_after_a_later_one_is_reordered_and_what_does_not_come_is_missing() {
        let whole = count(&[(7, 0), (7, 1), (7, 2)]);
        assert_eq!((whole.messages, whole.bytes, whole.reordered), (3, 200, 0));
        assert_eq!(whole.last_ns - whole.first_ns, 2);
        let late = count(&[(7, 0), (7, 2), (7, 3), (7, 1), (7, 9)]);
        assert_eq!((late.messages, late.reordered), (5, 1));
    }

    #[test]
    fn a_receiver_pauses_for_as_long_as_its_queue_takes_in_what_comes() {
        // 3 Gb/s, 10 Gb/s and 1 Mb/s into a queue of 208 KiB, of which an eighth may fill.
        let pause = |bytes, last_ns| Count { bytes, last_ns, ..Count::default() }.pause(212_992);
        assert_eq!(pause(375_000, 1_000_000), 70_997);
        assert_eq!(pause(1_250_000, 1_000_000), 21_299);
        assert_eq!(pause(125, 1_000_000), LONGEST_PAUSE_NS);
        assert_eq!(pause(0, 0), 0, "nothing is known yet");
        assert_eq!(
            Count { bytes: u64::MAX, last_ns: u64::MAX, ..Count::default() }.pause(u64::MAX),
            LONGEST_PAUSE_NS
        );
        assert_eq!(pause(u64::MAX, 1), 0);
    }

    #[test]
    fn both_ways_of_waiting_take_in_every_message_once_and_end() {
        for wait in [Wait::Blocked, Wait::Paused] {
            let open = || Flows::open(Ipv4Addr::LOCALHOST, 1, 200, wait).unwrap();
            let (mut from, mut to) = (open(), open());
            from.connect(Ipv4Addr::LOCALHOST, &to.ports().unwrap()).unwrap();
            to.connect(Ipv4Addr::LOCALHOST, &from.ports().unwrap()).unwrap();
            from.start().unwrap();
            to.start().unwrap();
            to.order(Order::Receive, 1).unwrap();
            // So few that the queue takes them all, however late the receiver is.
            from.order(Order::Send { ns: 20_000_000, every_ns: 1_000_000 }, 1).unwrap();
            let sent = from.finished(1).unwrap().messages;
            to.stop();
            assert!(sent > 0);
            assert_eq!(to.finished(1).unwrap().messages, sent, "{wait:?}");
        }
    }

    #[test]
    fn what_is_of_another_turn_or_of_somebody_else_does_not_count() {
        assert_eq!(count(&[(6, 0), (8, 1)]).messages, 0);
        let mut count = Count::default();
        count.take(&[0; 15], 0, 1);
        count.take(&[], 0, 1);
        assert_eq!(count.messages, 0);
        // The largest number of all has none after it.
        let mut message = [0xff; 16];
        write_head(&mut message, 0, u64::MAX);
        count.take(&message, 0, 1);
        assert_eq!(count.messages, 1);
    }
}
