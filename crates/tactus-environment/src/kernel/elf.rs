//! The few things that are read out of ELF files: the PVH note of a kernel, a section of a module.
//! Pure, 64 bit, little endian (x86-64 and arm64 are both).

use elf::ElfBytes;
use elf::abi::{ET_REL, PT_NOTE};
use elf::endian::LittleEndian;
use elf::note::Note;

/// XEN_ELFNOTE_PHYS32_ENTRY: where a PVH kernel is entered.
const PHYS32_ENTRY: u64 = 18;

fn parsed(bytes: &[u8]) -> Option<ElfBytes<'_, LittleEndian>> {
    ElfBytes::minimal_parse(bytes).ok()
}

/// Whether this is an unpacked kernel that QEMU can enter directly (PVH).
#[must_use]
pub fn is_pvh(bytes: &[u8]) -> bool {
    let Some(elf) = parsed(bytes) else { return false };
    let headers = elf.segments().into_iter().flatten().filter(|header| header.p_type == PT_NOTE);
    let mut notes = headers.filter_map(|header| elf.segment_data_as_notes(&header).ok()).flatten();
    notes.any(|note| {
        matches!(note, Note::Unknown(note) if note.n_type == PHYS32_ENTRY && note.name_str().is_ok_and(|name| name == "Xen"))
    })
}

/// Whether this is an object file, as kernel modules are.
#[must_use]
pub fn is_object(bytes: &[u8]) -> bool {
    parsed(bytes).is_some_and(|elf| elf.ehdr.e_type == ET_REL)
}

/// A section of an ELF file.
#[must_use]
pub fn section<'a>(bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let elf = parsed(bytes)?;
    let header = elf.section_header_by_name(name).ok()??;
    elf.section_data(&header).ok().map(|(bytes, _)| bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn note(name: &[u8], kind: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [name.len(), data.len()] {
            bytes.extend(u32::try_from(number).unwrap().to_le_bytes());
        }
        bytes.extend(kind.to_le_bytes());
        for field in [name, data] {
            bytes.extend(field);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    /// An executable with one program header that holds notes.
    pub(in crate::kernel) fn kernel_with(notes: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 0x40 + 0x38];
        bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        bytes[0x10] = 2;
        bytes[0x20] = 0x40;
        (bytes[0x36], bytes[0x38]) = (0x38, 1);
        bytes[0x40] = 4;
        (bytes[0x48], bytes[0x70]) = (0x78, 4);
        bytes[0x60..0x68].copy_from_slice(&u64::try_from(notes.len()).unwrap().to_le_bytes());
        bytes.extend(notes);
        bytes
    }

    /// The note by which a kernel is entered through PVH, behind others.
    pub(in crate::kernel) fn pvh_notes() -> Vec<u8> {
        [
            note(b"GNU\0", 3, &[1; 20]),
            note(b"Xen\0", 6, b"linux\0"),
            note(b"Xen\0", 18, &[0, 0, 0, 1, 0, 0, 0, 0]),
        ]
        .concat()
    }

    #[test]
    fn a_kernel_that_can_be_entered_through_pvh_is_told_by_its_note() {
        assert!(is_pvh(&kernel_with(&pvh_notes())));
        assert!(!is_pvh(&kernel_with(&note(b"GNU\0", 18, &[0; 8]))));
        assert!(!is_pvh(&kernel_with(&[])));
    }

    #[test]
    fn a_cut_or_hostile_kernel_is_not_recognized() {
        let whole = kernel_with(&pvh_notes());
        for end in 0..whole.len() - 8 {
            assert!(!is_pvh(&whole[..end]), "cut to {end}");
        }
        let mut hostile = whole;
        hostile[0x20..0x28].fill(0xff);
        assert!(!is_pvh(&hostile));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let bytes = [b"\x7fELF\x02\x01\x01", &bytes[..]].concat();
            let _ = (is_pvh(&bytes), section(&bytes, ".modinfo"));
            let _ = is_pvh(&kernel_with(&bytes));
        }
    }
}
