//! Which environments a disturbance reaches, and the words that follow from it.

#[expect(dead_code, reason = "what the tests have in common is more than one of them uses")]
mod common;

use std::collections::BTreeMap;

use common::{Shape, Span, environment, latency, manifest, measured, planned, unmeasured};
use serde_json::json;
use tactus_model::buckets::{Counts, bucket_of};
use tactus_model::bundle::{Contents, InjectedIn, Row};
use tactus_model::catalogue::fault::Hog;
use tactus_model::catalogue::{Fault, Load};
use tactus_model::document::{Doubt, Leak, LeakEntry};
use tactus_model::message::Injected;
use tactus_model::outcome::{Outcome, RowEnd};
use tactus_model::plan::{Disturbance, Disturbed, Page, Plan, Separation, Shown, Technology, Trait};
use tactus_model::{CpuSet, Evidence, Nanos};
use tactus_report::figure::{standalone, themed};
use tactus_report::render::text::{Style, render};
use tactus_report::render::{html, markdown};
use tactus_report::row::controls;
use tactus_report::section::separation::{leaks, separation};
use tactus_report::section::technologies::technologies;
use tactus_report::{document, headline};

const MS: u64 = 1_000_000;
const LENGTH: u64 = 50 * MS;
/// CPU of the machine on which everything is disturbed; the other one is 1.
const CPU: u32 = 2;
const SPAN: Span = Span { ticks: 10, samples: 1_000, per_interval: 1, series: 2 };

/// What is late in a row: on this CPU inside, in each of these ticks, by this much.
struct Late {
    cpu: u32,
    ticks: std::ops::Range<usize>,
    ns: u64,
}

/// Takes the ticks away that do not hold.
fn retain_ticks(row: &mut Row, keep: impl Fn(u64) -> bool) {
    for series in row.ticks.series.values_mut() {
        series.stretches.retain(|one| keep(one.first));
    }
}

/// Makes wake-ups of a measured row late.
fn delay(row: &mut Row, late: &Late) {
    for (_, series) in row.ticks.series.iter_mut().filter(|(key, _)| key.cpu == late.cpu) {
        for tick in &mut series.stretches {
            if late.ticks.contains(&usize::try_from(tick.first).unwrap()) {
                tick.max_ns = Some(late.ns);
                let counted = row.histograms.series.entry(late.cpu.to_string()).or_default();
                let mut more = Counts::default();
                more.add_packed(counted);
                more.add(bucket_of(late.ns), 1);
                *counted = more.pack();
            }
        }
    }
    for series in latency(row).series.iter_mut().filter(|series| series.key.cpu == late.cpu) {
        if !late.ticks.is_empty() {
            series.summary.max_ns = Some(late.ns);
        }
    }
}

/// A row of a separation: measured on CPUs 1 and 2, which are those of the machine.
fn row(name: &str, place: &str, seed: u64, late: &[Late]) -> Row {
    let (kind, evidence, shape) = match place {
        "guest" => ("qemu", Evidence::Emulated, Shape { late: 0.0, ..Shape::EMULATED }),
        "container" => ("podman", Evidence::VirtualHost, Shape::IDLE),
        _ => ("host", Evidence::VirtualHost, Shape::IDLE),
    };
    let mut result = planned(name, place, kind, Vec::new());
    result.layout = vec![(1, 1), (2, 2)];
    let mut row = measured(result, evidence, shape, SPAN, seed);
    for late in late {
        delay(&mut row, late);
    }
    row
}

fn on(cpu: u32, ns: u64) -> Vec<Late> {
    vec![Late { cpu, ticks: 0..10, ns }]
}

