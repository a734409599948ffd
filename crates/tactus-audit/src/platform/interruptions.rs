//! Time that the firmware takes: system management interrupts, and what else stops all CPUs.

use tactus_model::CpuSet;
use tactus_model::facts::{Facts, Reading};
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const TRACER: &str = "/sys/kernel/tracing/current_tracer";

pub static CHECKS: &[Check] = &[
    Check {
        id: "smi-count",
        title: "the firmware stops the CPUs (SMI)",
        sources: &[Source::Xeon],
        applies: &[Applies::Host],
        severity: Severity::Blocker,
        arch: Arch::X86,
        set: &[SetBy::Firmware],
        reversible: Reversible::Reboot,
        hardware: true,
        reads: "MSR 0x34 of the CPUs, twice (Intel)",
        expected: "the count does not grow",
        why: "A system management interrupt stops all CPUs at once. The kernel cannot mask it, and it lasts from \
some microseconds to milliseconds. Isolation does not help against it.",
        fix: "Look for the source in the firmware's setup: legacy USB, memory error logging and correction, power \
capping, fan and management functions, the TCO watchdog. Update the firmware. Ask the vendor for its real-time \
settings.",
        risk: "Some SMIs control the temperature or correct memory: never turn thermal ones off.",
        judge: smi,
        changes: no_change,
    },
    Check {
        id: "hwlat",
        title: "the hardware takes time that no system can see",
        sources: &[Source::Kernel("Documentation/trace/hwlat_detector.rst")],
        applies: &[Applies::Host],
        severity: Severity::Blocker,
        arch: Arch::Any,
        set: &[SetBy::Firmware],
        reversible: Reversible::Nothing,
        hardware: true,
        reads: "a measurement: tactus measure spin, or the kernel's tracer hwlat. The audit reads only whether that \
tracer runs now (/sys/kernel/tracing/current_tracer)",
        expected: "no gap above 10 us while interrupts are off, and no tracer hwlat during real-time work",
        why: "SMIs, memory scrubbing, stalled buses and hypervisors show as gaps in a loop that only reads the \
clock. The tracer runs such a loop with interrupts off, by default for half of each second on one CPU after another. \
While it runs, it is the disturbance.",
        fix: "Run tactus measure spin on the isolated CPUs. If the tracer was left on, write nop to \
/sys/kernel/tracing/current_tracer.",
        risk: "The tracer disturbs everything else.",
        judge: hwlat,
        changes: no_change,
    },
];

/// The SMI counts by CPU. Unreadable: the reason.
fn counts(facts: &Facts) -> Result<Vec<(u32, u64)>, Option<String>> {
    let (mut counts, mut refused) = (Vec::new(), None);
    for (name, reading) in facts.under("msr:") {
        let Some((cpu, "0x34")) = name.trim_start_matches("msr:").split_once(':') else { continue };
        let Ok(cpu) = cpu.parse() else { continue };
        match reading {
            Reading::Text(text) | Reading::Cut(text) => {
                let value = text.trim().strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
                match value {
                    // Bits 31:0 count; the others are reserved.
                    Some(value) => counts.push((cpu, value & 0xffff_ffff)),
                    None => refused = Some(format!("{name} contains {}", text.trim())),
                }
            }
            Reading::Unreadable(reason) => refused = Some(format!("{name} could not be read: {reason}")),
            Reading::Absent => {}
        }
    }
    counts.sort_unstable();
    if counts.is_empty() { Err(refused) } else { Ok(counts) }
}

fn smi(subject: &Subject<'_>) -> Verdict {
    if !subject.is(Arch::Intel) {
        return Err(Judgement::unreadable(
            "this processor counts SMIs only for perf (event ls_smi_rx), which an audit does not start: \
perf stat -a -e ls_smi_rx sleep 60",
        ));
    }
    let now = counts(subject.facts).map_err(|refused| {
        Judgement::unreadable(refused.unwrap_or_else(|| {
            "the SMI counts were not read: load the module msr (modprobe msr) and be root".into()
        }))
    })?;
    let total = now.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let cpus: CpuSet = now.iter().map(|(cpu, _)| *cpu).collect();
    let path = format!("MSR 0x34 of CPUs {cpus}");
    let Some(later) = subject.later.and_then(|later| counts(later).ok()) else {
        return Ok(if total == 0 {
            Judgement::ok("no SMI since the machine started").read(path, "0")
        } else {
            Judgement::unknowable(format!(
                "up to {total} SMIs since the machine started; only a second reading shows whether there are more"
            ))
            .read(path, total.to_string())
        });
    };
    let mut grown: Vec<(u32, u64)> = Vec::new();
    for (cpu, before) in &now {
        let Some(after) = later.binary_search_by_key(cpu, |(cpu, _)| *cpu).ok().and_then(|at| later.get(at))
        else {
            return Err(Judgement::unreadable(format!(
                "the second reading does not contain the SMIs of CPU {cpu}"
            )));
        };
        // 32 bits that wrap.
        let more = after.1.wrapping_sub(*before) & 0xffff_ffff;
        if more > 0 {
            grown.push((*cpu, more));
        }
    }
    let over =
        interval(subject).map_or("between two readings".to_owned(), |seconds| format!("in {seconds:.1} s"));
    let most = grown.iter().map(|(_, more)| *more).max().unwrap_or(0);
    let hit: CpuSet = grown.iter().map(|(cpu, _)| *cpu).collect();
    Ok(Judgement::when(
        grown.is_empty(),
        format!("no SMI {over} ({total} since the machine started)"),
        format!("up to {most} SMIs {over} on CPUs {hit}"),
    )
    .read(path, format!("{total}, then {most} more")))
}

