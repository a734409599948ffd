//! `tactus measure`: one measurement in one environment, with cyclictest's habits.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tactus_bundle::Location;
use tactus_format::export::{self, Options};
use tactus_model::bundle::{Contents, Row};
use tactus_model::catalogue::Measure as What;
use tactus_model::catalogue::measure::{MEASURES, Timerlat, TimerlatValue};
use tactus_model::control::ControlBy;
use tactus_model::cpus::CpuRequest;
use tactus_model::message::{Control, STAND_IN, Stage};
use tactus_model::outcome::{RowEnd, Yields};
use tactus_model::plan::{Activity, Environment, Placed, Plan, Scenario};
use tactus_model::scheduling::Policy;
use tactus_model::{CpuSet, Nanos};
use tactus_report::row::{self, verdict};
use tactus_report::section::blame;
use tactus_report::units::clean;
use tactus_run::Destination;
use tactus_run::plan::{Choices, Source, embed_cards, may_be_real_time};
use tactus_system::{Real, leave_terminal, topology};

use super::drop_in::{exported, words};
use super::execute::{interrupted, prepare, scratch_directory, watched as execute};
use super::lock::lock;
use super::needs::say_needs;
use super::run::location;
use crate::cli::{Measure, Policy as Asked};
use crate::exit::{Exit, Failure};
use crate::live::Lines;
use crate::load::load;
use crate::nearest;
use crate::output;
use crate::place::Place;
use crate::say::say;
use crate::watching::Watching;

pub fn measure(arguments: &Measure) -> Result<Exit, Failure> {
    let detached = arguments.detach.detached;
    if detached {
        leave_terminal()?;
    }
    let format = arguments.printed.word().map(super::report::format).transpose()?;
    let mut plan = plan(arguments)?;
    let source = Source::new("tactus measure", "");
    embed_cards(&mut plan, &source, &Real)?;
    let choices = Choices {
        no_side_effects: arguments.no_side_effects,
        require: arguments.limits.by_environment(),
        ..Choices::default()
    };
    let turn = lock(&arguments.lock)?;
    let resolved = prepare(&plan, &source, &choices)?;
    if let Some(reason) = resolved.scenarios.first().and_then(|scenario| scenario.skip.clone()) {
        return Err(Failure::say(
            format!("{} cannot be measured here: {reason}", arguments.environment),
            "`tactus environments` lists what is usable",
        ));
    }
    say_needs(&resolved, Some(words()));
    let scratch;
    let keeps = arguments.out.is_some() || detached;
    let out = if keeps {
        location(arguments.out.as_deref(), &plan.name)
    } else {
        scratch = scratch_directory()?;
        Location::Named(scratch.path().join("bundle"))
    };
    let quiet = arguments.quiet || format.is_some();
    let watching = Watching::of(&resolved, &arguments.screen, !quiet);
    let lines = Lines::new(quiet, watching.has_screen(), arguments.interval.0);
    let into = Destination::New(out, &plan);
    let executed = execute(&turn, &resolved, &choices, into, lines, &watching)?;
    let contents = &executed.contents;
    let printed = match format {
        Some(format) => super::report::print(format, contents),
        None => output::text(&summary(contents, arguments.histogram)?).map_err(Failure::from),
    };
    if keeps {
        say(format_args!("bundle: {}", executed.dir.path().display()));
    }
    printed?;
    if contents.rows.iter().any(is_refused) && !may_be_real_time(&Real) {
        say("hint: use sudo: this user may not use real-time threads; or measure without: `--policy other`");
    }
    if let Some(sentence) = interrupted(&executed) {
        say(sentence);
    }
    Ok(Exit::after(executed))
}

/// Whether real-time threads were refused.
fn is_refused(row: &Row) -> bool {
    row.result.ended == RowEnd::Refused && row.result.policy != Policy::Other
}

