//! Programs that undo or disturb what was tuned.

use tactus_model::CpuSet;
use tactus_model::change::{self, Change, Effect, Form, Target};
use tactus_model::finding::{Severity, State};
use tactus_model::threads::Thread;

use crate::sentence::{cpus_or_none, few, meet};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const TRACER: &str = "/sys/kernel/tracing/current_tracer";
const SETTINGS: [&str; 2] = ["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"];
/// The environment variables that irqbalance reads, in its order.
const BANNED: [&str; 2] = ["IRQBALANCE_BANNED_CPUS", "IRQBALANCE_BANNED_CPULIST"];

pub static CHECKS: &[Check] = &[
    Check {
        id: "irqbalance",
        title: "irqbalance moves interrupts onto real-time CPUs",
        sources: &[Source::Xeon, Source::Guide("irqbalance(1)")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::Service],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "whether irqbalance runs; /etc/default/irqbalance, /etc/sysconfig/irqbalance",
        expected: "it does not run, or IRQBALANCE_BANNED_CPULIST contains {isolated}",
        why: "Every ten seconds irqbalance spreads interrupts again and undoes their placement. Without a configured \
list it spares only the CPUs of isolcpus= and nohz_full=.",
        fix: "IRQBALANCE_BANNED_CPULIST={isolated} in /etc/default/irqbalance (/etc/sysconfig/irqbalance). Remove \
IRQBALANCE_BANNED_CPUS there, which overrides the list. Then systemctl restart irqbalance. Or systemctl disable \
--now irqbalance.",
        risk: "Without it all interrupts of a busy device may arrive on one CPU.",
        judge: balancer,
        changes: |subject| {
            let Some((isolated, _)) = subject.parted() else { return Vec::new() };
            // The file comes before Environment= of the unit, whose EnvironmentFile= it is: a drop-in would change
            // nothing.
            if runs(subject, "irqbalance").is_none() || says_itself(subject) {
                return Vec::new();
            }
            let (unit, section) = ("irqbalance.service".to_owned(), "Service".to_owned());
            vec![Change {
                check: "irqbalance".to_owned(),
                target: Target::DropIn { unit, section, key: "Environment".to_owned() },
                now: None,
                then: format!("IRQBALANCE_BANNED_CPULIST={isolated}"),
                effect: Effect::Restart,
            }]
        },
    },
    Check {
        id: "static-key-ipis",
        title: "tracing or profiling interrupts all CPUs",
        sources: &[
            Source::Kernel("arch/x86/kernel/alternative.c"),
            Source::Kernel("Documentation/core-api/real-time/kernel-configuration.rst"),
        ],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Minor,
        arch: Arch::Any,
        set: &[SetBy::Service],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "/sys/kernel/tracing/current_tracer; whether perf, trace-cmd or bpftrace run",
        expected: "tracer nop, no profiler",
        why: "Turning a trace point, probe or profile on or off patches the kernel's code. Each patch interrupts \
every CPU, isolated ones included, so that none runs the old code. A tracer that is on costs time at each event.",
        fix: "echo nop > /sys/kernel/tracing/current_tracer; stop profilers during real-time work.",
        risk: "None, except that you lose the traces.",
        judge: tracing,
        changes: |subject| subject.set("static-key-ipis", TRACER, Form::Plain, "nop").into_iter().collect(),
    },
    Check {
        id: "conflicting-daemons",
        title: "another program tunes this system",
        sources: &[Source::Guide("TuneD, tuned-adm(8)")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Info,
        arch: Arch::Any,
        set: &[SetBy::Service],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "whether tuned, power-profiles-daemon, thermald, auto-cpufreq or TLP run; /etc/tuned/active_profile",
        expected: "none, or TuneD with a real-time profile",
        why: "Each of them sets frequencies, idle states and kernel settings by its rules, at any time, and \
overwrites other values.",
        fix: "Keep one. Where TuneD is active tactus works through a TuneD profile. Stop others with systemctl \
disable --now NAME. thermald protects the machine, so tactus leaves it alone.",
        risk: "Without them a laptop saves no power.",
        judge: daemons,
        changes: no_change,
    },
];

fn runs<'a>(subject: &'a Subject<'_>, name: &str) -> Option<&'a Thread> {
    // A daemon is a process, and of a process the first thread has the name.
    subject.threads.user().find(|thread| thread.tid == thread.pid && thread.name == name)
}

/// The CPUs that irqbalance leaves out: file, name and value of the last line that sets them.
fn banned<'a>(subject: &'a Subject<'_>) -> Option<(&'static str, &'static str, &'a str)> {
    SETTINGS.iter().find_map(|file| {
        let lines = subject.facts.text(file)?.lines().rev();
        // The mask is announced to be discarded, but is read first and ends the search
        // (`setup_banned_cpus`, cputree.c of irqbalance 1.9); empty ones are passed over.
        BANNED.into_iter().find_map(|name| {
            let value = lines.clone().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='))?;
            let value = value.trim().trim_matches(['"', '\'']).trim();
            (!value.is_empty()).then_some((*file, name, value))
        })
    })
}

