//! Why the kernel refused a scheduling policy or a CPU, found out, and how to allow it.

use std::fs;
use std::io;

use rustix::process::{Resource, getrlimit};
use tactus_model::CpuSet;
use tactus_model::cpus::CpuRequest;
use tactus_model::facts::Facts;
use tactus_model::isolation::{self, Files};
use tactus_model::message::{Note, Refusal};
use tactus_model::scheduling::Policy;
use tactus_model::topology::Topology;

use crate::sys;

/// Bit of CAP_SYS_NICE in CapEff.
const CAP_SYS_NICE: u64 = 23;

/// The facts that matter when a policy was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Situation {
    errno: i32,
    /// CapEff has CAP_SYS_NICE.
    may: bool,
    /// RLIMIT_RTPRIO.
    limit: u64,
    /// In a user namespace capabilities do not count for scheduling.
    inner_user: bool,
    /// Path of the `cpu` controller (version 1) in /proc/self/cgroup.
    cgroup: Option<String>,
    /// `cpu.rt_runtime_us` of that cgroup, as far as it can be seen.
    budget: Option<i64>,
    /// `/proc/sys/kernel/sched_rt_runtime_us`.
    global: Option<i64>,
    /// CPUs that are online.
    online: CpuSet,
}

impl Situation {
    fn read(errno: i32) -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let status = text("/proc/self/status");
        let caps = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap_or("0");
        let caps = u64::from_str_radix(caps.trim(), 16).unwrap_or(0);
        let cgroup = cpu_cgroup(&text("/proc/self/cgroup"));
        let budget = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"].iter().find_map(|mount| {
            let own = format!("{mount}{}/cpu.rt_runtime_us", cgroup.as_deref().unwrap_or("/"));
            // In a container the mount shows the container's own cgroup as its root.
            let read = |path: &str| fs::read_to_string(path).ok()?.trim().parse().ok();
            read(&own).or_else(|| read(&format!("{mount}/cpu.rt_runtime_us")))
        });
        Self {
            errno,
            may: caps >> CAP_SYS_NICE & 1 == 1,
            limit: getrlimit(Resource::Rtprio).current.unwrap_or(u64::MAX),
            inner_user: is_inner(&text("/proc/self/uid_map")),
            cgroup,
            budget,
            global: text("/proc/sys/kernel/sched_rt_runtime_us").trim().parse().ok(),
            online: text("/sys/devices/system/cpu/online").parse().unwrap_or_default(),
        }
    }
}

/// The path of the version 1 `cpu` controller: line `4:cpu,cpuacct:/path`.
fn cpu_cgroup(text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        controllers.split(',').any(|name| name == "cpu").then(|| path.to_owned())
    })
}

/// Whether a uid_map is that of a user namespace below the first one.
fn is_inner(map: &str) -> bool {
    let fields: Vec<&str> = map.split_whitespace().collect();
    !fields.is_empty() && fields != ["0", "0", "4294967295"]
}

/// Why `policy` was refused to a thread on `cpu`.
pub fn scheduling(policy: Policy, priority: u32, cpu: u32, error: &io::Error) -> Refusal {
    let Some(errno) = error.raw_os_error() else {
        return Refusal { reason: format!("{policy} on CPU {cpu}: {error}"), hint: None };
    };
    let situation = Situation::read(errno);
    match policy {
        Policy::Deadline => deadline(cpu, error, &situation),
        Policy::Fifo | Policy::Rr => real_time(policy, priority, cpu, error, &situation),
        // Ordinary scheduling is everybody's right.
        Policy::Other => Refusal {
            reason: format!("{policy} on CPU {cpu} was refused ({error})"),
            hint: Some(
                "check the seccomp or SELinux profile that it runs under: it refuses sched_setattr"
                    .to_owned(),
            ),
        },
    }
}

/// That an ordinary thread (0: the calling one) measures at another nice value than 0.
pub fn kept_nice(thread: u32) -> Option<Note> {
    let nice = sys::nice(thread).ok().filter(|nice| *nice != 0)?;
    Some(Note::obstacle(
        format!("measured at nice {nice}, at which it was started: this user may not change it to 0"),
        "start it without `nice`, or as root",
    ))
}

