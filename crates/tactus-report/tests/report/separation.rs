//! The environments that a disturbance reaches, and the words that follow from it.

mod written;

use tactus_model::Evidence;
use tactus_model::bundle::{ClockFit, Contents, Format, Row};
use tactus_model::document::{Doubt, Leak, LeakEntry};
use tactus_model::outcome::{Outcome, RowEnd};
use tactus_model::plan::{Page, Shown, Trait};
use tactus_model::windows::{Moments, RowWindows};
use tactus_report::figure::{standalone, themed};
use tactus_report::render::text::{Style, render};
use tactus_report::render::{html, markdown};
use tactus_report::row::controls;
use tactus_report::section::separation::{leaks, separation};
use tactus_report::section::technologies::technologies;
use tactus_report::{document, headline};

use self::written::{
    BEGAN, CPU, LENGTH, Late, MS, S, WINDOW, contents, inject, keep, keep_windows, row, set_windows,
};
use crate::common::{self, unmeasured};

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
    assert_eq!((there.leak, there.full, there.injected), (Leak::Yes, Some(32), Some(32)), "{}", there.reason);
    assert_eq!((there.cpus.as_str(), there.disturbed_cpu), ("2", Some(2)), "both CPUs are named");
    let elsewhere = cell(&contents, "hog", "host", "container", false);
    assert_eq!((elsewhere.leak, elsewhere.cpus.as_str()), (Leak::No, "1"), "{}", elsewhere.reason);
    assert_eq!(cell(&contents, "hog", "guest", "host", true).leak, Leak::No);
}

#[test]
fn a_no_says_how_many_injections_may_be_seen_all_the_same() {
    let no = cell(&contents(), "hog", "host", "container", false);
    assert!((no.at_most.unwrap() - 0.0894).abs() < 0.001, "{:?}", no.at_most);
    assert!(no.with_seen_ns.unwrap() < 50_000 && no.slots == [288, 32], "{no:?}");
    assert!(
        no.reason.starts_with("at most 9.0 % of the injections (95 %, none of 32) are seen above"),
        "{}",
        no.reason
    );
    let mut short = contents();
    for row in &mut short.rows {
        let first = row.windows.began_ns / WINDOW;
        keep(row, |window| window < first + 100);
    }
    let few = cell(&short, "hog", "host", "container", false);
    assert_eq!((few.leak, few.doubt, few.injected), (Leak::NotSeen, None, Some(9)), "{}", few.reason);
    assert!(few.reason.starts_with("at most 29 % of the injections"), "{}", few.reason);
    assert_eq!(cell(&short, "hog", "host", "guest", true).leak, Leak::Yes, "what is seen is seen");
}

#[test]
fn what_arrives_smaller_is_weaker() {
    let part = cell(&contents(), "hog", "container", "guest", true);
    assert_eq!((part.leak, part.full), (Leak::Weaker, Some(0)), "{}", part.reason);
    assert!(part.stand_out > Some(25) && part.by_chance < Some(8.0), "{part:?}");
    assert_eq!(part.evidence, Some(Evidence::Emulated), "the lesser evidence of the two");
}

#[test]
fn what_arrives_whole_but_seldom_is_sometimes() {
    let mut contents = contents();
    let there = |row: &&mut Row| row.result.name == "hog in guest" && row.result.environment == "host";
    let row = contents.rows.iter_mut().find(there).unwrap();
    inject(row, "host", &Late { cpu: CPU, ticks: 3..12, ns: LENGTH - 1_000_000 });
    let seldom = cell(&contents, "hog", "guest", "host", true);
    assert_eq!(
        (seldom.leak, seldom.full, seldom.half),
        (Leak::Sometimes, Some(9), Some(9)),
        "{}",
        seldom.reason
    );
    let row = contents.rows.iter_mut().find(there).unwrap();
    keep_windows(row, "host", 5);
    row.windows.series.clear();
    keep_windows(row, "host", 5);
    inject(row, "host", &Late { cpu: CPU, ticks: 3..5, ns: LENGTH - 1_000_000 });
    let few = cell(&contents, "hog", "guest", "host", true);
    assert_eq!((few.leak, few.doubt), (Leak::NotKnown, Some(Doubt::TooFew)), "{}", few.reason);
}

