//! The certificate: two pages for any bundle, and an error if there is nothing to certify.

use tactus_model::bundle::{Contents, RowResult};
use tactus_model::finding::Audit;
use tactus_model::plan::{Require, TailLimit};
use tactus_model::{Evidence, Nanos};
use tactus_report::certificate::{Certificate, CertificateError, Given, html, pdf};

use crate::common::{
    self, audits, empty, facts, hostile, overheads, scheduler, study, this_machine, whole_minute,
};

/// A checksum as every bundle has one.
const SUM: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

fn given() -> Given {
    Given {
        title: None,
        customer: Some("Werkzeugmaschinenbau Müller & Söhne GmbH".into()),
        site: Some("Halle 4, Łódź".into()),
        operator: Some("A. Engineer".into()),
        serial: Some("SN-2026-0042".into()),
    }
}

/// A minute idle and a minute under load on bare metal, and a limit that both keep; with all that a machine tells.
fn certified() -> Contents {
    let mut contents = empty();
    contents.plan.title = Some("Press line 3: control computer".into());
    let machine = &mut contents.manifest.machine;
    machine.bios = Some("Example Firmware Ltd. 2.18.1 (2025-03-14)".into());
    machine.microcode = Some("0xd0003e7".into());
    for (name, load) in [("host, idle", Vec::new()), ("host, loaded", scheduler("host"))] {
        let row = whole_minute();
        let result = RowResult { name: name.into(), load, ..row.result };
        contents.rows.push(tactus_model::bundle::Row { result, ..row });
    }
    let command_line = "BOOT_IMAGE=/vmlinuz-6.12.57+deb13-rt-amd64 root=/dev/mapper/vg0-root ro quiet \
                        isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1 nosmt intel_pstate=disable \
                        processor.max_cstate=1 idle=poll mitigations=off";
    contents.facts.insert("host".into(), facts("6.12.57+deb13-rt-amd64", command_line));
    contents.audits.insert("host".into(), audits::audit());
    contents
}

fn made(contents: &Contents) -> Certificate {
    Certificate::of(contents, SUM, &given()).unwrap()
}

fn refused(contents: &Contents) -> CertificateError {
    Certificate::of(contents, SUM, &given()).unwrap_err()
}

fn limit(us: u64) -> Option<Require> {
    Some(Require { max: Some(Nanos::from_us(us)), cycles: Some(1), ..Require::default() })
}

/// How many pages a PDF has.
fn pages(pdf: &[u8]) -> usize {
    let text = String::from_utf8_lossy(pdf);
    let all = text.matches("/Type/Pages").count();
    assert_eq!(all, 1, "the list of pages");
    text.matches("/Type/Page").count() - all
}

/// Nothing but two pages, in both formats.
fn is_two_pages(certificate: &Certificate, what: &str) {
    let page = html(certificate).unwrap();
    assert_eq!(page.matches("<section class=\"sheet").count(), 2, "{what}");
    assert!(page.contains("Page 1 of 2") && page.contains("Page 2 of 2"), "{what}");
    assert!(page.len() < 400_000, "{what}: {} bytes", page.len());
    let bytes = pdf(certificate).unwrap();
    assert!(bytes.starts_with(b"%PDF-"), "{what}");
    assert_eq!(pages(&bytes), 2, "{what}");
}

#[test]
fn the_certificate_of_a_machine_that_keeps_its_limit() {
    insta::assert_snapshot!(html(&made(&certified())).unwrap());
}

#[test]
fn it_is_two_pages_and_the_same_each_time() {
    let certificate = made(&certified());
    is_two_pages(&certificate, "certified");
    assert_eq!(pdf(&certificate).unwrap(), pdf(&made(&certified())).unwrap());
}

#[test]
fn it_says_what_the_answer_says() {
    let mut contents = certified();
    for (us, word) in [(10_000, "MET"), (1, "NOT MET")] {
        for row in &mut contents.rows {
            row.result.require = limit(us);
        }
        assert_eq!(tactus_report::answer::answer(&contents).word, word);
        assert!(html(&made(&contents)).unwrap().contains(&format!("<strong>{word}</strong>")));
    }
    contents.rows[0].result.measured_ns = 10_000_000_000;
    contents.rows[0].result.require = limit(10_000);
    contents.rows.truncate(1);
    assert!(html(&made(&contents)).unwrap().contains("<strong>NOT DECIDED</strong>"));
}

#[test]
fn limits_that_differ_are_told_with_those_that_have_them() {
    let mut contents = certified();
    contents.rows[1].result.require = Some(Require {
        p999: Some(Nanos::from_us(50)),
        jitter: Some(Nanos::from_us(40)),
        overruns: Some(0),
        tail: Some(TailLimit { max: Nanos::from_us(200), horizon: Nanos::from_secs(86_400) }),
        warn: Some(Box::new(Require { max: Some(Nanos::from_us(80)), ..Require::default() })),
        ..Require::default()
    });
    let page = html(&made(&contents)).unwrap().replace('\u{a0}', " ");
    assert!(page.contains("maximum at most 10 ms (of host, idle)"), "{page}");
    assert!(
        page.contains("no missed period, maximum at most 80 µs (warns only) (of host, loaded)"),
        "{page}"
    );
    assert!(page.contains("jitter at most 40 µs"), "{page}");
    assert!(page.contains("more than 200 µs less than once in 24 h"), "{page}");
}

