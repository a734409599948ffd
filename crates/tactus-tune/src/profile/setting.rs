//! The parts of a profile.

use tactus_model::change::Form;

/// A profile: its own settings, and its parent's before them.
#[derive(Debug)]
pub struct Profile {
    /// Its name, as TuneD has it.
    pub name: &'static str,
    /// The purpose of the profile.
    pub summary: &'static str,
    /// The profile whose settings it begins with.
    pub parent: Option<&'static Profile>,
    /// Its own settings.
    pub settings: &'static [Setting],
    /// Audit checks whose changes tactus adds for this purpose, beyond TuneD.
    pub beyond: &'static [&'static str],
    /// For the inside of a virtual machine.
    pub guest: bool,
    /// For a machine that carries virtual machines.
    pub host: bool,
}

impl Profile {
    /// Its settings with those it inherits, the latter first; of two for the same thing the later.
    #[must_use]
    pub fn all(&self) -> Vec<Setting> {
        let mut all = self.parent.map(Self::all).unwrap_or_default();
        for setting in self.settings {
            match all.iter_mut().find(|other| other.what == setting.what) {
                Some(other) => *other = *setting,
                None => all.push(*setting),
            }
        }
        all
    }
}

/// One setting of a profile.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The thing that is set.
    pub what: What,
    /// To what.
    pub value: Value,
    /// The audit check that it answers; empty: none, and TuneD's own word names it.
    pub check: &'static str,
}

/// The thing that a setting sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A file, or all files of a pattern: each `*` stands for part of one name.
    File(&'static str, Form),
    /// A parameter of the kernel's command line.
    Kernel(&'static str),
    /// A parameter that a module takes when it is loaded.
    Module(&'static str, &'static str),
    /// Policy and priority of the kernel's threads whose names begin so.
    Group(&'static str),
    /// Where device interrupts may arrive, and new ones will.
    Interrupts,
    /// Where threads may run that are pinned nowhere.
    Threads,
    /// Whether a service runs, where there is one.
    Service(&'static str),
    /// A setting of the service manager or of a unit: unit, section, key.
    DropIn(&'static str, &'static str, &'static str),
}

/// To what a setting is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Always the same.
    Is(&'static str),
    /// The isolated CPUs as a cpulist, in a text: `{}` stands for them.
    Isolated(&'static str),
    /// The housekeeping CPUs as a cpulist.
    Housekeeping,
    /// The housekeeping CPUs as a mask.
    HousekeepingMask,
    /// The exit latency of the first idle state that is not polling, in microseconds; else this.
    /// TuneD's `cstate.id_no_zero:1|3`.
    IdleLatency(&'static str),
    /// Only on processors of this maker.
    OnlyOn(&'static str, &'static str),
    /// Only on x86.
    OnX86(&'static str),
}

impl Setting {
    /// A setting that answers a check.
    pub(super) const fn new(what: What, value: Value, check: &'static str) -> Self {
        Self { what, value, check }
    }
}

/// A file with a fixed value.
pub(super) const fn file(
    path: &'static str,
    form: Form,
    value: &'static str,
    check: &'static str,
) -> Setting {
    Setting::new(What::File(path, form), Value::Is(value), check)
}

/// A kernel parameter.
pub(super) const fn kernel(parameter: &'static str, value: Value, check: &'static str) -> Setting {
    Setting::new(What::Kernel(parameter), value, check)
}
