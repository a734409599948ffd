//! Facts of a system: of this machine, or of an environment that is started to be looked at.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::time::Duration;

use tactus_audit::role_in;
use tactus_bundle::limits;
use tactus_environment as environment;
use tactus_model::catalogue::Measure;
use tactus_model::facts::Facts;
use tactus_model::finding::Role;
use tactus_model::plan::{Environment, Plan, Scenario};
use tactus_model::{CpuSet, Nanos};
use tactus_run::plan::{Choices, Source};
use tactus_run::{Interrupt, ProbeFactsError, probe_facts};
use tactus_system::{Real, System, guardian, topology};

use super::execute::prepare;
use crate::exit::{CACHE_HINT, Failure};
use crate::say::{say, say_note};

/// A system whose facts are known.
pub struct Seen {
    /// The environment's name.
    pub environment: String,
    /// The part that it plays.
    pub role: Role,
    /// Its facts.
    pub facts: Facts,
    /// The same a moment later.
    pub later: Option<Facts>,
    /// Those of the machine that carries it.
    pub carrier: Option<Facts>,
    /// Whether tactus starts it.
    pub started: bool,
    /// Whether it is the machine that tactus ran on, or the one of a file: an attached guest and a machine behind ssh are
    /// not.
    pub is_host: bool,
    /// CPUs for real-time work that a run was told; `None`: it was told none.
    pub asked: Option<CpuSet>,
}

/// Between two readings: what only shows by its change (stolen time, interrupts of the firmware)
/// needs some time to change.
const PAUSE: Duration = Duration::from_secs(1);

/// The facts of a file, as a bundle keeps them in `facts/`.
pub fn of_file(path: &Path) -> Result<Facts, Failure> {
    let failure = |error: &dyn Display| {
        Failure::say(
            format!("{}: {error}", path.display()),
            "name a bundle that measured the host, or a file of facts like those in facts/ of a bundle",
        )
    };
    let bytes = Real.read_regular(path, limits::FACTS).map_err(|error| failure(&error))?;
    serde_json::from_slice(&bytes).map_err(|error| failure(&error))
}

/// The facts of this machine, looked at once.
pub fn now() -> Result<Facts, Failure> {
    facts()
}

fn facts() -> Result<Facts, Failure> {
    tactus_system::facts(&Real, &topology(&Real), std::process::id()).map_err(|error: io::Error| {
        Failure::new(error, format!("tactus writes the probe to its cache: {CACHE_HINT}"))
    })
}

/// This machine; looked at twice, a moment apart, where what is asked shows only by its change.
pub fn here(twice: bool) -> Result<Seen, Failure> {
    let first = facts()?;
    let later = if twice {
        std::thread::sleep(PAUSE);
        Some(facts()?)
    } else {
        None
    };
    Ok(Seen {
        environment: "host".into(),
        role: Role::Host,
        facts: first,
        later,
        carrier: None,
        started: false,
        is_host: true,
        asked: None,
    })
}

/// An environment that is started, looked at and ended.
pub fn inside(name: &str, spec: &Environment) -> Result<Seen, Failure> {
    let kind = spec.kind.as_str();
    let Some(known) = environment::find(kind) else {
        return Err(Failure::say(
            format!("there is no kind of environment `{kind}`"),
            "`tactus environments` lists them",
        ));
    };
    if kind == "host" {
        return here(true);
    }
    let resolved = prepare(&plan(name, spec), &Source::new("the command line", ""), &Choices::default())?;
    let interrupt = Interrupt::listen()?;
    say(format_args!("examining {name} ..."));
    let (facts, notes) = probe_facts(&resolved, &Real, &interrupt);
    for note in notes {
        say_note(name, &note);
    }
    let facts = facts.map_err(|error| {
        let error = match error {
            ProbeFactsError::Guardian(error) if guardian::has_gone(&error) => {
                return Failure::without_guardian(error);
            }
            error => error,
        };
        let hint = match &error {
            ProbeFactsError::NotUp(_) => {
                "`tactus environments` lists what is usable here, and how to make the rest usable"
            }
            ProbeFactsError::Guardian(_) => {
                "tactus starts nothing without its guardian, the process that reverts changes if tactus \
                 dies: set TACTUS_CACHE_DIR to a directory of yours"
            }
            ProbeFactsError::Run(_) | ProbeFactsError::Interrupted => "nothing was changed",
        };
        Failure::new(anyhow::anyhow!("{name} could not be examined: {error}"), hint)
    })?;
    let carrier = Some(self::facts()?);
    let started = known.role() != Role::Host && spec.attach.is_none();
    let role = role_in(known.role(), &facts);
    Ok(Seen {
        environment: name.into(),
        role,
        facts,
        later: None,
        carrier,
        started,
        is_host: false,
        asked: None,
    })
}

/// The environment with what the command line says further of it.
pub fn described(mut environment: Environment, kernel: Option<&str>, cmdline: Option<&str>) -> Environment {
    for (key, value) in [("kernel", kernel), ("cmdline", cmdline)] {
        if let Some(value) = value {
            environment.options.insert(key.into(), value.into());
        }
    }
    environment
}

/// A plan whose first scenario is in that environment; it is never measured.
fn plan(name: &str, spec: &Environment) -> Plan {
    let scenario = Scenario {
        name: Some(format!("a look at {name}")),
        environment: Some(name.into()),
        measurement: Some(Measure::Timer(tactus_model::catalogue::measure::Timer::default())),
        duration: Some(Nanos::from_secs(1)),
        ..Scenario::default()
    };
    Plan {
        name: "look".into(),
        environment: BTreeMap::from([(name.to_owned(), spec.clone())]),
        scenario: vec![scenario],
        ..Plan::default()
    }
}
