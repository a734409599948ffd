//! The connection to a probe: messages to it from several threads, and its answers to calls.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tactus_model::message::{FromProbe, ToProbe};
use tactus_model::rpc::{Answer, Call, PIECE, Verb, WINDOW, decode, encode};
use tactus_model::wire::Encoder;

/// How long a probe may take to answer. Generous: an emulated guest may be held up for seconds, and
/// runs its control in between.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a caller waits for all answers together: a machine that gives each of them at the last moment holds up the run
/// for this long. Half of the time in which nothing is waited for is given back.
const ALL_PATIENCE: Duration = Duration::from_secs(600);
/// A reader takes this many bytes before it allows the child the same number again.
const REFILL: usize = 16 * 1024;

/// The connection to a probe.
pub struct Connection {
    tongue: Mutex<Tongue>,
    ear: Mutex<Ear>,
    changed: Condvar,
}

struct Tongue {
    encoder: Encoder,
    writer: Option<Outbox>,
}

/// How long a probe may take to read a message. An emulated guest may be held up for seconds.
const READING: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 20 });

/// The stream to a probe. A thread writes to it: a probe that does not read would block the caller, who has other probes,
/// without limit. The thread ends when the writer is dropped; if it is blocked then, when the stream is closed.
struct Outbox {
    messages: Sender<Vec<u8>>,
    written: Receiver<io::Result<()>>,
}

impl Outbox {
    fn new(mut stream: Box<dyn Write + Send>) -> Self {
        let (messages, to_write) = channel::<Vec<u8>>();
        let (outcome, written) = channel();
        std::thread::spawn(move || {
            for bytes in to_write {
                let wrote = stream.write_all(&bytes).and_then(|()| stream.flush());
                let failed = wrote.is_err();
                if outcome.send(wrote).is_err() || failed {
                    return;
                }
            }
        });
        Self { messages, written }
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// When the stream is broken, or the probe does not read in time.
    fn write(&self, bytes: Vec<u8>) -> io::Result<()> {
        self.messages.send(bytes).map_err(|_| broken())?;
        match self.written.recv_timeout(READING) {
            Ok(wrote) => wrote,
            Err(RecvTimeoutError::Disconnected) => Err(broken()),
            Err(RecvTimeoutError::Timeout) => {
                let words = format!("the probe has not read a message for {} s", READING.as_secs());
                Err(io::Error::new(io::ErrorKind::TimedOut, words))
            }
        }
    }
}

#[derive(Default)]
struct Ear {
    next: u64,
    credit: Credit,
    /// Calls in progress; `None`: the answer has not come yet.
    answers: BTreeMap<u64, Option<Answer>>,
    children: BTreeMap<u64, Heard>,
    over: bool,
}

/// The time that may still be spent on waiting for answers.
struct Credit {
    left: Duration,
    at: Instant,
}

impl Default for Credit {
    fn default() -> Self {
        Self { left: ALL_PATIENCE, at: Instant::now() }
    }
}

impl Credit {
    /// How long one answer may be waited for.
    fn at_most(&mut self, now: Instant) -> Duration {
        let earned = now.saturating_duration_since(self.at) / 2;
        self.left = self.left.saturating_add(earned).min(ALL_PATIENCE);
        self.at = now;
        self.left.min(PATIENCE)
    }

