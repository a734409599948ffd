//! A fleet of hostile names by an engine that is not there.
#![expect(clippy::disallowed_methods, reason = "jobs that are not there write beside the door")]

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::time::Duration;

use tactus_system::Memory;

use super::*;
use crate::engine::{File, Machine, OptionEntry, Site};
use crate::home::is_plan;
use crate::order::{FORMAT, Order};
use crate::status::Status;

const NAMES: [&str; 5] = ["n1", "../../x", "$(id)", "a\nb", "-w"];
const PLAN: &[u8] = b"name = \"lab\"\n";

/// An engine whose jobs end as soon as they are looked at; `leaves` makes the files that they leave.
struct Fake {
    leaves: RefCell<fn(&Site<'_>, &Row)>,
    ends: RefCell<JobState>,
    away: Vec<&'static str>,
    refuses: Vec<&'static str>,
    limit: Option<Duration>,
}

impl Engine for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }
    fn about(&self) -> &'static str {
        ""
    }
    fn options(&self) -> &'static [OptionEntry] {
        &[]
    }
    fn pause(&self) -> Duration {
        Duration::ZERO
    }
    fn shares_files(&self) -> bool {
        true
    }
    fn limit(&self, _order: &Order) -> Option<Duration> {
        self.limit
    }
    fn check(&self, _site: &Site<'_>) -> Result<(), FleetError> {
        Ok(())
    }
    fn machines(&self, site: &Site<'_>) -> Result<Vec<Machine>, FleetError> {
        let ready =
            |name: &str| if self.away.contains(&name) { Ready::Away("drained".into()) } else { Ready::Idle };
        Ok(site
            .order
            .machines
            .iter()
            .map(|name| Machine { name: name.clone(), ready: ready(name) })
            .collect())
    }
    fn render(&self, _site: &Site<'_>, rows: &[&Row]) -> Vec<File> {
        rows.iter().map(|row| File { name: format!("{}.sh", row.key), text: String::new() }).collect()
    }
    fn submit(&self, site: &Site<'_>, rows: &[&Row]) -> Result<Vec<Submitted>, FleetError> {
        let outcome = |row: &&Row| {
            if self.refuses.contains(&row.machine.as_str()) {
                return Submitted::Refused("no".into());
            }
            (self.leaves.borrow())(site, row);
            Submitted::As(format!("job of {}", row.key))
        };
        Ok(rows.iter().map(outcome).collect())
    }
    fn jobs(&self, _site: &Site<'_>, rows: &[&Row]) -> Result<BTreeMap<String, JobState>, FleetError> {
        Ok(rows.iter().map(|row| (row.key.clone(), self.ends.borrow().clone())).collect())
    }
    fn fetch(&self, _site: &Site<'_>, _rows: &[&Row]) -> Result<BTreeMap<String, String>, FleetError> {
        Ok(BTreeMap::new())
    }
}

fn manifest(machine: &str, finished: bool) -> String {
    let machine: String = machine.chars().filter(|letter| !letter.is_control()).collect();
    let (sum, plan) = (crate::name::sha256(b"events\n"), crate::name::sha256(PLAN));
    serde_json::json!({
        "format": {"major": 2, "minor": 0}, "tactus": "0.1.0", "plan": "lab", "started": "2026-03-02T10:00:00Z",
        "finished": finished.then_some("now"), "status": if finished { "complete" } else { "interrupted" },
        "machine": {"name": machine, "processor": "", "cpus": "", "kernel": "", "system": "", "id": "same"},
        "files": {"events.jsonl": sum, "source.toml": plan},
    })
    .to_string()
}

fn bundle(site: &Site<'_>, row: &Row, manifest: &str) {
    let dir = site.path(&format!("incoming/{}", row.key));
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("events.jsonl"), "events\n").unwrap();
    fs::write(dir.join("source.toml"), PLAN).unwrap();
    fs::write(dir.join("manifest.json"), manifest).unwrap();
}

fn whole(site: &Site<'_>, row: &Row) {
    bundle(site, row, &manifest(&row.machine, true));
}

fn half(site: &Site<'_>, row: &Row) {
    bundle(site, row, &manifest(&row.machine, false));
}

fn ended_softly(site: &Site<'_>, row: &Row) {
    bundle(site, row, &manifest(&row.machine, true).replace("complete", "interrupted"));
}

fn of_two_versions(site: &Site<'_>, row: &Row) {
    let version = if row.machine == "n1" { "0.0.9" } else { "0.1.0" };
    bundle(site, row, &manifest(&row.machine, true).replace("\"0.1.0\"", &format!("\"{version}\"")));
}

