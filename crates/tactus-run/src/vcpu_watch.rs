//! The host's side of a guest's virtual CPUs: how long their threads waited while a scenario measured,
//! and the fault `hold-vcpu`, which makes them wait.

use std::io::{BufRead, BufReader};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tactus_model::CpuSet;
use tactus_model::bundle::{ClockFit, Wait, Waits};
use tactus_model::catalogue::fault::{HoldBy, HoldVcpu};
use tactus_model::message::Injected;
use tactus_model::number::{float, whole};
use tactus_model::windows::Moments;

use tactus_environment::Layout;
use tactus_system::guardian::Guardian;
use tactus_system::probe;
use tactus_system::{Child, Invocation, System};

/// How often the threads are looked at, in ns: how long they waited is exact, the moment is known to this interval.
const LOOK_NS: u64 = 10_000_000;
/// The most waits that are kept, the longest ones.
const KEPT: usize = 512;
/// The longest name of a thread and reason that are kept, in characters.
const LONGEST_THREAD: usize = 32;
const LONGEST_WHY: usize = 400;
/// How long the watch may take to begin.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it may take to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// A `hold-vcpu` of a scenario.
pub struct Hold {
    /// The activity's number.
    pub activity: u32,
    /// The virtual CPUs.
    pub cpus: CpuSet,
    /// Its table.
    pub table: HoldVcpu,
    /// The seed of the random moments: a regular interval could match the rhythm of another event.
    pub seed: u64,
}

/// A watch over the vCPU threads of one environment.
pub struct Watch {
    child: Box<dyn Child>,
    said: Arc<Mutex<Said>>,
    reader: Option<JoinHandle<()>>,
    holds: Vec<Hold>,
    layout: Layout,
}

/// The output of the watch; times are this machine's CLOCK_MONOTONIC in ns.
#[derive(Clone, Debug, Default)]
struct Said {
    begun: bool,
    refused: Option<String>,
    waits: Vec<Seen>,
    /// The longest of those that were left out, in ns.
    cut: Option<u64>,
    /// Virtual CPU, from, to.
    held: Vec<(u32, u64, u64)>,
    totals: Vec<(u32, u64)>,
    /// Why it is unknown who had the CPUs, if that was asked for.
    blind: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    cpu: u32,
    until: u64,
    ns: u64,
    stopped: bool,
    by: Option<String>,
    outside: bool,
}

impl Said {
    fn line(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace();
        let word = words.next().unwrap_or_default();
        if word == "refused" {
            self.refused = Some(line.trim_start_matches("refused").trim().to_owned());
            return;
        }
        if word == "blind" {
            self.blind = Some(longest(line.trim_start_matches("blind").trim(), LONGEST_WHY));
            return;
        }
        if word == "kept" {
            let mut numbers = words.by_ref().take(3).map(|word| word.parse::<u64>().ok());
            let told = (numbers.next().flatten(), numbers.next().flatten(), numbers.next().flatten());
            let (Some(cpu), Some(until), Some(ns)) = told else { return };
            let by: Vec<&str> = words.collect();
            if let Ok(cpu) = u32::try_from(cpu) {
                let by = Some(longest(&by.join(" "), LONGEST_THREAD));
                self.waits.push(Seen { cpu, until, ns, stopped: false, by, outside: false });
                self.trim(4 * KEPT);
            }
            return;
        }
        if word == "watching" {
            self.begun = true;
            return;
        }
        let numbers: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
        let small = |n: u64| u32::try_from(n).ok();
        match (word, numbers.as_deref()) {
            ("waited" | "stopped" | "outside", Some(&[cpu, until, ns])) => {
                if let Some(cpu) = small(cpu) {
                    let (stopped, outside) = (word == "stopped", word == "outside");
                    self.waits.push(Seen { cpu, until, ns, stopped, by: None, outside });
                    self.trim(4 * KEPT);
                }
            }
            ("held", Some(&[cpu, from, to])) => self.held.extend(small(cpu).map(|cpu| (cpu, from, to))),
            ("total", Some(&[cpu, ns])) => self.totals.extend(small(cpu).map(|cpu| (cpu, ns))),
            _ => {}
        }
    }

    /// Keeps the longest.
    fn trim(&mut self, most: usize) {
        if self.waits.len() > most {
            self.waits.sort_by_key(|wait| std::cmp::Reverse(wait.ns));
            self.cut = self.cut.max(self.waits.get(KEPT).map(|wait| wait.ns));
            self.waits.truncate(KEPT);
        }
    }
}

