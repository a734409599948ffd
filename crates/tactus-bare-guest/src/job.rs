//! What the host side asks for, out of its message.

use alloc::string::String;
use serde_json::Value;

/// One thing to measure.
#[derive(Clone, Default)]
pub struct Job {
    /// Number of the activity.
    pub activity: u64,
    /// How long, in ns.
    pub duration_ns: u64,
    /// How often to report, in ns.
    pub tick_ns: u64,
    /// Time between two interrupts, in ns.
    pub interval_ns: u64,
    /// A latency that ends the job, in ns.
    pub break_ns: Option<u64>,
    /// How long the block is that proves the instrument, in ns; none: nothing is to be proven.
    pub control_ns: Option<u64>,
}

impl Job {
    /// Reads a job.
    ///
    /// # Errors
    /// When it is for more than this guest can do; with the reason.
    pub fn of(message: &Value) -> Result<Self, String> {
        let number = |name: &str| message[name].as_u64().unwrap_or(0);
        let activities = message["activities"].as_array().ok_or("the job has no activity")?;
        let [activity] = activities.as_slice() else {
            return Err("a guest without an operating system does one thing at a time: it has one CPU and no threads".into());
        };
        let word = |name| word(&activity["what"], name);
        if word("what") != Some("Measure") || word("measure") != Some("timer") {
            return Err("a guest without an operating system measures `timer`, and makes no load and no fault".into());
        }
        let ns = |text: Option<&str>| text.and_then(|text| text.parse().ok());
        Ok(Self {
            activity: activity["id"].as_u64().unwrap_or(0),
            duration_ns: number("duration_ns"),
            tick_ns: number("tick_ns").max(1_000_000),
            interval_ns: ns(word("interval_ns")).filter(|ns| *ns >= 1_000).ok_or("the interval is below a microsecond")?,
            break_ns: ns(word("break_at")),
            control_ns: ns(self::word(&message["control"], "length")).or_else(|| ns(self::word(&message["control"], "length_ns"))),
        })
    }
}

/// A field of a row of words, `name=value`.
fn word<'a>(row: &'a Value, name: &str) -> Option<&'a str> {
    row.as_array()?.iter().filter_map(Value::as_str).find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}
