//! Lines of the kernel's trace: the events of [`EventKind`] as `trace` of a CPU shows them. A line of another form is
//! not an event and is reported as a gap.

use tactus_model::trace::{EventKind, VECTORS};

use super::record::Record;

/// Columns of the current thread's name, which the thread may choose freely; the kernel writes everything after them.
const NAME_COLUMNS: usize = 16;
/// The longest name of a thread, in bytes.
const LONGEST_COMM: usize = 15;

/// The meaning of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// An event.
    Event(Record),
    /// A timer's function of this name is called.
    Timer(Record, &'a str),
    /// Something was there that is not known.
    Gap,
    /// How many events there are, and how many have been written: `# entries-in-buffer/entries-written: 7/9   #P:2`.
    Written { kept: u64, all: u64 },
    /// Nothing.
    Nothing,
}

/// Reads a line.
pub fn read(line: &[u8]) -> Said<'_> {
    if line.first() == Some(&b'#') {
        return written(line).unwrap_or(Said::Nothing);
    }
    if line.trim_ascii().is_empty() {
        return Said::Nothing;
    }
    event(line).unwrap_or(Said::Gap)
}

fn written(line: &[u8]) -> Option<Said<'_>> {
    let rest = std::str::from_utf8(line).ok()?.strip_prefix("# entries-in-buffer/entries-written:")?;
    let (kept, all) = rest.split_ascii_whitespace().next()?.split_once('/')?;
    Some(Said::Written { kept: kept.parse().ok()?, all: all.parse().ok()? })
}

/// `          <idle>-0       [001] d..2.    54.029328: sched_switch: prev_comm=...`
fn event(line: &[u8]) -> Option<Said<'_>> {
    let mut rest = line.get(NAME_COLUMNS..)?;
    let mut at = None;
    while at.is_none() {
        at = seconds(word(&mut rest)?.strip_suffix(b":").unwrap_or_default());
    }
    let name = word(&mut rest)?.strip_suffix(b":")?;
    let at = at?;
    if name == b"sched_switch" {
        return switch(at, rest).map(Said::Event);
    }
    if name == b"sched_waking" {
        return waking(at, rest).map(Said::Event);
    }
    let name = std::str::from_utf8(name).ok()?;
    let mut words = std::str::from_utf8(rest).ok()?.split_ascii_whitespace();
    let first = words.next()?;
    let number = |key: &str| first.strip_prefix(key)?.parse().ok();
    let (kind, number) = match name {
        "hrtimer_expire_entry" | "timer_expire_entry" => {
            first.split_once("timer=")?;
            let record = Record::new(at, EventKind::Timer, 0, [0; 2]);
            return Some(Said::Timer(record, words.next()?.strip_prefix("function=")?));
        }
        "irq_handler_entry" => (EventKind::InterruptBegins, number("irq=")?),
        "irq_handler_exit" => (EventKind::InterruptEnds, number("irq=")?),
        "softirq_entry" => (EventKind::SoftBegins, number("vec=")?),
        "softirq_exit" => (EventKind::SoftEnds, number("vec=")?),
        _ => {
            let (name, kind) = match name.strip_suffix("_entry") {
                Some(name) => (name, EventKind::VectorBegins),
                None => (name.strip_suffix("_exit")?, EventKind::VectorEnds),
            };
            (kind, VECTORS.iter().position(|own| *own == name)? as u64)
        }
    };
    Some(Said::Event(Record::new(at, kind, number, [0; 2])))
}

/// `prev_comm=a b prev_pid=7 prev_prio=120 prev_state=R+ ==> next_comm=... `. Either thread may be called ` prev_pid=1`.
fn switch(at: u64, rest: &[u8]) -> Option<Record> {
    const PID: &[u8] = b" prev_pid=";
    let rest = rest.trim_ascii_start().strip_prefix(b"prev_comm=")?;
    let within = rest.get(..rest.len().min(LONGEST_COMM + PID.len()))?;
    let end = within.windows(PID.len()).rposition(|part| part == PID)?;
    let mut name = [0; 16];
    name[..end].copy_from_slice(&rest[..end]);
    let mut words = &rest[end + PID.len()..];
    let number = std::str::from_utf8(word(&mut words)?).ok()?.parse::<u32>().ok()?;
    let _ = word(&mut words)?.strip_prefix(b"prev_prio=")?;
    let state = word(&mut words)?.strip_prefix(b"prev_state=")?;
    // Preempted (`+`), whatever it was about to do; or it can run and another one was to have the CPU.
    let preempted = state.first() == Some(&b'R') || state.contains(&b'+');
    let kind = if preempted { EventKind::Preempted } else { EventKind::Sleeps };
    let [low, high] =
        [&name[..8], &name[8..]].map(|half| u64::from_ne_bytes(half.try_into().unwrap_or([0; 8])));
    Some(Record::new(at, kind, number.into(), [low, high]))
}

/// `comm=a b pid=7 prio=120 target_cpu=001`. The thread may be called ` pid=1`.
fn waking(at: u64, rest: &[u8]) -> Option<Record> {
    const PID: &[u8] = b" pid=";
    let end = rest.windows(PID.len()).rposition(|part| part == PID)?;
    let mut words = &rest[end + PID.len()..];
    let number = std::str::from_utf8(word(&mut words)?).ok()?.parse::<u32>().ok()?;
    let _ = word(&mut words)?.strip_prefix(b"prio=")?;
    Some(Record::new(at, EventKind::Woken, number.into(), [0; 2]))
}

/// The next word.
fn word<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let text = rest.trim_ascii_start();
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    let (word, after) = text.split_at(end);
    *rest = after;
    (!word.is_empty()).then_some(word)
}

