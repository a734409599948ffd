//! Machines for the tests of the generators, written by hand from the kernel's formats.

use tactus_audit::{Intent, Subject};
use tactus_model::change::{Change, Effect, Target};
use tactus_model::facts::Facts;
use tactus_model::finding::Role;

use crate::plan::{Choice, Plan, Withheld};
use crate::profile;

use super::{GenerateError, GenerateRequest, Generator, GuestOptions, Output};

/// A machine.
#[derive(Clone)]
pub struct Machine {
    facts: Facts,
    intent: Intent,
    /// The changes of the plan.
    pub changes: Vec<Change>,
    /// The changes that it leaves out.
    pub withheld: Vec<Withheld>,
    /// The user's options.
    pub options: GuestOptions,
    profile: &'static str,
}

pub fn machine(machine: &str, vendor: &str) -> Machine {
    let mut facts = Facts::default();
    facts.keep("uname:machine", machine);
    if machine == "aarch64" {
        facts.keep("/proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n");
    } else {
        facts.keep(
            "/proc/cpuinfo",
            format!("vendor_id\t: {vendor}\nflags\t\t: fpu pdpe1gb tsc_deadline_timer\n"),
        );
    }
    Machine {
        facts,
        intent: Intent::default(),
        changes: Vec::new(),
        withheld: Vec::new(),
        options: GuestOptions::default(),
        profile: "realtime-virtual-host",
    }
}

/// The three machines of the snapshots: Intel with eight CPUs and no SMT, AMD with SMT and two nodes,
/// and an arm64 with eight CPUs.
pub fn three() -> [(&'static str, Machine); 3] {
    [
        (
            "intel",
            machine("x86_64", "GenuineIntel").cpus(8, false, 1).isolate("2-7").options(|w| w.vcpus = Some(3)),
        ),
        (
            "amd",
            machine("x86_64", "AuthenticAMD")
                .cpus(16, true, 2)
                .isolate("2-3,5-7,10-11,13-15")
                .options(|w| w.vcpus = Some(4)),
        ),
        ("arm64", machine("aarch64", "").cpus(8, false, 1).isolate("4-7")),
    ]
}

impl Machine {
    /// This many CPUs; with `smt` the second half are the siblings of the first. `nodes` of NUMA, 0:
    /// the facts do not tell.
    pub fn cpus(mut self, cpus: u32, smt: bool, nodes: u32) -> Self {
        let cores = if smt { cpus / 2 } else { cpus };
        self.facts.keep("/sys/devices/system/cpu/online", format!("0-{}", cpus - 1));
        for cpu in 0..cpus {
            let core = cpu % cores;
            let siblings = if smt { format!("{core},{}", core + cores) } else { core.to_string() };
            self.facts
                .keep(format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), siblings);
        }
        for node in 0..nodes {
            let here = |cpu: &u32| (cpu % cores) * nodes / cores == node;
            let list: tactus_model::CpuSet = (0..cpus).filter(here).collect();
            self.facts.keep(format!("/sys/devices/system/node/node{node}/cpulist"), list.to_string());
        }
        self
    }

    pub fn isolate(mut self, cpus: &str) -> Self {
        self.intent.isolated = Some(cpus.parse().unwrap());
        self
    }

    pub fn options(mut self, change: impl FnOnce(&mut GuestOptions)) -> Self {
        change(&mut self.options);
        self
    }

    pub fn fact(mut self, name: &str, text: &str) -> Self {
        self.facts.keep(name, text);
        self
    }

    pub fn change(mut self, check: &str, target: Target, then: &str) -> Self {
        let change =
            Change { check: check.into(), target, now: None, then: then.into(), effect: Effect::Boot };
        self.changes.push(change);
        self
    }

    /// With the changes of its profile's plan on the kernel's command line, and those that the plan leaves out.
    pub fn planned(mut self) -> Self {
        let profile = profile::find(self.profile).unwrap();
        let choice = Choice { plain: true, ..Choice::default() };
        let plan = self.with(|subject| Plan::new(subject, profile, &choice));
        let boot = |change: &Change| matches!(change.target, Target::Kernel { .. });
        self.changes = plan.entries.into_iter().map(|step| step.change).filter(boot).collect();
        self.withheld = plan.withheld.into_iter().filter(|one| boot(&one.change)).collect();
        self
    }

    pub fn profile(mut self, name: &'static str) -> Self {
        self.profile = name;
        self
    }

    pub fn with<T>(&self, ask: impl FnOnce(&Subject<'_>) -> T) -> T {
        ask(&Subject::new(&self.facts, Role::Host, &self.intent))
    }

    pub fn generate(&self, generator: &Generator) -> Result<Output, GenerateError> {
        self.with(|subject| {
            let request = GenerateRequest {
                subject,
                profile: self.profile,
                changes: &self.changes,
                withheld: &self.withheld,
                options: &self.options,
                says,
            };
            (generator.generate)(&request)
        })
    }
}

/// Files as one text, for snapshots.
pub fn shown(output: &Output) -> String {
    // The version would make every release change every snapshot.
    let version = concat!("tactus ", env!("CARGO_PKG_VERSION"), " ");
    let notes = output.notes.iter().map(|note| format!("note: {note}\n"));
    let files = output.files.iter();
    files
        .map(|f| {
            format!(
                "==> {} ({:o}): {}\n{}",
                f.name,
                f.mode,
                f.belongs,
                f.text.replace(version, "tactus VERSION ")
            )
        })
        .chain(notes)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Not the catalogue's words: those may become better without any file becoming another.
pub fn says(id: &str) -> String {
    format!("{id}: WHY.")
}