    /// An answer came, or none did.
    fn spend(&mut self, began: Instant, now: Instant) {
        self.left = self.left.saturating_sub(now.saturating_duration_since(began));
        self.at = now;
    }
}

fn too_slow() -> String {
    format!("the probe took {} s for its answers", ALL_PATIENCE.as_secs())
}

/// The state of a child.
#[derive(Default)]
struct Heard {
    streams: [Heap; 2],
    ended: Option<Option<i32>>,
}

/// Output of a child on one stream that has not been read yet.
struct Heap {
    bytes: VecDeque<u8>,
    over: bool,
    /// How many more bytes the probe may send.
    allowed: usize,
}

impl Default for Heap {
    fn default() -> Self {
        Self { bytes: VecDeque::new(), over: false, allowed: usize::try_from(WINDOW).unwrap_or(usize::MAX) }
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the probe that it goes through has ended")
}

impl Connection {
    /// A connection on which messages go to `writer`.
    pub fn new(writer: Option<Box<dyn Write + Send>>) -> Self {
        Self {
            tongue: Mutex::new(Tongue { encoder: Encoder::new(), writer: writer.map(Outbox::new) }),
            ear: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn ear(&self) -> MutexGuard<'_, Ear> {
        self.ear.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says something to the probe.
    ///
    /// # Errors
    /// When the stream is broken, or the probe does not read in time; nothing more can be said to it then.
    pub fn say(&self, message: &ToProbe) -> io::Result<()> {
        let mut tongue = self.tongue.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = tongue.encoder.encode(message)?;
        let said = tongue.writer.as_ref().ok_or_else(broken)?.write(bytes);
        if said.is_err() {
            tongue.writer = None;
        }
        said
    }

    /// Closes this end of the stream.
    pub fn hang_up(&self) {
        drop(self.tongue.lock().unwrap_or_else(PoisonError::into_inner).writer.take());
    }

    /// Takes the answers and the output that belong to calls. Returns every other message, so that the caller can count
    /// it: answers without a call, and output beyond what a child may send.
    pub fn take(&self, message: FromProbe) -> Option<FromProbe> {
        let mut ear = self.ear();
        match message {
            FromProbe::Answer(answer) => match ear.answers.get_mut(&answer.id) {
                Some(place @ None) => *place = Some(answer),
                _ => return Some(FromProbe::Answer(answer)),
            },
            FromProbe::Output(output) => {
                let child = ear.children.get_mut(&output.child);
                let heap = child.map(|child| &mut child.streams[usize::from(output.stream == 2)]);
                let Some(heap) = heap.filter(|heap| !heap.over) else {
                    return Some(FromProbe::Output(output));
                };
                match decode(&output.data) {
                    // A probe that sends more than it may is not believed.
                    Some(bytes) if !bytes.is_empty() && bytes.len() <= heap.allowed => {
                        heap.allowed -= bytes.len();
                        heap.bytes.extend(bytes);
                    }
                    _ => (heap.over, heap.allowed) = (true, 0),
                }
            }
            FromProbe::Exited(exited) => match ear.children.get_mut(&exited.child) {
                Some(child) if child.ended.is_none() => child.ended = Some(exited.code),
                _ => return Some(FromProbe::Exited(exited)),
            },
            other => return Some(other),
        }
        drop(ear);
        self.changed.notify_all();
        None
    }

    /// The stream from the probe has ended: all waiting callers return.
    pub fn ended(&self) {
        self.ear().over = true;
        self.changed.notify_all();
    }

    /// Makes a call and waits for its answer.
    ///
    /// # Errors
    /// That of the system there, by its number; `BrokenPipe` when the probe has gone, `TimedOut` when it
    /// does not answer.
    pub fn call(&self, call: Call) -> io::Result<Answer> {
        let id = self.number();
        self.call_as(id, call)
    }

    /// The number of a call that will be made.
    pub fn number(&self) -> u64 {
        let mut ear = self.ear();
        ear.next += 1;
        ear.next
    }

    fn call_as(&self, id: u64, call: Call) -> io::Result<Answer> {
        // The time in which the probe reads the call counts, too.
        let began = Instant::now();
        let patience = {
            let mut ear = self.ear();
            let patience = ear.credit.at_most(began);
            if patience.is_zero() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, too_slow()));
            }
            ear.answers.insert(id, None);
            patience
        };
        let until = began + patience;
        let said = self.say(&ToProbe::Call(Call { id, ..call }));
        let mut ear = self.ear();
        let answer = loop {
            if said.is_err() {
                break said.map(|()| Answer::default());
            }
            if let Some(Some(answer)) = ear.answers.get(&id) {
                break Ok(answer.clone());
            }
            if ear.over {
                break Err(broken());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let words = match patience < PATIENCE {
                    true => too_slow(),
                    false => format!("the probe did not answer within {} s", PATIENCE.as_secs()),
                };
                break Err(io::Error::new(io::ErrorKind::TimedOut, words));
            }
            ear = self.wait(ear, left);
        };
        ear.answers.remove(&id);
        ear.credit.spend(began, Instant::now());
        let answer = answer?;
        if answer.error == 0 { Ok(answer) } else { Err(io::Error::from_raw_os_error(answer.error)) }
    }

