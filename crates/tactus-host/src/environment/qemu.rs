//! A virtual machine in QEMU, booted directly from a kernel and an initramfs that tactus writes.

mod accel;
mod command;
mod console;
mod guest;
mod initramfs;
mod qmp;
mod settle;

use std::path::Path;
use std::time::Duration;

use tactus_model::message::Note;
use tactus_model::plan;

use super::profiled;
use super::support::{self, cannot, programs};
use super::{Environment, OptionError, OptionKey, Running, Setting, StartError, Usable};
use crate::kernel::{self, Kernel};
use crate::probe;
use crate::system::System;
use accel::Accel;
use command::Machine;
use guest::{Guest, SILENT};

/// See [`Environment::about`].
pub struct Qemu;

/// The entry of the table.
pub static ENTRY: Qemu = Qemu;

/// What the guest's architecture is: today that of the machine.
const ARCH: &str = std::env::consts::ARCH;
/// The memory of a guest whose plan does not say.
const MEMORY: &str = "512MiB";
/// How long a guest under KVM may take to its first word before it is tried without: it needs two
/// seconds, and where KVM does not work it never speaks.
const KVM_PATIENCE: Duration = Duration::from_secs(20);
/// The same for an emulated one, which comes up in five seconds, or in twenty on a loaded machine.
const TCG_PATIENCE: Duration = Duration::from_secs(45);
/// Drivers of the channel to the probe.
const MODULES: [&str; 2] = ["virtio_pci", "virtio_console"];

