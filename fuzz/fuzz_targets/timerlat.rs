//! A trace of timerlat, as anybody may have written it: no bytes make its reader panic, in whatever parts they come, and no
//! more counts than was due.

#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use tactus_measure::trace::{Context, Lines, Periods, Said, read};

fuzz_target!(|data: &[u8]| {
    let (Some(&first), span) = (data.first(), (1_000_000_000, 60_000_000_000)) else { return };
    let (mut whole, mut parts) = (Vec::new(), Vec::new());
    Lines::default().feed(data, &mut |line| whole.push(line.to_owned()));
    let mut lines = Lines::default();
    for part in data.chunks(usize::from(first) + 1) {
        lines.feed(part, &mut |line| parts.push(line.to_owned()));
    }
    // One that is too long is cut where it was noticed.
    if data.len() <= 4096 {
        assert_eq!(whole, parts);
    }
    for context in [Context::Irq, Context::Thread] {
        let mut periods = Periods::new(u64::from(first) * 1_000, span);
        let mut counted = 0_usize;
        for line in &whole {
            if let Said::Latency(latency) = read(line)
                && latency.context == context
                && periods.take(latency, &mut |_| counted += 1).is_err()
            {
                break;
            }
        }
        assert!(counted <= whole.len());
    }
});
