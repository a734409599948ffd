//! Kubernetes: the kubelet's configuration, OpenShift's profile, and a pod.

use super::comment::{Marks, comment, header};
use super::{File, GenerateError, GenerateRequest, Generator, Output, Page, Placement, Purpose, Size};

/// The entry of the table.
pub static ENTRY: Generator = Generator {
    name: "kubernetes",
    about: "Three documents. The first is a part of the kubelet's configuration that gives whole isolated cores of \
one NUMA node to guaranteed pods. The second is a PerformanceProfile (performance.openshift.io/v2) with the same \
settings for OpenShift. The third is a guaranteed pod that requests such CPUs. Use the first or the second, never \
both.",
    purpose: Purpose::Container,
    generate,
};

/// Memory that the node keeps for itself, in MiB, and below which the kubelet evicts. The memory
/// manager starts only if what is reserved on the nodes is their sum.
const SYSTEM: u64 = 1024;
const EVICTION: u64 = 100;

fn generate(request: &GenerateRequest<'_>) -> Result<Output, GenerateError> {
    let placement = request.placement(1)?;
    let (memory, page) = request.memory()?;
    let file = |name: &str, belongs: &str, text| File {
        name: name.into(),
        belongs: belongs.into(),
        mode: 0o644,
        text,
    };
    let pod = format!("{}-pod.yaml", request.options.name);
    Ok(Output {
        files: vec![
            file(
                "50-tactus-kubelet.conf",
                "/etc/kubernetes/kubelet.conf.d/50-tactus-kubelet.conf (kubelet --config-dir)",
                kubelet(request, &placement),
            ),
            file(
                "tactus-performance-profile.yaml",
                "OpenShift: oc apply -f tactus-performance-profile.yaml",
                profile(request, &placement, memory, page),
            ),
            file(&pod, &format!("kubectl apply -f {pod}"), pod_of(request, &placement, memory, page)),
        ],
        notes: [
            "the first two files have the same settings for two kinds of cluster: the kubelet's for plain \
Kubernetes, the PerformanceProfile for OpenShift"
                .to_owned(),
        ]
        .into_iter()
        .chain(placement.scheduled())
        .collect(),
    })
}

/// A line with its check.
pub fn line(indent: &str, check: &str, why: &str, text: &str) -> String {
    comment(indent, &format!("{check}: {why}")) + indent + text + "\n"
}

fn kubelet(request: &GenerateRequest<'_>, placement: &Placement) -> String {
    let mut text = header(
        request,
        Marks::Hash,
        "kubernetes",
        "merge it into the kubelet's configuration, or put it in its --config-dir (as ...conf); drain the node, stop \
the kubelet, remove /var/lib/kubelet/cpu_manager_state and memory_manager_state, start it",
        "drain the node, remove it and the same two files, start the kubelet",
        &[
            "isolcpus: boot the node with the isolated CPUs (generate grub); Kubernetes does not isolate CPUs from \
the kernel.",
        ],
    );
    text += "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
    text += &line(
        "",
        "ctr-cpuset",
        "guaranteed pods with whole CPUs get dedicated CPUs",
        "cpuManagerPolicy: static",
    );
    text += "cpuManagerPolicyOptions:\n";
    text += &line(
        "  ",
        "smt",
        "whole cores only: no pod shares a core with another",
        "full-pcpus-only: \"true\"",
    );
    text += &line(
        "  ",
        "housekeeping",
        "no pod at all on the reserved CPUs. On by default from Kubernetes 1.32; older ones refuse it: remove it \
there",
        "strict-cpu-reservation: \"true\"",
    );
    text += &line(
        "",
        "housekeeping",
        "the kernel, the kubelet and all system daemons run here",
        &format!("reservedSystemCPUs: \"{}\"", placement.housekeeping),
    );
    text += &line(
        "",
        "numa-locality",
        "CPUs, memory and devices of one node, or the pod is not admitted",
        "topologyManagerPolicy: single-numa-node",
    );
    text += &line(
        "",
        "numa-locality",
        "memory too; it needs all lines below, and the sum must be exact",
        "memoryManagerPolicy: Static",
    );
    text +=
        &format!("systemReserved:\n  memory: {SYSTEM}Mi\nevictionHard:\n  memory.available: {EVICTION}Mi\n");
    text += &comment(
        "",
        &format!(
            "kubeReserved + systemReserved + evictionHard: if you set kubeReserved, add it to {}Mi",
            SYSTEM + EVICTION
        ),
    );
    text +=
        &format!("reservedMemory:\n  - numaNode: 0\n    limits:\n      memory: {}Mi\n", SYSTEM + EVICTION);
    text
}