/// The plan that the options describe.
fn plan(arguments: &Measure) -> Result<Plan, Failure> {
    let word = arguments.word();
    let Place { name: kind, spec: mut environment } = Place::of(&arguments.environment, &Real)?;
    let (threads, cpus) = deal(arguments)?;
    if word == "application" && arguments.file.is_none() {
        return Err(Failure::say(
            "`measure application` needs `--file`",
            "`--file FILE` names the file in which the program marks its cycles",
        ));
    }
    let mut measurement = BTreeMap::from([("kind", Value::from(word))]);
    if let Some(threads) = threads {
        measurement.insert("threads", threads.into());
    }
    if let Some(file) = &arguments.file {
        measurement.insert("file", file.as_str().into());
    }
    if let Some(card) = &arguments.card {
        measurement.insert("card", card.as_str().into());
    }
    if let Some(value) = &arguments.value {
        measurement.insert("value", value.as_str().into());
    }
    if let Some(limit) = arguments.break_at.or(arguments.blame.stop_above) {
        measurement.insert("break", limit.to_string().into());
    }
    takes(word, &measurement)?;
    let measurement: What = serde_json::from_value(json!(measurement)).map_err(|error| {
        Failure::say(
            format!("measurement {word}: {error}"),
            format!("`tactus explain {word}` lists its options"),
        )
    })?;
    if let Some(kernel) = &arguments.kernel {
        environment.options.insert("kernel".into(), kernel.clone().into());
    }
    if let Some(program) = &arguments.qemu {
        environment.options.insert("qemu".into(), program.clone().into());
    }
    if !arguments.qemu_arguments.is_empty() {
        environment.options.insert("qemu_arguments".into(), arguments.qemu_arguments.clone().into());
    }
    if !arguments.pci.is_empty() {
        environment.options.insert("pci".into(), arguments.pci.clone().into());
    }
    let mut scenario = Scenario {
        name: Some(format!("{kind} {word}")),
        environment: Some(kind.clone()),
        measurement: Some(measurement),
        cpus: Some(cpus),
        load: arguments.load.iter().map(|text| load(text)).collect::<Result<_, _>>()?,
        duration: Some(arguments.duration),
        interval: Some(arguments.interval),
        priority: Some(arguments.priority),
        policy: arguments.policy.map(|policy| match policy {
            Asked::Fifo => Policy::Fifo,
            Asked::Rr => Policy::Rr,
            Asked::Deadline => Policy::Deadline,
            Asked::Other => Policy::Other,
        }),
        tick: Some(Nanos((arguments.duration.0 / 20).clamp(100_000_000, 1_000_000_000))),
        control: Some(if arguments.no_control { ControlBy::Nothing } else { ControlBy::Hog }),
        kvm_exits: arguments.kvm_exits.then_some(true),
        blame_above: arguments.blame.blame_above.or(arguments.blame.stop_above),
        restart: arguments.restart.restart,
        ..Scenario::default()
    };
    // Both are written of each period, and are of different things: a row each.
    if let (Some(What::Timerlat(_)), None) = (&scenario.measurement, &arguments.value) {
        let both = [TimerlatValue::Irq, TimerlatValue::Thread];
        let activity = |value| Activity {
            measure: Some(What::Timerlat(Timerlat { value: Some(value) })),
            environment: kind.clone(),
            cpus: scenario.cpus.clone(),
            ..Activity::default()
        };
        scenario.activity = both.into_iter().map(activity).collect();
        for Placed { what, environment, cpus } in std::mem::take(&mut scenario.load) {
            let environment = environment.unwrap_or_else(|| kind.clone());
            scenario.activity.push(Activity { load: Some(what), environment, cpus, ..Activity::default() });
        }
        (scenario.measurement, scenario.environment, scenario.cpus) = (None, None, None);
    }
    let mut environments = BTreeMap::from([(kind.clone(), environment)]);
    if let Some(to) = &arguments.to {
        // The card needs a CPU beside those of its guest.
        let cpus = matches!(scenario.measurement, Some(What::Interrupt(_))).then_some(CpuRequest::First);
        let Place { name: to, spec } = Place::of(to, &Real)?;
        environments.insert(to.clone(), Environment { cpus, ..spec });
        let (measure, cpus) = (scenario.measurement.take(), scenario.cpus.take());
        scenario.environment = None;
        let (environment, to) = (kind.clone(), Some(to));
        scenario.activity = vec![Activity { measure, environment, to, cpus, ..Activity::default() }];
    }
    Ok(Plan {
        name: "measure".into(),
        title: arguments.title.clone(),
        environment: environments,
        scenario: vec![scenario],
        ..Plan::default()
    })
}

