//! The default role of a system.

use tactus_model::facts::{Facts, Reading};
use tactus_model::finding::Role;
use tactus_model::threads::Threads;

use super::vm::Vm;

/// The part that a system plays in which an environment of this part measures: the machine itself may be a guest of another
/// one, or a container.
#[must_use]
pub fn role_in(environment: Role, facts: &Facts) -> Role {
    match environment {
        Role::Host => likely_role(facts),
        role => role,
    }
}

/// The most likely role of a system. It is a container if its cgroup says so. It is a guest if it has a hypervisor
/// below, no nested virtualization (neither vmx nor svm; on Arm: no /dev/kvm), and no virtual machines. Most machines
/// in clouds are such guests. Everything else is a host, also a system that runs emulated machines.
#[must_use]
pub fn likely_role(facts: &Facts) -> Role {
    if facts.text("container:kind").is_some() {
        return Role::Container;
    }
    let hands_on = match facts.field("/proc/cpuinfo", "flags", ':') {
        Some(flags) => flags.split_ascii_whitespace().any(|flag| matches!(flag, "vmx" | "svm")),
        None => {
            !matches!(facts.0.get("device:kvm"), Some(Reading::Absent))
                && facts.text("device:kvm") != Some("absent")
        }
    };
    if facts.virtualized() && !hands_on && Vm::all(facts, &Threads::of(facts)).is_empty() {
        Role::Guest
    } else {
        Role::Host
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Severity, State};

    use super::*;
    use crate::testing::{HOSTILE, System, arm, guest, intel};
    use crate::{Intent, Subject, audit};

    const CLOUD: (&str, &str) = ("/proc/cpuinfo", "vendor_id : GenuineIntel\nflags : fpu tsc hypervisor\n");
    const NESTED: (&str, &str) =
        ("/proc/cpuinfo", "vendor_id : GenuineIntel\nflags : fpu tsc vmx hypervisor\n");

    fn of(system: &System) -> Role {
        likely_role(&system.facts)
    }

    #[test]
    fn a_machine_of_a_cloud_is_a_guest_and_one_that_may_carry_guests_a_host() {
        assert_eq!(of(&guest(&[CLOUD])), Role::Guest);
        assert_eq!(of(&guest(&[NESTED])), Role::Host);
        assert_eq!(of(&intel(&[])), Role::Host);
        let board = arm(&[("/proc/device-tree/model", "linux,dummy-virt")]);
        assert_eq!(of(&board.clone().and("device:kvm", "present")), Role::Host);
        assert_eq!(of(&board.clone().absent("device:kvm")), Role::Guest);
        assert_eq!(of(&board), Role::Host, "nobody has looked for /dev/kvm");
        assert_eq!(of(&arm(&[]).absent("device:kvm")), Role::Host, "nothing tells of a hypervisor");
        assert_eq!(of(&guest(&[CLOUD, ("container:kind", "docker")])), Role::Container);
    }

    #[test]
    fn the_machine_is_the_same_alone_and_in_a_run() {
        assert_eq!(role_in(Role::Host, &guest(&[CLOUD]).facts), Role::Guest);
        assert_eq!(role_in(Role::Host, &intel(&[]).facts), Role::Host);
        assert_eq!(role_in(Role::Guest, &intel(&[]).facts), Role::Guest, "it is what it was started as");
        assert_eq!(role_in(Role::Container, &guest(&[CLOUD]).facts), Role::Container);
    }

    #[test]
    fn a_machine_that_emulates_guests_is_their_host() {
        let threads = "812\t812\t1\t400140\tOTHER\t0\t0-3\tqemu-system-x86\n813\t812\t1\t400140\tOTHER\t0\t2\tCPU 0/TCG";
        assert_eq!(of(&guest(&[CLOUD, ("threads:0", threads)])), Role::Host);
    }

    #[test]
    fn that_no_guests_can_be_run_on_a_machine_of_a_cloud_is_no_finding() {
        let cloud = guest(&[CLOUD]).absent("device:kvm");
        let intent = Intent::default();
        let said = audit(&Subject::new(&cloud.facts, of(&cloud), &intent));
        for id in ["virt-extensions", "nested-host", "hypervisor-presence"] {
            let finding = said.findings.iter().find(|finding| finding.id == id).unwrap();
            assert_ne!(finding.state, State::Finding, "{id}: {}", finding.message);
        }
        // As a host it is told once, and only once, that it is a guest.
        let called = audit(&Subject::new(&cloud.facts, Role::Host, &intent));
        let told: Vec<(&str, Severity)> = called
            .found()
            .filter(|finding| {
                ["virt-extensions", "nested-host", "hypervisor-presence"].contains(&&*finding.id)
            })
            .map(|finding| (finding.id.as_str(), finding.severity))
            .collect();
        assert_eq!(told, [("nested-host", Severity::Major)]);
    }

    #[test]
    fn rubbish_does_not_make_a_guest() {
        for text in HOSTILE {
            assert_eq!(of(&intel(&[("/proc/cpuinfo", text)])), Role::Host, "{text}");
            assert_eq!(of(&guest(&[NESTED, ("device:kvm", text)])), Role::Host, "{text}");
        }
    }
}
