//! `tactus tune` inside a virtual machine with an isolated CPU: what the machine that runs the tests
//! must not be put through. The guest is emulated and its kernel is real: PREEMPT_RT, booted without
//! any tuning, then with the command line that the first boot wrote for the second.

mod look;
mod machine;
mod rtla;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::common::{alone, skipped};
use look::Look;
use machine::{Parts, Told};

const CUT_SHORT: &str = "an earlier `tune apply` was interrupted, and has been reverted";

/// The text of a part that must have ended well.
fn good<'a>(told: &'a Told, name: &str) -> &'a str {
    let (code, text) = told.get(name).unwrap_or_else(|| panic!("the guest did not come to `{name}`"));
    assert_eq!(*code, 0, "{name}: {text}");
    text
}

fn look(told: &Told, name: &str) -> Look {
    let look = Look::of(&told[name].1);
    assert!(look.sums.len() > 20 && look.threads.len() > 40, "{name}: {}", told[name].1);
    look
}

/// Differences that `tune verify --json` found, which ended with this code.
fn found(told: &Told, name: &str, code: i32) -> Vec<Value> {
    let (ended, text) = &told[name];
    assert_eq!(*ended, code, "{name}: {text}");
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"))
}

fn target(difference: &Value) -> &str {
    difference["target"].as_str().unwrap_or_default()
}

/// Checks the settings of the profile on this kernel.
fn in_force(during: &Look) {
    for (path, text) in [
        ("/proc/sys/kernel/sched_rt_runtime_us", "-1"),
        ("/proc/sys/kernel/timer_migration", "0"),
        ("/sys/devices/virtual/workqueue/cpumask", "1"),
        ("/sys/devices/virtual/workqueue/writeback/cpumask", "1"),
        ("/proc/irq/default_smp_affinity", "1"),
        ("/proc/irq/4/smp_affinity_list", "0"),
    ] {
        assert_eq!(during.text(path), text, "{path}");
    }
    for (name, scheduling) in [
        ("ksoftirqd/1", "1 2"),
        ("ktimers/1", "1 2"),
        ("rcuc/0", "1 4"),
        ("rcuc/1", "1 4"),
        ("rcub/0", "1 4"),
        ("migration/1", "1 99"),
    ] {
        assert_eq!(during.thread(name).scheduling, scheduling, "{name}");
    }
    for (name, cpus) in [("init", "0"), ("kthreadd", "0"), ("kswapd0", "0"), ("ksoftirqd/1", "1")] {
        assert_eq!(during.thread(name).cpus, cpus, "{name}");
    }
}

/// Returns the command line and the files that the second boot begins with, and what was there first.
fn first_boot(parts: &Parts, dir: &std::path::Path) -> (String, Vec<u8>, Look) {
    let told = parts.boot(dir, "", include_str!("first.sh"), b"");
    let (before, during, after) = (look(&told, "before"), look(&told, "during"), look(&told, "after"));
    good(&told, "cut");
    assert!(good(&told, "recovered").contains(CUT_SHORT), "{}", told["recovered"].1);
    in_force(&during);
    // The timer's interrupt is held fast by the kernel: that is said, and is no reason to stop.
    let refused = "write 0 to /proc/irq/0/smp_affinity_list: refused: Input/output error";
    assert!(told["recovered"].1.contains(refused), "{}", told["recovered"].1);
    assert_eq!(during.text("/proc/irq/0/smp_affinity_list"), "0-1");

    assert!(!during.differences(&before).is_empty());
    good(&told, "revert");
    assert_eq!(after.differences(&before), Vec::<String>::new(), "{}", told["revert"].1);
    assert_eq!(good(&told, "left"), "/etc/default/grub\n/var/lib/tactus/tune/lock\n");

    good(&told, "persist");
    let later = found(&told, "verify", 1);
    for difference in &later {
        let needs = difference["needs"].as_str().unwrap_or_default();
        let fast = ["/proc/irq/0/smp_affinity_list", "/proc/irq/2/smp_affinity_list"];
        let good = if fast.contains(&target(difference)) { "irqaffinity=" } else { "--persist and a reboot" };
        assert!(needs.contains(good), "{difference}");
    }
    assert!(later.iter().any(|d| target(d) == "kernel parameter isolcpus"), "{later:?}");
    for file in ["/etc/default/grub.d/50-tactus.cfg", "/etc/sysctl.d/90-tactus.conf", "/var/lib/update-grub"]
    {
        assert!(good(&told, "kept").contains(file), "{}", told["kept"].1);
    }
    let line = good(&told, "drop-in").lines().find_map(|line| line.strip_prefix("GRUB_CMDLINE_LINUX=\""));
    let line = line.and_then(|line| line.strip_prefix("$GRUB_CMDLINE_LINUX ")?.strip_suffix('"'));
    let packed: String = good(&told, "state").lines().collect();
    (line.expect("a command line").to_owned(), STANDARD.decode(packed).expect("base64"), before)
}

fn second_boot(parts: &Parts, dir: &std::path::Path, parameters: &str, state: &[u8], first: &Look) {
    for word in ["isolcpus=managed_irq,domain,1", "nohz_full=1", "rcu_nocbs=1", "irqaffinity=0"] {
        assert!(parameters.split(' ').any(|parameter| parameter == word), "{parameters}");
    }
    let told = parts.boot(dir, parameters, include_str!("second.sh"), state);
    good(&told, "restore");
    assert_eq!(good(&told, "boot"), "1\n1\n", "isolated and nohz_full");
    // The reboot has brought the command line, and taken what was set at run time.
    let gone = found(&told, "verify-boot", 1);
    assert!(gone.iter().all(|d| d["needs"] == "tactus tune apply --again"), "{gone:#?}");
    let throttling = gone.iter().find(|d| target(d) == "/proc/sys/kernel/sched_rt_runtime_us");
    assert_eq!(
        throttling.map(|d| (d["now"].as_str(), d["then"].as_str())),
        Some((Some("950000"), Some("-1")))
    );

    let (before, during, after) = (look(&told, "before"), look(&told, "during"), look(&told, "after"));
    good(&told, "cut");
    assert!(good(&told, "recovered").contains(CUT_SHORT), "{}", told["recovered"].1);
    in_force(&during);
    assert_eq!(found(&told, "verify", 0), Vec::<Value>::new());
    good(&told, "revert");
    // Settings that drop-ins make again at each boot have their value from before the first boot, even if the new
    // command line had changed it (nosoftlockup, nohz_full). Everything else is as this boot began.
    let put_back = |line: &String| {
        let path = line.split(':').next().unwrap_or_default();
        path.starts_with('/') && after.text(path) == first.text(path)
    };
    let strange: Vec<String> =
        after.differences(&before).into_iter().filter(|line| !put_back(line)).collect();
    assert_eq!(strange, Vec::<String>::new(), "{}", told["revert"].1);
    let left = "/etc/default/grub\n/var/lib/tactus/tune/lock\n/var/lib/update-grub\n";
    assert_eq!(good(&told, "left"), left);
}

#[test]
fn a_guest_is_tuned_over_a_reboot_and_is_as_before_when_all_is_taken_back() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let parts = match machine::parts(dir.path()) {
        Ok(parts) => parts,
        Err(why) => return skipped(&why),
    };
    let (parameters, state, first) = first_boot(&parts, dir.path());
    second_boot(&parts, dir.path(), &parameters, &state, &first);
}
