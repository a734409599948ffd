//! Kubernetes and OpenShift: one Job per node, pinned to it by the node's name, guaranteed and privileged. Its bundle
//! stays on the node until it is finished, so that a restarted pod resumes it. Then the bundle comes by the pod's
//! log, with its manifest as the container's last word; or by a volume, as an archive whose checksum is that word.

mod objects;
mod volume;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::{
    Engine, File, Machine, OptionEntry, Ready, Site, Submitted, client, limit, plain_dir, plain_options, ran,
    time,
};
use crate::armor;
use crate::error::FleetError;
use crate::name::sha256;
use crate::order::Order;
use crate::pack;
use crate::pending::JobState;
use crate::row::Row;

/// The entry of the table.
pub static ENTRY: Kubernetes = Kubernetes;

/// The engine.
pub struct Kubernetes;

const OPTIONS: &[OptionEntry] = &[
    OptionEntry { name: "image", about: "the image of tactus, as the nodes can pull it; required" },
    OptionEntry { name: "namespace", about: "the namespace of the Jobs; default: default" },
    OptionEntry { name: "context", about: "the context of your kubeconfig; default: the current one" },
    OptionEntry { name: "program", about: "tactus in the image; default: /usr/bin/tactus" },
    OptionEntry { name: "cpus", about: "whole CPUs reserved for each pod; default: 2" },
    OptionEntry { name: "memory", about: "memory of each pod; default: 1Gi" },
    OptionEntry { name: "dir", about: "where bundles are made on the nodes; default: /var/lib/tactus-fleet" },
    OptionEntry {
        name: "volume",
        about: "a volume for the bundles of the pods, instead of the log: claim:NAME of a \
PersistentVolumeClaim, or a directory that every node has mounted; needs `here`",
    },
    OptionEntry { name: "here", about: "where that volume is mounted on the machine that runs tactus" },
    OptionEntry { name: "tolerate", about: "the key of a taint that pods tolerate" },
    OptionEntry { name: "account", about: "the service account of the pods, which may be privileged" },
    OptionEntry {
        name: "time",
        about: "seconds, and 10 min more, after which a Job that has not ended counts as failed; default: 86400",
    },
    OptionEntry {
        name: "busy",
        about: "how long a job waits for another measurement of its node; default: 1h",
    },
];

/// The most that is read of a pod's log, in bytes: kubelets keep 10 MB by default, and more than this is taken from no client.
const MOST_LOG: usize = 16 << 20;
/// The number of logs that are read at once.
const CLIENTS: usize = 4;
/// The label of all objects of a fleet.
const LABEL: &str = "tactus.fleet/id";

