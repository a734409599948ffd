//! The connections that are open: how many there may be, and who has to go where another one comes.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most that ask and are answered at a time.
pub(super) const MOST: usize = 8;
/// Most clients that follow a run.
pub(super) const MOST_FOLLOWERS: usize = 16;
/// How long a client may be silent while others come: one with a request sends it at once.
const GRACE: Duration = Duration::from_millis(20);
/// How long a client may take to receive its answer while others come.
const SLOW: Duration = Duration::from_secs(2);
/// How long a newcomer waits for a place, at most: no other one is let in meanwhile.
const WAIT: Duration = Duration::from_millis(300);

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It has not sent its request.
    Silent,
    /// Its answer is being made.
    Asked,
    /// Its answer is being sent.
    Sent,
    /// It follows.
    Follows,
    /// It had to go, and its thread has not ended yet.
    Cut,
}

struct Open {
    number: u64,
    stream: Arc<TcpStream>,
    stage: Stage,
    since: Instant,
}

/// The connections that are open.
#[derive(Default)]
pub(super) struct Connections {
    open: Mutex<Table>,
    ended: Condvar,
}

#[derive(Default)]
struct Table {
    rows: Vec<Open>,
    next: u64,
}

impl Connections {
    /// A place for a connection; `None` if others use all of them.
    pub(super) fn take(self: &Arc<Self>, stream: TcpStream) -> Option<Place> {
        let stream = Arc::new(stream);
        let (mut table, until) = (self.lock(), Instant::now() + WAIT);
        while table.others_than(Stage::Follows) >= MOST {
            table.make_room();
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let waited = self.ended.wait_timeout(table, left.min(GRACE));
            table = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let number = table.next;
        table.next += 1;
        let own = Arc::clone(&stream);
        table.rows.push(Open { number, stream: own, stage: Stage::Silent, since: Instant::now() });
        Some(Place { number, stream, connections: Arc::clone(self) })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn others_than(&self, stage: Stage) -> usize {
        self.rows.iter().filter(|open| open.stage != stage).count()
    }

    /// Cuts the client that is silent for the longest time; without a silent one, the one that receives its
    /// answer too slowly.
    fn make_room(&mut self) {
        if self.rows.iter().any(|open| open.stage == Stage::Cut) {
            return;
        }
        for (stage, patience) in [(Stage::Silent, GRACE), (Stage::Sent, SLOW)] {
            let own = self.rows.iter_mut().filter(|open| open.stage == stage);
            if let Some(first) =
                own.min_by_key(|open| open.since).filter(|own| own.since.elapsed() >= patience)
            {
                first.stage = Stage::Cut;
                // Its thread, which reads or writes, ends by this.
                let _ = first.stream.shutdown(Shutdown::Both);
                return;
            }
        }
    }
}

/// One of the connections, until this is dropped.
pub(super) struct Place {
    number: u64,
    stream: Arc<TcpStream>,
    connections: Arc<Connections>,
}

impl Place {
    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// It has sent its request.
    ///
    /// # Errors
    /// When it was cut meanwhile, as in the other methods.
    pub(super) fn asked(&self) -> io::Result<()> {
        self.becomes(Stage::Asked).map(drop)
    }

    /// Its answer is sent from now on.
    pub(super) fn sent(&self) -> io::Result<()> {
        self.becomes(Stage::Sent).map(drop)
    }

    /// It follows from now on, unless too many do, and takes no place of those who ask.
    pub(super) fn follows(&self) -> io::Result<bool> {
        self.becomes(Stage::Follows)
    }

    fn becomes(&self, stage: Stage) -> io::Result<bool> {
        let mut table = self.connections.lock();
        let followers = table.rows.len() - table.others_than(Stage::Follows);
        if stage == Stage::Follows && followers >= MOST_FOLLOWERS {
            return Ok(false);
        }
        let own = table.rows.iter_mut().find(|open| open.number == self.number);
        let own = own.filter(|own| own.stage != Stage::Cut).ok_or(io::ErrorKind::ConnectionAborted)?;
        (own.stage, own.since) = (stage, Instant::now());
        drop(table);
        self.connections.ended.notify_all();
        Ok(true)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.lock().rows.retain(|open| open.number != self.number);
        self.connections.ended.notify_all();
    }
}