fn of_another_plan(site: &Site<'_>, row: &Row) {
    let other = b"name = \"lab\"\nseed = 7\n";
    let manifest =
        manifest(&row.machine, true).replace(&crate::name::sha256(PLAN), &crate::name::sha256(other));
    bundle(site, row, &manifest);
    fs::write(site.path(&format!("incoming/{}/source.toml", row.key)), other).unwrap();
}

fn without_a_plan(site: &Site<'_>, row: &Row) {
    bundle(site, row, &manifest(&row.machine, true).replace("source.toml", "events.json"));
    let dir = site.path(&format!("incoming/{}", row.key));
    fs::rename(dir.join("source.toml"), dir.join("events.json")).unwrap();
}

fn older(site: &Site<'_>, row: &Row) {
    bundle(site, row, &manifest(&row.machine, true).replace("2026-03-02T10", "2026-03-01T10"));
}

fn of_another(site: &Site<'_>, row: &Row) {
    bundle(site, row, &manifest("n7", true));
}

/// One machine has a name as long as its row may be, and another says as much of the tactus that it has.
fn wordy(site: &Site<'_>, row: &Row) {
    let long = "x".repeat(2 << 20);
    let machine = if row.machine == "n1" { &long } else { &row.machine };
    let tactus = if row.machine == "-w" { &long } else { "0.1.0" };
    bundle(site, row, &manifest(machine, true).replace("\"0.1.0\"", &format!("\"{tactus}\"")));
}

fn nothing(_site: &Site<'_>, _row: &Row) {}

fn fake(leaves: fn(&Site<'_>, &Row), ends: JobState) -> Fake {
    Fake { leaves: leaves.into(), ends: ends.into(), away: Vec::new(), refuses: Vec::new(), limit: None }
}

fn order() -> Order {
    let order = Order {
        format: FORMAT,
        tactus: "0.1.0".into(),
        id: String::new(),
        started: "2026-03-02T09:00:00Z".into(),
        engine: "fake".into(),
        select: "all".into(),
        options: BTreeMap::new(),
        plan: "lab".into(),
        plan_sha256: crate::name::sha256(PLAN),
        arguments: Vec::new(),
        machines: NAMES.map(str::to_owned).into(),
    };
    order.named(7)
}

/// Steps until nothing is under way.
fn campaign(store: &mut Store, engine: &Fake, wave: usize) -> usize {
    let system = Memory::new();
    let mut advance = Advance::new(engine, &system);
    for count in 1..20 {
        let moved = advance.step(store, wave).unwrap();
        assert!(moved.under_way <= wave);
        if moved.is_over() {
            return count;
        }
    }
    panic!("it does not end");
}

fn states(store: &Store) -> Vec<State> {
    store.rows().iter().map(|row| row.state).collect()
}

fn below(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
    names.collect()
}

#[test]
fn hostile_names_are_measured_in_waves_and_nothing_lies_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fleet");
    let mut store = Store::create(&path, order(), PLAN).unwrap();
    campaign(&mut store, &fake(whole, JobState::Ended("FAILED".into())), 2);
    assert_eq!(states(&store), [State::Measured; 5], "whatever the engine says");
    assert_eq!(below(dir.path()), ["fleet"]);
    let keys: BTreeSet<String> = below(&path.join("bundles")).into_iter().collect();
    assert_eq!(keys, NAMES.iter().map(|name| crate::file_name(name)).collect());
    let text = Status::new(&store.order, store.rows()).text(true);
    assert!(text.starts_with("5 machines: 5 measured\n") && !text.contains("a\nb"), "{text}");
    assert!(text.contains("have one machine-id"), "{text}");

    // Opened again, no machine is measured a second time.
    drop(store);
    let mut store = Store::open(&path).unwrap();
    assert_eq!(campaign(&mut store, &fake(nothing, JobState::Running(None)), 9), 1);
    assert!(store.rows().iter().all(|row| row.attempts == 1));
}

#[test]
fn a_machine_that_never_says_that_its_job_has_ended_makes_room_for_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(&dir.path().join("fleet"), order(), PLAN).unwrap();
    let silent = JobState::Running(Some("No route to host".into()));
    let engine = Fake { limit: Some(Duration::from_secs(86_400)), ..fake(nothing, silent) };
    let system = Memory::new();
    let mut advance = Advance::new(&engine, &system);
    for turn in 0..NAMES.len() {
        assert_eq!(advance.step(&mut store, 1).unwrap().submitted, 1, "{turn}");
        let waits = advance.step(&mut store, 1).unwrap();
        assert_eq!((waits.submitted, waits.under_way), (0, 1), "{turn}: it has its time");
        store.row(turn).submitted = Some("2000-01-01T00:00:00Z".into());
    }
    assert!(advance.step(&mut store, 1).unwrap().is_over());
    assert_eq!(states(&store), [State::Failed; 5]);
    let reason = store.rows()[0].reason.clone().unwrap();
    assert!(reason.contains("did not end") && reason.ends_with(": No route to host"), "{reason}");
    // It was switched on again.
    whole(&store.site(&system), &store.rows()[0].clone());
    assert_eq!(advance.look(&mut store, true).unwrap(), 1);
    assert_eq!(store.rows()[0].state, State::Measured);
}

