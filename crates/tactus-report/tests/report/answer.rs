//! The first line: whether the deadline is met, the evidence for it, and the most helpful step.

use tactus_model::bundle::{Asked, Contents, RowResult, Sliced};
use tactus_model::event::RunStatus;
use tactus_model::message::{Note, Unknowable};
use tactus_model::number::float;
use tactus_model::outcome::{Ending, Outcome, RowEnd};
use tactus_model::plan::{Require, Scenario};
use tactus_model::scheduling::Policy;
use tactus_model::{Evidence, Nanos};
use tactus_report::answer::{answer, headline};
use tactus_report::document;
use tactus_report::part::Tone;
use tactus_report::render::text::{Style, render};
use tactus_report::render::{FORMATS, github, html, json, junit, markdown};
use tactus_report::stats::exceedance;

use crate::common::{
    audits, empty, hostile, latency, overheads, planned, scheduler, study, this_machine, unmeasured,
    whole_minute,
};

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
    assert!(answer.sentence.contains(", limit 10 ms (1 min, idle, bare metal)"), "{}", answer.sentence);
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
    assert!(answer.sentence.contains(" Met in podman. "), "{}", answer.sentence);
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
    assert_eq!((held.word, held.tone), ("NO LIMIT GIVEN", Tone::Doubt));
    let page = html::render(&contents).unwrap();
    // On the page a badge stands beside the word, elsewhere it is part of it.
    assert!(page.contains("<strong>NO LIMIT GIVEN</strong>") && page.contains(">emulated</span>"));
    let text = render(&contents, Style::default());
    assert!(text.starts_with("NO LIMIT GIVEN, EMULATED: "), "{text:.80}");
    assert!(markdown::render(&contents).starts_with("**NO LIMIT GIVEN, EMULATED**: "));
}

#[test]
fn without_a_deadline_it_says_what_was_held_and_how_to_ask() {
    let answer = answer(&study());
    assert_eq!(answer.word, "NO LIMIT GIVEN");
    assert!(
        answer.sentence.contains("31.2 us in host") && answer.sentence.contains("--max"),
        "{}",
        answer.sentence
    );
}

#[test]
fn where_time_alone_would_decide_the_next_step_is_to_measure_for_longer() {
    let said = answer(&this_machine());
    assert_eq!(said.word, "NOT DECIDED");
    let next = said.next.unwrap();
    assert_eq!((next.title.as_str(), next.command.as_str()), ("Measure for 1 min", "--duration 60s"));
    let mut typed = this_machine();
    let command = ["tactus", "run", "gate.toml", "--quick", "--max", "1ms"].map(str::to_owned).into();
    typed.manifest.asked = Some(Asked { command, ..Default::default() });
    typed.own = true;
    let next = answer(&typed).next.unwrap();
    assert_eq!(next.command, "tactus run gate.toml --max 1ms --duration 60s");
    assert!(!said.sentence.contains("more of the same"), "said once: {}", said.sentence);
}

#[test]
fn the_next_step_is_the_gravest_of_the_audit_and_is_not_said_to_be_measured() {
    let mut contents = kept();
    limited(&mut contents, 0, 1);
    assert_eq!(answer(&contents).next, None);
    contents.audits.insert("host".into(), audits::audit());
    let next = answer(&contents).next.unwrap();
    assert_eq!(next.title, "what irq-affinity is about");
    assert_eq!(next.command, "tactus explain irq-affinity");
    assert!(next.why.contains("; worst: blocker"), "{}", next.why);
}

#[test]
fn under_a_deadline_that_is_met_nothing_is_advised() {
    let mut contents = kept();
    contents.audits.insert("host".into(), audits::audit());
    assert_eq!((answer(&contents).word, answer(&contents).next), ("MET", None));
    assert!(!html::render(&contents).unwrap().contains("What would help most"));
}

#[test]
fn the_answer_says_whether_anything_ran_beside_it() {
    let mut contents = kept();
    assert!(answer(&contents).sentence.ends_with(" Idle only: tactus ran no load."));
    contents.rows[0].result.load = scheduler("host");
    let sentence = answer(&contents).sentence;
    assert!(sentence.contains("(1 min, under scheduler load, bare metal)"), "{sentence}");
    assert!(!sentence.contains("Idle only"), "{sentence}");
    contents.rows[0].result.fault = vec![serde_json::json!({ "kind": "hog", "in": "host" })];
    assert!(answer(&contents).sentence.contains("under scheduler load with a hog fault"));
    contents.rows[0].result.evidence = Some(Evidence::Imported);
    let sentence = answer(&contents).sentence;
    assert!(!sentence.contains("Idle only") && !sentence.contains(" load"), "nobody knows: {sentence}");
}

