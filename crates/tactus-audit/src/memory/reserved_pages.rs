//! Huge pages that are reserved for guests and programs that ask for them.

use std::collections::BTreeMap;

use tactus_model::CpuSet;
use tactus_model::change::Change;
use tactus_model::facts::{Facts, Reading};
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const NODES: &str = "/sys/devices/system/node/node";
const GIGANTIC: &str = "hugepages-1048576kB";
const KIB_OF_PAGE: u64 = 1 << 20;

pub static CHECKS: &[Check] = &[Check {
    id: "hugepages-1g",
    title: "no pages of 1 GiB are reserved",
    sources: &[Source::Qoriq, Source::Kernel("Documentation/admin-guide/mm/hugetlbpage.rst")],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Major,
    arch: Arch::Any,
    set: &[SetBy::KernelCommandLine],
    reversible: Reversible::Reboot,
    hardware: false,
    reads: "/sys/devices/system/node/node*/hugepages/hugepages-1048576kB/{nr,free}_hugepages",
    expected: "pages of 1 GiB on each node with real-time CPUs, enough for the guests",
    why: "In a guest a TLB miss walks two page tables: up to 24 memory accesses with pages of 4 KiB. In \
freescale-qoriq-2014 random reads took 648 ns in a guest and 125 ns on the host (+418 %). That guest had huge pages, \
with TLB entries limited to 2 MB. Reserved pages are never swapped, merged or moved.",
    fix: "Boot with default_hugepagesz=1G hugepagesz=1G hugepages=N, where N is the GiB of all guests that run at \
once (hugepages=0:N,1:M by node). At run time a write of N to the node's nr_hugepages works only while memory is not \
fragmented. Give guests these pages: <memoryBacking><hugepages><page size='1' unit='G'/></hugepages>.",
    risk: "Nothing else can use the memory. With default_hugepagesz=1G, programs that request the default size no \
longer get pages of 2 MiB.",
    judge,
    changes,
}];

/// Pages of 1 GiB of a node.
#[derive(Clone, Copy, Default)]
struct Pool {
    all: u64,
    free: u64,
}

fn judge(subject: &Subject<'_>) -> Verdict {
    let pools = pools(subject.facts)?;
    let wanted = concerned(subject, &pools);
    let need = need(subject.facts);
    let empty: Vec<String> =
        wanted.iter().filter(|(_, pool)| pool.all == 0).map(|(node, _)| node.to_string()).collect();
    let free = wanted.iter().fold(0_u64, |sum, (_, pool)| sum.saturating_add(pool.free));
    let all = wanted.iter().fold(0_u64, |sum, (_, pool)| sum.saturating_add(pool.all));
    let judgement = if all == 0 {
        match need {
            // Without a guest it is unknown whether the pages are wanted.
            0 => Judgement::finding("no pages of 1 GiB are reserved, and no guest here needs them")
                .at(Severity::Minor),
            need => Judgement::finding(format!(
                "no pages of 1 GiB are reserved; the guests that run now need {need}"
            )),
        }
    } else if !empty.is_empty() {
        Judgement::finding(format!("node {} has no pages of 1 GiB", empty.join(", ")))
    } else if free < need {
        Judgement::finding(format!(
            "{free} of {all} pages of 1 GiB are free, but guests with smaller pages need {need}"
        ))
    } else {
        Judgement::ok(format!("{all} pages of 1 GiB are reserved, {free} of them are free"))
    };
    Ok(wanted.iter().take(8).fold(judgement, |judgement, (node, pool)| {
        judgement.read(
            format!("{NODES}{node}/hugepages/{GIGANTIC}/{{nr,free}}_hugepages"),
            format!("{} and {}", pool.all, pool.free),
        )
    }))
}

fn pools(facts: &Facts) -> Result<BTreeMap<u32, Pool>, Judgement> {
    let (mut pools, mut others, mut refused) = (BTreeMap::<u32, Pool>::new(), false, None);
    for (path, reading) in facts.under(NODES) {
        let Some((node, rest)) = path.strip_prefix(NODES).and_then(|rest| rest.split_once("/hugepages/"))
        else {
            continue;
        };
        let (Ok(node), Some((size, file))) = (node.parse(), rest.split_once('/')) else { continue };
        if size != GIGANTIC {
            others = true;
            continue;
        }
        let value = match reading {
            Reading::Text(text) | Reading::Cut(text) => text.trim().parse().ok(),
            Reading::Absent => continue,
            Reading::Unreadable(_) => None,
        };
        let pool = pools.entry(node).or_default();
        match (file, value) {
            ("nr_hugepages", Some(value)) => pool.all = value,
            ("free_hugepages", Some(value)) => pool.free = value,
            ("nr_hugepages" | "free_hugepages", None) => refused = Some(path),
            _ => {}
        }
    }
    match (refused, pools.is_empty()) {
        (Some(path), _) => Err(Judgement::unreadable(format!("{path} could not be read"))),
        (None, false) => Ok(pools),
        (None, true) if others => {
            Err(Judgement::not_applicable("this processor or kernel has huge pages, but none of 1 GiB"))
        }
        (None, true) => {
            Err(Judgement::not_applicable("this kernel does not show huge pages of its NUMA nodes"))
        }
    }
}

