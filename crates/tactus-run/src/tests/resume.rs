//! Runs that resume a bundle.
#![expect(clippy::disallowed_methods, reason = "these tests look at the machine from outside the door")]

use std::fs;
use std::path::PathBuf;

use tactus_bundle::Resumed;
use tactus_model::bundle::{Asked, Present};

use super::*;
use crate::keep_complete;
use crate::resume::resumed_writer;

/// Scripts of a run by the names of their environments.
type Scripts<'a> = &'a [(&'a str, &'static Scripted)];

struct Bench {
    place: tempfile::TempDir,
    plan: Plan,
}

impl Bench {
    fn new(plan: Plan) -> Self {
        Self { place: tempfile::tempdir().unwrap(), plan }
    }

    fn bundle(&self) -> PathBuf {
        self.place.path().join("bundle")
    }

    fn choices(state: Option<&str>) -> Choices {
        let state = state.map(|name| Present { name: name.into(), ..Present::default() });
        Choices { state, ..Choices::default() }
    }

    fn first(&self, state: Option<&str>, scripts: Scripts<'_>, stop: bool) -> Contents {
        let choices = Self::choices(state);
        let resolved = resolved_as(&self.plan, &choices, scripts);
        let results: Vec<_> = resolved.rows.iter().map(|row| row.result.clone()).collect();
        let machine = Machine { name: "here".into(), id: Some("1".into()), ..Machine::default() };
        let mut writer = Writer::create(self.bundle(), &resolved.plan, &results, machine.clone()).unwrap();
        writer.keep_source(&self.plan, Asked::default()).unwrap();
        writer.begin_session(machine, None, choices.state).unwrap();
        perform_into(writer, &resolved, self.place.path(), stop).1
    }

    /// The writer and the plan of a resumed run.
    fn again(&self, state: Option<&str>, scripts: Scripts<'_>) -> (Writer, Resolved, usize) {
        let choices = Self::choices(state);
        let resumed = Resumed::open(&self.bundle()).unwrap();
        resumed.same_plan(&self.plan).unwrap();
        let mut resolved = resolved_as(&self.plan, &choices, scripts);
        let kept = keep_complete(&resumed, &mut resolved).unwrap();
        let mut writer = resumed_writer(&resumed, &resolved).unwrap();
        writer.begin_session(Machine::default(), None, choices.state).unwrap();
        (writer, resolved, kept)
    }

    fn go_on(&self, state: Option<&str>, scripts: Scripts<'_>) -> (Contents, Vec<Event>, usize) {
        let (writer, resolved, kept) = self.again(state, scripts);
        let (_, contents, events) = perform_into(writer, &resolved, self.place.path(), false);
        (contents, events, kept)
    }

    /// Every file of a row.
    fn files(&self, row: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let entries = fs::read_dir(self.bundle().join("scenarios").join(row)).unwrap();
        entries
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect()
    }
}

/// A plan with one state; `a` is for it, `b` for a machine in none.
fn states() -> Plan {
    let mut plan = written(&[("a", &GOOD), ("b", &GOOD)]);
    let state = plan::HostState { profile: "realtime".into(), kernel: None };
    plan.host_state.insert("tuned".into(), state);
    for (at, host) in ["tuned", "other"].into_iter().enumerate() {
        plan.scenario[at].host = Some(host.into());
        plan.scenario[at].environment = Some("a".into());
    }
    plan
}

#[test]
fn an_interrupted_run_is_gone_on_with_and_what_is_complete_stays_as_it_is() {
    let bench = Bench::new(written(&[("a", &GOOD), ("b", &GOOD), ("c", &GOOD)]));
    let first = bench.first(None, &[("a", &GOOD), ("b", &DIES), ("c", &GOOD)], false);
    assert_eq!(first.rows[1].result.status, RowStatus::Failed);
    let before = bench.files("01-a");
    let (contents, events, kept) = bench.go_on(None, &[("a", &MUTE), ("b", &GOOD), ("c", &MUTE)]);
    assert_eq!(kept, 2);
    assert_eq!(bench.files("01-a"), before);
    let result = &contents.rows[1].result;
    assert_eq!((result.status, result.reason.as_deref()), (RowStatus::Measured, None));
    assert_eq!(result.all().unwrap().cycles, 9);
    assert_eq!(contents.rows[1].ticks.iter().count(), 3, "nothing of the first time is among them");
    assert_eq!(contents.rows[1].histogram().len(), 9);
    assert!(events.iter().all(|event| !matches!(event, Event::RowStarted { row: 0 | 2, .. })));
    assert_eq!(contents.manifest.status, RunStatus::Complete);
    assert_eq!(contents.manifest.sessions.len(), 2);
    assert!(contents.manifest.sessions.iter().all(|session| session.finished.is_some()));
}

