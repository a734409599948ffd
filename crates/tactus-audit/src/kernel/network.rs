//! Network queues, and the CPUs that handle what arrives.

use std::collections::BTreeMap;

use tactus_model::change::{self, Form};
use tactus_model::finding::Severity;

use crate::sentence::{cpus_or_none, few, meet};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const NET: &str = "/sys/class/net/";

pub static CHECKS: &[Check] = &[Check {
    id: "netdev-queues-rps",
    title: "real-time CPUs handle network packets",
    sources: &[
        Source::Kernel("Documentation/networking/scaling.rst"),
        Source::Guide("OpenShift node tuning operator"),
    ],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Minor,
    arch: Arch::Any,
    set: &[SetBy::RunTime],
    reversible: Reversible::Yes,
    hardware: false,
    reads: "/sys/class/net/*/queues/rx-*; /sys/class/net/*/queues/rx-*/rps_cpus",
    expected: "no more receive queues than housekeeping CPUs; rps_cpus without {isolated}",
    why: "Each receive queue has an interrupt, and drivers spread them over all CPUs. If there are more queues than \
housekeeping CPUs, some interrupt isolated CPUs. rps_cpus sends packets to the softirq of other CPUs through an IPI.",
    fix: "ethtool -L INTERFACE combined N, with N up to the number of housekeeping CPUs; write 0 or the mask \
{housekeeping_mask} to rps_cpus.",
    risk: "Changing the number of queues resets the link; fewer queues carry less traffic.",
    judge: queues,
    changes: |subject| {
        let Some((isolated, _)) = subject.parted() else { return Vec::new() };
        let without = |text: &str| Some(change::to_mask(&change::mask(text)?.minus(isolated)));
        steering(subject)
            .filter_map(|(path, text)| subject.set("netdev-queues-rps", path, Form::Mask, without(text)?))
            .collect()
    },
}];

/// The masks of receive packet steering that are set.
fn steering<'a>(subject: &'a Subject<'_>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let all = subject.facts.under(NET).filter(|(name, _)| name.ends_with("/rps_cpus"));
    all.filter_map(|(name, _)| Some((name, subject.facts.text(name)?)))
        .filter(|(_, text)| change::mask(text).is_some_and(|cpus| !cpus.is_empty()))
}

/// Receive queues of each network interface but the loopback.
fn receive_queues<'a>(subject: &'a Subject<'_>) -> BTreeMap<&'a str, usize> {
    let mut queues: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, _) in subject.facts.under(NET) {
        let Some((interface, rest)) = name.strip_prefix(NET).and_then(|rest| rest.split_once('/')) else {
            continue;
        };
        if interface != "lo" && rest.starts_with("queues/rx-") && rest.ends_with("/rps_cpus") {
            *queues.entry(interface).or_default() += 1;
        }
    }
    for (name, _) in subject.facts.under("net:") {
        let Some(interface) = name.strip_prefix("net:").and_then(|rest| rest.strip_suffix(":queues")) else {
            continue;
        };
        let text = subject.facts.text(name).unwrap_or_default();
        let number = text.split(' ').find_map(|word| word.strip_prefix("rx=")?.parse().ok());
        if let (Some(number), true) = (number, interface != "lo") {
            queues.insert(interface, number);
        }
    }
    queues
}

fn queues(subject: &Subject<'_>) -> Verdict {
    let (isolated, keeping) = subject.need_parted()?;
    let queues = receive_queues(subject);
    if queues.is_empty() {
        return Err(Judgement::not_applicable("the facts include no network interface with receive queues"));
    }
    let many: Vec<(&str, usize)> = queues
        .iter()
        .filter(|(_, number)| **number > keeping.len())
        .map(|(name, number)| (*name, *number))
        .collect();
    let steered: Vec<(&str, &str)> = steering(subject)
        .filter(|(_, text)| change::mask(text).is_some_and(|cpus| meet(&cpus, isolated)))
        .collect();
    let mut bad = Vec::new();
    if !many.is_empty() {
        let names = few(many.iter().map(|(name, number)| format!("{name} has {number}")));
        bad.push(format!("more receive queues than the {} housekeeping CPUs: {names}", keeping.len()));
    }
    if !steered.is_empty() {
        let names =
            few(steered.iter().map(|(path, _)| path.trim_start_matches(NET).trim_end_matches("/rps_cpus")));
        bad.push(format!("packets are steered to {}: {names}", cpus_or_none(isolated)));
    }
    let good = format!(
        "no interface has more receive queues than the {} housekeeping CPUs, and none steers packets to other CPUs",
        keeping.len()
    );
    let mut judgement = Judgement::when(bad.is_empty(), good, bad.join("; "));
    for (name, number) in many {
        judgement = judgement.read(format!("{NET}{name}/queues/rx-*"), number.to_string());
    }
    for (path, text) in steered.into_iter().take(4) {
        judgement = judgement.read(path, text);
    }
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use crate::testing::{HOSTILE, intel};

    const ID: &str = "netdev-queues-rps";
    const STEER: &str = "/sys/class/net/eth0/queues/rx-0/rps_cpus";

    #[test]
    fn queues_fit_the_housekeeping_cpus() {
        assert_eq!(intel(&[("net:eth0:queues", "rx=2 tx=2"), (STEER, "0")]).state(ID), State::Ok);
        let many = intel(&[("net:eth0:queues", "rx=4 tx=4"), ("net:lo:queues", "rx=9 tx=9")]);
        assert_eq!(many.said(ID), "more receive queues than the 2 housekeeping CPUs: eth0 has 4");
        assert!(many.changes(ID).is_empty(), "no file sets it");
        assert_eq!(intel(&[]).state(ID), State::NotApplicable);
        assert_eq!(intel(&[("net:eth0:queues", "rx=2")]).isolate("0-3").state(ID), State::NotApplicable);
    }

    #[test]
    fn packets_are_not_steered_to_isolated_cpus() {
        let steered = intel(&[(STEER, "f")]);
        assert_eq!(steered.said(ID), "packets are steered to CPUs 2,3: eth0/queues/rx-0");
        assert_eq!(steered.wanted(ID), [format!("{STEER} = 3")]);
        assert_eq!(intel(&[(STEER, "3")]).state(ID), State::Ok);
    }

    #[test]
    fn rubbish_has_no_queues() {
        for text in HOSTILE {
            let _ = intel(&[("net:eth0:queues", text), (STEER, text)]).finding(ID);
        }
        assert_eq!(intel(&[("net:eth0:queues", "rx=99999999999999999999")]).state(ID), State::NotApplicable);
    }
}
