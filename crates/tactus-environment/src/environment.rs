//! An environment: anything that can start the probe and carry its byte stream.

use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use tactus_model::catalogue::measure::AnswerBy;
use tactus_model::facts::Facts;
use tactus_model::finding::Role;
use tactus_model::message::{Note, What};
use tactus_model::plan::{self, PathKind};
use tactus_model::topology::Topology;
use tactus_model::{CpuSet, Evidence};
use tactus_system::System;
use tactus_system::clock_page::ClockPage;
use tactus_system::guardian::Guardian;

use crate::ConsoleFile;
use crate::attachment::{Attachment, TakenCard};

/// Whether an environment can be used on this machine now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Usable {
    /// Yes; perhaps with a remark (emulated, for instance).
    Yes {
        /// A remark for the user.
        remark: Option<String>,
    },
    /// No.
    No {
        /// Why not.
        reason: String,
        /// The remedy.
        remedy: String,
    },
}

/// Begins the remark on an environment whose processor is emulated.
pub(crate) const EMULATED: &str = "emulated (TCG)";

impl Usable {
    /// Whether its processor would be emulated.
    #[must_use]
    pub fn is_emulated(&self) -> bool {
        matches!(self, Self::Yes { remark: Some(remark) } if remark.starts_with(EMULATED))
    }
}

/// A key of an environment's table that only its kind has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionKey {
    /// The key.
    pub name: &'static str,
    /// The key's meaning, and its default.
    pub about: &'static str,
}

/// The key that says how long an environment may take to answer.
pub const BOOT_TIMEOUT: &str = "boot_timeout";

/// A key of a plan's environment table that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct OptionError {
    /// The key.
    pub key: String,
    /// The problem.
    pub message: String,
    /// The correct form.
    pub hint: String,
}

/// Why an environment did not come up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct StartError {
    /// The failure, with the words of the tool that failed.
    pub reason: String,
    /// A remedy for the user.
    pub hint: Option<String>,
}

impl From<OptionError> for StartError {
    fn from(error: OptionError) -> Self {
        Self { reason: error.message, hint: Some(error.hint) }
    }
}

/// How the CPUs inside an environment relate to those of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// For each CPU as seen inside, the CPU of the machine it runs on; rising by the inside number.
    pub cpus: Vec<(u32, u32)>,
    /// CPUs to measure on when the plan does not say, as seen inside.
    pub measuring: CpuSet,
}

impl Layout {
    /// The CPUs as seen inside.
    #[must_use]
    pub fn inside(&self) -> CpuSet {
        self.cpus.iter().map(|(inside, _)| *inside).collect()
    }

    /// The same CPUs on those that the CPUs around it are in turn.
    #[must_use]
    pub fn through(&self, around: &Self) -> Self {
        let outer =
            |cpu: u32| around.cpus.iter().find(|(inside, _)| *inside == cpu).map(|(_, outside)| *outside);
        let cpus = self.cpus.iter().filter_map(|(inside, middle)| Some((*inside, outer(*middle)?))).collect();
        Self { cpus, measuring: self.measuring.clone() }
    }

    /// The machine's CPUs that it uses.
    #[must_use]
    pub fn outside(&self) -> CpuSet {
        self.cpus.iter().map(|(_, outside)| *outside).collect()
    }
}

/// The input of an environment's start.
pub struct Setting<'a> {
    /// The machine.
    pub system: &'a dyn System,
    /// Takes back whatever is changed.
    pub guardian: &'a Guardian,
    /// The plan's name for it.
    pub name: &'a str,
    /// The plan's table for it.
    pub spec: &'a plan::Environment,
    /// Its CPUs.
    pub layout: &'a Layout,
    /// CPUs of the machine for everything but the measurement.
    pub housekeeping: CpuSet,
    /// CPUs inside on which something is measured in this scenario.
    pub measured: CpuSet,
    /// A private directory of this run and environment, which exists and is removed afterwards.
    pub workspace: &'a Path,
    /// Where its console is to be kept.
    pub console: ConsoleFile,
    /// How long it may take until the probe's first word.
    pub patience: Duration,
    /// Its place on a network path.
    pub network: Option<Attachment>,
    /// The interrupt card that it takes.
    pub card: Option<TakenCard>,
}