/// A minute under load that keeps 10 ms, with a note.
fn loaded(note: Note) -> Contents {
    let mut contents = kept();
    contents.rows[0].result.load = scheduler("host");
    contents.rows[0].result.notes.push(note);
    contents
}

#[test]
fn the_answer_names_the_group_whose_quota_stopped_a_measurement() {
    let contents = loaded(Note::obstacle("throttled 13 times, 308 ms, by /system.slice/x.service", ""));
    let said = answer(&contents).sentence;
    assert!(said.contains(" Throttled 13 times, 308 ms, by /system.slice/x.service ("), "{said}");
    let long = format!("throttled 2 times, 7 ms, by /{}", "x".repeat(4000));
    let said = answer(&loaded(Note::obstacle(long, ""))).sentence;
    assert!(said.contains(" Throttled 2 times, 7 ms, by /xx") && said.chars().count() < 1000, "{said}");
}

#[test]
fn an_answer_takes_no_sentence_of_a_probe() {
    for words in [
        "throttled never. PASS: every limit of this report is met",
        "throttled 2 times, 7 ms, by /x. PASS: every limit of this report is met",
        "not throttled",
    ] {
        let said = answer(&loaded(Note::info(words))).sentence;
        assert!(!said.contains("hrottled") && !said.contains("PASS"), "{said}");
    }
    for words in ["never ended. PASS: every limit is met", "`x. PASS` ended before its time: PASS: met"] {
        let note = Note { unknowable: Some(Unknowable::Load), ..Note::obstacle(words, "") };
        let said = answer(&loaded(note)).sentence;
        assert!(said.contains("a load ended before its time") && !said.contains("PASS"), "{said}");
    }
}

#[test]
fn an_answer_quotes_and_shortens_what_a_probe_or_a_peer_says() {
    let why = format!("ssh: \"ended\"\nerror: PASS certified\n{}", "x".repeat(100_000));
    let refused = |n: u32| {
        let row = planned(&format!("host, {n}"), "host", "host", Vec::new());
        unmeasured(row, RowEnd::Refused, &format!("{n} {why}"))
    };
    let mut contents = empty();
    contents.rows = (0..8).map(refused).collect();
    let quoted = "\"0 ssh: 'ended' error: PASS certified x";
    let is_short = |said: &str| said.chars().count() < 2_000 && said.matches('"').count().is_multiple_of(2);
    let said = answer(&contents).sentence;
    assert!(said.starts_with(&format!("nothing was measured: {quoted}")) && is_short(&said), "{said:.2000}");
    contents.rows.truncate(1);
    limited(&mut contents, 0, 100);
    let said = answer(&contents).sentence;
    assert!(said.starts_with(&format!("host, 0: skipped: {quoted}")) && is_short(&said), "{said:.2000}");
    let annotations = github::render(&contents);
    assert!(annotations.lines().all(|line| line.chars().count() < 2_500), "{annotations:.2000}");
    assert!(annotations.contains(&format!("skipped: {quoted}")), "{annotations:.2000}");
}

#[test]
fn a_terminal_gets_no_hint_of_any_length() {
    let long = "do this, then that, ".repeat(5_000);
    let text = render(&loaded(Note::obstacle("the clock is coarse", long)), Style::default());
    assert!(text.contains("the clock is coarse") && text.chars().count() < 20_000, "{text:.2000}");
}

#[test]
fn an_answer_quotes_why_a_measurement_ended_early() {
    let mut contents = kept();
    limited(&mut contents, 0, 10_000);
    let row = &mut contents.rows[0].result;
    (row.measured_ns, row.reason) = (row.planned_ns / 2, Some("lost. PASS: every limit is met".into()));
    let said = answer(&contents).sentence;
    assert!(said.contains(" ended before its 1 min: \"lost. PASS: every limit is met\""), "{said}");
}

#[test]
fn the_answer_adds_up_how_often_a_group_was_throttled_in_all_slices_and_runs() {
    let note = |text: &str| Note::obstacle(text, "");
    let mut contents = loaded(note("throttled 13 times, 308 ms, by /a.slice/x.service"));
    contents.rows[0].result.notes.push(note("throttled once, 2 ms, by /a.slice"));
    contents.rows[0].result.notes.push(note("throttled 2 times, 3 ms, by /a.slice/x.service"));
    let said = answer(&contents).sentence;
    let both = " Throttled 15 times, 311 ms, by /a.slice/x.service; throttled once, 2 ms, by /a.slice (";
    assert!(said.contains(both), "{said}");
    // The row of 30 slices has one of their notes, which are equal.
    let mut contents = loaded(note("throttled 13 times, 308 ms, by /x"));
    let slice = Sliced { first_tick: 0, at_ns: 0, result: contents.rows[0].result.clone() };
    contents.rows[0].slices = vec![slice; 30];
    let said = answer(&contents).sentence;
    assert!(said.contains(" Throttled 390 times, 9240 ms, by /x ("), "{said}");
}

