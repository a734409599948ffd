//! A virtual machine without an operating system: it measures the floor of the hypervisor.

use tactus_model::CpuSet;
use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::AnswerBy;
use tactus_model::cpus::CpuRequest;
use tactus_model::message::{Note, What};
use tactus_model::plan;
use tactus_model::topology::Topology;
use tactus_system::{System, probe};

use super::qemu::command::{self, SANDBOX, Sockets, socket};
use super::qemu::guest::{self, Build, Launch};
use crate::support::guest::{Accel, accel, keys};
use crate::support::{self, cannot};
use crate::{Environment, Layout, OptionError, OptionKey, Running, Setting, StartError, Usable};

/// See [`Environment::about`].
pub struct Bare;

/// The entry of the table.
pub static ENTRY: Bare = Bare;

/// The architecture that its image is built for.
const ARCH: &str = "x86_64";

impl Environment for Bare {
    fn kind(&self) -> &'static str {
        "bare"
    }

    fn about(&self) -> &'static str {
        "A guest without an operating system, in QEMU: 64 KiB of code for x86-64. It has one virtual CPU to \
itself, and measures how late its timer's interrupts are, at the first instruction of their handler. That is \
the floor of the machine and of the hypervisor: the rest of what `qemu` measures comes from its kernel. It \
measures `timer` with one thread, and `exits`: the cost of each operation for which a guest exits. It \
answers `interrupt` with its handler alone, or by polling. It makes no load, has no files and no settings, \
and is not audited; the fault `hold-vcpu`, which comes from outside, works. Its self-test blocks interrupts, \
regardless of the fault that the plan names for it. It uses KVM if the processor can, else emulation (TCG)."
    }

    fn options(&self) -> &'static [OptionKey] {
        &[keys::ACCEL, keys::BOOT_TIMEOUT]
    }

    fn numbers_cpus(&self) -> bool {
        true
    }

    fn answers_card(&self, by: AnswerBy) -> bool {
        by != AnswerBy::Kernel
    }

    fn has_system(&self) -> bool {
        false
    }

    fn refuses(&self, what: &What) -> Option<String> {
        let word = match what {
            What::Measure { measure: Measure::Timer(timer), .. } => {
                return (timer.threads() > 1).then(|| {
                    "a guest without an operating system has no threads: `threads` must be 1".into()
                });
            }
            What::Measure { measure: Measure::Exits(_), .. } => return None,
            What::Measure { measure: Measure::Interrupt(_), .. } => {
                return Some("`interrupt` is measured from a host, with this guest as `to`".into());
            }
            What::Fault(fault) if fault.from_outside() => return None,
            What::Measure { measure, .. } => measure.kind(),
            What::Load(load) => load.kind(),
            What::Fault(fault) => fault.kind(),
        };
        Some(format!("`{word}` needs an operating system, but a guest of kind `bare` has none"))
    }

    /// One virtual CPU, on one of the given ones: the first that the machine keeps for measuring.
    fn layout(&self, cpus: &CpuSet, chosen: bool, machine: &Topology) -> Layout {
        let best = cpus.and(&machine.measuring());
        let best = if chosen || best.is_empty() { cpus } else { &best };
        Layout { cpus: best.first().into_iter().map(|cpu| (0, cpu)).collect(), measuring: CpuSet::one(0) }
    }

    fn usable(&self, system: &dyn System) -> Usable {
        if let Some(missing) = command::missing(ARCH, system) {
            return missing;
        }
        if probe::bare_guest().is_none() {
            return Usable::No {
                reason: "this tactus was built without the guest".into(),
                remedy: "build it where the Rust target is installed: rustup target add x86_64-unknown-none"
                    .into(),
            };
        }
        let why = accel::obstacle_to(ARCH, system);
        Usable::Yes { remark: why.map(|why| format!("emulated (TCG), because {}", why.reason)) }
    }

    fn check(&self, spec: &plan::Environment, _system: &dyn System) -> Result<(), OptionError> {
        accel::wanted(spec)?;
        support::boot_timeout(spec)?;
        match &spec.cpus {
            Some(CpuRequest::List(cpus)) if cpus.len() > 1 => Err(OptionError {
                key: "cpus".into(),
                message: format!(
                    "`cpus` cannot be {cpus}: a guest without an operating system has one virtual CPU"
                ),
                hint: "name one CPU".into(),
            }),
            _ => Ok(()),
        }
    }

    fn start(&self, setting: &Setting<'_>) -> Result<Box<dyn Running>, StartError> {
        let wanted = accel::wanted(setting.spec)?;
        let patience = support::boot_timeout(setting.spec)?;
        let (accel, remark) = accel::choose(wanted, ARCH, setting.system)?;
        let notes: Vec<Note> = remark.into_iter().collect();
        let image = setting.workspace.join("guest.elf");
        let bytes =
            probe::bare_guest().ok_or_else(|| cannot("no guest", "this tactus was built without it"))?;
        let written = setting.system.write(&image, bytes);
        written.map_err(|error| cannot(&image.display().to_string(), error))?;
        let (sockets, name) = (Sockets::within(setting.workspace), support::container_name(setting));
        let image = image.display().to_string();
        let words = |build: Build<'_>| {
            let mut words = words(&name, &image, &sockets, build.accel, build.sandbox);
            words.extend(setting.card.iter().flat_map(|card| command::card(&card.socket)));
            words
        };
        let launch = Launch { words: &words, shows_clock: false, sockets: &sockets, wanted, accel, patience };
        guest::start(setting, &launch, notes)
    }
}

