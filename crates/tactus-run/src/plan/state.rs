//! The state that a machine is in: which of the plan's states holds, told from facts.
//!
//! A state holds when the kernel is of its kind and everything that its profile sets, and that can be
//! read back, is so. Where threads and interrupts may run moves with every device and every service: it
//! is audited, and does not decide. Services and drop-ins cannot be told from facts.

use tactus_model::CpuSet;
use tactus_model::bundle::Present;
use tactus_model::change::{Change, Target};
use tactus_model::facts::Facts;
use tactus_model::finding::Role;
use tactus_model::plan::{HostState, KernelKind, OTHER_STATE, Plan};
use tactus_model::text::quoted;
use tactus_model::topology::Topology;

use tactus_audit::{Intent, Kernel, Subject};
use tactus_tune::profile;

/// How many of the lacking things a sentence names.
const NAMED: usize = 4;

/// The state of the plan that holds on this machine; `said` by the user instead, if that is given. The
/// first one by name, should several hold.
#[must_use]
pub fn present(plan: &Plan, facts: &Facts, said: Option<&str>) -> Present {
    let lacks: std::collections::BTreeMap<String, Vec<String>> =
        plan.host_state.iter().map(|(name, state)| (name.clone(), lacks(state, facts))).collect();
    let holds = lacks.iter().find(|(_, lacks)| lacks.is_empty()).map(|(name, _)| name.clone());
    let name = said.map(str::to_owned).or(holds).unwrap_or_else(|| OTHER_STATE.into());
    Present { name, declared: said.is_some(), lacks }
}

/// The settings of a state that do not hold, in words: `isolcpus=2-7`, `/proc/sys/x = 1`.
fn lacks(state: &HostState, facts: &Facts) -> Vec<String> {
    let mut lacks = Vec::new();
    match (state.kernel, Kernel::of(facts).rt) {
        (Some(KernelKind::Rt), false) => lacks.push("a PREEMPT_RT kernel".to_owned()),
        (Some(KernelKind::Standard), true) => lacks.push("a kernel that is not PREEMPT_RT".to_owned()),
        _ => {}
    }
    let topology = Topology::of(facts);
    let isolated = topology.isolated.or(&topology.nohz_full);
    if isolated.is_empty() {
        // The settings of the profile depend on it.
        lacks.push("isolated CPUs".to_owned());
        return lacks;
    }
    let Some(profile) = profile::find(&state.profile) else { return vec!["a known profile".into()] };
    let intent = Intent { isolated: Some(isolated), ..Intent::default() };
    let changes = profile.changes(&Subject::new(facts, Role::Host, &intent));
    lacks.extend(changes.iter().filter(|change| decides(change) && !change.holds()).map(words));
    lacks
}

/// Whether a setting can be read back, and stays as it was set.
fn decides(change: &Change) -> bool {
    match &change.target {
        Target::File { path, .. } => !path.starts_with("/proc/irq/"),
        Target::Kernel { .. } | Target::Module { .. } | Target::Scheduling(_) => true,
        Target::Affinity(_) | Target::Service { .. } | Target::DropIn { .. } => false,
    }
}

fn words(change: &Change) -> String {
    match (&change.target, change.then.as_str()) {
        (Target::Kernel { parameter }, "") => parameter.clone(),
        (Target::Kernel { parameter }, then) => format!("{parameter}={then}"),
        (target, then) => format!("{target} = {then}"),
    }
}

