//! Pitfalls that no plan runs into: they are checked where the thing is generated, measured or
//! reported.

use super::{Pitfall, Scope};

pub static PITFALLS: &[Pitfall] = &[
    Pitfall {
        number: 15,
        title: "locked memory without an adequate hard_limit can fail",
        text: "libvirt then sets a default limit, and QEMU is refused or killed when it needs more. Set the guest's \
memory and a margin (2 GiB).",
        scope: Scope::Elsewhere("tactus tune files libvirt"),
        settings: &[],
    },
    Pitfall {
        number: 16,
        title: "Nova knows hw:emulator_threads_policy, and no other spelling",
        text: "Its value share needs [compute] cpu_shared_set on the host.",
        scope: Scope::Elsewhere("tactus tune files nova"),
        settings: &[],
    },
    Pitfall {
        number: 17,
        title: "--cpu-rt-runtime does not exist on cgroup v2",
        text: "crun refuses it, runc ignores it silently, podman warns.",
        scope: Scope::Elsewhere("tactus tune files podman and docker"),
        settings: &[],
    },
    Pitfall {
        number: 23,
        title: "SMI sources may be the thermal protection",
        text: "Turning them off in the firmware can turn the protection off. tactus changes no SMI source, and \
follows no guide that turns virtualization off.",
        scope: Scope::Elsewhere("tactus explain smi-count"),
        settings: &[],
    },
    Pitfall {
        number: 30,
        title: "a benchmark can overcommit too",
        text: "Twelve measuring threads on one core showed 27 ms, one thread per core 52 us (osadl-2023).",
        scope: Scope::Elsewhere(
            "tactus measure, and every run: the number of threads on a CPU is in the report",
        ),
        settings: &[],
    },
    Pitfall {
        number: 31,
        title: "name housekeeping CPUs that you leave out of results",
        text: "Averages hide maxima, and a figure without the housekeeping CPUs looks better than the machine is.",
        scope: Scope::Elsewhere("tactus report: the CPUs of each figure are named"),
        settings: &[],
    },
];
