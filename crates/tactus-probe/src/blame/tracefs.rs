//! By tracefs, where BPF is refused: a separate instance records the same events, only on the measured CPUs. It is read
//! when a latency is one of the largest. The kernel gives its times in microseconds.
//!
//! The instance is removed when this value is dropped. If this process dies first, its [`Keeper`] removes it; if that
//! is killed as well, the guardian of the run does.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::Read;
use std::time::Duration;

use tactus_model::CpuSet;
use tactus_model::trace::{EventKind, LONGEST_FUNCTION, MOST_EVENTS, Source, Trace, VECTORS, cut};
use tactus_model::undo::block::blame_instance;
use tactus_model::undo::{MARKER, Undo};

use super::record::{Record, told};
use super::text::{Said, read};
use crate::keeper::Keeper;
use crate::sys;
use crate::tracefs::{at, read_first, wrong};
use crate::tracer::write;

/// Buffer for the events of a CPU, in KiB: two tenths of a second at 200 us. The session reads it every tenth.
const BUFFER_KIB: &str = "512";
/// The same for CPUs whose events are not recorded.
const NO_BUFFER_KIB: &str = "4";
/// Events that are kept of one reading.
const MOST_RECORDS: usize = 1 << 14;
/// Limit of the bytes that one look reads of a CPU.
const MOST_BYTES: usize = 8 << 20;
/// The longest line that is read.
const LONGEST_LINE: usize = 1024;
/// The options of the trace's lines, set in any case because the defaults may have been changed. A kernel without an
/// option does not need it.
const OPTIONS: [&str; 9] = [
    "context-info",
    "noraw",
    "nohex",
    "nobin",
    "noverbose",
    "nolatency-format",
    "norecord-tgid",
    "norecord-cmd",
    "nopause-on-trace",
];
/// Events that the account needs.
const NEEDED: [&str; 5] = [
    "sched/sched_switch",
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "irq/softirq_entry",
    "irq/softirq_exit",
];
/// Number of tries to remove an instance that another process still reads, and the time between two tries.
const TRIES: u32 = 50;
const AGAIN: Duration = Duration::from_millis(20);

/// Traces as long as it lives.
pub struct Instance {
    /// Below tracefs.
    path: String,
    cpus: Vec<u32>,
    last: Vec<RefCell<Reading>>,
    /// The last to go.
    _keeper: Keeper,
}

/// A reading of a CPU.
struct Reading {
    /// When, CLOCK_MONOTONIC in ns.
    at: u64,
    records: Vec<Record>,
    /// Functions of timers: a record has its place here and 1.
    timers: Vec<String>,
    /// Nothing was written over before.
    whole: bool,
    /// Buffer for the bytes of the file.
    buffer: Vec<u8>,
}

impl Instance {
    /// Begins for these CPUs. `wakes`: also with the wake-ups that happen there.
    ///
    /// # Errors
    /// Why the instance cannot be made; no part of it is left then.
    pub fn begin(cpus: &CpuSet, wakes: bool) -> Result<Self, String> {
        read_first("available_events")?;
        let path = blame_instance(&std::env::var(MARKER).unwrap_or_default());
        let full = at(&path);
        let keeper = Keeper::start(&[Undo::RemoveEmpty(full.clone().into())])
            .map_err(|error| wrong("the process that removes its instance if this one dies", &error))?;
        if let Err(error) = fs::create_dir(&full) {
            // It belongs to another process.
            keeper.forget();
            return Err(wrong(&full, &error));
        }
        let reading = || Reading {
            at: 0,
            records: Vec::with_capacity(MOST_RECORDS),
            timers: Vec::new(),
            whole: false,
            buffer: vec![0; 64 << 10],
        };
        let last = cpus.iter().map(|_| RefCell::new(reading())).collect();
        let instance = Self { path, cpus: cpus.iter().collect(), last, _keeper: keeper };
        instance.set_up(cpus, wakes)?;
        Ok(instance)
    }

