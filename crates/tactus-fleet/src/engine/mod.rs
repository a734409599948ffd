//! Engines: one file each, and one word in the table. An engine lists machines, gives one job to each machine, asks
//! how the jobs are, and fetches bundles. It does all of this by its own client, with the user's rights and secrets.

mod ansible;
mod kubernetes;
mod script;
mod slurm;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tactus_system::{Finished, Invocation, System};

use crate::error::FleetError;
use crate::name;
use crate::order::Order;
use crate::pending::JobState;
use crate::row::Row;

/// How long a client may take: one that waits for a server that does not answer is a mistake, too.
const PATIENCE: Duration = Duration::from_secs(600);

/// The seconds of the option `time` where it is not given: a day.
const TIME_S: u32 = 86_400;
/// How much longer than its `time` a job may be under way: its end is seen some time later.
const LATE: Duration = Duration::from_secs(600);

/// Whether something can be started on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// At once.
    Idle,
    /// After what it does now, in the engine's words.
    Busy(String),
    /// Not as it is, and why.
    Away(String),
}

/// A machine that an engine knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Whether something can be started there.
    pub ready: Ready,
}

/// The result of submitting a job to an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// It has it, under this name.
    As(String),
    /// It has not, and why.
    Refused(String),
    /// It has not, because nothing can be started on the machine now, and why.
    Away(String),
}

/// A file of the engine's own kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name, in the directory `objects`.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Something that a user may say of how an engine is used: `--with NAME=VALUE`.
#[derive(Clone, Copy, Debug)]
pub struct OptionEntry {
    /// Its name.
    pub name: &'static str,
    /// Its effect, and its default.
    pub about: &'static str,
}

/// Where an engine works: the fleet's directory, and the machine that has the engine's client.
pub struct Site<'a> {
    /// The fleet's directory; absolute.
    pub dir: PathBuf,
    /// The order of the fleet.
    pub order: &'a Order,
    /// Commands go through it.
    pub system: &'a dyn System,
}

impl Site<'_> {
    /// A file or directory of the fleet.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Its path as a word; directories with names that are no text are refused before.
    fn word(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}

