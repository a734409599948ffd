use proptest::prelude::*;
use tactus_audit::guard::interrupt;
use tactus_audit::{Intent, Subject};
use tactus_model::change::{Effect, Target};
use tactus_model::facts::Facts;
use tactus_model::finding::Role;

use super::*;
use crate::profile::{PROFILES, find};

/// A system that these tests make up.
#[derive(Clone)]
struct System {
    facts: Facts,
    role: Role,
}

impl System {
    fn and(mut self, name: &str, text: &str) -> Self {
        self.facts.keep(name, text);
        self
    }

    fn role(self, role: Role) -> Self {
        Self { role, ..self }
    }
}

/// An Intel host of eight CPUs with two hardware threads each, two nodes.
fn machine() -> System {
    let readings = [
        ("uname:machine", "x86_64"),
        (
            "/proc/cpuinfo",
            "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu tsc constant_tsc nonstop_tsc vmx\n",
        ),
        ("/sys/devices/system/cpu/online", "0-7"),
        ("/sys/devices/system/cpu/isolated", ""),
        ("/sys/devices/system/node/node0/cpulist", "0-3"),
        ("/sys/devices/system/node/node1/cpulist", "4-7"),
        ("/proc/sys/kernel/timer_migration", "1"),
        ("/sys/devices/system/cpu/intel_pstate/no_turbo", "1"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
        ("/proc/cmdline", "quiet"),
    ];
    let siblings = (0..8).map(|cpu| {
        let core = cpu / 2 * 2;
        (
            format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"),
            format!("{core}-{}", core + 1),
        )
    });
    let system = System { facts: Facts::default(), role: Role::Host };
    let system = readings.into_iter().fold(system, |system, (name, text)| system.and(name, text));
    siblings.fold(system, |system, (name, text)| system.and(&name, &text))
}

fn plan(system: &System, profile: &str, isolate: &str, choice: &Choice) -> Plan {
    let intent = Intent { isolated: Some(isolate.parse().unwrap()), ..Intent::default() };
    Plan::new(&Subject::new(&system.facts, system.role, &intent), find(profile).unwrap(), choice)
}

fn refusals(system: &System, profile: &str, isolate: &str) -> Vec<String> {
    plan(system, profile, isolate, &Choice::default()).refusals.into_iter().map(|r| r.what).collect()
}

#[test]
fn good_isolation_is_not_refused() {
    assert_eq!(refusals(&machine(), "realtime", "2-3,6-7"), Vec::<String>::new());
}

#[test]
fn isolation_that_leaves_no_room_is_refused_and_named() {
    for (isolate, says) in [
        ("", "no CPU is isolated"),
        ("0-7", "leaves no CPU for everything else"),
        ("0-1", "isolates CPU 0"),
        ("3", "CPU 3 shares its core with CPU 2"),
        ("6-9", "CPUs 8,9 are not online"),
    ] {
        let refusals = refusals(&machine(), "realtime", isolate);
        assert!(refusals.iter().any(|what| what.contains(says)), "{isolate}: {refusals:?}");
    }
}

#[test]
fn a_profile_for_another_kind_of_system_is_refused() {
    let guest = machine().role(Role::Guest);
    let container = machine().role(Role::Container);
    assert!(refusals(&guest, "realtime-virtual-host", "2-3")[0].contains("host of virtual machines"));
    assert!(refusals(&container, "realtime", "2-3")[0].contains("this is a container"));
    assert!(refusals(&machine(), "realtime-virtual-guest", "2-3")[0].contains("no hypervisor"));
    assert_eq!(refusals(&guest, "realtime-virtual-guest", "2-3"), Vec::<String>::new());
}

/// The same with a passed-through device's interrupt on CPU 6, and one of the real-time work on CPU 7.
fn with_interrupts() -> System {
    machine()
        .and(
            "/proc/interrupts",
            "  CPU0 CPU1\n 55: 0 1 PCI-MSIX-0000:3b:00.0 0-edge vfio-msix[0](0000:3b:00.0)\n \
              56: 0 1 PCI-MSIX-0000:3c:00.0 0-edge fieldbus",
        )
        .and("/proc/irq/55/smp_affinity_list", "6")
        .and("/proc/irq/56/smp_affinity_list", "7")
        .and("/proc/irq/57/smp_affinity_list", "0-7")
}

/// The interrupts that a plan moves.
fn moved(plan: &Plan) -> Vec<u32> {
    plan.entries.iter().filter_map(|step| interrupt(&step.change)).collect()
}

#[test]
fn an_interrupt_that_is_allowed_on_isolated_cpus_only_stays_unless_it_is_named() {
    let system = with_interrupts();
    let choose = |choice: Choice| plan(&system, "realtime", "2-3,6-7", &choice);
    let plain = choose(Choice::default());
    assert!(plain.refusals.is_empty(), "{:?}", plain.refusals);
    assert_eq!(moved(&plain), [57]);
    let asks: Vec<&str> = plain.withheld.iter().map(|withheld| withheld.ask.as_str()).collect();
    assert!(asks.contains(&"--move-irq 55") && asks.contains(&"--move-irq 56"), "{asks:?}");
    // The check's name is not the interrupt's.
    assert_eq!(moved(&choose(Choice { only: vec!["irq-affinity".into()], ..Choice::default() })), [57]);
    assert_eq!(moved(&choose(Choice { move_irq: vec![56], ..Choice::default() })), [56, 57]);
    assert_eq!(moved(&choose(Choice { own_irq: vec![57], ..Choice::default() })), Vec::<u32>::new());
    let nobody = choose(Choice { own_irq: vec![99], ..Choice::default() });
    assert_eq!(nobody.refusals[0].what, "--own-irq 99: this interrupt does not exist");
}

#[test]
fn queues_that_irqbalance_or_the_kernel_spread_are_not_planned() {
    let running = "700\t700\t1\t400100\tOTHER\t0\t0-7\tirqbalance";
    let balanced = with_interrupts().and("threads:0", running);
    let planned = plan(&balanced, "realtime", "2-3,6-7", &Choice::default());
    assert_eq!(moved(&planned), [56, 57], "the guest's stays");
    // Storage queues refuse: they are neither planned nor left out by a guard.
    let rows = " CPU0 CPU1\n 58: 1 0 PCI-MSIX-0000:00:02.0 1-edge nvme0q1\n";
    let storage = machine().and("/proc/interrupts", rows).and("/proc/irq/58/smp_affinity_list", "6");
    let planned = plan(&storage, "realtime", "2-3,6-7", &Choice::default());
    let all =
        planned.entries.iter().map(|step| &step.change).chain(planned.withheld.iter().map(|one| &one.change));
    assert!(!all.into_iter().any(|change| interrupt(change) == Some(58)));
}

#[test]
fn an_interrupt_of_a_virtual_machine_is_not_taken_away_even_if_it_is_named() {
    let choice = Choice { move_irq: vec![55], ..Choice::default() };
    let said = plan(&with_interrupts(), "realtime", "2-3,6-7", &choice).refusals;
    let says = "interrupt 55 (vfio-msix[0](0000:3b:00.0)) was placed on CPU 6";
    assert!(said[0].what.contains(says), "{said:?}");
}

const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const STALLD: &str = "7\t7\t1\t400140\tFIFO\t10\t0-1\tstalld";

/// Linux 6.12 with throttling and the fair server on, and stalld's files but not stalld.
fn served() -> System {
    let server = |cpu: u32| format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
    let system = machine().and("uname:release", "6.12.43").and(RUNTIME, "950000");
    (0..8).fold(system, |system, cpu| system.and(&server(cpu), "50000000"))
}

/// The same where stalld runs.
fn with_stalld() -> System {
    let process = [("process:7:uid", "0"), ("process:7:NSpid", "7"), ("process:7:exe", "/usr/bin/stalld")];
    process.iter().fold(served().and("threads:0", STALLD), |system, (name, text)| system.and(name, text))
}

/// Checks of what a plan of `realtime` sets, of those that rescue starved threads.
fn rescues(system: &System, with: &[&str]) -> Plan {
    let with = with.iter().map(|id| (*id).to_owned()).collect();
    plan(system, "realtime", "2-3,6-7", &Choice { with, ..Choice::default() })
}

#[test]
fn throttling_and_the_fair_server_stay_where_stalld_does_not_run() {
    let sets = |plan: &Plan, id: &str| plan.entries.iter().any(|step| step.change.check == id);
    let plan = rescues(&served(), &[]);
    assert!(!sets(&plan, "rt-throttling") && !sets(&plan, "fair-server"));
    let withheld = |id: &str| plan.withheld.iter().find(|withheld| withheld.change.check == id).unwrap();
    assert_eq!(withheld("rt-throttling").ask, "--with rt-throttling");
    assert!(withheld("fair-server").gives_up.contains("stalld"));

    let others = served().and("threads:0", STALLD).and("process:7:uid", "65534");
    assert!(!sets(&rescues(&others, &[]), "rt-throttling"), "anybody may call his process stalld");
    let linked = with_stalld().and("process:7:exe", "/usr/bin/su");
    assert!(!sets(&rescues(&linked, &[]), "rt-throttling"), "so may a link call a program of root's");
    let with_stalld = rescues(&with_stalld(), &[]);
    assert!(sets(&with_stalld, "rt-throttling") && sets(&with_stalld, "fair-server"));
    assert!(with_stalld.refusals.is_empty());

    let asked = rescues(&served(), &["rt-throttling"]);
    let step = asked.entries.iter().find(|step| step.change.check == "rt-throttling").unwrap();
    assert!(step.gives_up.contains("starves all other threads") && asked.refusals.is_empty());
    assert!(!sets(&asked, "fair-server"));
}

#[test]
fn the_last_rescue_is_not_taken_even_if_it_is_asked_for() {
    let refused = |plan: Plan| plan.refusals.into_iter().any(|r| r.what.contains("stalld does not run"));
    assert!(refused(rescues(&served(), &["rt-throttling", "fair-server"])));
    // Somebody has taken the other one before.
    assert!(refused(rescues(&served().and(RUNTIME, "-1"), &["fair-server"])));
    assert!(!refused(rescues(&served(), &["fair-server"])));
    assert!(!refused(rescues(&with_stalld(), &["rt-throttling", "fair-server"])));
    // A guard that is off already was not switched off by this plan.
    assert!(!refused(rescues(&served().and(RUNTIME, "-1"), &[])));
}

#[test]
fn the_mitigation_of_itlb_multihit_stays_where_the_processor_is_affected() {
    let multihit = "/sys/devices/system/cpu/vulnerabilities/itlb_multihit";
    let kvm = machine().and("/sys/module/kvm/parameters/nx_huge_pages", "Y");
    let says = |text: Option<&str>, with: &[&str]| {
        let system = text.map_or(kvm.clone(), |text| kvm.clone().and(multihit, text));
        let choice = Choice { with: with.iter().map(|id| (*id).to_owned()).collect(), ..Choice::default() };
        ["realtime-virtual-host", "cpu-partitioning"].map(|profile| {
            let plan = plan(&system, profile, "2-3,6-7", &choice);
            plan.entries.iter().any(|step| step.change.check == "nx-huge-pages" && !step.holds)
        })
    };
    assert_eq!(says(Some("KVM: Mitigation: Split huge pages"), &[]), [false; 2]);
    assert_eq!(says(None, &[]), [false; 2], "nothing says that it is not affected");
    assert_eq!(says(Some("Not affected"), &[]), [true; 2]);
    assert_eq!(says(Some("KVM: Mitigation: Split huge pages"), &["nx-huge-pages"]), [true; 2]);
}

#[test]
fn a_module_flag_that_says_n_does_not_contradict_a_0() {
    let system = machine().and("/sys/module/kvm/parameters/kvmclock_periodic_sync", "Y");
    let plan = plan(&system, "realtime-virtual-host", "2-3,6-7", &Choice::default());
    assert!(plan.entries.iter().any(|step| step.change.check == "kvmclock-sync"));
    assert!(plan.contradictions.iter().all(|c| c.check != "kvmclock-sync"), "{:?}", plan.contradictions);
}

#[test]
fn a_virtual_machine_that_is_tuned_as_a_host_has_no_p_states_and_no_iommu_to_set() {
    let flags = "vendor_id\t: GenuineIntel\nflags\t\t: fpu tsc vmx hypervisor\n";
    for profile in ["realtime-virtual-host", "cpu-partitioning"] {
        let words = |system: &System| {
            let plan = plan(system, profile, "2-3,6-7", &Choice::default());
            plan.entries
                .iter()
                .filter_map(|s| match &s.change.target {
                    Target::Kernel { parameter } => Some(parameter.clone()),
                    _ => None,
                })
                .filter(|word| word.contains("pstate") || word.contains("iommu"))
                .count()
        };
        assert!(words(&machine()) > 0);
        assert_eq!(words(&machine().and("/proc/cpuinfo", flags)), 0, "{profile}");
    }
}

#[test]
fn a_governor_that_holds_the_clock_still_is_left() {
    let dir = "/sys/devices/system/cpu/cpu2/cpufreq";
    let still = |slowest: &str, governor: &str| {
        let system = machine()
            .and(&format!("{dir}/scaling_governor"), governor)
            .and(&format!("{dir}/scaling_min_freq"), slowest)
            .and(&format!("{dir}/scaling_max_freq"), "2400000");
        let choice = Choice { plain: true, ..Choice::default() };
        let plan = plan(&system, "realtime", "2-3,6-7", &choice);
        !plan.entries.iter().any(|step| step.change.check == "cpufreq-governor")
    };
    assert!(still("2400000", "userspace"));
    assert!(!still("800000", "userspace") && !still("2400000", "powersave"));
}

#[test]
fn a_node_without_housekeeping_is_told() {
    let plan = plan(&machine(), "realtime", "4-7", &Choice::default());
    assert!(plan.remarks[0].starts_with("node1 (CPUs 4-7) has no housekeeping CPU"), "{:?}", plan.remarks);
}

#[test]
fn single_settings_are_chosen_by_name() {
    let checks = |choice: &Choice| -> Vec<String> {
        let mut all: Vec<String> = plan(&machine(), "realtime", "2-3,6-7", choice)
            .entries
            .into_iter()
            .map(|s| s.change.check)
            .collect();
        all.sort();
        all.dedup();
        all
    };
    let only = Choice { only: vec!["timer-migration".into()], ..Choice::default() };
    assert_eq!(checks(&only), ["timer-migration"]);
    let without = Choice { without: vec!["isolcpus".into()], ..Choice::default() };
    assert!(!checks(&without).contains(&"isolcpus".to_owned()));
    assert!(checks(&Choice::default()).contains(&"isolcpus".to_owned()));
    let none = Choice { with: vec!["no-such-thing".into()], ..Choice::default() };
    let refusal = &plan(&machine(), "realtime", "2-3,6-7", &none).refusals[0];
    assert_eq!(refusal.what, "--with no-such-thing: this setting does not exist");
}

#[test]
fn what_holds_already_is_marked_and_run_time_comes_first() {
    let system = machine().and("/proc/sys/kernel/timer_migration", "0");
    let plan = plan(&system, "realtime", "2-3,6-7", &Choice::default());
    let timer = plan.entries.iter().find(|step| step.change.check == "timer-migration").unwrap();
    assert!(timer.holds && plan.open().all(|step| step.change.check != "timer-migration"));
    let effects: Vec<Effect> = plan.entries.iter().map(|step| step.change.effect).collect();
    assert!(effects.is_sorted());
}

#[test]
fn where_a_profile_and_a_check_contradict_the_profile_holds_and_it_is_told() {
    let plan = plan(&machine(), "realtime", "2-3,6-7", &Choice::default());
    let turbo = plan.entries.iter().find(|step| step.change.check == "turbo").unwrap();
    assert_eq!((turbo.change.then.as_str(), turbo.layer), ("0", Layer::Profile));
    let told = plan.contradictions.iter().find(|told| told.check == "turbo").unwrap();
    assert_eq!((told.profile.as_str(), told.wants.as_str()), ("0", "1"));
}

#[test]
fn a_risk_is_told_for_every_change() {
    for profile in PROFILES {
        let role = if profile.guest { Role::Guest } else { Role::Host };
        for step in plan(&machine().role(role), profile.name, "2-3,6-7", &Choice::default()).entries {
            let known = tactus_audit::find(&step.change.check).is_some();
            // Checks that do not exist yet have no texts.
            assert!(!step.risk.is_empty() || !known, "{}", step.change.check);
        }
    }
}

#[test]
fn nothing_is_planned_twice() {
    for profile in PROFILES {
        let plan = plan(&machine(), profile.name, "2-3,6-7", &Choice::default());
        let mut targets: Vec<&Target> = plan.entries.iter().map(|step| &step.change.target).collect();
        let all = targets.len();
        targets.sort();
        targets.dedup();
        assert_eq!(targets.len(), all, "{}", profile.name);
    }
}

proptest! {
    #[test]
    fn no_system_makes_the_planner_panic(
        readings in proptest::collection::vec((
            "(/proc/irq/[0-9]{1,3}/smp_affinity_list|/sys/devices/system/(cpu|node)/[a-z]{3,4}[0-9]{1,2}/[a-z_/]{1,12}|\
              threads:0|/proc/cmdline|/sys/devices/system/cpu/(online|isolated)|vm:[0-9]:cmdline|/proc/sys/[a-z/_]{1,20})",
            "[0-9a-z,\\-=\t\n \\[\\]]{0,40}",
        ), 0..20),
        isolate in proptest::collection::btree_set(0u32..70, 0..6),
    ) {
        let mut facts = Facts::default();
        for (name, text) in readings {
            facts.keep(name, text);
        }
        for role in [Role::Host, Role::Guest, Role::Container] {
            let intent = Intent { isolated: Some(isolate.iter().copied().collect()), ..Intent::default() };
            let subject = Subject::new(&facts, role, &intent);
            for profile in PROFILES {
                let plan = Plan::new(&subject, profile, &Choice::default());
                prop_assert!(role != Role::Container || (!plan.refusals.is_empty() && plan.entries.is_empty()));
            }
        }
    }
}