    fn set_up(&self, cpus: &CpuSet, wakes: bool) -> Result<(), String> {
        let own = |file: &str, value: &str| write(&[&*self.path, "/", file].concat(), value);
        own("tracing_on", "0")?;
        // The samples have the same one.
        own("trace_clock", "mono")?;
        for option in OPTIONS {
            let _ = own("trace_options", option);
        }
        own("tracing_cpumask", &cpus.mask(1))?;
        let _ = own("buffer_size_kb", NO_BUFFER_KIB);
        for cpu in cpus.iter() {
            own(&["per_cpu/cpu", &cpu.to_string(), "/buffer_size_kb"].concat(), BUFFER_KIB)?;
        }
        for event in NEEDED {
            own(&["events/", event, "/enable"].concat(), "1")?;
        }
        // Of these each kernel has those that it has.
        for name in ["hrtimer", "timer"] {
            let _ = own(&["events/timer/", name, "_expire_entry/enable"].concat(), "1");
        }
        if wakes {
            let _ = own("events/sched/sched_waking/enable", "1");
        }
        for name in VECTORS {
            for end in ["_entry", "_exit"] {
                let _ = own(&["events/irq_vectors/", name, end, "/enable"].concat(), "1");
            }
        }
        own("tracing_on", "1")
    }

    /// The CPUs whose events it keeps.
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// The activity of a CPU between two moments, by its place among those for which it was begun.
    pub fn between(&self, place: usize, due: u64, seen: u64) -> Trace {
        let mut last = self.last[place].borrow_mut();
        // Several samples are asked for at once: one reading is enough for all that came before it.
        if last.at <= seen {
            let file =
                |name: &str| at(&[&*self.path, "/per_cpu/cpu", &self.cpus[place].to_string(), name].concat());
            let overrun = || overrun(&file("/stats"));
            let before = overrun();
            last.take(&file("/trace"));
            // If the statistics cannot be read, events may be missing.
            if before.is_none() || overrun() != before {
                last.overtaken();
            }
        }
        last.window(due, seen)
    }
}

impl Reading {
    /// The events of a window of time, whose moments are known to the microsecond.
    fn window(&self, due: u64, seen: u64) -> Trace {
        let from = due / 1_000 * 1_000;
        let first = self.records.partition_point(|record| record.at < from);
        let end = self.records.partition_point(|record| record.at <= seen).max(first);
        // A window next to a gap may extend into it.
        let beside =
            |place: Option<usize>| place.and_then(|place| self.records.get(place)).is_some_and(is_lost);
        let whole = (self.whole || first > 0) && !beside(first.checked_sub(1)) && !beside(Some(end));
        let (earlier, own) = (self.records[..first].iter().rev().copied(), self.records[first..end].to_vec());
        let later = self.records[end..].iter().take_while(|own| !is_lost(own) && !beside(end.checked_sub(1)));
        let next = later.copied().find(Record::is_switch);
        let function = |place: u64| self.timers.get(usize::try_from(place).ok()?.checked_sub(1)?).cloned();
        Trace { source: Source::Tracefs, ..told((due, seen), earlier, own, next, whole, function) }
    }

    /// Marks a hole in a reading. The kernel keeps writing during the reading. If it wraps around to the page that is
    /// read next, the reading jumps from old events to those written since it began. The text does not show this:
    /// `rb_inc_iter` in kernel/trace/ring_buffer.c takes over the new page's time.
    fn overtaken(&mut self) {
        let old = self.records.partition_point(|record| record.at <= self.at);
        let since = old.checked_sub(1).map_or(0, |last| self.records[last].at);
        self.records.insert(old, Record::new(since, EventKind::Lost, 0, [0; 2]));
        self.whole = false;
    }

