//! Tests without a real kubectl. Its answers are written by hand, after a recording of two kubelets of Kubernetes
//! 1.30.14 (`RECORD=DIR make cluster`; only the fields that matter). The objects for it are checked with Kubernetes'
//! own schema.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use tactus_system::{Directory, Memory, System};

use super::*;
use crate::name::as_told;
use crate::order::{FORMAT, Order};

fn order(options: &[(&str, &str)]) -> Order {
    let image = [("image", "registry.example.org/tactus:0.1.0")];
    Order {
        format: FORMAT,
        tactus: "0.1.0".into(),
        id: "0badcafe".into(),
        started: String::new(),
        engine: "kubernetes".into(),
        select: "rt=yes".into(),
        options: image.iter().chain(options).map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        plan: "lab".into(),
        plan_sha256: "c0ffee".into(),
        arguments: Vec::new(),
        machines: Vec::new(),
    }
}

fn site<'a>(order: &'a Order, system: &'a Memory) -> Site<'a> {
    Site { dir: "/home/ada/fleet".into(), order, system }
}

/// kubectl without a context.
const KUBECTL: [&str; 2] = ["kubectl", "--namespace=default"];

fn asked<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [&KUBECTL[..], words].concat()
}

#[test]
fn nodes_are_ready_cordoned_or_silent_and_the_selector_is_one_word() {
    let node = |name: &str, ready: &str, cordoned: bool| {
        let ready =
            json!({"type": "Ready", "status": ready, "message": "Kubelet stopped posting node status."});
        json!({"metadata": {"name": name}, "spec": {"unschedulable": cordoned}, "status": {"conditions": [ready]}})
    };
    let nodes = json!({"items": [node("n1", "True", false), node("n2", "True", true), node("n3", "Unknown", false), {}]});
    let order = order(&[]);
    let system = Memory::new().answer(&asked(&["get", "nodes"]), 0, &nodes.to_string(), "");
    let found = Kubernetes.machines(&site(&order, &system)).unwrap();
    assert_eq!(found[0].ready, Ready::Idle);
    assert_eq!(found[1].ready, Ready::Away("cordoned".into()));
    assert_eq!(found[2].ready, Ready::Away("NotReady: Kubelet stopped posting node status.".into()));
    assert_eq!(found.len(), 3);
    assert_eq!(system.calls()[0].last().unwrap(), "--selector=rt=yes");
}

#[test]
fn a_job_is_named_by_its_machine_and_a_dollar_is_a_dollar() {
    let mut order = order(&[("tolerate", "rt"), ("account", "measurer")]);
    order.arguments = vec!["--only=$(id)".into()];
    insta::assert_json_snapshot!(objects::job(&order, &Row::new("worker-1.lab.example.org")));
    let long = format!("{}.example.org", "x".repeat(240));
    let told = &objects::job(&order, &Row::new(&long))["spec"]["template"]["spec"]["containers"][0]["env"][0];
    assert_eq!(told["value"], as_told(&long), "a node's name that a bundle would cut is told by its sum");
    for name in ["n1", &long, "a.b", "a-b"] {
        let job = objects::name(&order, name);
        assert!(job.len() <= 63 && refused(&job).is_none(), "{job}");
    }
    assert_ne!(objects::name(&order, "a.b"), objects::name(&order, "a-b"), "one Job for each machine");
}

