//! The part of a latency that the card itself takes: it raises an eventfd and polls, and a thread on another CPU
//! answers at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use tactus_model::CpuSet;
use tactus_model::catalogue::measure::Interrupt;
use tactus_model::message::Note;

use super::{ANSWERED, Answer, Card, Doorbell, Ring, SENT};
use crate::sys::{self, Page, SchedAttr};

/// How often it is asked.
const ROUNDS: usize = 2_000;
/// Of these, how many do not count.
const WARM: usize = 200;
/// Limit of the whole measurement, in ns: the answering thread may be kept from its CPU.
const LONGEST_NS: u64 = 200_000_000;
/// The priority of both threads.
const PRIORITY: u32 = 1;

/// Measures it for a card on `cpu`, and says it.
pub(super) fn own_part(cpu: u32, beside: Option<u32>, raises: bool) -> Note {
    let Some(beside) = beside.filter(|beside| *beside != cpu) else {
        return unknown("there is no CPU beside its own");
    };
    match measure(cpu, beside, raises) {
        Ok(mut ns) if ns.len() > WARM => {
            ns.drain(..WARM);
            ns.sort_unstable();
            let us = |part: usize| {
                let ns = ns[(ns.len() - 1) * part / 100];
                format!("{}.{} us", ns / 1_000, ns % 1_000 / 100)
            };
            let rounds = ns.len();
            Note::info(format!(
                "the card's own part of a latency, against a thread on CPU {beside} that answers at once: median {}, 99 % {}, \
                 at most {} ({rounds} rounds)",
                us(50),
                us(99),
                us(100)
            ))
        }
        Ok(_) => unknown("the thread that should answer was kept from its CPU"),
        Err(why) => unknown(&why),
    }
}

fn unknown(why: &str) -> Note {
    Note::info(format!("the card's own part of a latency is unknown: {why}"))
}

/// Puts the calling thread on a CPU, with real-time priority. Failures are ignored: the figure shows them.
fn go_to(cpu: u32) {
    let _ = sys::set_affinity(&CpuSet::one(cpu));
    let _ = sys::set_scheduler(SchedAttr::fifo(PRIORITY));
}

fn measure(cpu: u32, beside: u32, raises: bool) -> Result<Vec<u64>, String> {
    let page = Page::own().map_err(|error| error.to_string())?;
    let vector =
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|error| error.to_string())?;
    let ring = if raises { Ring::Vector(vector) } else { Ring::Nothing };
    let card = Card::new(Doorbell { page: Arc::new(page), ring }, &Interrupt::default());
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            go_to(beside);
            let page = &card.bell.page;
            while !over.load(Ordering::Relaxed) {
                let sent = page.word(SENT).load(Ordering::Acquire);
                page.word(ANSWERED).store(sent, Ordering::Release);
            }
        });
        let asking = scope.spawn(|| {
            go_to(cpu);
            let until = sys::now() + LONGEST_NS;
            let is_over = || sys::now() >= until;
            let mut ns = Vec::with_capacity(ROUNDS);
            while ns.len() < ROUNDS && !is_over() {
                if let (raised, Answer::At(at)) = card.ask(is_over) {
                    ns.push(at - raised);
                }
            }
            ns
        });
        let ns = asking.join().map_err(|_| "the thread that asks ended".to_owned());
        over.store(true, Ordering::Relaxed);
        ns
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cards_own_part_is_measured_where_there_is_a_second_cpu_and_said_to_be_unknown_elsewhere() {
        let cpus: Vec<u32> = sys::affinity().unwrap().iter().take(2).collect();
        let told = own_part(cpus[0], cpus.get(1).copied(), true).text;
        assert!(told.contains("at most") || told.contains("is unknown"), "{told}");
        let alone = own_part(cpus[0], Some(cpus[0]), true).text;
        assert!(alone.contains("is unknown: there is no CPU beside its own"), "{alone}");
    }
}