    /// Reads the available lines.
    fn take(&mut self, path: &str) {
        (self.at, self.whole) = (sys::now(), false);
        self.records.clear();
        self.timers.clear();
        let Ok(mut file) = File::open(path) else { return };
        let (records, timers) = (&mut self.records, &mut self.timers);
        let mut lines = Lines { records, timers, whole: false, gap: false };
        let (mut held, mut bytes) = (0, 0);
        while bytes < MOST_BYTES {
            let read = match file.read(&mut self.buffer[held..]) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            (bytes, held) = (bytes + read, held + read);
            let mut begin = 0;
            while let Some(end) = self.buffer[begin..held].iter().position(|byte| *byte == b'\n') {
                lines.line(&self.buffer[begin..begin + end]);
                begin += end + 1;
            }
            // A line longer than any valid one is dropped, and the rest of it is not an event either.
            if held - begin > LONGEST_LINE {
                begin = held;
                lines.gap = true;
            }
            self.buffer.copy_within(begin..held, 0);
            held -= begin;
        }
        self.whole = lines.whole;
    }
}

/// Whether the events before or after it are unknown.
fn is_lost(record: &Record) -> bool {
    record.kind() == Some(EventKind::Lost)
}

/// The number of overwritten events of a CPU, from its statistics; `None`: they cannot be read.
fn overrun(path: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix("overrun:"))?.trim().parse().ok()
}

/// The result of the lines of a reading.
struct Lines<'a> {
    records: &'a mut Vec<Record>,
    timers: &'a mut Vec<String>,
    whole: bool,
    /// The events since the last one are unknown.
    gap: bool,
}