/// Seconds between the two looks.
fn interval(subject: &Subject<'_>) -> Option<f64> {
    let uptime = |facts: &Facts| -> Option<f64> {
        facts.text("/proc/uptime")?.split_ascii_whitespace().next()?.parse().ok()
    };
    let seconds = uptime(subject.later?)? - uptime(subject.facts)?;
    (seconds.is_finite() && seconds > 0.0).then_some(seconds)
}

fn hwlat(subject: &Subject<'_>) -> Verdict {
    let tracer = subject.facts.text(TRACER);
    if tracer == Some("hwlat") {
        return Ok(Judgement::finding(
            "the tracer hwlat runs now, and stops one CPU after another with interrupts off",
        )
        .read(TRACER, "hwlat"));
    }
    let has = match subject.facts.text("config:CONFIG_HWLAT_TRACER") {
        Some("y") => "; this kernel has the tracer hwlat too",
        _ => "",
    };
    let judgement =
        Judgement::unknowable(format!("no setting shows it; measure it with tactus measure spin{has}"));
    Ok(judgement.read(TRACER, tracer.unwrap_or("not read")))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Role, State};

    use super::*;
    use crate::testing::{HOSTILE, amd, arm, guest, intel};

    const ID: &str = "smi-count";

    #[test]
    fn a_count_that_does_not_grow_is_good() {
        assert_eq!(intel(&[("msr:0:0x34", "0x0")]).state(ID), State::Ok);
        let quiet = intel(&[("msr:0:0x34", "0x2f"), ("/proc/uptime", "100.00 1.0")])
            .later(&[("/proc/uptime", "160.50 2.0")]);
        assert_eq!(quiet.said(ID), "no SMI in 60.5 s (47 since the machine started)");
    }

    #[test]
    fn a_count_that_grows_stops_everything() {
        let two = [("msr:0:0x34", "0x2f"), ("msr:10:0x34", "0x2f"), ("msr:2:0x34", "0xffffffff")];
        let busy = intel(&two).later(&[("msr:0:0x34", "0x31"), ("msr:2:0x34", "0x0")]).finding(ID);
        assert_eq!((busy.state, busy.severity), (State::Finding, Severity::Blocker));
        assert_eq!(busy.message, "up to 2 SMIs between two readings on CPUs 0,2");
    }

    #[test]
    fn one_look_does_not_tell_whether_there_are_more() {
        assert_eq!(intel(&[("msr:0:0x34", "0x2f")]).state(ID), State::Unknowable);
    }

    #[test]
    fn counts_that_were_not_read_are_not_zero() {
        assert_eq!(intel(&[]).absent("msr:0:0x34").state(ID), State::Unreadable);
        assert_eq!(
            intel(&[]).unreadable("msr:0:0x34", "Operation not permitted").state(ID),
            State::Unreadable
        );
        assert_eq!(amd(&[]).state(ID), State::Unreadable);
        assert_eq!(arm(&[]).state(ID), State::NotApplicable);
        assert_eq!(guest(&[("msr:0:0x34", "0x0")]).role(Role::Host).state(ID), State::Unknowable);
        for text in HOSTILE {
            assert_eq!(intel(&[("msr:0:0x34", text)]).state(ID), State::Unreadable, "{text}");
        }
    }

    #[test]
    fn only_a_measurement_tells_what_the_hardware_takes() {
        assert_eq!(intel(&[(TRACER, "nop")]).state("hwlat"), State::Unknowable);
        assert_eq!(intel(&[(TRACER, "hwlat")]).state("hwlat"), State::Finding);
        assert_eq!(guest(&[(TRACER, "hwlat")]).state("hwlat"), State::NotApplicable);
    }
}