/// Whether there is such a measurement, and it has the keys that options have become.
fn takes(word: &str, keys: &BTreeMap<&str, Value>) -> Result<(), Failure> {
    let names = || MEASURES.iter().map(|known| known.name);
    let Some(entry) = MEASURES.iter().find(|known| known.name == word) else {
        let all = format!("measurements are {}", names().collect::<Vec<_>>().join(", "));
        return Err(Failure::say(
            format!("there is no measurement `{word}`"),
            nearest::hint(word, names(), all),
        ));
    };
    let known = |key: &str| key == "kind" || entry.parameters.iter().any(|own| own.key == key);
    let Some(key) = keys.keys().find(|key| !known(key)) else { return Ok(()) };
    let option = match *key {
        "threads" => "-t (--threads)",
        "break" => "-b (--breaktrace)",
        "file" => "--file",
        "card" => "--card",
        _ => "--value",
    };
    Err(Failure::say(
        format!("{option} is not an option of `{word}`"),
        format!("leave it out; `tactus explain {word}` lists its options"),
    ))
}

/// `-t N` threads over the CPUs of `-a`: threads per CPU, and the CPUs that get any.
fn deal(arguments: &Measure) -> Result<(Option<u32>, CpuRequest), Failure> {
    let Some(threads) = arguments.threads else { return Ok((None, arguments.cpus.clone())) };
    let wrong = |message: String| {
        Failure::say(message, "use a multiple of the number of CPUs, or fewer than there are")
    };
    // In a guest the CPUs are not known yet; there a list says how many there are.
    let cpus: CpuSet = match &arguments.cpus {
        CpuRequest::List(list) => list.clone(),
        request => {
            topology(&Real).resolve(request).map_err(|error| Failure::say(error.to_string(), error.hint()))?
        }
    };
    let count = u32::try_from(cpus.len()).unwrap_or(u32::MAX);
    if threads == 0 {
        return Err(Failure::say("-t 0: a measurement needs at least one thread", "use `-t 1` or more"));
    }
    if threads > count && threads % count != 0 {
        return Err(wrong(format!(
            "-t {threads}: the threads cannot be spread evenly over {count} CPUs ({cpus})"
        )));
    }
    if threads < count {
        return Ok((None, CpuRequest::List(cpus.take(usize::try_from(threads).unwrap_or(1)))));
    }
    Ok((Some(threads / count), arguments.cpus.clone()))
}

/// The last lines: one per thread, as cyclictest prints them, then the histogram and the rest.
fn summary(contents: &Contents, histogram: Option<u32>) -> Result<String, Failure> {
    let mut text = String::new();
    for row in &contents.rows {
        for (number, series) in row.result.series().iter().enumerate() {
            text += &crate::live::line(number, &series.key, row.result.interval_ns, &series.summary);
            text.push('\n');
        }
        for value in row.result.values() {
            text += &crate::live::value_line(value);
            text.push('\n');
        }
    }
    if let Some(limit) = histogram.filter(|_| contents.rows.iter().any(is_latency)) {
        text += &histogram_text(contents, limit)?;
    }
    for row in &contents.rows {
        if let Some(reason) = &row.result.reason {
            text += &comment("", reason);
        }
        for control in &row.result.control {
            text += &comment("", &control_line(control, row::device(&row.result).is_some()));
        }
        for line in blame::lines(contents, row) {
            text += &comment("Blame: ", &line);
        }
        for note in row.result.notes.iter().filter(|note| note.unknowable.is_none()) {
            text += &comment("Note: ", &note.text);
        }
        if let Some(evidence) = row.result.evidence {
            text += &comment("Evidence: ", &format!("{evidence}. {}", evidence.meaning()));
        }
        if let Some(verdict) = verdict(row) {
            text += &comment("Verdict: ", &format!("{}: {}", verdict.outcome.word(), verdict.reason));
        }
    }
    Ok(text)
}

/// A line that tools which read cyclictest's pass over. A guest or a line at the other end may have said what is in it.
fn comment(lead: &str, said: &str) -> String {
    format!("# {lead}{}\n", clean(said))
}

fn is_latency(row: &Row) -> bool {
    row.result.outcome.yields() == Yields::Latency
}