/// A hog in each of three environments: on the host it reaches all of them, in the container the host and in
/// part the guest, in the guest nobody.
fn contents() -> Contents {
    let mut plan =
        Plan { name: "separation".into(), title: Some("Who reaches whom?".into()), ..Plan::default() };
    let places = ["host", "container", "guest"];
    for (place, kind) in places.into_iter().zip(["host", "podman", "qemu"]) {
        plan.environment.insert(place.into(), environment(kind));
    }
    let hog = Hog { length: Nanos(LENGTH), every: Nanos::from_secs(1) };
    let what = |fault, load| Disturbance { fault, load };
    plan.separation = Some(Separation {
        environments: places.map(str::to_owned).to_vec(),
        disturb: vec![
            what(Some(Fault::Hog(hog)), None),
            what(None, Some(Load::Cpu(tactus_model::catalogue::load::Cpu::default()))),
        ],
        interval: None,
        rest: vec!["rest".into()],
        disturbed: places
            .iter()
            .flat_map(|place| {
                ["hog", "cpu"].map(|what| Disturbed {
                    scenario: format!("{what} in {place}"),
                    environment: (*place).into(),
                    what: what.into(),
                    cpu: Some(CPU),
                })
            })
            .collect(),
        absent: BTreeMap::from([("inmate".into(), "no Jailhouse on this machine".into())]),
    });
    for (name, place, published) in [("Docker", "container", "Limited"), ("KVM", "guest", "Good")] {
        plan.technology.push(Technology {
            name: name.into(),
            environment: place.into(),
            host: "host".into(),
            alike: vec![["rest".into(), "rest".into()]],
            published: BTreeMap::from([
                (Trait::RealTime, "Yes".into()),
                (Trait::AsOnHost, "Yes".into()),
                (Trait::Separation, published.into()),
                (Trait::Independence, "No".into()),
            ]),
        });
    }
    let mut rows: Vec<Row> =
        (30_u64..).zip(places).map(|(seed, place)| row("rest", place, seed, &[])).collect();
    for (from, disturbed) in (1_u64..).zip(places) {
        for (seed, place) in (from * 10..).zip(places) {
            let late = match (disturbed, place) {
                ("host", _) | ("container", "host" | "container") | ("guest", "guest") => {
                    on(CPU, LENGTH - 90_000)
                }
                ("container", "guest") => vec![Late { cpu: CPU, ticks: 0..10, ns: 5 * MS }],
                _ => Vec::new(),
            };
            let mut one = row(&format!("hog in {disturbed}"), place, seed, &late);
            one.result.fault =
                vec![json!({ "kind": "hog", "length": "50ms", "every": "1s", "in": disturbed, "cpus": "2" })];
            one.result.injected = vec![InjectedIn {
                environment: disturbed.into(),
                outside: CpuSet::one(CPU),
                injected: Injected {
                    activity: 3,
                    kind: "hog".into(),
                    way: "SCHED_FIFO 99".into(),
                    cpus: CpuSet::one(CPU),
                    length_ns: LENGTH,
                    every_ns: 1_000 * MS,
                    times: Some(10),
                    longest_ns: Some(LENGTH + 40_000),
                },
            }];
            rows.push(one);
            let late = if disturbed == place {
                on(CPU, 60_000 + if place == "guest" { 9 * MS } else { 0 })
            } else {
                Vec::new()
            };
            let mut one = row(&format!("cpu in {disturbed}"), place, seed + 500, &late);
            one.result.load = vec![json!({ "kind": "cpu", "in": disturbed, "cpus": "2" })];
            rows.push(one);
        }
    }
    Contents {
        manifest: manifest("separation"),
        plan,
        facts: BTreeMap::new(),
        audits: BTreeMap::new(),
        rows,
        notes: Vec::new(),
        damage: Vec::new(),
    }
}

fn cell(contents: &Contents, what: &str, from: &str, to: &str, same_cpu: bool) -> LeakEntry {
    let entry = separation(contents).expect("the plan asks for it");
    let own = |cell: &LeakEntry| {
        cell.disturbance == what && cell.disturbed == from && cell.measured == to && cell.same_cpu == same_cpu
    };
    entry.cells.into_iter().find(own).expect("a cell for every pair")
}

