//! A libvirt domain: one that tactus creates, or one that runs.

#[doc(hidden)]
pub mod agent;
mod attach;
mod document;
mod domain;
mod threads;
#[doc(hidden)]
pub mod virsh;

use tactus_model::message::Note;
use tactus_model::plan;
use tactus_model::topology::Topology;
use tactus_system::System;

use crate::environment::EMULATED;
use crate::support;
use crate::support::guest::{
    Accel, BootError, KVM_PATIENCE, OWN, TCG_PATIENCE, accel, check, keys, prepare, wanted_kernel,
};
use crate::{Environment, Layout, OptionError, OptionKey, Running, Setting, StartError, Usable};
use domain::Domain;
use virsh::Virsh;

/// See [`Environment::about`].
pub struct Libvirt;

/// The entry of the table.
pub static ENTRY: Libvirt = Libvirt;

/// The key for the address of libvirt: the only one that `attach` allows.
const URI: &str = "uri";

impl Environment for Libvirt {
    fn kind(&self) -> &'static str {
        "libvirt"
    }

    fn about(&self) -> &'static str {
        "A libvirt domain. tactus creates a transient one as `tactus tune files libvirt` writes it: vCPUs pinned, the \
measured ones with SCHED_FIFO 1, its other threads on the housekeeping CPUs. It boots like a guest of the \
kind qemu, and tactus verifies all of that from its threads. With `attach` a running domain: it gets a \
virtio-serial port for the time of the run, and its guest agent starts the probe there. Its CPUs are read \
from its threads, and nothing else of it is changed."
    }

    fn options(&self) -> &'static [OptionKey] {
        &[
            OptionKey {
                name: URI,
                about: "which libvirt of this machine to use, as virsh takes it; default: qemu:///system",
            },
            keys::KERNEL,
            keys::CMDLINE,
            keys::PROFILE,
            keys::ISOLATE,
            keys::MEMORY,
            keys::ACCEL,
            keys::LOCK_MEMORY,
            keys::PROGRAMS,
            keys::BOOT_TIMEOUT,
        ]
    }

    fn can_nest(&self) -> bool {
        true
    }

    fn numbers_cpus(&self) -> bool {
        true
    }

    fn can_attach(&self) -> bool {
        true
    }

    fn attached(
        &self,
        spec: &plan::Environment,
        system: &dyn System,
        machine: &Topology,
    ) -> Result<Layout, StartError> {
        attach::attached(spec, system, machine)
    }

    fn usable(&self, system: &dyn System) -> Usable {
        self.usable_as(&plan::Environment::default(), system)
    }

    fn usable_as(&self, spec: &plan::Environment, system: &dyn System) -> Usable {
        if system.find_program("virsh").is_none() {
            return Usable::No {
                reason: "virsh is not installed".into(),
                remedy: "install libvirt (Debian, Ubuntu: `apt-get install --no-install-recommends libvirt-clients libvirt-daemon-system`; \
Fedora: `dnf install libvirt-client libvirt-daemon-kvm`; Arch: `pacman -S libvirt qemu-base`)"
                    .into(),
            };
        }
        let answer = Virsh::of(spec, system).map_err(StartError::from).and_then(|virsh| virsh.answers());
        if let Err(error) = answer {
            return Usable::No { reason: error.reason, remedy: error.hint.unwrap_or_default() };
        }
        if spec.attach.is_some() {
            return Usable::Yes { remark: None };
        }
        if let Err(error) = wanted_kernel(spec, system) {
            return Usable::No { reason: error.reason, remedy: error.hint.unwrap_or_default() };
        }
        let why = accel::obstacle(system);
        Usable::Yes { remark: why.map(|why| format!("{EMULATED}, because {}", why.reason)) }
    }

    fn check(&self, spec: &plan::Environment, system: &dyn System) -> Result<(), OptionError> {
        virsh::uri(spec)?;
        let given = self.options().iter().find(|key| key.name != URI && spec.options.contains_key(key.name));
        if let (Some(key), Some(name)) = (given, &spec.attach) {
            return Err(OptionError {
                key: key.name.into(),
                message: format!(
                    "`{}` is for a domain that tactus creates, but `{name}` already exists",
                    key.name
                ),
                hint: "leave it out, or leave out `attach`".into(),
            });
        }
        check(spec, system)
    }

    fn start(&self, setting: &Setting<'_>) -> Result<Box<dyn Running>, StartError> {
        if let Some(name) = &setting.spec.attach {
            return Ok(Box::new(attach::enter(setting, name)?));
        }
        let wanted = accel::wanted(setting.spec)?;
        let patience = support::boot_timeout(setting.spec)?;
        let (accel, remark) = accel::choose(wanted, OWN, setting.system)?;
        let mut notes: Vec<Note> = remark.into_iter().collect();
        let boot = prepare(setting, accel, &mut notes)?;
        let waits = patience.unwrap_or(if accel == Accel::Kvm { KVM_PATIENCE } else { TCG_PATIENCE });
        let why = match Domain::create(setting, &boot, accel, Some(waits), &mut notes) {
            Err(error) if accel == Accel::Kvm && wanted == "auto" => Note::obstacle(
                format!(
                    "the domain did not start under KVM and was created again under emulation (TCG): {}",
                    error.error().reason
                ),
                "check the host kernel's messages (dmesg) for kvm; `accel = \"kvm\"` makes this an error",
            ),
            // As a guest of the kind qemu: one emulated boot in some fifty stops before its init.
            Err(BootError::Silent(error)) if accel == Accel::Tcg && patience.is_none() => Note::obstacle(
                format!("the emulated domain did not start and was created once more: {}", error.reason),
                "`boot_timeout` in its table sets how long tactus waits for its first message, without a \
                    second try",
            ),
            other => return Ok(Box::new(other?)),
        };
        notes.push(why);
        Ok(Box::new(Domain::create(setting, &boot, Accel::Tcg, None, &mut notes)?))
    }
}
