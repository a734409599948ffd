//! The end that measures: turns of rest, streams in both directions, and messages that come back.

use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tactus_model::catalogue::Item;
use tactus_model::catalogue::measure::Network;
use tactus_model::message::{Link, LinkEnd, Note};
use tactus_model::number::{float, ratio};
use tactus_model::outcome::{Repeats, ValueResult};

use super::control::{Answer, Control, Word, ports};
use super::flows::{Did, Flows, Order};
use super::machine::Spent;
use crate::breakdown::Tally;
use crate::sys;
use crate::work::{Pace, tell_note, tell_value};

/// Parts of the duration that a turn is.
const TURNS: u64 = 40;
/// The shortest and the longest turn, in ns. /proc/stat counts in hundredths of a second.
const TURN_NS: std::ops::RangeInclusive<u64> = 100_000_000..=1_000_000_000;
/// Part of a turn that the two short ones take: rest, and messages that come back.
const SHORT: u64 = 4;
/// How long the other end may take to be there.
const CONNECTING: Duration = Duration::from_secs(10);

/// The places of the first items of each direction, and of the others.
const TX: usize = 0;
const RX: usize = 12;
const ROUND_TRIP: usize = 24;
const AT_REST: usize = 25;

/// The near end, with its flows.
pub struct Near {
    link: Link,
    flows: Flows,
    control: Control,
    turn_ns: u64,
    /// Time between two messages of a flow, in ns; 0: none.
    every_ns: u64,
    turn: u64,
    items: Vec<(&'static Item, Repeats)>,
    tally: Tally,
}

/// A stream in one direction, in one turn.
struct Stream {
    sent: u64,
    received: Did,
    near: Spent,
    far: Spent,
}

impl Near {
    /// Finds the far end, and connects the flows of both.
    ///
    /// # Errors
    /// When it does not answer, or is not a probe.
    pub fn connect(link: Link, mut flows: Flows, table: &Network, pace: Pace) -> io::Result<Self> {
        flows.start()?;
        let stream = TcpStream::connect_timeout(&(link.other, link.port).into(), CONNECTING)?;
        let mut control = Control::new(stream)?;
        let own: Vec<u64> = flows.ports()?.into_iter().map(u64::from).collect();
        let theirs = control.ask(Word::Ports, &own, 0)?;
        flows.connect(link.other, &ports(&theirs)?)?;
        Ok(Self {
            link,
            flows,
            control,
            turn_ns: (pace.duration_ns / TURNS).clamp(*TURN_NS.start(), *TURN_NS.end()),
            every_ns: every_ns(table),
            turn: 0,
            items: Network::ITEMS.iter().map(|item| (item, Repeats::default())).collect(),
            tally: Tally::default(),
        })
    }

    /// Measures until `finish` is not 0, and reports the values at each tick and at the end.
    ///
    /// # Errors
    /// The failure of the other end, or of the connection to it.
    pub fn run(mut self, pace: Pace, finish: &AtomicU64, rounds: &AtomicU64) -> io::Result<()> {
        let mut tick = sys::now() + pace.tick_ns;
        while finish.load(Ordering::Relaxed) == 0 {
            self.rest()?;
            self.transmit()?;
            self.receive()?;
            self.ping()?;
            rounds.fetch_add(1, Ordering::Relaxed);
            if sys::now() >= tick {
                self.say();
                tick = sys::now() + pace.tick_ns;
            }
        }
        self.say();
        self.say_what_has_no_value(rounds);
        self.tally.say();
        Ok(())
    }

    fn ask(&mut self, word: Word, numbers: &[u64], takes_ns: u64) -> io::Result<Answer> {
        let answer = self.control.ask(word, numbers, takes_ns)?;
        Answer::of(&answer).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }

