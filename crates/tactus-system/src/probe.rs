//! The probe that ships inside this program.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, memfd_create, open};

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

/// The path of the probe as a program of this machine. It lies in the cache, in a directory named by its content, and
/// stays: a guardian may still execute it after its run.
///
/// # Errors
/// When this program was built without one, or the cache cannot be written.
pub fn installed(system: &dyn System) -> io::Result<PathBuf> {
    let bytes = own()?;
    let digest: String = Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let dir = cache_dir(system)?.join(format!("probe-{digest}"));
    // No other user may exchange the file between this check and its execution.
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

/// The probe as a program that gets capabilities: a sealed copy in memory. A copy in the cache would not be safe,
/// because the user can exchange it for any program. It stays as long as this process.
///
/// # Errors
/// When this program was built without a probe, or such memory cannot be made.
pub fn sealed() -> io::Result<PathBuf> {
    static COPY: OnceLock<File> = OnceLock::new();
    let copy = match COPY.get() {
        Some(copy) => copy,
        None => {
            let copy = copied(own()?)?;
            COPY.get_or_init(|| copy)
        }
    };
    Ok(format!("/proc/self/fd/{}", copy.as_raw_fd()).into())
}

#[expect(clippy::disallowed_methods, reason = "it is not a file with a name")]
fn copied(bytes: &[u8]) -> io::Result<File> {
    // Inherited: what enters a network first executes it later.
    let flags = MemfdFlags::ALLOW_SEALING;
    let made = match memfd_create("tactus-probe", flags | MemfdFlags::EXEC) {
        // Before Linux 6.3 all of them can be executed.
        Err(rustix::io::Errno::INVAL) => memfd_create("tactus-probe", flags)?,
        made => made?,
    };
    let mut copy = File::from(made);
    copy.write_all(bytes)?;
    fcntl_add_seals(&copy, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL)?;
    // One that is open for writing cannot be executed.
    let flags = OFlags::RDONLY;
    Ok(open(format!("/proc/self/fd/{}", copy.as_raw_fd()), flags, Mode::empty())?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test executes it")]
    fn a_probe_that_is_handed_capabilities_is_executed_from_memory_that_nobody_can_change() {
        let path = sealed().unwrap();
        assert_eq!(sealed().unwrap(), path, "one copy is enough");
        assert_eq!(std::fs::read(&path).unwrap(), own().unwrap());
        assert!(
            std::fs::OpenOptions::new()
                .write(true)
                .open(&path)
                .and_then(|mut file| file.write_all(b"x"))
                .is_err()
        );
        let said = std::process::Command::new(&path).arg("--version").output().unwrap();
        assert!(!said.stdout.is_empty() || !said.stderr.is_empty());
    }

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