/// Why a scenario for a state is not done on a machine in another one, and what would lead there.
#[must_use]
pub fn obstacle(wanted: &str, plan: &Plan, present: Option<&Present>, measuring: &CpuSet) -> Option<String> {
    let Some(present) = present else {
        return Some(format!("needs the host state {wanted}, but the machine's state was not examined"));
    };
    if present.name == wanted {
        return None;
    }
    if wanted == OTHER_STATE {
        return Some(format!(
            "is for a machine in none of the plan's states, but this one is in {}",
            present.name
        ));
    }
    let state = plan.host_state.get(wanted)?;
    let lacks = present.lacks.get(wanted).map(Vec::as_slice).unwrap_or_default();
    let named = lacks.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    let more = match lacks.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let why = if lacks.is_empty() {
        format!("this run is in {}", present.name)
    } else {
        format!("this machine lacks {named}{more}")
    };
    let kernel = match state.kernel {
        Some(KernelKind::Rt) => " into a PREEMPT_RT kernel",
        Some(KernelKind::Standard) => " into the standard kernel",
        None => "",
    };
    Some(format!(
        "needs the host state {wanted}; {why}; `tactus tune apply --profile {} --isolate {measuring} --persist`, \
reboot{kernel}, `tactus tune apply --again`, then `tactus run {} --into BUNDLE`",
        state.profile,
        quoted(&plan.name)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        toml::from_str(
            "name = \"matrix\"\n\
             [host-state.partitioned]\nprofile = \"cpu-partitioning-isolcpus\"\nkernel = \"standard\"\n\
             [host-state.realtime]\nprofile = \"realtime\"\nkernel = \"rt\"",
        )
        .unwrap()
    }

    const REALTIME: &str = "quiet skew_tick=1 tsc=reliable rcupdate.rcu_normal_after_boot=1 \
        rcutree.nohz_full_patience_delay=1000 isolcpus=managed_irq,domain,2,3 intel_pstate=disable nosoftlockup";

    fn facts(cmdline: &str, isolated: &str, version: &str) -> Facts {
        let mut facts = Facts::default();
        facts.keep("uname:machine", "x86_64");
        facts.keep("uname:version", version);
        facts.keep("/proc/cpuinfo", "vendor_id\t: GenuineIntel");
        facts.keep("/proc/cmdline", cmdline);
        facts.keep("/sys/devices/system/cpu/online", "0-3");
        facts.keep("/sys/devices/system/cpu/isolated", isolated);
        facts.keep("/proc/sys/kernel/sched_rt_runtime_us", "-1");
        facts
    }

    #[test]
    fn an_untuned_machine_is_in_none_of_the_states_and_lacks_isolated_cpus() {
        let present = present(&plan(), &facts("quiet", "", "#1 SMP PREEMPT_DYNAMIC"), None);
        assert_eq!((present.name.as_str(), present.declared), (OTHER_STATE, false));
        assert_eq!(present.lacks["partitioned"], ["isolated CPUs"]);
        assert_eq!(present.lacks["realtime"], ["a PREEMPT_RT kernel", "isolated CPUs"]);
    }

    #[test]
    fn a_state_holds_when_kernel_parameters_and_values_do_however_cpus_are_written() {
        for list in ["2,3", "2-3"] {
            let cmdline = REALTIME.replace("2,3", list);
            let present = present(&plan(), &facts(&cmdline, "2-3", "#1 SMP PREEMPT_RT"), None);
            assert_eq!(present.name, "realtime", "{:?}", present.lacks);
        }
        let throttled = {
            let mut facts = facts(REALTIME, "2-3", "#1 SMP PREEMPT_RT");
            facts.keep("/proc/sys/kernel/sched_rt_runtime_us", "950000");
            present(&plan(), &facts, None)
        };
        assert_eq!(throttled.name, OTHER_STATE);
        assert_eq!(throttled.lacks["realtime"], ["/proc/sys/kernel/sched_rt_runtime_us = -1"]);
        let wide = present(&plan(), &facts(&REALTIME.replace("2,3", "2"), "2-3", "#1 PREEMPT_RT"), None);
        assert_eq!(wide.lacks["realtime"], ["isolcpus=managed_irq,domain,2,3"]);
    }

    #[test]
    fn what_the_user_says_counts_and_what_is_lacking_is_kept_beside_it() {
        let present = present(&plan(), &facts("quiet", "", "#1 SMP"), Some("realtime"));
        assert_eq!((present.name.as_str(), present.declared), ("realtime", true));
        assert!(!present.lacks["realtime"].is_empty());
    }

    #[test]
    fn a_scenario_for_another_state_says_what_leads_there() {
        let facts = facts("quiet", "", "#1 SMP PREEMPT_DYNAMIC");
        let present = present(&plan(), &facts, None);
        let measuring = "1-3".parse().unwrap();
        let why = obstacle("realtime", &plan(), Some(&present), &measuring).unwrap();
        insta::assert_snapshot!(why);
        assert_eq!(obstacle(OTHER_STATE, &plan(), Some(&present), &measuring), None);
        let tuned = Present { name: "realtime".into(), ..present };
        assert!(obstacle(OTHER_STATE, &plan(), Some(&tuned), &measuring).unwrap().contains("in realtime"));
        assert!(obstacle("realtime", &plan(), None, &measuring).unwrap().contains("was not examined"));
    }
}
