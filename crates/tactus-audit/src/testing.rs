//! How tests of checks are written: a system out of a few readings, and what a check says of it.
//!
//! `intel(&[(PATH, "[never]")]).state("thp")` goes the way of an audit, so that role, processor and
//! hypervisor are looked at before the rule is asked.

use tactus_model::change::Change;
use tactus_model::facts::{Facts, MAX_READING, Reading};
use tactus_model::finding::{Finding, Role, State};
use tactus_model::qemu_arguments::kept;

use super::{Intent, Subject, audit, find};

/// A system that a test makes up.
#[derive(Clone, Debug)]
pub struct System {
    pub facts: Facts,
    pub role: Role,
    pub intent: Intent,
}

/// stalld runs, and is what it is called.
pub const STALLD_RUNS: &[(&str, &str)] = &[
    ("threads:0", "700\t700\t1\t400100\tFIFO\t10\t0-1\tstalld"),
    ("process:700:uid", "0"),
    ("process:700:NSpid", "700"),
    ("process:700:exe", "/usr/bin/stalld"),
];

/// No reading but these, as a host.
pub fn blank(readings: &[(&str, &str)]) -> System {
    let system = System { facts: Facts::default(), role: Role::Host, intent: Intent::default() };
    system.with(readings)
}

/// An Intel host on bare metal with CPUs 0-3 (2 and 3 are isolated), and these readings.
pub fn intel(readings: &[(&str, &str)]) -> System {
    x86("GenuineIntel", "fpu tsc constant_tsc nonstop_tsc vmx").with(readings)
}

/// The same by AMD.
pub fn amd(readings: &[(&str, &str)]) -> System {
    x86("AuthenticAMD", "fpu tsc constant_tsc nonstop_tsc svm").with(readings)
}

/// The same as a guest: a hypervisor lies below, for any maker of the processor.
pub fn guest(readings: &[(&str, &str)]) -> System {
    x86("GenuineIntel", "fpu tsc constant_tsc hypervisor").role(Role::Guest).with(readings)
}

/// A 64-bit Arm host with CPUs 0-3 (2 and 3 are isolated), and these readings.
pub fn arm(readings: &[(&str, &str)]) -> System {
    blank(&[
        ("uname:machine", "aarch64"),
        ("/proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n"),
        ("/sys/devices/system/cpu/online", "0-3"),
        ("/sys/devices/system/cpu/isolated", "2-3"),
    ])
    .with(readings)
}

fn x86(vendor: &str, flags: &str) -> System {
    let cpuinfo = format!("processor\t: 0\nvendor_id\t: {vendor}\nflags\t\t: {flags}\n");
    blank(&[
        ("uname:machine", "x86_64"),
        ("/proc/cpuinfo", &cpuinfo),
        ("/sys/devices/system/cpu/online", "0-3"),
        ("/sys/devices/system/cpu/isolated", "2-3"),
    ])
}

impl System {
    /// With these readings, in the place of those of the same names.
    pub fn with(mut self, readings: &[(&str, &str)]) -> Self {
        for (name, text) in readings {
            // As the probe keeps it. The end of a text that is too long is missing, whatever it is.
            let is_line = name.starts_with("vm:") && name.ends_with(":cmdline") && text.len() <= MAX_READING;
            match is_line {
                true => self.facts.keep(*name, kept(text.split_whitespace())),
                false => self.facts.keep(*name, *text),
            }
        }
        self
    }

    /// One reading more.
    pub fn and(self, name: &str, text: &str) -> Self {
        self.with(&[(name, text)])
    }

    /// With a reading that could not be made.
    pub fn unreadable(mut self, name: &str, reason: &str) -> Self {
        self.facts.0.insert(name.to_owned(), Reading::Unreadable(reason.to_owned()));
        self
    }

    /// With a file that is known not to exist.
    pub fn absent(mut self, name: &str) -> Self {
        self.facts.0.insert(name.to_owned(), Reading::Absent);
        self
    }

    /// As an older probe tells it, that does not know this reading.
    pub fn without(mut self, name: &str) -> Self {
        self.facts.0.remove(name);
        self
    }

    /// In another part.
    pub fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// With other CPUs for real-time work.
    pub fn isolate(mut self, cpus: &str) -> Self {
        self.intent.isolated = Some(cpus.parse().expect("a cpulist"));
        self
    }

    /// A moment later these readings are others.
    pub fn later(mut self, readings: &[(&str, &str)]) -> Self {
        self.intent.later = Some(self.clone().with(readings).facts);
        self
    }

    /// As the guest of a machine with these readings.
    pub fn carried_by(mut self, carrier: Self) -> Self {
        self.intent.carrier = Some(carrier.facts);
        self
    }

    /// The finding of an audit under this name.
    pub fn finding(&self, id: &str) -> Finding {
        let audit = audit(&Subject::new(&self.facts, self.role, &self.intent));
        audit.findings.into_iter().find(|finding| finding.id == id).unwrap_or_else(|| panic!("no check {id}"))
    }

    /// The state of [`System::finding`].
    pub fn state(&self, id: &str) -> State {
        self.finding(id).state
    }

