//! The accelerator of a guest: the processor itself (KVM), or QEMU (TCG).

use std::path::Path;

use tactus_model::message::Note;
use tactus_model::plan;
use tactus_system::System;

use super::OWN;
use crate::support;
use crate::{OptionError, StartError};

/// An accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accel {
    /// The processor executes the guest.
    Kvm,
    /// QEMU translates the guest.
    Tcg,
}

/// Words of the key `accel`.
const ACCELS: [&str; 3] = ["auto", "kvm", "tcg"];

/// The plan's accelerator.
///
/// # Errors
/// When the word is unknown.
pub fn wanted(spec: &plan::Environment) -> Result<&str, OptionError> {
    Ok(support::word(spec, "accel", &ACCELS)?.unwrap_or("auto"))
}

const DEVICE: &str = "/dev/kvm";

/// An obstacle to KVM, and its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    pub reason: String,
    pub remedy: &'static str,
}

/// The obstacle to KVM for a guest of this architecture.
pub fn obstacle_to(arch: &str, system: &dyn System) -> Option<Obstacle> {
    if arch == OWN {
        return obstacle(system);
    }
    let reason =
        format!("KVM runs only guests of the machine's architecture ({OWN}), but this one is {arch}");
    Some(Obstacle { reason, remedy: "run it on a machine of that architecture" })
}

const ENABLE: &str =
    "enable virtualization in the firmware, or nested virtualization in the hypervisor below";
const ALLOW: &str = "add this user to the group kvm, or run as root";

/// The obstacle to KVM on this machine, if there is one. An existing /dev/kvm proves little: on a virtual machine
/// without nested virtualization it may open, and every guest hangs in it.
pub fn obstacle(system: &dyn System) -> Option<Obstacle> {
    let device = Path::new(DEVICE);
    if !system.exists(device) {
        return Some(Obstacle { reason: format!("{DEVICE} does not exist"), remedy: ENABLE });
    }
    if !system.opens(device) {
        return Some(Obstacle { reason: format!("this user cannot open {DEVICE}"), remedy: ALLOW });
    }
    let info = system.text("/proc/cpuinfo").unwrap_or_default();
    let has = |flag: &str| {
        let lines = info.lines().filter(|line| line.starts_with("flags"));
        lines.flat_map(|line| line.split_whitespace()).any(|found| found == flag)
    };
    // On arm64 KVM itself only opens its device where the kernel was entered in EL2.
    let capable = has("vmx") || has("svm") || info.contains("CPU implementer");
    let reason = "the processor has neither vmx nor svm";
    (!capable).then(|| Obstacle { reason: reason.into(), remedy: ENABLE })
}

/// The accelerator for what the plan wants.
///
/// # Errors
/// When the plan wants KVM and this machine has none.
pub fn choose(wanted: &str, arch: &str, system: &dyn System) -> Result<(Accel, Option<Note>), StartError> {
    match (wanted, obstacle_to(arch, system)) {
        ("tcg", _) => Ok((Accel::Tcg, None)),
        (_, None) => Ok((Accel::Kvm, None)),
        ("kvm", Some(why)) => Err(StartError {
            reason: format!("KVM cannot be used: {}", why.reason),
            hint: Some(format!("{}; or leave out `accel`", why.remedy)),
        }),
        (_, Some(why)) => Ok((
            Accel::Tcg,
            Some(Note::obstacle(format!("the guest is emulated (TCG), because {}", why.reason), why.remedy)),
        )),
    }
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;

    #[test]
    fn kvm_needs_a_device_that_opens_and_a_processor_that_can() {
        assert!(obstacle(&Memory::new()).unwrap().reason.contains("/dev/kvm does not exist"));
        let closed = obstacle(&Memory::new().file("/dev/kvm", "")).unwrap();
        assert!(closed.reason.contains("cannot open /dev/kvm") && closed.remedy.contains("group kvm"));
        let without = Memory::new().device("/dev/kvm").file("/proc/cpuinfo", "flags\t\t: fpu vmxnet sse\n");
        assert!(obstacle(&without).unwrap().reason.contains("neither vmx nor svm"));
        let with = without.file("/proc/cpuinfo", "flags\t\t: fpu svm sse\n");
        assert_eq!(obstacle(&with), None);
        assert_eq!(choose("auto", OWN, &with).unwrap().0, Accel::Kvm);
        assert_eq!(choose("tcg", OWN, &with).unwrap(), (Accel::Tcg, None));
    }

    #[test]
    fn a_guest_of_another_architecture_is_emulated_whatever_the_machine_has() {
        let machine = Memory::new().device("/dev/kvm").file("/proc/cpuinfo", "flags\t\t: fpu svm sse\n");
        let (accel, note) = choose("auto", "m68k", &machine).unwrap();
        assert_eq!(accel, Accel::Tcg);
        assert!(note.unwrap().text.contains("m68k"));
    }

    #[test]
    fn kvm_on_request_is_an_error_without_kvm() {
        let (accel, note) = choose("auto", OWN, &Memory::new()).unwrap();
        assert_eq!(accel, Accel::Tcg);
        assert!(note.unwrap().text.contains("/dev/kvm"));
        assert!(choose("kvm", OWN, &Memory::new()).unwrap_err().hint.is_some());
    }
}
