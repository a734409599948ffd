//! Whether cache and bandwidth can be watched.

use tactus_model::finding::{Severity, State};

use super::groups::unmounted;
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const FEATURES: &str = "/sys/fs/resctrl/info/L3_MON/mon_features";

pub const CHECK: Check = Check {
    id: "resctrl-monitor",
    title: "the use of the cache cannot be measured",
    sources: &[Source::Xeon],
    applies: &[Applies::Host],
    severity: Severity::Info,
    arch: Arch::X86,
    set: &[SetBy::RunTime],
    reversible: Reversible::Yes,
    hardware: true,
    reads: FEATURES,
    expected: "llc_occupancy or mbm_total_bytes can be read",
    why: "Cache occupancy and memory traffic by group prove that cache or bandwidth causes a latency, and that a \
partition helps.",
    fix: "`mount -t resctrl resctrl /sys/fs/resctrl`; the counters are below mon_data of each group.",
    risk: "None; the number of groups is limited (num_rmids).",
    judge,
    changes: no_change,
};

fn judge(subject: &Subject<'_>) -> Verdict {
    let features = match subject.value(FEATURES) {
        Ok(features) => features,
        // Mounted and without the directory: there is allocation only.
        Err(refused)
            if refused.state == State::NotApplicable
                && subject.facts.text("/sys/fs/resctrl/schemata").is_some() =>
        {
            return Err(Judgement::not_applicable(
                "this processor can partition its caches, but not monitor them",
            ));
        }
        Err(refused) => {
            let flags = ["cqm_llc", "cqm_occup_llc", "cqm_mbm_total"];
            return Err(unmounted(
                subject,
                refused,
                &flags,
                "count cache occupancy and memory traffic (cqm)",
            ));
        }
    };
    let shown: Vec<&str> = features.split_whitespace().take(6).collect();
    let has = |feature: &str| features.split_whitespace().any(|one| one == feature);
    let read: String = shown.join(" ").chars().take(120).collect();
    Ok(Judgement::when(
        has("llc_occupancy") || has("mbm_total_bytes"),
        "cache occupancy or memory traffic can be measured by group",
        "resctrl has none of the known counters",
    )
    .read(FEATURES, read))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::FEATURES;
    use crate::testing::{HOSTILE, arm, intel};

    #[test]
    fn the_counters_must_be_within_reach() {
        let state = |text| intel(&[(FEATURES, text)]).state("resctrl-monitor");
        assert_eq!(state("llc_occupancy\nmbm_total_bytes\nmbm_local_bytes"), State::Ok);
        assert!(HOSTILE.iter().all(|text| state(text) == State::Finding));
        let able = intel(&[("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t: cqm_llc")]);
        assert_eq!(able.state("resctrl-monitor"), State::Finding);
    }

    #[test]
    fn who_has_none_is_not_concerned() {
        assert_eq!(intel(&[]).state("resctrl-monitor"), State::NotApplicable);
        assert_eq!(arm(&[]).state("resctrl-monitor"), State::NotApplicable);
        let mounted = intel(&[("/sys/fs/resctrl/schemata", "L3:0=fff")]);
        assert_eq!(mounted.state("resctrl-monitor"), State::NotApplicable);
        assert_eq!(intel(&[]).unreadable(FEATURES, "denied").state("resctrl-monitor"), State::Unreadable);
    }
}
