//! Reads the information that a kernel module contains on itself. Pure.

use super::elf;

/// Names of the modules that a module depends on, as its `.modinfo` lists them.
#[must_use]
pub fn depends(module: &[u8]) -> Vec<String> {
    let info = elf::section(module, ".modinfo").unwrap_or_default();
    let fields = info.split(|byte| *byte == 0).filter_map(|field| std::str::from_utf8(field).ok());
    let lists = fields.filter_map(|field| field.strip_prefix("depends="));
    lists.flat_map(|list| list.split(',')).filter(|name| !name.is_empty()).map(canonical).collect()
}

/// A module's name as the kernel knows it: with `_`, whatever its file is called.
#[must_use]
pub fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

/// The name of the module in a file of this name (`virtio-pci.ko.xz`), if it is a module.
#[must_use]
pub fn of_file(file: &str) -> Option<String> {
    let (name, end) = file.split_once(".ko")?;
    ["", ".gz", ".xz", ".zst", ".lz4"].contains(&end).then(|| canonical(name))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A module file with this `.modinfo`, as small as ELF allows.
    pub(in crate::kernel) fn module_with(info: &[u8]) -> Vec<u8> {
        let names = b"\0.modinfo\0.shstrtab\0";
        let (info_at, names_at) = (0x40, 0x40 + info.len());
        let headers_at = names_at + names.len();
        let mut bytes = vec![0; 0x40];
        bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        bytes[0x10] = 1;
        bytes[0x28..0x30].copy_from_slice(&u64::try_from(headers_at).unwrap().to_le_bytes());
        (bytes[0x3a], bytes[0x3c], bytes[0x3e]) = (0x40, 2, 1);
        bytes.extend(info);
        bytes.extend(names);
        for (name, at, length) in [(1u32, info_at, info.len()), (10, names_at, names.len())] {
            let mut header = [0; 0x40];
            header[..4].copy_from_slice(&name.to_le_bytes());
            header[0x18..0x20].copy_from_slice(&u64::try_from(at).unwrap().to_le_bytes());
            header[0x20..0x28].copy_from_slice(&u64::try_from(length).unwrap().to_le_bytes());
            bytes.extend(header);
        }
        bytes
    }

    #[test]
    fn a_module_names_what_it_depends_on() {
        let module = module_with(b"license=GPL\0depends=virtio_ring,virtio-pci\0name=x\0");
        assert_eq!(depends(&module), ["virtio_ring", "virtio_pci"]);
        assert!(depends(&module_with(b"depends=\0")).is_empty());
    }

    #[test]
    fn a_cut_module_depends_on_nothing() {
        let module = module_with(b"depends=virtio\0");
        // The last header's tail is not needed to read it.
        for end in 0..module.len() - 0x40 {
            assert!(depends(&module[..end]).is_empty(), "cut to {end}");
        }
    }

    #[test]
    fn module_files_are_known_by_their_names() {
        assert_eq!(of_file("virtio-pci.ko.xz").as_deref(), Some("virtio_pci"));
        assert_eq!(of_file("virtio.ko").as_deref(), Some("virtio"));
        assert_eq!(of_file("virtio.koala"), None);
        assert_eq!(of_file("modules.dep"), None);
    }
}