#[test]
fn what_was_there_before_and_after_is_no_leak_however_large() {
    let mut contents = contents();
    let there = |row: &&mut Row| row.result.name == "hog in guest" && row.result.environment == "host";
    let row = contents.rows.iter_mut().find(there).unwrap();
    // Ten noisy seconds: at rest nothing of the kind was.
    let first = row.windows.began_ns / WINDOW;
    set_windows(row, CPU, first + 100..first + 200, 6 * MS);
    let noisy = cell(&contents, "hog", "guest", "host", true);
    assert_eq!(noisy.leak, Leak::No, "{}", noisy.reason);
    assert_eq!(noisy.with_seen_ns, Some(6 * MS));
}

#[test]
fn a_leak_is_judged_without_the_measurement_at_rest() {
    let mut contents = contents();
    for row in contents.rows.iter_mut().filter(|row| row.result.name == "rest") {
        *row = unmeasured(row.result.clone(), RowEnd::Waiting, "interrupted");
    }
    let one = cell(&contents, "hog", "host", "guest", true);
    assert_eq!((one.leak, one.rest_max_ns), (Leak::Yes, None), "{}", one.reason);
}

#[test]
fn a_bundle_without_times_says_so_and_says_no_more() {
    let mut contents = contents();
    contents.manifest.format = Format { major: 1, minor: 3 };
    for row in &mut contents.rows {
        row.windows = RowWindows::default();
        row.result.window_ns = None;
        row.result.injected.iter_mut().for_each(|at| at.injected.at = Moments::default());
    }
    let old = cell(&contents, "hog", "host", "guest", true);
    assert_eq!((old.leak, old.doubt), (Leak::NotKnown, Some(Doubt::NoTimes)));
    assert_eq!(old.reason, "this bundle contains no times of injection: measure again");
    assert!(old.with_max_ns >= Some(LENGTH - 90_000), "what was measured is still there");
    contents.manifest.format.minor = 4;
    let why = cell(&contents, "hog", "host", "guest", true).reason;
    assert!(why.contains("too often for windows of time"), "{why}");
    contents.rows.iter_mut().for_each(|row| row.result.window_ns = Some(WINDOW));
    let why = cell(&contents, "hog", "host", "guest", true).reason;
    assert!(why.contains("its source (SCHED_FIFO 99) does not report when"), "{why}");
}

#[test]
fn clocks_that_cannot_be_compared_prove_nothing() {
    let mut contents = contents();
    for row in contents.rows.iter_mut().filter(|row| row.result.environment == "guest") {
        row.result.clock_fit = Some(ClockFit {
            began_ns: BEGAN,
            ppm: 9_000.0,
            span_ns: 30 * S,
            late_ns: 20 * MS,
            error_ns: None,
        });
    }
    let guest = cell(&contents, "hog", "host", "guest", true);
    assert_eq!((guest.leak, guest.doubt), (Leak::NotKnown, Some(Doubt::Clock)), "{}", guest.reason);
    assert!(guest.reason.contains("9000 ppm"), "{}", guest.reason);
    assert_eq!(cell(&contents, "hog", "host", "container", true).leak, Leak::Yes, "they have one clock");
}

#[test]
fn injections_around_which_something_is_missing_do_not_count() {
    let mut contents = contents();
    let there = |row: &&mut Row| row.result.name == "hog in guest" && row.result.environment == "host";
    let row = contents.rows.iter_mut().find(there).unwrap();
    let first = row.windows.began_ns / WINDOW;
    keep(row, |window| !(first + 100..first + 150).contains(&window));
    let fewer = cell(&contents, "hog", "guest", "host", true);
    assert!((24..=27).contains(&fewer.injected.unwrap()), "{fewer:?}");
    assert_eq!(fewer.leak, Leak::NotSeen);
}

