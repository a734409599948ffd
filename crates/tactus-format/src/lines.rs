//! Lines of instruments that are not probes: cyclictest, and the demonstrations of Jailhouse. Pure.
//!
//! A line may be cut, stand behind other text, or be damaged. An uncertain line is not a reading. cyclictest
//! prints its numbers right-aligned in fields of fixed width, so the field reveals a number that lost its
//! end.

/// The instrument that writes the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// cyclictest: its status, `-v`, and the histogram of `-h`.
    Cyclictest,
    /// Jailhouse's gic-demo (arm) and apic-demo (x86).
    Demo,
}

/// A reading from a line. Numbers are as they are written: microseconds, or ns with cyclictest's `-N`; ns in
/// the demonstrations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// cyclictest's status of one thread, since it began.
    Status(Status),
    /// One value.
    Sample {
        /// Number of the thread.
        thread: u32,
        /// Number of the value, where it is written.
        cycle: Option<u64>,
        /// The value.
        value: u64,
        /// System management interrupts so far.
        smi: Option<u64>,
    },
    /// A histogram begins.
    Histogram,
    /// A value, and how often each thread had it.
    Bucket(u64, Vec<u64>),
    /// A figure of each thread at the histogram's end.
    Figure(Figure, Vec<u64>),
}

/// cyclictest's status of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Number of the thread.
    pub thread: u32,
    /// Its priority.
    pub priority: u32,
    /// Its interval, in microseconds.
    pub interval_us: u64,
    /// Values so far.
    pub cycles: u64,
    /// Smallest so far.
    pub min: u64,
    /// The last one.
    pub act: u64,
    /// Mean so far, rounded down.
    pub avg: u64,
    /// Largest so far.
    pub max: u64,
    /// System management interrupts so far.
    pub smi: Option<u64>,
}

/// A figure that stands behind a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// How many values are in the histogram.
    Total,
    /// The smallest.
    Min,
    /// The mean, rounded down.
    Avg,
    /// The largest.
    Max,
    /// How many values are beyond the histogram.
    Overflows,
}

/// The most threads whose numbers are believed.
pub const MOST_THREADS: u32 = 512;

/// The reading of a line in a format, if it is certain. `line` is without its end.
#[must_use]
pub fn read(format: Format, line: &str) -> Option<Reading> {
    let line = plain(line);
    match format {
        Format::Cyclictest => histogram(&line).or_else(|| status(&line)).or_else(|| verbose(&line)),
        Format::Demo => demo(&line),
    }
}

/// The format that a line is of, if it certainly is of one.
#[must_use]
pub fn recognize(line: &str) -> Option<Format> {
    let is = |format: &Format| match read(*format, line) {
        // Any program may print a row of numbers or a heading.
        Some(Reading::Bucket(..)) | None => false,
        Some(_) => true,
    };
    [Format::Cyclictest, Format::Demo].into_iter().find(is)
}

/// The line without terminal sequences and carriage returns.
pub(crate) fn plain(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            if chars.next_if_eq(&'[').is_some() {
                while chars.next().is_some_and(|c| !c.is_ascii_alphabetic()) {}
            }
        } else if !c.is_control() || c == '\t' {
            plain.push(c);
        }
    }
    plain
}

/// Numbers behind labels, in their order.
struct Fields<'a>(&'a str);

impl Fields<'_> {
    fn label(&mut self, label: &str) -> Option<()> {
        self.0 = self.0.trim_start().strip_prefix(label)?;
        Some(())
    }

    /// The number behind `label`, in a field of at least `width` characters.
    fn number(&mut self, label: &str, width: usize) -> Option<u64> {
        self.label(label)?;
        let digits = self.0.trim_start();
        let blanks = self.0.len() - digits.len();
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let number = digits[..end].parse().ok()?;
        self.0 = &digits[end..];
        (blanks + end >= width).then_some(number)
    }

    fn is_empty(&self) -> bool {
        // Blanks up to the next word: those at the end of a long line would be looked at once for each status on it.
        self.0.trim_start().is_empty()
    }
}

/// The status of a thread of any of rt-tests: some have no priority, some no interval.
pub(crate) struct AnyStatus {
    /// The values that all of them have; a missing one is 0.
    pub status: Status,
    /// The thread's id.
    pub tid: u64,
    /// Whether it says a priority.
    pub has_priority: bool,
    /// Whether it says an interval.
    pub has_interval: bool,
}

