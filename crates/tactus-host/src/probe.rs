//! The probe that ships inside this program.

use std::io;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::system::{System, cache_dir};

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

/// The probe for this machine.
///
/// # Errors
/// When this program was built without it.
pub fn own() -> io::Result<&'static [u8]> {
    let arch = std::env::consts::ARCH;
    bytes(arch).ok_or_else(|| {
        let words = format!("this tactus was built without a probe for {arch}");
        io::Error::new(io::ErrorKind::Unsupported, words)
    })
}

/// The path of the probe as a program of this machine. It lies in the cache, below its content's
/// name, and stays: a guardian that outlives its run executes it.
///
/// # Errors
/// When this program was built without one, or the cache cannot be written.
pub fn installed(system: &dyn System) -> io::Result<PathBuf> {
    let bytes = own()?;
    let digest: String = Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let path = cache_dir(system).join(format!("probe-{digest}")).join("tactus-probe");
    // The content is compared: a cut file of the right name would be run again and again.
    if system.read(&path).is_ok_and(|found| found == bytes) {
        return Ok(path);
    }
    system
        .install(&path, bytes, 0o755)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::Memory;

    #[test]
    fn a_damaged_probe_in_the_cache_is_replaced() {
        let machine = Memory::new().set("HOME", "/home/ada");
        let path = installed(&machine).unwrap();
        assert_eq!(machine.read(&path).unwrap(), own().unwrap());
        machine.write(&path, b"cut").unwrap();
        assert_eq!(installed(&machine).unwrap(), path);
        assert_eq!(machine.read(&path).unwrap(), own().unwrap());
    }

    #[test]
    fn a_probe_is_a_static_program_of_its_architecture() {
        for (arch, machine) in [("x86_64", 62u8), ("aarch64", 183)] {
            let Some(bytes) = bytes(arch) else { continue };
            assert_eq!(&bytes[..4], b"\x7fELF", "{arch}");
            assert_eq!(bytes[18], machine, "{arch}");
        }
        assert!(own().is_ok());
        assert_eq!(bytes("vax"), None);
    }
}
