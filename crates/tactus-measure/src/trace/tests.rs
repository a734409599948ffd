//! Lines of the kernel, as Linux 6.1 wrote them, and malformed ones.

use std::io::Write;

use proptest::prelude::*;

use super::*;
use crate::reading::Marked;

/// As Linux 6.1.0-56-rt wrote it into `trace_pipe` of a CPU.
const TRACE: &str = include_str!("../../tests/fixtures/timerlat.trace");

/// The same where its trace was too small for what came in two seconds.
const LOST: &str = include_str!("../../tests/fixtures/timerlat-lost.trace");

fn latencies(text: &str) -> Vec<Latency> {
    text.lines()
        .filter_map(|line| if let Said::Latency(latency) = read(line) { Some(latency) } else { None })
        .collect()
}

fn irq(number: u64, due: u64, latency_ns: u64) -> Latency {
    Latency { at_ns: due + latency_ns, number, context: Context::Irq, latency_ns }
}

/// The counted values of these, the number of lost ones, and the number of those not armed.
fn counted(span: (u64, u64), of: &[Latency]) -> (Vec<(u64, u64)>, u64, u64) {
    let mut periods = Periods::new(1_000_000, span);
    let mut got = Vec::new();
    for latency in of {
        let take = &mut |marked| {
            let Marked::Cycle { value, left, .. } = marked else { panic!("{marked:?}") };
            got.push((value, left));
        };
        periods.take(*latency, take).unwrap();
    }
    (got, periods.lost, periods.unarmed)
}

const MS: u64 = 1_000_000;

#[test]
fn the_lines_of_a_kernel_are_read_whole() {
    let all = latencies(TRACE);
    let strange: Vec<&str> = TRACE.lines().filter(|line| read(line) == Said::Strange).collect();
    assert!(strange.is_empty(), "{strange:?}");
    for context in [Context::Irq, Context::Thread] {
        let own: Vec<&Latency> = all.iter().filter(|latency| latency.context == context).collect();
        assert!(own.len() > 20, "{}", own.len());
        assert!(own.windows(2).all(|pair| pair[0].number < pair[1].number && pair[0].at_ns < pair[1].at_ns));
        assert!(own.iter().all(|latency| latency.latency_ns > 0));
    }
}

#[test]
fn a_line_says_when_which_whose_and_how_late() {
    let said = read(
        "          <idle>-0       [000] d.h1.    54.029328: #1     context    irq timer_latency       932 ns",
    );
    let latency = Latency { at_ns: 54_029_328_000, number: 1, context: Context::Irq, latency_ns: 932 };
    assert_eq!(said, Said::Latency(latency));
    // The name of a process may look like a line, and another context is not an error.
    let hostile = "x: #9 context-8 [001] ..... 1.000001: #2 context thread timer_latency 5 ns";
    let latency = Latency { at_ns: 1_000_001_000, number: 2, context: Context::Thread, latency_ns: 5 };
    assert_eq!(read(hostile), Said::Latency(latency));
    assert_eq!(read("a-1 [000] ..... 1.000001: #2 context user-ret timer_latency 5 ns"), Said::Nothing);
    assert_eq!(read("CPU:1 [LOST 4711 EVENTS]"), Said::Lost(4711));
    assert_eq!(read("CPU:1 [LOST EVENTS]"), Said::Lost(0));
    for strange in [
        "a-1 [000] ..... 1.000001: #2 context irq timer_latency -5 ns",
        "a-1 [000] ..... 1.000001: #2 context irq timer_latency 5 us",
        "a-1 [000] ..... 1.000001: #2 context irq timer_latency 5 ns more",
        "a-1 [000] ..... 1.0001: #2 context irq timer_latency 5 ns",
        "a-1 [000] ..... 18446744073709551615.000001: #2 context irq timer_latency 5 ns",
        "a-1 [000] ..... 1.000001: #99999999999999999999 context irq timer_latency 5 ns",
        "a-1 [000] ..... 1.000001: #2 context irq timer_lat",
        "CPU:1 [LOST x EVENTS]",
    ] {
        assert_eq!(read(strange), Said::Strange, "{strange}");
    }
}