/// The probe's byte stream.
pub struct Stream {
    /// From the probe.
    pub reader: Box<dyn Read + Send>,
    /// To the probe.
    pub writer: Box<dyn Write + Send>,
}

/// A kind of environment.
pub trait Environment {
    /// The word of the plan.
    fn kind(&self) -> &'static str;

    /// The kind in a paragraph, for `tactus explain` and the book.
    fn about(&self) -> &'static str;

    /// Keys of its table beside `kind`, `cpus`, `inside` and `attach`.
    fn options(&self) -> &'static [OptionKey] {
        &[]
    }

    /// Whether its table may have this key.
    fn has_option(&self, key: &str) -> bool {
        self.options().iter().any(|option| option.name == key)
    }

    /// Whether another environment can lie inside it.
    fn can_nest(&self) -> bool {
        false
    }

    /// Whether it can lie inside another one: it starts by its [`Setting`]'s system alone.
    fn can_lie_inside(&self) -> bool {
        false
    }

    /// Programs of this machine that it needs where it lies, as far as they are installed: they are put into
    /// an outer environment that is made of this machine's files.
    fn programs(&self, _spec: &plan::Environment, _system: &dyn System) -> Vec<String> {
        Vec::new()
    }

    /// Whether it can be used on this machine now.
    fn usable(&self, system: &dyn System) -> Usable;

    /// Whether it can be used as the plan describes it: the plan may bring what the machine lacks (a
    /// kernel by its path), or ask for what it has not.
    fn usable_as(&self, _spec: &plan::Environment, system: &dyn System) -> Usable {
        self.usable(system)
    }

    /// Checks the values of this kind's keys (unknown keys have been refused before).
    ///
    /// # Errors
    /// The first key that is wrong.
    fn check(&self, _spec: &plan::Environment, _system: &dyn System) -> Result<(), OptionError> {
        Ok(())
    }

    /// Whether an operating system is in it: files, programs, settings, and a probe that does all that a probe does.
    fn has_system(&self) -> bool {
        true
    }

    /// Why no environment of this kind can do this; `None` if some can.
    fn refuses(&self, _what: &What) -> Option<String> {
        None
    }

    /// Whether it can be at the near end of a path of this kind.
    fn can_join(&self, _path: PathKind) -> bool {
        false
    }

    /// Whether it can take an interrupt card, and answer it so.
    fn answers_card(&self, _by: AnswerBy) -> bool {
        false
    }

    /// Why one of this table cannot answer a card so on this machine, and the remedy; `None` if it can.
    fn obstacle_to_answer(
        &self,
        _by: AnswerBy,
        _spec: &plan::Environment,
        _system: &dyn System,
    ) -> Option<String> {
        None
    }

    /// Whether one of this table has PCI devices that a measurement may drive.
    fn has_devices(&self, _spec: &plan::Environment) -> bool {
        false
    }

    /// Whether its CPUs are numbered from 0 inside, as in a virtual machine, instead of as the machine numbers them.
    fn numbers_cpus(&self) -> bool {
        false
    }

    /// Whether the CPUs that it gets are gone from this machine as long as it is up (a partition): nothing else can
    /// run on them then.
    fn takes_cpus(&self) -> bool {
        false
    }

    /// Something of this kind that now holds some of these CPUs, in words, and how to give them back.
    fn owner(&self, _cpus: &CpuSet, _system: &dyn System) -> Option<String> {
        None
    }

    /// Whether the environment is on another machine, with other CPUs than this machine's.
    fn elsewhere(&self) -> bool {
        false
    }

    /// The CPUs of the other machine, for an environment that lies [`Environment::elsewhere`].
    ///
    /// # Errors
    /// When it cannot be asked.
    fn topology(&self, _spec: &plan::Environment, _system: &dyn System) -> Result<Topology, StartError> {
        Ok(Topology::default())
    }

    /// The part that it plays in an audit.
    fn role(&self) -> Role {
        if self.numbers_cpus() { Role::Guest } else { Role::Container }
    }

    /// How its CPUs map to the machine's when it gets `cpus` of them. `chosen`: the plan named these CPUs itself. A
    /// virtual machine uses its CPU 0 for housekeeping and measures on the others. Any other environment measures on
    /// the CPUs that the plan named, else on the machine's measuring CPUs.
    fn layout(&self, cpus: &CpuSet, chosen: bool, machine: &Topology) -> Layout {
        if self.numbers_cpus() {
            let cpus: Vec<(u32, u32)> = (0..).zip(cpus.iter()).collect();
            let from = usize::from(cpus.len() > 1);
            let measuring = cpus[from..].iter().map(|(inside, _)| *inside).collect();
            return Layout { cpus, measuring };
        }
        let best = cpus.and(&machine.measuring());
        let measuring = if chosen || best.is_empty() { cpus.clone() } else { best };
        Layout { cpus: cpus.iter().map(|cpu| (cpu, cpu)).collect(), measuring }
    }

    /// Whether it can attach to a running one, which the plan's `attach` names.
    fn can_attach(&self) -> bool {
        false
    }

    /// How the CPUs of the running environment that the plan names map to the machine's: tactus reads the placement
    /// and does not choose it.
    ///
    /// # Errors
    /// When it does not exist, does not run, or cannot be attached to.
    fn attached(
        &self,
        _spec: &plan::Environment,
        _system: &dyn System,
        _machine: &Topology,
    ) -> Result<Layout, StartError> {
        Err(StartError {
            reason: format!("a running environment of kind {} cannot be attached to", self.kind()),
            hint: Some("leave out `attach`".into()),
        })
    }

    /// Starts it with the probe in it, or attaches to a running one and puts the probe in. Returns
    /// as soon as the byte stream can be read; the probe's first word is awaited by the caller.
    ///
    /// # Errors
    /// When it does not come up.
    fn start(&self, setting: &Setting<'_>) -> Result<Box<dyn Running>, StartError>;
}

