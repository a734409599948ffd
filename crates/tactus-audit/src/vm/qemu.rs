//! The questions of a rule to QEMU's arguments, and the judgement if they are unknown.

use super::{Arguments, Monitor, Vm};
use crate::{Judgement, Subject};

impl Vm {
    /// The arguments.
    ///
    /// # Errors
    /// Unreadable, when it is not QEMU or its arguments are not known.
    pub fn qemu(&self) -> Result<&Arguments, Judgement> {
        self.arguments.as_ref().ok_or_else(|| {
            Judgement::unreadable(match self.monitor {
                Monitor::Qemu => "the facts do not include its command line",
                Monitor::CloudHypervisor => {
                    "tactus cannot parse the command line of Cloud Hypervisor, only QEMU's"
                }
                Monitor::Firecracker => "the configuration of Firecracker is not on its command line",
                Monitor::Other => "the facts do not include its command line, or it is not QEMU's",
            })
        })
    }

    /// The arguments of a machine that runs on KVM.
    ///
    /// # Errors
    /// As [`Vm::qemu`]; not applicable when its processor is emulated.
    pub fn kvm(&self) -> Result<&Arguments, Judgement> {
        if self.emulated == Some(true) {
            return Err(Judgement::not_applicable("its processor is emulated (TCG)"));
        }
        self.qemu()
    }

    /// The text of one of its readings: `VmLck`.
    ///
    /// # Errors
    /// Unreadable, if the reading is missing.
    pub fn reading<'a>(&self, subject: &Subject<'a>, key: &str) -> Result<&'a str, Judgement> {
        let name = format!("vm:{}:{key}", self.pid);
        subject.facts.text(&name).ok_or_else(|| {
            let why = match subject.value(&name) {
                Err(judgement) if judgement.state == tactus_model::finding::State::Unreadable => {
                    judgement.said
                }
                _ => format!("the facts do not include its {key}"),
            };
            Judgement::unreadable(why)
        })
    }
}

/// Judgements on arguments whose end may be missing.
pub trait OfWhole {
    /// The judgement if something is not among the arguments: unknown if their end is missing.
    #[must_use]
    fn without(&self, judgement: Judgement) -> Judgement;
}

impl OfWhole for Arguments {
    fn without(&self, judgement: Judgement) -> Judgement {
        if self.cut {
            return Judgement::unreadable(
                "its command line is cut in the facts, and the option is not in the part that is there",
            );
        }
        judgement
    }
}
