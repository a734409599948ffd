//! Kernels and their modules, packed and plain: no bytes make the readers panic, what a kernel says of itself names no
//! other place, and nothing grows without a limit.

#![cfg_attr(fuzzing, no_main)]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tactus_environment::kernel::{Image, bootable, find, identify, needed};
use tactus_system::Memory;

/// The names under which a module may lie.
const MODULES: [&str; 5] =
    ["virtio_pci.ko", "virtio_pci.ko.gz", "virtio_pci.ko.xz", "virtio_pci.ko.zst", "virtio_pci.ko.lz4"];

fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else { return };
    match choice % 7 {
        0 => image(bytes),
        1 => image(&bzimage(bytes)),
        at => module(MODULES[usize::from(at) - 2], bytes),
    }
});

fn image(bytes: &[u8]) {
    if let Image::BzImage { version, payload } = identify(bytes) {
        assert!(version.len() <= 3 * 256);
        assert!(payload.is_none_or(|payload| payload.end <= bytes.len()));
    }
    let machine = Memory::new().set("HOME", "/home/ada").file("/k/vmlinuz-6.1", bytes);
    for arch in ["x86_64", "aarch64"] {
        match find("/k/vmlinuz-6.1", arch, &machine) {
            Ok(kernel) => {
                // It becomes a part of paths.
                assert!(!kernel.release.contains('/') && kernel.release != "..", "{kernel:?}");
                assert!(kernel.config(&machine).is_none(), "there is none");
            }
            Err(error) => assert!(error.hint.is_some(), "{}", error.reason),
        }
    }
    let first = bootable(Path::new("/k/vmlinuz-6.1"), &machine).expect("it is there");
    assert_eq!(first.direct, first.why_not.is_none());
    // What is known of it by then changes nothing.
    assert_eq!(bootable(Path::new("/k/vmlinuz-6.1"), &machine).expect("it is still there"), first);
}

/// A bzImage around a payload, as the kernel's build lays it out.
fn bzimage(payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 5 * 512];
    bytes[0x1f1] = 4;
    bytes[0x1fe..0x200].copy_from_slice(&[0x55, 0xaa]);
    bytes[0x202..0x206].copy_from_slice(b"HdrS");
    bytes[0x206..0x208].copy_from_slice(&0x020f_u16.to_le_bytes());
    bytes[0x24c..0x250].copy_from_slice(&u32::try_from(payload.len()).expect("it is short").to_le_bytes());
    bytes.extend(payload);
    bytes
}

fn module(file: &str, bytes: &[u8]) {
    let machine = Memory::new().file(format!("/m/kernel/drivers/virtio/{file}"), bytes);
    if let Ok(modules) = needed(Some(Path::new("/m")), &["virtio_pci"], &machine) {
        assert_eq!(modules.len(), 1);
        assert!(modules[0].bytes.len() <= 1 << 20 || file.ends_with(".ko"));
    }
}