/// `T: 0 ( 2759) P:80 I:1000 C:   1938 Min:     15 Act:   24 Avg:   33 Max:    1936[ SMI:       3]`, of cyclictest; without
/// `P:` of cyclicdeadline, without `I:` of signaltest.
pub(crate) fn any_status(line: &str) -> Option<AnyStatus> {
    line.match_indices("T:").find_map(|(at, _)| {
        let mut fields = Fields(&line[at..]);
        let thread = fields.number("T:", 2)?;
        // The id of the thread is as wide as it is.
        let tid = fields.number("(", 1)?;
        fields.label(")")?;
        let has = |fields: &Fields, label: &str| fields.0.trim_start().starts_with(label);
        let has_priority = has(&fields, "P:");
        let priority = if has_priority { fields.number("P:", 2)? } else { 0 };
        let has_interval = has(&fields, "I:");
        let interval_us = if has_interval { fields.number("I:", 1)? } else { 0 };
        let cycles = fields.number("C:", 7)?;
        let min = fields.number("Min:", 7)?;
        let act = fields.number("Act:", 5)?;
        let avg = fields.number("Avg:", 5)?;
        let max = fields.number("Max:", 8)?;
        let smi = if fields.is_empty() { None } else { Some(fields.number("SMI:", 8)?) };
        let status = Status {
            thread: thread_number(thread)?,
            priority: u32::try_from(priority).ok().filter(|priority| *priority < 100)?,
            interval_us,
            cycles,
            min,
            act,
            avg,
            max,
            smi,
        };
        let sound = fields.is_empty() && (cycles == 0 || (min <= avg && avg <= max && act <= max));
        // Before its first wake-up a thread's minimum is a placeholder.
        (sound && cycles > 0).then_some(AnyStatus { status, tid, has_priority, has_interval })
    })
}

fn status(line: &str) -> Option<Reading> {
    let any = any_status(line)?;
    (any.has_priority && any.has_interval).then_some(Reading::Status(any.status))
}

/// `       0:       3:      52`
fn verbose(line: &str) -> Option<Reading> {
    let mut fields = Fields(line);
    // The first field has no label to stand behind, whose blanks would be taken for it.
    let blanks = line.len() - line.trim_start().len();
    let thread = fields.number("", 8usize.saturating_sub(blanks))?;
    let cycle = fields.number(":", 8)?;
    let value = fields.number(":", 8)?;
    let thread = thread_number(thread)?;
    fields.is_empty().then_some(Reading::Sample { thread, cycle: Some(cycle), value, smi: None })
}

/// Whether every character of a line stands twice: a cell of Jailhouse that writes both to a UART and to the
/// hypervisor's console, which is the same UART.
#[must_use]
pub fn is_doubled(line: &str) -> bool {
    let bytes: Vec<u8> = line.bytes().filter(|byte| !byte.is_ascii_control()).collect();
    let (pairs, rest) = bytes.as_chunks::<2>();
    let changes = pairs.windows(2).filter(|two| two[0] != two[1]).count();
    rest.is_empty() && changes > 5 && pairs.iter().all(|pair| pair[0] == pair[1])
}

/// `Timer fired, jitter: 252951 ns, min:  60370 ns, max: 264290 ns[, SMIs: 3]`
fn demo(line: &str) -> Option<Reading> {
    line.match_indices("Timer fired, jitter:").find_map(|(at, _)| {
        let mut fields = Fields(&line[at..]);
        let value = fields.number("Timer fired, jitter:", 0)?;
        fields.label("ns,")?;
        let min = fields.number("min:", 0)?;
        fields.label("ns,")?;
        let max = fields.number("max:", 0)?;
        fields.label("ns")?;
        let smi = fields.number(", SMIs:", 0);
        (min <= value && value <= max).then_some(Reading::Sample { thread: 0, cycle: None, value, smi })
    })
}

/// A row of a histogram, its heading, or what stands behind it.
fn histogram(line: &str) -> Option<Reading> {
    let line = line.trim_end();
    if let Some(comment) = line.strip_prefix("# ") {
        if comment == "Histogram" {
            return Some(Reading::Histogram);
        }
        let (name, numbers) = comment.split_once(':')?;
        let (figure, width) = match name {
            "Total" => (Figure::Total, 9),
            "Min Latencies" => (Figure::Min, 5),
            "Avg Latencies" => (Figure::Avg, 5),
            "Max Latencies" => (Figure::Max, 5),
            "Histogram Overflows" => (Figure::Overflows, 5),
            _ => return None,
        };
        return Some(Reading::Figure(figure, numbers_of(numbers, width)?));
    }
    let (value, counts) = line.split_once(' ')?;
    let wide = |text: &str| text.len() >= 6 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !wide(value) {
        return None;
    }
    Some(Reading::Bucket(value.parse().ok()?, numbers_of(counts, 6)?))
}

/// Numbers of at least `width` digits with blanks between them.
fn numbers_of(text: &str, width: usize) -> Option<Vec<u64>> {
    let numbers: Option<Vec<u64>> = text
        .split_whitespace()
        .map(|word| {
            word.parse().ok().filter(|_| word.len() >= width && word.bytes().all(|b| b.is_ascii_digit()))
        })
        .collect();
    numbers.filter(|numbers| (1..=MOST_THREADS as usize + 1).contains(&numbers.len()))
}

fn thread_number(number: u64) -> Option<u32> {
    u32::try_from(number).ok().filter(|thread| *thread < MOST_THREADS)
}

#[cfg(test)]
mod tests;
