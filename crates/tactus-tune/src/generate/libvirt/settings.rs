//! The settings of a real-time guest's domain, element by element, after libvirt's own guide
//! (docs/kbase/kvm-realtime.rst).

use tactus_audit::Arch;

use super::edit::{Setting, Wanted, What};
use crate::generate::{Accel, GenerateError, GenerateRequest, Page, Placement, Size};

/// Memory beside the guest's own that QEMU may lock: 2 GiB. Too little of it ends the guest at start or
/// in the middle of its life.
pub const OVERHEAD: u64 = 2 << 30;

/// The values that must be known before the elements are written.
pub struct Guest<'a> {
    pub request: &'a GenerateRequest<'a>,
    pub placement: Placement,
    pub memory: Size,
    /// `None`: what the domain says stays.
    pub page: Option<Page>,
    pub accel: Accel,
    /// The numbers of the threads for disks.
    pub iothreads: Vec<usize>,
    /// Amounts that the domain says already, perhaps in other units, or more of them.
    pub said: Vec<&'static str>,
    /// Whether it keeps USB, because something is plugged into it.
    pub usb: bool,
}

/// Everything that the domain should say, in the request in which it is read.
pub fn settings(guest: &Guest<'_>) -> Vec<Setting> {
    let mut all = memory(guest);
    all.extend(cpus(guest));
    all.extend(features(guest));
    all.extend(devices(guest));
    all
}

/// The features that an emulated guest cannot have, a sentence each.
pub fn drops(request: &GenerateRequest<'_>) -> Vec<String> {
    let mut dropped = vec![
        "cpu-passthrough: TCG has no host-passthrough; the guest gets every feature that QEMU can emulate (mode \
maximum)",
        "vpmu-off: an emulated processor has no performance counters to turn off",
    ];
    if request.subject.is(Arch::X86) {
        dropped.insert(1, "guest-tsc-deadline: QEMU emulates no TSC-deadline timer");
        dropped.insert(1, "kvm-hint-dedicated: only KVM gives the guest hints");
    }
    dropped
        .into_iter()
        .map(|text| format!("dropped, because QEMU emulates the processor (TCG): {text}"))
        .collect()
}

fn some(check: &'static str, why: impl Into<String>, wanted: Wanted) -> Setting {
    Setting { check, why: why.into(), what: What::Element(wanted) }
}

fn one(path: &'static [&'static str], name: &'static str) -> Wanted {
    Wanted { path, name, ..Wanted::default() }
}

impl Wanted {
    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.attributes.push((name, Some(value.into())));
        self
    }

    fn without(mut self, name: &'static str) -> Self {
        self.attributes.push((name, None));
        self
    }

    fn keyed(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.key.push((name, value.into()));
        self
    }

    fn anew(mut self) -> Self {
        self.anew = true;
        self
    }

    fn saying(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }
}

