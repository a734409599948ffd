//! A domain that is to be measured: the same settings as for a user's, on CPUs that are given.

use tactus_audit::{Intent, Subject};
use tactus_model::CpuSet;
use tactus_model::facts::Facts;
use tactus_model::finding::Role;

use super::edit::apply;
use super::settings::{Guest, fifo, settings};
use crate::generate::{Accel, GenerateRequest, GuestOptions, Page, Placement, Size, of_check};

/// Where a domain stands and what it gets.
pub struct Placed<'a> {
    /// Its architecture, as uname says it.
    pub arch: &'a str,
    /// The accelerator.
    pub accel: Accel,
    /// The CPU of each vCPU.
    pub cpus: Vec<u32>,
    /// vCPUs that get SCHED_FIFO; if empty, the policy is left out.
    pub fifo: &'a CpuSet,
    /// CPUs for everything of it but its vCPUs.
    pub emulator: &'a CpuSet,
    /// Its memory.
    pub memory: Size,
    /// Whether that is allocated and locked before it starts.
    pub locked: bool,
}

/// Checks that are about disks, about memory (a plan asks for that by itself), and about which vCPUs get a
/// priority.
const NOT_HERE: [&str; 2] = ["iothread-pin", "vcpu-fifo"];
const MEMORY: [&str; 2] = ["mem-lock", "mem-prealloc-nomerge"];

/// Makes a domain what [`super::ENTRY`] makes of one.
///
/// # Errors
/// When the document cannot be read.
pub fn place(text: &mut String, placed: &Placed<'_>) -> Result<(), String> {
    let mut facts = Facts::default();
    facts.keep("uname:machine", placed.arch);
    let intent = Intent::default();
    let subject = Subject::new(&facts, Role::Host, &intent);
    let options = GuestOptions { accel: Some(placed.accel), ..GuestOptions::default() };
    let request = GenerateRequest {
        subject: &subject,
        profile: "",
        changes: &[],
        withheld: &[],
        options: &options,
        says: of_check,
    };
    let guest = Guest {
        request: &request,
        placement: Placement {
            mixed: Vec::new(),
            kinds: Vec::new(),
            cpus: placed.cpus.clone(),
            threads: 1,
            idle: CpuSet::default(),
            node: None,
            nodes: 1,
            emulator: placed.emulator.clone(),
            housekeeping: placed.emulator.clone(),
            isolated: CpuSet::default(),
        },
        memory: placed.memory,
        page: Some(Page::Base),
        accel: placed.accel,
        iothreads: Vec::new(),
        said: Vec::new(),
        usb: false,
    };
    let wanted = settings(&guest).into_iter().filter(|setting| {
        !NOT_HERE.contains(&setting.check) && (placed.locked || !MEMORY.contains(&setting.check))
    });
    let priority = (!placed.fifo.is_empty()).then(|| fifo(placed.fifo.to_string()));
    for setting in wanted.chain(priority) {
        apply(text, &setting)?;
    }
    Ok(())
}