#[test]
fn a_fault_that_is_seen_at_its_size_each_time_leaks_and_only_on_its_cpu() {
    let contents = contents();
    let there = cell(&contents, "hog", "host", "container", true);
    assert_eq!((there.leak, there.full, there.injected), (Leak::Yes, Some(10), Some(10)), "{}", there.reason);
    assert_eq!((there.cpus.as_str(), there.disturbed_cpu), ("2", Some(2)), "both CPUs are named");
    let elsewhere = cell(&contents, "hog", "host", "container", false);
    assert_eq!((elsewhere.leak, elsewhere.cpus.as_str()), (Leak::No, "1"), "{}", elsewhere.reason);
    assert_eq!(cell(&contents, "hog", "guest", "host", true).leak, Leak::No);
}

#[test]
fn what_arrives_smaller_leaks_in_part() {
    let part = cell(&contents(), "hog", "container", "guest", true);
    assert_eq!((part.leak, part.full), (Leak::Partly, Some(0)), "{}", part.reason);
    assert_eq!(part.evidence, Some(Evidence::Emulated), "the lesser evidence of the two");
}

/// The same rows at rest once more, after all others.
fn rest_again(contents: &mut Contents, late: &[Late]) {
    contents.plan.separation.as_mut().unwrap().rest.push("again".into());
    for (seed, place) in (60_u64..).zip(["host", "container", "guest"]) {
        contents.rows.push(row("again", place, seed, late));
    }
}

#[test]
fn what_exceeds_one_rest_alone_is_the_machines_drift() {
    let mut contents = contents();
    rest_again(&mut contents, &[]);
    assert_eq!(cell(&contents, "hog", "container", "guest", true).leak, Leak::Partly, "it exceeds both");
    let mut contents = self::contents();
    rest_again(&mut contents, &on(CPU, 6 * MS));
    let drift = cell(&contents, "hog", "container", "guest", true);
    assert_eq!(drift.leak, Leak::No, "{}", drift.reason);
    assert_eq!((drift.slots, drift.rest_max_ns), ([20, 10], Some(6 * MS)));
    assert_eq!(cell(&contents, "hog", "host", "guest", true).leak, Leak::Yes, "50 ms exceed 6 ms, too");
}

#[test]
fn a_rest_that_was_not_reached_is_left_out() {
    let mut contents = contents();
    rest_again(&mut contents, &[]);
    for row in contents.rows.iter_mut().filter(|row| row.result.name == "again") {
        *row = unmeasured(row.result.clone(), RowEnd::Waiting, "interrupted");
    }
    let one = cell(&contents, "hog", "host", "guest", true);
    assert_eq!((one.leak, one.slots), (Leak::Yes, [10, 10]), "{}", one.reason);
    for row in contents.rows.iter_mut().filter(|row| row.result.name == "rest") {
        *row = unmeasured(row.result.clone(), RowEnd::Waiting, "interrupted");
    }
    let none = cell(&contents, "hog", "host", "guest", true);
    assert_eq!(none.leak, Leak::NotKnown);
    assert!(none.reason.starts_with("not measured at rest: interrupted"), "{}", none.reason);
}

#[test]
fn a_disturbance_that_was_not_there_proves_nothing() {
    let mut contents = contents();
    let own = contents
        .rows
        .iter_mut()
        .find(|row| row.result.name == "hog in guest" && row.result.environment == "guest");
    *own.unwrap() = row("hog in guest", "guest", 77, &[]);
    let host = cell(&contents, "hog", "guest", "host", true);
    assert_eq!(host.leak, Leak::NotKnown);
    assert!(host.reason.contains("not seen in guest itself"), "{}", host.reason);
    assert_eq!(host.doubt, Some(Doubt::Source));
    let kvm = &technologies(&contents)[1];
    assert_eq!(kvm.words[2].word, "not known", "{:?}", kvm.words[2].reasons);
}