#[test]
fn what_was_written_over_is_lost_and_counted_and_what_is_due_elsewhere_is_not() {
    let span = (10 * MS, 20 * MS);
    let on = |numbers: &[u64]| numbers.iter().map(|n| irq(*n, n * MS, 5_000)).collect::<Vec<_>>();
    let whole: Vec<u64> = (8..=21).collect();
    let (got, lost, unarmed) = counted(span, &on(&whole));
    assert_eq!((got.len(), lost, unarmed), (10, 0, 0));
    let (got, lost, unarmed) = counted(span, &on(&[8, 9, 10, 11, 15, 16, 17, 18, 19, 20]));
    assert_eq!((got.len(), lost, unarmed), (7, 3, 0), "12, 13 and 14");
    let (got, lost, _) = counted(span, &on(&[3, 12, 13]));
    assert_eq!((got.len(), lost), (2, 2), "10 and 11 counted, 4 to 9 did not");
    let (got, lost, _) = counted(span, &on(&[17, 25]));
    assert_eq!((got.len(), lost), (1, 2), "18 and 19");
}

#[test]
fn a_late_timer_misses_periods_and_one_that_a_late_thread_did_not_arm_is_told_of() {
    let span = (0, 20 * MS);
    // Due at 3 ms and handled at 5.5 ms: 4 and 5 passed, and the next is that of 6.
    let late = [irq(1, MS, 10), irq(2, 2 * MS, 10), irq(3, 3 * MS, 2_500_000), irq(4, 6 * MS, 10)];
    let (got, lost, unarmed) = counted(span, &late);
    assert_eq!((got[2], lost, unarmed), ((2_500_000, 16), 0, 0));
    // In time, and the next one three periods later.
    let not_armed = [irq(1, MS, 10), irq(2, 2 * MS, 10), irq(3, 5 * MS, 10)];
    assert_eq!(counted(span, &not_armed).1, 0);
    assert_eq!(counted(span, &not_armed).2, 2);
}

#[test]
fn what_a_kernel_has_written_over_is_counted_for_each_context_by_its_numbers() {
    assert!(LOST.lines().any(|line| read(line) == Said::Lost(3_616)));
    for context in [Context::Irq, Context::Thread] {
        let own: Vec<Latency> =
            latencies(LOST).into_iter().filter(|latency| latency.context == context).collect();
        let (got, lost, _) = counted((0, u64::MAX), &own);
        // From 339 to 2173, of both: the kernel's own count is of both together, and is 50 short.
        assert_eq!((got.len(), lost), (own.len(), 1_833), "{context:?}");
    }
}

#[test]
fn numbers_that_go_back_end_it() {
    let mut periods = Periods::new(MS, (0, 9 * MS));
    periods.take(irq(7, MS, 1), &mut |_| ()).unwrap();
    for number in [7, 1] {
        let error = periods.clone().take(irq(number, 2 * MS, 1), &mut |_| ()).unwrap_err();
        assert!(error.contains("counted anew"), "{error}");
    }
}

#[test]
fn a_pipe_hands_each_context_to_who_wants_it_and_says_what_else_stands_in_it() {
    let mut file = tempfile::tempfile().unwrap();
    let more =
        "CPU:0 [LOST 3 EVENTS]\nnobody knows\n a-1 [000] ..... 1.000001: #2 context irq timer_latency 5 ns\n";
    write!(file, "{TRACE}{more}").unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    let mut pipe = Pipe::of(file);
    assert!(pipe.take(Context::Irq).unwrap().is_empty(), "nobody had asked for any");
    std::io::Seek::rewind(&mut pipe.file).unwrap();
    pipe.want(Context::Irq);
    pipe.want(Context::Thread);
    let (irqs, threads) = (pipe.take(Context::Irq).unwrap(), pipe.take(Context::Thread).unwrap());
    let all = latencies(&format!("{TRACE}{more}"));
    assert_eq!(irqs.len() + threads.len(), all.len());
    assert!(irqs.iter().all(|latency| latency.context == Context::Irq));
    let told = pipe.told();
    assert_eq!((told.overwritten, told.strange, told.first.as_str()), (2, 2, "nobody knows"));
}

#[test]
fn lines_that_arrive_in_any_parts_are_the_same_and_an_endless_one_is_thrown_away() {
    let mut got = Vec::new();
    let mut lines = Lines::default();
    for byte in TRACE.as_bytes() {
        lines.feed(&[*byte], &mut |line| got.push(line.trim_end().to_owned()));
    }
    assert_eq!(got, TRACE.lines().collect::<Vec<_>>());
    let (mut lines, mut count) = (Lines::default(), 0);
    let endless = "x".repeat(100_000) + "\nCPU:0 [LOST 3 EVENTS]\n";
    let mut last = Said::Nothing;
    lines.feed(endless.as_bytes(), &mut |line| (count, last) = (count + 1, read(line)));
    assert_eq!((count, last), (2, Said::Lost(3)));
}

