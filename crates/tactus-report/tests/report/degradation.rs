//! The costs of environments against the first, in whole bundles.

use tactus_model::Evidence;
use tactus_model::bundle::Contents;
use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::{Network, network};
use tactus_model::outcome::exits::{CountedExits, KvmExits};
use tactus_model::outcome::{Better, Unit};
use tactus_model::plan::Reference;
use tactus_report::answer::answer;
use tactus_report::document;
use tactus_report::figure::Figure;
use tactus_report::part::{Part, Reader};
use tactus_report::render::text::{Style, render};
use tactus_report::render::{html, markdown};
use tactus_report::section::{Section, answer as first, degradation, values};
use tactus_statistics::Random;

use crate::common::{empty, environment, item, overheads, planned, valued};

/// Environments: name, kind, evidence, and how much worse a value is there.
type Places<'a> = &'a [(&'a str, &'a str, Evidence, f64)];

/// `rounds` rounds of system calls, signals, divisions and bandwidth in each place. Runs differ by 2 %;
/// divisions are the same everywhere.
fn measured(places: Places, rounds: u32, seed: u64) -> Contents {
    let mut contents = empty();
    let mut random = Random::new(seed);
    for (name, kind, ..) in places {
        contents.plan.environment.insert((*name).into(), environment(kind));
    }
    for round in 1..=rounds {
        for (name, kind, evidence, worse) in places {
            let mut result = planned(&format!("{name}, services"), name, kind, Vec::new());
            result.repeat = (rounds > 1).then_some(round);
            let mut noise = |value: f64| value * (1.0 + 0.02 * random.normal());
            let items = [
                (item("system call", Unit::Ns, Better::Lower), noise(112.0 * worse)),
                (item("signal handler", Unit::Us, Better::Lower), noise(1.74 * worse)),
                (item("integer divide", Unit::Ns, Better::Lower), noise(2.7)),
                (item("AF_UNIX bandwidth", Unit::MegabytesPerSecond, Better::Higher), noise(5_210.0 / worse)),
            ];
            contents.rows.push(valued(result, *evidence, &items));
        }
    }
    contents
}

const PLACES: Places = &[
    ("host", "host", Evidence::BareMetal, 1.0),
    ("container", "podman", Evidence::BareMetal, 1.12),
    ("guest", "qemu", Evidence::Emulated, 31.0),
];

fn study() -> Contents {
    let mut contents = measured(PLACES, 8, 1);
    let published = [
        ("host, services", "signal handler", "3.48us"),
        ("guest, services", "signal handler", "3.5us"),
        ("host, services", "AF_UNIX bandwidth", "1357MB/s"),
        ("guest, services", "AF_UNIX bandwidth", "1306MB/s"),
    ];
    for (scenario, item, value) in published {
        contents.plan.reference.push(Reference {
            scenario: scenario.into(),
            item: Some(item.into()),
            value: Some(value.parse().unwrap()),
            source: "table 3".into(),
            ..Reference::default()
        });
    }
    contents
}

fn part<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let text = &text[text.find(from).unwrap()..];
    &text[..text.find(to).unwrap_or(text.len())]
}

#[test]
fn the_answer_to_values_alone_is_what_environments_cost() {
    let first = |contents: &Contents| render(contents, Style::default()).lines().next().unwrap().to_owned();
    let text = render(&study(), Style { colour: false, width: 400 });
    let said = text.lines().next().unwrap();
    assert!(
        said.starts_with("COSTS SHOWN: container: 3 of 4 values are worse than in host, most "),
        "{said}"
    );
    assert!(
        said.contains("; guest (emulated, which says nothing about hardware): 3 of 4 values are"),
        "{said}"
    );
    let page = html::render(&study()).unwrap();
    assert!(page.contains("What does each environment cost?") && !page.contains("meet the deadline?"));
    let alike =
        &[("host", "host", Evidence::BareMetal, 1.0), ("container", "podman", Evidence::BareMetal, 1.0)];
    let said = first(&measured(alike, 8, 3));
    assert!(said.starts_with("NO COST SHOWN: container: none of 4 values"), "{said}");
    for rounds in [1, 2] {
        let once = measured(alike, rounds, 3);
        assert!(
            first(&once).starts_with("COSTS NOT JUDGED: container, host were measured"),
            "{}",
            first(&once)
        );
        assert_eq!(answer(&once).next.unwrap().command, "--repeat 6");
    }
    // A single environment has nothing to be compared with.
    assert!(first(&measured(&alike[..1], 8, 3)).starts_with("NO ANSWER: "));
}

