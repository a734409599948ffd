//! cyclictest's status lines. Pure.

use std::fmt::Write;

use tactus_model::number::whole;
use tactus_model::scheduling::Policy;

use super::options::Thread;

/// The figures of a thread so far, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    pub cycles: u64,
    pub min_ns: Option<u64>,
    /// Mean of the newest tick.
    pub newest_ns: Option<f64>,
    pub mean_ns: Option<f64>,
    pub max_ns: Option<u64>,
}

/// cyclictest's smallest value before it has one, in its unit.
const NO_MIN: u64 = 1_000_000;

/// A thread's line. tactus does not know the number that the kernel gave the thread: it is 0. `Act` is the mean of the newest
/// tick.
pub fn line(number: usize, thread: &Thread, figures: &Figures, in_ns: bool) -> String {
    let unit_ns = unit_ns(in_ns);
    // Cut off, as cyclictest does it.
    let mean = |ns: Option<f64>| whole((ns.unwrap_or(0.0)).floor()) / unit_ns;
    let min = figures.min_ns.map_or(NO_MIN, |ns| ns / unit_ns);
    let width = if in_ns { 8 } else { 5 };
    format!(
        "T:{number:2} ({:5}) P:{:2} I:{} C:{:7} Min:{min:7} Act:{:width$} Avg:{:width$} Max:{:8}\n",
        0,
        thread.priority,
        thread.interval_us,
        figures.cycles,
        mean(figures.newest_ns),
        mean(figures.mean_ns),
        figures.max_ns.unwrap_or(0) / unit_ns,
    )
}

/// One unit of what is printed, in ns.
pub const fn unit_ns(in_ns: bool) -> u64 {
    if in_ns { 1 } else { 1_000 }
}

/// The block that is written again and again: policy and load of the machine, and the lines.
pub fn block(policy: Policy, loadavg: &str, lines: &str) -> String {
    let word = match policy {
        Policy::Rr => "rr",
        Policy::Other => "other",
        Policy::Fifo | Policy::Deadline => "fifo",
    };
    format!("policy: {word}: loadavg: {}          \n\n{lines}", loadavg.trim_end())
}

/// Back to the first line of a block of `threads` threads.
pub fn back(threads: usize) -> String {
    let mut text = String::new();
    let _ = write!(text, "\x1b[{}A", threads + 2);
    text
}
