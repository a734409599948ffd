//! The tables that a study of host states asks for.

use tactus_model::bundle::Contents;
use tactus_model::facts::Facts;
use tactus_model::outcome::RowEnd;
use tactus_model::plan::{Figure, FigureKind, HostState, OTHER_STATE, Plan, Reference};
use tactus_model::{Evidence, Nanos};
use tactus_report::document;
use tactus_report::part::{Part, Reader};
use tactus_report::render::text::{Style, render};
use tactus_report::render::{html, markdown};
use tactus_report::section::drawings::requested;
use tactus_report::section::{Section, matrices};

use crate::common::{self, Shape, Span, environment, facts, manifest, measured, planned, unmeasured};

const TUNED: &str = "realtime-virtual-host";

/// A machine without KVM that is in none of the plan's states: the host is measured, the guest emulated, and
/// the published pair is still to come.
fn contents() -> Contents {
    let mut plan = Plan { name: "matrix".into(), title: Some("Host by guest".into()), ..Plan::default() };
    plan.host_state.insert(TUNED.into(), HostState { profile: TUNED.into(), kernel: None });
    plan.environment.insert("host".into(), environment("host"));
    let mut guest = environment("qemu");
    guest.options.insert("kernel".into(), "rt".into());
    guest.options.insert("profile".into(), "realtime-virtual-guest".into());
    plan.environment.insert("guest".into(), guest);
    let names = ["tuned host alone", "tuned pair", "host as it is", "guest on it"];
    plan.reference.push(Reference {
        scenario: names[1].into(),
        max: Some(Nanos::from_us(22)),
        source: "the last figure".into(),
        ..Reference::default()
    });
    for kind in [FigureKind::Matrix, FigureKind::PerCore, FigureKind::Threads] {
        let scenarios = names.iter().map(|name| (*name).to_owned()).collect();
        plan.figure.push(Figure { kind, title: format!("{kind:?}"), scenarios });
    }
    let row = |at: usize| {
        let (environment, kind) = if at.is_multiple_of(2) { ("host", "host") } else { ("guest", "qemu") };
        let host = if at < 2 { TUNED } else { OTHER_STATE };
        let mut result = planned(names[at], environment, kind, Vec::new());
        result.host = Some(host.into());
        result
    };
    let skipped =
        |at| unmeasured(row(at), RowEnd::Unavailable, "needs the host state realtime-virtual-host; reboot");
    let rows = vec![
        skipped(0),
        skipped(1),
        measured(row(2), Evidence::VirtualHost, Shape::IDLE, Span::QUICK, 3),
        measured(row(3), Evidence::Emulated, Shape::IDLE, Span::QUICK, 4),
    ];
    let mut contents = Contents {
        manifest: manifest("matrix"),
        plan,
        facts: std::collections::BTreeMap::new(),
        audits: std::collections::BTreeMap::new(),
        rows,
        notes: Vec::new(),
        damage: Vec::new(),
        raw: false,
        own: false,
    };
    contents.facts.insert("host@other".into(), facts("6.1.0-18-amd64", "quiet"));
    contents.facts.insert("guest@other".into(), guest_facts());
    contents
}

fn guest_facts() -> Facts {
    let mut facts = facts("6.1.0-56-rt-amd64", "isolcpus=2-3");
    facts.keep("uname:version", "#1 SMP PREEMPT_RT Debian");
    facts.keep("/proc/cpuinfo", "processor\t: 0\nmicrocode\t: 0x1000065\n");
    facts.keep("/sys/devices/system/clockevents/clockevent0/current_device", "lapic-deadline");
    facts.keep("/sys/devices/system/clockevents/clockevent1/current_device", "lapic-deadline");
    facts.keep("dmesg:start", "whole");
    facts.keep(
        "dmesg:tsc-deadline",
        "[Firmware Bug]: TSC_DEADLINE disabled due to Errata; please update microcode",
    );
    let thread = |tid: u32| format!("{tid}\t{tid}\t2\t208040\tFIFO\t50\t0\tirq/{tid}-virtio{tid}");
    facts.keep_parts("threads", (40..60).map(thread));
    facts
}

fn shown() -> String {
    let text = render(&contents(), Style { colour: false, width: 100 });
    let from = text.find("\nMatrix").expect("the matrix");
    let to = text.find("\nself-test: ").expect("the controls");
    text[from..to].to_owned()
}

#[test]
fn the_text_has_measured_beside_published_and_says_why_a_cell_is_empty() {
    insta::assert_snapshot!(shown());
}

#[test]
fn the_json_has_every_cell_and_every_interrupt_thread() {
    let document = document(&contents());
    assert_eq!(document.matrices[0].cells.len(), 4);
    let cell = &document.matrices[0].cells[1];
    assert_eq!((cell.max_ns, cell.published_max_ns), (None, Some(22_000)));
    assert!(cell.reason.as_deref().unwrap().contains("needs the host state"));
    assert_eq!(document.matrices[0].cells[2].left_out, "0,3", "what was not measured is said");
    let guest = document.systems.iter().find(|system| system.place == "guest@other").unwrap();
    assert_eq!(guest.irq_threads.len(), 20);
    assert_eq!((guest.irq_threads[0].policy.as_str(), guest.irq_threads[0].priority), ("FIFO", 50));
    assert_eq!(guest.microcode.as_deref(), Some("0x1000065"));
    assert!(guest.tsc_deadline.as_deref().unwrap().contains("disabled due to Errata"));
}

#[test]
fn an_emulated_cell_says_so_and_has_no_verdict() {
    let document = document(&contents());
    assert!(document.scenarios.iter().all(|entry| entry.verdict.is_none()));
    let parts = matrices::ENTRY.parts(&contents(), Reader::Terminal);
    let Part::Table(matrix) = &parts[0] else { panic!("a table: {parts:?}") };
    let emulated = matrix.rows.iter().flatten().filter(|cell| cell.lines.contains(&"emulated".to_owned()));
    assert_eq!(emulated.count(), 1);
}

#[test]
fn cores_are_drawn_on_one_figure_and_those_left_out_are_named() {
    let figures = requested(&contents());
    assert_eq!(figures.len(), 2, "a figure for each measured scenario");
    for figure in figures {
        assert!(
            figure.title.contains("(CPU 0,3 is for housekeeping: not measured, not shown)"),
            "{}",
            figure.title
        );
        let svg = figure.svg();
        assert!(svg.contains("CPU 1, ") && svg.contains("CPU 2, "), "a line per core");
    }
}

#[test]
fn every_format_has_the_tables() {
    let page = html::render(&contents()).unwrap().replace("µs", "us");
    let words = markdown::render(&contents());
    for text in ["not measured", "published 22 us", "virtio59", "lapic-deadline"] {
        assert!(page.contains(text) && words.contains(text), "{text}");
    }
}

#[test]
fn a_hostile_name_in_the_facts_does_not_leave_its_cell() {
    let mut contents = contents();
    let facts = contents.facts.get_mut("guest@other").unwrap();
    facts.keep("uname:release", "<script>x</script>|\u{1b}[31m");
    let page = html::render(&contents).unwrap();
    assert!(!page.contains("<script>x"));
    assert!(!markdown::render(&contents).contains('\u{1b}'));
}

#[test]
fn the_json_of_matrices_and_systems() {
    insta::assert_snapshot!(common::sections(&document(&contents())));
}