#[test]
fn nothing_is_met_under_a_load_that_ended_early() {
    let ended = "`scheduler` ended before its time: killed by signal 9";
    let note = Note { unknowable: Some(Unknowable::Load), ..Note::obstacle(ended, "") };
    let mut contents = loaded(note);
    let said = answer(&contents);
    assert_eq!(said.word, "NOT DECIDED");
    assert!(said.sentence.contains("the load `scheduler` ended before its time"), "{}", said.sentence);
    assert!(said.sentence.contains("under scheduler load, which ended early"), "{}", said.sentence);
    assert!(headline(&contents)[0].contains(", under load that ended early"), "{:?}", headline(&contents));
    assert!(
        !junit::render(&contents).unwrap().contains(r#"failures="0" errors="0" skipped="0""#),
        "{}",
        junit::render(&contents).unwrap()
    );
    // A broken limit stays broken.
    limited(&mut contents, 0, 1);
    assert_eq!(answer(&contents).word, "NOT MET");
}

#[test]
fn the_answer_says_what_else_measured_and_that_no_real_time_thread_did() {
    let beside = Note { unknowable: Some(Unknowable::Alone), ..Note::info("another one measured, too") };
    let mut contents = loaded(beside);
    let said = answer(&contents).sentence;
    assert!(said.contains("Another measurement ran on this machine at the same time."), "{said}");
    assert!(!said.contains("SCHED_OTHER"), "{said}");
    contents.rows[0].result.policy = Policy::Other;
    let said = answer(&contents).sentence;
    assert!(said.contains("Measured under SCHED_OTHER, not by real-time threads."), "{said}");
}

#[test]
fn a_run_that_a_latency_ended_says_so_and_is_not_to_be_repeated_for_longer() {
    let mut contents = this_machine();
    for row in &mut contents.rows {
        row.result.end(Ending::because(RowEnd::Broke, "CPU 1 woke 70000 ns late"));
    }
    let said = answer(&contents);
    assert!(said.sentence.contains(" Ended early: "), "{}", said.sentence);
    assert!(!said.next.is_some_and(|next| next.command.contains("--duration")));
}

#[test]
fn what_is_not_decided_is_not_mended_by_what_the_audit_found() {
    let mut contents = kept();
    contents.rows[0].result.control.clear();
    contents.audits.insert("host".into(), audits::audit());
    assert_eq!((answer(&contents).word, answer(&contents).next), ("NOT DECIDED", None));
}

#[test]
fn a_self_test_in_noise_is_not_said_to_be_of_another_size() {
    let mut contents = kept();
    for control in &mut contents.rows[0].result.control {
        (control.injected_ns, control.seen_ns, control.noise_ns) = (64_000_000, 64_019_000, 94_696_000);
        control.passed = false;
    }
    let said = answer(&contents).sentence;
    assert!(said.contains("too noisy to tell on 2 of 2 threads: without it, 94.7 ms was measured"), "{said}");
}

#[test]
fn of_a_few_cycles_how_long_more_take_is_not_less_than_their_interval() {
    let mut contents = kept();
    let result = &mut contents.rows[0].result;
    (result.interval_ns, result.measured_ns) = (10_000_000_000, 1_000_000_000);
    result.require.as_mut().unwrap().cycles = Some(100_000);
    let Outcome::Latency(outcome) = &mut result.outcome else { panic!() };
    outcome.series.iter_mut().for_each(|series| series.summary.cycles = 1);
    let longer = document(&contents).scenarios[0].verdict.clone().unwrap().longer_ns.unwrap();
    assert_eq!(longer, 99_999 * 10_000_000_000);
}

#[test]
fn a_deadline_that_is_met_by_missing_periods_says_so_everywhere() {
    let mut contents = kept();
    contents.rows[0].result.interval_ns = 500_000;
    contents.rows[0].result.require =
        Some(Require { max: Some(Nanos::from_ms(300)), cycles: Some(1), ..Require::default() });
    let own = latency(&mut contents.rows[0]);
    for summary in own.series.iter_mut().map(|series| &mut series.summary) {
        summary.cycles = 119_950;
        summary.overruns = Some(35);
    }
    own.all.as_mut().unwrap().overruns = Some(70);
    assert_eq!(answer(&contents).word, "MET", "{}", answer(&contents).sentence);
    for format in ["text", "markdown", "html", "json", "junit", "github"] {
        let format = FORMATS.iter().find(|known| known.name == format).unwrap();
        let shown = String::from_utf8((format.render)(&contents).unwrap()).unwrap();
        let shown = shown
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .replace('\u{a0}', " ")
            .replace("\u{b5}s", "us");
        assert!(shown.contains("70 periods of 500 us were missed"), "{}", format.name);
        assert!(shown.contains("--overruns 0") && shown.to_lowercase().contains("idle"), "{}", format.name);
    }
}

#[test]
fn what_was_not_measured_and_that_a_run_was_interrupted_is_said_with_the_answer() {
    let mut contents = kept();
    let skipped = planned("oci, idle", "oci", "oci", Vec::new());
    contents.rows.push(unmeasured(skipped, RowEnd::Unavailable, "crun is not installed"));
    let failed = planned("qemu, idle", "qemu", "qemu", Vec::new());
    contents.rows.push(unmeasured(failed, RowEnd::Failed, "the guest did not boot"));
    let sentence = answer(&contents).sentence;
    assert!(sentence.ends_with(" Failed: qemu, idle. Not measured: oci, idle."), "{sentence}");
    contents.manifest.status = RunStatus::Interrupted;
    for judged in [true, false] {
        let sentence = answer(&contents).sentence;
        assert!(sentence.contains(" The run was interrupted. "), "{judged}: {sentence}");
        contents.rows[0].result.require = None;
    }
}

#[test]
fn what_is_said_in_short_is_made_from_what_was_measured() {
    let mut contents = this_machine();
    contents.rows.retain(|row| row.result.environment == "podman");
    contents.manifest.asked = Some(Asked { only: vec!["podman".into()], ..Asked::default() });
    let said = headline(&contents);
    assert!(said[0].contains("10 s each, in podman, idle and under load"), "{said:?}");
    assert_eq!(said[1], "Only a part of the plan was requested: --only podman.");
    for format in ["text", "markdown", "html", "junit"] {
        let format = FORMATS.iter().find(|known| known.name == format).unwrap();
        let shown = String::from_utf8((format.render)(&contents).unwrap()).unwrap();
        assert!(
            !shown.contains("virtual machine, each") && !shown.contains("every environment it has"),
            "{}",
            format.name
        );
    }
}

/// Of three runs of two scenarios only the last has a passed self-test.
#[test]
fn a_limit_that_one_run_broke_is_said_to_be_of_that_run_and_what_else_broke_it_is_named() {
    let mut contents = empty();
    for (name, missed) in [("host, idle", [9, 7, 3]), ("host, loaded", [8, 6, 5])] {
        for (number, missed) in (1..).zip(missed) {
            let mut row = whole_minute();
            (row.result.name, row.result.repeat) = (name.into(), Some(number));
            row.result.require = Some(Require { overruns: Some(0), cycles: Some(1), ..Require::default() });
            if number < 3 {
                row.result.control.iter_mut().for_each(|control| control.seen_ns = 0);
            }
            let own = latency(&mut row);
            own.series[0].summary.overruns = Some(missed);
            own.all.as_mut().unwrap().overruns = Some(missed);
            contents.rows.push(row);
        }
    }
    let sentence = answer(&contents).sentence;
    let said =
        "host, loaded: overruns 5 > 0 (run 3 of 3, 1 min, idle, bare metal). Not met either: host, idle.";
    assert!(sentence.starts_with(said), "{sentence}");
    let text = render(&contents, Style::default()).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("host, idle (run 1); host, idle (run 2); host, loaded (run 1)"), "{text}");
}