fn profile(request: &GenerateRequest<'_>, placement: &Placement, memory: Size, page: Page) -> String {
    let mut text = header(
        request,
        Marks::Hash,
        "kubernetes",
        "oc apply -f tactus-performance-profile.yaml: the nodes of the pool reboot one after the other",
        "oc delete performanceprofile tactus: they reboot again",
        &[
            "Its node selector matches a pool worker-rt; label the nodes, and create a MachineConfigPool of that \
name.",
        ],
    );
    text += "apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\nmetadata:\n  name: tactus\nspec:\n  cpu:\n";
    text += &line(
        "    ",
        "housekeeping",
        "the rest of the CPUs; together they must be all online CPUs",
        &format!("reserved: \"{}\"", placement.housekeeping),
    );
    text +=
        &line("    ", "isolcpus", "CPUs of real-time pods", &format!("isolated: \"{}\"", placement.isolated));
    text += &line(
        "    ",
        "isolcpus",
        "isolated at boot; the application must pin every thread inside a pod",
        "balanceIsolated: false",
    );
    text += &line(
        "  ",
        "irq-affinity",
        "no device interrupts on the isolated CPUs, whatever the pods request",
        "globallyDisableIrqLoadBalancing: true",
    );
    if page != Page::Base {
        let count = memory.0 / page.bytes();
        text += &comment(
            "  ",
            &format!("hugepages-1g: {memory} for one pod; a default of 1G removes the pool of 2M pages"),
        );
        text += &format!(
            "  hugepages:\n    defaultHugepagesSize: {0}\n    pages:\n      - size: {0}\n        count: {count}\n",
            page.word()
        );
        if let Some(node) = placement.node {
            text += &format!("        node: {node}\n");
        }
    }
    text += &line("  ", "preempt-rt", "the real-time kernel of the distribution", "realTimeKernel:");
    text += "    enabled: true\n";
    text += &line("  ", "numa-locality", "CPUs, memory and devices of one node", "numa:");
    text += "    topologyPolicy: single-numa-node\n";
    text += &line(
        "  ",
        "rt-throttling",
        "no throttling of real-time threads, and stalld instead; no deep idle states (c-states) at the cost of \
power. Risk: the operator also sets nosoftlockup, nmi_watchdog=0, mce=off and tsc=reliable at boot, so that lockups, \
machine errors and a wrong clock are not reported. It always sets iommu=pt, so that host devices may write anywhere",
        "workloadHints:",
    );
    text += "    realTime: true\n    highPowerConsumption: true\n";
    let own: Vec<_> = request
        .kernel_parameters()
        .into_iter()
        .filter(|(name, ..)| !SET_BY_OPERATOR.contains(name))
        .collect();
    if !own.is_empty() {
        text += "  # Boot parameters of the plan that the operator does not set.\n  additionalKernelArgs:\n";
        let mut seen = Vec::new();
        for (name, value, check) in own {
            if seen.contains(&name) {
                continue;
            }
            seen.push(name);
            let word = if value.is_empty() { name.to_owned() } else { format!("{name}={value}") };
            text += &comment("    ", &(request.says)(check));
            text += &format!("    - \"{}\"\n", word.replace('\\', "\\\\").replace('"', "\\\""));
        }
    }
    text + "  nodeSelector:\n    node-role.kubernetes.io/worker-rt: \"\"\n"
}