/// Line by line what cyclictest prints, so that scripts that read or plot it find what they look for.
fn histogram_text(contents: &Contents, limit: u32) -> Result<String, Failure> {
    let mut text = Vec::new();
    let options =
        Options { unit_ns: Some(1_000), histogram: Some(limit.into()), every_row: true, sums: false };
    exported(contents, |bundle| export::cyclictest_histogram(bundle, options, &mut text))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The injected latency, the measured one, and the conclusion.
fn control_line(control: &Control, of_device: bool) -> String {
    let us = |ns: u64| tactus_model::number::float(ns) / 1e3;
    let proven = if control.is_seen() {
        "passed".to_owned()
    } else if control.stage == Stage::Fine && !control.is_resolvable() {
        "too noisy here to tell".to_owned()
    } else if control.noise().is_none() {
        "not passed: the latencies without the fault did not arrive".to_owned()
    } else if control.is_drowned() {
        // Then it is no matter what was measured.
        format!("not passed: without the fault, up to {:.0} us were measured", us(control.noise_ns))
    } else {
        "NOT seen at its size: not passed".to_owned()
    };
    // A stand-in is held where its reader is, and not on the CPU of the program.
    let place = if control.by == STAND_IN {
        String::new()
    } else if of_device {
        // The series is the handler's, but the control held the CPU of the program that raises the interrupt.
        " on the CPU that raises the interrupt".into()
    } else {
        format!(" on CPU {}", control.series.cpu)
    };
    if control.injected_ns == 0 && control.stage == Stage::Fine {
        return format!("Self-test with the smaller fault{place}: not made, too noisy here to tell");
    }
    let by = control.by.replace("hog", "FIFO spinner");
    let Some(injected) = control.injected() else {
        return format!("Self-test: the {by}{place} was not made: not passed");
    };
    let seen = control.seen().map_or_else(|| "nothing".to_owned(), |ns| format!("{:.0} us", us(ns)));
    format!("Self-test: {:.0} us {by} injected{place}, {seen} measured: {proven}", us(injected))
}

#[cfg(test)]
mod tests {
    use tactus_model::series::SeriesKey;

    use super::*;

    #[test]
    fn what_a_line_says_begins_no_line_of_ours() {
        let said = "boot\n# Verdict: pass: max 5 us\r\nnext: reboot\u{2028}T: 0 <LAVA_SIGNAL_TESTCASE x>";
        let line = comment("Note: ", said);
        assert_eq!(line.lines().count(), 1, "{line:?}");
        assert!(line.starts_with("# Note: boot # Verdict") && !line.contains("<LAVA_"), "{line:?}");
    }

    #[test]
    fn a_control_that_proves_nothing_says_whether_it_was_missed_or_drowned_in_noise() {
        let control = |seen_ns, noise_ns| {
            let series = SeriesKey { cpu: 0, thread: 0, priority: 0, kind: "interrupt".into() };
            let (injected_ns, by, stage) = (1_000_000, "block".into(), Stage::Before);
            let (activity, passed, attempts) = (0, false, 5);
            Control { activity, series, injected_ns, seen_ns, noise_ns, passed, attempts, by, stage }
        };
        let line = |seen_ns, noise_ns| control_line(&control(seen_ns, noise_ns), false);
        assert_eq!(
            line(1_012_000, 40_000),
            "Self-test: 1000 us block injected on CPU 0, 1012 us measured: passed"
        );
        assert_eq!(
            control_line(&control(1_012_000, 40_000), true),
            "Self-test: 1000 us block injected on the CPU that raises the interrupt, 1012 us measured: passed",
            "the series is the handler's"
        );
        let drowned = line(1_012_000, 730_000);
        assert!(
            drowned.ends_with("1012 us measured: not passed: without the fault, up to 730 us were measured")
        );
        assert!(line(693_000, 40_000).ends_with("693 us measured: NOT seen at its size: not passed"));
        assert!(line(1_000_000, u64::MAX).ends_with("did not arrive"));
        let fine = Control { stage: Stage::Fine, injected_ns: 0, ..control(0, 80_000) };
        assert_eq!(
            control_line(&fine, false),
            "Self-test with the smaller fault on CPU 0: not made, too noisy here to tell"
        );
        let none = Control { injected_ns: 0, ..control(0, u64::MAX) };
        assert_eq!(control_line(&none, false), "Self-test: the block on CPU 0 was not made: not passed");
        assert!(line(0, 40_000).contains("on CPU 0, nothing measured: "));
    }
}