impl Engine for Kubernetes {
    fn name(&self) -> &'static str {
        "kubernetes"
    }

    fn about(&self) -> &'static str {
        "One Job per node of Kubernetes or OpenShift, by kubectl: guaranteed CPUs, privileged, in the node's \
network, the bundle through the pod's log. Its --select takes a selector of labels of nodes, as in `kubectl \
get nodes --selector`, or `all`."
    }

    fn options(&self) -> &'static [OptionEntry] {
        OPTIONS
    }

    fn pause(&self) -> Duration {
        Duration::from_secs(10)
    }

    /// The pod of a node that does not answer is never given up, and one whose image is not found waits for it for ever.
    fn limit(&self, order: &Order) -> Option<Duration> {
        Some(limit(order))
    }

    fn check(&self, site: &Site<'_>) -> Result<(), FleetError> {
        plain_options(site.order, OPTIONS)?;
        plain_dir(&site.dir)?;
        if site.order.option("image").is_none() {
            return Err(FleetError::new(
                "Kubernetes needs an image, but none is named",
                "use --with image=REGISTRY/tactus:VERSION (`scripts/package.sh` makes one)",
            ));
        }
        if time(site.order).is_none() {
            return Err(FleetError::new(
                format!(
                    "--with time={}: this is not a number of seconds",
                    site.order.option("time").unwrap_or_default()
                ),
                "use a whole number above 0, such as 86400",
            ));
        }
        volume::check(site.order)?;
        let cpus = site.order.option("cpus").unwrap_or("1").parse::<u32>();
        if cpus.is_ok_and(|cpus| cpus > 0) {
            return Ok(());
        }
        Err(FleetError::new(
            "--with cpus: only whole CPUs are reserved for a pod (the kubelet's static policy)",
            "use 1, 2 or more",
        ))
    }

    fn machines(&self, site: &Site<'_>) -> Result<Vec<Machine>, FleetError> {
        let select = &site.order.select;
        let selector = (select != "all").then(|| format!("--selector={select}"));
        let argv = kubectl(site, &["get", "nodes", "--output=json"], selector);
        let nodes: List<Value> = parsed(&client(site.system, &argv)?.stdout)?;
        Ok(nodes.items.iter().filter_map(machine).collect())
    }

    fn render(&self, site: &Site<'_>, rows: &[&Row]) -> Vec<File> {
        let text =
            |object: &Value| serde_json::to_string_pretty(object).map(|text| text + "\n").unwrap_or_default();
        let plan = String::from_utf8_lossy(&site.system.read(&site.path("plan.toml")).unwrap_or_default())
            .into_owned();
        let plan = File { name: "plan.json".into(), text: text(&objects::plan(site.order, &plan)) };
        let jobs = rows.iter().filter(|row| refused(&row.machine).is_none()).map(|row| File {
            name: format!("job-{}.json", row.key),
            text: text(&objects::job(site.order, row)),
        });
        std::iter::once(plan).chain(jobs).collect()
    }

    fn submit(&self, site: &Site<'_>, rows: &[&Row]) -> Result<Vec<Submitted>, FleetError> {
        let usable: Vec<&Row> = rows.iter().copied().filter(|row| refused(&row.machine).is_none()).collect();
        let file = |name: &str| format!("--filename={}", site.path("objects").join(name).display());
        if usable.is_empty() {
            return Ok(rows
                .iter()
                .map(|row| Submitted::Refused(refused(&row.machine).unwrap_or_default()))
                .collect());
        }
        client(site.system, &kubectl(site, &["apply"], [file("plan.json")]))?;
        // A Job is not changed: one that was there before makes room.
        let old: Vec<String> = usable
            .iter()
            .filter(|row| row.attempts > 0)
            .map(|row| objects::name(site.order, &row.machine))
            .collect();
        if !old.is_empty() {
            client(
                site.system,
                &kubectl(site, &["delete", "jobs", "--ignore-not-found", "--cascade=foreground"], old),
            )?;
        }
        let files = usable.iter().map(|row| file(&format!("job-{}.json", row.key)));
        let applied = ran(site.system, &kubectl(site, &["apply", "--output=name"], files))?;
        let taken = applied.text();
        Ok(rows
            .iter()
            .map(|row| match refused(&row.machine) {
                Some(reason) => Submitted::Refused(reason),
                None => {
                    let name = objects::name(site.order, &row.machine);
                    if taken.lines().any(|line| line.trim() == format!("job.batch/{name}")) {
                        Submitted::As(name)
                    } else {
                        Submitted::Refused(format!("kubectl: {}", applied.words()))
                    }
                }
            })
            .collect())
    }

    fn jobs(&self, site: &Site<'_>, rows: &[&Row]) -> Result<BTreeMap<String, JobState>, FleetError> {
        let (jobs, pods) = (get(site, "jobs")?, get(site, "pods")?);
        let state = |row: &&&Row| {
            let name = row.job.as_deref()?;
            let job = jobs.iter().find(|job| job["metadata"]["name"] == name)?;
            Some((row.key.clone(), job_state(job, newest(&pods, job, &row.machine))))
        };
        Ok(rows.iter().filter_map(|row| state(&row)).collect())
    }

    fn fetch(&self, site: &Site<'_>, rows: &[&Row]) -> Result<BTreeMap<String, String>, FleetError> {
        let open: Vec<&Row> = rows.iter().copied().filter(|row| row.job.is_some()).collect();
        if open.is_empty() {
            return Ok(BTreeMap::new());
        }
        let (jobs, pods) = (get(site, "jobs")?, get(site, "pods")?);
        let by_volume = volume::given(site.order).is_some();
        let came = |row: &Row| {
            let pod = ended_pod(row, &jobs, &pods)?;
            if by_volume { volume::fetched(site, row, last_word(pod)) } else { fetched(site, row, pod) }
        };
        // Several at once, because kubectl and kubelets answer slowly. Bundles on a volume are only read.
        let next = AtomicUsize::new(0);
        let some = || {
            let taken = std::iter::from_fn(|| open.get(next.fetch_add(1, Ordering::Relaxed)));
            taken.filter_map(|row| Some((row.key.clone(), came(row).err()?))).collect::<Vec<_>>()
        };
        let clients = if by_volume { 1 } else { CLIENTS.min(open.len()) };
        Ok(std::thread::scope(|scope| {
            let clients: Vec<_> = (0..clients).map(|_| scope.spawn(some)).collect();
            let ended = clients.into_iter().map(std::thread::ScopedJoinHandle::join);
            ended.flat_map(|lost| lost.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        }))
    }
}