#[test]
fn a_disturbance_that_was_not_there_proves_nothing() {
    let mut contents = contents();
    let own = contents
        .rows
        .iter_mut()
        .find(|row| row.result.name == "hog in guest" && row.result.environment == "guest");
    let own = own.unwrap();
    let injected = own.result.injected.clone();
    *own = row("hog in guest", "guest", 77, &[]);
    own.result.injected = injected;
    let host = cell(&contents, "hog", "guest", "host", true);
    assert_eq!(host.leak, Leak::NotKnown);
    assert!(host.reason.contains("not seen in guest itself"), "{}", host.reason);
    assert_eq!(host.doubt, Some(Doubt::Source));
    let kvm = &technologies(&contents)[1];
    assert_eq!(kvm.words[2].word, "not known", "{:?}", kvm.words[2].reasons);
}

#[test]
fn too_few_injections_say_nothing() {
    let mut contents = contents();
    for row in &mut contents.rows {
        let first = row.windows.began_ns / WINDOW;
        keep(row, |window| window < first + 30);
    }
    let short = cell(&contents, "hog", "host", "container", true);
    assert_eq!((short.leak, short.doubt), (Leak::NotKnown, Some(Doubt::TooShort)), "{}", short.reason);
    assert!(short.reason.starts_with("too short to tell: 2 injections"), "{}", short.reason);
    let load = cell(&contents, "cpu", "host", "container", true);
    assert!(load.reason.starts_with("too short to tell: 0 pairs of seconds"), "{}", load.reason);
}

#[test]
fn noise_that_could_hide_it_is_no_proof_of_separation() {
    let mut contents = contents();
    for row in contents.rows.iter_mut().filter(|row| row.result.environment == "container") {
        let first = row.windows.began_ns / WINDOW;
        set_windows(row, 1, (first..first + 330).step_by(3), 40 * MS);
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
    assert!(host.reason.starts_with("self-test not passed"), "{}", host.reason);
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
    assert!(said.contains("Which environments hog in host reaches is unknown (not measured)."), "{said}");
    let figures = leaks(&contents);
    let grid = figures.iter().find(|figure| figure.title == "Interference matrix: hog").unwrap();
    assert_eq!(grid.svg().matches("\nnot measured\n").count(), 1, "one field for the whole row");
}

#[test]
fn the_summary_says_whom_a_disturbance_reaches_and_only_what_is_proven() {
    let mut contents = contents();
    let said = |contents: &Contents| headline(contents).join("\n");
    let all = said(&contents);
    for sentence in [
        "hog of 50 ms in host is seen there; reaches container (on the same CPU), guest (on the same CPU)",
        "hog of 50 ms in guest is seen there; does not reach host (at most 9.0 % of all injections), \
         container (at most 9.0 % of all injections) (some of it emulated).",
    ] {
        assert!(all.contains(sentence), "{sentence}:\n{all}");
    }
    for row in contents.rows.iter_mut().filter(|row| row.result.environment == "host") {
        row.result.control.clear();
    }
    let without = said(&contents);
    assert!(
        without.contains(
            "does not reach container (at most 9.0 % of all injections); unknown for host (self-test not passed)"
        ),
        "no word without an instrument:\n{without}"
    );
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
    assert_eq!((other.leak, other.length_ns), (Leak::NotSeen, None), "{}", other.reason);
    assert!(
        other.reason.contains("at most 19 % of the seconds with it (95 %, none of 15)"),
        "{}",
        other.reason
    );
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

pub fn paged() -> Contents {
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
        "Interference matrix: hog",
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
    let grids: Vec<_> =
        figures.iter().filter(|figure| figure.title.starts_with("Interference matrix")).collect();
    assert_eq!(grids.len(), 2, "one for each disturbance");
    let svg = grids[0].svg();
    for word in ["yes", "weaker", "no (&lt;= 9.0 %)", "CPU 2"] {
        assert!(svg.contains(&format!("\n{word}\n")), "{word}");
    }
    assert!(!standalone(&svg).contains("var(--") && themed(&svg).contains("var(--s2)"));
    assert!(grids[0].about.contains("guest to host, same CPU: no (<= 9.0 %)"));
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
    assert_eq!(document.scenarios[0].self_test.as_ref().unwrap().by, "hog");
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
    let all = contents.rows.iter_mut().flat_map(|row| &mut row.result.control);
    all.for_each(|control| control.seen_ns = control.injected_ns);
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
