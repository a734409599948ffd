//! A kernel in the form that boots fastest.

use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tactus_system::{System, cache_dir};

use super::find::LARGEST;
use super::image::{Image, identify};
use super::{elf, unpack};

/// The file that QEMU gets as its kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bootable {
    /// The file.
    pub path: PathBuf,
    /// Whether it is an unpacked kernel, entered directly (PVH): some three seconds faster under
    /// emulation, because no emulated CPU has to unpack it.
    pub direct: bool,
    /// Why it is not, when it is not.
    pub why_not: Option<String>,
}

/// The unpacked kernel out of a bzImage, unpacked once and kept in the cache by its content's name;
/// the bzImage itself where that cannot be.
///
/// # Errors
/// When the kernel cannot be read.
pub fn bootable(kernel: &Path, system: &dyn System) -> io::Result<Bootable> {
    let bytes = system.read_regular(kernel, LARGEST)?;
    let as_it_is = |why: String| Bootable { path: kernel.into(), direct: false, why_not: Some(why) };
    let payload = match identify(&bytes) {
        Image::Elf => {
            let direct = elf::is_pvh(&bytes);
            let why_not = (!direct).then(|| "it has no PVH note".to_owned());
            return Ok(Bootable { path: kernel.into(), direct, why_not });
        }
        Image::BzImage { payload: Some(payload), .. } => payload,
        Image::BzImage { payload: None, .. } => {
            return Ok(as_it_is("its header does not contain the position of its payload".into()));
        }
        // Debian's is not packed, and QEMU enters it directly.
        Image::Arm64 => return Ok(Bootable { path: kernel.into(), direct: true, why_not: None }),
        Image::Other(_) => return Ok(as_it_is("it is not an x86 kernel".into())),
    };
    let digest: String = Sha256::digest(&bytes).iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    // The guest must boot exactly the image that was unpacked: only this user may write there.
    let own = |cache: PathBuf| system.make_own_dir(&cache.join("vmlinux")).map(|()| cache.join("vmlinux"));
    let dir = match cache_dir(system).and_then(own) {
        Ok(dir) => dir,
        Err(error) => return Ok(as_it_is(error.to_string())),
    };
    let (unpacked, refused) = (dir.join(&digest), dir.join(format!("{digest}.no")));
    if system.exists(&unpacked) {
        return Ok(Bootable { path: unpacked, direct: true, why_not: None });
    }
    if let Ok(why) = system.read(&refused) {
        return Ok(as_it_is(String::from_utf8_lossy(&why).into_owned()));
    }
    let why = match unpack::payload(&bytes[payload]) {
        Ok(vmlinux) if elf::is_pvh(&vmlinux) => {
            // A cache that cannot be written costs time and nothing else.
            match system.install(&unpacked, &vmlinux, 0o644) {
                Ok(()) => return Ok(Bootable { path: unpacked, direct: true, why_not: None }),
                Err(error) => return Ok(as_it_is(format!("{}: {error}", unpacked.display()))),
            }
        }
        Ok(_) => "it has no PVH note (CONFIG_PVH)".to_owned(),
        Err(error) => format!("its payload cannot be unpacked: {error}"),
    };
    // A cache that cannot be written costs time and nothing else, and the door logs it.
    let _ = system.install(&refused, why.as_bytes(), 0o644);
    Ok(as_it_is(why))
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::super::elf::tests::{kernel_with, pvh_notes};
    use super::super::image::tests::bzimage_of;
    use super::*;

    fn xz(bytes: &[u8]) -> Vec<u8> {
        let mut packed = liblzma::encode_all(bytes, 1).unwrap();
        packed.extend([0; 4]);
        packed
    }

    #[test]
    fn a_kernel_is_unpacked_once() {
        let vmlinux = kernel_with(&pvh_notes());
        let machine = Memory::new().root().file("/boot/vmlinuz", bzimage_of("6.1", &xz(&vmlinux)));
        let first = bootable(Path::new("/boot/vmlinuz"), &machine).unwrap();
        assert!(first.direct && first.path.starts_with("/var/cache/tactus/vmlinux"), "{first:?}");
        assert_eq!(machine.read(&first.path).unwrap(), vmlinux);
        machine.write(&first.path, b"the same file is used again").unwrap();
        assert_eq!(bootable(Path::new("/boot/vmlinuz"), &machine).unwrap(), first);
        assert_eq!(
            machine.text(first.path.to_str().unwrap()).as_deref(),
            Some("the same file is used again")
        );
    }

    #[test]
    fn a_kernel_without_a_pvh_note_or_with_a_damaged_payload_boots_as_it_is() {
        for (payload, says) in [(xz(&kernel_with(&[])), "PVH"), (b"\xfd7zXZ\0 damaged".to_vec(), "unpacked")]
        {
            let machine = Memory::new().root().file("/k", bzimage_of("6.1", &payload));
            for _ in 0..2 {
                let found = bootable(Path::new("/k"), &machine).unwrap();
                assert_eq!((found.path, found.direct), (PathBuf::from("/k"), false));
                assert!(found.why_not.unwrap().contains(says));
            }
        }
    }
}
