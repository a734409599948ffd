//! Activities as rows of words, for the way to a probe: each table in JSON would cost a small program some
//! six kilobytes.
//!
//! A row is `measure`, `load` or `fault`, the kind, and `key=value` for each key that is given.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    Block, BlockWay, Cache, Command, Cpu, Disk, Fault, Hog, HoldBy, HoldVcpu, Load, Measure, Memory, Network,
    Off, Os, Overcommit, Policy, Scheduler, Spin, Timer,
};
use crate::control::ControlBy;
use crate::duration::Nanos;
use crate::message::What;
use crate::size::Bytes;

/// The tables of a family with their keys. A key that is not named here does not reach a probe: the
/// compiler sees to it.
macro_rules! tables {
    ($put:ident $take:ident $family:ident: $($kind:literal $variant:ident($table:ident) { $($field:ident),* })+) => {
        fn $put(what: &$family, words: &mut Vec<String>) {
            match what {
                $($family::$variant($table { $($field),* }) => { $($field.put(stringify!($field), words);)* })+
            }
        }

        fn $take(kind: &str, words: &[String]) -> Option<$family> {
            match kind {
                $($kind => Some($family::$variant($table {
                    $($field: Field::take(stringify!($field), words)?),*
                })),)+
                _ => None,
            }
        }
    };
}

tables! { put_measure take_measure Measure:
    "timer" Timer(Timer) { threads, break_at }
    "spin" Spin(Spin) { busy }
    "os" Os(Os) { }
}

tables! { put_load take_load Load:
    "scheduler" Scheduler(Scheduler) { groups, pairs, size, pipes }
    "cpu" Cpu(Cpu) { busy }
    "cache" Cache(Cache) { workers, bytes, blocks }
    "memory" Memory(Memory) { bytes }
    "disk" Disk(Disk) { directory, bytes }
    "network" Network(Network) { bytes }
    "command" Command(Command) { run }
}

tables! { put_fault take_fault Fault:
    "hog" Hog(Hog) { length, every }
    "block" Block(Block) { length, every, emulated, off, way }
    "overcommit" Overcommit(Overcommit) { threads, length, every }
    "hold-vcpu" HoldVcpu(HoldVcpu) { length, every, by }
}

/// A value of a key.
trait Field: Sized {
    fn put(&self, key: &str, words: &mut Vec<String>);
    /// `None`: it is missing, or no value.
    fn take(key: &str, words: &[String]) -> Option<Self>;
}

fn find<'a>(key: &str, words: &'a [String]) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

fn push(key: &str, value: &str, words: &mut Vec<String>) {
    let mut word = String::from(key);
    word.push('=');
    word.push_str(value);
    words.push(word);
}

fn number(key: &str, words: &[String]) -> Option<u64> {
    find(key, words)?.parse().ok()
}

macro_rules! numbers {
    ($($name:ident: $from:expr, $to:expr;)+) => { $(impl Field for $name {
        fn put(&self, key: &str, words: &mut Vec<String>) {
            let number: u64 = ($from)(*self);
            push(key, &number.to_string(), words);
        }

        fn take(key: &str, words: &[String]) -> Option<Self> {
            ($to)(number(key, words)?)
        }
    })+ };
}

numbers! {
    Nanos: |ns: Nanos| ns.0, |n| Some(Nanos(n));
    Bytes: |bytes: Bytes| bytes.0, |n| Some(Bytes(n));
    u32: u64::from, |n: u64| u32::try_from(n).ok();
    bool: u64::from, |n| Some(n == 1);
}

macro_rules! choices {
    ($($name:ident { $($variant:ident: $word:literal),+ })+) => { $(impl Field for $name {
        fn put(&self, key: &str, words: &mut Vec<String>) {
            push(key, match self { $(Self::$variant => $word),+ }, words);
        }

        fn take(key: &str, words: &[String]) -> Option<Self> {
            match find(key, words)? {
                $($word => Some(Self::$variant),)+
                _ => None,
            }
        }
    })+ };
}

choices! {
    Policy { Fifo: "fifo", Rr: "rr", Deadline: "deadline", Other: "other" }
    Off { Interrupts: "interrupts", Preemption: "preemption" }
    BlockWay { Blocksys: "blocksys", Hwlat: "hwlat", Osnoise: "osnoise", PreemptirqDelay: "preemptirq-delay" }
    HoldBy { Fifo: "fifo", Ptrace: "ptrace" }
}

impl Field for String {
    fn put(&self, key: &str, words: &mut Vec<String>) {
        push(key, self, words);
    }

    fn take(key: &str, words: &[String]) -> Option<Self> {
        find(key, words).map(str::to_owned)
    }
}

impl Field for Vec<String> {
    fn put(&self, key: &str, words: &mut Vec<String>) {
        for value in self {
            push(key, value, words);
        }
    }

    fn take(key: &str, words: &[String]) -> Option<Self> {
        let values = words.iter().filter_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        Some(values.map(str::to_owned).collect())
    }
}