#[test]
fn a_trace_that_is_not_there_is_trouble_that_names_it() {
    let trace = Trace::new(Context::Thread, MS, 4711);
    trace.wait(0);
    let why = trace.inbox().trouble().unwrap();
    assert!(why.contains("CPU 4711") && why.contains("cpu4711/trace_pipe"), "{why}");
    // Nothing is then read, and nothing waits.
    trace.read((0, u64::MAX), &|| false);
    assert_eq!(trace.inbox().drain(&mut |_| panic!()), 0);
}

#[test]
fn the_stand_in_is_read_as_the_kernel_is() {
    for context in [Context::Irq, Context::Thread] {
        let trace = Trace::new(context, MS, 0);
        let first = sys::now() + 5 * MS;
        trace.read_stand_in(Due { first, end: first + 20 * MS, interval_ns: MS }, &|| false);
        assert_eq!(trace.inbox().trouble(), None);
        let (mut cycles, mut missed) = (0, 0);
        let lost = trace.inbox().drain(&mut |marked| {
            let Marked::Cycle { value, left, .. } = marked else { panic!("{marked:?}") };
            cycles += 1;
            missed += (value / MS).min(left);
        });
        assert_eq!((cycles + missed, lost), (20, 0), "{cycles} and {missed}");
    }
}

#[test]
fn of_a_late_timer_no_period_is_missed_that_is_due_at_the_end() {
    // Twenty periods; the 19th is answered 2.3 ms late, whatever part of a microsecond the text has left out.
    for begin in [1_000_000_000, 1_000_000_001, 1_000_000_999] {
        let mut periods = Periods::new(MS, (begin, begin + 20 * MS));
        let mut all = 0;
        for number in 1..=19 {
            let value = if number == 19 { 23 * MS / 10 } else { 0 };
            let at_ns = (begin + (number - 1) * MS + value) / 1_000 * 1_000;
            let latency = Latency { at_ns, number, context: Context::Irq, latency_ns: value };
            let each = &mut |marked| {
                let Marked::Cycle { value, left, .. } = marked else { panic!("{marked:?}") };
                all += 1 + (value / MS).min(left);
            };
            periods.take(latency, each).unwrap();
        }
        assert_eq!(all, 20, "{begin}");
    }
}

proptest! {
    #[test]
    fn no_line_makes_the_reader_panic(line in ".{0,120}", number in any::<u64>(), late in any::<u64>()) {
        let _ = read(&line);
        let _ = read(&format!("CPU:{line}"));
        let _ = read(&format!("a-1 [000] ..... {line}: #{number} context irq timer_latency {late} ns"));
        let _ = read(&format!("a-1 [000] ..... 1.000001: #{line}"));
    }

    #[test]
    fn what_is_written_is_read(seconds in 0..10_000_000_u64, micros in 0..1_000_000_u64, number in any::<u64>(), late in any::<u64>(), thread: bool) {
        let context = if thread { Context::Thread } else { Context::Irq };
        let word = context.word();
        let line = format!("a b-1 [003] d.h1. {seconds}.{micros:06}: #{number:<5} context {word:>6} timer_latency {late:9} ns");
        let at_ns = (seconds * 1_000_000 + micros) * 1_000;
        prop_assert_eq!(read(&line), Said::Latency(Latency { at_ns, number, context, latency_ns: late }));
    }

    #[test]
    fn whatever_is_taken_no_more_counts_than_was_written(of in prop::collection::vec((1..1_000_u64, any::<u64>(), any::<u64>()), 0..50), begin in any::<u64>(), end in any::<u64>()) {
        let mut periods = Periods::new(MS, (begin, end));
        let (mut number, mut counted) = (0_u64, 0);
        for (step, at_ns, latency_ns) in &of {
            number += step;
            let latency = Latency { at_ns: *at_ns, number, context: Context::Irq, latency_ns: *latency_ns };
            periods.take(latency, &mut |_| counted += 1).unwrap();
        }
        prop_assert!(counted <= of.len());
        prop_assert!(periods.lost <= number);
    }
}