fn real_time(policy: Policy, priority: u32, cpu: u32, error: &io::Error, situation: &Situation) -> Refusal {
    let what = format!("{policy} at priority {priority} on CPU {cpu} was refused ({error})");
    let (why, hint) = if situation.errno != libc::EPERM {
        (String::new(), None)
    } else if situation.budget == Some(0)
        || (situation.may && !situation.inner_user && out_of_root(situation))
    {
        let path = situation.cgroup.as_deref().unwrap_or("/");
        let budget = situation.budget.map_or("not visible here".to_owned(), |us| us.to_string());
        (
            format!(
                ": its cgroup `cpu:{path}` has no real-time budget (RT_GROUP_SCHED; cpu.rt_runtime_us is \
                 {budget}), despite CAP_SYS_NICE"
            ),
            Some(
                "write a budget to cpu.rt_runtime_us of that cgroup and of those above it (950000 at the top), \
                 or run it in the root of the cpu controller"
                    .to_owned(),
            ),
        )
    } else if situation.may && situation.inner_user {
        (
            ": CAP_SYS_NICE of a user namespace does not count for scheduling, and RLIMIT_RTPRIO is "
                .to_owned()
                + &situation.limit.to_string(),
            Some(format!(
                "run it without a user namespace (rootful), or give the user an rtprio limit of {priority} or more"
            )),
        )
    } else if !situation.may && situation.limit < u64::from(priority) {
        (
            format!(": CAP_SYS_NICE is missing and RLIMIT_RTPRIO is {}", situation.limit),
            Some(format!(
                "run as root or with CAP_SYS_NICE (containers: --cap-add=SYS_NICE), or set the rtprio limit to {priority} \
                 or more (--ulimit rtprio=99, /etc/security/limits.conf)"
            )),
        )
    } else {
        (
            ": the process has the right (CAP_SYS_NICE or RLIMIT_RTPRIO), but a cgroup without a real-time \
             budget or a security module refuses it"
                .to_owned(),
            Some(
                "check cpu.rt_runtime_us of its cgroups, and the seccomp or SELinux profile of the \
                container"
                    .to_owned(),
            ),
        )
    };
    Refusal { reason: what + &why, hint }
}

fn out_of_root(situation: &Situation) -> bool {
    situation.cgroup.as_deref().is_some_and(|path| path != "/")
}

fn deadline(cpu: u32, error: &io::Error, situation: &Situation) -> Refusal {
    let what = format!("SCHED_DEADLINE on CPU {cpu} was refused ({error})");
    let (why, hint) = match situation.errno {
        libc::EPERM if !situation.may => (
            ": CAP_SYS_NICE is missing".to_owned(),
            "run as root or with CAP_SYS_NICE (containers: --cap-add=SYS_NICE)",
        ),
        libc::EPERM => (
            format!(
                ": a DEADLINE thread must be allowed on every CPU of its root domain ({}), but a measuring \
                 thread is pinned to one",
                situation.online
            ),
            "give the CPU a separate root domain (an exclusive cpuset: cpuset.cpus.partition = isolated), or use fifo",
        ),
        libc::EBUSY => (
            ": the bandwidth of the root domain is already in use".to_owned(),
            "end other DEADLINE tasks, or use fewer threads per CPU",
        ),
        libc::EINVAL => (
            ": the kernel does not accept this interval".to_owned(),
            "use an interval within /proc/sys/kernel/sched_deadline_period_{min,max}_us",
        ),
        _ => (String::new(), "use fifo"),
    };
    Refusal { reason: what + &why, hint: Some(hint.to_owned()) }
}

/// Why a thread cannot be pinned to `cpu`.
pub fn cpu(cpu: u32, allowed: &CpuSet) -> Refusal {
    let mut seen = Seen(Facts::default());
    for name in ["online", "isolated"] {
        seen.text(&format!("/sys/devices/system/cpu/{name}"));
    }
    seen.0.keep("sched:affinity", allowed.to_string());
    isolation::look(&mut seen);
    unusable(cpu, &Topology::of(&seen.0))
}

fn unusable(cpu: u32, machine: &Topology) -> Refusal {
    let asked = CpuSet::one(cpu);
    let why = machine.resolve(&CpuRequest::List(asked.clone())).err();
    // The CPU looks usable and was refused all the same.
    let why = why.unwrap_or_else(|| machine.not_allowed(asked));
    Refusal { reason: why.to_string(), hint: Some(why.hint()) }
}

/// The files of this system that were read.
struct Seen(Facts);

impl Files for Seen {
    fn text(&mut self, path: &str) -> Option<String> {
        let text = fs::read_to_string(path).ok()?;
        self.0.keep(path, text.clone());
        Some(text)
    }