#[test]
fn too_few_slots_of_time_say_nothing() {
    let mut contents = contents();
    for row in &mut contents.rows {
        retain_ticks(row, |n| n < 4);
    }
    let short = cell(&contents, "hog", "host", "container", true);
    assert_eq!(short.leak, Leak::NotKnown);
    assert!(short.reason.starts_with("too short to tell: 4 slots"), "{}", short.reason);
    assert_eq!(short.doubt, Some(Doubt::TooShort));
}

#[test]
fn noise_that_could_hide_it_is_no_proof_of_separation() {
    let mut contents = contents();
    for row in contents.rows.iter_mut().filter(|row| row.result.environment == "container") {
        let even = Late { cpu: 1, ticks: 0..10, ns: 40 * MS };
        delay(row, &even);
    }
    let noisy = cell(&contents, "hog", "host", "container", false);
    assert_eq!(noisy.leak, Leak::NotKnown, "{}", noisy.reason);
    assert!(noisy.reason.contains("could hide it"), "{}", noisy.reason);
    assert_eq!(noisy.doubt, Some(Doubt::Noise));
}

#[test]
fn a_no_needs_an_instrument_that_is_proven() {
    let mut contents = contents();
    for control in contents.rows.iter_mut().flat_map(|row| &mut row.result.control) {
        control.seen_ns = 0;
    }
    let host = cell(&contents, "hog", "guest", "host", true);
    assert_eq!(host.leak, Leak::NotKnown);
    assert!(host.reason.starts_with("instrument not proven here"), "{}", host.reason);
    assert_eq!(host.doubt, Some(Doubt::Control));
    assert_eq!(cell(&contents, "hog", "host", "container", true).leak, Leak::Yes, "what is seen is seen");
}

#[test]
fn a_cell_that_was_not_measured_says_why() {
    let mut contents = contents();
    let refused = "this kernel has no tracer that turns interrupts off";
    for row in contents.rows.iter_mut().filter(|row| row.result.name == "hog in host") {
        *row = unmeasured(row.result.clone(), RowEnd::Failed, refused);
        row.result.outcome = Outcome::default();
    }
    let cell = cell(&contents, "hog", "host", "guest", true);
    assert_eq!((cell.leak, cell.doubt), (Leak::NotKnown, Some(Doubt::NotMeasured)));
    assert!(cell.reason.contains(refused), "{}", cell.reason);
    let text = render(&contents, Style::default());
    assert_eq!(text.replace("\n  ", " ").matches(refused).count(), 1, "said once:\n{text}");
    let said = headline(&contents).join("\n");
    assert!(said.contains("Whom hog in host reaches is not known (not measured)."), "{said}");
    let figures = leaks(&contents);
    let grid = figures.iter().find(|figure| figure.title == "Whom does hog reach?").unwrap();
    assert_eq!(grid.svg().matches("\nnot measured\n").count(), 1, "one field for the whole row");
}

#[test]
fn the_summary_says_whom_a_disturbance_reaches_and_only_what_is_proven() {
    let mut contents = contents();
    let said = |contents: &Contents| headline(contents).join("\n");
    let all = said(&contents);
    for sentence in [
        "hog of 50 ms in host is seen there; reaches container (on the same CPU), guest (on the same CPU)",
        "hog of 50 ms in guest is seen there; does not reach host, container (some of it emulated).",
    ] {
        assert!(all.contains(sentence), "{sentence}:\n{all}");
    }
    for row in contents.rows.iter_mut().filter(|row| row.result.environment == "host") {
        row.result.control.clear();
    }
    let without = said(&contents);
    assert!(
        without.contains("does not reach container; not known for host (control)"),
        "no word without an instrument:\n{without}"
    );
}

