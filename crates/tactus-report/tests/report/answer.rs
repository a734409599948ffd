//! The first line: whether the deadline is held, on which evidence, and what would help most.

use tactus_model::bundle::Contents;
use tactus_model::number::float;
use tactus_model::plan::Require;
use tactus_model::{Evidence, Nanos};
use tactus_report::answer::answer;
use tactus_report::part::Tone;
use tactus_report::render::text::{Style, render};
use tactus_report::render::{html, json, markdown};
use tactus_report::stats::exceedance;

use crate::common::{audits, empty, hostile, overheads, study, this_machine, whole_minute};

/// A minute on bare metal that keeps 10 ms.
fn kept() -> Contents {
    let mut contents = empty();
    contents.rows.push(whole_minute());
    contents
}

fn limited(contents: &mut Contents, row: usize, us: u64) {
    let limit = Require { max: Some(Nanos::from_us(us)), cycles: Some(1), ..Require::default() };
    contents.rows[row].result.require = Some(limit);
}

#[test]
fn a_kept_deadline_is_met_and_the_measurement_nearest_to_it_is_named() {
    let answer = answer(&kept());
    assert_eq!((answer.word, answer.tone, answer.evidence), ("MET", Tone::Good, vec![Evidence::BareMetal]));
    assert!(answer.sentence.starts_with("host, idle: max "), "{}", answer.sentence);
    assert!(answer.sentence.contains(" of at most 10 ms (1 min, bare metal)"), "{}", answer.sentence);
}

#[test]
fn a_broken_deadline_is_not_met_by_which_measurement_and_where_it_was_kept() {
    let mut contents = kept();
    limited(&mut contents, 0, 1);
    let mut other = whole_minute();
    other.result.name = "podman, idle".into();
    other.result.environment = "podman".into();
    contents.rows.push(other);
    let answer = answer(&contents);
    assert_eq!((answer.word, answer.tone), ("NOT MET", Tone::Bad));
    assert!(
        answer.sentence.starts_with("host, idle: max ") && answer.sentence.contains(" > 1 us ("),
        "{}",
        answer.sentence
    );
    assert!(answer.sentence.ends_with(" Met in podman."), "{}", answer.sentence);
}

#[test]
fn emulation_promises_nothing_and_says_so_once() {
    let mut contents = kept();
    contents.rows[0].result.evidence = Some(Evidence::Emulated);
    let judged = answer(&contents);
    assert_eq!((judged.word, judged.tone), ("NOT DECIDED", Tone::Doubt));
    assert!(judged.sentence.contains("says nothing about hardware"), "{}", judged.sentence);
    contents.rows[0].result.require = None;
    let held = answer(&contents);
    assert_eq!((held.word, held.tone), ("NO DEADLINE ASKED FOR", Tone::Doubt));
    let page = html::render(&contents).unwrap();
    // On the page a badge stands beside the word, elsewhere it is part of it.
    assert!(page.contains("<strong>NO DEADLINE ASKED FOR</strong>") && page.contains(">emulated</span>"));
    let text = render(&contents, Style::default());
    assert!(text.starts_with("NO DEADLINE ASKED FOR, EMULATED: "), "{text:.80}");
    assert!(markdown::render(&contents).starts_with("**NO DEADLINE ASKED FOR, EMULATED**: "));
}

#[test]
fn without_a_deadline_it_says_what_was_held_and_how_to_ask() {
    let answer = answer(&study());
    assert_eq!(answer.word, "NO DEADLINE ASKED FOR");
    assert!(
        answer.sentence.contains("31.2 us in host") && answer.sentence.contains("--max"),
        "{}",
        answer.sentence
    );
}

#[test]
fn where_time_alone_would_decide_the_next_step_is_to_measure_for_longer() {
    let answer = answer(&this_machine());
    assert_eq!(answer.word, "NOT DECIDED");
    let next = answer.next.unwrap();
    assert_eq!((next.title.as_str(), next.command.as_str()), ("Measure for 1 min", "--duration 60s"));
    assert!(!answer.sentence.contains("more of the same"), "said once: {}", answer.sentence);
}

