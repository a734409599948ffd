//! A fleet by real engines, on this machine.

mod ansible;
mod cluster;
mod slurm;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{ended, measures_beside_others, nothing_is_left, output, started, stderr, tactus};

/// A plan of two scenarios, so that a bundle can be half done. The second takes longer: on a busy machine no node ends it before
/// all others have begun it.
const PLAN: &str = "name = \"two\"
[environment.host]
kind = \"host\"
[defaults]
environment = \"host\"
measurement = \"timer\"
duration = \"2s\"
[[scenario]]
name = \"first\"
[[scenario]]
name = \"second\"
duration = \"6s\"
";

/// The row of a machine.
fn row(fleet: &Path, machine: &str) -> Value {
    let file = fleet.join(format!("machines/{machine}.json"));
    fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or(Value::Null)
}

/// The manifest of a machine's bundle.
fn manifest(fleet: &Path, machine: &str) -> Value {
    let file = fleet.join(format!("bundles/{machine}/manifest.json"));
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

#[test]
fn a_job_refuses_another_plan_than_the_one_it_was_made_for_before_anything_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let (plan, bundle) = (dir.path().join("plan.toml"), dir.path().join("bundle"));
    let sum = tactus_fleet::sha256(PLAN.as_bytes());
    fs::write(&plan, format!("{PLAN}# another\n")).unwrap();
    let mut job = tactus();
    job.args(["fleet", "job", "--wait", "1m", "--plan-sha256", &sum, "--plan"]).arg(&plan);
    let refused = output(job.arg("--bundle").arg(&bundle).env("TACTUS_CACHE_DIR", dir.path().join("cache")));
    assert_ne!(refused.status.code(), Some(0));
    assert!(stderr(&refused).contains("not the plan of this job"), "{}", stderr(&refused));
    assert!(!bundle.exists());
}

#[test]
fn a_job_that_its_engine_ends_softly_is_no_success_and_is_gone_on_with() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (plan, bundle) = (dir.path().join("plan.toml"), dir.path().join("bundle"));
    let (archive, word) = (dir.path().join("archives/n1.tar.gz"), dir.path().join("word"));
    fs::write(&plan, PLAN).unwrap();
    let job = || {
        let mut command = tactus();
        command.args(["fleet", "job", "--wait", "1m", "--plan"]).arg(&plan).arg("--bundle").arg(&bundle);
        command.arg("--archive").arg(&archive).arg("--word").arg(&word);
        command.arg("--plan-sha256").arg(tactus_fleet::sha256(PLAN.as_bytes()));
        command.env("TACTUS_CACHE_DIR", dir.path().join("cache"));
        command
    };
    let mut running = started(&mut job());
    let until = Instant::now() + Duration::from_secs(90);
    while !slurm::first_is_complete(&bundle) {
        assert!(Instant::now() < until, "it never came to its second scenario");
        std::thread::sleep(Duration::from_millis(50));
    }
    // As a drained node, a time limit and `scancel` do.
    kill_process(Pid::from_child(&running), Signal::TERM).unwrap();
    assert_ne!(ended(&mut running, Duration::from_secs(90)), Some(0), "an engine would not repeat it");
    let manifest =
        || serde_json::from_slice::<Value>(&fs::read(bundle.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest()["status"], "interrupted");
    assert!(!archive.exists() && !word.exists(), "what is half done is not told");
    let again = output(&mut job());
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert_eq!(manifest()["status"], "complete");
    assert_eq!(manifest()["sessions"].as_array().unwrap().len(), 2, "it was gone on with");
    let tells_its_archive = || {
        let (told, bytes) = (fs::read_to_string(&word).unwrap(), fs::read(&archive).unwrap());
        assert_eq!(tactus_fleet::armor::archive_sum(&told), Some(&*tactus_fleet::sha256(&bytes)), "{told}");
    };
    tells_its_archive();
    fs::remove_file(&word).unwrap();
    fs::write(&archive, "somebody else's").unwrap();
    let once_more = output(&mut job());
    assert_eq!(once_more.status.code(), Some(0), "{}", stderr(&once_more));
    assert_eq!(manifest()["sessions"].as_array().unwrap().len(), 2, "nothing was measured again");
    tells_its_archive();
    nothing_is_left();
}
