//! A line to a place that tactus does not start: a probe at its other end, or another instrument.

mod collect;
mod local;
mod source;
mod translator;
mod transport;

use std::path::Path;
use std::time::Duration;

use tactus_format::lines::Format;
use tactus_model::CpuSet;
use tactus_model::cpus::CpuRequest;
use tactus_model::finding::Role;
use tactus_model::message::Tick;
use tactus_model::plan;
use tactus_model::topology::Topology;
use tactus_system::System;

use crate::support::{self, Tty};
use crate::{BOOT_TIMEOUT, Environment, OptionError, OptionKey, Running, Setting, StartError, Usable};

/// See [`Environment::about`].
pub struct Serial;

/// The entry of the table.
pub static ENTRY: Serial = Serial;

const FORMATS: [&str; 5] = ["auto", "probe", "cyclictest", "gic-demo", "apic-demo"];
const UNITS: [&str; 2] = ["us", "ns"];
/// How long a line whose format is not said may take to show it.
const PATIENCE: Duration = Duration::from_secs(20);

/// The plan's options of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    way: Way,
    carries: Carries,
    unit_ns: u64,
    patience: Option<Duration>,
    cpus: Vec<u32>,
}

/// The ways to open the line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Way {
    Device { path: String, baud: Option<u32> },
    Socket(String),
    Command(String),
}

/// The kind of data that it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carries {
    Unknown,
    Frames,
    Lines(Format),
}

impl Environment for Serial {
    fn kind(&self) -> &'static str {
        "serial"
    }

    fn role(&self) -> Role {
        Role::Host
    }

    fn about(&self) -> &'static str {
        "A line to a place that tactus does not start itself: a serial device, a pseudo-terminal, a socket, \
or the output of a command. At its other end is a probe (`tactus-probe serve DEVICE`), or an instrument that \
writes lines: cyclictest, or the timers of Jailhouse's gic-demo and apic-demo. Use it for an RTOS or any \
hypervisor. Lines of other instruments are read and never answered; their numbers are `imported` evidence, \
which gets no verdict."
    }

    fn options(&self) -> &'static [OptionKey] {
        &[
            OptionKey {
                name: "device",
                about: "a serial device or pseudo-terminal, as /dev/ttyUSB0; default: none",
            },
            OptionKey {
                name: "socket",
                about: "a UNIX socket by its path, or host:port, at which a program listens; default: none",
            },
            OptionKey {
                name: "command",
                about: "a shell's command whose stdout (and stdin, for a probe) is the line; default: none",
            },
            OptionKey { name: "baud", about: "speed of the device, as 115200; default: as it is set" },
            OptionKey {
                name: "format",
                about: "probe, cyclictest, gic-demo, apic-demo or auto; default: auto, which waits for a \
                    line that shows the format",
            },
            OptionKey {
                name: "unit",
                about: "us or ns: of cyclictest's numbers, ns with its `-N`; default: us",
            },
            OptionKey {
                name: BOOT_TIMEOUT,
                about: "how long a probe may take to answer, or a line to show its format, as 60s; default: \
                    20s",
            },
        ]
    }

    fn usable(&self, _system: &dyn System) -> Usable {
        Usable::Yes {
            remark: Some("for the line that `device`, `socket` or `command` names in a plan".into()),
        }
    }

    fn usable_as(&self, spec: &plan::Environment, system: &dyn System) -> Usable {
        let no = |reason: String, remedy: &str| Usable::No { reason, remedy: remedy.into() };
        match Spec::of(spec) {
            Err(error) => no(error.message, &error.hint),
            Ok(Spec { way: Way::Device { path, .. }, .. }) if !system.exists(Path::new(&path)) => no(
                format!("{path} does not exist"),
                "is it plugged in, and its driver loaded? `ls /dev/tty*` lists terminals",
            ),
            Ok(_) => Usable::Yes { remark: None },
        }
    }

    fn check(&self, spec: &plan::Environment, _system: &dyn System) -> Result<(), OptionError> {
        let ways = ["device", "socket", "command"].iter().any(|key| spec.options.contains_key(*key));
        // A line that is not named is this machine's lack, as of a tool that is not installed.
        let named = if ways { Spec::of(spec).map(drop) } else { Spec::rest(spec).map(drop) };
        named.or_else(|error| if error.key.is_empty() { Ok(()) } else { Err(error) })
    }

    fn elsewhere(&self) -> bool {
        true
    }

    /// The CPUs cannot be read before the line is open: assume those that the plan names, else CPU 0.
    fn topology(&self, spec: &plan::Environment, _system: &dyn System) -> Result<Topology, StartError> {
        let online = match &spec.cpus {
            Some(CpuRequest::List(cpus)) => cpus.clone(),
            _ => CpuSet::one(0),
        };
        Ok(Topology {
            allowed: online.clone(),
            cores: online.iter().map(CpuSet::one).collect(),
            preferred: online.clone(),
            online,
            ..Topology::default()
        })
    }

    fn start(&self, setting: &Setting<'_>) -> Result<Box<dyn Running>, StartError> {
        let key = |error: OptionError| StartError { reason: error.message, hint: Some(error.hint) };
        let mut spec = Spec::of(setting.spec).map_err(key)?;
        spec.cpus = setting.layout.inside().iter().collect();
        match (spec.carries, &spec.way) {
            // It begins with the measurement, and not before.
            (Carries::Lines(format), Way::Command(_)) => local::later(setting, &spec, format),
            _ => transport::open(setting, &spec),
        }
    }
}

