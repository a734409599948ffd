//! The kinds of environment: one file each, and one word in the table.

use tactus_model::plan;
use tactus_model::topology::Topology;
use tactus_system::System;

use crate::environment::{Environment, Layout, StartError};

/// Declares the modules of a family and the one table of what they offer. Each module has a
/// `pub static ENTRY`.
macro_rules! registry {
    ($(#[$doc:meta])* $table:ident: dyn $kind:path; $($module:ident),+ $(,)?) => {
        $(pub mod $module;)+
        $(#[$doc])*
        pub static $table: &[&(dyn $kind + Sync)] = &[$(&$module::ENTRY),+];
        #[cfg(test)]
        const MODULES: &[&str] = &[$(stringify!($module)),+];
    };
}

#[cfg(test)]
mod tests;

registry! {
    /// Every kind of environment.
    ENVIRONMENTS: dyn Environment; host, podman, docker, oci, lxc, nspawn, pod, qemu, bare, libvirt, jailhouse, ssh, serial
}

/// The kind of environment with this name.
#[must_use]
pub fn find(kind: &str) -> Option<&'static (dyn Environment + Sync)> {
    ENVIRONMENTS.iter().copied().find(|environment| environment.kind() == kind)
}

/// [`Environment::attached`]; where the kind cannot, with those that can.
///
/// # Errors
/// As there.
pub fn attached(
    kind: &dyn Environment,
    spec: &plan::Environment,
    system: &dyn System,
    machine: &Topology,
) -> Result<Layout, StartError> {
    let found = kind.attached(spec, system, machine);
    if kind.can_attach() {
        return found;
    }
    let can: Vec<&str> = ENVIRONMENTS.iter().filter(|e| e.can_attach()).map(|e| e.kind()).collect();
    let others = format!("leave out `attach`, or use one of {}", can.join(", "));
    found.map_err(|error| StartError { hint: Some(others), ..error })
}
