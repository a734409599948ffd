//! Keys of a guest's table, for every kind that boots one.

use crate::OptionKey;

pub const KERNEL: OptionKey = OptionKey {
    name: "kernel",
    about: "rt, standard, a name of `tactus kernel list`, or a path; left out: what `tactus kernel use` \
chose, else the newest PREEMPT_RT kernel, else the newest",
};
pub const ARCH: OptionKey = OptionKey {
    name: "arch",
    about: "x86_64 or aarch64: the guest's architecture, with a probe and a kernel for it, emulated (TCG) where it \
is not this machine's; left out: this machine's own",
};
pub const CMDLINE: OptionKey =
    OptionKey { name: "cmdline", about: "words added to the guest's kernel command line; left out: none" };
pub const PROFILE: OptionKey = OptionKey {
    name: "profile",
    about: "a tuning profile of `tactus tune`: its kernel parameters go before those of `cmdline`, and what it \
sets while a system runs is set inside by the probe; left out: none",
};
pub const ISOLATE: OptionKey = OptionKey {
    name: "isolate",
    about: "CPUs inside that the profile isolates, as 1-2; left out: those that are measured on, all but CPU 0",
};
pub const MEMORY: OptionKey =
    OptionKey { name: "memory", about: "memory of the guest, as 512MiB or 2GiB; left out: 512MiB" };
pub const ACCEL: OptionKey = OptionKey {
    name: "accel",
    about: "auto, kvm or tcg; left out: auto, which is KVM where it works and TCG where it does not",
};
pub const LOCK_MEMORY: OptionKey = OptionKey {
    name: "lock_memory",
    about: "true: the guest's memory is allocated and locked before it starts; left out: false",
};
pub const PROGRAMS: OptionKey = OptionKey {
    name: "programs",
    about: "programs of this machine that the guest gets with their libraries, as [\"crun\"]; left out: those that \
environments inside it need",
};
pub const BOOT_TIMEOUT: OptionKey = OptionKey {
    name: crate::BOOT_TIMEOUT,
    about: "how long the guest may take to its first word, as 30s; left out: 20s under KVM, then it is tried under TCG; 45s under TCG, then it is started once more",
};
pub const PCI: OptionKey = OptionKey {
    name: "pci",
    about: "PCI devices of the guest, behind an IOMMU, for measurements that drive one (`interrupt` with its `card`): edu, which \
QEMU emulates, or the address of one of this machine that is bound to vfio-pci, as [\"0000:03:00.0\"]; left out: none",
};