/// An engine.
pub trait Engine {
    /// Its name, on the command line.
    fn name(&self) -> &'static str;
    /// The engine, and the values that `--select` takes.
    fn about(&self) -> &'static str;
    /// The options for its use.
    fn options(&self) -> &'static [OptionEntry];
    /// How often it is asked.
    fn pause(&self) -> Duration;
    /// Whether jobs leave their bundles in the fleet's own directory, so that they are there without being fetched.
    fn shares_files(&self) -> bool {
        false
    }
    /// How long a job may be under way, where only its machine or its node says that it has ended. A silent one must not keep
    /// its place in the wave for ever. `None`: the engine ends jobs itself.
    fn limit(&self, _order: &Order) -> Option<Duration> {
        None
    }
    /// Refuses what cannot be, before anything is written.
    ///
    /// # Errors
    /// With what cannot be, and what would help.
    fn check(&self, site: &Site<'_>) -> Result<(), FleetError>;
    /// The machines of a selection.
    ///
    /// # Errors
    /// Those of its client.
    fn machines(&self, site: &Site<'_>) -> Result<Vec<Machine>, FleetError>;
    /// Its own objects for these machines. Pure.
    fn render(&self, site: &Site<'_>, rows: &[&Row]) -> Vec<File>;
    /// Gives it a job for each of these machines, whose objects are written; what became of each, in their order.
    ///
    /// # Errors
    /// Where its client cannot be had at all.
    fn submit(&self, site: &Site<'_>, rows: &[&Row]) -> Result<Vec<Submitted>, FleetError>;
    /// How the jobs of these machines are, by the key of the machine. One that is not there is not known to the engine.
    ///
    /// # Errors
    /// Those of its client.
    fn jobs(&self, site: &Site<'_>, rows: &[&Row]) -> Result<BTreeMap<String, JobState>, FleetError>;
    /// Brings the bundles of these machines, as far as they exist, to `incoming`: a directory with the key as its
    /// name, or its archive. Returns the obstacles, by the key of the machine.
    ///
    /// # Errors
    /// Those of its client.
    fn fetch(&self, site: &Site<'_>, rows: &[&Row]) -> Result<BTreeMap<String, String>, FleetError>;
}

/// Every engine.
pub static ENGINES: &[&(dyn Engine + Sync)] = &[&slurm::ENTRY, &ansible::ENTRY, &kubernetes::ENTRY];

/// The engine of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static (dyn Engine + Sync)> {
    ENGINES.iter().copied().find(|engine| engine.name() == name)
}

/// Runs a client and has what it printed, if it ended well.
fn client(system: &dyn System, argv: &[String]) -> Result<Finished, FleetError> {
    let finished = ran(system, argv)?;
    if finished.success() { Ok(finished) } else { Err(FleetError::client(argv, &finished.words())) }
}

/// Runs a client, however it ends.
fn ran(system: &dyn System, argv: &[String]) -> Result<Finished, FleetError> {
    let program = argv.first().cloned().unwrap_or_default();
    system.run(&Invocation::new(argv.iter().cloned()).within(PATIENCE)).map_err(|error| {
        FleetError::new(
            format!("{program}: {error}"),
            format!("{program} is the engine's own client: tactus calls it as you would"),
        )
    })
}

/// The seconds of the option `time`; `None` if its value is not valid.
fn time(order: &Order) -> Option<u32> {
    order.option("time").map_or(Some(TIME_S), |word| word.parse::<u32>().ok().filter(|seconds| *seconds > 0))
}

/// The limit of a job by the option `time`.
fn limit(order: &Order) -> Duration {
    Duration::from_secs(time(order).unwrap_or(TIME_S).into()) + LATE
}

/// Refuses a name that the engine's client would take for more than one machine.
fn unusable(machine: &str) -> Option<String> {
    (!name::is_plain(machine)).then(|| {
        format!(
            "{machine:?} is not a name that an engine's client would read as exactly one machine: \
            nothing is started there"
        )
    })
}

/// Refuses values of options that would be more than one word in what is written for the engine.
fn plain_options(order: &Order, known: &[OptionEntry]) -> Result<(), FleetError> {
    for (option, value) in &order.options {
        if !known.iter().any(|entry| entry.name == option) {
            let names: Vec<&str> = known.iter().map(|entry| entry.name).collect();
            return Err(FleetError::new(
                format!("{} has no option `{option}`", order.engine),
                format!("--with takes {}", names.join(", ")),
            ));
        }
        let inner = |c: char| c.is_ascii_alphanumeric() || "_-./:,@+=~ ".contains(c);
        if value.is_empty() || value.starts_with(['-', ' ']) || !value.chars().all(inner) {
            return Err(FleetError::new(
                format!("--with {option}={value:?}: this is not a plain word"),
                "letters, digits, blanks inside and _ - . / : , @ + = ~ are",
            ));
        }
    }
    Ok(())
}

/// A directory whose name clients, scripts and templates take for itself alone.
fn plain_dir(dir: &Path) -> Result<(), FleetError> {
    let text = dir.to_str().unwrap_or("\u{fffd}");
    if text.chars().any(|c| c.is_control() || c == char::REPLACEMENT_CHARACTER || "{}%\"\\'".contains(c)) {
        return Err(FleetError::new(
            format!("{text:?}: engines would read this name as more than a directory"),
            "give --out a name without control characters, quotes, braces, backslashes and %",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_is_found_by_its_name_and_says_what_it_takes() {
        for engine in ENGINES {
            assert_eq!(find(engine.name()).map(Engine::name), Some(engine.name()));
            assert!(engine.about().contains("--select"), "{}", engine.name());
            assert!(engine.options().iter().any(|option| option.name == "program"), "{}", engine.name());
        }
        assert!(find("cron").is_none());
    }

    #[test]
    fn a_job_has_a_limit_where_no_one_but_its_machine_ends_it() {
        let mut order = Order {
            format: crate::order::FORMAT,
            tactus: String::new(),
            id: String::new(),
            started: String::new(),
            engine: String::new(),
            select: String::new(),
            options: BTreeMap::new(),
            plan: String::new(),
            plan_sha256: String::new(),
            arguments: Vec::new(),
            machines: Vec::new(),
        };
        let limits = |order: &Order| {
            ["slurm", "ansible", "kubernetes"].map(|name| find(name).and_then(|engine| engine.limit(order)))
        };
        let day = Duration::from_secs(86_400) + LATE;
        assert_eq!(limits(&order), [None, Some(day), Some(day)]);
        order.options.insert("time".into(), "3".into());
        let short = Duration::from_secs(3) + LATE;
        assert_eq!(limits(&order)[1..], [Some(short), Some(short)]);
        for (word, seconds) in [("3", Some(3)), ("0", None), ("1h", None), ("-1", None)] {
            order.options.insert("time".into(), word.into());
            assert_eq!(time(&order), seconds, "{word}");
        }
    }
}
