//! The built probes, one for each processor architecture, as bytes. Touches nothing, and depends on nothing but
//! the sources of the probe, so that no other change builds it again.

static X86_64: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tactus-probe-x86_64"));
static AARCH64: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tactus-probe-aarch64"));

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
}