#[test]
fn the_next_step_is_the_gravest_of_the_audit_and_is_not_said_to_be_measured() {
    let mut contents = kept();
    assert_eq!(answer(&contents).next, None);
    contents.audits.insert("host".into(), audits::audit());
    let next = answer(&contents).next.unwrap();
    assert_eq!(next.title, "what irq-affinity is about");
    assert!(next.why.contains("blocker") && next.why.contains("was not measured"), "{}", next.why);
}

#[test]
fn the_answer_is_the_first_line_of_text_and_markdown() {
    for (contents, word) in [(kept(), "MET"), (study(), "NO DEADLINE ASKED FOR"), (empty(), "NO ANSWER")] {
        let text = render(&contents, Style::default());
        assert!(text.starts_with(&format!("{word}: ")), "{}", text.lines().next().unwrap());
        assert!(markdown::render(&contents).starts_with(&format!("**{word}**: ")));
    }
    assert_eq!(answer(&hostile()).word, "NO DEADLINE ASKED FOR");
    assert!(answer(&overheads()).sentence.contains("services"));
}

#[test]
fn a_program_reads_the_same_answer_as_a_person() {
    let mut emulated = kept();
    emulated.rows[0].result.evidence = Some(Evidence::Emulated);
    let mut broken = kept();
    limited(&mut broken, 0, 1);
    for (contents, tone) in [
        (kept(), "good"),
        (broken, "bad"),
        (emulated, "doubt"),
        (this_machine(), "doubt"),
        (study(), "quiet"),
        (hostile(), "quiet"),
        (empty(), "doubt"),
    ] {
        let own = answer(&contents);
        let said: serde_json::Value = serde_json::from_str(&json::render(&contents).unwrap()).unwrap();
        let said = &said["answer"];
        assert_eq!(
            (said["word"].as_str(), said["sentence"].as_str()),
            (Some(own.word), Some(own.sentence.as_str()))
        );
        assert_eq!(said["tone"], tone, "{said:#}");
        let evidence: Vec<String> = own.evidence.iter().map(|kind| kind.key().to_owned()).collect();
        assert_eq!(said["evidence"], serde_json::json!(evidence));
        let command =
            own.next.as_ref().map(|next| next.command.as_str()).filter(|command| !command.is_empty());
        assert_eq!(said["next"]["title"].as_str(), own.next.as_ref().map(|next| next.title.as_str()));
        assert_eq!(said["next"]["command"].as_str(), command);
    }
    // What was written before there was an answer is still read.
    let mut older = serde_json::to_value(tactus_report::document(&kept())).unwrap();
    older.as_object_mut().unwrap().remove("answer");
    let read: tactus_model::document::Document = serde_json::from_value(older).unwrap();
    assert_eq!(read.answer, None);
}

#[test]
fn an_exceedance_falls_from_all_to_one_of_all_and_ends_at_the_largest() {
    let contents = this_machine();
    let rows: Vec<_> = contents.rows.iter().take(6).collect();
    let found = exceedance(&rows);
    for (row, parts) in rows.iter().zip(&found.parts) {
        let largest = row.result.all().unwrap().max_ns.unwrap();
        let known: Vec<(u64, f64)> =
            found.at_ns.iter().zip(parts).filter_map(|(at, part)| Some((*at, (*part)?))).collect();
        assert!(known.windows(2).all(|two| two[0].1 >= two[1].1), "{}", row.result.name);
        let (at, part) = *known.last().unwrap();
        assert_eq!(at, largest, "{}", row.result.name);
        let one = 1.0 / float(row.corrected().len());
        assert!(part >= one && part < 20.0 * one, "{}: {part} and {one}", row.result.name);
        // Half of all are at or above the median.
        let median = row.corrected().value_at_quantile(0.5);
        let half = known.iter().find(|(at, _)| *at >= median).unwrap().1;
        assert!((0.4..=0.6).contains(&half), "{}: {half}", row.result.name);
    }
}
