//! Lines of timerlat as the kernel writes them into `trace_pipe`. A line of another form is not a latency.

/// The context of a line's latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Of the timer's interrupt handler.
    Irq,
    /// Of the thread that it wakes.
    Thread,
}

impl Context {
    /// Its word, in the kernel's lines and as the kind of a series.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Irq => "irq",
            Self::Thread => "thread",
        }
    }
}

/// A latency that the kernel wrote down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// When it was written, by the trace's clock, in ns; the text has microseconds.
    pub at_ns: u64,
    /// The number of the timer, counted on its CPU.
    pub number: u64,
    /// Its context.
    pub context: Context,
    /// The latency, in ns.
    pub latency_ns: u64,
}

/// The meaning of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// A latency.
    Latency(Latency),
    /// This many events were overwritten before they were read; 0: the kernel does not know how many.
    Lost(u64),
    /// A latency of a context that is not measured (`user-ret`), or nothing at all.
    Nothing,
    /// Something else.
    Strange,
}

/// Reads a line: `<idle>-0 [000] d.h1. 54.029328: #1 context irq timer_latency 932 ns`.
pub fn read(line: &str) -> Said {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Said::Nothing;
    }
    if let Some(lost) = lost(line) {
        return Said::Lost(lost);
    }
    latency(line).unwrap_or(Said::Strange)
}

/// `CPU:0 [LOST 123 EVENTS]`
fn lost(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("CPU:")?;
    let (cpu, rest) = rest.split_once(' ')?;
    let _: u32 = cpu.parse().ok()?;
    let words = rest.trim().strip_prefix("[LOST")?.strip_suffix("EVENTS]")?.trim();
    if words.is_empty() { Some(0) } else { words.parse().ok() }
}

fn latency(line: &str) -> Option<Said> {
    // A process may have any name: the kernel's text begins after the last such mark.
    let mark = line.as_bytes().windows(3).rposition(|bytes| bytes == b": #")?;
    let (before, said) = (&line[..mark], &line[mark + 3..]);
    let at_ns = seconds(before.rsplit(' ').next()?)?;
    let mut words = said.split_ascii_whitespace();
    let mut next = |wanted: Option<&str>| words.next().filter(|word| wanted.is_none_or(|it| it == *word));
    let number = next(None)?.parse().ok()?;
    next(Some("context"))?;
    let context = match next(None)? {
        "irq" => Some(Context::Irq),
        "thread" => Some(Context::Thread),
        "user-ret" => None,
        _ => return None,
    };
    next(Some("timer_latency"))?;
    let latency_ns = next(None)?.parse().ok()?;
    next(Some("ns"))?;
    if words.next().is_some() {
        return None;
    }
    Some(match context {
        Some(context) => Said::Latency(Latency { at_ns, number, context, latency_ns }),
        None => Said::Nothing,
    })
}

/// `54.029328`, in ns.
fn seconds(word: &str) -> Option<u64> {
    let (seconds, micros) = word.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || micros.len() != 6 || !digits(micros) {
        return None;
    }
    let (seconds, micros): (u64, u64) = (seconds.parse().ok()?, micros.parse().ok()?);
    seconds.checked_mul(1_000_000)?.checked_add(micros)?.checked_mul(1_000)
}

/// The longest line that is waited for, in bytes.
const LONGEST: usize = 4096;

/// Lines that arrive in parts.
#[derive(Debug, Default)]
pub struct Lines {
    rest: Vec<u8>,
    /// The beginning of the line is thrown away already: it is too long.
    skips: bool,
}

impl Lines {
    /// Takes the next bytes and hands over the lines that are whole.
    pub fn feed(&mut self, bytes: &[u8], each: &mut dyn FnMut(&str)) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let ends = part.ends_with(b"\n");
            if !self.skips {
                self.rest.extend_from_slice(part);
            }
            if !self.skips && self.rest.len() > LONGEST {
                // Its first bytes tell that there was one.
                self.rest.truncate(80);
                each(&String::from_utf8_lossy(&self.rest));
                self.rest.clear();
                self.skips = true;
            }
            if ends {
                if !std::mem::take(&mut self.skips) {
                    each(&String::from_utf8_lossy(&self.rest));
                }
                self.rest.clear();
            }
        }
    }
}