#[test]
fn a_half_done_bundle_stays_to_be_gone_on_with_and_comes_home_late() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(&dir.path().join("fleet"), order(), PLAN).unwrap();
    let engine = Fake { away: vec!["n1"], ..fake(half, JobState::Ended("NODE_FAIL".into())) };
    campaign(&mut store, &engine, 9);
    assert_eq!(store.rows()[0].state, State::Away);
    assert_eq!(store.rows()[0].reason.as_deref(), Some("drained"));
    assert_eq!(states(&store)[1..], [State::Failed; 4]);
    assert_eq!(store.rows()[1].reason.as_deref(), Some("NODE_FAIL; its bundle is not finished"));
    // The run continued without its agent.
    let system = Memory::new();
    whole(&store.site(&system), &store.rows()[1].clone());
    assert_eq!(Advance::new(&engine, &system).look(&mut store, true).unwrap(), 1);
    assert_eq!(store.rows()[1].state, State::Measured);
    // The others have one more job in the next campaign, and no third one.
    campaign(&mut store, &fake(half, JobState::Ended("NODE_FAIL".into())), 9);
    let attempts: Vec<u32> = store.rows().iter().map(|row| row.attempts).collect();
    assert_eq!(attempts, [1, 1, 2, 2, 2]);
}

#[test]
fn a_run_that_the_engine_has_ended_softly_is_half_done_though_its_bundle_has_an_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(&dir.path().join("fleet"), order(), PLAN).unwrap();
    campaign(&mut store, &fake(ended_softly, JobState::Ended("CANCELLED".into())), 9);
    assert_eq!(states(&store), [State::Failed; 5]);
    assert_eq!(store.rows()[0].reason.as_deref(), Some("CANCELLED; its bundle is not finished"));
    campaign(&mut store, &fake(whole, JobState::Ended("COMPLETED".into())), 9);
    assert_eq!(states(&store), [State::Measured; 5]);
}

#[test]
fn bundles_of_two_versions_of_tactus_are_taken_and_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(&dir.path().join("fleet"), order(), PLAN).unwrap();
    campaign(&mut store, &fake(of_two_versions, JobState::Ended("COMPLETED".into())), 9);
    assert_eq!(states(&store), [State::Measured; 5]);
    let text = Status::new(&store.order, store.rows()).text(false);
    assert!(text.contains("bundles of different versions of tactus: 0.0.9, 0.1.0"), "{text}");
}

#[test]
fn a_bundle_of_another_machine_and_one_that_was_altered_here_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fleet");
    let mut store = Store::create(&path, order(), PLAN).unwrap();
    campaign(&mut store, &fake(of_another, JobState::Ended("COMPLETED".into())), 9);
    assert_eq!(states(&store), [State::Refused; 5]);
    assert_eq!(store.rows()[0].reason.as_deref(), Some("it is of the machine \"n7\""));
    campaign(&mut store, &fake(whole, JobState::Ended("COMPLETED".into())), 9);
    assert_eq!(states(&store), [State::Measured; 5]);
    fs::write(path.join("bundles/n1/events.jsonl"), "others\n").unwrap();
    let engine = fake(nothing, JobState::Running(None));
    Advance::new(&engine, &Memory::new()).look(&mut store, true).unwrap();
    assert_eq!(store.rows()[0].state, State::Refused);
    assert!(store.rows()[0].reason.as_deref().unwrap().contains("checksum"));
    assert_eq!(states(&store)[1..], [State::Measured; 4]);
    let kept: BTreeSet<String> = below(&path.join("refused")).into_iter().collect();
    assert_eq!(kept.len(), 5, "what was refused of a machine is kept, and the last of it alone: {kept:?}");
    assert!(kept.contains("n1-2") && !kept.contains("n1-1"), "{kept:?}");
    assert_eq!(fs::read_to_string(path.join("refused/n1-2/events.jsonl")).unwrap(), "others\n");
}