    fn rest(&mut self) -> io::Result<()> {
        let ns = self.turn_ns / SHORT;
        let before = Spent::until_now()?;
        let far = self.ask(Word::Rest, &[0, ns], ns)?.spent;
        let near = Spent::until_now()?.since(before);
        if let Some(machine) = self.of_the_machine(near, far) {
            self.keep(AT_REST, load(machine), 1, machine.was_disturbed());
        }
        Ok(())
    }

    fn transmit(&mut self) -> io::Result<()> {
        let turn = self.next_turn();
        self.tally.begin();
        self.ask(Word::Receive, &[turn], 0)?;
        let before = Spent::until_now()?;
        self.flows.order(Order::Send { ns: self.turn_ns, every_ns: self.every_ns }, turn)?;
        let sent = self.flows.finished(self.flows.count())?.messages;
        let near = Spent::until_now()?.since(before);
        self.tally.halt();
        let answer = self.ask(Word::Stop, &[], 0)?;
        self.tally.end(Some("TX"));
        self.take(TX, &Stream { sent, received: answer.did, near, far: answer.spent })
    }

    fn receive(&mut self) -> io::Result<()> {
        let turn = self.next_turn();
        self.flows.order(Order::Receive, turn)?;
        self.tally.begin();
        let before = Spent::until_now()?;
        let answer = self.ask(Word::Send, &[turn, self.turn_ns, self.every_ns], self.turn_ns)?;
        let near = Spent::until_now()?.since(before);
        self.tally.halt();
        self.flows.stop();
        let received = self.flows.finished(self.flows.count())?;
        self.tally.end(Some("RX"));
        self.take(RX, &Stream { sent: answer.did.messages, received, near, far: answer.spent })
    }

    fn ping(&mut self) -> io::Result<()> {
        let turn = self.next_turn();
        self.ask(Word::Echo, &[turn], 0)?;
        self.flows.order(Order::Ping { ns: self.turn_ns / SHORT }, turn)?;
        let did = self.flows.finished(1)?;
        let far = self.ask(Word::Stop, &[], 0)?.spent;
        if did.messages > 0 {
            let us = float(did.under_way_ns) / float(did.messages) / 1e3;
            self.keep(ROUND_TRIP, us, did.messages, far.was_disturbed());
        }
        Ok(())
    }

    /// Takes in what a turn of a stream came to.
    fn take(&mut self, first: usize, stream: &Stream) -> io::Result<()> {
        let Stream { sent, received, near, far } = *stream;
        if sent == 0 {
            let why = "not one message could be sent: the interface is down, or its queue stays full";
            return Err(io::Error::other(why));
        }
        let disturbed = near.was_disturbed() || far.was_disturbed();
        let gigabits = arrived(&received, offered(sent, self.flows.message(), self.turn_ns)) / 1e9;
        let lost = ratio(sent.saturating_sub(received.messages), sent) * 100.0;
        let mut values = vec![(1, lost)];
        // One message alone has no rate.
        if received.messages != 1 {
            values.push((0, gigabits * 1e3));
        }
        if received.messages > 0 {
            values.push((2, ratio(received.reordered, received.messages) * 100.0));
        }
        if let Some(machine) = self.of_the_machine(near, far) {
            values.push((3, load(machine)));
            values.extend((7..).zip(machine.busy_ns.map(|kind| threads(kind, machine.ns))));
            if received.messages > 1 {
                values.push((4, load(machine) / gigabits));
                values.push((6, float(machine.switches) / float(received.messages)));
            }
        }
        if self.link.machine != Some(LinkEnd::Near) {
            values.push((5, load(near)));
        }
        for (at, value) in values {
            self.keep(first + at, value, received.messages.max(1), disturbed);
        }
        Ok(())
    }

    /// The time spent by the machine on which both ends are.
    const fn of_the_machine(&self, near: Spent, far: Spent) -> Option<Spent> {
        match self.link.machine {
            Some(LinkEnd::Near) => Some(near),
            Some(LinkEnd::Far) => Some(far),
            None => None,
        }
    }

