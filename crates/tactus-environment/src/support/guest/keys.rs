//! Keys of a guest's table, for every kind that boots one.

use crate::OptionKey;

pub const KERNEL: OptionKey = OptionKey {
    name: "kernel",
    about: "rt, standard, a name of `tactus kernel list`, or a path; default: the kernel chosen by `tactus \
kernel use`, else the newest PREEMPT_RT kernel, else the newest",
};
pub const ARCH: OptionKey = OptionKey {
    name: "arch",
    about: "x86_64 or aarch64: the guest's architecture, with a probe and a kernel for it, emulated (TCG) if \
it is not this machine's; default: this machine's",
};
pub const CMDLINE: OptionKey =
    OptionKey { name: "cmdline", about: "words added to the guest's kernel command line; default: none" };
pub const PROFILE: OptionKey = OptionKey {
    name: "profile",
    about: "a tuning profile of `tactus tune`: its kernel parameters go before those of `cmdline`, and the \
probe inside makes its settings of the running system; default: none",
};
pub const ISOLATE: OptionKey = OptionKey {
    name: "isolate",
    about: "CPUs inside that the profile isolates, as 1-2; default: the measured ones, except CPU 0",
};
pub const MEMORY: OptionKey =
    OptionKey { name: "memory", about: "memory of the guest, as 512MiB or 2GiB; default: 512MiB" };
pub const ACCEL: OptionKey =
    OptionKey { name: "accel", about: "auto, kvm or tcg; default: auto, which is KVM if it works, else TCG" };
pub const LOCK_MEMORY: OptionKey = OptionKey {
    name: "lock_memory",
    about: "true: the guest's memory is allocated and locked before it starts; default: false",
};
pub const PROGRAMS: OptionKey = OptionKey {
    name: "programs",
    about: "programs of this machine that the guest gets with their libraries, as [\"crun\"]; default: the \
programs that environments inside it need",
};
pub const BOOT_TIMEOUT: OptionKey = OptionKey {
    name: crate::BOOT_TIMEOUT,
    about: "how long the guest may take to its first message, as 30s; default: 20s under KVM, then one try \
        under TCG; 45s under TCG, then one more try",
};
pub const PCI: OptionKey = OptionKey {
    name: "pci",
    about: "PCI devices of the guest, behind an IOMMU, for measurements of one (`interrupt` with its \
`card`). Each is edu, which QEMU emulates, or the address of one of this machine that is bound to vfio-pci, \
as [\"0000:03:00.0\"]; default: none",
};