/// An environment that is up. Dropping it stops it.
pub trait Running: Send {
    /// The probe's byte stream; once.
    fn take_stream(&mut self) -> Option<Stream>;

    /// After the probe's first word, before any measurement: places threads, locks memory. The notes
    /// say what was done and what could not be.
    ///
    /// # Errors
    /// When the environment is of no use as it is.
    fn after_hello(&mut self) -> Result<Vec<Note>, StartError> {
        Ok(Vec::new())
    }

    /// A measurement is about to begin in it: the environment reads the counters that lie outside of it.
    fn measuring(&mut self) {}

    /// The measurement has ended. The notes say what was counted outside meanwhile.
    fn measured(&mut self) -> Vec<Note> {
        Vec::new()
    }

    /// The threads of this machine that run its virtual CPUs: the CPU's number inside, the thread's id.
    /// Empty where it has none, or they are not known.
    fn vcpus(&mut self) -> Vec<(u32, u32)> {
        Vec::new()
    }

    /// The page of memory in which it shows its clock, where it has one.
    fn clock_page(&mut self) -> Option<&mut ClockPage> {
        None
    }

    /// The evidence that its numbers have, given the facts of the environment.
    fn evidence(&self, facts: &Facts) -> Evidence {
        facts.evidence()
    }

    /// How many bytes a second its stream carries, where that is so few that the probe must send less.
    fn budget(&self) -> Option<u64> {
        None
    }

    /// Whether anything that is said reaches its probe; else it is started with all that it is to hear.
    fn hears(&self) -> bool {
        true
    }

    /// Whether its runtime reports it as paused: then it is silent, but alive. `Some` names the runtime; `None`: not
    /// paused, or unknown.
    fn paused(&mut self) -> Option<&'static str> {
        None
    }

    /// Why the stream ended when it should not have: exit status, the tool's own words, the last
    /// lines of the console.
    fn last_words(&mut self) -> Option<String>;

    /// Ends it and takes back what it changed. The probe has been told to quit, if it could hear.
    fn stop(&mut self);
}