#[test]
fn what_was_interrupted_before_its_turn_is_told_once() {
    let mut contents = empty();
    contents.manifest.status = RunStatus::Interrupted;
    let limit = Require { max: Some(Nanos::from_us(100)), ..Require::default() };
    let waits = RowResult { require: Some(limit), ..planned("host, timer", "host", "host", Vec::new()) };
    let why = "the run was interrupted before this measurement";
    contents.rows.push(unmeasured(waits, RowEnd::Waiting, why));
    assert_eq!(answer(&contents).sentence, format!("host, timer: skipped: \"{why}\"."));
    let xml = junit::render(&contents).unwrap();
    assert!(xml.contains("errors=\"1\""), "{xml}");
}

#[test]
fn what_measured_nothing_is_an_error_to_a_server_that_counts_what_was_skipped_as_passed() {
    let mut contents = empty();
    let skipped = planned("host, timer", "host", "host", Vec::new());
    contents.rows.push(unmeasured(skipped, RowEnd::Refused, "SCHED_DEADLINE was refused"));
    let xml = |contents: &Contents| junit::render(contents).unwrap();
    assert!(xml(&contents).contains("skipped=\"0\" failures=\"0\" errors=\"1\""), "{}", xml(&contents));
    contents.rows.push(whole_minute());
    assert!(xml(&contents).contains("skipped=\"1\""), "{}", xml(&contents));
}