#[test]
fn the_text_of_what_environments_cost() {
    let text = render(&study(), Style { colour: false, width: 110 });
    insta::assert_snapshot!(part(&text, "What each environment costs", "\n\nvalues "));
}

#[test]
fn the_markdown_of_what_environments_cost() {
    insta::assert_snapshot!(part(&markdown::render(&study()), "What each environment costs", "\n#"));
}

#[test]
fn the_page_of_what_environments_cost() {
    let page = html::render(&study()).unwrap();
    insta::assert_snapshot!(part(&page, "<section id=\"degradation\">", "</section>"));
}

#[test]
fn the_json_of_what_environments_cost() {
    let json = serde_json::to_value(document(&study())).unwrap();
    let all = json["degradations"].as_array().unwrap();
    assert_eq!(all.len(), 8, "four items in two environments");
    insta::assert_snapshot!(serde_json::to_string_pretty(&all[1]).unwrap());
}

#[test]
fn a_value_that_is_worse_in_every_round_is_a_degradation_and_an_equal_one_is_not() {
    let document = document(&study());
    for entry in &document.degradations {
        let seen = entry.degradation;
        assert_eq!(seen.rounds, 8);
        assert_eq!(seen.seen, entry.item != "integer divide", "{entry:?}");
        let worse = if entry.with.environment == "guest" { 30.0 } else { 0.12 };
        let worse = if entry.item == "integer divide" { 0.0 } else { worse };
        let (low, high) = seen.low.zip(seen.high).unwrap();
        assert!(low < worse && worse < high, "{} in {}: {seen:?}", entry.item, entry.with.environment);
    }
}

#[test]
fn of_one_run_each_nothing_is_called_a_degradation_however_much_differs() {
    let document = document(&measured(PLACES, 1, 1));
    assert_eq!(document.degradations.len(), 8);
    for entry in &document.degradations {
        assert!(!entry.degradation.seen && entry.degradation.rounds == 1, "{entry:?}");
        assert!(entry.degradation.low.is_some(), "what the two runs allow is said: {entry:?}");
    }
    let text = markdown::render(&measured(PLACES, 1, 1));
    assert!(text.contains("one run each") && text.contains("repeat = 7"), "{text}");
}

#[test]
fn a_guest_whose_exits_were_traced_has_paid_for_that_and_is_not_compared() {
    let places = |exits: KvmExits| -> Vec<String> {
        let mut contents = measured(PLACES, 8, 1);
        for row in contents.rows.iter_mut().filter(|row| row.result.environment == "guest") {
            row.result.exits = Some(exits.clone());
        }
        document(&contents).degradations.into_iter().map(|entry| entry.with.environment).collect()
    };
    assert_eq!(places(KvmExits::Counted(CountedExits::default())), ["container"; 4]);
    // Nothing was traced, so nothing was paid.
    assert_eq!(places(KvmExits::Unknowable("no BPF".into())).len(), 8);
}

#[test]
fn too_few_rounds_and_rounds_that_broke_off_say_nothing() {
    let mut contents = measured(PLACES, 8, 1);
    for row in contents.rows.iter_mut().filter(|row| row.result.environment == "container").take(2) {
        row.result.ended = tactus_model::outcome::RowEnd::Interrupted;
    }
    let document = document(&contents);
    for entry in &document.degradations {
        let whole = entry.with.environment == "guest";
        assert_eq!(entry.degradation.rounds, if whole { 8 } else { 6 });
        assert_eq!(entry.degradation.low.is_some(), whole, "{entry:?}");
        assert!(whole || !entry.degradation.seen);
    }
}