    /// The sentence of [`System::finding`].
    pub fn said(&self, id: &str) -> String {
        self.finding(id).message
    }

    /// The changes that a check proposes.
    pub fn changes(&self, id: &str) -> Vec<Change> {
        let check = find(id).unwrap_or_else(|| panic!("no check {id}"));
        (check.changes)(&Subject::new(&self.facts, self.role, &self.intent))
    }

    /// The changes that do not hold yet, each as `target = value`.
    pub fn wanted(&self, id: &str) -> Vec<String> {
        let missing = self.changes(id).into_iter().filter(|change| !change.holds());
        missing.map(|change| format!("{} = {}", change.target, change.then)).collect()
    }
}

/// Texts of every kind that a check must survive: absent, cut, absurd, huge.
pub const HOSTILE: &[&str] = &[
    "",
    "\n",
    "\0\u{fffd}",
    "-1",
    "18446744073709551616",
    "99999999999999999999999999999999",
    "0-4294967295",
    "\u{1d7d8}\u{1d7d9}",
    "[",
    "[] []",
    ",,,,",
    "=",
    "a=\"",
    "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16",
    "processor\t: 0\nflags\t:",
    "\t\t\t\t\t\t\t\t\t\n\t\t",
];

/// Arbitrary texts under these names, in every role, on every processor: nothing panics. The messages of the audit
/// are not checked, only that it judges every check, and that every change names one.
pub fn survives(names: &'static [&'static str]) {
    use proptest::prelude::*;
    let text = prop_oneof![
        3 => prop::sample::select(HOSTILE).prop_map(str::to_owned),
        3 => "[0-9a-f,;:=x \\t\\n-]{0,60}",
        2 => "(L3|MB|L2CODE):[0-9]=[0-9a-f]{1,17};[0-9]=[0-9]{1,3}",
        2 => "[0-9]{1,20} ?(kB)?",
        2 => "\\PC{0,80}",
        1 => Just("0-4095".to_owned()),
        1 => Just("0::/\n4:cpu,cpuacct:/\n8:cpuset:/".to_owned()),
        1 => "[0-9]{1,9}\t[0-9]{1,9}\t[0-9]\t[0-9a-f]{1,9}\t(FIFO|OTHER|RR|X)\t[0-9]{1,4}\t[0-9,-]{0,9}\t\\PC{0,20}",
        1 => Just("9".repeat(20_000)),
    ];
    let reading = prop_oneof![
        6 => text.prop_map(Reading::Text),
        1 => Just(Reading::Absent),
        1 => Just(Reading::Unreadable("denied".into())),
    ];
    let readings = prop::collection::vec((prop::sample::select(names), reading), 0..names.len() + 1);
    let roles = prop::sample::select(&[Role::Host, Role::Guest, Role::Container][..]);
    proptest!(|(readings in readings, role in roles, processor in 0..3_u32)| {
        let mut system = match processor {
            0 => intel(&[]),
            1 => arm(&[]),
            _ => guest(&[]),
        };
        for (name, reading) in readings {
            system.facts.0.insert(name.to_owned(), reading);
        }
        let system = system.role(role).later(&[]).carried_by(intel(&[]));
        let subject = Subject::new(&system.facts, system.role, &system.intent);
        prop_assert_eq!(audit(&subject).findings.len(), super::all().count());
        for (_, check) in super::all() {
            prop_assert!((check.changes)(&subject).iter().all(|change| change.check == check.id));
        }
    });
}

#[test]
fn a_system_of_a_test_is_judged_as_an_audit_judges() {
    let thp = "/sys/kernel/mm/transparent_hugepage/enabled";
    assert_eq!(intel(&[(thp, "always madvise [never]")]).state("thp"), State::Ok);
    assert_eq!(intel(&[]).unreadable(thp, "permission denied").state("thp"), State::Unreadable);
    assert_eq!(intel(&[]).absent(thp).state("thp"), State::NotApplicable);
    let bad = arm(&[(thp, "[always] madvise never")]);
    assert_eq!(bad.wanted("thp").first(), Some(&format!("{thp} = never")));
    assert!(HOSTILE.iter().all(|text| bad.clone().and(thp, text).state("thp") == State::Finding));
}

#[test]
fn a_system_of_a_test_has_a_part_a_past_and_a_carrier() {
    let thp = "/sys/kernel/mm/transparent_hugepage/enabled";
    let guest = guest(&[(thp, "[always]")]).later(&[(thp, "[never]")]).carried_by(amd(&[])).isolate("1");
    let subject = Subject::new(&guest.facts, guest.role, &guest.intent);
    assert!(subject.virtualized && subject.isolated().to_string() == "1");
    assert!(subject.later.is_some_and(|later| later.text(thp) == Some("[never]")));
    assert!(
        subject
            .carrier
            .is_some_and(|carrier| carrier.field("/proc/cpuinfo", "vendor_id", ':') == Some("AuthenticAMD"))
    );
    assert_eq!(guest.said("thp"), format!("{thp} is always, not never"));
    assert_eq!(guest.clone().without(thp).state("thp"), State::NotApplicable);
    assert_eq!(guest.role(Role::Container).state("thp"), State::NotApplicable);
}
