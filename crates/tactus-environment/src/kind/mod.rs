//! The kinds of environment: one file each, and one word in the table.

use crate::environment::Environment;

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
    ENVIRONMENTS: dyn Environment; host, podman, docker, oci, lxc, nspawn, pod, qemu, libvirt, jailhouse, ssh, serial
}

/// The kind of environment with this name.
#[must_use]
pub fn find(kind: &str) -> Option<&'static (dyn Environment + Sync)> {
    ENVIRONMENTS.iter().copied().find(|environment| environment.kind() == kind)
}
