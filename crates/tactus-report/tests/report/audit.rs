//! An audit in every format.

use tactus_model::finding::Severity;
use tactus_report::audit::{Audited, Detail, document, junit, markdown, text};
use tactus_report::render::text::Style;

use crate::common::audits::audit;

#[test]
fn the_terminal_gets_findings_in_full_worst_first_and_the_summary_last() {
    let audit = audit();
    let one = [Audited { environment: "host", audit: &audit }];
    insta::assert_snapshot!(text(&one, Detail::Findings, Style::default()));
}

#[test]
fn brief_is_a_line_for_a_finding_and_all_gives_the_reason_of_each_other_check() {
    let audit = audit();
    let two =
        [Audited { environment: "host", audit: &audit }, Audited { environment: "guest", audit: &audit }];
    let brief = text(&two, Detail::Brief, Style::default());
    assert_eq!(brief.matches("irq-affinity: 3 interrupts").count(), 2);
    assert_eq!(
        brief
            .matches(
                "Boot with these parameters: nosmt nosoftlockup nmi_watchdog=0 (fixes 2: 1 major, 1 minor)"
            )
            .count(),
        2,
        "{brief}"
    );
    assert!(!brief.contains("Write off to it"));
    let all = text(&two, Detail::All, Style::default());
    assert!(all.contains("smi-count: this system runs on a hypervisor"), "{all}");
    let both = text(&two, Detail::BriefAll, Style::default());
    assert!(
        both.contains("smi-count: this system runs on a hypervisor") && !both.contains("Write off to it")
    );
}

#[test]
fn markdown_is_safe_to_paste_whatever_was_read() {
    let audit = audit();
    insta::assert_snapshot!(markdown(&[Audited { environment: "host", audit: &audit }]));
}

#[test]
fn junit_fails_what_is_at_or_above_the_threshold_and_skips_what_is_not_known() {
    let audit = audit();
    let one = [Audited { environment: "host", audit: &audit }];
    let xml = junit(&one, Some(Severity::Major)).unwrap();
    insta::assert_snapshot!(xml);
    assert_eq!(junit(&one, None).unwrap().matches("<failure").count(), 0);
    assert_eq!(junit(&one, Some(Severity::Info)).unwrap().matches("<failure").count(), 4);
}

#[test]
fn the_document_counts_every_state() {
    let audit = audit();
    insta::assert_json_snapshot!(document(&[Audited { environment: "host", audit: &audit }]));
}
