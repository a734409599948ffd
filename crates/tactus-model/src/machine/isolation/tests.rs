use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// A tree of files, and the readings that were made of it.
#[derive(Default)]
struct Tree {
    files: BTreeMap<String, String>,
    facts: Facts,
    looked_at: usize,
}

impl Tree {
    fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        Self { files, ..Self::default() }
    }

    fn isolated(mut self, online: &str) -> (Isolated, Facts) {
        look(&mut self);
        (Isolated::of(&self.facts, &online.parse().unwrap()), self.facts)
    }
}

impl Files for Tree {
    fn text(&mut self, path: &str) -> Option<String> {
        let text = self.files.get(path)?;
        self.looked_at += 1;
        self.facts.keep(path, text.clone());
        Some(text.clone())
    }

    fn names(&mut self, directory: &str) -> Vec<String> {
        let inside = |path: &String| {
            Some(path.strip_prefix(directory)?.strip_prefix('/')?.split('/').next()?.to_owned())
        };
        self.files.keys().filter_map(inside).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn keep(&mut self, name: &str, text: &str) {
        self.facts.keep(name, text);
    }
}

/// A guest of four CPUs with Debian's kernel 6.1, as its files were found.
const DEBIAN_12: &[(&str, &str)] = &[
    ("/proc/self/cgroup", "0::/\n"),
    ("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma misc\n"),
    ("/sys/fs/cgroup/cpuset.cpus.effective", "0-1\n"),
    ("/sys/fs/cgroup/house/cpuset.cpus.partition", "member\n"),
    ("/sys/fs/cgroup/house/cpuset.cpus.effective", "0-1\n"),
    ("/sys/fs/cgroup/rt/cpuset.cpus.partition", "isolated\n"),
    ("/sys/fs/cgroup/rt/cpuset.cpus.effective", "2-3\n"),
    ("/sys/fs/cgroup/rt/cgroup.procs", ""),
];

#[test]
fn a_partition_isolates_although_nothing_was_said_at_boot() {
    let (isolated, facts) = Tree::of(DEBIAN_12).isolated("0-3");
    assert_eq!((isolated.at_boot.to_string(), isolated.at_run_time.to_string()), ("".into(), "2,3".into()));
    let partition = Group { path: "/sys/fs/cgroup/rt".into(), cpus: "2-3".parse().unwrap() };
    assert_eq!(isolated.partitions, [partition]);
    let own = own_cpuset(&facts).unwrap();
    assert_eq!((own.path.as_str(), own.cpus.to_string().as_str()), ("/", "0,1"));
    assert_eq!(told(&facts).unwrap(), "2,3 (by a cpuset)");
}

#[test]
fn a_reader_is_told_which_cpus_are_isolated_and_by_what() {
    let told = |readings: &[(&str, &str)]| {
        let mut facts = Facts::default();
        readings.iter().for_each(|(name, text)| facts.keep(*name, *text));
        told(&facts)
    };
    assert_eq!(told(&[]), None);
    assert_eq!(told(&[(BOOT, "")]), Some(String::new()));
    assert_eq!(told(&[(BOOT, "2-3")]).unwrap(), "2,3");
    // Since 6.13 the root names those of the boot as well.
    assert_eq!(told(&[(BOOT, "2-3"), (PARTITIONS, "2-3")]).unwrap(), "2,3");
    assert_eq!(told(&[(BOOT, "1"), (PARTITIONS, "1-3")]).unwrap(), "1 (at boot) and 2,3 (by a cpuset)");
}

#[test]
fn since_6_7_the_root_tells_of_all_partitions() {
    let root = ("/sys/fs/cgroup/cgroup.controllers", "cpuset");
    let (isolated, _) = Tree::of(&[root, (PARTITIONS, "2-5\n")]).isolated("0-3");
    assert_eq!(isolated.all().to_string(), "2,3");
    assert!(isolated.partitions.is_empty());
}

#[test]
fn partitions_are_found_below_those_that_hold_their_cpus() {
    let remote = [
        ("/sys/fs/cgroup/cgroup.controllers", "cpuset"),
        ("/sys/fs/cgroup/a.slice/cpuset.cpus.partition", "member"),
        ("/sys/fs/cgroup/a.slice/cpuset.cpus.exclusive", "3"),
        ("/sys/fs/cgroup/a.slice/b/cpuset.cpus.partition", "isolated"),
        ("/sys/fs/cgroup/a.slice/b/cpuset.cpus.effective", "3"),
        ("/sys/fs/cgroup/c/cpuset.cpus.partition", "root"),
        ("/sys/fs/cgroup/c/cpuset.cpus.effective", "1"),
        ("/sys/fs/cgroup/c/d/cpuset.cpus.partition", "isolated"),
        ("/sys/fs/cgroup/c/d/cpuset.cpus.effective", "2"),
    ];
    let (isolated, _) = Tree::of(&remote).isolated("0-3");
    assert_eq!(isolated.at_run_time.to_string(), "2,3", "CPU 1 is balanced, in a domain of its own");
}

#[test]
fn an_invalid_partition_isolates_nothing() {
    let invalid = [
        ("/sys/fs/cgroup/cgroup.controllers", "cpuset"),
        (
            "/sys/fs/cgroup/rt/cpuset.cpus.partition",
            "isolated invalid (Cpu list in cpuset.cpus not exclusive)",
        ),
        ("/sys/fs/cgroup/rt/cpuset.cpus.effective", "2-3"),
    ];
    assert_eq!(Tree::of(&invalid).isolated("0-3").0, Isolated::default());
}

/// Cpusets of v1 whose first one is not balanced: each name comes with its flag and its CPUs.
fn v1(groups: &[(&str, &str, &str)]) -> Tree {
    let mut tree = Tree::of(&[
        ("/proc/self/cgroup", "4:cpu,cpuacct:/x\n3:cpuset:/house\n0::/\n"),
        ("/sys/fs/cgroup/cpuset/cpuset.memory_pressure_enabled", "0\n"),
        ("/sys/fs/cgroup/cpuset/cpuset.sched_load_balance", "0\n"),
    ]);
    for (name, balanced, cpus) in groups {
        let path = format!("/sys/fs/cgroup/cpuset/{name}");
        tree.files.insert(format!("{path}/cpuset.sched_load_balance"), format!("{balanced}\n"));
        tree.files.insert(format!("{path}/cpuset.effective_cpus"), format!("{cpus}\n"));
    }
    tree
}

#[test]
fn under_v1_a_cpu_is_isolated_that_no_balanced_cpuset_has() {
    let groups = [("house", "1", "0-1"), ("rt", "0", "2-3"), ("rt/balanced", "1", "2")];
    let (isolated, facts) = v1(&groups).isolated("0-3");
    assert_eq!(isolated.at_run_time.to_string(), "3");
    assert_eq!(own_cpuset(&facts).unwrap().cpus.to_string(), "0,1");
    let mut balanced = v1(&groups);
    balanced.files.insert("/sys/fs/cgroup/cpuset/cpuset.sched_load_balance".into(), "1".into());
    assert_eq!(balanced.isolated("0-3").0, Isolated::default(), "the first one has all CPUs");
    let mut inside = v1(&groups);
    inside.files.remove("/sys/fs/cgroup/cpuset/cpuset.memory_pressure_enabled");
    assert_eq!(inside.isolated("0-3").0, Isolated::default(), "others may be balanced that are not seen");
    assert_eq!(v1(&[("house", "1", "?")]).isolated("0-3").0, Isolated::default());
}

#[test]
fn of_more_cpusets_than_are_looked_at_nothing_is_concluded() {
    let mut many = v1(&[("rt", "0", "2-3"), ("house", "1", "0-1")]);
    for n in 0..=MOST_GROUPS {
        many.files.insert(format!("/sys/fs/cgroup/cpuset/rt/{n}/cpuset.sched_load_balance"), "0".into());
    }
    let (isolated, facts) = many.isolated("0-3");
    assert_eq!(isolated, Isolated::default());
    assert!(facts.text(LEFT_OUT).is_some());
}

#[test]
fn a_group_without_the_controller_has_the_cpus_of_the_one_above() {
    let (_, facts) = Tree::of(&[
        ("/proc/self/cgroup", "1:name=systemd:/x\n0::/user.slice/a.scope\n"),
        ("/sys/fs/cgroup/cpuset.cpus.effective", "0-1"),
    ])
    .isolated("0-3");
    let own = own_cpuset(&facts).unwrap();
    assert_eq!((own.path.as_str(), own.cpus.to_string().as_str()), ("/user.slice/a.scope", "0,1"));
    for table in ["0::/../x", "", "0:", "3:cpuset:x", "0::/a"] {
        let mut facts = Facts::default();
        facts.keep("/proc/self/cgroup", table);
        assert_eq!(own_cpuset(&facts), None, "{table}");
    }
}

#[test]
fn isolcpus_is_read_as_the_kernel_reads_it() {
    let of = |line: &str| {
        let it = Isolcpus::of(&Cmdline::parse(line), 15);
        (it.domain.to_string(), it.managed_irq.to_string(), it.refused.is_some())
    };
    let both = |cpus: &str| (cpus.to_owned(), cpus.to_owned(), false);
    assert_eq!(of("isolcpus=managed_irq,domain,2-N"), both("2-15"));
    assert_eq!(of("isolcpus=managed_irq,domain,0-15:1/4"), both("0,4,8,12"));
    assert_eq!(of("isolcpus=2,3"), ("2,3".into(), String::new(), false));
    assert_eq!(of("isolcpus=managed_irq,2-3"), (String::new(), "2,3".into(), false));
    assert_eq!(of("isolcpus=nohz,2-3"), (String::new(), String::new(), false));
    assert_eq!(of("isolcpus=nohz,domain,2-3").0, "2,3");
    assert_eq!(of("isolcpus=unknown,2-3").0, "2,3", "a word that it does not know is passed over");
    assert_eq!(of("quiet"), both(""));
    let refused = (String::new(), String::new(), true);
    for line in
        ["2-16", "managed_irq,domain,2-63", "un-known,2-3", "domain", "N", "all", "domain,N-3", "2-", ""]
    {
        assert_eq!(of(&format!("isolcpus={line}")), refused, "{line}");
    }
    // The first one counts, and others only with the same CPUs.
    assert_eq!(of("isolcpus=2-3 isolcpus=managed_irq,2-7"), ("2,3".into(), String::new(), true));
    assert_eq!(of("isolcpus=2-3 isolcpus=managed_irq,2,3"), both("2,3"));
}

#[test]
fn a_parameter_that_is_written_otherwise_says_the_same() {
    let same = |one, other| same_value(one, other, 15);
    for (one, other) in [
        ("2-N", "2-15"),
        ("managed_irq,domain,2-N", "managed_irq,domain,2-15"),
        ("domain,managed_irq,2,3", "managed_irq,domain,2-3"),
        ("on", "on"),
        ("0-15:1/2", "0,2,4,6,8,10,12,14"),
    ] {
        assert!(same(one, other) && same(other, one), "{one} {other}");
    }
    for (one, other) in
        [("2-N", "2-14"), ("domain,2", "2"), ("on", "off"), ("on", ""), ("2-16", "2-15"), ("x", "2")]
    {
        assert!(!same(one, other) && !same(other, one), "{one} {other}");
    }
}

#[test]
fn the_last_cpu_is_the_last_that_there_may_be() {
    let of = |files: &[(&str, &str)]| {
        let mut facts = Facts::default();
        files.iter().for_each(|(name, text)| facts.keep(format!("/sys/devices/system/cpu/{name}"), *text));
        last_cpu(&facts)
    };
    assert_eq!(of(&[("possible", "0-15"), ("online", "0-7")]), 15);
    assert_eq!(of(&[("online", "0-7")]), 7);
    assert_eq!(of(&[]), 0);
}

proptest! {
    #[test]
    fn no_parameter_and_no_cgroup_is_too_strange(value in "[a-zN0-9,:/_-]{0,40}", text in "(.|\n){0,60}") {
        let it = Isolcpus::of(&Cmdline::parse(&format!("isolcpus={value}")), 15);
        prop_assert!(it.domain.or(&it.managed_irq).last().is_none_or(|cpu| cpu <= 15));
        let mut tree = Tree::of(DEBIAN_12);
        for path in ["/proc/self/cgroup", "/sys/fs/cgroup/rt/cpuset.cpus.effective", PARTITIONS] {
            tree.files.insert(path.into(), text.clone());
        }
        let (isolated, facts) = tree.isolated("0-3");
        prop_assert!(isolated.all().minus(&"0-3".parse().unwrap()).is_empty());
        let _ = own_cpuset(&facts);
    }
}
