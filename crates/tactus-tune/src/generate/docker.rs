//! Docker.

use super::{Generator, Purpose, container};

/// The entry of the table.
pub static ENTRY: Generator = Generator {
    name: "docker",
    about: "A script that runs an image with Docker as a real-time container. It sets isolated CPUs and memory of \
their node, the capabilities for real-time priorities and locked memory, and no quota. It adds a real-time budget if \
the kernel needs one (RT_GROUP_SCHED with cgroup v1).",
    purpose: Purpose::Container,
    generate: |request| container::generate(request, "docker"),
};

#[cfg(test)]
mod tests {
    use super::super::testing::{shown, three};
    use super::ENTRY;

    #[test]
    fn the_script_of_each_machine() {
        for (name, machine) in three() {
            insta::assert_snapshot!(format!("docker_{name}"), shown(&machine.generate(&ENTRY).unwrap()));
        }
    }
}
