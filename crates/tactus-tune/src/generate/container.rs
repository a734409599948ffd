//! Common parts of docker and podman: the flags of a real-time container, each with its check.

use tactus_audit::Subject;
use tactus_model::text::quoted;

use super::comment::{Marks, comment, header};
use super::{File, GenerateError, GenerateRequest, Output, Placement};

/// A flag with its check and its reason.
struct Flag {
    flag: String,
    check: &'static str,
    why: &'static str,
}

/// The script by which `program` runs a container.
///
/// # Errors
/// As [`GenerateRequest::placement`].
pub fn generate(request: &GenerateRequest<'_>, program: &str) -> Result<Output, GenerateError> {
    let placement = request.placement(1)?;
    let name = &request.options.name;
    let file = format!("{name}-{program}.sh");
    let group = Group::of(request.subject);
    let mut notes = Vec::new();
    if !placement.idle.is_empty() {
        notes.push(format!(
            "smt: CPUs {} are sibling threads of the container's CPUs and must stay idle; better turn SMT off",
            placement.idle
        ));
    }
    notes.extend(placement.mixture());
    notes.extend(group.note().map(str::to_owned));
    let mut more = vec![
        "ctr-separation: a container shares the host's kernel, so the host itself must be tuned and isolated.",
        "isolcpus: isolated CPUs are not balanced. Inside, pin each busy thread to a separate CPU, or all pile up on \
one.",
    ];
    more.extend(notes.iter().map(String::as_str));
    let install = format!("run it as root: ./{file} [OPTION...] IMAGE [COMMAND...]");
    let undo = format!(
        "{program} rm -f {name}{}",
        if group == Group::Budget {
            "; find /sys/fs/cgroup/*/tactus-rt -depth -type d -exec rmdir {} +"
        } else {
            ""
        }
    );
    let mut text = "#!/bin/sh\n".to_owned();
    text += &header(request, Marks::Hash, program, &install, &undo, &more);
    text += "set -eu\n[ $# -gt 0 ] || { echo \"usage: $0 [OPTION...] IMAGE [COMMAND...]\" >&2; exit 2; }\n\n";
    text += &group.before();
    // One line each, so that each has its comment and can be taken out. Each comes to stand in front of
    // what the user says, which therefore wins; their request says nothing.
    for flag in &flags(&placement, group) {
        text += &comment("", &format!("{}: {}", flag.check, flag.why));
        text += &format!("set -- {} \"$@\"\n", quoted(&flag.flag));
    }
    text += &format!("\n[ ! -t 0 ] || set -- -t \"$@\"\nexec {program} run --rm -i --name {name} \"$@\"\n");
    let belongs = format!("anywhere: ./{file} IMAGE");
    Ok(Output { files: vec![File { name: file, belongs, mode: 0o755, text }], notes })
}

fn flags(placement: &Placement, group: Group) -> Vec<Flag> {
    let flag = |flag: String, check, why| Flag { flag, check, why };
    let mut all = vec![flag(
        format!("--cpuset-cpus={}", placement.set()),
        "ctr-cpuset",
        "isolated CPUs only. Do not add --cpus (ctr-cfs-quota): a quota stops the container",
    )];
    if let Some(node) = placement.node {
        all.push(flag(format!("--cpuset-mems={node}"), "numa-locality", "memory of the node of these CPUs"));
    }
    all.extend([
        flag(
            "--cap-add=SYS_NICE".into(),
            "ctr-caps-limits",
            "real-time priorities. Risk: it can take its CPUs from all other programs",
        ),
        flag("--cap-add=IPC_LOCK".into(), "ctr-caps-limits", "mlockall. Risk: it can lock all memory"),
        flag(
            "--ulimit=rtprio=98".into(),
            "ctr-caps-limits",
            "the same for users inside that are not root; needs CAP_SYS_RESOURCE outside",
        ),
        flag("--ulimit=memlock=-1:-1".into(), "ctr-caps-limits", "the same for locked memory"),
        flag(
            "--device=/dev/cpu_dma_latency".into(),
            "pm-qos",
            "the application can keep all CPUs out of deep idle states while it holds this open",
        ),
    ]);
    if group == Group::Budget {
        all.push(flag(
            "--cgroup-parent=/tactus-rt".into(),
            "ctr-rt-budget",
            "the group with a budget, made above",
        ));
        all.push(flag(
            "--cpu-rt-runtime=800000".into(),
            "ctr-rt-budget",
            "the container's part of that budget, in microseconds of each second",
        ));
    }
    all
}

/// How this kernel meters real-time threads by group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    /// It does not.
    Free,
    /// cgroup v1 with budgets, which are 0 in new groups.
    Budget,
    /// cgroup v2 on a kernel with RT_GROUP_SCHED: real-time threads only in the root group.
    Root,
    /// The facts do not tell.
    Unknown,
}

impl Group {
    fn of(subject: &Subject<'_>) -> Self {
        let facts = subject.facts;
        let budgets = match facts.text("config:CONFIG_RT_GROUP_SCHED") {
            Some("y") => true,
            Some(_) => false,
            // The file of this option shows the truth, even without the kernel's configuration.
            None if facts.text("/sys/fs/cgroup/cpu/cpu.rt_runtime_us").is_some() => true,
            None if facts.text("config:source").is_some() => false,
            None => return Self::Unknown,
        };
        let v1 = facts.text("/proc/self/cgroup").is_some_and(|groups| {
            groups
                .lines()
                .any(|line| line.split(':').nth(1).is_some_and(|list| list.split(',').any(|c| c == "cpu")))
        });
        match (budgets, v1) {
            (false, _) => Self::Free,
            (true, true) => Self::Budget,
            (true, false) => Self::Root,
        }
    }

    fn note(self) -> Option<&'static str> {
        match self {
            Self::Free | Self::Budget => None,
            Self::Root => Some(
                "ctr-rt-budget: this kernel has RT_GROUP_SCHED and cgroup v2, where only the root group may have \
real-time threads. SCHED_FIFO is refused in a container whose group has the cpu controller. Use a kernel without \
RT_GROUP_SCHED, or boot with rt_group_sched=0 if the kernel knows it. --cpu-rt-runtime does not help: crun refuses \
it there, runc ignores it",
            ),
            Self::Unknown => Some(
                "ctr-rt-budget: whether this kernel has RT_GROUP_SCHED is unknown; if it has, SCHED_FIFO is refused \
inside, even with SYS_NICE",
            ),
        }
    }

    /// Lines that must run before the engine.
    fn before(self) -> String {
        if self != Self::Budget {
            return String::new();
        }
        let why = "ctr-rt-budget: on this kernel (RT_GROUP_SCHED with cgroup v1) a group has no real-time budget by \
default, and SCHED_FIFO is refused in it. If cgroup v2 is mounted too (hybrid), crun refuses to run: add \
--runtime=runc.";
        comment("", why)
            + "mkdir -p /sys/fs/cgroup/cpu/tactus-rt\necho 800000 > /sys/fs/cgroup/cpu/tactus-rt/cpu.rt_runtime_us\n\n"
    }
}
