//! How much may wait to be written.

use tactus_model::change::{Change, Form};
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

pub static CHECKS: &[Check] = &[Check {
    id: "dirty-writeback",
    title: "too much unwritten data may accumulate and go to the disk at once",
    sources: &[
        Source::Kernel("Documentation/admin-guide/sysctl/vm.rst"),
        Source::Tuned("latency-performance"),
    ],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Info,
    arch: Arch::Any,
    set: &[SetBy::RunTime],
    reversible: Reversible::Yes,
    hardware: false,
    reads: "/proc/sys/vm/{dirty_ratio,dirty_bytes,dirty_background_ratio,dirty_background_bytes}, /proc/meminfo",
    expected: "writers wait at 10 % of available memory (free and reclaimable pages) or less, and writing starts at \
3 % or less",
    why: "With more dirty pages the flusher threads write a longer burst. It causes interrupts and takes memory \
bandwidth, and writers wait until it ends.",
    fix: "Write 10 to /proc/sys/vm/dirty_ratio and 3 to /proc/sys/vm/dirty_background_ratio (vm.* in \
/etc/sysctl.d), or the same in bytes.",
    risk: "More and smaller writes: programs that write much are throttled earlier.",
    judge,
    changes,
}];

/// One limit: its two settings (the unused one is 0), and the good value, in percent.
struct Limit {
    ratio: &'static str,
    bytes: &'static str,
    percent: u64,
    what: &'static str,
}

const LIMITS: [Limit; 2] = [
    Limit {
        ratio: "/proc/sys/vm/dirty_ratio",
        bytes: "/proc/sys/vm/dirty_bytes",
        percent: 10,
        what: "writers wait",
    },
    Limit {
        ratio: "/proc/sys/vm/dirty_background_ratio",
        bytes: "/proc/sys/vm/dirty_background_bytes",
        percent: 3,
        what: "writing starts",
    },
];

fn judge(subject: &Subject<'_>) -> Verdict {
    let (mut good, mut said, mut reads) = (true, Vec::new(), Vec::new());
    for limit in &LIMITS {
        let ratio = subject.number(limit.ratio)?;
        let bytes = subject.facts.number(limit.bytes);
        match bytes {
            Some(bytes @ 1..) => {
                let most = share(subject, limit.percent).ok_or_else(|| {
                    Judgement::unreadable(format!(
                        "{} is {bytes}, but /proc/meminfo does not show of how much memory",
                        limit.bytes
                    ))
                })?;
                good &= bytes <= most;
                said.push(format!("{} at {} MiB of unwritten data", limit.what, bytes >> 20));
                reads.push((limit.bytes, bytes));
            }
            // Ratio 0 beside unknown bytes says nothing.
            None if ratio == 0 => {
                return Err(Judgement::unreadable(format!(
                    "{} is 0, so {} applies, which was not read",
                    limit.ratio, limit.bytes
                )));
            }
            _ => {
                good &= ratio <= limit.percent;
                said.push(format!("{} at {ratio} % of available memory", limit.what));
                reads.push((limit.ratio, ratio));
            }
        }
    }
    let said = said.join(", ");
    let judgement = Judgement::when(good, &*said, &*said);
    Ok(reads.into_iter().fold(judgement, |judgement, (path, value)| judgement.read(path, value.to_string())))
}

/// `percent` percent of memory in bytes, in whole pages.
fn share(subject: &Subject<'_>, percent: u64) -> Option<u64> {
    let total = subject.facts.field("/proc/meminfo", "MemTotal", ':')?;
    let kib: u64 = total.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib.checked_mul(1024)? / 100 * percent / 4096 * 4096)
}

/// In the unit that is in use: writing one setting clears the other (mm/page-writeback.c), which
/// could not be taken back.
fn changes(subject: &Subject<'_>) -> Vec<Change> {
    LIMITS
        .iter()
        .filter_map(|limit| {
            let (path, now, most) = match subject.facts.number(limit.bytes)? {
                0 => (limit.ratio, subject.facts.number(limit.ratio)?, limit.percent),
                bytes => (limit.bytes, bytes, share(subject, limit.percent)?),
            };
            subject.set("dirty-writeback", path, Form::Plain, now.min(most).to_string())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, System, blank, intel};

    fn system(values: [&str; 4]) -> System {
        let [ratio, bytes, background, background_bytes] = values;
        intel(&[
            (LIMITS[0].ratio, ratio),
            (LIMITS[0].bytes, bytes),
            (LIMITS[1].ratio, background),
            (LIMITS[1].bytes, background_bytes),
            ("/proc/meminfo", "MemTotal:        1024000 kB\nMemFree: 1 kB"),
        ])
    }

    #[test]
    fn ten_and_three_percent_are_good_in_either_unit() {
        let state = |values| system(values).state("dirty-writeback");
        assert_eq!(state(["10", "0", "3", "0"]), State::Ok);
        assert_eq!(state(["20", "0", "3", "0"]), State::Finding);
        assert_eq!(state(["10", "0", "10", "0"]), State::Finding);
        assert_eq!(state(["0", "104857600", "0", "31457280"]), State::Ok);
        assert_eq!(state(["0", "1073741824", "0", "31457280"]), State::Finding);
    }

    #[test]
    fn the_unit_that_is_in_use_stays_in_use() {
        assert_eq!(
            system(["20", "0", "10", "0"]).wanted("dirty-writeback"),
            ["/proc/sys/vm/dirty_ratio = 10", "/proc/sys/vm/dirty_background_ratio = 3"]
        );
        assert_eq!(
            system(["0", "1073741824", "1", "0"]).wanted("dirty-writeback"),
            ["/proc/sys/vm/dirty_bytes = 104857600"]
        );
    }

    #[test]
    fn without_both_units_or_the_size_of_memory_nothing_is_said() {
        let bytes = system(["0", "4096", "3", "0"]).without("/proc/meminfo");
        assert_eq!(bytes.state("dirty-writeback"), State::Unreadable);
        let old = system(["0", "0", "3", "0"]).without(LIMITS[0].bytes);
        assert_eq!(old.state("dirty-writeback"), State::Unreadable);
        assert_eq!(blank(&[]).state("dirty-writeback"), State::NotApplicable);
        for text in HOSTILE {
            assert_eq!(system([text, "0", "3", "0"]).state("dirty-writeback"), State::Unreadable);
        }
    }
}