#[test]
fn what_is_rendered_keeps_to_kubernetes_own_schema() {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/bin/kubernetes-validate");
    #[expect(clippy::disallowed_methods, reason = "another program checks files beside the door")]
    let validated = |file: &Path| Command::new(&tools).arg("--strict").arg(file).output();
    let order = order(&[("tolerate", "rt")]);
    let system = Memory::new().file("/home/ada/fleet/plan.toml", "name = \"lab\"\n");
    let files = Kubernetes
        .render(&site(&order, &system), &[&Row::new("n1"), &Row::new("../../x"), &Row::new("$(id)")]);
    assert_eq!(files.len(), 2, "nothing for names that no node can have");
    let dir = tempfile::tempdir().unwrap();
    for file in files {
        let path = dir.path().join(&file.name);
        #[expect(clippy::disallowed_methods, reason = "a file for another program")]
        std::fs::write(&path, &file.text).unwrap();
        let Ok(output) = validated(&path) else {
            assert!(
                std::env::var_os("TACTUS_TEST_ALL").is_none(),
                "kubernetes-validate is not in target/tools"
            );
            eprintln!("SKIPPED: kubernetes-validate is not in target/tools");
            return;
        };
        assert!(output.status.success(), "{}: {output:?}", file.name);
        #[expect(clippy::disallowed_methods, reason = "a file for another program")]
        std::fs::write(&path, file.text.replace("\"metadata\"", "\"metaData\"")).unwrap();
        assert!(!validated(&path).unwrap().status.success(), "{}", file.name);
    }
}

#[test]
fn a_wave_is_given_at_once_and_an_old_job_makes_room() {
    let order = order(&[]);
    let name = |machine: &str| objects::name(&order, machine);
    let system = Memory::new()
        .answer(&asked(&["apply", "--filename=/home/ada/fleet/objects/plan.json"]), 0, "", "")
        .answer(&asked(&["delete", "jobs"]), 0, "", "")
        .answer(
            &asked(&["apply", "--output=name"]),
            1,
            &format!("job.batch/{}\n", name("n1")),
            "Error from server (Forbidden): jobs.batch is forbidden: exceeded quota\n",
        );
    let rows = [Row { attempts: 1, ..Row::new("n1") }, Row::new("n2"), Row::new("-w"), Row::new("a\nb")];
    let outcomes = Kubernetes.submit(&site(&order, &system), &rows.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(outcomes[0], Submitted::As(name("n1")));
    assert!(matches!(&outcomes[1], Submitted::Refused(reason) if reason.contains("exceeded quota")));
    assert!(
        outcomes[2..]
            .iter()
            .all(|outcome| matches!(outcome, Submitted::Refused(reason) if reason.contains("not a name")))
    );
    let calls = system.calls();
    assert_eq!(calls.len(), 3);
    assert!(calls[1].ends_with(&[name("n1")]), "n2 was never there: {:?}", calls[1]);
}

/// A Job, whose machine has its name; the API server gives it an id.
fn job(name: &str, conditions: &Value) -> Value {
    json!({"metadata": {"name": name, "uid": format!("uid-of-{name}")}, "status": {"conditions": conditions}})
}

/// A pod that the Job's controller has made.
fn pod(job: &str, created: &str, status: &Value) -> Value {
    let labels = json!({"job-name": job});
    let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": format!("uid-of-{job}"),
        "controller": true, "blockOwnerDeletion": true});
    let metadata = json!({"name": format!("{job}-{}", created.to_lowercase()), "labels": labels,
        "creationTimestamp": created, "ownerReferences": [owner]});
    // One that waits for its node has none yet.
    let node = if status["phase"] == "Pending" { json!({}) } else { json!({"nodeName": job}) };
    json!({"metadata": metadata, "spec": node, "status": status})
}

fn terminated(code: u32, message: &str) -> Value {
    json!({"phase": "Succeeded", "containerStatuses": [{"name": "tactus", "state": {"terminated": {
        "exitCode": code, "reason": "Completed", "message": message}}}]})
}

