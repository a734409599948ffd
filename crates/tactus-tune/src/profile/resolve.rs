//! Profiles with their inheritance resolved, for a system or for a command line alone.

use tactus_audit::{Subject, is_managed, isolcpus_value};
use tactus_model::CpuSet;
use tactus_model::change::{Change, Effect, Form, Target};
use tactus_model::facts::Facts;
use tactus_model::finding::Role;

use super::files::matching;
use super::{Profile, Setting, Value, What};

/// The system for which a value is made.
struct Whose<'a> {
    isolated: &'a CpuSet,
    housekeeping: &'a CpuSet,
    vendor: &'a str,
    x86: bool,
    idle_latency: Option<&'a str>,
}

impl Whose<'_> {
    /// The value in words; `None` where it is not for this processor.
    fn value(&self, value: Value) -> Option<String> {
        Some(match value {
            Value::Is(text) => text.to_owned(),
            Value::Isolated(text) => text.replace("{}", &self.isolated.to_string()),
            Value::Housekeeping => self.housekeeping.to_string(),
            Value::HousekeepingMask => {
                let all = self.housekeeping.or(self.isolated);
                self.housekeeping.mask(all.last().map_or(1, |last| last + 1))
            }
            Value::IdleLatency(other) => self.idle_latency.unwrap_or(other).to_owned(),
            Value::OnlyOn(vendor, text) => (self.vendor == vendor).then(|| text.to_owned())?,
            Value::OnX86(text) => self.x86.then(|| text.to_owned())?,
        })
    }
}

impl Profile {
    /// Its parameters on the kernel's command line, in its order; a parameter without a value has an empty one.
    /// `vendor` is the processor's maker as in `/proc/cpuinfo`, empty if it is not x86. Empty for a container, which
    /// shares its host's kernel.
    #[must_use]
    pub fn boot(
        &self,
        role: Role,
        isolated: &CpuSet,
        housekeeping: &CpuSet,
        vendor: &str,
    ) -> Vec<(String, String)> {
        if role == Role::Container {
            return Vec::new();
        }
        let whose = Whose { isolated, housekeeping, vendor, x86: !vendor.is_empty(), idle_latency: None };
        self.all()
            .iter()
            .filter_map(|setting| match setting.what {
                What::Kernel(parameter) => Some((parameter.to_owned(), whose.value(setting.value)?)),
                _ => None,
            })
            .collect()
    }

    /// Its parameters on the kernel's command line, as changes of a system.
    #[must_use]
    pub fn kernel_parameters(&self, subject: &Subject<'_>) -> Vec<Change> {
        let mut changes = self.changes(subject);
        changes.retain(|change| matches!(change.target, Target::Kernel { .. }));
        changes
    }

    /// All settings of the profile: files, the kernel's threads, interrupts, modules, services, drop-ins, and the
    /// command line. Settings without a counterpart on the system are left out.
    #[must_use]
    pub fn changes(&self, subject: &Subject<'_>) -> Vec<Change> {
        if subject.role == Role::Container {
            return Vec::new();
        }
        let whose = Whose {
            isolated: subject.isolated(),
            housekeeping: subject.housekeeping(),
            vendor: &subject.vendor,
            x86: subject.is(tactus_audit::Arch::X86),
            idle_latency: idle_latency(subject.facts),
        };
        let all = self.all();
        let each = all.iter().flat_map(|setting| match whose.value(setting.value) {
            Some(then) => changes(setting, &then, subject),
            None => Vec::new(),
        });
        each.collect()
    }
}

/// TuneD's `cstate.id_no_zero:1`: the exit latency of CPU 0's second idle state, unless it is 0.
fn idle_latency(facts: &Facts) -> Option<&str> {
    let latency = facts.text("/sys/devices/system/cpu/cpu0/cpuidle/state1/latency")?;
    latency.parse::<u32>().is_ok_and(|us| us > 0).then_some(latency)
}