impl<T: Field> Field for Option<T> {
    fn put(&self, key: &str, words: &mut Vec<String>) {
        if let Some(value) = self {
            value.put(key, words);
        }
    }

    fn take(key: &str, words: &[String]) -> Option<Self> {
        match find(key, words) {
            None => Some(None),
            Some(_) => T::take(key, words).map(Some),
        }
    }
}

/// The row of what is to be done.
fn row(what: &What) -> Vec<String> {
    let mut words = Vec::new();
    match what {
        What::Measure { measure, interval_ns, priority, policy } => {
            words.extend(["measure".into(), measure.kind().into()]);
            put_measure(measure, &mut words);
            Nanos(*interval_ns).put("interval_ns", &mut words);
            priority.put("priority", &mut words);
            policy.put("policy", &mut words);
        }
        What::Load(load) => {
            words.extend(["load".into(), load.kind().into()]);
            put_load(load, &mut words);
        }
        What::Fault(fault) => {
            words.extend(["fault".into(), fault.kind().into()]);
            put_fault(fault, &mut words);
        }
    }
    words
}

/// What a row says; `None` where it says nothing that is known here.
fn what(row: &[String]) -> Option<What> {
    let [family, kind, words @ ..] = row else { return None };
    match family.as_str() {
        "measure" => Some(What::Measure {
            measure: take_measure(kind, words)?,
            interval_ns: number("interval_ns", words)?,
            priority: Field::take("priority", words)?,
            policy: Field::take("policy", words)?,
        }),
        "load" => take_load(kind, words).map(What::Load),
        "fault" => take_fault(kind, words).map(What::Fault),
        _ => None,
    }
}

/// For `#[serde(with)]`.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(what: &What, serializer: S) -> Result<S::Ok, S::Error> {
    row(what).serialize(serializer)
}

/// For `#[serde(with)]`.
///
/// # Errors
/// When the row is no activity that is known here.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<What, D::Error> {
    what(&Vec::<String>::deserialize(deserializer)?).ok_or_else(|| D::Error::custom("no activity"))
}

/// For `#[serde(with)]`: what proves the instrument.
pub mod control {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{ControlBy, What, row, what};

    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(by: &ControlBy, serializer: S) -> Result<S::Ok, S::Error> {
        let words = match by {
            ControlBy::Fault(fault) => row(&What::Fault(fault.clone())),
            other => vec![other.kind().to_owned()],
        };
        words.serialize(serializer)
    }

    /// # Errors
    /// When the row is no control that is known here.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ControlBy, D::Error> {
        let words = Vec::<String>::deserialize(deserializer)?;
        match words.first().map(String::as_str) {
            Some("nothing") => Ok(ControlBy::Nothing),
            Some("hog") => Ok(ControlBy::Hog),
            _ => match what(&words) {
                Some(What::Fault(fault)) => Ok(ControlBy::Fault(fault)),
                _ => Err(D::Error::custom("no control")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> What {
        What::Load(serde_json::from_str(text).unwrap())
    }

    fn fault(text: &str) -> What {
        What::Fault(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn a_row_says_all_that_its_table_said() {
        let timer = Timer { threads: Some(12), break_at: Some(Nanos(5)) };
        let measure = What::Measure {
            measure: Measure::Timer(timer),
            interval_ns: 1_000,
            priority: 99,
            policy: Policy::Rr,
        };
        for what_is in [
            measure,
            load(r#"{"kind":"scheduler","groups":3,"pipes":true}"#),
            load(r#"{"kind":"cpu","busy":50}"#),
            load(r#"{"kind":"cache","workers":2,"bytes":"512KiB","blocks":32}"#),
            load(r#"{"kind":"memory"}"#),
            load(r#"{"kind":"disk","directory":"/var/tmp/a=b","bytes":"1MiB"}"#),
            load(r#"{"kind":"network","bytes":"1KiB"}"#),
            load(r#"{"kind":"command","run":["stress-ng","--malloc=1","", "run=x"]}"#),
            fault(r#"{"kind":"hog","length":"1ms","every":"1s"}"#),
            fault(
                r#"{"kind":"block","length":"4ms","every":"1s","emulated":"50ms","off":"preemption","way":"hwlat"}"#,
            ),
            fault(r#"{"kind":"overcommit","threads":12,"length":"1ms","every":"10ms"}"#),
            fault(r#"{"kind":"hold-vcpu","length":"50ms","every":"1s","by":"ptrace"}"#),
        ] {
            assert_eq!(what(&row(&what_is)), Some(what_is));
        }
    }

    #[test]
    fn a_row_that_is_cut_or_wrong_is_none() {
        let good = row(&fault(r#"{"kind":"hog","length":"1ms","every":"1s"}"#));
        for length in 0..good.len() {
            assert_eq!(what(&good[..length]), None);
        }
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(what(&words(&["fault", "flood", "length=1"])), None);
        assert_eq!(what(&words(&["fault", "hog", "length=1", "every=x"])), None);
        assert_eq!(what(&words(&["load", "cpu", "busy=99999999999"])), None);
    }
}
