//! A guest that a tuning profile is for: its kernel's command line, and what is set in it while it runs.

use tactus_audit::{Intent, Subject};
use tactus_model::CpuSet;
use tactus_model::change::{Change, Effect, Target};
use tactus_model::facts::Facts;
use tactus_model::finding::Role;
use tactus_model::plan;
use tactus_tune::profile::{self, Profile};

use super::text;
use crate::{Layout, OptionError};

/// A profile, and the CPUs inside that it isolates.
#[derive(Debug)]
pub struct Profiled {
    /// The profile.
    pub profile: &'static Profile,
    /// CPUs for real-time work, as seen inside.
    pub isolated: CpuSet,
    /// All others.
    pub housekeeping: CpuSet,
}

/// The profile that a plan names for an environment, on the CPUs that it has there. Where the plan does
/// not say which CPUs are isolated they are those that are measured on.
///
/// # Errors
/// When the profile or the CPUs are not known, or no CPU is left to keep house.
pub fn of(spec: &plan::Environment, layout: &Layout) -> Result<Option<Profiled>, OptionError> {
    let Some((profile, asked)) = written(spec)? else { return Ok(None) };
    let inside = layout.inside();
    let isolated = asked.unwrap_or_else(|| layout.measuring.clone());
    let missing = isolated.minus(&inside);
    let wrong =
        |message: String, hint: &str| OptionError { key: "isolate".into(), message, hint: hint.into() };
    if !missing.is_empty() {
        return Err(wrong(
            format!("CPU {missing} cannot be isolated: the guest has {inside}"),
            "use the CPU numbers inside the guest",
        ));
    }
    let housekeeping = inside.minus(&isolated);
    if isolated.is_empty() || isolated.contains(0) || housekeeping.is_empty() {
        return Err(wrong(
            format!(
                "{} needs CPU 0 for housekeeping and another one to isolate; the guest has {inside}",
                profile.name
            ),
            "give it two CPUs or more, and isolate all but CPU 0",
        ));
    }
    Ok(Some(Profiled { profile, isolated, housekeeping }))
}

/// The plan's words, as far as they can be checked without a machine.
pub(crate) fn written(
    spec: &plan::Environment,
) -> Result<Option<(&'static Profile, Option<CpuSet>)>, OptionError> {
    let names = || profile::names().join(", ");
    let asked = match text(spec, "isolate", "CPUs inside, as \"1-2\"")? {
        None => None,
        Some(list) => Some(list.parse::<CpuSet>().map_err(|error| OptionError {
            key: "isolate".into(),
            message: format!("`isolate` cannot be {list:?}: {error}"),
            hint: "CPUs inside, as \"1-2\"".into(),
        })?),
    };
    let Some(name) = text(spec, "profile", "the name of a tuning profile")? else {
        return match asked {
            None => Ok(None),
            Some(_) => Err(OptionError {
                key: "isolate".into(),
                message: "`isolate` needs a `profile`".into(),
                hint: format!("add `profile`, one of {}", names()),
            }),
        };
    };
    match profile::find(name) {
        Some(profile) => Ok(Some((profile, asked))),
        None => Err(OptionError {
            key: "profile".into(),
            message: format!("`{name}` is not a tuning profile"),
            hint: format!("use one of {}", names()),
        }),
    }
}

impl Profiled {
    /// The words of the guest's kernel. `vendor`: the maker of its processor, empty where it is not x86.
    #[must_use]
    pub fn kernel_words(&self, vendor: &str) -> String {
        let words = self.profile.boot(Role::Guest, &self.isolated, &self.housekeeping, vendor);
        let words = words.into_iter().map(|(name, value)| match value.as_str() {
            "" => name,
            _ => format!("{name}={value}"),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// The changes for its probe, by its facts; settings that already have the wanted value are included.
    #[must_use]
    pub fn changes(&self, facts: &Facts) -> Vec<Change> {
        let intent = Intent { isolated: Some(self.isolated.clone()), ..Intent::default() };
        let mut changes = self.profile.changes(&Subject::new(facts, Role::Guest, &intent));
        changes.retain(|change| {
            let probe_sets =
                matches!(change.target, Target::File { .. } | Target::Scheduling(_) | Target::Affinity(_));
            change.effect == Effect::Runtime && probe_sets
        });
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(options: &[(&str, &str)]) -> plan::Environment {
        let options = options.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
        plan::Environment { kind: "qemu".into(), options, ..plan::Environment::default() }
    }

    fn layout(cpus: u32) -> Layout {
        let measuring = if cpus > 1 { (1..cpus).collect() } else { CpuSet::one(0) };
        Layout { cpus: (0..cpus).map(|cpu| (cpu, cpu)).collect(), measuring }
    }

    #[test]
    fn the_measured_cpus_are_isolated_and_cpu_0_keeps_house() {
        let guest = of(&spec(&[("profile", "realtime-virtual-guest")]), &layout(3)).unwrap().unwrap();
        assert_eq!((guest.isolated.to_string(), guest.housekeeping.to_string()), ("1,2".into(), "0".into()));
        let words = guest.kernel_words("AuthenticAMD");
        assert!(
            words.contains("isolcpus=managed_irq,domain,1,2 ") && words.contains("nohz_full=1,2"),
            "{words}"
        );
        assert!(of(&spec(&[]), &layout(3)).unwrap().is_none());
    }

    #[test]
    fn a_guest_sets_what_it_has_and_nothing_that_needs_a_boot_or_a_service() {
        let guest = of(&spec(&[("profile", "realtime"), ("isolate", "2")]), &layout(3)).unwrap().unwrap();
        let mut facts = Facts::default();
        facts.keep("/sys/devices/system/cpu/online", "0-2");
        facts.keep("/proc/sys/kernel/sched_rt_runtime_us", "950000");
        facts.keep("program:irqbalance", "/usr/sbin/irqbalance");
        let changes = guest.changes(&facts);
        let targets: Vec<String> = changes.iter().map(|change| change.target.to_string()).collect();
        assert_eq!(targets, ["/proc/sys/kernel/sched_rt_runtime_us"]);
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_key_and_a_hint() {
        for (options, cpus, key) in [
            (vec![("profile", "fast")], 2, "profile"),
            (vec![("isolate", "1")], 2, "isolate"),
            (vec![("profile", "realtime"), ("isolate", "one")], 2, "isolate"),
            (vec![("profile", "realtime"), ("isolate", "1-2")], 2, "isolate"),
            (vec![("profile", "realtime"), ("isolate", "0")], 2, "isolate"),
            (vec![("profile", "realtime")], 1, "isolate"),
        ] {
            let error = of(&spec(&options), &layout(cpus)).unwrap_err();
            assert_eq!(error.key, key, "{options:?}");
            assert!(!error.hint.is_empty());
        }
    }
}