/// Whether a file of irqbalance's service has a mask, or a list, were it an empty one.
fn says_itself(subject: &Subject<'_>) -> bool {
    let mut lines = SETTINGS.iter().filter_map(|file| subject.facts.text(file)).flat_map(str::lines);
    banned(subject).is_some() || lines.any(|line| line.trim().starts_with("IRQBALANCE_BANNED_CPULIST="))
}

/// The CPUs that irqbalance leaves out by default: those that were isolated, or without a tick, since boot.
fn left_out_by_itself(subject: &Subject<'_>) -> CpuSet {
    subject.topology.booted.or(&subject.topology.nohz_full)
}

/// Whether irqbalance runs and may have put an interrupt on these CPUs. It has not if it leaves them out, or if it is
/// configured for single interrupts (`--banirq`, `--banmod`, `--policyscript`): this one may be among them.
pub fn is_balanced(subject: &Subject<'_>, cpus: &CpuSet) -> bool {
    if runs(subject, "irqbalance").is_none() {
        return false;
    }
    let told = |text: &str| {
        ["--banirq", "-i ", "--banmod", "-m ", "--policyscript", "-l "].iter().any(|word| text.contains(word))
    };
    let singles = SETTINGS.iter().filter_map(|file| subject.facts.text(file)).flat_map(str::lines);
    let mut singles = singles.filter(|line| !line.trim_start().starts_with('#'));
    if singles.any(told) {
        return false;
    }
    let left_out = match banned(subject) {
        Some((_, name, value)) if name.ends_with("LIST") => value.parse().ok(),
        Some((_, _, value)) => change::mask(value),
        None => Some(left_out_by_itself(subject)),
    };
    left_out.is_some_and(|left_out| !meet(cpus, &left_out))
}

fn balancer(subject: &Subject<'_>) -> Verdict {
    let (isolated, _) = subject.need_parted()?;
    subject.running()?;
    if runs(subject, "irqbalance").is_none() {
        let judgement = Judgement::ok("irqbalance does not run").read("threads", "no irqbalance");
        return Ok(subject.over_all_threads(judgement));
    }
    let (left_out, read): (CpuSet, (&str, String)) = match banned(subject) {
        Some((file, name, value)) => {
            let cpus = if name.ends_with("LIST") { value.parse().ok() } else { change::mask(value) };
            let Some(cpus) = cpus else {
                let why = format!("{file}: {name} is not valid");
                return Err(Judgement::unreadable(why).read(file, value));
            };
            (cpus, (file, format!("{name}={value}")))
        }
        None => {
            let cpus = left_out_by_itself(subject);
            let said = format!("not set; the default is {}", cpus_or_none(&cpus));
            (cpus, ("IRQBALANCE_BANNED_CPULIST", said))
        }
    };
    let exposed = isolated.minus(&left_out);
    Ok(Judgement::when(
        exposed.is_empty(),
        format!("irqbalance runs but spares {}", cpus_or_none(isolated)),
        format!("irqbalance runs and may move interrupts to {}", cpus_or_none(&exposed)),
    )
    .read(read.0, read.1))
}

const PROFILERS: &[&str] = &["perf", "trace-cmd", "bpftrace", "bpftool", "lttng-sessiond", "stap"];

