//! Identifies a file that should be a kernel image. Pure: bytes in, facts out.

use std::ops::Range;

/// The kind of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Image {
    /// An x86 bzImage.
    BzImage {
        /// The version string of its setup header: release, builder, `#1 SMP PREEMPT_RT ...`.
        version: String,
        /// Where the packed kernel lies in the file, when the boot protocol is new enough to say so.
        payload: Option<Range<usize>>,
    },
    /// An unpacked kernel (vmlinux).
    Elf,
    /// An arm64 Image.
    Arm64,
    /// Something else; what it looks like.
    Other(&'static str),
}

/// The boot protocol from which the header tells where the payload lies.
const PAYLOAD_PROTOCOL: u16 = 0x0208;
/// The longest version string that is read.
const MAX_VERSION: usize = 256;

/// Identifies an image by its bytes.
#[must_use]
pub fn identify(bytes: &[u8]) -> Image {
    if let Some(image) = bzimage(bytes) {
        return image;
    }
    if bytes.get(0x38..0x3c) == Some(b"ARM\x64") {
        return Image::Arm64;
    }
    if bytes.starts_with(b"\x7fELF") {
        // A kernel module or a program is ELF too: a kernel is an executable with program headers.
        return if bytes.get(0x10..0x12) == Some(&[2, 0]) {
            Image::Elf
        } else {
            Image::Other("an ELF file, but not a kernel")
        };
    }
    Image::Other(looks_like(bytes))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// By Documentation/arch/x86/boot.rst of the kernel.
fn bzimage(bytes: &[u8]) -> Option<Image> {
    if u16_at(bytes, 0x1fe)? != 0xaa55 || bytes.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let protocol = u16_at(bytes, 0x206)?;
    let at = usize::from(u16_at(bytes, 0x20e)?) + 0x200;
    let text = bytes.get(at..).unwrap_or_default();
    let text = &text[..text.len().min(MAX_VERSION)];
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(0);
    let version = String::from_utf8_lossy(&text[..end]).into_owned();
    Some(Image::BzImage { version, payload: if protocol < PAYLOAD_PROTOCOL { None } else { payload(bytes) } })
}

fn payload(bytes: &[u8]) -> Option<Range<usize>> {
    let setup_sectors = match *bytes.get(0x1f1)? {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let offset = usize::try_from(u32_at(bytes, 0x248)?).ok()?;
    let length = usize::try_from(u32_at(bytes, 0x24c)?).ok()?;
    let start = ((setup_sectors + 1) * 512).checked_add(offset)?;
    let end = start.checked_add(length)?;
    (end <= bytes.len() && length > 4).then_some(start..end)
}

fn looks_like(bytes: &[u8]) -> &'static str {
    const MAGIC: &[(&[u8], &str)] = &[
        (b"\x1f\x8b", "a gzip file (unpack it, if it is a kernel)"),
        (b"\xfd7zXZ\0", "an xz file (unpack it, if it is a kernel)"),
        (b"\x28\xb5\x2f\xfd", "a zstd file (unpack it, if it is a kernel)"),
        (b"!<arch>\n", "a Debian package (`tactus kernel fetch` unpacks those)"),
        (b"\xed\xab\xee\xdb", "an RPM package"),
        (b"QFI\xfb", "a QEMU disk image"),
        (b"070701", "a cpio archive, perhaps an initramfs"),
        (b"PK\x03\x04", "a zip file"),
        (b"MZ\0\0zimg", "a compressed EFI kernel (build the Image instead)"),
        (b"MZ", "a Windows or EFI program"),
        (b"#!", "a script"),
    ];
    if bytes.is_empty() {
        return "empty";
    }
    if let Some((_, name)) = MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return name;
    }
    let head = &bytes[..bytes.len().min(512)];
    if std::str::from_utf8(head).is_ok_and(|text| !text.contains('\0')) {
        "a text file"
    } else {
        "unknown data"
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A bzImage around a payload, as the kernel's build lays it out.
    pub(in crate::kernel) fn bzimage_of(version: &str, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 5 * 512];
        bytes[0x1f1] = 4;
        bytes[0x1fe..0x200].copy_from_slice(&[0x55, 0xaa]);
        bytes[0x202..0x206].copy_from_slice(b"HdrS");
        bytes[0x206..0x208].copy_from_slice(&0x020fu16.to_le_bytes());
        bytes[0x20e..0x210].copy_from_slice(&0x300u16.to_le_bytes());
        bytes[0x500..0x500 + version.len()].copy_from_slice(version.as_bytes());
        bytes[0x248..0x24c].copy_from_slice(&16u32.to_le_bytes());
        bytes[0x24c..0x250].copy_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
        bytes.extend([0; 16]);
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn a_bzimage_tells_its_version_and_where_its_payload_lies() {
        let bytes = bzimage_of("6.1.0-rt #1 SMP PREEMPT_RT", b"payload");
        let Image::BzImage { version, payload: Some(range) } = identify(&bytes) else { panic!("no bzImage") };
        assert_eq!(version, "6.1.0-rt #1 SMP PREEMPT_RT");
        assert_eq!(&bytes[range], b"payload");
    }

    #[test]
    fn a_cut_bzimage_has_no_payload() {
        let bytes = bzimage_of("6.1", b"a long payload that is cut");
        let cut = &bytes[..bytes.len() - 1];
        assert_eq!(identify(cut), Image::BzImage { version: "6.1".into(), payload: None });
        let mut hostile = bytes.clone();
        hostile[0x248..0x250].fill(0xff);
        assert_eq!(identify(&hostile), Image::BzImage { version: "6.1".into(), payload: None });
    }

    #[test]
    fn what_is_no_kernel_is_called_by_its_name() {
        for (bytes, name) in [
            (&b""[..], "empty"),
            (b"hello\n", "a text file"),
            (b"#!/bin/sh\n", "a script"),
            (b"!<arch>\ndebian", "a Debian package (`tactus kernel fetch` unpacks those)"),
            (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x01\0", "an ELF file, but not a kernel"),
            (b"\0\0\0\0", "unknown data"),
        ] {
            assert_eq!(identify(bytes), Image::Other(name));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..1500), header in any::<bool>()) {
            if header && bytes.len() > 0x300 {
                bytes[0x1fe..0x200].copy_from_slice(&[0x55, 0xaa]);
                bytes[0x202..0x206].copy_from_slice(b"HdrS");
            }
            if let Image::BzImage { payload: Some(range), .. } = identify(&bytes) {
                prop_assert!(range.end <= bytes.len());
            }
        }
    }
}
