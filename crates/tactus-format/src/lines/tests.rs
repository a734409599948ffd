use proptest::prelude::*;

use super::*;

const STATUS: &str = "T: 1 ( 2760) P:80 I:1500 C:   1306 Min:     15 Act:   36 Avg:   39 Max:     665";
const DEMO: &str = "Timer fired, jitter: 252951 ns, min:  60370 ns, max: 264290 ns";

fn status_of(line: &str) -> Option<Status> {
    match read(Format::Cyclictest, line) {
        Some(Reading::Status(status)) => Some(status),
        _ => None,
    }
}

#[test]
fn a_status_is_read_with_and_without_interrupts_of_the_firmware() {
    let status = status_of(STATUS).unwrap();
    let expected = Status {
        thread: 1,
        priority: 80,
        interval_us: 1500,
        cycles: 1306,
        min: 15,
        act: 36,
        avg: 39,
        max: 665,
        smi: None,
    };
    assert_eq!(status, expected);
    assert_eq!(status_of(&format!("{STATUS} SMI:       3\r")).unwrap().smi, Some(3));
    assert_eq!(status_of(&format!("\x1b[2A{STATUS}")).unwrap(), expected);
    assert_eq!(status_of(&format!("[   12.5] usb 1-1: new device {STATUS}")).unwrap(), expected);
}

#[test]
fn a_number_that_lost_its_end_is_no_number() {
    for cut in 1..STATUS.len() {
        assert_eq!(read(Format::Cyclictest, &STATUS[..cut]), None, "{}", &STATUS[..cut]);
    }
    for cut in 1..DEMO.len() {
        assert_eq!(read(Format::Demo, &DEMO[..cut]), None, "{}", &DEMO[..cut]);
    }
    let sample = "       0:       3:      52";
    for cut in 1..sample.len() {
        assert_eq!(read(Format::Cyclictest, &sample[..cut]), None, "{}", &sample[..cut]);
    }
    assert_eq!(read(Format::Cyclictest, "# Max Latencies: 0001"), None);
    assert_eq!(read(Format::Cyclictest, "000015 00000"), None);
}

#[test]
fn two_lines_in_one_another_are_no_reading() {
    let torn = "T: 1 ( 2760) P:80 I:1500 C:   13T: 0 ( 2759) P:80 I:1000 C: 06 Min:  15 Act: 36";
    assert_eq!(read(Format::Cyclictest, torn), None);
    assert_eq!(read(Format::Demo, "Timer fired, jitter: 12[  4.5] eth0 up ns, min:  6 ns, max: 20 ns"), None);
    assert_eq!(
        read(Format::Demo, "Timer fired, jitter: 999 ns, min: 1 ns, max: 20 ns"),
        None,
        "beyond its maximum"
    );
}

#[test]
fn samples_and_histograms_are_read() {
    let sample = Reading::Sample { thread: 0, cycle: Some(3), value: 52, smi: None };
    assert_eq!(read(Format::Cyclictest, "       0:       3:      52"), Some(sample));
    assert_eq!(read(Format::Cyclictest, "# Histogram"), Some(Reading::Histogram));
    assert_eq!(read(Format::Cyclictest, "000016 000014\t000029\t"), Some(Reading::Bucket(16, vec![14, 29])));
    assert_eq!(
        read(Format::Cyclictest, "# Max Latencies: 33172 23173"),
        Some(Reading::Figure(Figure::Max, vec![33172, 23173]))
    );
    assert_eq!(read(Format::Cyclictest, "# Thread 0: 00000 00001 # 00758 others"), None);
    assert_eq!(read(Format::Cyclictest, "# /dev/cpu_dma_latency set to 0us"), None);
    let smi = read(Format::Demo, "Timer fired, jitter:   1234 ns, min:    999 ns, max:   2345 ns, SMIs: 7");
    assert_eq!(smi, Some(Reading::Sample { thread: 0, cycle: None, value: 1234, smi: Some(7) }));
}

#[test]
fn a_format_is_recognized_by_a_line_that_no_other_tool_writes() {
    assert_eq!(recognize(STATUS), Some(Format::Cyclictest));
    assert_eq!(recognize(DEMO), Some(Format::Demo));
    assert_eq!(recognize("# Histogram"), Some(Format::Cyclictest));
    for other in ["000016 000014", "[    0.000000] Linux version 6.1", "", "policy: fifo: loadavg: 1 2 3"] {
        assert_eq!(recognize(other), None, "{other}");
    }
}

#[test]
fn every_line_of_a_recorded_uart_is_read_or_left() {
    let uart = include_str!("../../tests/fixtures/jailhouse-uart.txt");
    let samples: Vec<u64> = uart
        .lines()
        .filter_map(|line| match read(Format::Demo, line)? {
            Reading::Sample { value, .. } => Some(value),
            _ => None,
        })
        .collect();
    let written = uart.lines().filter(|line| line.contains("Timer fired, jitter:")).count();
    assert!(written > 20 && samples.len() + 2 >= written, "{} of {written}", samples.len());
    assert!(uart.lines().all(|line| read(Format::Cyclictest, line).is_none()));
}

proptest! {
    #[test]
    fn no_line_makes_the_reader_panic(line in ".{0,200}") {
        let _ = (read(Format::Cyclictest, &line), read(Format::Demo, &line), recognize(&line));
    }

    #[test]
    fn what_cyclictest_writes_is_read_back(
        thread in 0u32..64, priority in 0u32..100, cycles in 1u64..100_000_000,
        mut values in proptest::collection::vec(0u64..20_000_000, 3),
    ) {
        values.sort_unstable();
        let (min, act, max) = (values[0], values[1], values[2]);
        let line = format!(
            "T:{thread:2} ({:5}) P:{priority:2} I:1000 C:{cycles:7} Min:{min:7} Act:{act:5} Avg:{act:5} Max:{max:8}",
            4242,
        );
        let status = status_of(&line).unwrap();
        prop_assert_eq!((status.thread, status.cycles, status.min, status.act, status.max), (thread, cycles, min, act, max));
    }

    #[test]
    fn a_byte_that_is_lost_costs_the_line_or_nothing_that_is_used(at in 0usize..80) {
        let mut line = STATUS.to_owned();
        line.remove(at.min(line.len() - 1));
        if let Some(status) = status_of(&line) {
            prop_assert_eq!((status.cycles, status.min, status.avg, status.max), (1306, 15, 39, 665));
        }
    }
}

#[test]
fn a_line_in_which_every_character_stands_twice_is_known() {
    assert!(is_doubled("TTiimmeerr  ffiirreedd,,  jjiitttteerr::"));
    assert!(is_doubled("TTiimmeerr  ffiirreedd,,\r\r"));
    for other in
        ["Timer fired, jitter:   1234 ns", "----------------", "00112233", "", "TTiimmeerr ffiirreedd"]
    {
        assert!(!is_doubled(other), "{other}");
    }
}