/// The parameters that the operator's own TuneD profiles put on the command line of a node
/// (assets/performanceprofile/tuned of cluster-node-tuning-operator).
const SET_BY_OPERATOR: [&str; 20] = [
    "skew_tick",
    "tsc",
    "rcupdate.rcu_normal_after_boot",
    "rcutree.nohz_full_patience_delay",
    "isolcpus",
    "intel_pstate",
    "amd_pstate",
    "nosoftlockup",
    "nohz",
    "nohz_full",
    "rcu_nocbs",
    "irqaffinity",
    "systemd.cpu_affinity",
    "tuned.non_isolcpus",
    "nmi_watchdog",
    "mce",
    "intel_iommu",
    "iommu",
    "processor.max_cstate",
    "intel_idle.max_cstate",
];

/// Annotations that reserve a pod's CPUs in CRI-O.
pub fn annotations(indent: &str) -> String {
    [
        ("isolcpus", "its CPUs are not balanced", "cpu-load-balancing.crio.io: \"disable\""),
        ("ctr-cfs-quota", "no quota, which would stop it", "cpu-quota.crio.io: \"disable\""),
        ("irq-affinity", "no device interrupts on its CPUs", "irq-load-balancing.crio.io: \"disable\""),
    ]
    .map(|(check, why, text)| line(indent, check, why, text))
    .concat()
}

fn pod_of(request: &GenerateRequest<'_>, placement: &Placement, memory: Size, page: Page) -> String {
    let name = &request.options.name;
    let mut text = header(
        request,
        Marks::Hash,
        "kubernetes",
        &format!("put in your image, then kubectl apply -f {name}-pod.yaml"),
        &format!("kubectl delete pod {name}"),
        &[
            "ctr-separation: a pod shares the node's kernel: the node itself must be tuned.",
            "The annotations belong to CRI-O, and work only with OpenShift's runtime class; containerd ignores them.",
        ],
    );
    text += &format!("apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  annotations:\n");
    text += &annotations("    ");
    text += "spec:\n";
    text += &comment("  ", "On OpenShift, for the annotations above:");
    text += "  # runtimeClassName: performance-tactus\n  containers:\n    - name: rt\n      image: IMAGE\n";
    text += &line(
        "      ",
        "ctr-caps-limits",
        "real-time priorities and mlockall. Risk: it can take its CPUs and the memory from all other programs",
        "securityContext:",
    );
    text += "        capabilities:\n          add: [\"SYS_NICE\", \"IPC_LOCK\"]\n";
    text += &line(
        "      ",
        "ctr-cpuset",
        "requests and limits are equal and CPUs whole: only then the pod is guaranteed and has dedicated CPUs",
        "resources:",
    );
    let cpus = placement.count();
    // Beside huge pages a pod needs ordinary memory for its own text and stacks.
    let (huge, ordinary) = match page {
        Page::Base => (None, memory.to_string()),
        Page::M2 => (Some("hugepages-2Mi"), "256M".into()),
        Page::G1 => (Some("hugepages-1Gi"), "256M".into()),
    };
    for part in ["requests", "limits"] {
        text += &format!("        {part}:\n          cpu: \"{cpus}\"\n          memory: {ordinary}i\n");
        if let Some(huge) = huge {
            text += &format!("          {huge}: {memory}i\n");
        }
    }
    if huge.is_some() {
        text += "      volumeMounts:\n        - name: hugepages\n          mountPath: /dev/hugepages\n  volumes:\n    - name: hugepages\n      emptyDir:\n        medium: HugePages\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use tactus_model::change::Target;

    use super::super::testing::{shown, three};
    use super::ENTRY;

    #[test]
    fn the_documents_of_each_machine() {
        for (name, machine) in three() {
            let machine = machine.planned();
            insta::assert_snapshot!(format!("kubernetes_{name}"), shown(&machine.generate(&ENTRY).unwrap()));
        }
    }

    #[test]
    fn what_the_operator_sets_by_itself_is_not_said_again() {
        let [(_, machine), ..] = three();
        let boot = |name: &str| Target::Kernel { parameter: name.into() };
        let machine = machine
            .change("watchdogs", boot("nmi_watchdog"), "0")
            .change("iommu-passthrough", boot("intel_iommu"), "on")
            .change("iommu-passthrough", boot("iommu"), "pt")
            .change("audit", boot("audit"), "0");
        let text = machine.generate(&ENTRY).unwrap().files.remove(1).text;
        let own: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("    - \"")).collect();
        assert_eq!(own, ["audit=0\""]);
    }
}
