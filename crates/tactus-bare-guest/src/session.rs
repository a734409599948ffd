//! The conversation with the host side: a job, its measurement, the next job.

use alloc::string::String;
use alloc::vec::Vec;

use serde_json::Value;

use crate::alone;
use crate::card::Card;
use crate::clock::{Clock, hypervisor};
use crate::control::is_seen;
use crate::exits;
use crate::histogram::Totals;
use crate::job::{Job, Measure};
use crate::json::Object;
use crate::serial;
use crate::statistics;
use crate::sys::{apic, cpu};
use crate::timer::{self, Counted};
use crate::wire::Wire;

/// The version of the wire's protocol (`tactus-model`, `wire/message.rs`).
const PROTOCOL: u64 = 5;
/// How often a control that was not seen is tried again.
const ATTEMPTS: u64 = 5;
/// Part of its time that a round of batches is followed by rest.
const REST: u64 = 9;
/// How long it sleeps while there is nothing to hear, in ns. The line keeps sixteen bytes, and who sends waits.
const NAP_NS: u64 = 500_000;
/// The guest only answers the card for this time before it listens again, in ns. A message to it waits up to this
/// time.
const ANSWERS_NS: u64 = 20_000_000;
/// How long is measured before a block, to know the noise of the place, in ns.
const QUIET_NS: u64 = 20_000_000;

/// The readings by which it says what it does alone, in ns.
const ALONE_INTERVAL: &str = "bare:interval-ns";
const ALONE_DURATION: &str = "bare:duration-ns";

/// The stages of a job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It waits for `prove` or `go`.
    Before,
    /// It has ended, and may be told to prove its instrument once more.
    After,
}

/// A message that arrived during a measurement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    Stop,
    Quit,
}

struct Session {
    wire: Wire,
    clock: Clock,
    /// The card that is answered while nothing is said.
    card: Option<Card>,
}

/// Serves the line until it is told to quit; or does what its command line asks for, and says what came of it.
pub fn run(command_line: &str) -> ! {
    serial::begin();
    let clock = Clock::find();
    timer::begin(clock);
    let mut session = Session { wire: Wire::default(), clock, card: None };
    session.greet();
    if let Some(job) = alone::job(command_line) {
        session.alone(job);
        cpu::power_off();
    }
    let mut job: Option<(Job, Stage)> = None;
    loop {
        let message = session.hear();
        match (message["t"].as_str().unwrap_or_default(), &mut job) {
            ("job", _) => job = session.take(&message).map(|job| (job, Stage::Before)),
            ("prove", Some((job, stage))) => session.prove(job, *stage),
            ("go", Some((job, stage @ Stage::Before))) => {
                let told = match job.measure {
                    Measure::Timer => session.measure(job),
                    Measure::Exits => session.measure_exits(job),
                    // The guest answers the card from the moment the job is prepared until it is told to stop.
                    Measure::Nothing | Measure::Answers { .. } => continue,
                };
                if told == Told::Quit {
                    cpu::power_off();
                }
                *stage = Stage::After;
            }
            ("stop", Some((_, Stage::Before))) => {
                session.leave_card();
                session.done("stopped", None, 0);
                job = None;
            }
            ("greet", _) => {
                session.leave_card();
                job = None;
                session.greet();
            }
            ("quit", _) => cpu::power_off(),
            _ => {}
        }
    }
}

impl Session {
    fn say(&mut self, message: Object) {
        serial::write(&self.wire.encode(&message.end()));
    }

    fn hear(&mut self) -> Value {
        loop {
            if let Some(message) = self.heard() {
                return message;
            }
            match self.card {
                Some(card) => card.serve(self.clock.ticks(ANSWERS_NS)),
                // Waiting must not keep others from the CPU.
                None => _ = timer::nap(self.clock.ticks(NAP_NS)),
            }
        }
    }