#[test]
fn a_report_of_values_begins_with_a_figure_of_what_every_item_costs_in_every_environment() {
    let drawn = |contents: &Contents| -> Vec<Figure> {
        first::ENTRY.parts(contents, Reader::Page).into_iter().flat_map(Part::figures).collect()
    };
    let [figure] = &drawn(&study())[..] else { panic!("one figure") };
    assert_eq!(figure.title, "Every value against host");
    for text in
        ["system call, container: x1.1", "system call, guest (EMULATED): x3", "AF_UNIX bandwidth, guest"]
    {
        assert!(figure.about.contains(text), "{text}: {}", figure.about);
    }
    let here = |contents: &Contents| {
        degradation::ENTRY.parts(contents, Reader::Page).into_iter().flat_map(Part::figures).count()
    };
    assert_eq!(here(&study()), 0, "it is not drawn twice");
    let mut both = study();
    both.rows.extend(overheads().rows.into_iter().skip(3));
    assert_eq!((drawn(&both)[0].title.as_str(), here(&both)), ("All measurements side by side", 1));
    // With one environment there is nothing to draw.
    assert!(drawn(&measured(&PLACES[..1], 8, 1)).is_empty());
}

#[test]
fn an_item_that_is_measured_idle_and_loaded_has_a_line_for_each_in_the_figure() {
    let mut both = measured(PLACES, 1, 1);
    for mut row in measured(PLACES, 1, 2).rows {
        row.result.name += ", loaded";
        row.result.load = vec![serde_json::json!({ "kind": "cpu", "in": row.result.environment })];
        both.rows.push(row);
    }
    let [figure] = &degradation::drawn(&both)[..] else { panic!("one figure") };
    let of = |text: &str| figure.about.matches(text).count();
    for place in ["container", "guest (EMULATED)"] {
        assert_eq!(of(&format!("system call, host, services, {place}: x")), 1, "{}", figure.about);
        assert_eq!(of(&format!("system call, host, services, loaded, {place}: x")), 1, "{}", figure.about);
    }
    // Where it is measured once the scenario is not said.
    assert!(degradation::drawn(&study())[0].about.contains("system call, container: x"));
}

#[test]
fn runs_of_one_measurement_are_one_bar_of_a_figure() {
    let all = values::ENTRY.parts(&study(), Reader::Page);
    let drawn: String = all.into_iter().flat_map(Part::figures).map(|figure| figure.svg()).collect();
    for place in ["host, services", "container, services", "guest, services"] {
        // Each place is drawn on a separate line; the words for readers who do not see it name it as well.
        assert_eq!(drawn.matches(&format!("\n{place}")).count(), 4, "a bar for each item: {drawn}");
    }
}

#[test]
fn other_work_in_the_load_of_a_stream_is_told_of() {
    let streamed = |rest: f64| {
        let mut contents = empty();
        let items = [(network::TX_THROUGHPUT, 200.0), (network::TX_LOAD, 1.0), (network::LOAD_AT_REST, rest)];
        let mut row = valued(planned("host, cable", "host", "host", Vec::new()), Evidence::BareMetal, &items);
        row.result.measurement = Measure::Network(Network::default());
        contents.rows.push(row);
        markdown::render(&contents)
    };
    assert!(streamed(0.2).contains("includes other work"));
    assert!(!streamed(0.05).contains("includes other work"));
}

/// The number of tables with a false degradation, of `tables` that compare a thing with itself.
fn false_tables(places: Places, tables: u64) -> usize {
    let announced = |seed: &u64| {
        let document = document(&measured(places, 8, 100 + seed));
        assert!(document.degradations.len() >= 4);
        document.degradations.iter().any(|entry| entry.degradation.seen)
    };
    (0..tables).filter(announced).count()
}

#[test]
fn a_host_against_itself_and_against_a_container_that_costs_nothing_shows_no_degradation_in_19_of_20() {
    let host = ("host", "host", Evidence::BareMetal, 1.0);
    for second in
        [("again", "host", Evidence::BareMetal, 1.0), ("container", "podman", Evidence::BareMetal, 1.0)]
    {
        let wrong = false_tables(&[host, second], 60);
        // 5 % of 60 are 3; 10 is four standard deviations more.
        assert!(wrong <= 10, "{wrong} of 60 against {}", second.0);
    }
}

#[test]
#[ignore = "long: make simulate"]
fn a_thousand_tables_of_a_thing_against_itself() {
    let places = [
        ("host", "host", Evidence::BareMetal, 1.0),
        ("again", "host", Evidence::BareMetal, 1.0),
        ("container", "podman", Evidence::BareMetal, 1.0),
    ];
    let wrong = false_tables(&places, 1000);
    println!("{wrong} of 1000 tables of three alike environments show a degradation");
    // 5 % of 1000 are 50; 70 is three standard deviations more.
    assert!(wrong <= 70, "{wrong}");
}