#[test]
fn a_fault_counts_as_made_when_nearly_every_slot_of_time_has_it_and_none_at_rest() {
    let mut contents = contents();
    for row in &mut contents.rows {
        retain_ticks(row, |n| n < 8);
    }
    let late = Late { cpu: CPU, ticks: 1..8, ns: LENGTH - 90_000 };
    let there = |row: &&mut Row| row.result.name == "hog in guest" && row.result.environment == "guest";
    let result = contents.rows.iter_mut().find(there).unwrap();
    let mut one = row("hog in guest", "guest", 77, &[late]);
    retain_ticks(&mut one, |n| n < 8);
    one.result.fault = result.result.fault.clone();
    one.result.injected = result.result.injected.clone();
    one.result.injected[0].injected.times = Some(8);
    *result = one;
    let made = cell(&contents, "hog", "guest", "guest", true);
    assert_eq!(made.leak, Leak::Yes, "{}", made.reason);
    let reached = cell(&contents, "hog", "guest", "host", true);
    assert_eq!(reached.leak, Leak::No, "{}", reached.reason);
}

#[test]
fn an_environment_without_the_cpu_is_measured_on_others_only() {
    let mut contents = contents();
    for row in contents.rows.iter_mut().filter(|row| row.result.environment == "guest") {
        row.result.layout.clear();
    }
    let same = cell(&contents, "hog", "host", "guest", true);
    assert!(same.reason.contains("not measured on CPU 2"), "{}", same.reason);
    let other = cell(&contents, "hog", "host", "guest", false);
    assert_eq!((other.inside.as_str(), other.cpus.as_str()), ("1,2", ""));
    assert_eq!(other.leak, Leak::Yes, "{}", other.reason);
}

#[test]
fn loads_leak_by_how_many_times_the_maxima_rise() {
    let contents = contents();
    assert_eq!(cell(&contents, "cpu", "host", "host", true).leak, Leak::Yes);
    let other = cell(&contents, "cpu", "host", "container", true);
    assert_eq!((other.leak, other.length_ns), (Leak::No, None), "{}", other.reason);
}

#[test]
fn words_follow_from_the_measurements_and_say_where_they_differ() {
    let all = technologies(&contents());
    let word = |n: usize, row: usize| (all[n].words[row].word.as_str(), all[n].words[row].differs);
    assert_eq!(word(0, 2), ("limited", Some(false)), "{:?}", all[0].words[2].reasons);
    assert_eq!(word(1, 2), ("good", Some(false)), "{:?}", all[1].words[2].reasons);
    assert_eq!(word(1, 0), ("not known", None), "emulated latencies carry no word");
    assert_eq!(word(0, 3), ("no", Some(false)));
    assert_eq!(word(0, 0).0, "not known", "20000 cycles are too few");
}

fn paged() -> Contents {
    let mut contents = contents();
    let page = |title: &str, show: &[Shown]| Page {
        title: title.into(),
        words: Some("The document's words.\nTwo lines of them.".into()),
        show: show.to_vec(),
        scenarios: vec!["rest".into()],
        environment: Some("host".into()),
    };
    contents.plan.page = vec![
        page("Blocked on the host", &[Shown::Disturbance]),
        page("Level of isolation", &[Shown::Separation]),
        page("Comparison of technologies", &[Shown::Technologies]),
        page("At rest", &[Shown::Histogram, Shown::Threads]),
    ];
    contents
}

#[test]
fn the_text_reads_page_by_page() {
    let text = render(&paged(), Style { colour: false, width: 100 });
    let to = text.find("\nAll measurements").expect("the table of everything");
    insta::assert_snapshot!(&text[..to]);
}

#[test]
fn every_format_has_the_pages_with_links_that_lead_somewhere() {
    let page = html::render(&paged()).unwrap();
    let words = markdown::render(&paged());
    for text in [
        "Blocked on the host",
        "Two lines of them.",
        "Whom does hog reach?",
        "Why these words",
        "document: Limited",
    ] {
        assert!(page.contains(text) && words.contains(text), "{text}");
    }
    let links = page.match_indices("href=\"#").map(|(at, _)| page[at + 7..].split('"').next().unwrap());
    let mut counted = 0;
    for link in links {
        assert!(page.contains(&format!("id=\"{link}\"")), "{link} leads nowhere");
        counted += 1;
    }
    assert!(counted > 20, "{counted} links");
}