impl Watch {
    /// Begins to watch `threads` (virtual CPU, thread id) of an environment, and to hold those that
    /// `holds` says. `blame`: it is also to be known who had their CPUs while they waited. The watch itself stays off the
    /// measured CPUs.
    ///
    /// # Errors
    /// Why it cannot be done, in words; a hold that cannot be carried out is one.
    pub fn start(
        system: &dyn System,
        guardian: &Guardian,
        threads: &[(u32, u32)],
        layout: &Layout,
        housekeeping: &CpuSet,
        holds: Vec<Hold>,
        blame: bool,
    ) -> Result<Self, String> {
        let program = probe::installed(system).map_err(|error| format!("no probe: {error}"))?;
        let mut words = vec![program.display().to_string(), "watch".into(), format!("every={LOOK_NS}")];
        let on =
            |cpu: u32| layout.cpus.iter().find(|(inside, _)| *inside == cpu).map(|(_, outside)| *outside);
        words.extend(threads.iter().map(|(cpu, thread)| match on(*cpu).filter(|_| blame) {
            Some(on) => format!("thread={cpu}:{thread}:{on}"),
            None => format!("thread={cpu}:{thread}"),
        }));
        for hold in &holds {
            for cpu in hold.cpus.iter() {
                words.push(word(hold, cpu, threads, layout)?);
            }
        }
        let command = Invocation::new(words).with_env(guardian.marker());
        let mut child =
            system.spawn(&command).map_err(|error| format!("the watch does not start: {error}"))?;
        // Where it is refused the child runs on the CPUs of this thread. The door logs it.
        let _ = system.place(child.pid(), housekeeping);
        let stdout = child.take_stdout().ok_or("the watch has no output")?;
        let said = Arc::<Mutex<Said>>::default();
        let to = Arc::clone(&said);
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                to.lock().unwrap_or_else(PoisonError::into_inner).line(&line);
            }
        });
        let watch = Self { child, said, reader: Some(reader), holds, layout: layout.clone() };
        watch.await_beginning()?;
        Ok(watch)
    }

    fn await_beginning(&self) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        loop {
            let said = self.said();
            if let Some(why) = said.refused {
                return Err(why);
            }
            if said.begun {
                return Ok(());
            }
            if self.reader.as_ref().is_some_and(JoinHandle::is_finished) || Instant::now() > until {
                return Err(format!("the watch did not begin: {}", self.child.stderr()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Why it is unknown who had the CPUs, if that was asked for.
    pub fn blind(&self) -> Option<String> {
        self.said().blind
    }

    fn said(&self) -> Said {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends it. `clock`: the environment's against this machine's, if that is known. Returns what the threads waited, and
    /// what each hold did.
    pub fn finish(mut self, clock: Option<&ClockFit>) -> (Option<Waits>, Vec<Injected>) {
        drop(self.child.take_stdin());
        let until = Instant::now() + STOP_TIMEOUT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.child.kill();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        let said = self.said();
        let injected = self.holds.iter().map(|hold| injected(hold, &said, &self.layout)).collect();
        (clock.map(|clock| waits(said, clock)), injected)
    }
}

/// No more of it.
fn longest(text: &str, most: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(most).collect()
}

/// The word that tells the watch to hold a virtual CPU.
fn word(hold: &Hold, cpu: u32, threads: &[(u32, u32)], layout: &Layout) -> Result<String, String> {
    let thread = threads.iter().find(|(own, _)| *own == cpu).map(|(_, thread)| thread);
    let on = layout.cpus.iter().find(|(inside, _)| *inside == cpu).map(|(_, outside)| outside);
    let (Some(thread), Some(on)) = (thread, on) else {
        return Err(format!("there is no virtual CPU {cpu} to hold"));
    };
    let by = match hold.table.by() {
        HoldBy::Fifo => "fifo",
        HoldBy::Ptrace => "ptrace",
    };
    let (length, every) = (hold.table.length.0, hold.table.every.0);
    Ok(format!("hold={cpu}:{thread}:{on}:{by}:{length}:{every}:{}", hold.seed))
}

fn injected(hold: &Hold, said: &Said, layout: &Layout) -> Injected {
    let own = || said.held.iter().filter(|(cpu, ..)| hold.cpus.contains(*cpu));
    let held: Vec<u64> = own().map(|(_, from, to)| to.saturating_sub(*from)).collect();
    let first = own().filter(|(cpu, ..)| Some(*cpu) == hold.cpus.first());
    let on: CpuSet = layout
        .cpus
        .iter()
        .filter(|(inside, _)| hold.cpus.contains(*inside))
        .map(|(_, outside)| *outside)
        .collect();
    let way = match hold.table.by() {
        HoldBy::Fifo => format!("SCHED_FIFO 99 on the machine's CPU {on}"),
        HoldBy::Ptrace => "ptrace".to_owned(),
    };
    Injected {
        activity: hold.activity,
        kind: "hold-vcpu".into(),
        way,
        cpus: hold.cpus.clone(),
        length_ns: hold.table.length.0,
        every_ns: hold.table.every.0,
        times: Some(held.len() as u64),
        longest_ns: held.iter().max().copied(),
        at: Moments::of(first.map(|(_, from, _)| *from)),
    }
}

/// The waits on the clock of the measurement.
fn waits(mut said: Said, clock: &ClockFit) -> Waits {
    said.trim(KEPT);
    said.waits.sort_by_key(|wait| std::cmp::Reverse(wait.ns));
    let wait = |seen: &Seen| Wait {
        cpu: seen.cpu,
        at_ns: signed(clock.inside(float(seen.until))),
        waited_ns: seen.ns,
        stopped: seen.stopped,
        by: seen.by.clone(),
        outside: seen.outside,
    };
    let longest = said.waits.iter().map(wait).collect();
    Waits { look_ns: LOOK_NS, totals: said.totals, longest, cut_ns: said.cut }
}

/// The nearest whole number; a moment before the beginning is negative.
fn signed(ns: f64) -> i64 {
    let whole = i64::try_from(whole(ns.abs())).unwrap_or(i64::MAX);
    if ns < 0.0 { -whole } else { whole }
}

#[cfg(test)]
mod tests {
    use tactus_model::Nanos;

    use super::*;

    fn hold(by: Option<HoldBy>) -> Hold {
        let table = HoldVcpu { length: Nanos::from_ms(50), every: Nanos::from_secs(1), by };
        Hold { activity: 2, cpus: CpuSet::one(1), table, seed: 7 }
    }

    const EVEN: ClockFit = ClockFit { began_ns: 1_000, ppm: 0.0, span_ns: 1, late_ns: 0, error_ns: None };

    fn layout() -> Layout {
        Layout { cpus: vec![(0, 4), (1, 6)], measuring: CpuSet::one(1) }
    }

    #[test]
    fn a_hold_names_the_thread_and_the_cpu_that_it_is_pinned_to() {
        let threads = [(0, 900), (1, 901)];
        assert_eq!(
            word(&hold(None), 1, &threads, &layout()).unwrap(),
            "hold=1:901:6:ptrace:50000000:1000000000:7"
        );
        assert!(word(&hold(None), 2, &threads, &layout()).unwrap_err().contains("CPU 2"));
    }

    #[test]
    fn what_the_watch_said_is_told_on_the_clock_of_the_measurement() {
        let mut said = Said::default();
        for line in [
            "watching",
            "waited 1 5000 700",
            "stopped 1 900 40",
            "held 1 4000 4650",
            "held 0 1 99",
            "total 1 740",
            "kept 1 6000 300 812 a hog",
            "outside 1 3000 200",
            "kept 1 6000 x 812 hog",
            "kept 1",
            "blind no BPF",
            "waited 1 x 7",
            "",
            "nonsense 4 5 6",
        ] {
            said.line(line);
        }
        let done = injected(&hold(Some(HoldBy::Ptrace)), &said, &layout());
        assert_eq!((done.times, done.longest_ns, done.way.as_str()), (Some(1), Some(650), "ptrace"));
        assert_eq!(done.at.times_ns().collect::<Vec<_>>(), [4_000]);
        assert_eq!(said.blind.as_deref(), Some("no BPF"));
        let waits = waits(said, &EVEN);
        let told: Vec<_> =
            waits.longest.iter().map(|wait| (wait.at_ns, wait.waited_ns, wait.stopped)).collect();
        assert_eq!(told, [(4_000, 700, false), (5_000, 300, false), (2_000, 200, false), (-100, 40, true)]);
        assert!(waits.longest[2].outside && !waits.longest[1].outside);
        assert_eq!(waits.longest[1].by.as_deref(), Some("812 a hog"));
        assert_eq!(waits.totals, [(1, 740)]);
    }

    #[test]
    fn a_flood_of_waits_leaves_the_longest() {
        let mut said = Said::default();
        for n in 0..10_000 {
            said.line(&format!("waited 0 {n} {n}"));
        }
        let waits = waits(said, &EVEN);
        assert_eq!((waits.longest.len(), waits.longest[0].waited_ns), (KEPT, 9_999));
        assert_eq!(waits.cut_ns, Some(9_999 - KEPT as u64), "and says which may be missing");
    }
}
