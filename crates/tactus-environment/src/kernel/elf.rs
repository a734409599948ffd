//! The few things that are read out of ELF files: the PVH note of a kernel, a section of a module.
//! Pure, 64 bit, little endian (x86-64 and arm64 are both).

/// Type of a program header that holds notes.
const PT_NOTE: u64 = 4;
/// XEN_ELFNOTE_PHYS32_ENTRY: where a PVH kernel is entered.
const PHYS32_ENTRY: u64 = 18;

struct Elf<'a>(&'a [u8]);

impl<'a> Elf<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        // ELFCLASS64, ELFDATA2LSB.
        bytes.starts_with(b"\x7fELF\x02\x01").then_some(Self(bytes))
    }

    /// An unsigned number of `width` bytes.
    fn number(&self, at: usize, width: usize) -> Option<u64> {
        let bytes = self.0.get(at..at.checked_add(width)?)?;
        Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn offset(&self, at: usize, width: usize) -> Option<usize> {
        usize::try_from(self.number(at, width)?).ok()
    }

    /// Where the entries of a header table are: the position of its offset, entry size and count.
    fn table(&self, offset: usize, size: usize, count: usize) -> impl Iterator<Item = usize> {
        let start = self.offset(offset, 8);
        let size = self.offset(size, 2).filter(|size| *size > 0);
        let count = self.offset(count, 2).unwrap_or(0);
        let entries =
            start.zip(size).map(|(start, size)| (0..count).map_while(move |n| start.checked_add(n * size)));
        entries.into_iter().flatten()
    }

    fn slice(&self, offset: usize, length: usize) -> Option<&'a [u8]> {
        self.0.get(offset..offset.checked_add(length)?)
    }

    fn section(&self, wanted: &str) -> Option<&'a [u8]> {
        let headers: Vec<usize> = self.table(0x28, 0x3a, 0x3c).collect();
        let names = *headers.get(self.offset(0x3e, 2)?)?;
        let names = self.slice(self.offset(names + 0x18, 8)?, self.offset(names + 0x20, 8)?)?;
        headers.into_iter().find_map(|header| {
            let name = names.get(self.offset(header, 4)?..)?;
            let name = &name[..name.iter().position(|byte| *byte == 0)?];
            (name == wanted.as_bytes()).then(|| {
                self.slice(
                    self.offset(header.checked_add(0x18)?, 8)?,
                    self.offset(header.checked_add(0x20)?, 8)?,
                )
            })?
        })
    }

    fn has_pvh_note(&self) -> bool {
        self.table(0x20, 0x36, 0x38).any(|header| {
            let notes = || {
                (self.number(header, 4)? == PT_NOTE).then_some(())?;
                self.slice(
                    self.offset(header.checked_add(0x08)?, 8)?,
                    self.offset(header.checked_add(0x20)?, 8)?,
                )
            };
            notes().is_some_and(|notes| contains_pvh(&Elf(notes)))
        })
    }
}

fn contains_pvh(notes: &Elf<'_>) -> bool {
    let padded = |length: usize| length.checked_add(3).map(|length| length & !3);
    let mut at = 0;
    while let (Some(name), Some(data), Some(kind)) =
        (notes.offset(at, 4), notes.offset(at + 4, 4), notes.number(at + 8, 4))
    {
        if kind == PHYS32_ENTRY && notes.slice(at + 12, name) == Some(b"Xen\0") {
            return true;
        }
        let next = padded(name)
            .zip(padded(data))
            .and_then(|(name, data)| name.checked_add(data)?.checked_add(at + 12));
        match next {
            Some(next) => at = next,
            None => return false,
        }
    }
    false
}

/// Whether this is an unpacked kernel that QEMU can enter directly (PVH).
#[must_use]
pub fn is_pvh(bytes: &[u8]) -> bool {
    Elf::new(bytes).is_some_and(|elf| elf.has_pvh_note())
}

/// A section of an ELF file.
#[must_use]
pub fn section<'a>(bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    Elf::new(bytes)?.section(name)
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
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[0x10] = 2;
        bytes[0x20] = 0x40;
        (bytes[0x36], bytes[0x38]) = (0x38, 1);
        bytes[0x40] = 4;
        bytes[0x48] = 0x78;
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
    fn a_cut_or_hostile_kernel_is_none() {
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
            let bytes = [b"\x7fELF\x02\x01", &bytes[..]].concat();
            let _ = (is_pvh(&bytes), section(&bytes, ".modinfo"));
            let _ = is_pvh(&kernel_with(&bytes));
        }
    }
}