    fn names(&mut self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    fn keep(&mut self, name: &str, text: &str) {
        self.0.keep(name, text);
    }
}

/// Whether the probe may measure on `cpu`: it was allowed when the probe started, or it is isolated. An isolated CPU is
/// in no task's mask and may still be chosen.
pub fn may_use(cpu: u32, allowed: &CpuSet) -> bool {
    let isolated: CpuSet = fs::read_to_string("/sys/devices/system/cpu/isolated")
        .ok()
        .and_then(|t| t.parse().ok())
        .unwrap_or_default();
    allowed.contains(cpu) || (isolated.contains(cpu) && sys::affinity().is_ok())
}

#[cfg(test)]
mod tests {
    use tactus_model::isolation::Group;

    use super::*;

    fn eperm() -> io::Error {
        io::Error::from_raw_os_error(libc::EPERM)
    }

    fn refused(situation: &Situation) -> Refusal {
        let situation = Situation { errno: libc::EPERM, ..situation.clone() };
        real_time(Policy::Fifo, 95, 1, &eperm(), &situation)
    }

    #[test]
    fn a_missing_capability_is_named_with_the_limit() {
        let refusal = refused(&Situation { limit: 0, cgroup: Some("/".into()), ..Situation::default() });
        assert!(refusal.reason.contains("CAP_SYS_NICE is missing and RLIMIT_RTPRIO is 0"), "{refusal:?}");
        assert!(refusal.hint.unwrap().contains("--cap-add=SYS_NICE"));
    }

    #[test]
    fn a_cgroup_without_a_budget_is_told_from_a_missing_capability() {
        let in_podman =
            Situation { may: true, cgroup: Some("/libpod_parent/x".into()), ..Situation::default() };
        let refusal = refused(&in_podman);
        assert!(refusal.reason.contains("`cpu:/libpod_parent/x` has no real-time budget"), "{refusal:?}");
        // In a cgroup namespace the path is `/`, and only the budget tells.
        let hidden =
            Situation { may: true, cgroup: Some("/".into()), budget: Some(0), ..Situation::default() };
        assert!(refused(&hidden).reason.contains("RT_GROUP_SCHED; cpu.rt_runtime_us is 0"));
    }

    #[test]
    fn a_capability_of_a_user_namespace_is_called_that() {
        let rootless =
            Situation { may: true, inner_user: true, cgroup: Some("/x".into()), ..Situation::default() };
        assert!(refused(&rootless).reason.contains("user namespace"));
        assert!(is_inner("         0       1000          1\n         1     100000      65536\n"));
        assert!(!is_inner("         0          0 4294967295\n"));
    }

    #[test]
    fn a_cpu_that_a_partition_has_is_told_from_one_that_is_not_allowed() {
        let set = |text: &str| -> CpuSet { text.parse().unwrap() };
        let machine = |online, allowed| Topology {
            online: set(online),
            allowed: set(allowed),
            cpuset: Some(Group { path: "/user.slice".into(), cpus: set(allowed) }),
            ..Topology::default()
        };
        let off = unusable(2, &machine("0-1", "0-1"));
        assert_eq!(off.reason, "CPU 2 is not online; this machine has CPUs 0,1");
        let not_ours = unusable(2, &machine("0-3", "0-1"));
        assert_eq!(not_ours.reason, "CPU 2 is online, but this cgroup (/user.slice) may use 0,1 only");
        assert!(not_ours.hint.unwrap().contains("cpuset.cpus of the cgroup /user.slice"));
    }

    #[test]
    fn the_cpu_controller_is_found_among_its_kin() {
        assert_eq!(cpu_cgroup("3:cpuset:/a\n2:cpu,cpuacct:/b\n0::/c\n").as_deref(), Some("/b"));
        assert_eq!(cpu_cgroup("0::/user.slice\n"), None);
    }

    #[test]
    fn a_pinned_deadline_thread_is_told_about_root_domains() {
        let situation = Situation {
            errno: libc::EPERM,
            may: true,
            online: "0-1".parse().unwrap(),
            ..Situation::default()
        };
        let refusal = deadline(1, &eperm(), &situation);
        assert!(refusal.reason.contains("every CPU of its root domain (0,1)"), "{refusal:?}");
        assert!(refusal.hint.unwrap().contains("cpuset.cpus.partition"));
    }
}
