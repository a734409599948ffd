//! How much a container is apart from its host.

use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, Source, Subject, Verdict, no_change};

const BOOT: &str = "/proc/sys/kernel/random/boot_id";

pub const CHECK: Check = Check {
    id: "ctr-separation",
    title: "the container shares the kernel of its host, and the latencies of that kernel",
    sources: &[Source::Osadl],
    applies: &[Applies::Container],
    severity: Severity::Info,
    arch: Arch::Any,
    set: &[],
    reversible: Reversible::Nothing,
    hardware: false,
    reads: "/proc/sys/kernel/random/boot_id here and on the container's host",
    expected: "a separate kernel, if host and container must not disturb each other",
    why: "Anything that blocks the host's kernel blocks the container, and vice versa. In osadl-2023 the host was \
blocked for about 4 ms, and the container's maxima were 3647 to 3825 us. With Jailhouse the neighbour stayed at 22 \
us.",
    fix: "Tune and audit the host: no setting in the container can replace it. If a fault of one must not reach the \
other, use a virtual machine or a partition.",
    risk: "A virtual machine costs exits to the hypervisor. A partition takes its hardware away from the rest.",
    judge,
    changes: no_change,
};

fn judge(subject: &Subject<'_>) -> Verdict {
    let release: String = subject.facts.text("uname:release").unwrap_or("?").chars().take(60).collect();
    let shared = format!("the container runs on its host's kernel ({release})");
    match (subject.facts.text(BOOT), subject.carrier.map(|carrier| carrier.text(BOOT))) {
        (Some(here), Some(Some(there))) => {
            Ok(Judgement::when(here != there, "the container has a separate kernel", shared).read(
                BOOT,
                if here == there { "the same here and on the host" } else { "not that of the host" },
            ))
        }
        // On the metal there is no other kernel that it could have.
        _ if !subject.virtualized => Ok(Judgement::finding(shared)),
        _ => Err(Judgement::unknowable(
            "a hypervisor lies below: whether the container shares its kernel cannot be seen from inside",
        )),
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Role, State};

    use super::BOOT;
    use crate::testing::{HOSTILE, guest, intel};

    #[test]
    fn the_same_boot_is_the_same_kernel() {
        let container = intel(&[(BOOT, "a"), ("uname:release", "6.12.0-rt")]).role(Role::Container);
        assert_eq!(container.state("ctr-separation"), State::Finding, "on the metal it must be");
        let on = |id| container.clone().carried_by(intel(&[(BOOT, id)]));
        assert_eq!(on("a").said("ctr-separation"), "the container runs on its host's kernel (6.12.0-rt)");
        assert_eq!(on("b").state("ctr-separation"), State::Ok);
        assert_eq!(container.role(Role::Host).state("ctr-separation"), State::NotApplicable);
    }

    #[test]
    fn above_a_hypervisor_it_cannot_be_seen_from_inside() {
        let container = guest(&[(BOOT, "a")]).role(Role::Container);
        assert_eq!(container.state("ctr-separation"), State::Unknowable);
        for text in HOSTILE {
            assert_eq!(container.clone().and(BOOT, text).state("ctr-separation"), State::Unknowable);
        }
    }
}