fn memory(guest: &Guest<'_>) -> Vec<Setting> {
    let Guest { placement, memory, page, .. } = guest;
    let kib = (memory.0 / 1024).to_string();
    let amount = |name| one(&[], name).with("unit", "KiB").saying(kib.clone());
    let limit = ((memory.0 + OVERHEAD) / 1024).to_string();
    let amounts = ["memory", "currentMemory"].into_iter().filter(|name| !guest.said.contains(name));
    let mut all: Vec<Setting> = amounts.map(|name| some("", "", amount(name))).collect();
    if !guest.said.contains(&"hard_limit") {
        all.push(some(
            "mem-lock",
            "the limit of QEMU's locked memory: the guest's memory and 2 GiB for QEMU itself. If it is too low, \
<locked/> ends the guest",
            one(&["memtune"], "hard_limit").with("unit", "KiB").saying(limit),
        ));
    }
    match page {
        None => {}
        Some(Page::Base) => all.push(Setting {
            check: "guest-hugepages",
            why: String::new(),
            what: What::No(&["memoryBacking", "hugepages"], Vec::new()),
        }),
        Some(page @ (Page::M2 | Page::G1)) => {
            let (size, unit) = if *page == Page::G1 { ("1", "G") } else { ("2", "M") };
            all.push(some(
                "guest-hugepages",
                format!(
                    "{} pages of {}iB must be free on the host{}; reserve them at boot",
                    memory.0 / page.bytes(),
                    page.word(),
                    placement.node.map(|node| format!(" on node {node}")).unwrap_or_default()
                ),
                one(&["memoryBacking", "hugepages"], "page").with("size", size).with("unit", unit),
            ));
        }
    }
    let backing = |name| one(&["memoryBacking"], name);
    all.push(some(
        "mem-prealloc-nomerge",
        "the host does not merge and unshare its pages",
        backing("nosharepages"),
    ));
    all.push(some("mem-lock", "its memory is never swapped or moved", backing("locked")));
    all.push(some(
        "mem-prealloc-nomerge",
        "all pages are allocated before it starts: a longer start, but no delay later",
        backing("allocation").with("mode", "immediate"),
    ));
    all
}

fn cpus(guest: &Guest<'_>) -> Vec<Setting> {
    let Guest { placement, .. } = guest;
    let count = placement.count();
    let mut all = vec![some(
        "",
        "",
        one(&[], "vcpu")
            .with("placement", "static")
            .without("current")
            .without("cpuset")
            .saying(count.to_string()),
    )];
    if !guest.iothreads.is_empty() {
        let threads = one(&[], "iothreads").saying(guest.iothreads.len().to_string());
        all.push(some("iothread-pin", "a separate thread serves the disks", threads));
    }
    for (vcpu, cpu) in placement.cpus.iter().enumerate() {
        let why = match vcpu {
            0 => "each vCPU has a dedicated isolated CPU; vCPU 0 does housekeeping inside the guest",
            _ => "",
        };
        let pin =
            one(&["cputune"], "vcpupin").keyed("vcpu", vcpu.to_string()).with("cpuset", cpu.to_string());
        all.push(some("vcpu-pin", why, pin));
    }
    let house = placement.emulator.to_string();
    all.push(some(
        "emulator-pin",
        "QEMU's other threads and vhost's keep off the vCPUs' CPUs, where they would starve below FIFO",
        one(&["cputune"], "emulatorpin").with("cpuset", house.clone()),
    ));
    for (n, thread) in guest.iothreads.iter().enumerate() {
        let why = if n == 0 { "and the disks' threads" } else { "" };
        let pin = one(&["cputune"], "iothreadpin").keyed("iothread", thread.to_string());
        all.push(some("iothread-pin", why, pin.with("cpuset", house.clone())));
    }
    let vcpus = if count == 1 { "0".into() } else { format!("0-{}", count - 1) };
    let why = "no ordinary thread preempts a vCPU, including vCPU 0: the others wait for locks that it holds, and it \
has a dedicated CPU here. Nova and KubeVirt leave vCPU 0 out, since their emulator threads may share its CPU. Safe \
only with the pins above: other threads on the CPU of a busy FIFO vCPU never run";
    all.push(Setting { why: why.into(), ..fifo(vcpus) });
    if let Some(node) = placement.node {
        let memory = one(&["numatune"], "memory").with("mode", "strict").with("nodeset", node.to_string());
        all.push(some(
            "numa-locality",
            "the memory is on the node of the CPUs; without enough of it, the guest does not start",
            memory.without("placement"),
        ));
    }
    all
}

/// The vCPUs that get the lowest real-time priority.
pub fn fifo(vcpus: String) -> Setting {
    some(
        "vcpu-fifo",
        "no ordinary thread preempts a vCPU. Safe only with the pins above: other threads on the CPU of a busy FIFO \
vCPU never run",
        one(&["cputune"], "vcpusched").with("vcpus", vcpus).with("scheduler", "fifo").with("priority", "1"),
    )
}