const ACCELS: [&str; 3] = ["auto", "kvm", "tcg"];

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
            OptionKey {
                name: "kernel",
                about: "rt, standard, a name of `tactus kernel list`, or a path; left out: what `tactus kernel use` \
chose, else the newest PREEMPT_RT kernel, else the newest",
            },
            OptionKey {
                name: "cmdline",
                about: "words added to the guest's kernel command line; left out: none",
            },
            OptionKey {
                name: "profile",
                about: "a tuning profile of `tactus tune`: its kernel parameters go before those of `cmdline`, and what it \
sets while a system runs is set inside by the probe; left out: none",
            },
            OptionKey {
                name: "isolate",
                about: "CPUs inside that the profile isolates, as 1-2; left out: those that are measured on, all but CPU 0",
            },
            OptionKey { name: "memory", about: "memory of the guest, as 512MiB or 2GiB; left out: 512MiB" },
            OptionKey {
                name: "accel",
                about: "auto, kvm or tcg; left out: auto, which is KVM where it works and TCG where it does not",
            },
            OptionKey {
                name: "lock_memory",
                about: "true: the guest's memory is allocated and locked before it starts; left out: false",
            },
            OptionKey {
                name: "programs",
                about: "programs of this machine that the guest gets with their libraries, as [\"crun\"]; left out: \
those that environments inside it need",
            },
            OptionKey {
                name: "patience",
                about: "how long the guest may take to its first word, as 30s; left out: 20s under KVM, then it is tried under TCG; 45s under TCG, then it is started once more",
            },
        ]
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
        let program = command::program(ARCH);
        if system.find_program(&program).is_none() {
            return Usable::No {
                reason: format!("{program} is not installed"),
                remedy:
                    "install QEMU (Debian, Ubuntu: `apt-get install qemu-system-x86`; Fedora: `dnf install \
qemu-system-x86-core`; Arch: `pacman -S qemu-system-x86`)"
                        .into(),
            };
        }
        if let Err(error) = wanted_kernel(spec, system) {
            return Usable::No { reason: error.reason, remedy: error.hint.unwrap_or_default() };
        }
        Usable::Yes { remark: accel::obstacle(system).map(|why| format!("emulated (TCG), because {}", why.reason)) }
    }

    fn check(&self, spec: &plan::Environment, system: &dyn System) -> Result<(), OptionError> {
        support::text(spec, "cmdline", "a text of kernel parameters")?;
        support::word(spec, "accel", &ACCELS)?;
        support::boolean(spec, "lock_memory")?;
        profiled::written(spec)?;
        programs::named(spec)?;
        support::duration(spec, "patience")?;
        if let Some(memory) = support::text(spec, "memory", command::MEMORY_HINT)? {
            command::mebibytes(memory).ok_or_else(|| OptionError {
                key: "memory".into(),
                message: format!("`memory` cannot be {memory:?}"),
                hint: command::MEMORY_HINT.into(),
            })?;
        }
        // A kernel that is merely not there is this machine's lack, not the plan's fault.
        if let Some(path) = support::text(spec, "kernel", "a name of `tactus kernel list`, or a path")?
            && path.contains('/')
            && system.exists(Path::new(path))
        {
            kernel::find(path, system).map_err(|error| OptionError {
                key: "kernel".into(),
                message: error.reason,
                hint: error.hint.unwrap_or_default(),
            })?;
        }
        Ok(())
    }

    fn start(&self, setting: &Setting<'_>) -> Result<Box<dyn Running>, StartError> {
        let key = |error: OptionError| StartError { reason: error.message, hint: Some(error.hint) };
        let wanted = support::word(setting.spec, "accel", &ACCELS).map_err(key)?.unwrap_or("auto");
        let patience = support::duration(setting.spec, "patience").map_err(key)?;
        let (accel, remark) = accel::choose(wanted, setting.system)?;
        let mut notes: Vec<Note> = remark.into_iter().collect();
        let machine = machine(setting, accel, &mut notes)?;
        let waits = |accel| {
            patience.or(Some(if accel == Accel::Kvm { KVM_PATIENCE } else { TCG_PATIENCE }))
        };
        match Guest::boot(setting, &machine, waits(accel), &mut notes) {
            Err(error) if accel == Accel::Kvm && wanted == "auto" => {
                notes.push(Note::obstacle(
                    format!("the guest did not come up under KVM and was started again under emulation (TCG): {}", error.reason),
                    "look at the host kernel's messages (dmesg) for kvm; `accel = \"kvm\"` makes this an error",
                ));
                let machine = Machine { accel: Accel::Tcg, ..machine };
                Ok(Box::new(Guest::boot(setting, &machine, None, &mut notes)?))
            }
            // One emulated boot in some fifty stops before its init, with nothing said of why.
            Err(error) if accel == Accel::Tcg && patience.is_none() && error.reason.starts_with(SILENT) => {
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

fn wanted_kernel(spec: &plan::Environment, system: &dyn System) -> Result<Kernel, StartError> {
    let wanted = support::text(spec, "kernel", "a name or a path");
    match wanted.map_err(|error| StartError { reason: error.message, hint: Some(error.hint) })? {
        Some(wanted) => kernel::find(wanted, system),
        None => kernel::chosen(system),
    }
}

/// What QEMU is to run for this setting; the initramfs is written on the way.
fn machine(setting: &Setting<'_>, accel: Accel, notes: &mut Vec<Note>) -> Result<Machine, StartError> {
    let system = setting.system;
    let spec = setting.spec;
    let key = |error: OptionError| StartError { reason: error.message, hint: Some(error.hint) };
    let kernel = wanted_kernel(spec, system)?;
    let probe = probe::bytes(ARCH).ok_or_else(|| cannot("no probe", format!("none was built for {ARCH}")))?;
    let modules = kernel::needed(kernel.modules_dir.as_deref(), &MODULES, system)
        .map_err(|error| cannot("kernel module", error))?;
    let bootable = kernel::bootable(&kernel.path, system)
        .map_err(|error| cannot(&kernel.path.display().to_string(), error))?;
    if let Some(why) = &bootable.why_not {
        notes.push(Note::info(format!("the kernel boots packed, which takes longer: {why}")));
    }
    let initrd = setting.workspace.join("initramfs.cpio");
    let programs = programs::named(spec).map_err(key)?;
    let programs = programs::collect(&programs, system)?;
    let archive = initramfs::write(probe, &modules, kernel.config(system).as_ref(), &programs);
    system.write(&initrd, &archive).map_err(|error| cannot(&initrd.display().to_string(), error))?;
    let memory = support::text(spec, "memory", command::MEMORY_HINT).map_err(key)?.unwrap_or(MEMORY);
    notes.push(Note::info(format!(
        "the guest's kernel is {} ({})",
        kernel.name,
        if kernel.preempt_rt { "PREEMPT_RT" } else { "not PREEMPT_RT" }
    )));
    Ok(Machine {
        arch: ARCH,
        name: support::container_name(setting),
        accel,
        kernel: bootable.path,
        initrd,
        cmdline: kernel_words(setting, accel, notes).map_err(key)?,
        cpus: setting.layout.cpus.len(),
        memory_mib: command::mebibytes(memory)
            .ok_or_else(|| cannot("memory", format!("{memory} is no size")))?,
        lock_memory: support::boolean(spec, "lock_memory").map_err(key)?.unwrap_or(false),
        console: setting.console.clone(),
        probe: setting.workspace.join("probe.sock"),
        monitor: setting.workspace.join("qmp.sock"),
    })
}

/// The profile's words and then the plan's: of two for one parameter the kernel takes the last.
fn kernel_words(setting: &Setting<'_>, accel: Accel, notes: &mut Vec<Note>) -> Result<String, OptionError> {
    let own = support::text(setting.spec, "cmdline", "")?.unwrap_or_default();
    let Some(profiled) = profiled::of(setting.spec, setting.layout)? else { return Ok(own.to_owned()) };
    let words = profiled.kernel_words(&vendor(accel, setting.system));
    notes.push(Note::info(format!("profile {} put on the kernel's command line: {words}", profiled.profile.name)));
    Ok(format!("{words} {own}").trim_end().to_owned())
}

/// The maker of the guest's processor: KVM shows the machine's own, QEMU's `max` says AuthenticAMD.
fn vendor(accel: Accel, system: &dyn System) -> String {
    match accel {
        _ if ARCH != "x86_64" => String::new(),
        Accel::Tcg => "AuthenticAMD".into(),
        Accel::Kvm => {
            let info = system.text("/proc/cpuinfo").unwrap_or_default();
            let line = info.lines().find(|line| line.starts_with("vendor_id"));
            line.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim().to_owned()).unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::system::Memory;

    fn spec(key: &str, value: serde_json::Value) -> plan::Environment {
        let options = [(key.to_owned(), value)].into_iter().collect();
        plan::Environment { kind: "qemu".into(), options, ..plan::Environment::default() }
    }

    #[test]
    fn keys_with_wrong_values_are_refused_before_anything_starts() {
        let machine = Memory::new().file("/k/no-kernel", "text");
        for (key, value) in [
            ("memory", json!("lots")),
            ("memory", json!("1KiB")),
            ("accel", json!("hvf")),
            ("lock_memory", json!("yes")),
            ("patience", json!(20)),
            ("kernel", json!("/k/no-kernel")),
            ("cmdline", json!(["quiet"])),
            ("profile", json!("fast")),
            ("isolate", json!("1")),
            ("programs", json!("crun")),
        ] {
            let error = ENTRY.check(&spec(key, value.clone()), &machine).expect_err(key);
            assert_eq!(error.key, key);
            assert!(!error.hint.is_empty(), "{key} = {value}");
        }
        assert!(
            ENTRY.check(&spec("kernel", json!("/not/here")), &machine).is_ok(),
            "that is this machine's lack"
        );
    }

    #[test]
    fn a_machine_without_kvm_is_usable_and_says_that_it_emulates() {
        let machine = Memory::new().program("qemu-system-x86_64").program("qemu-system-aarch64");
        let Usable::No { remedy, .. } = ENTRY.usable(&machine) else { panic!("there is no kernel") };
        assert!(remedy.contains("tactus kernel fetch"), "{remedy}");
    }
}
