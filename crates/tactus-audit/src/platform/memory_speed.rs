//! How fast the memory modules run.

use std::collections::BTreeMap;

use tactus_model::facts::Reading;
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const ID: &str = "memory-power-speed";

pub static CHECKS: &[Check] = &[Check {
    id: ID,
    title: "memory runs slower than it could",
    sources: &[
        Source::Xeon,
        Source::Kernel("Documentation/devicetree/bindings/memory-controllers/ddr/jedec,lpddr3-timings.yaml"),
        Source::Kernel("Documentation/devicetree/bindings/memory-controllers/rockchip,rk3399-dmc.yaml"),
        Source::Kernel("Documentation/admin-guide/pm/intel_idle.rst"),
    ],
    applies: &[Applies::Host],
    severity: Severity::Minor,
    arch: Arch::Any,
    set: &[SetBy::Firmware],
    reversible: Reversible::Reboot,
    hardware: true,
    reads: "the firmware's table of memory modules, as dmidecode -t 17 shows it: speed and configured speed",
    expected: "the configured speed of each module is its rated speed",
    why: "The firmware's power settings, or mixed modules, can run memory below its rated speed. Each cache miss \
then takes longer. Settings that power memory down on an idle bus make the time of a miss vary. Leaving power down \
takes some nanoseconds, leaving self refresh a whole access or more. The kernel's LPDDR3 example has a tXP of 3.75 \
ns and a tXSR of 70 ns. Package C-states also stop the memory controller (c1e-package-cstate).",
    fix: "In the firmware's setup set memory to its highest speed, and memory power saving (CKE power down, self \
refresh) off. A processor or a second module on the same channel may not allow more. Then no better setting exists.",
    risk: "none",
    judge: speed,
    changes: no_change,
}];

fn speed(subject: &Subject<'_>) -> Verdict {
    let (mut slow, mut full, mut silent) = (BTreeMap::<(u32, u32), usize>::new(), 0usize, 0usize);
    let mut read = BTreeMap::<&str, usize>::new();
    for (name, reading) in subject.facts.under("dmi:memory:") {
        let text = match reading {
            Reading::Text(text) | Reading::Cut(text) => text.trim(),
            Reading::Unreadable(reason) => {
                return Err(Judgement::unreadable(format!(
                    "the firmware's table could not be read: {reason}"
                ))
                .read(name, reason));
            }
            Reading::Absent => continue,
        };
        *read.entry(text).or_default() += 1;
        match (field(text, "rated"), field(text, "configured")) {
            (Some(rated), Some(configured)) if configured < rated => {
                *slow.entry((configured, rated)).or_default() += 1;
            }
            (Some(_), Some(_)) => full += 1,
            _ => silent += 1,
        }
    }
    if read.is_empty() {
        return Err(Judgement::not_applicable("the firmware has no table of memory modules"));
    }
    let judgement = if !slow.is_empty() {
        let words: Vec<String> = slow
            .iter()
            .map(|((configured, rated), count)| format!("{count} at {configured} MT/s instead of {rated}"))
            .collect();
        Judgement::finding(format!("memory modules run below their rated speed: {}", words.join(", ")))
    } else if silent > 0 {
        Judgement::unknowable(format!(
            "the firmware does not report the speed of every memory module ({silent} of them missing)"
        ))
    } else {
        Judgement::ok(format!(
            "all memory modules ({full}) run at their rated speed; only the firmware's setup shows whether they \
power down while idle"
        ))
    };
    Ok(read.into_iter().fold(judgement, |judgement, (text, count)| {
        judgement.read("memory modules (SMBIOS type 17)", format!("{count} times {text}"))
    }))
}

/// A speed in MT/s; `?` is what the firmware does not say.
fn field(text: &str, key: &str) -> Option<u32> {
    text.split_ascii_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Role, State};

    use super::*;
    use crate::testing::{HOSTILE, guest, intel};

    const FULL: &str = "size=16384MB rated=3200 configured=3200";
    const SLOW: &str = "size=16384MB rated=3200 configured=2933";

    #[test]
    fn modules_at_their_rated_speed_are_good() {
        assert_eq!(intel(&[("dmi:memory:0", FULL), ("dmi:memory:1", FULL)]).state(ID), State::Ok);
        let slow = intel(&[("dmi:memory:0", FULL), ("dmi:memory:1", SLOW), ("dmi:memory:10", SLOW)]);
        assert_eq!(
            slow.said(ID),
            "memory modules run below their rated speed: 2 at 2933 MT/s instead of 3200"
        );
    }

    #[test]
    fn what_the_firmware_does_not_tell_is_not_known() {
        let silent =
            intel(&[("dmi:memory:0", FULL), ("dmi:memory:1", "size=8192MB rated=3200 configured=?")]);
        assert_eq!(silent.state(ID), State::Unknowable);
        assert_eq!(intel(&[]).state(ID), State::NotApplicable);
        assert_eq!(intel(&[]).unreadable("dmi:memory:0", "Permission denied").state(ID), State::Unreadable);
        assert_eq!(guest(&[("dmi:memory:0", FULL)]).role(Role::Host).state(ID), State::Unknowable);
        for text in HOSTILE {
            assert_eq!(intel(&[("dmi:memory:0", text)]).state(ID), State::Unknowable, "{text}");
        }
    }
}
