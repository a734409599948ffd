//! Drops extra privileges. A probe that enters a container from outside has those of the host, and would measure what
//! the container's programs never get.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities,
};

/// The highest capability that a mask may name: the kernel's masks have 64 bits.
const HIGHEST: u32 = 63;

/// Gives up every capability that is not in the mask, for this process and all that it starts.
///
/// # Errors
/// When the kernel refuses it. The process must then end.
pub fn to(mask: u64) -> io::Result<()> {
    for number in 0..=HIGHEST {
        let one = CapabilitySet::from_bits_retain(1 << number);
        if mask >> number & 1 == 0 {
            match remove_capability_from_bounding_set(one) {
                Ok(()) => {}
                // This kernel has no such capability, nor any above it.
                Err(rustix::io::Errno::INVAL) => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    let mask = CapabilitySet::from_bits_retain(mask);
    let now = capabilities(None)?;
    let kept = CapabilitySets {
        effective: now.effective & mask,
        permitted: now.permitted & mask,
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, kept)?)
}

/// A mask as the kernel writes it in `/proc/PID/status`.
pub fn mask(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}
