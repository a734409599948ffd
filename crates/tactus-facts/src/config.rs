//! The kernel's configuration: the options that matter for keeping time.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Mode, OFlags};

use tactus_model::facts::Reading;

use crate::read::Collector;

/// Options that are kept, without `CONFIG_`.
const OPTIONS: &[&str] = &[
    "CGROUPS",
    "CPUSETS",
    "CPU_FREQ",
    "CPU_FREQ_DEFAULT_GOV_PERFORMANCE",
    "CPU_IDLE",
    "CPU_ISOLATION",
    "DEBUG_ATOMIC_SLEEP",
    "DEBUG_KMEMLEAK",
    "DEBUG_LOCK_ALLOC",
    "DEBUG_MUTEXES",
    "DEBUG_OBJECTS",
    "DEBUG_PAGEALLOC",
    "DEBUG_PREEMPT",
    "DEBUG_RT_MUTEXES",
    "DEBUG_SPINLOCK",
    "EFI_DISABLE_RUNTIME",
    "FTRACE",
    "FUNCTION_TRACER",
    "HALTPOLL_CPUIDLE",
    "HIGH_RES_TIMERS",
    "HUGETLBFS",
    "HWLAT_TRACER",
    "HZ",
    "INTEL_IDLE",
    "INTEL_IOMMU",
    "IOMMU_DEFAULT_PASSTHROUGH",
    "IRQSOFF_TRACER",
    "IRQ_FORCED_THREADING",
    "IRQ_TIME_ACCOUNTING",
    "JUMP_LABEL",
    "KASAN",
    "KCSAN",
    "KVM",
    "KVM_AMD",
    "KVM_INTEL",
    "LATENCYTOP",
    "LOCKDEP",
    "LOCKUP_DETECTOR",
    "NO_HZ_FULL",
    "NO_HZ_IDLE",
    "NR_CPUS",
    "NUMA_BALANCING",
    "OSNOISE_TRACER",
    "PREEMPT",
    "PREEMPTIRQ_DELAY_TEST",
    "PREEMPT_DYNAMIC",
    "PREEMPT_LAZY",
    "PREEMPT_NONE",
    "PREEMPT_RT",
    "PREEMPT_TRACER",
    "PREEMPT_VOLUNTARY",
    "PROVE_LOCKING",
    "RCU_BOOST",
    "RCU_NOCB_CPU",
    "RCU_NOCB_CPU_DEFAULT_ALL",
    "RT_GROUP_SCHED",
    "RT_GROUP_SCHED_DEFAULT_DISABLED",
    "SCHEDSTATS",
    "SCHED_CORE",
    "SCHED_DEBUG",
    "SCHED_SMT",
    "SLUB_DEBUG_ON",
    "SMP",
    "TIMERLAT_TRACER",
    "TRANSPARENT_HUGEPAGE",
    "UBSAN",
    "VFIO",
    "VIRT_CPU_ACCOUNTING_GEN",
    "X86_CPU_RESCTRL",
];

/// Packed in the kernel itself.
const PACKED: &str = "/proc/config.gz";
/// A configuration has about 300 kB.
const LONGEST: usize = 4 << 20;

/// Keeps where the configuration was found and what it says.
pub fn keep(it: &mut Collector) {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let (source, text) = find(&release);
    it.facts.0.insert("config:source".into(), source);
    let Some(text) = text else { return };
    let said = parse(&text);
    for option in OPTIONS {
        let value = said.iter().find(|(name, _)| name == option).map(|(_, value)| (*value).to_owned());
        it.facts.0.insert(format!("config:CONFIG_{option}"), value.map_or(Reading::Absent, Reading::Text));
    }
}

/// The configuration of the running kernel. /proc/config.gz is certainly its own, and goes first.
fn find(release: &str) -> (Reading, Option<String>) {
    let packed = believed(PACKED);
    if let Some(text) = packed.as_deref().and_then(unpacked) {
        return (Reading::Text(PACKED.into()), Some(text));
    }
    for path in [
        format!("/boot/config-{release}"),
        format!("/lib/modules/{release}/config"),
        format!("/usr/lib/kernel/config-{release}"),
        format!("/lib/modules/{release}/build/.config"),
    ] {
        if let Some(text) = believed(&path).and_then(|bytes| String::from_utf8(bytes).ok()) {
            return (Reading::Text(path), Some(text));
        }
    }
    let source = match packed {
        Some(_) => Reading::Unreadable(format!("only in {PACKED}, which cannot be unpacked")),
        None => Reading::Absent,
    };
    (source, None)
}

/// Reads a regular file of root's, of [`LONGEST`] bytes at the most. The link `build` leads to a directory of the user who built
/// the kernel: a pipe there would block, and a device has no end.
fn believed(path: &str) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = fs::File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let of = file.metadata().ok()?;
    if !of.is_file() || of.uid() != 0 {
        return None;
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(LONGEST).unwrap_or(u64::MAX);
    file.take(most + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() <= LONGEST).then_some(bytes)
}

fn unpacked(bytes: &[u8]) -> Option<String> {
    let text = crate::inflate::gunzip(bytes, LONGEST)?;
    String::from_utf8(text).ok()
}

/// Names without `CONFIG_` and values: `y`, `m`, `n`, a number, a text without its quotes.
fn parse(text: &str) -> Vec<(&str, &str)> {
    let option = |line: &'_ str| -> Option<(usize, usize)> {
        // Places and not texts, so that one closure serves both forms.
        if let Some(rest) = line.strip_prefix("CONFIG_") {
            return Some((7, 7 + rest.find('=')?));
        }
        let name = line.strip_prefix("# CONFIG_")?.strip_suffix(" is not set")?;
        Some((9, 9 + name.len()))
    };
    text.lines()
        .filter_map(|line| {
            let (start, end) = option(line)?;
            let value = if start == 9 { "n" } else { line[end + 1..].trim_matches('"') };
            Some((&line[start..end], value))
        })
        .filter(|(name, _)| OPTIONS.binary_search(name).is_ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_sorted_so_that_they_can_be_searched() {
        assert!(OPTIONS.is_sorted());
    }

    #[test]
    fn options_have_their_values() {
        let text = "# Automatically generated\nCONFIG_PREEMPT_RT=y\nCONFIG_KVM=m\n# CONFIG_KASAN is not set\nCONFIG_HZ=250\n\
                    CONFIG_CC_VERSION_TEXT=\"gcc\"\nCONFIG_HZ_250=y\nCONFIG_SMP\n# CONFIG_SMP\n";
        assert_eq!(parse(text), [("PREEMPT_RT", "y"), ("KVM", "m"), ("KASAN", "n"), ("HZ", "250")]);
    }
}