#[test]
fn what_an_interrupt_cut_short_is_measured_again() {
    let bench = Bench::new(written(&[("a", &GOOD), ("b", &GOOD)]));
    let first = bench.first(None, &[("a", &ENDLESS), ("b", &GOOD)], true);
    assert_eq!(first.manifest.status, RunStatus::Interrupted);
    let (contents, _, kept) = bench.go_on(None, &[("a", &GOOD), ("b", &GOOD)]);
    assert_eq!((kept, contents.manifest.status), (0, RunStatus::Complete));
    assert!(contents.rows.iter().all(|row| row.result.is_complete()));
}

#[test]
fn each_run_of_a_repeated_scenario_is_a_row_that_is_kept_by_itself() {
    let mut plan = written(&[("a", &GOOD), ("b", &GOOD)]);
    plan.defaults.repeat = Some(2);
    let bench = Bench::new(plan);
    let first = bench.first(None, &[("a", &GOOD), ("b", &DIES)], false);
    let runs: Vec<_> = first
        .rows
        .iter()
        .map(|row| (row.result.name.as_str(), row.result.repeat, row.result.status))
        .collect();
    assert_eq!(runs.len(), 4);
    for run in [1, 2] {
        assert!(runs.contains(&("a", Some(run), RowStatus::Measured)), "{runs:?}");
        assert!(runs.contains(&("b", Some(run), RowStatus::Failed)), "{runs:?}");
    }
    let (contents, events, kept) = bench.go_on(None, &[("a", &MUTE), ("b", &GOOD)]);
    assert_eq!(kept, 2);
    assert_eq!(events.iter().filter(|event| matches!(event, Event::RowStarted { .. })).count(), 2);
    let key = |row: &tactus_model::bundle::Row| (row.result.name.clone(), row.result.repeat);
    assert!(contents.rows.iter().all(|row| row.result.is_complete()));
    assert_eq!(
        contents.rows.iter().map(key).collect::<Vec<_>>(),
        first.rows.iter().map(key).collect::<Vec<_>>()
    );
    assert_eq!(contents.plan.scenario.len(), 2);
}

#[test]
fn slices_that_are_whole_stay_and_the_others_are_measured_again_until_all_are_one_row() {
    let mut plan = written(&[("a", &GOOD), ("b", &GOOD)]);
    plan.scenario.iter_mut().for_each(|own| own.duration = Some(tactus_model::Nanos::from_secs(9)));
    plan.defaults.interleave = Some(tactus_model::Nanos::from_secs(3));
    let bench = Bench::new(plan);
    let first = bench.first(None, &[("a", &GOOD), ("b", &DIES)], false);
    assert_eq!(first.rows.len(), 2, "three slices each are a row");
    let of = |contents: &Contents, name: &str| {
        contents.rows.iter().find(|row| row.result.name == name).unwrap().clone()
    };
    let (a, b) = (of(&first, "a"), of(&first, "b"));
    assert!(a.result.is_complete() && !b.result.is_complete(), "{:?}", b.result.ended);
    assert_eq!(a.result.all().unwrap().cycles, 27);
    assert_eq!((a.result.planned_ns, a.result.measured_ns), (9_000_000_000, 9_000_000_000));
    assert_eq!((a.slices.len(), a.histogram().len(), a.ticks.iter().count()), (3, 27, 9));
    // From one slice to the next there is time in which nothing was measured.
    let places: Vec<u64> = a.histograms.intervals.keys().copied().collect();
    assert!(places.windows(2).filter(|pair| pair[1] - pair[0] > 1).count() == 2, "{places:?}");
    let (contents, events, kept) = bench.go_on(None, &[("a", &MUTE), ("b", &GOOD)]);
    assert_eq!(kept, 3);
    assert_eq!(events.iter().filter(|event| matches!(event, Event::RowStarted { .. })).count(), 3);
    assert!(contents.rows.iter().all(|row| row.result.is_complete()));
    assert_eq!(of(&contents, "a").histograms, a.histograms);
    assert_eq!(of(&contents, "b").result.all().unwrap().cycles, 27);
    assert_eq!((contents.plan.scenario.len(), contents.manifest.status), (2, RunStatus::Complete));
}

