//! Passes the capabilities that `setcap` gave this program on to the probe that it starts.
//!
//! A capability of a file ends with the next exec, unless it is ambient (capabilities(7)). It is ambient only while the
//! probe starts, and not for other commands. The probe takes it away from a plan's commands, so those run with their
//! user's rights.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, configure_capability_in_ambient_set, set_capabilities,
};

/// The capabilities that a probe needs: for real-time priorities and for locked memory.
const HANDED_ON: CapabilitySet = CapabilitySet::SYS_NICE.union(CapabilitySet::IPC_LOCK);

/// Whether this program was given some of [`HANDED_ON`] that its user has not.
#[must_use]
pub fn are_handed_on() -> bool {
    let ours = capabilities(None).is_ok_and(|own| !(own.permitted & HANDED_ON).is_empty());
    ours && !rustix::process::geteuid().is_root()
}

/// Does something while this thread's children inherit what we have of [`HANDED_ON`].
pub fn handed_on<T>(begin: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    // A kernel that reports no capabilities has none to pass on.
    let Ok(before) = capabilities(None) else { return begin() };
    let ours = before.permitted & HANDED_ON;
    // Root's programs have all anyway.
    if ours.is_empty() || rustix::process::geteuid().is_root() {
        return begin();
    }
    set_capabilities(None, CapabilitySets { inheritable: before.inheritable | ours, ..before })?;
    let raised = ours.iter().try_for_each(|one| configure_capability_in_ambient_set(one, true));
    let begun = raised.map_err(io::Error::from).and_then(|()| begin());
    // A capability that is not inheritable is not ambient: this call takes both back.
    set_capabilities(None, before)?;
    begun
}
