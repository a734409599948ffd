//! Podman.

use super::{Generator, Purpose, container};

/// The entry of the table.
pub static ENTRY: Generator = Generator {
    name: "podman",
    about: "A script that runs an image with Podman as a real-time container. It sets isolated CPUs and memory of \
their node, the capabilities for real-time priorities and locked memory, and no quota. It adds a real-time budget if \
the kernel needs one (RT_GROUP_SCHED with cgroup v1). As root: a rootless container has only the user's limits.",
    purpose: Purpose::Container,
    generate: |request| container::generate(request, "podman"),
};

#[cfg(test)]
mod tests {
    use super::super::testing::{shown, three};
    use super::ENTRY;

    #[test]
    fn budgets_are_given_where_the_kernel_wants_them_and_can_take_them() {
        let [(_, machine), ..] = three();
        let machine = machine.fact("config:CONFIG_RT_GROUP_SCHED", "y");
        let v1 = machine.clone().fact("/proc/self/cgroup", "4:cpu,cpuacct:/\n3:cpuset:/\n0::/\n");
        insta::assert_snapshot!("podman_cgroup_v1_budget", shown(&v1.generate(&ENTRY).unwrap()));
        let v2 = machine.fact("/proc/self/cgroup", "0::/user.slice\n").generate(&ENTRY).unwrap();
        assert!(!v2.files[0].text.contains("\nset -- --cpu-rt-runtime"));
        assert!(v2.notes.iter().any(|note| note.contains("only the root group")));
        let [(_, machine), ..] = three();
        let free = machine.fact("config:CONFIG_RT_GROUP_SCHED", "n").generate(&ENTRY).unwrap();
        assert!(free.notes.is_empty() && !free.files[0].text.contains("ctr-rt-budget"));
    }
}