fn tracing(subject: &Subject<'_>) -> Verdict {
    let running: Vec<&str> = PROFILERS.iter().copied().filter(|name| runs(subject, name).is_some()).collect();
    let tracer = subject.value(TRACER);
    let mut bad = Vec::new();
    if let Ok(tracer) = &tracer
        && *tracer != "nop"
    {
        bad.push(format!("the tracer {tracer} is on"));
    }
    if !running.is_empty() {
        bad.push(format!("{} runs", few(&running)));
    }
    if bad.is_empty() {
        subject.running()?;
    }
    let tracer = match tracer {
        Ok(tracer) => tracer,
        Err(_) if !bad.is_empty() => "not known",
        Err(judgement) if judgement.state == State::NotApplicable => {
            return Err(Judgement::unreadable("tracefs cannot be seen: mount it, or be root"));
        }
        Err(judgement) => return Err(judgement),
    };
    let judgement = Judgement::when(bad.is_empty(), "no tracer and no profiler is on", bad.join("; "));
    Ok(subject.over_all_threads(judgement.read(TRACER, tracer)))
}

/// How profiles of TuneD for real time begin: its own, those of operators, those that tactus writes.
const MEANT: [&str; 5] =
    ["realtime", "cpu-partitioning", "openshift-node-performance", "network-latency", "tactus"];

/// By the names of their threads, which the kernel cuts to 15 bytes. TLP is no daemon: its unit is.
const DAEMONS: &[(&str, &str)] = &[
    ("tuned", "TuneD"),
    ("power-profiles-", "power-profiles-daemon"),
    ("thermald", "thermald"),
    ("auto-cpufreq", "auto-cpufreq"),
    ("system76-power", "system76-power"),
];