    fn keep(&mut self, at: usize, value: f64, batch: u64, disturbed: bool) {
        let Some((_, repeats)) = self.items.get_mut(at) else { return };
        if disturbed || !value.is_finite() {
            repeats.dropped += 1;
            return;
        }
        repeats.batch = batch;
        repeats.kept.push(value);
    }

    fn say(&mut self) {
        for (item, repeats) in &mut self.items {
            if let Some(value) = ValueResult::of(item, repeats) {
                tell_value(&value);
            }
        }
    }

    fn say_what_has_no_value(&self, rounds: &AtomicU64) {
        if rounds.load(Ordering::Relaxed) == 0 {
            tell_note(&Note::obstacle(
                "`network` has no value: connecting took the whole measurement".to_owned(),
                "measure longer, or with less other load",
            ));
        }
        for (item, repeats) in self.items.iter().filter(|(_, own)| own.kept.is_empty() && own.dropped > 0) {
            tell_note(&Note::obstacle(
                format!("`{}` has no value: each of its {} turns was disturbed", item.name, repeats.dropped),
                "a hypervisor took CPU time from the machine: measure where it is not overcommitted",
            ));
        }
    }
}

/// Time between two messages of a flow, in ns.
fn every_ns(table: &Network) -> u64 {
    let Some(rate) = table.rate else { return 0 };
    let bits = table.message().0 * 8 * u64::from(table.flows());
    // Megabits a second are bits in a microsecond.
    (bits * 1_000 / u64::from(rate.max(1))).max(1)
}

/// Payload that was sent in a turn, in bits a second.
fn offered(sent: u64, message: usize, turn_ns: u64) -> f64 {
    float(sent) * float(message as u64) * 8e9 / float(turn_ns.max(1))
}

/// Payload that arrived, in bits a second. A receiver that was kept off its CPU reads its queue at once, which looks faster
/// than what was sent: that is the bound.
fn arrived(received: &Did, offered: f64) -> f64 {
    float(received.bits_per_second).min(offered)
}

/// Hardware threads that were busy.
fn load(spent: Spent) -> f64 {
    // The other end's numbers are not trusted.
    threads(spent.busy_ns.into_iter().fold(0, u64::saturating_add), spent.ns)
}

fn threads(busy_ns: u64, ns: u64) -> f64 {
    float(busy_ns) / float(ns.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_payload_of_all_flows() {
        let table = Network { rate: Some(1_000), flows: Some(2), ..Network::default() };
        // 1472 bytes of each of two flows take 23.552 us at 1 Gb/s.
        assert_eq!(every_ns(&table), 23_552);
        assert_eq!(every_ns(&Network::default()), 0);
    }

    #[test]
    fn a_receiver_that_reads_its_queue_at_once_is_not_faster_than_the_sender() {
        // 170 messages of 1472 bytes in 100 ms are 20 Mb/s; read within 27 ms they look like 75 Mb/s.
        let offered = offered(170, 1_472, 100_000_000);
        assert_eq!(offered, 20_019_200.0);
        let read = |bits_per_second| arrived(&Did { bits_per_second, ..Did::default() }, offered);
        assert_eq!(read(75_079_591), offered);
        assert_eq!(read(19_000_000), 19_000_000.0);
    }

    #[test]
    fn the_items_are_where_they_are_looked_for() {
        let name = |at: usize| Network::ITEMS[at].name;
        assert_eq!((name(TX), name(RX)), ("TX throughput", "RX throughput"));
        assert_eq!((name(ROUND_TRIP), name(AT_REST)), ("round trip", "load at rest"));
        let of = |first: usize| (0..12).map(move |at| name(first + at).split_once(' ').unwrap().1);
        let names = [
            "throughput",
            "loss",
            "reordered",
            "load",
            "load per rate",
            "load in guest",
            "context switches",
            "load: user",
            "load: system",
            "load: hardirq",
            "load: softirq",
            "load: guest",
        ];
        assert!(of(TX).eq(names) && of(RX).eq(names));
    }
}
