//! What a stranger's bundle may say at worst: every format of the report ends, and is no text that the bundle chose.

use tactus_model::bundle::Contents;
use tactus_model::finding::{Audit, Isolation, Role};
use tactus_model::message::Note;
use tactus_model::outcome::Outcome;
use tactus_model::ticks::TickScalars;
use tactus_report::render::FORMATS;

use crate::common::{empty, hostile, this_machine};

/// A line that would be one of another file's, such as a list of keys.
const PLANTED: &str = "ssh-ed25519 AAAA planted";

fn planted(text: &mut String) {
    *text = format!("{text}\n{PLANTED}\r{PLANTED}\u{1b}[2K\u{2028}\n");
}

/// The report in every format but the image, which is drawn from the figures.
fn reports(contents: &Contents) -> Vec<(&'static str, String)> {
    let formats = FORMATS.iter().filter(|format| format.name != "png");
    formats
        .map(|format| (format.name, String::from_utf8((format.render)(contents).unwrap()).unwrap()))
        .collect()
}

#[test]
fn no_line_of_a_report_is_one_that_the_bundle_chose() {
    let mut contents = hostile();
    let machine = &mut contents.manifest.machine;
    for text in [
        &mut machine.name,
        &mut machine.processor,
        &mut machine.cpus,
        &mut machine.kernel,
        &mut machine.system,
    ] {
        planted(text);
    }
    let manifest = &mut contents.manifest;
    for text in [&mut manifest.plan, &mut manifest.tactus, &mut manifest.started] {
        planted(text);
    }
    let mut about = "about".to_owned();
    planted(&mut about);
    contents.plan.title = Some(about.clone());
    contents.plan.about = Some(about.clone());
    contents.notes.push((Some(about.clone()), Note::obstacle(&*about, &*about)));
    contents.damage.push(about.clone());
    for row in &mut contents.rows {
        planted(&mut row.result.name);
        planted(&mut row.result.environment);
        planted(&mut row.result.kind);
        row.result.reason = Some(about.clone());
        row.result.notes.push(Note::obstacle(&*about, &*about));
    }
    let mut facts = contents.facts.values().next().unwrap().clone();
    facts.keep("/proc/cmdline", &*about);
    facts.keep(&*about, &*about);
    let audit = Audit {
        role: Role::Host,
        isolation: Isolation::default(),
        findings: Vec::new(),
        actions: Vec::new(),
    };
    for row in &contents.rows {
        contents.facts.insert(row.result.environment.clone(), facts.clone());
        contents.audits.insert(row.result.environment.clone(), audit.clone());
    }
    for (format, report) in reports(&contents) {
        assert!(report.contains("planted"), "{format} shows it");
        // Text is broken where a terminal ends, and so between any two words.
        for line in report.split(['\n', '\r']).filter(|_| format != "text") {
            assert!(!line.trim_start().starts_with(PLANTED), "{format}: {line}");
        }
        let steering = report.chars().find(|c| c.is_control() && *c != '\n' && *c != '\t');
        assert_eq!(steering, None, "{format}");
    }
}

#[test]
fn the_largest_numbers_there_are_end_in_a_report() {
    for number in [u64::MAX, u64::MAX - 1, i64::MAX.unsigned_abs(), 1 << 53] {
        let mut contents = this_machine();
        for row in &mut contents.rows {
            let result = &mut row.result;
            for all in [
                &mut result.interval_ns,
                &mut result.planned_ns,
                &mut result.measured_ns,
                &mut result.frames_lost,
            ] {
                *all = number;
            }
            if let Outcome::Latency(latency) = &mut result.outcome {
                let summaries =
                    latency.series.iter_mut().map(|series| &mut series.summary).chain(&mut latency.all);
                for summary in summaries {
                    (summary.cycles, summary.overruns, summary.lost) = (number, number, number);
                    (summary.min_ns, summary.max_ns) =
                        (summary.min_ns.map(|_| 1), summary.max_ns.map(|_| number));
                }
            }
            let keys: Vec<_> = row.ticks.series.keys().cloned().collect();
            for key in keys {
                let n = row.ticks.series[&key].stretches.last().map_or(0, |last| last.last + 1);
                let most = Some(number);
                let tick = TickScalars {
                    n,
                    at_ns: number,
                    cycles: number,
                    overruns: number,
                    min_ns: most,
                    sum_ns: most,
                    p99_ns: most,
                    max_ns: most,
                };
                row.ticks.add(&key, &TickScalars { n: number, ..tick });
                row.ticks.add(&key, &TickScalars { at_ns: 3_000_000_000, ..tick });
            }
        }
        for (format, report) in reports(&contents) {
            assert!(!report.is_empty(), "{format}");
        }
    }
}

/// Of a text that was looked at once for each of its lines this takes minutes.
#[test]
fn a_reason_of_megabytes_is_reported() {
    let mut contents = empty();
    contents.rows = this_machine().rows;
    for (row, reason) in contents.rows.iter_mut().zip(["x".repeat(5 << 20), "no words ".repeat(600_000)]) {
        row.result.reason = Some(reason);
    }
    for (format, report) in reports(&contents) {
        assert!(report.len() > 100, "{format}");
    }
}
