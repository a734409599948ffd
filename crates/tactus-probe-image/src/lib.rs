//! The built probes, one for each processor architecture, and the guest without an operating system, as bytes. Touches
//! nothing, and depends on nothing but their sources, so that no other change builds it again.

static X86_64: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tactus-probe-x86_64"));
static AARCH64: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tactus-probe-aarch64"));
static BARE_GUEST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tactus-bare-guest"));

/// The probe for a processor architecture (`x86_64`, `aarch64`), if this program was built with it.
#[must_use]
pub fn bytes(arch: &str) -> Option<&'static [u8]> {
    let bytes = match arch {
        "x86_64" => X86_64,
        "aarch64" => AARCH64,
        _ => return None,
    };
    (!bytes.is_empty()).then_some(bytes)
}

/// The guest without an operating system, for x86-64, if this program was built with it.
#[must_use]
pub fn bare_guest() -> Option<&'static [u8]> {
    (!BARE_GUEST.is_empty()).then_some(BARE_GUEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_a_static_program_of_its_architecture() {
        for (arch, machine) in [("x86_64", 62u8), ("aarch64", 183)] {
            let Some(bytes) = bytes(arch) else { continue };
            assert_eq!(&bytes[..4], b"\x7fELF", "{arch}");
            assert_eq!(bytes[18], machine, "{arch}");
        }
        assert!(bytes(std::env::consts::ARCH).is_some());
        assert_eq!(bytes("vax"), None);
    }

    #[test]
    fn the_bare_guest_is_an_image_of_64_kib_at_most_that_a_hypervisor_can_enter() {
        let Some(bytes) = bare_guest() else { return };
        assert_eq!(&bytes[..4], b"\x7fELF");
        assert!(bytes.len() <= 64 << 10, "{} bytes", bytes.len());
        // The note of PVH: lengths of name and content, its type, its name.
        let note = [4u32.to_le_bytes(), 4u32.to_le_bytes(), 18u32.to_le_bytes(), *b"Xen\0"].concat();
        assert!(bytes.windows(note.len()).any(|window| window == note));
    }
}
