//! `console`: lines of text to a serial console. A round is a byte that the kernel took.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicU64, Ordering};

use tactus_model::CpuSet;
use tactus_model::catalogue::load::Console;
use tactus_model::message::Refusal;

use super::refuse;
use crate::sys;
use crate::work::{Work, reset_scheduling};

/// The consoles that the kernel writes to, by name.
const CONSOLES: &str = "/sys/class/tty/console/active";
/// Names of serial lines: 8250 and its like, ARM's PL011, i.MX, Freescale, Xilinx.
const SERIAL: [&str; 5] = ["ttyS", "ttyAMA", "ttymxc", "ttyLP", "ttyPS"];
/// How often it writes, in ns.
const EVERY_NS: u64 = 10_000_000;
/// How often it does so in a second.
const TIMES: u64 = 1_000_000_000 / EVERY_NS;

pub fn works(table: &Console, cpus: &CpuSet) -> Result<Vec<Work>, Refusal> {
    let consoles = fs::read_to_string(CONSOLES).unwrap_or_default();
    let Some(name) = serial(&consoles) else {
        return Err(refuse(
            format!(
                "console: none of the kernel's consoles is a serial line ({CONSOLES}: {})",
                consoles.trim()
            ),
            "boot it with `console=ttyS0`",
        ));
    };
    let path = format!("/dev/{name}");
    let line = File::options().write(true).custom_flags(libc::O_NOCTTY).open(&path);
    let line = line.map_err(|error| refuse(format!("console: {path} cannot be opened: {error}"), ""))?;
    let (rate, cpus) = (u64::from(table.rate()), cpus.clone());
    Ok(vec![Box::new(move |rounds| {
        reset_scheduling(&cpus);
        write(&line, rate, rounds);
    })])
}

/// The first console that is a serial line.
fn serial(consoles: &str) -> Option<&str> {
    consoles.split_whitespace().find(|name| SERIAL.iter().any(|kind| name.starts_with(kind)))
}

/// Writes this many bytes a second, until the line breaks.
fn write(mut line: &File, rate: u64, rounds: &AtomicU64) {
    // The text of one write at the highest rate; `rest` is the fraction of a byte that earlier writes left.
    let text: Vec<u8> =
        b"tactus writes this line to a serial console, as a load of the machine.\r\n".repeat(160);
    let (mut due, mut rest) = (sys::now(), 0);
    loop {
        rest += rate;
        let bytes = usize::try_from(rest / TIMES).unwrap_or(usize::MAX).min(text.len());
        rest %= TIMES;
        let mut left = text.get(..bytes).unwrap_or_default();
        while !left.is_empty() {
            let Ok(taken @ 1..) = line.write(left) else { return };
            left = left.get(taken..).unwrap_or_default();
            rounds.fetch_add(u64::try_from(taken).unwrap_or(0), Ordering::Relaxed);
        }
        // A line that is slower is not made up for.
        due = (due + EVERY_NS).max(sys::now());
        sys::sleep_until(due);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_serial_line_is_found_among_the_consoles_by_its_name() {
        assert_eq!(serial("tty0 ttyS0\n"), Some("ttyS0"));
        assert_eq!(serial("ttyAMA0\n"), Some("ttyAMA0"));
        assert_eq!((serial("tty0 hvc0\n"), serial("")), (None, None));
    }
}