#[derive(Deserialize)]
struct List<T> {
    items: Vec<T>,
}

/// kubectl with these words, in the fleet's context and namespace.
fn kubectl(site: &Site<'_>, words: &[&str], further: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut argv = vec!["kubectl".to_owned()];
    argv.extend(site.order.option("context").map(|context| format!("--context={context}")));
    argv.push(format!("--namespace={}", objects::namespace(site.order)));
    argv.extend(words.iter().map(|word| (*word).to_owned()));
    argv.extend(further);
    argv
}

fn parsed<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, FleetError> {
    serde_json::from_slice(bytes).map_err(|error| {
        FleetError::new(
            format!("kubectl printed no list of objects: {error}"),
            "is it the kubectl of \
            Kubernetes?",
        )
    })
}

/// The objects of this fleet.
fn get(site: &Site<'_>, kind: &str) -> Result<Vec<Value>, FleetError> {
    let label = format!("--selector={LABEL}={}", site.order.id);
    let argv = kubectl(site, &["get", kind, "--output=json"], [label]);
    Ok(parsed::<List<Value>>(&client(site.system, &argv)?.stdout)?.items)
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The condition of an object that has this type.
fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object.pointer("/status/conditions")?.as_array()?.iter().find(|condition| condition["type"] == kind)
}

fn machine(node: &Value) -> Option<Machine> {
    let name = node.pointer("/metadata/name")?.as_str()?.to_owned();
    let is_ready = condition(node, "Ready").is_some_and(|ready| ready["status"] == "True");
    let ready = if !is_ready {
        let why = condition(node, "Ready").map(|ready| text(ready, "/message")).unwrap_or_default();
        Ready::Away(format!("NotReady: {why}"))
    } else if node.pointer("/spec/unschedulable").and_then(Value::as_bool) == Some(true) {
        Ready::Away("cordoned".into())
    } else {
        Ready::Idle
    };
    Some(Machine { name, ready })
}

/// A name that no node can have: those are names of DNS.
fn refused(machine: &str) -> Option<String> {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = machine.as_bytes();
    let holds = bytes.len() <= 253
        && bytes.iter().all(|byte| inner(*byte))
        && ends(bytes.first())
        && ends(bytes.last());
    (!holds).then(|| format!("{machine:?} is not a name of a node: nothing is started there"))
}

/// The last pod of a Job, on its machine or on none yet. Any user who may make pods can set labels. So the Job's
/// controller must own the pod, by the Job's uid.
fn newest<'a>(pods: &'a [Value], job: &Value, machine: &str) -> Option<&'a Value> {
    let uid = text(job, "/metadata/uid");
    let owns = |owner: &Value| {
        text(owner, "/kind") == "Job" && text(owner, "/uid") == uid && owner["controller"] == true
    };
    let of_job = |pod: &&Value| {
        let owners = pod.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let node = text(pod, "/spec/nodeName");
        !uid.is_empty()
            && owners.is_some_and(|owners| owners.iter().any(owns))
            && (node.is_empty() || node == machine)
    };
    pods.iter().filter(of_job).max_by_key(|pod| text(pod, "/metadata/creationTimestamp"))
}

/// The state of a pod's container that measures: others may have been put beside it.
fn container(pod: &Value) -> Option<&Value> {
    let all = pod.pointer("/status/containerStatuses")?.as_array()?;
    all.iter().find(|status| status["name"] == objects::CONTAINER)?.get("state")
}

