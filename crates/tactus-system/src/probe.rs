//! The probe that ships inside this program.

use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::{System, cache_dir};

pub use tactus_probe_image::{bare_guest, bytes};

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
    let dir = cache_dir(system)?.join(format!("probe-{digest}"));
    // What is run from here must not be exchanged between this look and then.
    let at =
        |path: &Path, error: &io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    system.make_own_dir(&dir).map_err(|error| at(&dir, &error))?;
    let path = dir.join("tactus-probe");
    // The content is compared: a cut file of the right name would be run again and again.
    if system.read(&path).is_ok_and(|found| found == bytes) {
        return Ok(path);
    }
    system.install(&path, bytes, 0o755).map_err(|error| at(&path, &error))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    #[test]
    fn a_damaged_probe_in_the_cache_is_replaced() {
        let machine = Memory::new().set("HOME", "/home/ada");
        let path = installed(&machine).unwrap();
        assert_eq!(machine.read(&path).unwrap(), own().unwrap());
        machine.write(&path, b"cut").unwrap();
        assert_eq!(installed(&machine).unwrap(), path);
        assert_eq!(machine.read(&path).unwrap(), own().unwrap());
    }
}
