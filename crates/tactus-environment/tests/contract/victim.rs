//! A run that is killed while it measures: this program once more.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tactus_environment::ENVIRONMENTS;
use tactus_model::message::FromProbe;
use tactus_model::plan;

use super::{Conversation, PATIENCE};

/// The variable that makes this program the run that is killed.
pub const VICTIM: &str = "TACTUS_CONTRACT_VICTIM";
/// Its environment's table; the place itself is ours.
const VICTIMS_PLACE: &str = "TACTUS_CONTRACT_VICTIMS_PLACE";

/// Has a run measure in an environment and kills it; returns its name. `seen`: whether what it must not leave
/// behind is there before.
pub fn is_killed(kind: &str, spec: &plan::Environment, seen: impl Fn(&str) -> bool) -> String {
    let dir = tempfile::tempdir().unwrap();
    let note = dir.path().join("run");
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_run_that_is_killed_leaves_nothing_behind", "--nocapture"])
        .env(VICTIM, format!("{kind}={}", note.display()))
        .env(VICTIMS_PLACE, serde_json::to_string(spec).unwrap())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let until = Instant::now() + PATIENCE;
    let id = loop {
        match std::fs::read_to_string(&note) {
            Ok(text) if text.ends_with('\n') => break text.trim().to_owned(),
            _ => {
                assert!(
                    victim.try_wait().unwrap().is_none(),
                    "{kind}: the victim ended before it was killed"
                );
            }
        }
        assert!(Instant::now() < until, "{kind}: the victim does not measure");
        std::thread::sleep(Duration::from_millis(10));
    };
    let seen = seen(&id);
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert!(seen, "{kind}: nothing is there that could be left");
    id
}

/// Measures until it is killed; tells the run's name when the first tick has arrived.
pub fn be_killed(kind_and_note: &str) -> ! {
    let (kind, note) = kind_and_note.split_once('=').unwrap();
    let environment = ENVIRONMENTS.iter().find(|environment| environment.kind() == kind).unwrap();
    let spec = serde_json::from_str(&std::env::var(VICTIMS_PLACE).unwrap()).unwrap();
    let mut talk = Conversation::begin(*environment, &spec).unwrap();
    talk.greet();
    talk.running.after_hello().unwrap();
    talk.measure_for(Duration::from_secs(600));
    loop {
        if let FromProbe::Tick(_) = talk.hear(PATIENCE) {
            // In one step: the reader must not see half a name.
            let part = Path::new(note).with_extension("part");
            std::fs::write(&part, format!("{}\n", talk.id())).unwrap();
            std::fs::rename(&part, note).unwrap();
        }
    }
}
