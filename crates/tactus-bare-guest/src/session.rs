//! The conversation with the host side: a job, its measurement, the next job.

use alloc::string::String;
use alloc::vec::Vec;

use serde_json::{Value, json};

use crate::clock::{Clock, hypervisor};
use crate::histogram::Histogram;
use crate::job::Job;
use crate::sys::apic::Way;
use crate::sys::{apic, cpu};
use crate::wire::Wire;
use crate::{serial, timer};

/// The version of the wire's protocol (`tactus-model`, `wire/message.rs`).
const PROTOCOL: u32 = 5;
/// How often a control that was not seen is tried again.
const ATTEMPTS: u32 = 5;

struct Session {
    wire: Wire,
    clock: Clock,
    way: Way,
}

/// What was counted since a job's beginning.
#[derive(Clone, Copy)]
struct Totals {
    cycles: u64,
    overruns: u64,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u64,
}

impl Totals {
    const NONE: Self = Self { cycles: 0, overruns: 0, min_ns: u64::MAX, max_ns: 0, sum_ns: 0 };

    fn of(histogram: &Histogram, overruns: u64) -> Self {
        let Histogram { cycles, min_ns, max_ns, sum_ns, .. } = *histogram;
        Self { cycles, overruns, min_ns: if cycles == 0 { u64::MAX } else { min_ns }, max_ns, sum_ns }
    }

    fn add(&mut self, other: &Self) {
        self.cycles += other.cycles;
        self.overruns += other.overruns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns += other.sum_ns;
    }

    fn json(&self) -> Value {
        json!({
            "cycles": self.cycles, "overruns": self.overruns, "min_ns": self.min_ns, "max_ns": self.max_ns, "sum_ns": self.sum_ns,
        })
    }
}

/// Serves the line until it is told to quit.
pub fn run(command_line: &str) -> ! {
    serial::begin();
    let clock = Clock::find();
    let mut session = Session { wire: Wire::default(), clock, way: timer::begin(clock) };
    session.greet(command_line);
    let mut job = None;
    loop {
        let message = session.hear();
        match message["t"].as_str().unwrap_or_default() {
            "job" => match Job::of(&message) {
                Ok(wanted) => {
                    session.say(&json!({"t": "ready"}));
                    job = Some(wanted);
                }
                Err(reason) => {
                    session.say(&json!({"t": "refused", "reason": reason, "hint": "give it one activity: measure = \"timer\""}));
                }
            },
            "prove" => {
                if let Some(job) = &job {
                    session.prove(job);
                }
            }
            "go" => {
                if let Some(job) = &job {
                    session.measure(job);
                }
            }
            "greet" => session.greet(command_line),
            "quit" => cpu::power_off(),
            _ => {}
        }
    }
}

impl Session {
    fn say(&mut self, message: &Value) {
        serial::write(&self.wire.encode(message));
    }

