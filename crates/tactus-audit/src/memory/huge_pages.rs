//! Huge pages that the kernel makes by itself.

use tactus_model::change::{Change, Form};
use tactus_model::finding::{Severity, State};

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
/// Since Linux 6.8 each size has a separate file. By default the largest inherits the value of the file above, and
/// all others are `never`.
const SIZES: &str = "/sys/kernel/mm/transparent_hugepage/hugepages-";

pub static CHECKS: &[Check] = &[Check {
    id: "thp",
    title: "the kernel makes huge pages without a request from the application",
    sources: &[
        Source::Kernel("Documentation/admin-guide/mm/transhuge.rst"),
        Source::Tuned("network-latency"),
    ],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Major,
    arch: Arch::Any,
    set: &[SetBy::RunTime, SetBy::KernelCommandLine],
    reversible: Reversible::Yes,
    hardware: false,
    reads: "/sys/kernel/mm/transparent_hugepage/enabled, hugepages-*/enabled beside it",
    expected: "never, and for each size never or inherit",
    why: "To make a huge page the kernel compacts memory and copies pages. It does so in the fault of the thread \
that touched it, or in khugepaged, which takes mmap_lock. The thread stops meanwhile.",
    fix: "Write never to /sys/kernel/mm/transparent_hugepage/enabled, and boot with transparent_hugepage=never. If \
the file of one size contains always or madvise, write never to it too, and remove thp_anon= from the command line. \
Applications that want huge pages reserve them (hugetlbfs).",
    risk: "Programs with large heaps miss the TLB more often.",
    judge,
    changes,
}];

/// The files of sizes that are enabled whatever the file above says, with what they say.
fn enabled_by_themselves<'a>(subject: &Subject<'a>) -> Vec<(&'a str, &'a str)> {
    let files = subject.facts.under(SIZES).map(|(path, _)| path).filter(|path| path.ends_with("/enabled"));
    let read = files.filter_map(|path| Some((path, subject.facts.text(path)?)));
    read.filter(|(_, text)| !["never", "inherit"].iter().any(|good| Form::Choice.same(text, good))).collect()
}

fn judge(subject: &Subject<'_>) -> Verdict {
    let all = subject.expect(ENABLED, Form::Choice, "never")?;
    let own = enabled_by_themselves(subject);
    if own.is_empty() {
        return Ok(all);
    }
    let size = |path: &str| path.trim_start_matches(SIZES).trim_end_matches("/enabled").to_owned();
    let sizes: Vec<String> =
        own.iter().map(|(path, text)| format!("{} ({})", size(path), Form::Choice.value(text))).collect();
    let also = if all.state == State::Ok { ", but" } else { ";" };
    let said = format!("{}{also} pages of these sizes are still made: {}", all.said, sizes.join(", "));
    let judgement = Judgement { state: State::Finding, said, ..all };
    Ok(own.into_iter().fold(judgement, |judgement, (path, text)| judgement.read(path, text)))
}

/// Existing huge pages stay until they are split; a boot with `never` makes none.
fn changes(subject: &Subject<'_>) -> Vec<Change> {
    let Some(now) = subject.set("thp", ENABLED, Form::Choice, "never") else { return Vec::new() };
    let sizes = enabled_by_themselves(subject).into_iter();
    let sizes = sizes.filter_map(|(path, _)| subject.set("thp", path, Form::Choice, "never"));
    std::iter::once(now).chain(sizes).chain([subject.boot("thp", "transparent_hugepage", "never")]).collect()
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, blank, intel};

    #[test]
    fn only_never_is_good_and_a_kernel_without_it_is_not_concerned() {
        let state = |text| intel(&[(ENABLED, text)]).state("thp");
        assert_eq!(state("always madvise [never]"), State::Ok);
        assert_eq!(state("always [madvise] never"), State::Finding);
        assert!(HOSTILE.iter().all(|text| state(text) == State::Finding));
        assert_eq!(blank(&[]).state("thp"), State::NotApplicable);
        assert_eq!(blank(&[]).unreadable(ENABLED, "denied").state("thp"), State::Unreadable);
    }

    /// As Linux 6.18 has them: inherit is a fourth word.
    #[test]
    fn a_size_that_is_enabled_by_itself_is_named_and_set_as_well() {
        let of = |size: &str| format!("{SIZES}{size}/enabled");
        let (small, large) = (of("64kB"), of("2048kB"));
        let never = "always inherit madvise [never]";
        let inherits = "always [inherit] madvise never";
        let system = |all: &str, one: &str| intel(&[(ENABLED, all), (&small, one), (&large, inherits)]);
        assert_eq!(system("always madvise [never]", never).state("thp"), State::Ok);
        assert_eq!(
            system("[always] madvise never", never).said("thp"),
            format!("{ENABLED} is always, not never")
        );
        let one = system("always madvise [never]", "always inherit [madvise] never");
        assert_eq!(one.state("thp"), State::Finding);
        assert!(one.said("thp").ends_with("are still made: 64kB (madvise)"), "{}", one.said("thp"));
        assert_eq!(
            one.wanted("thp"),
            [format!("{small} = never"), "kernel parameter transparent_hugepage = never".into()]
        );
        let both = system("[always] madvise never", "[always] inherit madvise never");
        assert!(
            both.said("thp").contains("is always, not never; pages of these sizes"),
            "{}",
            both.said("thp")
        );
        assert!(
            HOSTILE.iter().all(|text| system("always madvise [never]", text).state("thp") == State::Finding)
        );
    }

    #[test]
    fn it_is_set_now_and_for_the_next_boot() {
        let system =
            intel(&[(ENABLED, "[always] madvise never"), ("/proc/cmdline", "transparent_hugepage=madvise")]);
        assert_eq!(
            system.wanted("thp"),
            [format!("{ENABLED} = never"), "kernel parameter transparent_hugepage = never".into()]
        );
        assert!(blank(&[]).changes("thp").is_empty());
    }
}