impl Spec {
    fn of(spec: &plan::Environment) -> Result<Self, OptionError> {
        let mut parsed = Self::rest(spec)?;
        let device = support::text(spec, "device", "a path, as \"/dev/ttyUSB0\"")?;
        let socket = support::text(spec, "socket", "a path, or \"host:port\"")?;
        let command =
            support::text(spec, "command", "a shell's command, as \"cyclictest -p 90 -q -h 400 -D 1m\"")?;
        let baud = support::number(spec, "baud", 50..=4_000_000)?;
        parsed.way = match (device, socket, command) {
            (Some(path), None, None) => Way::Device { path: path.into(), baud },
            (None, Some(address), None) => Way::Socket(address.into()),
            (None, None, Some(command)) => Way::Command(command.into()),
            (None, None, None) => {
                return Err(OptionError {
                    key: String::new(),
                    message: "the plan does not name a line".into(),
                    hint: "add `device`, `socket` or `command`".into(),
                });
            }
            _ => {
                return Err(OptionError {
                    key: if socket.is_some() { "socket".into() } else { "command".into() },
                    message: "`device`, `socket` and `command` each name a line".into(),
                    hint: "name one of them".into(),
                });
            }
        };
        Ok(parsed)
    }

    /// All but the line itself.
    fn rest(spec: &plan::Environment) -> Result<Self, OptionError> {
        support::number(spec, "baud", 50..=4_000_000)?;
        let carries = match support::word(spec, "format", &FORMATS)? {
            None | Some("auto") => Carries::Unknown,
            Some("probe") => Carries::Frames,
            Some("cyclictest") => Carries::Lines(Format::Cyclictest),
            Some(_) => Carries::Lines(Format::Demo),
        };
        let nanoseconds = support::word(spec, "unit", &UNITS)? == Some("ns");
        Ok(Self {
            way: Way::Command(String::new()),
            carries,
            unit_ns: if nanoseconds { 1 } else { 1_000 },
            patience: support::boot_timeout(spec)?,
            cpus: Vec::new(),
        })
    }

    /// The line in words.
    fn from(&self) -> String {
        match &self.way {
            Way::Device { path, .. } => path.clone(),
            Way::Socket(address) => address.clone(),
            Way::Command(command) => format!("`{command}`"),
        }
    }

    /// One unit of a format's numbers, in ns.
    const fn unit(&self, format: Format) -> u64 {
        match format {
            Format::Cyclictest => self.unit_ns,
            Format::Demo => 1,
        }
    }

    fn patience(&self) -> Duration {
        self.patience.unwrap_or(PATIENCE)
    }

    fn open(&self, setting: &Setting<'_>) -> Result<Option<Tty>, StartError> {
        match &self.way {
            Way::Device { path, baud } => Tty::device(setting, Path::new(path), *baud).map(Some),
            Way::Socket(address) => Tty::socket(address, setting.system).map(Some),
            Way::Command(_) => Ok(None),
        }
    }
}

/// The sum of a recorded line's pieces, as one tick of each series. A recording has no times: all of it is one
/// stretch.
pub fn read_all<'a>(format: Format, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Tick> {
    let rules = collect::Rules { activity: 0, cpus: Vec::new(), priority: 0, unit_ns: 1_000 };
    let mut collector = collect::Collector::new(rules);
    let mut splitter = source::Splitter::default();
    for piece in pieces {
        for line in splitter.feed(piece) {
            if let Some(reading) = tactus_format::lines::read(format, &line) {
                collector.take(reading, 0);
            }
        }
    }
    collector.tick(0).into_iter().map(|(tick, _)| tick).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tactus_system::Memory;

    use super::*;

    fn spec(options: Value) -> plan::Environment {
        let Value::Object(options) = options else { panic!("a table") };
        let options = options.into_iter().collect();
        plan::Environment { kind: "serial".into(), options, ..plan::Environment::default() }
    }

    #[test]
    fn a_line_is_named_once_and_its_values_are_checked() {
        let machine = Memory::new().file("/dev/ttyS1", "");
        let yes = |options: Value| matches!(ENTRY.usable_as(&spec(options), &machine), Usable::Yes { .. });
        assert!(yes(json!({"device": "/dev/ttyS1", "baud": 115_200})) && yes(json!({"socket": "plc:4000"})));
        assert!(!yes(json!({})) && !yes(json!({"device": "/dev/ttyUSB7"})));
        for (key, options) in [
            ("socket", json!({"device": "/dev/ttyS1", "socket": "/s"})),
            ("command", json!({"device": "/dev/ttyS1", "command": "cat"})),
            ("baud", json!({"baud": "fast"})),
            ("baud", json!({"device": "/dev/ttyS1", "baud": 1})),
            ("format", json!({"format": "csv"})),
            ("unit", json!({"unit": "ms"})),
            ("boot_timeout", json!({"boot_timeout": 3})),
            ("device", json!({"device": 3})),
        ] {
            let error = ENTRY.check(&spec(options.clone()), &machine).expect_err(key);
            assert_eq!(error.key, key, "{options}");
            assert!(!error.hint.is_empty());
        }
    }

    #[test]
    fn its_cpus_are_those_that_the_plan_names() {
        let mut named = spec(json!({"socket": "/s"}));
        assert_eq!(ENTRY.topology(&named, &Memory::new()).unwrap().online.to_string(), "0");
        named.cpus = Some(CpuRequest::List("4-5".parse().unwrap()));
        assert_eq!(ENTRY.topology(&named, &Memory::new()).unwrap().measuring().to_string(), "4,5");
    }
}