/// `54.029328`, in ns.
fn seconds(word: &[u8]) -> Option<u64> {
    let (seconds, micros) = std::str::from_utf8(word).ok()?.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || micros.len() != 6 || !digits(micros) {
        return None;
    }
    let (seconds, micros): (u64, u64) = (seconds.parse().ok()?, micros.parse().ok()?);
    seconds.checked_mul(1_000_000)?.checked_add(micros)?.checked_mul(1_000)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::record::spelled;
    use super::*;

    fn kind_and_number(line: &str) -> Option<(u64, Option<EventKind>, u64)> {
        match read(line.as_bytes()) {
            Said::Event(own) => Some((own.at, own.kind(), own.thread())),
            _ => None,
        }
    }

    #[test]
    fn each_event_is_read_as_the_kernel_writes_it() {
        let at = 54_029_328_000;
        for (line, kind, number) in [
            (
                "          <idle>-0       [001] d.h1.    54.029328: local_timer_entry: vector=236",
                EventKind::VectorBegins,
                0,
            ),
            (
                "           <...>-14      [001] d.h.. 54.029328: irq_work_exit: vector=246",
                EventKind::VectorEnds,
                4,
            ),
            (
                "           <...>-14      [001] d.h..    54.029328: irq_handler_entry: irq=29 name=virtio0-input.0",
                EventKind::InterruptBegins,
                29,
            ),
            (
                "           <...>-14      [001] d.h..    54.029328: irq_handler_exit: irq=29 ret=handled",
                EventKind::InterruptEnds,
                29,
            ),
            (
                "    ksoftirqd/1-20      [001] ..s..    54.029328: softirq_entry: vec=3 [action=NET_RX]",
                EventKind::SoftBegins,
                3,
            ),
            (
                "    ksoftirqd/1-20      [001] ..s..    54.029328: softirq_exit: vec=3 [action=NET_RX]",
                EventKind::SoftEnds,
                3,
            ),
            (
                "           timer-812     [001] d..2.    54.029328: sched_switch: prev_comm=timer prev_pid=812 prev_prio=4 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120",
                EventKind::Sleeps,
                812,
            ),
            (
                "          <idle>-0       [001] d..2.    54.029328: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=timer next_pid=812 next_prio=4",
                EventKind::Preempted,
                0,
            ),
            (
                "          <idle>-0       [001] d.h2.    54.029328: sched_waking: comm=a pid=1 pid=812 prio=4 target_cpu=001",
                EventKind::Woken,
                812,
            ),
            (
                "             hog-99      [001] dN.2.    54.029328: sched_switch: prev_comm=hog prev_pid=99 prev_prio=120 prev_state=R+ ==> next_comm=timer next_pid=812 next_prio=4",
                EventKind::Preempted,
                99,
            ),
        ] {
            assert_eq!(kind_and_number(line), Some((at, Some(kind), number)), "{line}");
        }
        assert_eq!(
            read(b"# entries-in-buffer/entries-written: 205/7000   #P:2"),
            Said::Written { kept: 205, all: 7_000 }
        );
        assert_eq!(read(b"# tracer: nop"), Said::Nothing);
    }

    #[test]
    fn a_timer_is_called_by_its_function() {
        let line = |rest: &str| format!("          <idle>-0       [001] d.h1.    54.029328: {rest}");
        let high =
            line("hrtimer_expire_entry: hrtimer=00000000a3b1c2d4 function=hrtimer_wakeup now=54029326000");
        let wheel = line(
            "timer_expire_entry: timer=ffff00000000d4e5 function=process_timeout now=4294906011 baseclk=1",
        );
        for (text, function) in [(high, "hrtimer_wakeup"), (wheel, "process_timeout")] {
            let called = Record::new(54_029_328_000, EventKind::Timer, 0, [0; 2]);
            assert_eq!(read(text.as_bytes()), Said::Timer(called, function), "{text}");
        }
        for broken in
            ["hrtimer_expire_entry: hrtimer=12", "timer_expire_entry: 12 function=x", "hrtimer_expire_entry:"]
        {
            assert_eq!(read(line(broken).as_bytes()), Said::Gap, "{broken}");
        }
    }

    #[test]
    fn a_threads_name_cannot_imitate_another_event() {
        let line = |column: &str, comm: &str, next: &str| {
            format!(
                "{column:>16}-7       [001] d..2.    54.029328: sched_switch: prev_comm={comm} prev_pid=7 prev_prio=120 \
                 prev_state=D ==> next_comm={next} next_pid=0 next_prio=120"
            )
        };
        for (column, comm, next) in [
            ("<...>", "a prev_pid=1", "x"),
            ("<...>", " ==> next_comm=", "x"),
            ("<...>", "x", " prev_pid=1 "),
            ("1.000000: a: ", "", "x"),
            ("<...>", "\u{e9}\u{e9}", "x"),
        ] {
            let Said::Event(own) = read(line(column, comm, next).as_bytes()) else { panic!("{comm}") };
            assert_eq!((own.at, own.thread()), (54_029_328_000, 7), "{comm}");
            assert!(spelled(7, own.name).starts_with("7 "));
        }
        // A name with a line break: the rest of the line is not an event and is reported as a gap.
        assert_eq!(
            read(b"b prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=x next_pid=0 next_prio=1"),
            Said::Gap
        );
        assert_eq!(read(b"CPU:1 [LOST 12 EVENTS]"), Said::Gap);
        assert_eq!(read(b"           <...>-14      [001] d.h..    54.029328: hrtimer_start: x=1"), Said::Gap);
    }

    proptest! {
        #[test]
        fn no_line_is_a_panic(line in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&line);
            let _ = read(&[b"           <...>-14      [001] d.h..    54.029328: sched_switch: ", &line[..]].concat());
        }
    }
}
