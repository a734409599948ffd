//! Exits of guests to KVM: told by reason where they were counted, and said to be unknowable where they were not.

use std::collections::BTreeMap;

use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::outcome::exits::{CountedExits, ExitKind, KvmExits};
use tactus_model::plan::Plan;
use tactus_report::document;
use tactus_report::render::text::{Style, render};
use tactus_report::render::{html, markdown};

use crate::common::{environment, manifest};

fn contents(exits: Vec<(&str, Option<KvmExits>)>) -> Contents {
    let mut plan = Plan { name: "exits".into(), ..Plan::default() };
    plan.environment.insert("guest".into(), environment("qemu"));
    let row = |(name, exits)| Row::of(RowResult { exits, ..RowResult::unmeasured(name, "guest", "qemu") });
    Contents {
        manifest: manifest("exits"),
        plan,
        facts: BTreeMap::new(),
        audits: BTreeMap::new(),
        rows: exits.into_iter().map(row).collect(),
        notes: Vec::new(),
        damage: Vec::new(),
        raw: false,
        own: false,
    }
}

fn counted() -> KvmExits {
    let kind = |cpu, reason: &str, count, ns| ExitKind {
        cpu,
        reason: reason.into(),
        count,
        ns,
        longest_ns: ns / 10,
    };
    let kinds = vec![kind(0, "npf", 40_000, 80_000_000), kind(1, "hlt", 500, 9_000_000_000)];
    let to_user = Some(vec![kind(0, "MMIO", 300, 6_000_000)]);
    KvmExits::Counted(CountedExits { ns: 10_000_000_000, kinds, to_user })
}

#[test]
fn what_was_counted_stands_in_every_report_and_each_virtual_cpu_in_the_json() {
    let contents = contents(vec![("traced", Some(counted())), ("not asked", None)]);
    for said in [render(&contents, Style::default()), markdown::render(&contents)] {
        assert!(said.contains("npf") && said.contains("2 us") && said.contains("0.40"), "{said}");
        assert!(said.contains("To user space") && said.contains("MMIO") && said.contains("20 us"), "{said}");
    }
    let page = html::render(&contents).unwrap();
    assert!(page.contains("Exits to KVM") && page.contains(">npf<"), "every reader has it");
    let entries = &document(&contents).scenarios;
    assert_eq!((entries[0].exits.as_ref(), entries[1].exits.as_ref()), (Some(&counted()), None));
    let json = serde_json::to_value(&entries[0]).unwrap();
    assert_eq!(json["exits"]["counted"]["kinds"][1]["cpu"], 1);
}

#[test]
fn what_cannot_be_known_says_why_and_has_no_table() {
    let why = KvmExits::Unknowable("a BPF program is refused\u{1b}[2J".into());
    let said = render(&contents(vec![("traced", Some(why))]), Style::default());
    assert!(said.contains("traced: not visible here: a BPF program is refused"), "{said}");
    assert!(!said.contains("in a second") && !said.contains("\u{1b}[2J"), "{said}");
}

#[test]
fn where_kvm_carries_a_guest_out_itself_its_exits_to_user_space_are_told_and_why_there_are_no_others() {
    let KvmExits::Counted(all) = counted() else { panic!() };
    let none = KvmExits::Counted(CountedExits { kinds: Vec::new(), ..all });
    let said = render(&contents(vec![("traced", Some(none))]), Style::default());
    assert!(said.contains("instruction by instruction") && said.contains("MMIO"), "{said}");
}

#[test]
fn without_a_request_there_is_no_section() {
    let said = render(&contents(vec![("not asked", None)]), Style::default());
    assert!(!said.to_lowercase().contains("exits to kvm"), "{said}");
}
