//! A change: one setting of a system, its current value, its new value, and how it is reverted.
//!
//! A change is plain data. Checks propose changes, `tune` and the probe carry them out, and generators print them; this
//! module does none of that.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cpus::CpuSet;
use crate::process_files::started;
use crate::wire::row::{choice, row};

row! {
    /// One setting and its new value.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Change {
        /// Id of its audit check, or the profile's word if no check exists.
        pub check: String,
        /// The target.
        pub target: Target,
        /// Its current value, in the form of `then`; `None`: it is not set, or unknown.
        pub now: Option<String>,
        /// The new value. A kernel parameter without a value has an empty text.
        pub then: String,
        /// When it takes effect, and so how it is reverted.
        pub effect: Effect,
    }
}

choice! {
    /// When a change takes effect.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Effect {
        /// At once; also reverted at once.
        Runtime = "runtime",
        /// After a reboot.
        Boot = "boot",
        /// When the module is loaded again, the virtual machine or the container is started again.
        Restart = "restart",
    }
}

row! {
    /// The target of a change.
    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Target {
        /// A file of `/proc` or `/sys` that takes a value.
        File {
            /// Its path.
            path: String,
            /// How its text says its value.
            form: Form,
        },
        /// A parameter of the kernel's command line, without its value.
        Kernel {
            /// `isolcpus`, `nosoftlockup`.
            parameter: String,
        },
        /// A parameter of a module that is read when the module is loaded.
        Module {
            /// The module.
            module: String,
            /// The parameter.
            parameter: String,
        },
        /// Policy and priority of a thread, written `FIFO 4` or `OTHER 0`.
        Scheduling(thread: Thread),
        /// CPUs that a thread may use, written as a cpulist.
        Affinity(thread: Thread),
        /// Whether a service runs, written `active` or `inactive`.
        Service {
            /// `irqbalance.service`.
            unit: String,
        },
        /// A setting of the service manager or of a service, in a drop-in of ours.
        DropIn {
            /// `system.conf`, or a unit: `irqbalance.service`.
            unit: String,
            /// `Manager` or `Service`.
            section: String,
            /// `CPUAffinity`, `Environment`.
            key: String,
        },
    }
}

row! {
    /// A thread that is there now.
    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub struct Thread {
        /// Its id, which is worth nothing after a reboot.
        pub tid: u32,
        /// Its name (comm), which is compared before it is touched.
        pub name: String,
        /// When it was started, which is compared too: a later one of the same number may give itself the same name.
        pub started: Option<u64>,
    }
}

impl Thread {
    /// Whether `/proc/TID/stat` describes this thread, rather than a later one with the same number.
    #[must_use]
    pub fn is_in(&self, stat: &str) -> bool {
        let front = stat.rsplit_once(')').map_or("", |(front, _)| front);
        let name = front.split_once('(').map_or("", |(_, name)| name);
        name == self.name && self.started.is_none_or(|then| started(stat) == Some(then))
    }
}

choice! {
    /// How the text of a file says its value.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Form {
        /// The text is the value.
        Plain = "plain",
        /// Several words of which the chosen one is in brackets: `always madvise [never]`.
        Choice = "choice",
        /// A hexadecimal mask of CPUs in groups of 32: `ff,ffffffff`.
        Mask = "mask",
        /// A cpulist.
        List = "list",
        /// `Y`, `N`, `1`, `0`.
        Flag = "flag",
        /// Numbers between blanks: `4 4 1 7`.
        Words = "words",
    }
}

impl Form {
    /// The value that a text says, in the form in which it can be written back.
    #[must_use]
    pub fn value(self, text: &str) -> String {
        let text = text.trim();
        match self {
            Self::Choice => text
                .split_whitespace()
                .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
                .unwrap_or(text)
                .to_owned(),
            Self::Words => text.split_whitespace().collect::<Vec<_>>().join(" "),
            Self::Plain | Self::Mask | Self::List | Self::Flag => text.to_owned(),
        }
    }

    /// Whether two texts say the same value.
    #[must_use]
    pub fn same(self, one: &str, other: &str) -> bool {
        let (one, other) = (self.value(one), self.value(other));
        match self {
            Self::Mask => matches!((mask(&one), mask(&other)), (Some(a), Some(b)) if a == b),
            Self::List => {
                matches!((one.parse::<CpuSet>(), other.parse::<CpuSet>()), (Ok(a), Ok(b)) if a == b)
            }
            Self::Flag => flag(&one).is_some_and(|on| flag(&other) == Some(on)),
            Self::Plain | Self::Choice | Self::Words => one == other,
        }
    }
}

/// Reads a kernel flag.
#[must_use]
pub fn flag(text: &str) -> Option<bool> {
    match text.trim() {
        "Y" | "y" | "1" | "on" => Some(true),
        "N" | "n" | "0" | "off" => Some(false),
        _ => None,
    }
}

/// The CPUs of a mask as the kernel prints it; `None` if it is not a mask.
#[must_use]
pub fn mask(text: &str) -> Option<CpuSet> {
    CpuSet::from_mask(text).ok()
}

