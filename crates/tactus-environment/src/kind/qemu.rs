//! A virtual machine in QEMU, booted directly from a kernel and an initramfs that tactus writes.

mod command;
mod guest;
#[cfg(not(fuzzing))]
mod qmp;
#[cfg(fuzzing)]
pub mod qmp;

use tactus_model::message::Note;
use tactus_model::plan::{self, PathKind};
use tactus_system::System;

use crate::support;
use crate::support::guest::{
    Accel, BootError, KVM_PATIENCE, TCG_PATIENCE, accel, arch, check, keys, prepare, wanted_kernel,
};
use crate::{Environment, OptionError, OptionKey, Running, Setting, StartError, Usable};
use command::Machine;
use guest::Guest;

/// See [`Environment::about`].
pub struct Qemu;

/// The entry of the table.
pub static ENTRY: Qemu = Qemu;

impl Environment for Qemu {
    fn kind(&self) -> &'static str {
        "qemu"
    }

    fn about(&self) -> &'static str {
        "A virtual machine in QEMU. Its kernel is booted directly, with an initramfs that holds the probe and the \
drivers of its channel and nothing else; vCPU n runs on the n-th of its CPUs, those that are measured with SCHED_FIFO 1, \
and QEMU's other threads keep to the housekeeping CPUs. With KVM where the processor can, else emulated (TCG): an \
emulated guest shows that the path works and says nothing about hardware."
    }

    fn options(&self) -> &'static [OptionKey] {
        &[
            keys::KERNEL,
            keys::ARCH,
            keys::CMDLINE,
            keys::PROFILE,
            keys::ISOLATE,
            keys::MEMORY,
            keys::ACCEL,
            keys::LOCK_MEMORY,
            keys::PROGRAMS,
            keys::PATIENCE,
        ]
    }

    fn can_join(&self, path: PathKind) -> bool {
        path.is_for_guests()
    }

    fn numbers_cpus(&self) -> bool {
        true
    }

    fn can_nest(&self) -> bool {
        true
    }

    fn usable(&self, system: &dyn System) -> Usable {
        self.usable_as(&plan::Environment::default(), system)
    }

    fn usable_as(&self, spec: &plan::Environment, system: &dyn System) -> Usable {
        let arch = match arch(spec) {
            Ok(arch) => arch,
            Err(error) => return Usable::No { reason: error.message, remedy: error.hint },
        };
        let program = command::program(arch);
        if system.find_program(&program).is_none() {
            let (debian, fedora) = match arch {
                "aarch64" => ("qemu-system-arm", "qemu-system-aarch64"),
                _ => ("qemu-system-x86", "qemu-system-x86"),
            };
            return Usable::No {
                reason: format!("{program} is not installed"),
                remedy: format!(
                    "install QEMU (Debian, Ubuntu: `apt-get install {debian}`; Fedora: `dnf install {fedora}-core`; \
Arch: `pacman -S {fedora}`)"
                ),
            };
        }
        if let Err(error) = wanted_kernel(spec, system) {
            return Usable::No { reason: error.reason, remedy: error.hint.unwrap_or_default() };
        }
        let why = accel::obstacle_to(arch, system);
        Usable::Yes { remark: why.map(|why| format!("emulated (TCG), because {}", why.reason)) }
    }

    fn check(&self, spec: &plan::Environment, system: &dyn System) -> Result<(), OptionError> {
        check(spec, system)
    }

    fn start(&self, setting: &Setting<'_>) -> Result<Box<dyn Running>, StartError> {
        let wanted = accel::wanted(setting.spec)?;
        let patience = support::duration(setting.spec, "patience")?;
        let (accel, remark) = accel::choose(wanted, arch(setting.spec)?, setting.system)?;
        let mut notes: Vec<Note> = remark.into_iter().collect();
        let machine = Machine {
            boot: prepare(setting, accel, &mut notes)?,
            name: support::container_name(setting),
            accel,
            sandbox: true,
            cpus: setting.layout.cpus.len(),
            nic: setting.network.and_then(|place| place.device),
            console: setting.workspace.join("console.sock"),
            probe: setting.workspace.join("probe.sock"),
            monitor: setting.workspace.join("qmp.sock"),
        };
        let waits = |accel| patience.or(Some(if accel == Accel::Kvm { KVM_PATIENCE } else { TCG_PATIENCE }));
        let booted = Guest::boot(setting, &machine, waits(accel), &mut notes);
        let (machine, booted) = match booted {
            // Built without seccomp, it says so and ends.
            Err(BootError::Other(error)) if error.reason.contains("sandbox") => {
                notes.push(Note::obstacle(
                    format!("QEMU runs without its sandbox, so that a guest that breaks out of it can do what it can: {}", error.reason),
                    "install a QEMU that is built with seccomp",
                ));
                let machine = Machine { sandbox: false, ..machine };
                let booted = Guest::boot(setting, &machine, waits(accel), &mut notes);
                (machine, booted)
            }
            booted => (machine, booted),
        };
        match booted {
            Err(error) if accel == Accel::Kvm && wanted == "auto" => {
                notes.push(Note::obstacle(
                    format!("the guest did not come up under KVM and was started again under emulation (TCG): {}", error.error().reason),
                    "look at the host kernel's messages (dmesg) for kvm; `accel = \"kvm\"` makes this an error",
                ));
                let machine = Machine { accel: Accel::Tcg, ..machine };
                Ok(Box::new(Guest::boot(setting, &machine, None, &mut notes)?))
            }
            // One emulated boot in some fifty stops before its init, with nothing said of why.
            Err(BootError::Silent(error)) if accel == Accel::Tcg && patience.is_none() => {
                notes.push(Note::obstacle(
                    format!("the emulated guest did not come up and was started once more: {}", error.reason),
                    "`patience` in its table sets how long its first word is awaited, without a second try",
                ));
                Ok(Box::new(Guest::boot(setting, &machine, None, &mut notes)?))
            }
            booted => Ok(Box::new(booted?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;

    #[test]
    fn a_machine_without_kvm_is_usable_and_says_that_it_emulates() {
        let machine = Memory::new().program("qemu-system-x86_64").program("qemu-system-aarch64");
        let Usable::No { remedy, .. } = ENTRY.usable(&machine) else { panic!("there is no kernel") };
        assert!(remedy.contains("tactus kernel fetch"), "{remedy}");
    }
}
