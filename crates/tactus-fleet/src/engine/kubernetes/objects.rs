//! The objects for Kubernetes: a ConfigMap with the plan, and a Job for each node. They are JSON, which is also YAML,
//! so that no text from outside can become more than a text.

use serde_json::{Value, json};

use super::{LABEL, volume};
use crate::engine::script::{self, Places};
use crate::name::{as_told, sha256};
use crate::order::Order;
use crate::row::Row;

/// Where things are in a pod.
const PLAN: &str = "/fleet/plan";
const BUNDLES: &str = "/fleet/bundles";
const VOLUME: &str = "/fleet/volume";
/// In the container's own files: a volume of the kind emptyDir is everybody's to write to, and tactus believes nothing there.
const CACHE: &str = "/fleet/cache";
const GROUPS: &str = "/fleet/cgroup";
/// Where kubelets read a container's last word.
const LAST_WORD: &str = "/dev/termination-log";
/// The container that measures.
pub const CONTAINER: &str = "tactus";

/// The namespace of everything.
pub fn namespace(order: &Order) -> &str {
    order.option("namespace").unwrap_or("default")
}

/// The name of a machine's Job: it is a label's value too, so 63 characters at most.
pub fn name(order: &Order, machine: &str) -> String {
    let slug: String =
        machine.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(30).collect();
    format!("tactus-{}-{}-{}", order.id, slug.trim_matches('-'), &sha256(machine.as_bytes())[..8])
}

fn labels(order: &Order) -> Value {
    json!({"app.kubernetes.io/name": "tactus", LABEL: order.id})
}

/// The ConfigMap with the plan.
pub fn plan(order: &Order, text: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": format!("tactus-{}", order.id), "namespace": namespace(order), "labels": labels(order)},
        "data": {"plan.toml": text},
        // A plan can have commands, which run as root on every node.
        "immutable": true,
    })
}

/// The Job of a machine.
pub fn job(order: &Order, row: &Row) -> Value {
    let job = name(order, &row.machine);
    let metadata = json!({
        "name": job,
        "namespace": namespace(order),
        "labels": labels(order),
        "annotations": {"tactus.fleet/machine": row.machine},
    });
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            // The command is safe to repeat: a restarted pod resumes the bundle.
            "backoffLimit": 2,
            "template": {"metadata": {"labels": labels(order)}, "spec": pod(order, &job, row)},
        },
    })
}

fn pod(order: &Order, job: &str, row: &Row) -> Value {
    let stays = |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute"});
    // A node that does not answer measures on: its pod is not given up for another one.
    let mut tolerations =
        vec![stays("node.kubernetes.io/not-ready"), stays("node.kubernetes.io/unreachable")];
    tolerations.extend(order.option("tolerate").map(|key| json!({"key": key, "operator": "Exists"})));
    let this_node = json!({"key": "metadata.name", "operator": "In", "values": [row.machine]});
    let terms = json!({"nodeSelectorTerms": [{"matchFields": [this_node]}]});
    let mut volumes = vec![
        json!({"name": "plan", "configMap": {"name": format!("tactus-{}", order.id)}}),
        // A directory of the node, even with a volume: root on any node can write to the whole volume.
        json!({"name": "bundles", "hostPath": {"path": volume::on_node(order), "type": "DirectoryOrCreate"}}),
        json!({"name": "cgroup", "hostPath": {"path": "/sys/fs/cgroup", "type": "Directory"}}),
    ];
    volumes.extend(volume::source(order));
    let mut pod = json!({
        "restartPolicy": "Never",
        // It asks the cluster for nothing.
        "automountServiceAccountToken": false,
        // One measurement at a time on a machine: the lock is in the node's network.
        "hostNetwork": true,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        "tolerations": tolerations,
        "containers": [container(order, job, row)],
        "volumes": volumes,
    });
    if let Some(account) = order.option("account") {
        pod["serviceAccountName"] = account.into();
    }
    pod
}

fn container(order: &Order, job: &str, row: &Row) -> Value {
    let bundle = format!("{BUNDLES}/{}/{}", order.id, row.key);
    let plan = format!("{PLAN}/plan.toml");
    let by_volume = volume::given(order).map(|_| format!("{VOLUME}/{}", volume::archive(order, row)));
    let places = Places { plan: &plan, bundle: &bundle, home: None, archive: by_volume.as_deref() };
    let mut words = script::job(order, order.option("program").unwrap_or("/usr/bin/tactus"), &places);
    // Behind `fleet job`, before what is for `tactus run`.
    let root = format!("{GROUPS}/cpu");
    let way = if by_volume.is_none() { "--log" } else { "--word" };
    words.splice(3..3, [way, LAST_WORD, "--join", root.as_str()].map(str::to_owned));
    // $(NAME) in a command is a variable; $$ is a dollar.
    let command: Vec<String> = words.iter().map(|word| word.replace('$', "$$")).collect();
    let share = json!({
        "cpu": order.option("cpus").unwrap_or("2"),
        "memory": order.option("memory").unwrap_or("1Gi"),
    });
    let mut mounts = vec![
        json!({"name": "plan", "mountPath": PLAN, "readOnly": true}),
        json!({"name": "bundles", "mountPath": BUNDLES}),
        json!({"name": "cgroup", "mountPath": GROUPS}),
    ];
    mounts.extend(by_volume.is_some().then(|| json!({"name": "volume", "mountPath": VOLUME})));
    let told = as_told(&row.machine);
    let named = if told == row.machine {
        json!({"name": "TACTUS_MACHINE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}})
    } else {
        json!({"name": "TACTUS_MACHINE", "value": told})
    };
    json!({
        "name": CONTAINER,
        "image": order.option("image").unwrap_or_default(),
        "command": command,
        "env": [
            named,
            {"name": "TACTUS_JOB", "value": format!("kubernetes:{}/{job}", namespace(order))},
            {"name": "TACTUS_CACHE_DIR", "value": CACHE},
        ],
        // Real-time priorities need a budget of the controller `cpu`. If the kernel divides the budget among groups
        // (RT_GROUP_SCHED), the groups of pods have none. The root of that controller has all of it, and only a
        // privileged pod may join it.
        "securityContext": {"privileged": true},
        // Requests that are the limits, of whole CPUs: the kubelet's static policy gives them to this pod alone.
        "resources": {"requests": share.clone(), "limits": share},
        "terminationMessagePath": LAST_WORD,
        "volumeMounts": mounts,
    })
}
