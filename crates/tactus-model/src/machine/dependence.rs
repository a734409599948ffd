//! The dependence of an environment on the machine by construction, for every measurement.

/// How an environment stands to the machine that it is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependence {
    /// It is the machine itself.
    Itself,
    /// It runs on the machine's kernel.
    Kernel,
    /// Its CPUs are threads of the machine's kernel.
    Threads,
    /// A part of the machine is its own; the rest of it is shared.
    Partition,
}

/// The dependence of an environment of this kind; `None`: it is a separate machine, or unknown.
#[must_use]
pub fn dependence(kind: &str) -> Option<Dependence> {
    match kind {
        "host" => Some(Dependence::Itself),
        "docker" | "podman" | "oci" | "lxc" | "nspawn" | "pod" => Some(Dependence::Kernel),
        "qemu" | "bare" | "libvirt" => Some(Dependence::Threads),
        "jailhouse" => Some(Dependence::Partition),
        _ => None,
    }
}

impl Dependence {
    /// Why a disturbance of the machine also affects it; `None`: it is the machine.
    #[must_use]
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Itself => None,
            Self::Kernel => Some("it runs on the host's kernel and ends with it"),
            Self::Threads => Some("its CPUs are threads of the host's kernel and end with it"),
            Self::Partition => {
                Some("the root cell loads it and can stop it, and memory and buses are shared")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_the_machine_depends_on_it_and_what_is_elsewhere_does_not() {
        assert_eq!(dependence("host").map(Dependence::reason), Some(None));
        for kind in ["podman", "qemu", "bare", "jailhouse"] {
            assert!(dependence(kind).and_then(Dependence::reason).is_some(), "{kind}");
        }
        assert_eq!(dependence("ssh"), None);
    }
}
