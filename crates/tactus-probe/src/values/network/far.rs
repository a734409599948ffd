//! The end that answers: it waits for the other one, and does what that orders.

use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tactus_model::message::{Link, LinkEnd, Refusal};

use super::control::{Answer, Control, Word, ports};
use super::flows::{Did, Flows, Order};
use super::machine::Spent;
use crate::breakdown::Tally;
use crate::sys;

/// How often to check for a connection, and whether to continue waiting.
const LOOK: Duration = Duration::from_millis(5);
/// The longest turn that is ordered, in ns.
const LONGEST_NS: u64 = 10_000_000_000;

/// The far end, with its port and its flows.
pub struct Far {
    link: Link,
    listener: TcpListener,
    flows: Flows,
    /// Flows that run until they are told to stop.
    open: usize,
    /// The time that its kernel spends: it counts if the near end is on the same kernel.
    tally: Option<Tally>,
}

impl Far {
    /// Opens everything; from then on the other end may come.
    ///
    /// # Errors
    /// When the port is taken, or the address does not belong to this environment.
    pub fn open(link: Link, flows: Flows) -> Result<Self, Refusal> {
        let failed = |error: io::Error| {
            let Link { own, port, .. } = link;
            let hint = match error.kind() {
                io::ErrorKind::AddrInUse => {
                    "name another one: `measure = { kind = \"network\", port = ... }`"
                }
                _ => "check its addresses there: `ip address`",
            };
            let reason = format!("the peer cannot be awaited at {own}, port {port}: {error}");
            Refusal { reason, hint: Some(hint.into()) }
        };
        let listener = TcpListener::bind((link.own, link.port)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let tally = (link.machine == Some(LinkEnd::Far)).then(Tally::default);
        Ok(Self { link, listener, flows, open: 0, tally })
    }

    /// The port at which it waits.
    ///
    /// # Errors
    /// Those of getsockname(2).
    pub fn port(&self) -> io::Result<u16> {
        Ok(self.listener.local_addr()?.port())
    }

    /// Carries out the other end's orders, until `finish` is not 0.
    ///
    /// # Errors
    /// When its flows cannot be started.
    pub fn serve(mut self, finish: &AtomicU64) -> io::Result<()> {
        self.flows.start()?;
        while finish.load(Ordering::Relaxed) == 0 {
            match self.listener.accept() {
                // Other addresses get no answer.
                Ok((stream, from)) if from.ip() == self.link.other => {
                    // How a conversation ended is known to the end that measures.
                    let _ = Control::new(stream).and_then(|mut control| self.converse(&mut control, finish));
                    self.stop()?;
                }
                _ => std::thread::sleep(LOOK),
            }
        }
        self.tally.into_iter().for_each(Tally::say);
        Ok(())
    }

    fn stop(&mut self) -> io::Result<Did> {
        self.flows.stop();
        self.flows.finished(std::mem::take(&mut self.open))
    }

    fn converse(&mut self, control: &mut Control, finish: &AtomicU64) -> io::Result<()> {
        let mut before = Spent::until_now()?;
        let mut receiving = false;
        while let Some(numbers) = control.hear(|| finish.load(Ordering::Relaxed) == 0)? {
            let (word, numbers) = numbers.split_first().ok_or(io::ErrorKind::InvalidData)?;
            let word = Word::of(*word).ok_or(io::ErrorKind::InvalidData)?;
            let number = |at: usize| numbers.get(at).copied().unwrap_or(0);
            let (turn, ns) = (number(0), number(1).min(LONGEST_NS));
            if word != Word::Stop && self.open > 0 {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if let Some(tally) = self.tally.as_mut().filter(|_| matches!(word, Word::Send | Word::Receive)) {
                tally.begin();
            }
            if matches!(word, Word::Rest | Word::Send) {
                before = Spent::until_now()?;
            }
            // The order that is stopped is a stream to this end, or single messages.
            let phase = match word {
                Word::Send => Some("RX"),
                Word::Stop if receiving => Some("TX"),
                _ => None,
            };
            receiving = word == Word::Receive;
            let mut did = Did::default();
            match word {
                Word::Ports => {
                    self.flows.connect(self.link.other, &ports(numbers)?)?;
                    let own = self.flows.ports()?.into_iter().map(u64::from).collect::<Vec<_>>();
                    control.say(&own)?;
                    continue;
                }
                Word::Rest => drop(sys::sleep_until(sys::now() + ns)),
                Word::Send => {
                    self.flows.order(Order::Send { ns, every_ns: number(2) }, turn)?;
                    did = self.flows.finished(self.flows.count())?;
                }
                Word::Receive => {
                    self.flows.order(Order::Receive, turn)?;
                    self.open = self.flows.count();
                }
                Word::Echo => {
                    self.flows.order(Order::Echo, turn)?;
                    self.open = 1;
                }
                Word::Stop => did = self.stop()?,
            }
            let now = Spent::until_now()?;
            if let (Some(tally), Some(phase)) = (&mut self.tally, phase) {
                tally.end(Some(phase));
            }
            control.say(&Answer { did, spent: now.since(before) }.numbers())?;
            if self.open > 0 {
                before = now;
            }
        }
        Ok(())
    }
}