#[test]
fn why_a_pod_waits_is_told_in_kubernetes_words() {
    let scheduled =
        json!([{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}]);
    let image = json!([{"name": "tactus", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}]);
    let failed = json!([{"type": "Failed", "status": "True", "message": "Job has reached the specified backoff limit"}]);
    let jobs = json!({"items": [
        job("a", &json!([])), job("b", &json!([])), job("c", &json!([])), job("d", &failed),
        job("e", &json!([{"type": "Complete", "status": "True"}])), job("f", &json!([])),
    ]});
    let silent = json!([{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]);
    let pods = json!({"items": [
        pod("a", "1", &json!({"phase": "Pending", "conditions": scheduled})),
        pod("b", "1", &json!({"phase": "Pending", "containerStatuses": image})),
        pod("c", "1", &json!({"phase": "Running"})),
        pod("d", "1", &terminated(2, "")),
        pod("e", "1", &terminated(2, "")), pod("e", "2", &terminated(0, "")),
        pod("f", "1", &json!({"phase": "Running", "conditions": silent})),
    ]});
    let order = order(&[]);
    let system = Memory::new().answer(&asked(&["get", "jobs"]), 0, &jobs.to_string(), "").answer(
        &asked(&["get", "pods"]),
        0,
        &pods.to_string(),
        "",
    );
    let rows =
        ["a", "b", "c", "d", "e", "f", "gone"].map(|name| Row { job: Some(name.into()), ..Row::new(name) });
    let states = Kubernetes.jobs(&site(&order, &system), &rows.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(states["a"], JobState::Waiting("Pending: 0/3 nodes are available".into()));
    assert_eq!(states["b"], JobState::Waiting("ImagePullBackOff: not found".into()));
    assert_eq!(states["c"], JobState::Running(None));
    assert!(
        matches!(&states["d"], JobState::Ended(reason) if reason.starts_with("exit 2") && reason.contains("backoff"))
    );
    assert_eq!(states["e"], JobState::Ended("exit 0 (Completed)".into()), "the newest pod counts");
    assert!(matches!(&states["f"], JobState::Running(Some(reason)) if reason.contains("does not answer")));
    assert!(!states.contains_key("gone"));
}

/// The recorded answers of kubectl on a real cluster: its nodes, or the states of a fleet's two machines.
fn recorded(moment: &str) -> (Vec<Machine>, Vec<Option<JobState>>) {
    let all: Value = serde_json::from_str(include_str!("recorded.json")).unwrap();
    let answers = &all[moment];
    let order = order(&[]);
    let system = ["nodes", "jobs", "pods"].iter().fold(Memory::new(), |system, kind| {
        system.answer(&asked(&["get", kind]), 0, &answers[kind].to_string(), "")
    });
    let site = site(&order, &system);
    if answers["jobs"].is_null() {
        return (Kubernetes.machines(&site).unwrap(), Vec::new());
    }
    let of = |machine: &str| {
        let jobs = answers["jobs"]["items"].as_array().unwrap();
        let name = |job: &&Value| text(job, "/metadata/name").contains(&format!("-{machine}-"));
        let job = text(jobs.iter().find(name).unwrap(), "/metadata/name").to_owned();
        Row { job: Some(job), ..Row::new(machine) }
    };
    let rows = [of("n1"), of("n2")];
    let mut states = Kubernetes.jobs(&site, &rows.iter().collect::<Vec<_>>()).unwrap();
    let machines = if answers["nodes"].is_null() { Vec::new() } else { Kubernetes.machines(&site).unwrap() };
    (machines, ["n1", "n2"].map(|machine| states.remove(machine)).into())
}

#[test]
fn what_a_real_cluster_has_answered_is_told_as_it_was() {
    let ended = || Some(JobState::Ended("exit 0 (Completed)".into()));
    let (machines, states) = recorded("complete");
    assert_eq!(machines.iter().map(|machine| &machine.ready).collect::<Vec<_>>(), [&Ready::Idle; 2]);
    assert_eq!(states, [ended(), ended()]);
    let (machines, states) = recorded("silent");
    assert_eq!(machines[0].ready, Ready::Away("NotReady: Kubelet stopped posting node status.".into()));
    assert_eq!(states, [Some(JobState::Running(Some("its node does not answer".into()))), ended()]);
    let (machines, _) = recorded("cordoned");
    assert_eq!([&machines[0].ready, &machines[1].ready], [&Ready::Idle, &Ready::Away("cordoned".into())]);
    for (moment, why) in [("drained", "1 node(s) were unschedulable"), ("busy", "1 Insufficient cpu")] {
        let (_, states) = recorded(moment);
        assert!(
            matches!(&states[0], Some(JobState::Waiting(reason)) if reason.starts_with("Pending: 0/2 nodes") && reason.contains(why)),
            "{moment}: {states:?}"
        );
    }
}

#[test]
fn a_bundle_comes_by_the_log_and_one_that_is_cut_or_another_is_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    #[expect(clippy::disallowed_methods, reason = "a bundle is made beside the door")]
    std::fs::write(dir.path().join("manifest.json"), "{\"files\": {}}").unwrap();
    let (log, word) = armor::written(&Directory::open(dir.path()).unwrap()).unwrap();
    let fetched = |log: &str, word: &str| {
        let order = order(&[]);
        let pods = json!({"items": [pod("n1", "1", &terminated(0, word))]});
        let system = with_log(&pods, log);
        let row = Row { job: Some("n1".into()), ..Row::new("n1") };
        let mut obstacles = Kubernetes.fetch(&site(&order, &system), &[&row]).unwrap();
        (obstacles.remove("n1"), system.exists(Path::new("/home/ada/fleet/archives/n1.tar.gz")))
    };
    let (text, manifest) = (format!("measuring\n{log}"), word.as_str());
    assert_eq!(fetched(&text, manifest), (None, true));
    assert_eq!(fetched(&text, ""), (None, true), "the last word may be missing");
    let (why, came) = fetched(&text[..text.len() / 2], manifest);
    assert!(!came && why.unwrap().contains("is cut"));
    let (why, came) = fetched(&text, "{\"files\": {\"x\": \"y\"}}");
    assert!(!came && why.unwrap().contains("does not match the manifest"));
    let (why, came) = fetched("", manifest);
    assert!(!came && why.unwrap().contains("no bundle"));
}

/// A cluster with the Job n1, these pods, and this log of the first one.
fn with_log(pods: &Value, log: &str) -> Memory {
    let jobs = json!({"items": [job("n1", &json!([]))]});
    let limit = format!("--limit-bytes={MOST_LOG}");
    Memory::new()
        .answer(&asked(&["get", "jobs"]), 0, &jobs.to_string(), "")
        .answer(&asked(&["get", "pods"]), 0, &pods.to_string(), "")
        .answer(&asked(&["logs", "--tail=-1", &limit, "n1-1"]), 0, log, "")
}

#[test]
fn a_pod_with_the_labels_of_a_job_must_be_the_jobs_and_on_its_machine() {
    let own = pod("n1", "1", &terminated(0, ""));
    let ended = [("Complete", "True")].map(|(kind, status)| json!({"type": kind, "status": status}));
    let mut made = pod("n1", "2", &terminated(7, ""));
    made["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    let mut of_another = made.clone();
    of_another["metadata"]["ownerReferences"] =
        json!([{"kind": "Job", "name": "n1", "uid": "other", "controller": true}]);
    let mut elsewhere = pod("n1", "2", &terminated(7, ""));
    elsewhere["spec"]["nodeName"] = "n2".into();
    for stranger in [made, of_another, elsewhere] {
        let order = order(&[]);
        let pods = json!({"items": [own, stranger]});
        let jobs = json!({"items": [job("n1", &json!(ended))]});
        let system = Memory::new().answer(&asked(&["get", "jobs"]), 0, &jobs.to_string(), "").answer(
            &asked(&["get", "pods"]),
            0,
            &pods.to_string(),
            "",
        );
        let row = Row { job: Some("n1".into()), ..Row::new("n1") };
        let states = Kubernetes.jobs(&site(&order, &system), &[&row]).unwrap();
        assert_eq!(states["n1"], JobState::Ended("exit 0 (Completed)".into()), "{stranger}");
        let system = with_log(&json!({"items": [stranger]}), "");
        let obstacles = Kubernetes.fetch(&site(&order, &system), &[&row]).unwrap();
        assert_eq!(obstacles["n1"], "its pod is gone, with its log");
        assert!(!system.calls().iter().any(|call| call.contains(&"logs".to_owned())), "{stranger}");
    }
}

#[test]
fn a_log_without_an_end_or_without_an_answer_stops_one_machine_only() {
    let order = order(&[]);
    let pods = json!({"items": [pod("n1", "1", &terminated(0, "")), pod("n2", "1", &terminated(0, ""))]});
    // n2 does not answer: its client ends with an error.
    let system = with_log(&pods, &"x".repeat(MOST_LOG));
    let system = system.answer(
        &asked(&["get", "jobs"]),
        0,
        &json!({"items": [job("n1", &json!([])), job("n2", &json!([]))]}).to_string(),
        "",
    );
    let rows = ["n1", "n2"].map(|name| Row { job: Some(name.into()), ..Row::new(name) });
    let obstacles = Kubernetes.fetch(&site(&order, &system), &rows.iter().collect::<Vec<_>>()).unwrap();
    assert!(obstacles["n1"].contains("more than 16 MiB"), "{obstacles:?}");
    assert!(obstacles.contains_key("n2"), "{obstacles:?}");
}

/// An order whose bundles come by a volume that is mounted here.
fn by_volume(here: &Path) -> Order {
    order(&[("volume", "claim:lab"), ("here", here.to_str().unwrap()), ("namespace", "default")])
}

#[test]
fn with_a_volume_a_bundle_is_made_on_its_node_and_its_archive_alone_lies_on_the_volume() {
    let with = by_volume(Path::new("/mnt/lab"));
    let job = objects::job(&with, &Row::new("n1"));
    let spec = &job["spec"]["template"]["spec"];
    let on_node = json!({"path": "/var/lib/tactus-fleet", "type": "DirectoryOrCreate"});
    assert_eq!(spec["volumes"][1], json!({"name": "bundles", "hostPath": on_node}));
    assert_eq!(spec["volumes"][3], json!({"name": "volume", "persistentVolumeClaim": {"claimName": "lab"}}));
    let container = &spec["containers"][0];
    assert_eq!(container["volumeMounts"][3], json!({"name": "volume", "mountPath": "/fleet/volume"}));
    let command: Vec<&str> =
        container["command"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let command = command.join(" ");
    for words in [
        "--bundle /fleet/bundles/0badcafe/n1",
        "--archive /fleet/volume/0badcafe-archives/n1.tar.gz",
        "--word /dev/termination-log",
    ] {
        assert!(command.contains(words), "{command}");
    }
    assert!(!command.contains("--log"), "{command}");
    let without = objects::job(&order(&[]), &Row::new("n1"));
    assert_eq!(without["spec"]["template"]["spec"]["volumes"].as_array().unwrap().len(), 3);
}

#[test]
fn an_archive_on_a_volume_is_the_one_whose_sum_its_own_pod_has_told_or_none() {
    let here = tempfile::tempdir().unwrap();
    let order = by_volume(here.path());
    let row = Row { job: Some("n1".into()), ..Row::new("n1") };
    let fetch = |status: &Value| {
        let system = with_log(&json!({"items": [pod("n1", "1", status)]}), "");
        let obstacle = Kubernetes.fetch(&site(&order, &system), &[&row]).unwrap().remove("n1");
        assert!(!system.calls().iter().any(|call| call.contains(&"logs".to_owned())), "{status}");
        (obstacle, system.read(Path::new("/home/ada/fleet/archives/n1.tar.gz")).ok())
    };
    let refused = |status: &Value, why: &str| {
        let (obstacle, came) = fetch(status);
        assert!(came.is_none() && obstacle.as_ref().is_some_and(|told| told.contains(why)), "{obstacle:?}");
    };
    let word = armor::archive_word(&sha256(b"an archive"));
    let told = terminated(0, &word);
    refused(&told, "no bundle is on the volume");
    let dir = here.path().join("0badcafe-archives");
    #[expect(clippy::disallowed_methods, reason = "files of a volume, which is beside the door")]
    {
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(here.path().join("elsewhere"), "an archive").unwrap();
        std::os::unix::fs::symlink("../elsewhere", dir.join("n1.tar.gz")).unwrap();
    }
    refused(&told, "symbolic link");
    #[expect(clippy::disallowed_methods, reason = "files of a volume, which is beside the door")]
    {
        std::fs::remove_file(dir.join("n1.tar.gz")).unwrap();
        std::fs::write(dir.join("n1.tar.gz"), "an archive").unwrap();
    }
    assert_eq!(fetch(&told), (None, Some(b"an archive".to_vec())));
    // Any node may write there: an archive without the word of the node's own pod is not trusted.
    refused(&terminated(0, ""), "has not reported");
    refused(&terminated(0, "{\"files\": {}}"), "has not reported");
    refused(&terminated(0, &armor::archive_word(&sha256(b"another"))), "is not the archive whose checksum");
    refused(&json!({"phase": "Running"}), "has not ended");
    // Nor is the word of another container of its pod.
    let ended =
        |name: &str, message: &str| json!({"name": name, "state": {"terminated": {"message": message}}});
    let beside = |first: &str, second: &str| {
        let all = [ended("mesh", first), ended("tactus", second)];
        json!({"phase": "Succeeded", "containerStatuses": all})
    };
    refused(&beside(&word, ""), "has not reported");
    assert_eq!(fetch(&beside("", &word)).0, None);
}

#[test]
fn a_volume_is_a_claim_or_a_directory_and_is_mounted_here() {
    let system = Memory::new();
    let check = |options: &[(&str, &str)]| Kubernetes.check(&site(&order(options), &system)).is_ok();
    assert!(check(&[("volume", "claim:lab"), ("here", "/mnt/lab")]));
    assert!(check(&[("volume", "/mnt/lab"), ("here", "/mnt/lab")]));
    assert!(!check(&[("volume", "claim:lab")]));
    assert!(!check(&[("here", "/mnt/lab")]));
    assert!(!check(&[("volume", "claim:Lab/x"), ("here", "/mnt/lab")]));
    assert!(!check(&[("volume", "lab"), ("here", "/mnt/lab")]));
    assert!(!check(&[("volume", "/mnt/lab"), ("here", "lab")]));
    assert!(check(&[("volume", "/mnt/lab"), ("here", "/mnt/lab"), ("dir", "/var/lib/x")]));
    // Bundles are made where no other node can write.
    assert!(!check(&[("volume", "/mnt/lab"), ("here", "/mnt/lab"), ("dir", "/mnt/lab/x")]));
    assert!(!check(&[("volume", "/var/lib"), ("here", "/mnt/lab")]));
}

#[test]
fn an_image_must_be_named_and_cpus_be_whole() {
    let system = Memory::new();
    let without = Order { options: BTreeMap::new(), ..order(&[]) };
    assert!(Kubernetes.check(&site(&without, &system)).unwrap_err().to_string().contains("none is named"));
    for cpus in ["0", "1500m", "a"] {
        assert!(Kubernetes.check(&site(&order(&[("cpus", cpus)]), &system)).is_err(), "{cpus}");
    }
    assert!(Kubernetes.check(&site(&order(&[("cpus", "4")]), &system)).is_ok());
    for (time, holds) in [("3600", true), ("0", false), ("1h", false)] {
        assert_eq!(Kubernetes.check(&site(&order(&[("time", time)]), &system)).is_ok(), holds, "{time}");
    }
}
