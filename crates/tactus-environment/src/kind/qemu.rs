//! A virtual machine in QEMU, booted directly from a kernel and an initramfs that tactus writes.

pub(super) mod command;
mod exits;
pub(super) mod guest;
mod own;
#[doc(hidden)]
pub mod qmp;

use tactus_model::catalogue::measure::AnswerBy;
use tactus_model::message::Note;
use tactus_model::plan::{self, PathKind};
use tactus_system::System;

use crate::environment::EMULATED;
use crate::kernel::card_module;
use crate::support::guest::{accel, arch, check, devices, keys, prepare, wanted_kernel};
use crate::support::{self, cannot};
use crate::{Environment, OptionError, OptionKey, Running, Setting, StartError, Usable};
use command::{Machine, Sockets};
use guest::{Build, Launch};
use own::Own;

/// See [`Environment::about`].
pub struct Qemu;

/// The entry of the table.
pub static ENTRY: Qemu = Qemu;

impl Environment for Qemu {
    fn kind(&self) -> &'static str {
        "qemu"
    }

    fn about(&self) -> &'static str {
        "A virtual machine in QEMU. Its kernel is booted directly, with an initramfs that contains only the \
probe and the drivers of its channel. Its vCPU n runs on the n-th of its CPUs, the measured ones with \
SCHED_FIFO 1, and QEMU's other threads stay on the housekeeping CPUs. It uses KVM if the processor can, else \
emulation (TCG): an emulated guest shows that the path works and says nothing about hardware."
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
            keys::PCI,
            own::PROGRAM,
            own::ARGUMENTS,
            keys::BOOT_TIMEOUT,
        ]
    }

    fn can_join(&self, path: PathKind) -> bool {
        path.is_for_guests()
    }

    fn numbers_cpus(&self) -> bool {
        true
    }

    fn answers_card(&self, _by: AnswerBy) -> bool {
        true
    }

    fn has_devices(&self, spec: &plan::Environment) -> bool {
        devices::named(spec).is_ok_and(|devices| !devices.is_empty())
    }

    fn obstacle_to_answer(
        &self,
        by: AnswerBy,
        spec: &plan::Environment,
        system: &dyn System,
    ) -> Option<String> {
        if by != AnswerBy::Kernel {
            return None;
        }
        // A missing kernel is a separate obstacle.
        let kernel = wanted_kernel(spec, system).ok()?;
        card_module::obstacle(&kernel, system)
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
        let own = Own::of(spec).unwrap_or_default();
        let missing = match own.names_program() {
            true => own.missing(system),
            false => command::missing(arch, system),
        };
        if let Some(missing) = missing {
            return missing;
        }
        if let Err(error) = wanted_kernel(spec, system) {
            return Usable::No { reason: error.reason, remedy: error.hint.unwrap_or_default() };
        }
        let devices = devices::named(spec).unwrap_or_default();
        if let Some(missing) = devices::obstacle(&devices, system) {
            return missing;
        }
        let why = accel::obstacle_to(arch, system);
        Usable::Yes { remark: why.map(|why| format!("{EMULATED}, because {}", why.reason)) }
    }

    fn check(&self, spec: &plan::Environment, system: &dyn System) -> Result<(), OptionError> {
        Own::of(spec)?;
        check(spec, system)
    }

    fn start(&self, setting: &Setting<'_>) -> Result<Box<dyn Running>, StartError> {
        let wanted = accel::wanted(setting.spec)?;
        let patience = support::boot_timeout(setting.spec)?;
        let (accel, remark) = accel::choose(wanted, arch(setting.spec)?, setting.system)?;
        let mut notes: Vec<Note> = remark.into_iter().collect();
        if setting.card.is_some() && arch(setting.spec)? != "x86_64" {
            return Err(cannot(
                "no interrupt card",
                "a guest of another architecture than x86-64 cannot have one",
            ));
        }
        let sockets = Sockets::within(setting.workspace);
        let own = Own::of(setting.spec)?;
        let machine = Machine {
            boot: prepare(setting, accel, &mut notes)?,
            name: support::container_name(setting),
            accel,
            sandbox: true,
            cpus: setting.layout.cpus.len(),
            nic: setting.network.and_then(|place| place.nic),
            card: setting.card.as_ref().map(|card| card.socket.clone()),
            clock: None,
            pci: devices::named(setting.spec)?,
            sockets: sockets.clone(),
        };
        let words = |build: Build<'_>| {
            let Build { accel, sandbox, clock } = build;
            own.put(Machine { accel, sandbox, clock: clock.map(Into::into), ..machine.clone() }.words())
        };
        // A card is such a page itself; and an IOMMU is there where a device must be kept in.
        let shows_clock = machine.card.is_none() && machine.pci.is_empty();
        let launch = Launch { words: &words, shows_clock, sockets: &sockets, wanted, accel, patience };
        guest::start(setting, &launch, notes)
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

    #[test]
    fn the_qemu_of_rhel_is_found_where_no_path_leads() {
        let own = command::program(std::env::consts::ARCH);
        let rhel = Memory::new().program("/usr/libexec/qemu-kvm");
        assert_eq!(command::find(&own, &rhel).unwrap(), std::path::Path::new("/usr/libexec/qemu-kvm"));
        assert_eq!(command::find("qemu-system-sparc", &rhel), None);
        assert_eq!(command::find(&own, &Memory::new()), None);
    }
}