/// A mask of CPUs as the kernel takes it, as short as it can be.
#[must_use]
pub fn to_mask(cpus: &CpuSet) -> String {
    cpus.mask(cpus.last().map_or(1, |last| last + 1))
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, .. } => f.write_str(path),
            Self::Kernel { parameter } => write!(f, "kernel parameter {parameter}"),
            Self::Module { module, parameter } => write!(f, "module {module}, {parameter}"),
            Self::Scheduling(thread) => write!(f, "scheduling of {} ({})", thread.name, thread.tid),
            Self::Affinity(thread) => write!(f, "CPUs of {} ({})", thread.name, thread.tid),
            Self::Service { unit } => write!(f, "service {unit}"),
            Self::DropIn { unit, section, key } => write!(f, "{unit} [{section}] {key}"),
        }
    }
}

impl Change {
    /// Whether it is as it should be already.
    #[must_use]
    pub fn holds(&self) -> bool {
        match (&self.now, &self.target) {
            (Some(now), Target::File { form, .. }) => form.same(now, &self.then),
            (Some(now), Target::Affinity(_)) => Form::List.same(now, &self.then),
            (Some(now), _) => *now == self.then,
            (None, _) => false,
        }
    }

    /// Whether it takes effect at once and can be reverted at once.
    #[must_use]
    pub fn is_reversible(&self) -> bool {
        self.effect == Effect::Runtime
    }
}

#[cfg(test)]
mod tests {
    use crate::wire::row::testing::{is_known, returns};

    use super::*;

    #[test]
    fn a_file_says_its_value_in_its_own_form() {
        assert_eq!(Form::Choice.value("always [madvise] never\n"), "madvise");
        assert_eq!(Form::Words.value("4\t4\t1\t7"), "4 4 1 7");
        assert!(Form::Choice.same("always madvise [never]", "never"));
        assert!(Form::Mask.same("ff", "000000ff") && Form::Mask.same("00000001,00000000", "1,00000000"));
        assert!(!Form::Mask.same("ff", "rubbish") && !Form::Mask.same("rubbish", "rubbish"));
        assert!(Form::List.same("0-1", "0,1"));
        assert!(Form::Flag.same("Y", "1") && !Form::Flag.same("Y", "0") && !Form::Flag.same("x", "x"));
    }

    #[test]
    fn a_thread_is_no_later_one_of_its_number_and_name() {
        let stat = |name: &str, started: u64| {
            format!("16 ({name}) S 1 16 16 0 -1 4194304 0 0 0 0 0 0 0 0 -2 0 1 0 {started} 0 0")
        };
        let thread = |started| Thread { tid: 16, name: "CPU 0/KVM".into(), started };
        assert!(
            thread(Some(400)).is_in(&stat("CPU 0/KVM", 400)) && thread(None).is_in(&stat("CPU 0/KVM", 7))
        );
        for other in
            [stat("CPU 0/KVM", 401), stat("CPU 1/KVM", 400), "16 (CPU 0/KVM) S 1".into(), String::new()]
        {
            assert!(!thread(Some(400)).is_in(&other), "{other}");
        }
        let odd = Thread { tid: 16, name: "a) (b".into(), started: Some(4) };
        assert!(odd.is_in(&stat("a) (b", 4)));
    }

    #[test]
    fn every_kind_of_change_travels_whole() {
        let thread = Thread { tid: 17, name: "rcuc/1 =".into(), started: Some(4) };
        let forms = [Form::Plain, Form::Choice, Form::Mask, Form::List, Form::Flag, Form::Words];
        let files = forms.map(|form| Target::File { path: "/proc/x".into(), form });
        let targets = [
            Target::Kernel { parameter: "isolcpus".into() },
            Target::Module { module: "kvm".into(), parameter: "halt_poll_ns".into() },
            Target::Scheduling(thread.clone()),
            Target::Affinity(thread),
            Target::Service { unit: "irqbalance.service".into() },
            Target::DropIn {
                unit: "system.conf".into(),
                section: "Manager".into(),
                key: "CPUAffinity".into(),
            },
        ];
        for target in targets.into_iter().chain(files) {
            for now in [None, Some(String::new()), Some("=1 2".into())] {
                for effect in [Effect::Runtime, Effect::Boot, Effect::Restart] {
                    let (check, target, now) = ("a-check".into(), target.clone(), now.clone());
                    returns(&Change { check, target, now, then: String::new(), effect });
                }
            }
        }
    }

    #[test]
    fn a_row_of_another_kind_is_no_change() {
        let good = ["check=c", "target=File", "path=/x", "form=plain", "then=1", "effect=runtime"];
        assert!(is_known::<Change>(&good));
        for (at, wrong) in [(1, "target=Planet"), (3, "form=round"), (5, "effect=soon"), (4, "than=1")] {
            let mut row = good;
            row[at] = wrong;
            assert!(!is_known::<Change>(&row), "{wrong}");
        }
    }

    #[test]
    fn a_mask_is_read_and_written_as_the_kernel_does() {
        for list in ["0", "0-7", "31-33", "64", "0,95,127"] {
            let cpus: CpuSet = list.parse().unwrap();
            assert_eq!(mask(&to_mask(&cpus)), Some(cpus), "{list}");
        }
        assert_eq!(to_mask(&"32".parse().unwrap()), "1,00000000");
        assert_eq!(to_mask(&CpuSet::default()), "0");
        assert_eq!(mask("0"), Some(CpuSet::default()));
        assert_eq!(mask(""), None);
        assert_eq!(mask(&"f".repeat(100_000)), None);
    }
}
