//! The input of the pitfalls: a system, and the plan for it.

use std::collections::BTreeMap;

use tactus_model::change::{Change, Target};
use tactus_model::threads::{Policy, Thread};

use tactus_audit::Subject;

/// A system and a plan for it.
pub struct Look<'a> {
    /// The system.
    pub subject: &'a Subject<'a>,
    changes: &'a [&'a Change],
    /// The policies that it sets, by thread.
    policies: BTreeMap<u32, Policy>,
}

/// One virtual machine, as its threads show it.
#[derive(Default)]
pub struct Machine<'a> {
    /// Threads that run its CPUs.
    pub vcpus: Vec<&'a Thread>,
    /// All others of its process, and its vhost and PIT threads.
    pub others: Vec<&'a Thread>,
}

impl<'a> Look<'a> {
    /// Puts them together.
    pub fn new(subject: &'a Subject<'a>, changes: &'a [&'a Change]) -> Self {
        let planned = |change: &&Change| match &change.target {
            Target::Scheduling(target) => Some((target.tid, Policy::of(change.then.split(' ').next()?))),
            _ => None,
        };
        let policies = changes.iter().rev().filter_map(planned).collect();
        Self { subject, changes, policies }
    }

    /// The plan's value of a kernel parameter.
    pub fn plans_parameter(&self, name: &str) -> Option<&'a str> {
        self.changes.iter().find_map(|change| match &change.target {
            Target::Kernel { parameter } if parameter == name => Some(change.then.as_str()),
            _ => None,
        })
    }

    /// The value of a kernel parameter after the next boot with the plan.
    pub fn parameter(&self, name: &str) -> Option<&'a str> {
        self.plans_parameter(name).or_else(|| {
            let last = self.subject.cmdline.all(name).last()?;
            Some(last.unwrap_or_default())
        })
    }

    /// The plan's value of the first file whose path ends so.
    pub fn plans_file(&self, end: &str) -> Option<&'a str> {
        self.changes.iter().find_map(|change| match &change.target {
            Target::File { path, .. } if path.ends_with(end) => Some(change.then.as_str()),
            _ => None,
        })
    }

    /// The plan's value of a module's parameter.
    pub fn plans_module(&self, name: &str) -> Option<&'a str> {
        self.changes.iter().find_map(|change| match &change.target {
            Target::Module { parameter, .. } if parameter == name => Some(change.then.as_str()),
            _ => None,
        })
    }

    /// Whether a thread of this name is there.
    pub fn runs(&self, name: &str) -> bool {
        self.subject.threads.user().any(|thread| thread.name == name)
    }

    /// A reading as text.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.subject.facts.text(name)
    }

    /// Whether the system has cgroup version 2.
    pub fn cgroup2(&self) -> bool {
        self.text("/sys/fs/cgroup/cgroup.controllers").is_some()
    }

    /// The virtual machines whose threads are seen. The kernel's vhost and PIT threads carry the id of
    /// the process that they work for in their names.
    pub fn machines(&self) -> Vec<Machine<'a>> {
        let threads = &self.subject.threads;
        let mut machines: BTreeMap<u32, Machine<'a>> = BTreeMap::new();
        for thread in threads.user().filter(|thread| is_vcpu(thread)) {
            machines.entry(thread.pid).or_default().vcpus.push(thread);
        }
        for thread in &threads.list {
            let owner = thread
                .name
                .strip_prefix("vhost-")
                .or_else(|| thread.name.strip_prefix("kvm-pit/"))
                .and_then(|pid| pid.parse().ok())
                .unwrap_or(thread.pid);
            if !is_vcpu(thread)
                && let Some(machine) = machines.get_mut(&owner)
            {
                machine.others.push(thread);
            }
        }
        machines.into_values().collect()
    }

    /// The policy that a thread has when the plan is carried out.
    pub fn policy(&self, thread: &Thread) -> Policy {
        self.policies.get(&thread.tid).copied().unwrap_or(thread.policy)
    }
}

/// QEMU names them `CPU 0/KVM`.
fn is_vcpu(thread: &Thread) -> bool {
    thread.name.starts_with("CPU ") && (thread.name.ends_with("/KVM") || thread.name.ends_with("/TCG"))
}