    /// A message, if what has come by now completes one.
    fn heard(&mut self) -> Option<Value> {
        while let Some(byte) = serial::read() {
            if let Some(message) = self.wire.hear(byte) {
                return Some(message);
            }
        }
        None
    }

    fn greet(&mut self) {
        self.wire = Wire::default();
        let hello =
            Object::message("hello").json("protocol", PROTOCOL).text("version", env!("CARGO_PKG_VERSION"));
        let hello = hello.text("arch", "x86_64").json("pid", 1).json("monotonic_ns", self.clock.now_ns());
        self.say(hello.json("realtime_ns", 0).json("can", "[\"timer\",\"exits\",\"interrupt\"]"));
        let readings = self.readings();
        self.say(Object::message("facts").json("readings", readings).json("last", true));
    }

    /// The facts of this machine: the processor's and the hypervisor's own words, and conclusions from them.
    fn readings(&self) -> String {
        let mut readings = Object::new();
        let mut keep = |name: &str, text: &str| {
            let object = core::mem::replace(&mut readings, Object::new());
            readings = object.json(name, Object::new().text("text", text).end());
        };
        for leaf in [0, 1, 0x15, 0x4000_0000, 0x4000_0001, 0x4000_0010] {
            let most = if leaf < 0x4000_0000 {
                cpu::cpuid(0, 0).eax
            } else {
                hypervisor().map_or(0, |(_, most)| most)
            };
            if leaf <= most {
                let cpu::CpuidResult { eax, ebx, ecx, edx } = cpu::cpuid(leaf, 0);
                let said = alloc::format!("eax={eax:#x} ebx={ebx:#x} ecx={ecx:#x} edx={edx:#x}");
                keep(&alloc::format!("cpuid:{leaf:#x}:0"), &said);
            }
        }
        keep("bare:interrupt-controller", if apic::is_x2() { "x2APIC" } else { "xAPIC" });
        keep("bare:timer", timer::way().name());
        keep("bare:clock", self.clock.source);
        keep("bare:clock-hz", &alloc::format!("{}", self.clock.tsc_hz));
        if let Some((name, _)) = hypervisor() {
            keep("bare:hypervisor", core::str::from_utf8(&name).unwrap_or_default());
        }
        readings.end()
    }

    /// A job, if it is one for this guest; else its refusal is said.
    fn take(&mut self, message: &Value) -> Option<Job> {
        self.leave_card();
        let taken = Job::of(message).and_then(|job| {
            if let Measure::Answers { polls } = job.measure {
                self.card =
                    Some(Card::take(polls).ok_or("this machine has no ivshmem-doorbell below 4 GiB")?);
            }
            Ok(job)
        });
        match taken {
            Ok(job) => {
                self.say(Object::message("ready"));
                Some(job)
            }
            Err(reason) => {
                self.refuse(&reason, "give it one activity: `timer`, `exits`, or the answers to `interrupt`");
                None
            }
        }
    }

    fn refuse(&mut self, reason: &str, hint: &str) {
        self.say(Object::message("refused").text("reason", reason).text("hint", hint));
    }

    /// Measures without a host side.
    fn alone(&mut self, job: Result<Job, String>) {
        let job = match job {
            Ok(job) => job,
            Err(reason) => return self.refuse(&reason, "fix the command line in the boot loader's menu"),
        };
        let seconds = job.duration_ns.div_ceil(1_000_000_000);
        serial::say(format_args!(
            "tactus-bare-guest: an interrupt each {} ns, for {seconds} s\n",
            job.interval_ns
        ));
        let number = |ns: u64| Object::new().text("text", &alloc::format!("{ns}")).end();
        let readings = Object::new().json(ALONE_INTERVAL, number(job.interval_ns));
        let readings = readings.json(ALONE_DURATION, number(job.duration_ns)).end();
        self.say(Object::message("facts").json("readings", readings).json("last", true));
        self.prove(&job, Stage::Before);
        self.measure(&job);
        self.prove(&job, Stage::After);
        serial::say(format_args!("tactus-bare-guest: done\n"));
    }