#[test]
fn there_is_no_certificate_without_proof() {
    let mut contents = certified();
    contents.rows.iter_mut().for_each(|row| row.result.require = None);
    assert!(matches!(refused(&contents), CertificateError::NoLimit));
    assert!(matches!(refused(&study()), CertificateError::NoLimit));
    assert!(matches!(refused(&empty()), CertificateError::NothingMeasured));
    for (evidence, words) in [(Evidence::Emulated, "emulated"), (Evidence::Imported, "another tool")] {
        let mut contents = certified();
        contents.rows[1].result.evidence = Some(evidence);
        let error = refused(&contents);
        assert!(error.to_string().contains(words) && error.to_string().contains("host, loaded"), "{error}");
        // Nor is one without any limit called one that lacks a limit only.
        contents.rows.iter_mut().for_each(|row| row.result.evidence = Some(evidence));
        contents.rows.iter_mut().for_each(|row| row.result.require = None);
        assert!(refused(&contents).to_string().contains(words));
    }
    assert!(matches!(refused(&this_machine()), CertificateError::Emulated(_)));
    let mut contents = certified();
    contents.manifest.finished = None;
    assert!(matches!(refused(&contents), CertificateError::Unfinished));
    contents.damage.push("events.jsonl is not as the run wrote it".into());
    let error = refused(&contents);
    assert!(error.to_string().contains("events.jsonl") && !error.hint().is_empty(), "{error}");
    let mut contents = certified();
    for row in &mut contents.rows {
        row.result.outcome = tactus_model::outcome::Outcome::Latency(Default::default());
    }
    assert!(matches!(refused(&contents), CertificateError::NothingMeasured));
}

/// A bundle whose texts are all very long and hostile.
fn worst(word: &str) -> Contents {
    let mut contents = hostile();
    let (long, own) = (word.repeat(3_000 / word.len() + 1), certified());
    for n in 0..16 {
        let mut row = own.rows[n % 2].clone();
        let result = &mut row.result;
        result.name = format!("{n} {long}");
        result.environment = format!("{long} {n}");
        result.load = vec![serde_json::json!({ "kind": format!("{n}{long}"), "in": long, "cpus": "1-900" })];
        result.interval_ns += n as u64;
        let max = Some(Nanos::from_us(n as u64 * 7 + 1));
        result.require = Some(Require { max, ..Require::default() });
        result.notes.push(tactus_model::message::Note::side_effect(long.clone()));
        let place = result.environment.clone();
        contents.facts.insert(place.clone(), facts(&long, &long));
        contents.audits.insert(place, Audit { ..audits::audit() });
        contents.rows.push(row);
    }
    let all = common::latency(contents.rows.last_mut().unwrap()).all.as_mut().unwrap();
    (all.cycles, all.overruns, all.max_ns) = (u64::MAX, Some(u64::MAX), Some(u64::MAX));
    let manifest = &mut contents.manifest;
    contents.plan.title = Some(long.clone());
    (manifest.plan, manifest.tactus) = (long.clone(), long.clone());
    (manifest.started, manifest.finished) = (long.clone(), Some(long.clone()));
    let machine = &mut manifest.machine;
    for text in [
        &mut machine.name,
        &mut machine.processor,
        &mut machine.cpus,
        &mut machine.kernel,
        &mut machine.system,
    ] {
        text.clone_from(&long);
    }
    (machine.bios, machine.microcode) = (Some(long.clone()), Some(long.clone()));
    contents.facts.insert("host".into(), facts(&long, &long));
    contents
}

#[test]
fn whatever_is_in_a_bundle_it_stays_two_pages() {
    for word in
        ["x", "word ", "</div><script>alert(1)</script> ", "\u{202e}\u{1b}[31m\n\t", "日本語🦀", "ß\u{301}é "]
    {
        let contents = worst(word);
        let long: String = "Ωж".repeat(2_000);
        let all =
            [Some(long.clone()), Some(long.clone()), Some(long.clone()), Some(long.clone()), Some(long)];
        let [title, customer, site, operator, serial] = all;
        let given = Given { title, customer, site, operator, serial };
        let certificate = Certificate::of(&contents, &SUM.repeat(50), &given).unwrap();
        is_two_pages(&certificate, word);
        let page = html(&certificate).unwrap();
        assert!(!page.contains("<script") && !page.contains('\u{1b}') && !page.contains('\u{202e}'));
        assert!(page.contains("8 more, none with a worse verdict"));
    }
}

#[test]
fn names_that_the_pdf_has_no_letters_for_are_refused_there_and_shown_on_the_page() {
    let given = Given { customer: Some("株式会社".into()), ..Given::default() };
    let certificate = Certificate::of(&certified(), SUM, &given).unwrap();
    let error = pdf(&certificate).unwrap_err();
    assert!(error.to_string().contains("--customer") && error.to_string().contains('株'), "{error}");
    assert!(html(&certificate).unwrap().contains("株式会社"));
}

#[test]
fn what_was_not_given_has_no_line() {
    let given = Given { customer: Some("  ".into()), ..Given::default() };
    let page = html(&Certificate::of(&certified(), SUM, &given).unwrap()).unwrap();
    assert!(!page.contains("Customer") && !page.contains("Operator"));
}

#[test]
fn values_have_a_certificate_too() {
    let mut contents = overheads();
    for row in &mut contents.rows {
        row.result.evidence = Some(Evidence::BareMetal);
        let first = row.result.values().first().map(|value| value.item.clone());
        let bound = first.map(|item| (item, "4us".parse().unwrap()));
        row.result.require = Some(Require { values: bound.into_iter().collect(), ..Require::default() });
    }
    is_two_pages(&made(&contents), "values");
}