    fn wait<'a>(&self, ear: MutexGuard<'a, Ear>, at_most: Duration) -> MutexGuard<'a, Ear> {
        self.changed.wait_timeout(ear, at_most).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Starts a program there; `words` begin with `variables` variables. Returns its number on this connection
    /// and its process id.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(&self, words: Vec<String>, variables: u64) -> io::Result<(u64, u32)> {
        let id = self.number();
        // Before the call is made: its output may be here before its answer is looked at.
        self.ear().children.insert(id, Heard::default());
        let call = Call { verb: Verb::Spawn, words, number: variables, ..Call::default() };
        match self.call_as(id, call) {
            Ok(answer) => Ok((id, u32::try_from(answer.number).unwrap_or(0))),
            Err(error) => {
                self.forget(id);
                Err(error)
            }
        }
    }

    /// How a child ended, if it has; a child whose probe has gone was killed.
    pub fn end_of(&self, child: u64) -> Option<Option<i32>> {
        let ear = self.ear();
        let ended = ear.children.get(&child).and_then(|child| child.ended);
        if ear.over { ended.or(Some(None)) } else { ended }
    }

    /// Waits for a child's end.
    pub fn await_end(&self, child: u64, patience: Duration) -> Option<Option<i32>> {
        let until = Instant::now() + patience;
        loop {
            if let Some(code) = self.end_of(child) {
                return Some(code);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            drop(self.wait(self.ear(), left.min(Duration::from_millis(20))));
        }
    }

    /// The caller no longer uses this child.
    pub fn forget(&self, child: u64) {
        self.ear().children.remove(&child);
    }

    fn grant(&self, child: u64, stream: u64, bytes: u64) {
        let call = Call {
            id: self.number(),
            verb: Verb::Grant,
            child,
            number: bytes,
            words: vec![stream.to_string()],
            ..Call::default()
        };
        // A probe that has gone grants nothing, and its streams end by themselves.
        let _ = self.say(&ToProbe::Call(call));
    }
}

/// The reading end of a child's stdout (1) or stderr (2). Dropping it closes the stream.
pub struct Reader {
    connection: Arc<Connection>,
    child: u64,
    stream: u64,
    taken: usize,
}

impl Reader {
    /// The stream of a child.
    pub fn new(connection: &Arc<Connection>, child: u64, stream: u64) -> Self {
        Self { connection: Arc::clone(connection), child, stream, taken: 0 }
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut ear = self.connection.ear();
        let (length, refill) = loop {
            let over = ear.over;
            let Some(child) = ear.children.get_mut(&self.child) else { return Ok(0) };
            let heap = &mut child.streams[usize::from(self.stream == 2)];
            if !heap.bytes.is_empty() {
                let length = heap.bytes.read(buffer)?;
                self.taken += length;
                let refill =
                    if self.taken >= REFILL && !heap.over { std::mem::take(&mut self.taken) } else { 0 };
                heap.allowed += refill;
                break (length, refill);
            }
            if heap.over || over {
                return Ok(0);
            }
            ear = self.connection.wait(ear, PATIENCE);
        };
        drop(ear);
        if refill > 0 {
            self.connection.grant(self.child, self.stream, refill as u64);
        }
        Ok(length)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.connection.grant(self.child, self.stream, 0);
    }
}

/// The writing end of a child's stdin. Dropping it closes the stream.
pub struct Writer {
    connection: Arc<Connection>,
    child: u64,
}

impl Writer {
    /// The stdin of a child.
    pub fn new(connection: &Arc<Connection>, child: u64) -> Self {
        Self { connection: Arc::clone(connection), child }
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let piece = &bytes[..bytes.len().min(PIECE)];
        let call = Call { verb: Verb::Input, child: self.child, data: encode(piece), ..Call::default() };
        self.connection.call(call).map(|_| piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let id = self.connection.number();
        let close = Call { id, verb: Verb::Input, child: self.child, ..Call::default() };
        // A probe that has gone has closed it.
        let _ = self.connection.say(&ToProbe::Call(close));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that takes nothing for a minute.
    struct Stuck;

    impl Write for Stuck {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            std::thread::sleep(Duration::from_secs(60));
            Err(broken())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_probe_that_gives_each_answer_at_the_last_moment_is_waited_for_ten_minutes() {
        let (mut credit, mut now) = (Credit::default(), Instant::now());
        let mut waited = Duration::ZERO;
        for _ in 0..1_000 {
            let most = credit.at_most(now);
            let late = most.saturating_sub(Duration::from_secs(1));
            credit.spend(now, now + late);
            now += late;
            waited += late;
        }
        assert!(waited <= ALL_PATIENCE, "{waited:?}");
        assert!(credit.at_most(now) <= Duration::from_secs(1));
        // A probe that is silent for a while has its time again.
        assert_eq!(credit.at_most(now + Duration::from_secs(3_600)), PATIENCE);
    }

    #[test]
    fn a_probe_that_does_not_read_is_given_up_and_nothing_more_is_said_to_it() {
        let connection = Connection::new(Some(Box::new(Stuck)));
        let kind = || connection.say(&ToProbe::Stop).unwrap_err().kind();
        assert_eq!([kind(), kind()], [io::ErrorKind::TimedOut, io::ErrorKind::BrokenPipe]);
    }
}