    /// Nothing is answered any more.
    fn leave_card(&mut self) {
        if let Some(card) = self.card.take() {
            card.leave();
        }
    }

    /// The beginning of every message on a job's measurement.
    fn of(job: &Job, word: &str) -> Object {
        let series =
            Object::new().json("cpu", 0).json("thread", 0).json("priority", 0).text("kind", "interrupt");
        Object::message(word).json("activity", job.activity).json("series", series.end())
    }

    /// Proves the instrument: interrupts are off for a known time, which must be seen.
    fn prove(&mut self, job: &Job, stage: Stage) {
        let told_ns = self.clock.now_ns();
        let mut attempts = 0;
        while let Some(control) = job.control {
            attempts += 1;
            let quiet = self.count_for(job, QUIET_NS, None);
            let noise_ns = quiet.0.max_ns;
            let (length_ns, mut held_ns) = (control.length_ns(noise_ns), 0);
            let lasts_ns = job.interval_ns + length_ns + 2_000_000;
            let held = self.count_for(job, lasts_ns, Some((length_ns, &mut held_ns)));
            if is_seen(held_ns, held.0.max_ns, noise_ns) || attempts == ATTEMPTS {
                let stage = if stage == Stage::Before { "before" } else { "after" };
                let trial = Self::of(job, "trial").text("stage", stage).text("by", "block");
                let trial = trial.json("injected_ns", held_ns).json("attempts", attempts);
                self.say(trial.json("quiet", quiet.1).json("held", held.1));
                break;
            }
        }
        // The counter is the processor's own: a step of it is below a nanosecond, and nothing sets it.
        let clock = Object::new().json("step_ns", 1).json("jump_ns", 0).end();
        let proven =
            Object::message("proven").json("told_ns", told_ns).json("proven_ns", self.clock.now_ns());
        self.say(proven.json("clock", clock));
    }

    /// Measures for a while, and returns the totals and the JSON that reports them. With `block`, interrupts are off
    /// for a known time from the moment the second one is due; the delay of that interrupt is written to the
    /// reference.
    fn count_for(&mut self, job: &Job, duration_ns: u64, block: Option<(u64, &mut u64)>) -> (Totals, String) {
        let interval = self.clock.ticks(job.interval_ns);
        let first = cpu::tsc() + self.clock.ticks(100_000);
        timer::start(first, interval, first + self.clock.ticks(duration_ns), None);
        if let Some((length_ns, held_ns)) = block {
            cpu::wait();
            // Interrupts are off: the next one waits. Which one that is only the timer knows: where the first was late by
            // more than a period, those between were missed.
            let due = timer::due();
            while cpu::tsc() < due + self.clock.ticks(length_ns) {}
            *held_ns = self.clock.ns(cpu::tsc() - due);
        }
        while !timer::is_over() {
            cpu::wait();
        }
        timer::take(|Counted { seen, overruns, .. }| {
            let total = Totals::of(seen, *overruns);
            (total, Object::new().json("total", total.json()).numbers("counts", &seen.sparse()).end())
        })
    }

    fn measure(&mut self, job: &Job) -> Told {
        let interval = self.clock.ticks(job.interval_ns);
        let began = cpu::tsc() + self.clock.ticks(1_000_000);
        let (mut total, mut n, mut told) = (Totals::NONE, 0, Told::Nothing);
        timer::start(began, interval, began + self.clock.ticks(job.duration_ns), job.break_ns);
        while !timer::is_over() {
            cpu::wait();
            let at = cpu::tsc();
            if at < began + self.clock.ticks(job.tick_ns * (n + 1)) {
                continue;
            }
            self.tick(job, n, self.clock.ns(at - began), &mut total);
            n += 1;
            told = self.told();
            if told != Told::Nothing {
                timer::stop();
            }
        }
        let measured_ns = self.clock.ns(cpu::tsc() - began).min(job.duration_ns);
        self.tick(job, n, measured_ns, &mut total);
        self.say(
            Self::of(job, "total").json("at_ns", measured_ns).json("total", total.json()).json("last", true),
        );
        let broke = timer::broke_ns().map(|ns| alloc::format!("a latency of {ns} ns"));
        let end = match (&broke, told) {
            (Some(_), _) => "break",
            (None, Told::Nothing) => "complete",
            (None, _) => "stopped",
        };
        self.done(end, broke.as_deref(), measured_ns);
        told
    }