impl Lines<'_> {
    fn line(&mut self, line: &[u8]) {
        match read(line) {
            Said::Nothing => {}
            Said::Written { kept, all } => self.whole = kept == all,
            Said::Gap => self.gap = true,
            Said::Event(record) => self.event(record),
            Said::Timer(record, function) => {
                let known = self.timers.iter().position(|own| own == function);
                let place = known.unwrap_or(self.timers.len());
                if place == self.timers.len() && place < MOST_EVENTS {
                    let mut function = function.to_owned();
                    cut(&mut function, LONGEST_FUNCTION);
                    self.timers.push(function);
                }
                self.event(Record { name: [place as u64 + 1, 0], ..record });
            }
        }
    }

    fn event(&mut self, record: Record) {
        if std::mem::take(&mut self.gap) {
            self.push(Record::new(record.at, EventKind::Lost, 0, [0; 2]));
        }
        self.push(record);
    }

    /// The newest are kept.
    fn push(&mut self, record: Record) {
        if self.records.len() == MOST_RECORDS {
            self.records.drain(..MOST_RECORDS / 2);
            self.whole = false;
        }
        self.records.push(record);
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let path = at(&self.path);
        let _ = write(&[&*self.path, "/tracing_on"].concat(), "0");
        for _ in 0..TRIES {
            match fs::remove_dir(&path) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(AGAIN),
                _ => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# tracer: nop\n#\n# entries-in-buffer/entries-written: ALL   #P:2\n#\n#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n";
    const HOGGED: &str = "\
          <idle>-0       [001] d.h1.    10.000100: local_timer_entry: vector=236
          <idle>-0       [001] d.h1.    10.000103: local_timer_exit: vector=236
          <idle>-0       [001] d..2.    10.000105: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=hog next_pid=9 next_prio=0
           <...>-9       [001] d.h..    10.001001: local_timer_entry: vector=236
           <...>-9       [001] dNh..    10.001004: local_timer_exit: vector=236
           <...>-9       [001] d..2.    10.005000: sched_switch: prev_comm=hog prev_pid=9 prev_prio=0 prev_state=S ==> next_comm=timer next_pid=7 next_prio=4
";

    fn reading(name: &str, text: &str) -> Reading {
        let path = std::env::temp_dir().join(format!("tactus-blame-{}-{name}", std::process::id()));
        fs::write(&path, text).unwrap();
        let mut reading = Reading {
            at: 0,
            records: Vec::new(),
            timers: Vec::new(),
            whole: false,
            buffer: vec![0; 4 << 10],
        };
        reading.take(path.to_str().unwrap());
        fs::remove_file(path).unwrap();
        reading
    }

    #[test]
    fn the_events_of_a_latency_are_told_with_threads_by_number_and_name() {
        let own = reading("whole", &(HEAD.replace("ALL", "6/6") + HOGGED));
        let trace = own.window(10_001_000_500, 10_005_010_000);
        assert_eq!((trace.source, &trace.threads), (Source::Tracefs, &vec!["9 hog".to_owned()]));
        let told: Vec<_> = trace.events().collect();
        let us = 1_000;
        assert_eq!(
            told,
            [
                (500, EventKind::VectorBegins, 0),
                (500 + 3 * us, EventKind::VectorEnds, 0),
                (500 + 3_999 * us, EventKind::Sleeps, 0),
            ]
        );
    }

    #[test]
    fn what_was_written_over_or_is_no_event_is_said_to_be_lost() {
        let own = reading("over", &(HEAD.replace("ALL", "6/9000") + HOGGED));
        let trace = own.window(9_000_000_000, 10_000_104_000);
        assert_eq!(trace.events().next().unwrap().1, EventKind::Lost);
        let strange = HOGGED.replace("prev_comm=swapper/1 ", "prev_comm=swap\nper ");
        let own = reading("strange", &(HEAD.replace("ALL", "6/6") + &strange));
        let kinds: Vec<_> = own.records.iter().map(|own| EventKind::of(own.what & 0xff).unwrap()).collect();
        assert_eq!(kinds[2], EventKind::Lost, "{kinds:?}");
        let long = "x".repeat(9_000);
        let own = reading("long", &[&HEAD.replace("ALL", "6/6"), &long, "\n", HOGGED].concat());
        assert_eq!(own.records.len(), 7);
        assert!(reading("none", "").records.is_empty());
    }

    #[test]
    fn a_latency_in_the_hole_of_a_reading_that_the_kernel_overtook_has_lost_its_events() {
        let mut own = reading("overtaken", &(HEAD.replace("ALL", "6/6") + HOGGED));
        // The reading began between the two halves: the second was written since.
        own.at = 10_000_500_000;
        own.overtaken();
        let kinds = |due, seen| own.window(due, seen).events().map(|(_, kind, _)| kind).collect::<Vec<_>>();
        assert_eq!(kinds(10_000_200_000, 10_000_400_000), [EventKind::Lost], "in the hole");
        assert!(kinds(10_000_102_000, 10_000_400_000).contains(&EventKind::Lost), "it ends in the hole");
        assert!(!kinds(10_000_102_000, 10_000_104_000).contains(&EventKind::Lost), "before it all is known");
        assert!(!kinds(10_001_002_000, 10_005_010_000).contains(&EventKind::Lost), "and behind it");
    }

    #[test]
    fn the_functions_of_timers_are_told_by_their_names() {
        let timers = "\
          <idle>-0       [001] d.h1.    10.000100: local_timer_entry: vector=236
          <idle>-0       [001] d.h2.    10.000101: hrtimer_expire_entry: hrtimer=00000000a3b1c2d4 function=slow_timer now=1
          <idle>-0       [001] d.h1.    10.000902: local_timer_exit: vector=236
";
        let own = reading("timers", &(HEAD.replace("ALL", "3/3") + timers));
        let told: Vec<_> = own.window(10_000_500_000, 10_000_910_000).events().collect();
        assert_eq!(told, [(0, EventKind::Timer, 0), (402_000, EventKind::VectorEnds, 0)]);
        assert_eq!(own.window(10_000_500_000, 10_000_910_000).timers, ["slow_timer"]);
        assert_eq!(own.window(10_000_000_000, 10_000_910_000).timers, ["slow_timer"]);
    }

    #[test]
    fn of_too_many_events_the_newest_are_kept() {
        let all = 3 * MOST_RECORDS;
        let line = |n: usize| {
            format!(
                "           <...>-9       [001] d.h..    10.{n:06}: softirq_entry: vec=3 [action=NET_RX]\n"
            )
        };
        let text: String = (0..all).map(line).collect();
        let own = reading("many", &(HEAD.replace("ALL", "7/7") + &text));
        assert!(own.records.len() <= MOST_RECORDS && !own.whole);
        assert_eq!(own.records.last().unwrap().at, 10_000_000_000 + 1_000 * (all as u64 - 1));
    }
}