#[test]
fn words_of_one_machine_that_are_too_long_and_a_row_that_is_spoiled_end_no_fleet() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fleet");
    let mut store = Store::create(&path, order(), PLAN).unwrap();
    campaign(&mut store, &fake(wordy, JobState::Ended("COMPLETED".into())), 9);
    drop(store);
    fs::write(path.join("machines").join(format!("{}.json", Row::new("$(id)").key)), "spoiled").unwrap();
    let store = Store::open(&path).unwrap();
    let long = |text: &str| text.chars().count();
    let of = |name: &str| store.rows().iter().find(|row| row.machine == name).unwrap();
    assert_eq!((of("n1").state, of("n1").reason.as_deref().map(long)), (State::Refused, Some(600)));
    assert_eq!(
        (of("-w").state, of("-w").bundle.as_ref().map(|home| long(&home.tactus))),
        (State::Measured, Some(256))
    );
    assert_eq!(of("$(id)").state, State::Failed);
    assert!(of("$(id)").reason.as_deref().unwrap().contains("its row cannot be read"));
    assert_eq!(of("a\nb").state, State::Measured);
}

#[test]
fn a_bundle_of_another_plan_of_this_name_and_one_from_before_the_fleet_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(&dir.path().join("fleet"), order(), PLAN).unwrap();
    for (leaves, said) in [
        (of_another_plan as fn(&Site<'_>, &Row), "another plan that is also called \"lab\""),
        (without_a_plan, "is not among its files"),
        (older, "before the fleet"),
    ] {
        campaign(&mut store, &fake(leaves, JobState::Ended("COMPLETED".into())), 9);
        assert_eq!(states(&store), [State::Refused; 5], "{said}");
        let reason = store.rows()[0].reason.clone().unwrap();
        assert!(reason.contains(said), "{reason}");
    }
    // A run writes the plan anew: what it says counts, and not how it is written.
    assert!(is_plan(&store, b"# ours\nname = 'lab'\n").unwrap());
    campaign(&mut store, &fake(whole, JobState::Ended("COMPLETED".into())), 9);
    assert_eq!(states(&store), [State::Measured; 5]);
}

#[test]
fn who_ended_between_bringing_a_bundle_home_and_writing_it_down_finds_it_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fleet");
    let mut store = Store::create(&path, order(), PLAN).unwrap();
    let engine = fake(whole, JobState::Ended("COMPLETED".into()));
    Advance::new(&engine, &Memory::new()).step(&mut store, 9).unwrap();
    let before = store.rows()[0].clone();
    assert_eq!(before.state, State::Waiting);
    assert!(matches!(arrival(&store, &before), Ok(Arrival::Here(_))));
    drop(store);
    let mut store = Store::open(&path).unwrap();
    assert_eq!(store.rows()[0], before);
    let forgets = fake(nothing, JobState::Ended("forgotten".into()));
    Advance::new(&forgets, &Memory::new()).look(&mut store, true).unwrap();
    assert_eq!(states(&store), [State::Measured; 5]);
    // Each was written down as it came.
    let rows = Store::look(&path).unwrap();
    assert_eq!(states(&rows), [State::Measured; 5]);
}

#[test]
fn a_machine_with_the_name_of_anothers_archive_is_measured_like_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fleet");
    let order = Order { machines: ["n1", "n1.tar.gz"].map(str::to_owned).into(), ..order() };
    let mut store = Store::create(&path, order, PLAN).unwrap();
    // n1's comes as one file, the other's as a directory.
    let leaves = |site: &Site<'_>, row: &Row| {
        whole(site, row);
        let incoming = site.path(&format!("incoming/{}", row.key));
        if row.machine == "n1" {
            let bundle = tactus_system::Directory::open(&incoming).unwrap();
            fs::write(site.path(&row.archive()), crate::pack::pack(&bundle, Vec::new()).unwrap()).unwrap();
            fs::remove_dir_all(incoming).unwrap();
        }
    };
    campaign(&mut store, &fake(leaves, JobState::Ended("COMPLETED".into())), 9);
    assert_eq!(states(&store), [State::Measured; 2]);
    assert_eq!(below(&path.join("refused")), [""; 0]);
}

#[test]
fn what_is_wrong_with_the_files_of_one_machine_keeps_no_other_bundle_from_home() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fleet");
    let mut store = Store::create(&path, order(), PLAN).unwrap();
    let engine = fake(whole, JobState::Ended("COMPLETED".into()));
    Advance::new(&engine, &Memory::new()).step(&mut store, 9).unwrap();
    // A file, where only a directory can be: nothing is renamed over it, and it can be moved nowhere.
    fs::remove_dir(path.join("refused")).unwrap();
    fs::write(path.join("archives/n1.tar.gz"), "no archive").unwrap();
    Advance::new(&engine, &Memory::new()).look(&mut store, true).unwrap();
    assert_eq!(
        states(&store),
        [State::Failed, State::Measured, State::Measured, State::Measured, State::Measured]
    );
    let reason = store.rows()[0].reason.clone().unwrap();
    assert!(reason.contains("n1.tar.gz"), "{reason}");
}