/// The nodes with CPUs for real-time work; all, where none is known to have any.
fn concerned(subject: &Subject<'_>, pools: &BTreeMap<u32, Pool>) -> Vec<(u32, Pool)> {
    let has_isolated = |node: &u32| {
        let cpus = subject.facts.text(&format!("{NODES}{node}/cpulist"));
        cpus.and_then(|cpus| cpus.parse::<CpuSet>().ok())
            .is_some_and(|cpus| !cpus.and(subject.isolated()).is_empty())
    };
    let pairs = |keep: &dyn Fn(&u32) -> bool| -> Vec<(u32, Pool)> {
        pools.iter().filter(|(node, _)| keep(node)).map(|(node, pool)| (*node, *pool)).collect()
    };
    let chosen = pairs(&has_isolated);
    if chosen.is_empty() { pairs(&|_| true) } else { chosen }
}

/// GiB of the guests that run without such pages, each rounded up.
fn need(facts: &Facts) -> u64 {
    facts
        .under("vm:")
        .filter_map(|(name, _)| {
            let vm = name.strip_suffix(":VmRSS")?;
            if facts.text(&format!("{vm}:hugepages")).is_some_and(|sizes| sizes.contains("1048576 kB:")) {
                return None;
            }
            let kib: u64 = facts.text(name)?.trim_end_matches("kB").trim().parse().ok()?;
            Some(kib.div_ceil(KIB_OF_PAGE))
        })
        .fold(0, u64::saturating_add)
}

/// How many are needed only the guests that run can tell. Where the command line reserves huge pages
/// already, its order decides which number belongs to which size: that is left to the user.
fn changes(subject: &Subject<'_>) -> Vec<Change> {
    let need = need(subject.facts);
    let reserves = ["default_hugepagesz", "hugepagesz", "hugepages"].iter().any(|p| subject.cmdline.has(p));
    if need == 0 || reserves || pools(subject.facts).is_err() {
        return Vec::new();
    }
    [
        ("default_hugepagesz", "1G".to_owned()),
        ("hugepagesz", "1G".to_owned()),
        ("hugepages", need.to_string()),
    ]
    .into_iter()
    .map(|(parameter, then)| subject.boot("hugepages-1g", parameter, then))
    .collect()
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, System, blank, intel};

    fn node(system: System, node: u32, cpus: &str, all: &str, free: &str) -> System {
        let pool = format!("{NODES}{node}/hugepages/{GIGANTIC}");
        system
            .and(&format!("{NODES}{node}/cpulist"), cpus)
            .and(&format!("{pool}/nr_hugepages"), all)
            .and(&format!("{pool}/free_hugepages"), free)
    }

    fn two_nodes(first: &str, second: &str) -> System {
        node(node(intel(&[]), 0, "0-1", first, first), 1, "2-3", second, second)
    }

    #[test]
    fn the_node_of_the_isolated_cpus_must_have_them() {
        assert_eq!(two_nodes("0", "4").state("hugepages-1g"), State::Ok);
        assert_eq!(two_nodes("4", "0").state("hugepages-1g"), State::Finding);
        let both = two_nodes("4", "0").isolate("1-2");
        assert_eq!(both.said("hugepages-1g"), "node 1 has no pages of 1 GiB");
    }

    #[test]
    fn guests_without_them_need_some() {
        let guest =
            two_nodes("0", "0").and("vm:900:VmRSS", "4300000 kB").and("vm:900:hugepages", "4 kB: 4300000");
        assert_eq!(
            guest.said("hugepages-1g"),
            "no pages of 1 GiB are reserved; the guests that run now need 5"
        );
        assert_eq!(
            guest.wanted("hugepages-1g"),
            [
                "kernel parameter default_hugepagesz = 1G",
                "kernel parameter hugepagesz = 1G",
                "kernel parameter hugepages = 5"
            ]
        );
        let has = guest.clone().and("/proc/cmdline", "hugepagesz=2M hugepages=512");
        assert!(has.changes("hugepages-1g").is_empty(), "the other pool would be lost");
        assert!(two_nodes("0", "0").changes("hugepages-1g").is_empty(), "nobody says how many");
        let served = guest.and("vm:900:hugepages", "4 kB: 9, 1048576 kB: 4194304");
        assert!(served.changes("hugepages-1g").is_empty());
    }

    #[test]
    fn a_processor_without_such_pages_is_not_concerned() {
        let small = format!("{NODES}0/hugepages/hugepages-2048kB/nr_hugepages");
        assert_eq!(intel(&[(&small, "512")]).state("hugepages-1g"), State::NotApplicable);
        assert_eq!(blank(&[]).state("hugepages-1g"), State::NotApplicable);
    }

    #[test]
    fn what_is_no_number_is_unreadable() {
        for text in HOSTILE {
            assert_eq!(node(intel(&[]), 0, "0-3", text, "0").state("hugepages-1g"), State::Unreadable);
        }
    }
}