    /// The message that arrived meanwhile.
    fn told(&mut self) -> Told {
        match self.heard() {
            Some(message) if message["t"] == "stop" => Told::Stop,
            Some(message) if message["t"] == "quit" => Told::Quit,
            _ => Told::Nothing,
        }
    }

    fn measure_exits(&mut self, job: &Job) -> Told {
        let clock = self.clock;
        let mut not = Vec::new();
        let mut items = exits::ready(&clock, |name, why| {
            not.push(alloc::format!("`{name}` cannot be measured here: {why}"));
        });
        for text in not {
            self.say(Object::message("note").text("kind", "info").text("text", &text));
        }
        let (began, mut told) = (clock.now_ns(), Told::Nothing);
        let (mut due, mut tick) = (began, began + job.tick_ns);
        while told == Told::Nothing && clock.now_ns() < began + job.duration_ns {
            let round = clock.now_ns();
            items.iter_mut().for_each(|item| item.repeat(&clock));
            let now = clock.now_ns();
            if now >= tick {
                for item in items.iter_mut().filter(|item| item.has_more_to_say()) {
                    self.value(job, item);
                }
                tick = now + job.tick_ns;
            }
            told = self.told();
            // Something is left to others, and of a long measurement no more is kept than there is room for.
            due = (now + (now - round) / REST).max(due + job.duration_ns / exits::MOST);
            while told == Told::Nothing && clock.now_ns() < due.min(began + job.duration_ns) {
                timer::nap(clock.ticks(NAP_NS));
                told = self.told();
            }
        }
        for item in &mut items {
            self.value(job, item);
        }
        let end = if told == Told::Nothing { "complete" } else { "stopped" };
        self.done(end, None, (clock.now_ns() - began).min(job.duration_ns));
        told
    }

    /// Reports the value of an item so far. This guest cannot tell when something else had the CPU, so it drops no
    /// repeats: the median is robust against a few such repeats.
    fn value(&mut self, job: &Job, item: &mut exits::Measured) {
        if item.repeats.is_empty() {
            return;
        }
        item.said = item.repeats.len();
        let value = Object::message("value").json("activity", job.activity).text("item", item.name);
        let value = statistics::value(value.text("unit", "ns").text("better", "lower"), &mut item.repeats);
        self.say(value.json("dropped", 0).json("batch", item.batch));
    }

    fn done(&mut self, end: &str, reason: Option<&str>, measured_ns: u64) {
        let done = Object::message("done")
            .text("end", end)
            .json("measured_ns", measured_ns)
            .numbers("load_rounds", &[]);
        self.say(match reason {
            Some(reason) => done.text("reason", reason),
            None => done,
        });
    }

    /// Says what was counted since the tick before. Interrupts are on meanwhile: putting it together and saying it take
    /// longer than a period.
    fn tick(&mut self, job: &Job, n: u64, at_ns: u64, total: &mut Totals) {
        cpu::interrupts_on();
        let tick = Self::of(job, "tick").json("n", n).json("at_ns", at_ns).json("thread", "{}");
        let tick = timer::take(|Counted { seen, missed, overruns }| {
            let now = Totals::of(seen, *overruns);
            total.add(&now);
            let tick =
                tick.json("now", now.json()).json("total", total.json()).numbers("counts", &seen.sparse());
            if missed.cycles > 0 { tick.numbers("missed", &missed.sparse()) } else { tick }
        });
        self.say(tick);
        cpu::interrupts_off();
    }
}