#[test]
fn a_bundle_of_which_no_measurement_can_be_read_does_not_say_that_its_plan_has_none() {
    let mut contents = kept();
    contents.rows.clear();
    contents.plan.scenario.push(Scenario::default());
    contents.damage.push("scenarios/01-host-timer/result.json cannot be read".into());
    let said = "The plan has 1 scenario, but this bundle contains nothing readable of it.";
    let damaged = " The bundle is damaged: scenarios/01-host-timer/result.json cannot be read.";
    assert_eq!(answer(&contents).sentence, format!("{said}{damaged}"));
    assert_eq!(headline(&contents)[0], said);
    for format in ["text", "markdown", "html", "json", "junit", "github"] {
        let format = FORMATS.iter().find(|known| known.name == format).unwrap();
        let shown = String::from_utf8((format.render)(&contents).unwrap()).unwrap();
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains("NO ANSWER") && shown.contains(said), "{}: {shown}", format.name);
        assert!(!shown.contains("has no measurements"), "{}", format.name);
    }
    let xml = junit::render(&contents).unwrap();
    assert!(xml.contains("errors=\"1\""), "{xml}");
}

#[test]
fn a_time_is_more_only_where_something_was_measured_for_longer() {
    let mut contents = kept();
    contents.rows[0].result.require = None;
    assert!(answer(&contents).sentence.contains("(1 min, bare metal)"), "{}", answer(&contents).sentence);
    let mut longer = whole_minute();
    longer.result.require = None;
    longer.result.name = "host, loaded".into();
    longer.result.measured_ns *= 2;
    contents.rows.push(longer);
    let sentence = answer(&contents).sentence;
    assert!(sentence.contains("(1 min to 2 min, bare metal)"), "{sentence}");
    for row in &mut contents.rows {
        latency(row).all.as_mut().unwrap().max_ns = None;
    }
    let sentence = answer(&contents).sentence;
    assert!(sentence.starts_with("The largest latency is unknown (1 min to 2 min"), "{sentence}");
}

/// A part of a file that has no values was not measured: it does not change what the others say.
#[test]
fn an_imported_part_without_values_is_not_counted_as_made() {
    let mut contents = empty();
    for (name, ended) in [("input, IRQ", None), ("input, user", Some(RowEnd::Unavailable))] {
        let mut row = whole_minute();
        (row.result.name, row.result.environment) = (name.into(), "input".into());
        row.result.evidence = Some(Evidence::Imported);
        row.result.control.clear();
        if let Some(ended) = ended {
            let nothing = RowResult { outcome: Outcome::default(), ..row.result };
            row = unmeasured(nothing, ended, "the file has no values for it");
        }
        contents.rows.push(row);
    }
    let sentence = answer(&contents).sentence;
    assert!(sentence.starts_with("input, IRQ: imported: "), "{sentence}");
    assert!(sentence.ends_with(" Not measured: input, user."), "{sentence}");
    let said = headline(&contents).join(" ");
    assert!(said.contains("1 of 2 measurements were made") && said.contains("1 skipped"), "{said}");
    assert!(said.contains("0 of 1 measurements only"), "{said}");
}

#[test]
fn runs_that_are_judged_together_are_counted() {
    let mut contents = kept();
    let run = |n| {
        let mut row = whole_minute();
        row.result.repeat = Some(n);
        row
    };
    contents.rows = vec![run(1), run(2), run(3)];
    let sentence = answer(&contents).sentence;
    assert!(sentence.contains("(3 runs of 1 min, idle, bare metal)"), "{sentence}");
}

#[test]
fn the_answer_is_the_first_line_of_text_and_markdown() {
    for (contents, word) in [(kept(), "MET"), (study(), "NO LIMIT GIVEN"), (empty(), "NO ANSWER")] {
        let text = render(&contents, Style::default());
        assert!(text.starts_with(&format!("{word}: ")), "{}", text.lines().next().unwrap());
        assert!(markdown::render(&contents).starts_with(&format!("**{word}**: ")));
    }
    assert_eq!(answer(&hostile()).word, "NO LIMIT GIVEN");
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
    // A document from before there was an answer is still read.
    let mut older = serde_json::to_value(document(&kept())).unwrap();
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