/// Makes the changes that one setting is on a system.
fn changes(setting: &Setting, then: &str, subject: &Subject<'_>) -> Vec<Change> {
    let change = |check: &str, target: Target, now: Option<String>, then: &str, effect: Effect| Change {
        check: check.to_owned(),
        target,
        now,
        then: then.to_owned(),
        effect,
    };
    let facts = subject.facts;
    match setting.what {
        What::File(pattern, form) => matching(facts, pattern)
            .into_iter()
            .filter_map(|path| subject.set(word(setting), &path, form, then))
            .filter(|change| setting.check != "cpufreq-governor" || !is_fixed_clock(change, facts))
            .collect(),
        // A virtual machine has no P-states.
        What::Kernel(_) if setting.check == "pstate-driver" && subject.virtualized => Vec::new(),
        // Flags that this kernel does not know would cost it the whole parameter.
        What::Kernel("isolcpus") if subject.kernel.before(5, 6) => {
            vec![subject.boot(word(setting), "isolcpus", isolcpus_value(subject, subject.isolated()))]
        }
        What::Kernel(parameter) => {
            vec![subject.boot(word(setting), parameter, then)]
        }
        What::Module(module, parameter) => {
            let Some(now) = facts.text(&format!("/sys/module/{module}/parameters/{parameter}")) else {
                return Vec::new();
            };
            let target = Target::Module { module: module.to_owned(), parameter: parameter.to_owned() };
            // `N` and `0` are the same to the module.
            let same = Form::Flag.same(now, then) || now == then;
            let now = if same { then.to_owned() } else { now.to_owned() };
            vec![change(word(setting), target, Some(now), then, Effect::Restart)]
        }
        What::Group(beginning) => subject
            .threads
            .kernel()
            .filter(|thread| thread.name.starts_with(beginning))
            .map(|thread| subject.schedule(word(setting), thread, then))
            .collect(),
        What::Interrupts => interrupts(setting, subject),
        What::Threads => threads(subject),
        What::Service(unit) => {
            let target = Target::Service { unit: unit.to_owned() };
            vec![change(word(setting), target, None, then, Effect::Runtime)]
        }
        What::DropIn(unit, section, key) => {
            if unit == "irqbalance.service" && facts.text("program:irqbalance").is_none() {
                return Vec::new();
            }
            let target = Target::DropIn { unit: unit.into(), section: section.into(), key: key.into() };
            let effect = if unit == "system.conf" { Effect::Boot } else { Effect::Restart };
            vec![change(word(setting), target, None, then, effect)]
        }
    }
}

/// Whether the governor that a change would replace holds the clock still already: `userspace`, whose
/// slowest clock is the fastest (intel-xeon-2015, 7.2).
fn is_fixed_clock(change: &Change, facts: &Facts) -> bool {
    let Target::File { path, .. } = &change.target else { return false };
    let limit = |name| facts.text(&path.replace("scaling_governor", name));
    let (slowest, fastest) = (limit("scaling_min_freq"), limit("scaling_max_freq"));
    change.now.as_deref() == Some("userspace") && slowest.is_some() && slowest == fastest
}

/// The check that a setting answers; without one the profile's own word.
fn word(setting: &Setting) -> &str {
    match setting.what {
        _ if !setting.check.is_empty() => setting.check,
        What::File(path, _) => path.rsplit('/').next().unwrap_or(path),
        What::Kernel(parameter) => parameter,
        What::Module(module, _) => module,
        What::Group(word) | What::Service(word) => word,
        What::DropIn(_, _, key) => key,
        What::Interrupts => "irq-affinity",
        What::Threads => "foreign-tasks",
    }
}

/// Where an interrupt or a thread goes that may be on isolated CPUs: to the housekeeping CPUs among
/// its own, else to all of them, as TuneD's `_get_intersect_affinity` has it.
fn moved(now: &CpuSet, subject: &Subject<'_>) -> String {
    let left = now.and(subject.housekeeping());
    if left.is_empty() { subject.housekeeping().to_string() } else { left.to_string() }
}

fn interrupts(setting: &Setting, subject: &Subject<'_>) -> Vec<Change> {
    if subject.housekeeping().is_empty() {
        return Vec::new();
    }
    let all = &subject.interrupts;
    // The kernel spreads the queues of storage, and refuses a write to their masks: isolcpus=managed_irq is for them.
    let devices = all.list.iter().filter(|interrupt| !is_managed(interrupt)).filter_map(|interrupt| {
        let now = interrupt.affinity.as_deref()?;
        let path = format!("/proc/irq/{}/smp_affinity_list", interrupt.irq);
        // An interrupt that does not touch the isolated CPUs stays.
        let touches = !now.and(subject.isolated()).is_empty();
        let then = if touches { moved(now, subject) } else { now.to_string() };
        subject.set(word(setting), &path, Form::List, then)
    });
    let path = "/proc/irq/default_smp_affinity";
    let default = all.default.as_ref().and_then(|now| {
        let left = now.and(subject.housekeeping());
        let cpus = if left.is_empty() { subject.housekeeping() } else { &left };
        let width = subject.topology.online.last().map_or(1, |last| last + 1);
        subject.set("irq-default-affinity", path, Form::Mask, cpus.mask(width))
    });
    devices.chain(default).collect()
}

/// Threads that may run on isolated CPUs and on others too leave the isolated ones. A thread that may
/// run on isolated CPUs only was put there by somebody, and is left to them.
fn threads(subject: &Subject<'_>) -> Vec<Change> {
    let (isolated, housekeeping) = (subject.isolated(), subject.housekeeping());
    let movable = subject.threads.list.iter().filter(|thread| !thread.bound);
    movable
        .filter(|thread| !thread.cpus.and(isolated).is_empty() && !thread.cpus.and(housekeeping).is_empty())
        .map(|thread| {
            let check = match () {
                () if !thread.kernel => "foreign-tasks",
                () if thread.name.starts_with("rcuo") => "rcuo-affinity",
                () => "kthread-affinity",
            };
            subject.place(check, thread, &thread.cpus.and(housekeeping))
        })
        .collect()
}