    fn hear(&mut self) -> Value {
        loop {
            if let Some(message) = self.heard() {
                return message;
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

    fn greet(&mut self, command_line: &str) {
        self.wire = Wire::default();
        self.say(&json!({
            "t": "hello", "protocol": PROTOCOL, "version": env!("CARGO_PKG_VERSION"), "arch": "x86_64", "pid": 1,
            "monotonic_ns": self.clock.now_ns(), "realtime_ns": 0, "can": ["timer"],
        }));
        let readings = self.readings(command_line);
        self.say(&json!({"t": "facts", "readings": readings, "last": true}));
    }

    /// What is known of this machine, as the files of a Linux system would say it.
    fn readings(&self, command_line: &str) -> Value {
        let mut flags = Vec::from(["tsc", "apic"]);
        for (name, has) in
            [("x2apic", apic::is_x2()), ("tsc_deadline_timer", apic::has_deadline()), ("hypervisor", hypervisor().is_some())]
        {
            if has {
                flags.push(name);
            }
        }
        let way = match self.way {
            Way::Deadline => "TSC deadline",
            Way::OneShot => "one shot",
        };
        json!({
            "command_line": command_line, "flags": flags, "timer": way, "tsc_hz": self.clock.tsc_hz, "clock": self.clock.source,
            "hypervisor": hypervisor().map(|(name, _)| String::from_utf8_lossy(&name).into_owned()),
        })
    }

    fn key() -> Value {
        json!({"cpu": 0, "thread": 0, "priority": 0, "kind": "interrupt"})
    }

    /// Proves the instrument: interrupts are off for a known time, which must be seen.
    fn prove(&mut self, job: &Job) {
        let told_ns = self.clock.now_ns();
        let mut attempts = 0;
        while let Some(length_ns) = job.control_ns {
            attempts += 1;
            let quiet = self.counted(20_000_000, job.interval_ns, None);
            let mut held_ns = 0;
            let held = self.counted(job.interval_ns + length_ns + 2_000_000, job.interval_ns, Some((length_ns, &mut held_ns)));
            let seen = held["total"]["max_ns"].as_u64().unwrap_or(0) >= held_ns / 10 * 9;
            if seen || attempts == ATTEMPTS {
                self.say(&json!({
                    "t": "trial", "activity": job.activity, "series": Self::key(), "stage": "before", "by": "block",
                    "injected_ns": held_ns, "attempts": attempts, "quiet": quiet, "held": held,
                }));
                break;
            }
        }
        let clock = json!({"step_ns": 1_000_000_000 / self.clock.tsc_hz.max(1), "jump_ns": 0});
        self.say(&json!({"t": "proven", "told_ns": told_ns, "proven_ns": self.clock.now_ns(), "clock": clock}));
    }

    /// Measures for a while, and says what came of it; with interrupts off for a time of known length from just before
    /// the second one is due, where that is asked for: how long the interrupt was held up goes there.
    fn counted(&mut self, duration_ns: u64, interval_ns: u64, block: Option<(u64, &mut u64)>) -> Value {
        let interval = self.clock.ticks(interval_ns);
        let first = cpu::tsc() + self.clock.ticks(100_000);
        timer::start(first, interval, first + self.clock.ticks(duration_ns), None);
        if let Some((length_ns, held_ns)) = block {
            cpu::wait();
            // Interrupts are off: the next one waits.
            let due = first + interval;
            while cpu::tsc() < due + self.clock.ticks(length_ns) {}
            *held_ns = self.clock.ns(cpu::tsc() - due);
        }
        while !timer::is_over() {
            cpu::wait();
        }
        timer::take(|counted| {
            let total = Totals::of(&counted.seen, counted.overruns);
            json!({"total": total.json(), "counts": counted.seen.sparse()})
        })
    }

    fn measure(&mut self, job: &Job) {
        let interval = self.clock.ticks(job.interval_ns);
        let began = cpu::tsc() + self.clock.ticks(1_000_000);
        let mut total = Totals::NONE;
        let mut end = "complete";
        timer::start(began, interval, began + self.clock.ticks(job.duration_ns), job.break_ns);
        let mut tick = 0;
        while !timer::is_over() {
            cpu::wait();
            let at = cpu::tsc();
            if at < began + self.clock.ticks(job.tick_ns * (tick + 1)) {
                continue;
            }
            self.tick(job, tick, self.clock.ns(at - began), &mut total);
            tick += 1;
            match self.heard() {
                Some(message) if message["t"] == "stop" || message["t"] == "quit" => {
                    timer::stop();
                    end = "stopped";
                }
                _ => {}
            }
        }
        let measured_ns = self.clock.ns(cpu::tsc() - began).min(job.duration_ns);
        self.tick(job, tick, measured_ns, &mut total);
        self.say(&json!({
            "t": "total", "activity": job.activity, "series": Self::key(), "at_ns": measured_ns, "total": total.json(), "last": true,
        }));
        let reason = timer::broke_ns().map(|ns| {
            end = "break";
            alloc::format!("a latency of {ns} ns")
        });
        self.say(&json!({"t": "done", "end": end, "reason": reason, "measured_ns": measured_ns, "load_rounds": [], "jump_ns": 0}));
    }

    /// Says what was counted since the tick before. Interrupts are on meanwhile: putting it together and saying it take
    /// longer than a period.
    fn tick(&mut self, job: &Job, n: u64, at_ns: u64, total: &mut Totals) {
        cpu::interrupts_on();
        let (now, counts, missed) = timer::take(|counted| {
            (Totals::of(&counted.seen, counted.overruns), counted.seen.sparse(), counted.missed.sparse())
        });
        total.add(&now);
        let mut message = json!({
            "t": "tick", "activity": job.activity, "series": Self::key(), "n": n, "at_ns": at_ns, "now": now.json(),
            "total": total.json(), "counts": counts, "thread": {},
        });
        if !missed.is_empty() {
            message["missed"] = json!(missed);
        }
        self.say(&message);
        cpu::interrupts_off();
    }
}
