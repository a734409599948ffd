//! Swap.

use tactus_model::change::Form;
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const SWAPS: &str = "/proc/swaps";
const SWAPPINESS: &str = "/proc/sys/vm/swappiness";

pub static CHECKS: &[Check] = &[Check {
    id: "swap",
    title: "memory may be swapped out",
    sources: &[Source::Xeon],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Major,
    arch: Arch::Any,
    set: &[SetBy::RunTime],
    reversible: Reversible::Yes,
    hardware: false,
    reads: "/proc/swaps, /proc/sys/vm/swappiness",
    expected: "no swap area; if you need one, a swappiness of 10 or less and locked memory",
    why: "Touching a swapped page reads it from the disk: a major fault of milliseconds. From zram, which is no \
disk, the CPU unpacks it: faster, but still a fault. Any memory that is not locked may be swapped, including that of \
a virtual machine and of the host programs that serve it.",
    fix: "swapoff -a, remove the swap lines from /etc/fstab and mask the swap units (systemctl mask swap.target; \
zram-generator if used). If you need swap: vm.swappiness = 10, and lock memory of real-time work.",
    risk: "When memory runs out, the OOM killer ends processes sooner.",
    judge,
    changes: |subject| {
        subject
            .set("swap", SWAPPINESS, Form::Plain, "10")
            .filter(|change| {
                // A lower one is better still.
                change.now.as_deref().and_then(|now| now.parse().ok()).is_none_or(|now: u64| now > 10)
            })
            .into_iter()
            .collect()
    },
}];

fn judge(subject: &Subject<'_>) -> Verdict {
    let text = subject.value(SWAPS)?;
    let mut lines = text.lines();
    if !lines.next().is_some_and(|heading| heading.starts_with("Filename")) {
        return Err(Judgement::unreadable(format!("{SWAPS} does not start with its heading")));
    }
    let areas: Vec<&str> = lines.filter_map(|line| line.split_whitespace().next()).collect();
    if areas.is_empty() {
        return Ok(Judgement::ok("there is no swap area").read(SWAPS, "no area"));
    }
    let shown = listed(&areas);
    let swappiness = subject.facts.number(SWAPPINESS);
    let zram = |area: &&str| area.trim_start_matches("/dev/").starts_with("zram");
    let place = if areas.iter().all(zram) {
        format!("{shown}, which is compressed memory and no disk")
    } else {
        shown.clone()
    };
    let judgement = match swappiness {
        Some(now @ ..=10) => {
            Judgement::finding(format!("memory may be swapped out to {place}, rarely (swappiness {now})"))
                .at(Severity::Minor)
        }
        Some(now) => Judgement::finding(format!("memory may be swapped out to {place} (swappiness {now})")),
        None => Judgement::finding(format!("memory may be swapped out to {place}")),
    };
    let judgement = judgement.read(SWAPS, shown);
    Ok(match swappiness {
        Some(now) => judgement.read(SWAPPINESS, now.to_string()),
        None => judgement,
    })
}

/// At most three names.
fn listed(areas: &[&str]) -> String {
    let shown: Vec<String> = areas.iter().take(3).map(|area| area.chars().take(80).collect()).collect();
    let more = areas.len().saturating_sub(shown.len());
    if more == 0 { shown.join(", ") } else { format!("{} ({more} more)", shown.join(", ")) }
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, blank, intel};

    const HEADING: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority";

    fn areas(lines: &[&str]) -> String {
        [&[HEADING], lines].concat().join("\n")
    }

    #[test]
    fn a_swap_area_is_a_finding_and_none_is_good() {
        assert_eq!(intel(&[(SWAPS, HEADING)]).state("swap"), State::Ok);
        let text = areas(&["/dev/sda2 partition\t8388604\t0\t-2", "/dev/zram0 partition 1 0 100"]);
        let system = intel(&[(SWAPS, &text), (SWAPPINESS, "60")]);
        assert_eq!(system.state("swap"), State::Finding);
        assert_eq!(system.said("swap"), "memory may be swapped out to /dev/sda2, /dev/zram0 (swappiness 60)");
        assert_eq!(system.wanted("swap"), [format!("{SWAPPINESS} = 10")]);
        assert_eq!(system.and(SWAPPINESS, "1").wanted("swap"), [""; 0]);
    }

    #[test]
    fn seldom_is_minor_and_zram_is_no_disk() {
        let disk = areas(&["/dev/sda2 partition 1 0 -2"]);
        let of = |text: &str, swappiness: &str| intel(&[(SWAPS, text), (SWAPPINESS, swappiness)]);
        let severity = |swappiness| of(&disk, swappiness).finding("swap").severity;
        assert_eq!((severity("11"), severity("10")), (Severity::Major, Severity::Minor));
        let zram = of(&areas(&["/dev/zram0 partition 1 0 100"]), "60").said("swap");
        let said =
            "memory may be swapped out to /dev/zram0, which is compressed memory and no disk (swappiness 60)";
        assert_eq!(zram, said);
    }

    #[test]
    fn many_areas_are_not_all_named() {
        let text = areas(&["/a f 1 0 0", "/b f 1 0 0", "/c f 1 0 0", "/d f 1 0 0", "/e f 1 0 0"]);
        assert!(intel(&[(SWAPS, &text)]).said("swap").ends_with("/a, /b, /c (2 more)"));
    }

    #[test]
    fn what_is_no_table_is_not_taken_for_an_empty_one() {
        assert!(HOSTILE.iter().all(|text| intel(&[(SWAPS, text)]).state("swap") == State::Unreadable));
        assert_eq!(blank(&[]).state("swap"), State::NotApplicable);
    }
}
