//! Six nodes of a real Slurm.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::cluster::{Cluster, NODES};
use super::{PLAN, manifest, row};
use crate::common::{ended, json, measures_beside_others, nothing_is_left, output, skipped, stderr};

/// A fleet on it.
struct Fleet<'a> {
    cluster: &'a Cluster,
    plan: PathBuf,
    dir: PathBuf,
}

impl<'a> Fleet<'a> {
    fn new(cluster: &'a Cluster, name: &str) -> Self {
        let plan = cluster.path("plan.toml");
        fs::write(&plan, PLAN).unwrap();
        Self { cluster, plan, dir: cluster.path(name) }
    }

    fn command(&self, words: &[&str]) -> std::process::Command {
        let mut command = self.cluster.command(env!("CARGO_BIN_EXE_tactus"));
        command.env("TACTUS_CACHE_DIR", self.cluster.path("kept")).arg("fleet").args(words);
        command
    }

    fn run(&self, words: &[&str]) -> std::process::Command {
        let mut command = self.command(&["run"]);
        command.arg(&self.plan).args([
            "--on",
            "slurm",
            "--select",
            "partition=lab feature=rt",
            "--every",
            "500ms",
        ]);
        command.arg("--out").arg(&self.dir).arg("--with");
        command.arg(format!("program={}", self.cluster.path("tactus").display())).args(words);
        command
    }

    fn started(&self, words: &[&str]) -> Child {
        let said = fs::File::create(self.cluster.path("said")).unwrap();
        self.run(words).stdout(Stdio::null()).stderr(said).spawn().unwrap()
    }