fn daemons(subject: &Subject<'_>) -> Verdict {
    subject.running()?;
    let (mut found, mut kept) = (Vec::new(), Vec::new());
    let profile = subject.facts.text("/etc/tuned/active_profile").unwrap_or_default();
    let meant = profile.split_whitespace().any(|name| MEANT.iter().any(|meant| name.starts_with(meant)));
    if meant && runs(subject, "tuned").is_some() {
        kept.push(format!("TuneD (profile {profile})"));
    }
    for (name, called) in DAEMONS {
        if runs(subject, name).is_some() && !(meant && *name == "tuned") {
            let with = *name == "tuned" && !profile.is_empty();
            found.push(if with { format!("{called} (profile {profile})") } else { (*called).to_owned() });
        }
    }
    let wanted = subject.facts.text("list:/etc/systemd/system/multi-user.target.wants").unwrap_or_default();
    if wanted.split(' ').any(|unit| unit == "tlp.service") {
        found.push("TLP".to_owned());
    }
    let bad = format!("{} also tunes this system", few(&found));
    let good = match kept.first() {
        Some(tuned) => format!("{tuned} tunes for real time, and no other tuning program runs"),
        None => "no other tuning program runs".to_owned(),
    };
    let judgement = Judgement::when(found.is_empty(), good, bad);
    let seen = [kept, found].concat();
    let read = if seen.is_empty() { "none of them".to_owned() } else { seen.join(", ") };
    Ok(subject.over_all_threads(judgement.read("threads", read)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{HOSTILE, System, intel};

    fn with(names: &[&str]) -> System {
        let line = |(n, name): (usize, &&str)| format!("{0}\t{0}\t1\t400100\tOTHER\t0\t0-1\t{name}", n + 700);
        let lines: Vec<String> = names.iter().enumerate().map(line).collect();
        intel(&[("threads:0", &lines.join("\n"))])
    }

    #[test]
    fn irqbalance_leaves_out_what_it_is_told_or_what_was_isolated_at_boot() {
        let id = "irqbalance";
        let running = || with(&["irqbalance"]);
        assert_eq!(with(&["systemd"]).state(id), State::Ok);
        assert_eq!(running().state(id), State::Ok, "2-3 were isolated at boot");
        let later = running().isolate("1-3");
        assert_eq!(later.said(id), "irqbalance runs and may move interrupts to CPU 1");
        let wanted = ["irqbalance.service [Service] Environment = IRQBALANCE_BANNED_CPULIST=1-3"];
        assert_eq!(later.wanted(id), wanted);
        let told = |text: &str| running().isolate("1-3").and("/etc/default/irqbalance", text).state(id);
        assert_eq!(told("#IRQBALANCE_BANNED_CPULIST=1-3"), State::Finding);
        assert_eq!(told("IRQBALANCE_ARGS=-j\nIRQBALANCE_BANNED_CPULIST=\"1-3\"\n"), State::Ok);
        assert_eq!(told("IRQBALANCE_BANNED_CPUS=e"), State::Ok);
        assert_eq!(
            told("IRQBALANCE_BANNED_CPULIST=1-3\nIRQBALANCE_BANNED_CPUS=8"),
            State::Finding,
            "the mask goes first"
        );
        let set =
            |text: &str| running().isolate("1-3").and("/etc/default/irqbalance", text).changes(id).len();
        assert_eq!(set("IRQBALANCE_BANNED_CPULIST=2"), 0, "the file goes before a drop-in");
        assert_eq!(set("IRQBALANCE_BANNED_CPULIST="), 0);
        assert_eq!(set("IRQBALANCE_BANNED_CPUS=e"), 0, "the mask goes before the list");
        assert_eq!(set("#IRQBALANCE_BANNED_CPULIST=\nIRQBALANCE_BANNED_CPUS=\"\""), 1);
        assert_eq!(told("IRQBALANCE_BANNED_CPULIST=x"), State::Unreadable);
        assert_eq!(told("IRQBALANCE_BANNED_CPULIST="), State::Finding);
        assert_eq!(intel(&[]).state(id), State::Unreadable);
        assert_eq!(with(&["systemd"]).isolate("0-3").state(id), State::NotApplicable);
        assert!(with(&["systemd"]).changes(id).is_empty());
    }

    #[test]
    fn a_tracer_or_a_profiler_is_found() {
        let id = "static-key-ipis";
        assert_eq!(with(&["systemd"]).and(TRACER, "nop").state(id), State::Ok);
        let on = with(&["systemd"]).and(TRACER, "function_graph");
        assert_eq!(
            (on.said(id), on.wanted(id)),
            ("the tracer function_graph is on".into(), vec![format!("{TRACER} = nop")])
        );
        assert_eq!(with(&["perf"]).and(TRACER, "nop").said(id), "perf runs");
        assert_eq!(with(&["perf"]).state(id), State::Finding, "whatever the tracer is");
        assert_eq!(with(&["systemd"]).absent(TRACER).state(id), State::Unreadable);
        assert_eq!(with(&["systemd"]).unreadable(TRACER, "denied").state(id), State::Unreadable);
        assert_eq!(intel(&[(TRACER, "nop")]).state(id), State::Unreadable);
    }

    #[test]
    fn other_tuners_are_named_with_their_profile() {
        let id = "conflicting-daemons";
        assert_eq!(with(&["systemd"]).state(id), State::Ok);
        let tuned = with(&["tuned", "power-profiles-"]).and("/etc/tuned/active_profile", "realtime");
        assert_eq!(tuned.said(id), "power-profiles-daemon also tunes this system");
        let asked = with(&["tuned"]).and("/etc/tuned/active_profile", "realtime-virtual-host");
        assert_eq!(asked.state(id), State::Ok, "{}", asked.said(id));
        let other = with(&["tuned"]).and("/etc/tuned/active_profile", "throughput-performance");
        assert_eq!(other.said(id), "TuneD (profile throughput-performance) also tunes this system");
        assert!(tuned.changes(id).is_empty());
        let tlp = with(&["systemd"])
            .and("list:/etc/systemd/system/multi-user.target.wants", "ssh.service tlp.service");
        assert_eq!(tlp.said(id), "TLP also tunes this system");
        assert_eq!(with(&["systemd"]).and("threads:cut", "2").state(id), State::Unreadable);
        assert_eq!(intel(&[]).state(id), State::Unreadable);
    }

    #[test]
    fn rubbish_is_not_good() {
        for text in HOSTILE {
            let subject = with(&["irqbalance"])
                .isolate("1-3")
                .and(SETTINGS[0], &format!("IRQBALANCE_BANNED_CPULIST={text}"));
            assert_ne!(subject.state("irqbalance"), State::Ok, "{text}");
            assert_ne!(with(&["a"]).and(TRACER, text).state("static-key-ipis"), State::Ok, "{text}");
        }
    }
}