fn features(guest: &Guest<'_>) -> Vec<Setting> {
    let Guest { placement, accel, request, .. } = guest;
    let x86 = request.subject.is(Arch::X86);
    let no = |path| Setting { check: "", why: String::new(), what: What::No(path, Vec::new()) };
    let kind = if *accel == Accel::Kvm { "kvm" } else { "qemu" };
    let mut all = vec![some("", "", Wanted::default().with("type", kind))];
    let cpu = one(&[], "cpu").without("match");
    let threads = placement.threads;
    let topology = one(&["cpu"], "topology")
        .with("sockets", "1")
        .with("dies", "1")
        .with("cores", (placement.count() / threads).to_string())
        .with("threads", threads.to_string())
        .without("clusters");
    let topology = some(
        "llc-sharing",
        "the real topology of the CPUs below, so that the guest knows which CPUs share what",
        topology,
    );
    match accel {
        Accel::Kvm => {
            if x86 {
                all.push(some(
                    "kvm-hint-dedicated",
                    "the guest spins and polls as on real CPUs. Wrong if its CPUs are shared",
                    one(&["features", "kvm"], "hint-dedicated").with("state", "on"),
                ));
            }
            all.push(some(
                "vpmu-off",
                "no counters to switch; no perf inside",
                one(&["features"], "pmu").with("state", "off"),
            ));
            all.push(some(
                "cpu-passthrough",
                "no emulated processor features. The guest cannot migrate to another model",
                cpu.with("mode", "host-passthrough"),
            ));
            all.extend([no(&["cpu", "model"]), no(&["cpu", "vendor"]), topology]);
            if x86 {
                all.push(some(
                    "guest-tsc-deadline",
                    "a timer is one write of a register",
                    one(&["cpu"], "feature").keyed("name", "tsc-deadline").with("policy", "require"),
                ));
            }
        }
        Accel::Tcg => {
            all.extend([no(&["features", "kvm", "hint-dedicated"]), no(&["features", "pmu"])]);
            all.push(some(
                "",
                "the most that QEMU can emulate",
                cpu.with("mode", "maximum").without("migratable"),
            ));
            let tsc = What::No(&["cpu", "feature"], vec![("name", "tsc-deadline".into())]);
            all.extend([no(&["cpu", "model"]), no(&["cpu", "vendor"]), topology]);
            all.push(Setting { check: "guest-tsc-deadline", why: String::new(), what: tsc });
        }
    }
    if x86 {
        all.push(some(
            "hpet",
            "the guest cannot fall back to a slow clock",
            one(&["clock"], "timer").keyed("name", "hpet").with("present", "no"),
        ));
    }
    all
}

fn devices(guest: &Guest<'_>) -> Vec<Setting> {
    let mut all = Vec::new();
    if !guest.usb {
        let no = |path| Setting {
            check: "no-extra-devices",
            why: String::new(),
            what: What::No(path, vec![("bus", "usb".into())]),
        };
        all.push(no(&["devices", "input"]));
        all.push(no(&["devices", "redirdev"]));
        let usb = one(&["devices"], "controller").keyed("type", "usb").with("model", "none").anew();
        all.push(some("no-extra-devices", "a USB controller polls, even with nothing in it", usb));
    }
    let balloon = one(&["devices"], "memballoon").with("model", "none").anew();
    all.push(some("no-extra-devices", "memory stays allocated", balloon));
    all
}

/// # Errors
/// As [`GenerateRequest::placement`] and [`GenerateRequest::memory`].
pub fn guest<'a>(request: &'a GenerateRequest<'a>) -> Result<Guest<'a>, GenerateError> {
    let placement = request.placement(2)?;
    let (memory, page) = request.memory()?;
    Ok(Guest {
        request,
        placement,
        memory,
        page: Some(page),
        accel: request.accel(),
        iothreads: vec![1],
        said: Vec::new(),
        usb: false,
    })
}
