//! The cost of each entry into the kernel, and output of the kernel while real-time work runs.

use tactus_model::change::Form;
use tactus_model::facts::Reading;
use tactus_model::finding::Severity;

use crate::sentence::{count, few};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const AUDIT: &str = "audit:enabled";
const AUDIT_RULES: &str = "audit:rules";
const SELINUX: &str = "/sys/fs/selinux/enforce";
const PRINTK: &str = "/proc/sys/kernel/printk";
const CONSOLE: &str = "/sys/class/tty/console/active";
const SPLIT_LOCK: &str = "/proc/sys/kernel/split_lock_mitigate";
const VULNERABILITIES: &str = "/sys/devices/system/cpu/vulnerabilities/";

pub static CHECKS: &[Check] = &[
    Check {
        id: "audit",
        title: "the kernel audits system calls",
        sources: &[Source::Kernel("kernel/auditsc.c"), Source::Guide("auditctl(8)")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Minor,
        arch: Arch::Any,
        set: &[SetBy::KernelCommandLine],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "the audit subsystem's own answers (auditctl -s, auditctl -l); audit= in /proc/cmdline",
        expected: "enabled 0, or the rule -a task,never",
        why: "Once auditing is on, each new task takes the slow path into and out of every system call, with or \
without rules. The daemon kauditd writes the records, and a full backlog makes callers wait. Only the rule `-a \
task,never` keeps tasks that start after it on the fast path (audit_alloc in kernel/auditsc.c).",
        fix: "The mildest first: a file in /etc/audit/rules.d with -D and -a task,never, loaded before the real-time \
work starts. Logins and other records stay. Or boot with audit=0.",
        risk: "System calls are no longer recorded; with audit=0 nothing is. Compliance rules often require the \
records: ask who needs them.",
        judge: auditing,
        changes: |subject| match rules(subject) {
            // The milder fix was found.
            Some(rules) if rules.spares_tasks => Vec::new(),
            _ => vec![subject.boot("audit", "audit", "0")],
        },
    },
    Check {
        id: "selinux",
        title: "SELinux checks each access",
        sources: &[Source::Xeon],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Info,
        arch: Arch::Any,
        set: &[SetBy::KernelCommandLine],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: SELINUX,
        expected: "your decision: intel-xeon-2015 turns it off for real-time work",
        why: "Each access to files, sockets and tasks calls hooks. Decisions are cached, and a miss costs more than \
a hit. Real-time work without system calls pays nothing.",
        fix: "tactus does not change it, because it protects the machine. To turn it off boot with selinux=0.",
        risk: "Without it an attacker who breaks into one service controls the machine.",
        judge: selinux,
        changes: no_change,
    },
    Check {
        id: "console-logging",
        title: "kernel messages are written to a console",
        sources: &[Source::Industrial],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Minor,
        arch: Arch::Any,
        set: &[SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "/proc/sys/kernel/printk; /sys/class/tty/console/active",
        expected: "a first value of at most 3; no serial console",
        why: "A serial port of 115200 baud takes 87 us per character, and in a guest also an exit. Standard kernels \
write whole messages with interrupts off. intel-industrial-2014 measured about 5 us more with its development \
console.",
        fix: "sysctl kernel.printk=\"3 4 1 3\" (the first value counts). Remove console= of a serial port (ttyS0, \
ttyAMA0) from the command line where you do not need it.",
        risk: "Messages go to the log (dmesg), not to the console: a machine that crashes shows nothing there.",
        judge: console,
        changes: |subject| {
            let quiet = |text: &str| -> Option<String> {
                let (level, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
                let level = level.parse::<u64>().ok()?.min(3);
                Some(Form::Words.value(&format!("{level} {rest}")))
            };
            let then = subject.facts.text(PRINTK).and_then(quiet);
            then.and_then(|then| subject.set("console-logging", PRINTK, Form::Words, then))
                .into_iter()
                .collect()
        },
    },
    Check {
        id: "split-lock",
        title: "split locks are penalised",
        sources: &[
            Source::Kernel("Documentation/arch/x86/buslock.rst"),
            Source::Kernel("Documentation/admin-guide/sysctl/kernel.rst"),
            Source::Kernel("commit 727209376f49"),
        ],
        applies: &[Applies::Host],
        severity: Severity::Minor,
        arch: Arch::Intel,
        set: &[SetBy::RunTime, SetBy::KernelCommandLine],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "/proc/sys/kernel/split_lock_mitigate; split_lock_detect= in /proc/cmdline; the flags split_lock_detect and \
bus_lock_detect in /proc/cpuinfo",
        expected: "0, where the processor detects split locks",
        why: "A split lock, an atomic access across two cache lines, locks the bus for all CPUs. The kernel makes \
the thread sleep for 10 ms, and lets one such thread run at a time. A guest with such code stops for that time.",
        fix: "sysctl kernel.split_lock_mitigate=0, or boot with split_lock_detect=off. Better, fix the code: the \
kernel's log names it.",
        risk: "Any program can slow down the whole machine with split locks. Next to untrusted code, real-time work \
needs their detection (Documentation/arch/x86/buslock.rst, Usages).",
        judge: split_lock,
        changes: |subject| {
            // The setting concerns the mode warn alone, which is the default.
            let warns = !matches!(mode(subject), Some(Mode::Off | Mode::Fatal | Mode::Rate(_)));
            if !has(subject, "split_lock_detect") || !warns {
                return Vec::new();
            }
            subject.set("split-lock", SPLIT_LOCK, Form::Plain, "0").into_iter().collect()
        },
    },
    Check {
        id: "mitigations",
        title: "mitigations make each entry into the kernel slower",
        sources: &[
            Source::Kernel("Documentation/admin-guide/hw-vuln/index.rst"),
            Source::Kernel("Documentation/admin-guide/kernel-parameters.txt"),
        ],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Info,
        arch: Arch::Any,
        set: &[SetBy::KernelCommandLine],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "/sys/devices/system/cpu/vulnerabilities/*",
        expected: "your decision: the ones that your use of the machine needs",
        why: "Each system call, interrupt or guest exit flushes or fences buffers and predictors. The cost is about \
constant: it shifts latencies more than it spreads them.",
        fix: "tactus does not change them, because they protect the machine. If you run only your own code, you can \
boot with mitigations=off.",
        risk: "Any program, also in a guest, may read memory of others. On x86 mitigations=off also turns off \
kvm.nx_huge_pages, unless kvm.nx_huge_pages=force. A guest can then halt a processor with iTLB multihit.",
        judge: mitigations,
        changes: no_change,
    },
];

/// The audit's rules.
#[derive(Default)]
struct Rules {
    count: usize,
    /// Whether no task is audited that starts now (`audit_filter_task` in kernel/auditsc.c: the first rule that fits).
    spares_tasks: bool,
}

fn rules(subject: &Subject<'_>) -> Option<Rules> {
    let text = subject.facts.text(AUDIT_RULES)?;
    let (mut rules, mut audits_some) = (Rules::default(), false);
    for line in text.lines() {
        let (count, rule) = line.split_once(' ')?;
        rules.count = rules.count.saturating_add(count.parse().ok()?);
        match rule {
            "task,never" => rules.spares_tasks |= !audits_some,
            _ if rule.starts_with("task,never") => {}
            _ => audits_some |= rule.starts_with("task,"),
        }
    }
    Some(rules)
}

fn by_rules(subject: &Subject<'_>) -> Judgement {
    let shown = |judgement: Judgement| match subject.facts.text(AUDIT_RULES) {
        Some(text) => judgement.read("auditctl -l", few(text.lines())),
        None => judgement,
    };
    shown(match rules(subject) {
        Some(rules) if rules.spares_tasks => {
            Judgement::ok("the kernel audits, but skips every task that starts after the rule -a task,never")
        }
        Some(Rules { count: 0, .. }) => Judgement::finding(
            "the kernel audits without any rule: each task pays for nothing",
        )
        .fix(
            "auditctl -a task,never, and the same line in a file in /etc/audit/rules.d, loaded before the \
real-time work starts: all current records stay",
        ),
        Some(rules) => {
            let said = format!("the kernel audits with {}", count(rules.count, "rule"));
            Judgement::finding(said).fix(
                "Ask who set the rules. If no rule on system calls is needed: a file in /etc/audit/rules.d with -D \
and -a task,never, loaded before the real-time work starts. Logins and other records stay. Or boot with audit=0",
            )
        }
        None => Judgement::finding("the kernel audits; its rules are unknown"),
    })
}

fn auditing(subject: &Subject<'_>) -> Verdict {
    let told = subject.cmdline.get("audit");
    let off = matches!(told, Some("0" | "off"));
    match subject.facts.0.get(AUDIT) {
        Some(Reading::Text(text) | Reading::Cut(text)) => match text.trim() {
            "0" => Ok(Judgement::ok("auditing is off").read("auditctl -s: enabled", "0")),
            "1" | "2" => Ok(by_rules(subject).read("auditctl -s: enabled", text.trim())),
            _ => Err(Judgement::unreadable("the audit subsystem's answer is not valid").read(AUDIT, text)),
        },
        _ if off => Ok(Judgement::ok("auditing was turned off at boot").read("/proc/cmdline", "audit=0")),
        Some(Reading::Absent) => Err(Judgement::not_applicable("this kernel has no audit subsystem")),
        Some(Reading::Unreadable(why)) => {
            Err(Judgement::unreadable(format!("the audit subsystem does not answer: {why}")).read(AUDIT, why))
        }
        None => Err(Judgement::unreadable("the facts do not show whether the kernel audits")),
    }
}

fn selinux(subject: &Subject<'_>) -> Verdict {
    let text = subject.value(SELINUX)?;
    let mode = match text {
        "1" => "SELinux is on and enforces its policy",
        "0" => "SELinux is on but permissive: it only checks and reports",
        _ => "SELinux is on",
    };
    Ok(Judgement::finding(mode).read(SELINUX, text))
}

/// `ttyS0`, `ttyAMA0`, `ttyUSB0`: a letter behind `tty`; `tty0` is the screen.
fn is_serial(console: &str) -> bool {
    console.strip_prefix("tty").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
}

fn console(subject: &Subject<'_>) -> Verdict {
    let text = subject.value(PRINTK)?;
    let Some(level) = text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok()) else {
        return Err(Judgement::unreadable(format!("{PRINTK} does not contain a level")).read(PRINTK, text));
    };
    let consoles = subject.facts.text(CONSOLE);
    let serial: Vec<&str> =
        consoles.unwrap_or_default().split_whitespace().filter(|name| is_serial(name)).collect();
    let shown = few(consoles.unwrap_or_default().split_whitespace());
    let said = match (level > 3, serial.is_empty()) {
        (true, true) => format!("messages below level {level} are written to the console {shown}"),
        (true, false) => {
            format!("messages below level {level} are written to the serial console {}", few(&serial))
        }
        (false, false) => {
            format!("{} is a console; only messages below level {level} are written to it", few(&serial))
        }
        (false, true) => {
            format!("only messages below level {level} are written to a console, and none is serial")
        }
    };
    let good = level <= 3 && serial.is_empty();
    // Messages below level 3 are rare.
    let severity = if level > 3 { Severity::Minor } else { Severity::Info };
    if good && consoles.is_none() {
        return Err(Judgement::unreadable("the active consoles are unknown").read(PRINTK, text));
    }
    let judgement = if good { Judgement::ok(said) } else { Judgement::finding(said).at(severity) };
    let judgement = judgement.read(PRINTK, text);
    Ok(match consoles {
        Some(consoles) => judgement.read(CONSOLE, consoles),
        None => judgement,
    })
}

/// Whether the kernel gives the processor this flag: it can detect such locks.
fn has(subject: &Subject<'_>, flag: &str) -> bool {
    subject.flag(flag) == Some(true)
}

/// The modes of split_lock_detect= beside the default, which warns.
enum Mode {
    Off,
    Fatal,
    /// At most this number of bus locks per second.
    Rate(usize),
}

fn mode(subject: &Subject<'_>) -> Option<Mode> {
    match subject.cmdline.get("split_lock_detect")? {
        "off" => Some(Mode::Off),
        "fatal" => Some(Mode::Fatal),
        word => {
            let rate = word.strip_prefix("ratelimit:")?.parse().ok()?;
            (1..=1000).contains(&rate).then_some(Mode::Rate(rate))
        }
    }
}

/// As the table of Documentation/arch/x86/buslock.rst has it, by what the processor detects.
fn split_lock(subject: &Subject<'_>) -> Verdict {
    let (splits, buses) = (has(subject, "split_lock_detect"), has(subject, "bus_lock_detect"));
    if !splits && !buses {
        return Err(Judgement::not_applicable("this processor does not detect split locks"));
    }
    let asked = |judgement: Judgement| {
        let word = subject.cmdline.get("split_lock_detect").unwrap_or_default();
        Ok(judgement.read("/proc/cmdline", format!("split_lock_detect={word}")))
    };
    match mode(subject) {
        Some(Mode::Off) => return asked(Judgement::ok("split locks are not detected")),
        Some(Mode::Fatal) if splits => {
            return asked(Judgement::finding(
                "a thread with a split lock is killed (SIGBUS), and so is a guest",
            ));
        }
        Some(Mode::Fatal) => {
            return asked(Judgement::finding("a thread with a bus lock is killed (SIGBUS); a guest is not"));
        }
        Some(Mode::Rate(rate)) if buses => {
            let said = format!(
                "{} a second are allowed, and a thread with one more must sleep; guests are not penalised",
                count(rate, "bus lock")
            );
            return asked(Judgement::finding(said).at(Severity::Info).fix(
                "No fix is needed: the limit protects real-time work that takes no bus locks itself. If your work \
takes some, fix the code, which the kernel's log names, or boot with a larger limit (up to 1000).",
            ));
        }
        Some(Mode::Rate(_)) => {
            return asked(Judgement::ok(
                "split locks are not detected: a limit needs bus_lock_detect, which this processor does not have",
            ));
        }
        None if !splits => {
            return Err(Judgement::not_applicable(
                "this processor detects bus locks but no split locks: the kernel only warns, and no thread waits",
            ));
        }
        None => {}
    }
    // The punishment is of 5.19 (b041b525dab9), the setting of 6.2 (727209376f49, x86/split_lock).
    let unset = matches!(subject.facts.0.get(SPLIT_LOCK), Some(Reading::Absent));
    if unset && subject.kernel.since(5, 19) {
        let said = "a thread or guest with a split lock must wait, and this kernel has no setting for it";
        return Ok(Judgement::finding(said).read(SPLIT_LOCK, "not there"));
    }
    let text = subject.value(SPLIT_LOCK)?;
    let good = "split locks are reported but not penalised";
    Ok(Judgement::when(text == "0", good, "a thread or guest with a split lock must wait")
        .read(SPLIT_LOCK, text))
}

fn mitigations(subject: &Subject<'_>) -> Verdict {
    let (mut active, mut open, mut hidden) = (Vec::new(), Vec::new(), Vec::new());
    let mut seen = 0usize;
    for (path, reading) in subject.facts.under(VULNERABILITIES) {
        let name = path.trim_start_matches(VULNERABILITIES);
        let (Reading::Text(text) | Reading::Cut(text)) = reading else {
            hidden.push(name);
            continue;
        };
        seen += 1;
        if text.contains("Mitigation") {
            active.push((name, text.trim()));
        } else if text.contains("Vulnerable") {
            open.push(name);
        }
    }
    if seen == 0 {
        return Err(match hidden.is_empty() {
            true => Judgement::not_applicable("this kernel does not report vulnerabilities"),
            false => Judgement::unreadable(format!("{VULNERABILITIES} could not be read")),
        });
    }
    let names = few(active.iter().map(|(name, _)| name));
    let mut said = if active.is_empty() {
        "no mitigation is active".to_owned()
    } else {
        format!(
            "{} active: {names}",
            if active.len() == 1 {
                "1 mitigation is".into()
            } else {
                count(active.len(), "mitigation") + " are"
            }
        )
    };
    if !open.is_empty() {
        said += &format!("; vulnerable: {}", few(&open));
    }
    if active.is_empty() && !hidden.is_empty() {
        return Err(Judgement::unreadable(format!("{} could not be read; {said}", few(&hidden))));
    }
    let judgement = if active.is_empty() { Judgement::ok(said) } else { Judgement::finding(said) };
    let read = if active.is_empty() {
        "none of them mitigated".to_owned()
    } else {
        few(active.iter().map(|(name, text)| format!("{name}: {text}")))
    };
    Ok(judgement.read(VULNERABILITIES, read))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, System, amd, guest, intel};

    #[test]
    fn the_audit_subsystem_is_asked_itself() {
        assert_eq!(intel(&[(AUDIT, "0")]).state("audit"), State::Ok);
        assert_eq!(intel(&[(AUDIT, "1")]).wanted("audit"), ["kernel parameter audit = 0"]);
        assert_eq!(intel(&[(AUDIT, "2")]).state("audit"), State::Finding);
        let silent = || intel(&[]).unreadable(AUDIT, "Operation not permitted");
        assert_eq!(silent().state("audit"), State::Unreadable);
        assert_eq!(silent().and("/proc/cmdline", "audit=0").state("audit"), State::Ok);
        assert_eq!(intel(&[]).absent(AUDIT).state("audit"), State::NotApplicable);
        assert_eq!(intel(&[]).state("audit"), State::Unreadable, "an older probe did not ask");
    }

    #[test]
    fn the_rules_of_the_audit_decide_what_is_advised() {
        let of = |rules: &str| intel(&[(AUDIT, "1"), (AUDIT_RULES, rules)]);
        assert!(of("").said("audit").contains("without any rule"));
        assert!(of("").finding("audit").fix.contains("all current records stay"));
        let some = of("12 exit,always -F\n1 user,always\n");
        assert_eq!(some.said("audit"), "the kernel audits with 13 rules");
        assert!(some.finding("audit").fix.starts_with("Ask who set the rules"));
        assert_eq!(some.wanted("audit"), ["kernel parameter audit = 0"], "for who asks for it");
        assert!(of("1 task,never\n").wanted("audit").is_empty());
        assert_eq!(of("1 task,never\n").state("audit"), State::Ok);
        assert_eq!(of("4 exit,always -F\n1 task,never\n").state("audit"), State::Ok);
        for others in ["1 task,never -F\n", "1 task,always -F\n1 task,never\n", "1 exit,never\n"] {
            assert_eq!(of(others).state("audit"), State::Finding, "{others}");
        }
        let denied = intel(&[(AUDIT, "1")]).unreadable(AUDIT_RULES, "Operation not permitted");
        assert_eq!(denied.said("audit"), "the kernel audits; its rules are unknown");
        assert_eq!(denied.wanted("audit"), ["kernel parameter audit = 0"]);
    }

    #[test]
    fn selinux_and_mitigations_are_reported_and_never_changed() {
        assert_eq!(intel(&[(SELINUX, "1")]).finding("selinux").severity, Severity::Info);
        assert_eq!(
            intel(&[(SELINUX, "0")]).said("selinux"),
            "SELinux is on but permissive: it only checks and reports"
        );
        assert_eq!(intel(&[]).absent(SELINUX).state("selinux"), State::NotApplicable);
        assert_eq!(intel(&[]).unreadable(SELINUX, "denied").state("selinux"), State::Unreadable);
        let of = |texts: &[(&str, &str)]| {
            texts.iter().fold(guest(&[]), |system: System, (name, text)| {
                system.and(&format!("{VULNERABILITIES}{name}"), text)
            })
        };
        let some = of(&[
            ("mds", "Mitigation: Clear CPU buffers; SMT disabled"),
            ("l1tf", "Not affected"),
            ("srbds", "Vulnerable: No microcode"),
        ]);
        assert_eq!(some.said("mitigations"), "1 mitigation is active: mds; vulnerable: srbds");
        assert!(some.changes("mitigations").is_empty() && some.changes("selinux").is_empty());
        assert_eq!(of(&[("mds", "Not affected")]).state("mitigations"), State::Ok);
        assert_eq!(
            of(&[("mds", "Vulnerable")]).said("mitigations"),
            "no mitigation is active; vulnerable: mds"
        );
        assert_eq!(of(&[]).state("mitigations"), State::NotApplicable);
        assert_eq!(
            of(&[]).unreadable(&format!("{VULNERABILITIES}mds"), "denied").state("mitigations"),
            State::Unreadable
        );
    }

    #[test]
    fn a_quiet_kernel_without_a_serial_console_is_good() {
        let id = "console-logging";
        let of = |printk: &str, console: &str| intel(&[(PRINTK, printk), (CONSOLE, console)]);
        assert_eq!(of("3\t4\t1\t7", "tty0").state(id), State::Ok);
        let loud = of("7\t4\t1\t7", "tty0 ttyS0");
        assert_eq!(loud.said(id), "messages below level 7 are written to the serial console ttyS0");
        assert_eq!(loud.wanted(id), [format!("{PRINTK} = 3 4 1 7")]);
        assert_eq!(of("1\t4\t1\t7", "ttyAMA0").finding(id).severity, Severity::Info);
        assert!(of("1\t4\t1\t7", "ttyAMA0").wanted(id).is_empty());
        assert_eq!(intel(&[(PRINTK, "3 4 1 7")]).state(id), State::Unreadable);
        assert_eq!(intel(&[]).absent(PRINTK).state(id), State::NotApplicable);
    }

    #[test]
    fn split_locks_matter_where_they_are_detected() {
        let id = "split-lock";
        let cpu = (
            "/proc/cpuinfo",
            "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu split_lock_detect\n",
        );
        assert_eq!(intel(&[cpu, (SPLIT_LOCK, "0")]).state(id), State::Ok);
        assert_eq!(intel(&[cpu, (SPLIT_LOCK, "1")]).wanted(id), [format!("{SPLIT_LOCK} = 0")]);
        assert_eq!(
            intel(&[cpu, (SPLIT_LOCK, "1"), ("/proc/cmdline", "split_lock_detect=off")]).state(id),
            State::Ok
        );
        assert_eq!(intel(&[(SPLIT_LOCK, "1")]).state(id), State::NotApplicable);
        assert!(intel(&[(SPLIT_LOCK, "1")]).changes(id).is_empty());
        assert_eq!(intel(&[cpu]).state(id), State::NotApplicable, "kernels before 5.19 punish nobody");
        let middle = intel(&[cpu, ("uname:release", "5.19.0")]).absent(SPLIT_LOCK);
        assert!(middle.said(id).ends_with("has no setting for it"), "{}", middle.said(id));
        let fatal = intel(&[cpu, (SPLIT_LOCK, "0"), ("/proc/cmdline", "split_lock_detect=fatal")]);
        assert!(fatal.said(id).contains("SIGBUS"), "{}", fatal.said(id));
        assert_eq!(intel(&[cpu]).unreadable(SPLIT_LOCK, "denied").state(id), State::Unreadable);
        assert_eq!(amd(&[(SPLIT_LOCK, "1")]).state(id), State::NotApplicable);
        assert_eq!(guest(&[(SPLIT_LOCK, "1")]).state(id), State::NotApplicable);
    }

    #[test]
    fn bus_locks_are_not_taken_for_split_locks() {
        let id = "split-lock";
        let of = |flags: &str, cmdline: &str| {
            let info = format!("vendor_id\t: GenuineIntel\nflags\t\t: fpu {flags}\n");
            intel(&[("/proc/cpuinfo", &info), (SPLIT_LOCK, "1"), ("/proc/cmdline", cmdline)])
        };
        let (both, bus) = ("split_lock_detect bus_lock_detect", "bus_lock_detect");
        let warned = of(bus, "quiet");
        assert_eq!(warned.state(id), State::NotApplicable, "{}", warned.said(id));
        assert!(warned.changes(id).is_empty());
        assert!(of(bus, "split_lock_detect=fatal").said(id).ends_with("a guest is not"));
        for flags in [bus, both] {
            let limited = of(flags, "split_lock_detect=ratelimit:100");
            assert!(limited.said(id).starts_with("100 bus locks a second"), "{}", limited.said(id));
            assert!(limited.said(id).ends_with("guests are not penalised"), "{}", limited.said(id));
            assert_eq!(limited.finding(id).severity, Severity::Info);
            assert!(limited.changes(id).is_empty());
        }
        assert_eq!(of("split_lock_detect", "split_lock_detect=ratelimit:1").state(id), State::Ok);
        let not_understood = of(both, "split_lock_detect=ratelimit:0");
        assert_eq!(not_understood.wanted(id), [format!("{SPLIT_LOCK} = 0")], "the kernel takes the default");
    }

    #[test]
    fn rubbish_is_not_good() {
        for text in HOSTILE {
            assert_ne!(intel(&[(AUDIT, "1"), (AUDIT_RULES, text)]).state("audit"), State::Ok, "{text}");
            let subject = intel(&[(AUDIT, text), (PRINTK, text), (CONSOLE, text), (SELINUX, text)]);
            assert_ne!(subject.state("audit"), State::Ok, "{text}");
            let _ = (subject.finding("console-logging"), subject.finding("selinux"));
            let _ = intel(&[(&format!("{VULNERABILITIES}mds"), text)]).finding("mitigations");
        }
    }
}