#[test]
fn the_figure_says_every_word_and_is_drawn_in_both_themes() {
    let figures = leaks(&contents());
    let grids: Vec<_> = figures.iter().filter(|figure| figure.title.starts_with("Whom does")).collect();
    assert_eq!(grids.len(), 2, "one for each disturbance");
    let svg = grids[0].svg();
    for word in ["yes", "partly", "no", "CPU 2"] {
        assert!(svg.contains(&format!("\n{word}\n")), "{word}");
    }
    assert!(!standalone(&svg).contains("var(--") && themed(&svg).contains("var(--s2)"));
    assert!(grids[0].about.contains("guest to host, same CPU: no"));
}

#[test]
fn the_json_has_every_cell() {
    let document = document(&contents());
    let separation = document.separation.expect("asked for");
    assert_eq!(separation.cells.len(), 3 * 2 * 3 * 2, "disturbed, disturbances, measured, CPUs");
    assert_eq!(document.technologies.len(), 2);
    let json = serde_json::to_value(&separation.cells[0]).unwrap();
    assert_eq!(json["leak"], "yes");
    let open = separation.cells.iter().filter(|cell| cell.leak == Leak::NotKnown);
    assert!(open.clone().all(|cell| cell.doubt.is_some() && !cell.reason.is_empty()));
    assert!(separation.cells.iter().all(|cell| cell.doubt.is_none() || cell.leak == Leak::NotKnown));
    assert_eq!(document.scenarios[0].control.as_ref().unwrap().by, "hog");
}

#[test]
fn hostile_names_stay_in_their_cells() {
    let mut contents = paged();
    contents.plan.page[0].title = "<script>x</script>|\u{1b}[31m".into();
    contents.plan.technology[0].name = "<b onload=x>".into();
    contents.plan.technology[0].published.insert(Trait::Separation, "</td><script>y".into());
    let page = html::render(&contents).unwrap();
    assert!(!page.contains("<script>x") && !page.contains("<script>y") && !page.contains("<b onload"));
    assert!(!markdown::render(&contents).contains('\u{1b}'));
}

#[test]
fn controls_are_told_of_once_and_failures_together() {
    let mut contents = contents();
    let proven = controls(&contents);
    assert_eq!(proven.len(), 2, "one for each kind of evidence: {proven:?}");
    assert!(proven.iter().all(|(good, _)| *good));
    for row in contents.rows.iter_mut().filter(|row| row.result.environment == "container") {
        row.result.control.iter_mut().for_each(|control| control.seen_ns = 0);
    }
    let said = controls(&contents);
    let bad: Vec<&String> = said.iter().filter(|(good, _)| !good).map(|(_, said)| said).collect();
    assert_eq!(bad.len(), 1, "one line for the environment: {bad:?}");
    assert!(bad[0].starts_with("container: ") && bad[0].contains("in 7 of 7 measurements"), "{}", bad[0]);
}

#[test]
fn what_lies_inside_a_guest_is_called_so() {
    let mut contents = contents();
    contents.plan.environment.get_mut("container").unwrap().inside = Some("guest".into());
    assert!(render(&contents, Style::default()).contains("container: podman in guest"));
    let document = document(&contents);
    let entry = document.scenarios.iter().find(|entry| entry.environment == "container").unwrap();
    assert_eq!(entry.inside.as_deref(), Some("guest"));
    contents.plan.separation = None;
    assert!(markdown::render(&contents).contains("rest (container, podman in guest)"));
}

#[test]
fn the_json_of_separation_and_technologies() {
    insta::assert_snapshot!(common::sections(&document(&contents())));
}