    fn await_that(&self, what: &str, holds: impl Fn(&Path) -> bool) {
        let until = Instant::now() + Duration::from_secs(90);
        while !holds(&self.dir) {
            let said = fs::read_to_string(self.cluster.path("said")).unwrap_or_default();
            assert!(Instant::now() < until, "never: {what}\n{said}\n{}", self.cluster.log("ctld"));
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Whether the first of the two scenarios of a bundle that is being written is complete.
pub fn first_is_complete(bundle: &Path) -> bool {
    let result = fs::read_to_string(bundle.join("scenarios/01-first/result.json")).unwrap_or_default();
    serde_json::from_str::<serde_json::Value>(&result).is_ok_and(|result| result["status"] == "measured")
        && fs::read_to_string(bundle.join("scenarios/02-second/ticks.csv")).is_ok()
}

#[test]
fn every_node_of_slurm_is_measured_once_whatever_happens_to_agents_and_nodes() {
    let Some(_turn) = measures_beside_others() else { return };
    let mut cluster = match Cluster::start() {
        Ok(cluster) => cluster,
        Err(why) => return skipped(&why),
    };
    // One is drained, one is busy with somebody else's job.
    assert!(cluster.control(&["update", "nodename=n5", "state=drain", "reason=bad disk"]).status.success());
    let busy = cluster
        .command("sbatch")
        .args(["--parsable", "-w", "n6", "--exclusive", "-o", "/dev/null"])
        .args(["--wrap", "sleep 600"])
        .output()
        .unwrap();
    let busy = String::from_utf8(busy.stdout).unwrap().trim().to_owned();
    cluster.await_state(&["n6"], "allocated");
    let fleet = Fleet::new(&cluster, "fleet");
    let mut running = fleet.started(&["--wave", "5", "--wait", "3m"]);
    fleet.await_that("n2 and n3 are half done", |dir| {
        ["n2", "n3"].iter().all(|node| first_is_complete(&dir.join("incoming").join(node)))
    });
    let dir = fleet.dir.clone();
    drop(fleet);
    // The fleet may take what is there home as soon as its node is gone.
    let half = fs::read(dir.join("incoming/n3/manifest.json")).unwrap();
    let half: serde_json::Value = serde_json::from_slice(&half).unwrap();
    assert_eq!(half["finished"], serde_json::Value::Null, "it is killed in the middle");
    // The agent of n2 ends, and its job continues; of n3 all ends at once.
    cluster.kill_agent("n2");
    cluster.kill_node("n3");
    assert!(cluster.command("scancel").arg(&busy).status().unwrap().success());
    cluster.await_state(&["n3"], "down*");
    cluster.start_node("n3");
    let fleet = Fleet::new(&cluster, "fleet");
    let job = row(&dir, "n3")["job"].as_str().unwrap().to_owned();
    // By default Slurm waits two minutes before it starts a requeued job.
    fleet.await_that("n3's job is requeued", |_| {
        let told = cluster.control(&["show", "job", &job]);
        let text = String::from_utf8_lossy(&told.stdout).into_owned();
        text.contains("Restarts=1")
            && cluster.control(&["update", &format!("jobid={job}"), "StartTime=now"]).status.success()
    });
    let code = ended(&mut running, Duration::from_secs(180));
    let said = fs::read_to_string(cluster.path("said")).unwrap();
    assert_eq!(code, Some(3), "one is drained: {said}");

    for node in NODES {
        let row = row(&dir, node);
        if node == "n5" {
            assert_eq!(
                (&row["state"], &row["reason"]),
                (&"away".into(), &"drained: bad disk".into()),
                "{said}"
            );
            assert_eq!(row["attempts"], 0);
            continue;
        }
        assert_eq!((&row["state"], &row["attempts"]), (&"measured".into(), &1.into()), "{row}\n{said}");
        let manifest = manifest(&dir, node);
        assert_eq!(manifest["machine"]["name"], node, "though all have one host name");
        assert_eq!(manifest["sessions"].as_array().unwrap().last().unwrap()["job"]["engine"], "slurm");
    }
    assert_eq!(manifest(&dir, "n2")["sessions"].as_array().unwrap().len(), 1, "nobody measured n2 again");
    assert_eq!(
        manifest(&dir, "n3")["sessions"].as_array().unwrap().len(),
        2,
        "the requeued job went on with it"
    );
    let log = fs::read_to_string(dir.join("log/n3.log")).unwrap();
    assert!(log.contains("1 of 2 scenarios are complete"), "{log}");

    // Repeated, it measures the missing machine, and no other.
    assert!(cluster.control(&["update", "nodename=n5", "state=resume"]).status.success());
    cluster.await_state(&["n5"], "idle");
    let again = output(&mut fleet.run(&["--json", "--wait", "2m"]));
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    let document = json(&again);
    assert_eq!(document["counts"]["measured"], 6);
    let attempts: Vec<u64> = document["machines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["attempts"].as_u64().unwrap())
        .collect();
    assert_eq!(attempts, [1; 6]);
    let remark = document["remarks"][0].as_str().unwrap();
    assert!(remark.contains("have one machine-id"), "the nodes are one machine: {remark}");

    // A changed file on the nodes' share must not start another engine here.
    let said = fs::read_to_string(dir.join("fleet.json")).unwrap();
    fs::write(dir.join("fleet.json"), said.replace("\"slurm\"", "\"ansible\"")).unwrap();
    for words in ["collect", "status"] {
        let strange = output(fleet.command(&[words]).arg(&dir));
        assert!(
            stderr(&strange).contains("you have not run `tactus fleet run`"),
            "{words}: {}",
            stderr(&strange)
        );
    }
    fs::write(dir.join("fleet.json"), said).unwrap();
    // A bundle that is altered is refused, and its machine measured again.
    fs::write(dir.join("bundles/n1/events.jsonl"), "{}\n").unwrap();
    let collected = output(fleet.command(&["collect", "--json"]).arg(&dir));
    assert_eq!(collected.status.code(), Some(3));
    let refused = &json(&collected)["machines"][0];
    assert_eq!(refused["state"], "refused");
    assert!(
        refused["reason"].as_str().unwrap().contains("events.jsonl is not as the run wrote it"),
        "{refused}"
    );
    assert!(dir.join("refused/n1-1/manifest.json").exists(), "it is kept beside");
    // This time the command does not wait: the bundle comes late, and counts.
    let impatient = output(&mut fleet.run(&["--wait", "1s"]));
    assert_eq!(impatient.status.code(), Some(3), "{}", stderr(&impatient));
    fleet.await_that("n1's late bundle", |dir| {
        output(fleet.command(&["collect", "--json"]).arg(dir)).status.code() == Some(0)
    });
    assert_eq!((&row(&dir, "n1")["state"], &row(&dir, "n1")["attempts"]), (&"measured".into(), &2.into()));
    drop(cluster);
    nothing_is_left();
}
