//! The processors: /proc/cpuinfo, what CPUID answers, model specific registers, interrupts.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use tactus_model::facts::{Facts, MAX_READING, Reading};
use tactus_model::topology::Topology;

use crate::Leaves;
use crate::read::{Collector, refused};

/// Where the kernel describes them.
pub const CPUINFO: &str = "/proc/cpuinfo";
const INTERRUPTS: &str = "/proc/interrupts";
/// Fields that may differ from one processor to the next and matter.
const MAY_DIFFER: &[&str] = &[
    "CPU implementer",
    "CPU part",
    "CPU revision",
    "CPU variant",
    "cpu MHz",
    "flags",
    "microcode",
    "model",
    "model name",
    "stepping",
];
/// CPUs whose SMIs are counted: reading a register interrupts its CPU.
const MOST_SMI_COUNTS: usize = 64;
const SMI_COUNT: u32 = 0x34;
/// IA32_APIC_BASE, IA32_FEATURE_CONTROL, PKG_CST_CONFIG_CONTROL, POWER_CTL (Intel's manual, volume 4).
const OF_PACKAGE_INTEL: &[u32] = &[0x1b, 0x3a, 0xe2, 0x1fc];
/// VM_CR: whether the firmware forbids SVM (AMD's manual, volume 2, 15.30).
const OF_PACKAGE_AMD: &[u32] = &[0xc001_0114];

/// Keeps all of them. `cpuinfo` has been read already.
pub fn keep(it: &mut Collector, cpuinfo: io::Result<String>, leaves: Leaves) {
    let intel = cpuinfo.as_ref().is_ok_and(|text| text.contains("GenuineIntel"));
    let amd = cpuinfo.as_ref().is_ok_and(|text| text.contains("AuthenticAMD"));
    it.keep_result(CPUINFO, cpuinfo.map(|text| if text.len() <= MAX_READING { text } else { short(&text) }));
    keep_interrupts(it);
    for (name, value) in leaves {
        match value {
            Some([eax, ebx, ecx, edx]) => {
                it.facts.keep(name, format!("eax={eax:#x} ebx={ebx:#x} ecx={ecx:#x} edx={edx:#x}"));
            }
            None => {
                it.facts.0.insert(name, Reading::Absent);
            }
        }
    }
    if intel || amd {
        keep_registers(it, intel);
    }
}

/// The first processor whole, and of the others what differs from it: on a large machine the text
/// would be cut before the last.
fn short(text: &str) -> String {
    let mut blocks = text.split("\n\n");
    let first = blocks.next().unwrap_or_default();
    let mut short = first.to_owned();
    let known: Vec<&str> = first.lines().collect();
    for block in blocks {
        short.push_str("\n\n");
        for line in block.lines() {
            let key = line.split(':').next().unwrap_or_default().trim();
            if key == "processor" || (MAY_DIFFER.contains(&key) && !known.contains(&line)) {
                short.push_str(line);
                short.push('\n');
            }
        }
    }
    short
}

fn keep_interrupts(it: &mut Collector) {
    let text = fs::read_to_string(INTERRUPTS);
    if let Ok(text) = &text
        && text.len() > MAX_READING
    {
        it.facts.keep_parts("interrupts", tactus_model::interrupts::compact(text));
    }
    it.keep_result(INTERRUPTS, text);
}

/// Model specific registers, where the kernel offers them.
fn keep_registers(it: &mut Collector, intel: bool) {
    let topology = Topology::of(&it.facts);
    let mut packages = Vec::new();
    for (n, cpu) in topology.online.iter().enumerate() {
        let package = it.facts.number(&package_of(cpu));
        let first = !packages.contains(&package);
        let counts = intel && n < MOST_SMI_COUNTS;
        if !first && !counts {
            continue;
        }
        let mut wanted = Vec::new();
        if counts {
            wanted.push(SMI_COUNT);
        }
        if first {
            packages.push(package);
            wanted.extend(if intel { OF_PACKAGE_INTEL } else { OF_PACKAGE_AMD });
        }
        match open(cpu) {
            Ok(device) => {
                for register in wanted {
                    keep_register(&mut it.facts, &device, cpu, register);
                }
            }
            // The device exists for all CPUs or for none: one reading is enough.
            Err(error) => {
                it.facts.0.insert(name(cpu, SMI_COUNT), refused(&error.into()));
                return;
            }
        }
    }
}

fn package_of(cpu: u32) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id")
}

fn name(cpu: u32, register: u32) -> String {
    format!("msr:{cpu}:{register:#x}")
}

fn open(cpu: u32) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(format!("/dev/cpu/{cpu}/msr"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

fn keep_register(facts: &mut Facts, device: &OwnedFd, cpu: u32, register: u32) {
    let mut bytes = [0; 8];
    let reading = match rustix::io::pread(device, &mut bytes, u64::from(register)) {
        Ok(8) => Reading::Text(format!("{:#x}", u64::from_ne_bytes(bytes))),
        Ok(_) => Reading::Unreadable("not eight bytes".into()),
        Err(rustix::io::Errno::IO) => Reading::Unreadable("this processor has no such register".into()),
        Err(error) => Reading::Unreadable(io::Error::from(error).to_string()),
    };
    facts.0.insert(name(cpu, register), reading);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_cpuinfo_keeps_its_first_processor_and_what_differs_in_the_others() {
        let block = |cpu: u32| {
            format!(
                "processor\t: {cpu}\nmodel name\t: X\nflags\t\t: fpu hypervisor\ncpu MHz\t\t: {}\nbogomips\t: 1{cpu}\n",
                if cpu == 2 { 900 } else { 800 }
            )
        };
        let text = (0..3).map(block).collect::<Vec<_>>().join("\n");
        let short = short(&text);
        assert_eq!(short.matches("flags").count(), 1);
        assert_eq!(short.matches("processor\t").count(), 3);
        assert_eq!(short.matches("bogomips").count(), 1);
        assert!(short.ends_with("processor\t: 2\ncpu MHz\t\t: 900\n"), "{short}");
    }

    #[test]
    fn a_register_that_cannot_be_read_says_why() {
        let mut it = Collector::default();
        keep_registers(&mut it, true);
        assert!(it.facts.0.contains_key("msr:0:0x34"));
    }

    #[test]
    fn registers_of_the_processor_are_written_in_order() {
        let mut it = Collector::default();
        keep(
            &mut it,
            Ok(String::new()),
            vec![("cpuid:0x1:0".into(), Some([1, 2, 3, 0xff])), ("cpuid:0x10:0".into(), None)],
        );
        assert_eq!(it.facts.text("cpuid:0x1:0"), Some("eax=0x1 ebx=0x2 ecx=0x3 edx=0xff"));
        assert_eq!(it.facts.0["cpuid:0x10:0"], Reading::Absent);
    }
}