#[test]
fn a_wave_that_is_refused_is_not_the_end_and_those_of_it_come_last_the_next_time() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(&dir.path().join("fleet"), order(), PLAN).unwrap();
    let engine = Fake { refuses: NAMES[..2].to_vec(), ..fake(whole, JobState::Ended("COMPLETED".into())) };
    let moved = Advance::new(&engine, &Memory::new()).step(&mut store, 2).unwrap();
    assert_eq!((moved.submitted, moved.tried, moved.is_over()), (0, 2, false));
    let moved = Advance::new(&engine, &Memory::new()).step(&mut store, 2).unwrap();
    assert_eq!(moved.submitted, 2, "the command again takes others first");
    campaign(&mut store, &engine, 2);
    assert_eq!(
        states(&store),
        [State::Failed, State::Failed, State::Measured, State::Measured, State::Measured]
    );
}

#[test]
fn who_looks_where_no_fleet_is_leaves_nothing_and_a_fleet_may_begin_where_one_was_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Store::open(dir.path()).is_err());
    assert_eq!(below(dir.path()), [""; 0]);
    fs::write(dir.path().join(".lock"), "").unwrap();
    fs::create_dir(dir.path().join("bundles")).unwrap();
    fs::write(dir.path().join("plan.toml"), "name = 'mine'").unwrap();
    assert!(Store::create(dir.path(), order(), PLAN).is_err(), "another plan is somebody's");
    fs::write(dir.path().join("plan.toml"), PLAN).unwrap();
    assert!(Store::create(dir.path(), order(), PLAN).is_ok());
}

#[test]
fn a_fleet_is_resumed_unchanged_and_by_one_process() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fleet");
    let store = Store::create(&path, order(), PLAN).unwrap();
    let error = |found: Result<Store, FleetError>| found.err().unwrap().to_string();
    assert!(error(Store::open(&path)).contains("another `tactus fleet` is working on"));
    assert!(Store::look(&path).is_ok());
    assert!(error(Store::create(&path, order(), PLAN)).contains("not empty"));
    let other = Order { plan_sha256: "x".into(), ..order() };
    assert!(store.order.same(&other).unwrap_err().to_string().contains("not the same plan"));
    assert!(store.order.same(&Order { machines: Vec::new(), ..order() }).is_ok(), "the list is frozen");
    drop(store);
    fs::write(path.join("plan.toml"), "name = \"other\"\n").unwrap();
    assert!(error(Store::open(&path)).contains("not the plan"));
    fs::write(path.join("plan.toml"), PLAN).unwrap();
    for damaged in ["", "{", "{\"format\": {\"major\": 2, \"minor\": 0}}", "[]"] {
        fs::write(path.join("fleet.json"), damaged).unwrap();
        assert!(Store::open(&path).is_err(), "{damaged}");
    }
    assert!(Store::open(&dir.path().join("none")).is_err());
}

/// In the directory that nodes of Slurm share, root on one of them may exchange all files that jobs write to.
#[test]
fn a_link_in_the_place_of_what_machines_write_to_moves_and_removes_nothing_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let (path, home) = (dir.path().join("fleet"), dir.path().join("home"));
    let mut store = Store::create(&path, order(), PLAN).unwrap();
    campaign(&mut store, &fake(of_another, JobState::Ended("COMPLETED".into())), 9);
    fs::create_dir_all(home.join("n1")).unwrap();
    fs::write(home.join("n1/letters"), "kept").unwrap();
    fs::remove_dir_all(path.join("incoming")).unwrap();
    std::os::unix::fs::symlink(&home, path.join("incoming")).unwrap();
    assert!(store.remove("incoming/n1").is_err());
    assert!(store.rename("incoming/n1", "bundles/n1").is_err());
    assert!(store.refuse("incoming/n1", "n1").is_err());
    assert_eq!(fs::read_to_string(home.join("n1/letters")).unwrap(), "kept");
    // A link itself is removed, and not what it leads to.
    std::os::unix::fs::symlink(&home, path.join("archives/n1.tar.gz")).unwrap();
    store.remove("archives/n1.tar.gz").unwrap();
    assert!(home.join("n1/letters").exists());
}