#[test]
fn a_state_fills_its_own_rows_and_has_separate_facts() {
    let bench = Bench::new(states());
    let scripts: Scripts<'_> = &[("a", &GOOD)];
    let first = bench.first(Some("other"), scripts, false);
    assert_eq!(first.rows[0].result.status, RowStatus::Skipped);
    assert!(first.rows[0].result.reason.as_deref().unwrap().contains("needs the host state tuned"));
    assert_eq!(first.rows[1].result.host.as_deref(), Some("other"));
    assert_eq!(first.facts.keys().collect::<Vec<_>>(), ["a@other"]);
    let before = bench.files("02-b");
    let (contents, _, kept) = bench.go_on(Some("tuned"), scripts);
    assert_eq!(kept, 1);
    assert_eq!(bench.files("02-b"), before);
    assert!(contents.rows.iter().all(|row| row.result.is_complete()));
    assert_eq!(contents.facts.keys().collect::<Vec<_>>(), ["a@other", "a@tuned"]);
    let names: Vec<_> = contents
        .manifest
        .sessions
        .iter()
        .map(|session| session.state.as_ref().unwrap().name.as_str())
        .collect();
    assert_eq!(names, ["other", "tuned"]);
}

#[test]
fn a_resumed_run_that_dies_keeps_the_complete_rows_and_their_checksums() {
    let bench = Bench::new(states());
    bench.first(Some("other"), &[("a", &GOOD)], false);
    drop(bench.again(Some("tuned"), &[("a", &GOOD)]));
    let contents = tactus_bundle::read(&bench.bundle(), Trust::Whole).unwrap();
    assert_eq!(contents.manifest.status, RunStatus::Interrupted);
    assert!(contents.rows[1].result.is_complete());
    let (contents, _, kept) = bench.go_on(Some("tuned"), &[("a", &GOOD)]);
    assert_eq!(kept, 1);
    assert!(contents.rows.iter().all(|row| row.result.is_complete()));
    drop(bench.again(Some("tuned"), &[("a", &GOOD)]));
    fs::write(bench.bundle().join("scenarios/02-b/result.json"), "{}").unwrap();
    let error = Resumed::open(&bench.bundle()).unwrap_err();
    assert!(matches!(error, BundleError::Altered { .. }), "{error}");
}

#[test]
fn another_plan_and_another_machine_are_refused_by_what_differs() {
    let bench = Bench::new(states());
    bench.first(Some("other"), &[("a", &GOOD)], false);
    let resumed = Resumed::open(&bench.bundle()).unwrap();
    let refusal = |plan: &Plan| resumed.same_plan(plan).unwrap_err().to_string();
    assert!(refusal(&Plan { name: "else".into(), ..bench.plan.clone() }).contains("not of else"));
    let mut longer = bench.plan.clone();
    longer.defaults.duration = Some(tactus_model::Nanos::from_secs(9));
    assert!(refusal(&longer).contains("`defaults` differs"), "{}", refusal(&longer));
    let elsewhere = Machine { name: "there".into(), ..Machine::default() };
    assert!(resumed.same_machine(&elsewhere).unwrap_err().to_string().contains("\"there\""));
    let rebooted = Machine { name: "here".into(), kernel: "another".into(), ..Machine::default() };
    resumed.same_machine(&rebooted).unwrap();
    let known = |id: Option<&str>, hardware: Option<&str>| {
        let text = |value: Option<&str>| value.map(str::to_owned);
        Machine { name: "here".into(), id: text(id), hardware: text(hardware), ..Machine::default() }
    };
    resumed.same_machine(&known(Some("1"), Some("2"))).unwrap();
    let twin = resumed.same_machine(&known(Some("9"), None)).unwrap_err().to_string();
    assert!(twin.contains("begun on another machine that is also called \"here\""), "{twin}");
    let choices = Bench::choices(Some("other"));
    let mut shorter = bench.plan.clone();
    shorter.scenario.pop();
    let mut resolved = resolved_as(&shorter, &choices, &[("a", &GOOD)]);
    assert!(keep_complete(&resumed, &mut resolved).is_err());
}

#[test]
fn a_bundle_without_its_plan_as_written_cannot_be_gone_on_with() {
    let bench = Bench::new(states());
    perform_resolved(&resolved(&[("a", &GOOD)]), bench.place.path(), false);
    let error = Resumed::open(&bench.bundle()).unwrap_err();
    assert!(error.to_string().contains("did not keep the plan"), "{error}");
    assert!(error.hint().is_some());
}

#[test]
fn a_complete_row_of_values_is_not_measured_again_and_one_that_broke_is() {
    let bench = Bench::new(values(&[("a", &VALUES), ("b", &VALUES)]));
    bench.first(None, &[("a", &VALUES), ("b", &VALUES_DIE)], false);
    let before = bench.files("01-a");
    let (contents, events, kept) = bench.go_on(None, &[("a", &MUTE), ("b", &VALUES)]);
    assert_eq!(kept, 1);
    assert_eq!(bench.files("01-a"), before);
    assert!(events.iter().all(|event| !matches!(event, Event::RowStarted { row: 0, .. })));
    assert!(contents.rows.iter().all(|row| row.result.is_complete()));
    assert_eq!(contents.rows[1].result.values(), [value("system call", 21), value("signal install", 21)]);
}