/// The last word of a pod's container. It is in the pod's status, which only the kubelet of its node (Node
/// authorizer, NodeRestriction) and users with the right to `pods/status` can write.
fn last_word(pod: &Value) -> &str {
    container(pod).map(|state| text(state, "/terminated/message")).unwrap_or_default()
}

fn job_state(job: &Value, pod: Option<&Value>) -> JobState {
    let is = |kind: &str| condition(job, kind).is_some_and(|condition| condition["status"] == "True");
    let container = pod.and_then(container);
    let ended = || {
        let terminated = container.and_then(|state| state.get("terminated"))?;
        Some(format!("exit {} ({})", terminated["exitCode"], text(terminated, "/reason")))
    };
    if is("Complete") {
        return JobState::Ended(ended().unwrap_or_else(|| "Complete".into()));
    }
    if is("Failed") {
        let why = condition(job, "Failed").map(|failed| text(failed, "/message")).unwrap_or_default();
        return JobState::Ended([ended().unwrap_or_else(|| "Failed".into()), why.to_owned()].join(": "));
    }
    let Some(pod) = pod else { return JobState::Waiting("it has no pod yet".into()) };
    if let Some(waiting) = container.and_then(|state| state.get("waiting")) {
        return JobState::Waiting(format!("{}: {}", text(waiting, "/reason"), text(waiting, "/message")));
    }
    let says = |kind, status| condition(pod, kind).is_some_and(|condition| condition["status"] == status);
    match text(pod, "/status/phase") {
        // The controller of nodes takes Ready away, and leaves what the containers last said of themselves.
        "Running" if says("Ready", "False") && says("ContainersReady", "True") => {
            JobState::Running(Some("its node does not answer".into()))
        }
        "Running" => JobState::Running(None),
        "Pending" => {
            let why = condition(pod, "PodScheduled")
                .map(|scheduled| text(scheduled, "/message"))
                .unwrap_or_default();
            JobState::Waiting(format!("Pending: {why}").trim_end_matches([' ', ':']).to_owned())
        }
        phase => JobState::Running(Some(phase.to_owned())),
    }
}

fn has_ended(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
        || container(pod).is_some_and(|state| state.get("terminated").is_some())
}

/// The last pod of a row on its machine, which has ended; else why it is missing.
fn ended_pod<'a>(row: &Row, jobs: &[Value], pods: &'a [Value]) -> Result<&'a Value, String> {
    let job = row.job.as_deref().and_then(|job| jobs.iter().find(|found| found["metadata"]["name"] == job));
    let pod = job.and_then(|job| newest(pods, job, &row.machine));
    let pod = pod.filter(|pod| text(pod, "/spec/nodeName") == row.machine);
    let pod = pod.ok_or("its pod is gone, with its log")?;
    // Of a node that does not answer a log is waited for half a minute, each; and who runs has not said all yet.
    if has_ended(pod) { Ok(pod) } else { Err("its pod has not ended".into()) }
}

/// Brings the bundle of a row from the log of its pod; else why not.
fn fetched(site: &Site<'_>, row: &Row, pod: &Value) -> Result<(), String> {
    let name = text(pod, "/metadata/name").to_owned();
    if refused(&name).is_some() {
        return Err(format!("{name:?} is not a name of a pod"));
    }
    let limit = format!("--limit-bytes={MOST_LOG}");
    let argv = kubectl(site, &["logs", "--tail=-1", &limit], [name]);
    let log = ran(site.system, &argv).map_err(|error| error.to_string())?;
    if !log.success() {
        return Err(format!("kubectl logs: {}", log.words()));
    }
    if log.stdout.len() >= MOST_LOG {
        return Err(format!("its log has more than {} MiB: use a volume for such bundles", MOST_LOG >> 20));
    }
    let bytes = armor::read(&log.text())?;
    // The last word came by another way than the log.
    let (said, found) =
        (armor::manifest_sum(last_word(pod)), pack::manifest(&bytes[..]).map(|bytes| sha256(&bytes)));
    if said.is_some() && said != found {
        return Err("the bundle in the job's log does not match the manifest that the pod reported".into());
    }
    let file = site.path(&row.archive());
    site.system.install(&file, &bytes, 0o600).map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests;