/// QEMU's words.
fn words(name: &str, image: &str, sockets: &Sockets, accel: Accel, sandbox: bool) -> Vec<String> {
    let mut words = vec![command::program(ARCH)];
    let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
    add(&["-name", &format!("guest={name},debug-threads=on")]);
    add(&["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
    if sandbox {
        add(&["-sandbox", SANDBOX]);
    }
    let (accel, cpu) = match accel {
        // This bit tells an operating system which processor bugs need no mitigation: the guest has no use for it.
        Accel::Kvm => ("kvm", "host,-arch-capabilities"),
        Accel::Tcg => ("tcg", "max"),
    };
    add(&[
        "-machine",
        "q35,hpet=off",
        "-accel",
        accel,
        "-cpu",
        cpu,
        "-smp",
        "1",
        "-m",
        "64M",
        "-kernel",
        image,
    ]);
    // The guest sends by a port that takes many bytes in one exit, and receives by a serial line. The order of the
    // devices matters: QEMU sends input to the device that took the channel last.
    add(&["-chardev", &format!("{},mux=on", socket("probe", &sockets.probe))]);
    add(&["-device", "isa-debugcon,iobase=0xe9,chardev=probe"]);
    add(&["-device", "isa-serial,iobase=0x3f8,irq=4,chardev=probe"]);
    add(&["-chardev", &socket("console", &sockets.console)]);
    add(&["-device", "isa-serial,iobase=0x2f8,irq=3,chardev=console"]);
    add(&["-chardev", &socket("monitor", &sockets.monitor), "-mon", "chardev=monitor,mode=control"]);
    words
}

#[cfg(test)]
mod tests {
    use tactus_model::catalogue::measure::{Exits, Os, Timer};
    use tactus_model::catalogue::{Fault, Load};
    use tactus_model::scheduling::Policy;

    use super::*;

    fn measuring(measure: Measure) -> What {
        What::Measure { measure, interval_ns: 200_000, priority: 95, policy: Policy::Fifo }
    }

    fn fault(kind: &str) -> What {
        let table = serde_json::json!({"kind": kind, "length": "1ms", "every": "100ms"});
        What::Fault(serde_json::from_value::<Fault>(table).unwrap())
    }

    #[test]
    fn what_needs_an_operating_system_is_refused_and_what_comes_from_outside_is_not() {
        assert_eq!(ENTRY.refuses(&measuring(Measure::Timer(Timer::default()))), None);
        assert_eq!(ENTRY.refuses(&measuring(Measure::Exits(Exits::default()))), None);
        assert_eq!(ENTRY.refuses(&fault("hold-vcpu")), None);
        for (what, word) in [
            (measuring(Measure::Os(Os::default())), "`os`"),
            (What::Load(Load::Cpu(tactus_model::catalogue::load::Cpu::default())), "`cpu`"),
            (fault("block"), "`block`"),
            (measuring(Measure::Timer(Timer { threads: Some(2), ..Timer::default() })), "`threads`"),
        ] {
            assert!(ENTRY.refuses(&what).unwrap().contains(word), "{word}");
        }
    }

    #[test]
    fn it_has_one_virtual_cpu_on_the_first_that_is_for_measuring() {
        let set = |text: &str| text.parse::<CpuSet>().unwrap();
        let machine =
            Topology { allowed: set("0-7"), online: set("0-7"), isolated: set("4-7"), ..Topology::default() };
        assert_eq!(ENTRY.layout(&set("0-7"), false, &machine).cpus, [(0, 4)]);
        assert_eq!(ENTRY.layout(&set("2"), true, &machine).cpus, [(0, 2)]);
        let two =
            plan::Environment { cpus: Some(CpuRequest::List(set("2-3"))), ..plan::Environment::default() };
        let error = ENTRY.check(&two, &tactus_system::Memory::new()).unwrap_err();
        assert!(error.key == "cpus" && error.message.contains("one virtual CPU"), "{error:?}");
    }

    #[test]
    fn what_it_hears_comes_by_the_serial_line_because_that_takes_the_channel_last() {
        let sockets = Sockets::within(std::path::Path::new("/w"));
        let words = words("n", "/w/guest.elf", &sockets, Accel::Tcg, true);
        let at = |beginning: &str| words.iter().position(|word| word.starts_with(beginning)).unwrap();
        assert!(at("isa-debugcon") < at("isa-serial,iobase=0x3f8"), "{words:?}");
        assert!(words.contains(&SANDBOX.to_owned()));
    }
}
