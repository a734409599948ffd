//! The host side's job, from its message.

use alloc::string::String;
use serde_json::Value;

use crate::control::Control;

/// The measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// How late the timer's interrupts are.
    Timer,
    /// The cost of operations that exit to the hypervisor.
    Exits,
    /// Nothing: it is there, and sleeps.
    Nothing,
    /// Nothing: it answers an interrupt card, by its handler or by polling.
    Answers {
        /// It polls.
        polls: bool,
    },
}

/// One thing to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The measurement.
    pub measure: Measure,
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
    /// The proof of the instrument; `None`: it is not proven.
    pub control: Option<Control>,
}

impl Job {
    /// Reads a job.
    ///
    /// # Errors
    /// When it is for more than this guest can do; with the reason.
    pub fn of(message: &Value) -> Result<Self, String> {
        let number = |name: &str| message[name].as_u64().unwrap_or(0);
        let activities = message["activities"].as_array().ok_or("the job has no activity")?;
        let activity = match activities.as_slice() {
            [] => &Value::Null,
            [activity] => activity,
            _ => return Err(
                "a guest without an operating system does one thing at a time: it has one CPU and no threads"
                    .into(),
            ),
        };
        let word = |name| word(&activity["what"], name);
        let measure = match (word("what"), word("measure")) {
            _ if activities.is_empty() => Measure::Nothing,
            (Some("Measure"), Some("timer")) => Measure::Timer,
            (Some("Measure"), Some("exits")) => Measure::Exits,
            (Some("Measure"), Some("interrupt")) => {
                Measure::Answers { polls: word("answer") == Some("poll") }
            }
            _ => {
                return Err("a guest without an operating system measures `timer` and `exits`, answers `interrupt`, and makes no load and no fault".into());
            }
        };
        let ns = |text: Option<&str>| text.and_then(|text| text.parse().ok());
        let control = |name| self::word(&message["control"], name);
        Ok(Self {
            measure,
            activity: activity["id"].as_u64().unwrap_or(0),
            duration_ns: number("duration_ns"),
            tick_ns: number("tick_ns").max(1_000_000),
            interval_ns: ns(word("interval_ns"))
                .filter(|ns| *ns >= 1_000)
                .or((measure == Measure::Nothing).then_some(0))
                .ok_or("the interval is below a microsecond")?,
            break_ns: ns(word("break_at")),
            control: match control("what") {
                None | Some("Nothing") => None,
                _ => Some(ns(control("length")).map_or(Control::Hog, Control::Block)),
            },
        })
    }
}

/// A field of a row of words, `name=value`.
fn word<'a>(row: &'a Value, name: &str) -> Option<&'a str> {
    row.as_array()?
        .iter()
        .filter_map(Value::as_str)
        .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(what: &[&str], control: &[&str]) -> Value {
        json!({
            "t": "job", "duration_ns": 10_000_000_000_u64, "tick_ns": 1_000_000_000, "control": control,
            "activities": [{"id": 3, "cpus": "0", "what": what}],
        })
    }

    const TIMER: [&str; 5] =
        ["what=Measure", "measure=timer", "interval_ns=200000", "priority=95", "policy=fifo"];

    #[test]
    fn a_hog_and_a_fault_are_controls_and_nothing_is_not() {
        let control = |row: &[&str]| Job::of(&message(&TIMER, row)).unwrap().control;
        assert_eq!(control(&["what=Hog"]), Some(Control::Hog));
        assert_eq!(
            control(&["what=Fault", "fault=block", "length=4000000"]),
            Some(Control::Block(4_000_000))
        );
        assert_eq!(control(&["what=Nothing"]), None);
        assert_eq!(control(&[]), None);
    }

    #[test]
    fn what_cannot_be_done_here_is_refused() {
        assert_eq!(Job::of(&message(&TIMER, &[])).unwrap().interval_ns, 200_000);
        let exits = ["what=Measure", "measure=exits", "interval_ns=200000"];
        assert_eq!(Job::of(&message(&exits, &[])).unwrap().measure, Measure::Exits);
        let answers = |more| {
            Job::of(&message(&["what=Measure", "measure=interrupt", "interval_ns=1000000", more], &[]))
                .unwrap()
                .measure
        };
        assert_eq!(answers("answer=poll"), Measure::Answers { polls: true });
        assert_eq!(answers("answer=handler"), Measure::Answers { polls: false });
        assert_eq!(answers("spread=3"), Measure::Answers { polls: false });
        let mut left_alone = message(&TIMER, &[]);
        left_alone["activities"] = json!([]);
        assert_eq!(Job::of(&left_alone).unwrap().measure, Measure::Nothing);
        for what in [&["what=Load", "load=cpu"][..], &["what=Measure", "measure=os"], &TIMER[..2], &[]] {
            assert!(Job::of(&message(what, &[])).is_err(), "{what:?}");
        }
        let mut two = message(&TIMER, &[]);
        two["activities"] = json!([{"id": 0}, {"id": 1}]);
        assert!(Job::of(&two).unwrap_err().contains("one thing at a time"));
        assert!(Job::of(&Value::Null).is_err());
    }
}
