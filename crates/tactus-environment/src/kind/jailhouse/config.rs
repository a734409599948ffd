//! Reads a configuration (.cell), as far as every revision of the format agrees. Pure.
//!
//! A cell's begins with `JHCELL` and a revision, or since revision 14 with `JHCLL`, an architecture and a
//! revision: eight bytes, then 32 of the name. A system's begins with `JHSYST` or `JHSYS`; its first memory
//! region, of four 64-bit words, is the hypervisor's own and lies at byte 12 in both.

/// The kind of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Config {
    /// Of a cell.
    Cell {
        /// The name that the cell will have.
        name: String,
    },
    /// Of the whole system.
    System {
        /// First byte of the hypervisor's memory.
        start: u64,
        /// How much it is, in bytes.
        size: u64,
    },
}

/// Reads the beginning of a configuration; `None` for any other file.
pub fn parse(bytes: &[u8]) -> Option<Config> {
    if bytes.starts_with(b"JHCELL") || bytes.starts_with(b"JHCLL") {
        let name = bytes.get(8..40)?;
        let end = name.iter().position(|byte| *byte == 0)?;
        let name = std::str::from_utf8(&name[..end]).ok().filter(|name| !name.is_empty())?;
        return Some(Config::Cell { name: name.to_owned() });
    }
    if bytes.starts_with(b"JHSYS") {
        let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        return Some(Config::System { start: word(12)?, size: word(28)? });
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_configuration_says_what_it_is_in_every_revision() {
        for head in [&b"JHCELL\x0d\x00"[..], b"JHCLL\x02\x0f\x00"] {
            let mut bytes = head.to_vec();
            bytes.extend(b"inmate-demo");
            bytes.resize(128, 0);
            assert_eq!(parse(&bytes), Some(Config::Cell { name: "inmate-demo".into() }));
            assert_eq!(parse(&bytes[..39]), None, "cut");
        }
        let mut bytes = b"JHSYST\x0d\x00\0\0\0\0".to_vec();
        for word in [0x7fc0_0000u64, 0, 0x40_0000, 3] {
            bytes.extend(word.to_le_bytes());
        }
        assert_eq!(parse(&bytes), Some(Config::System { start: 0x7fc0_0000, size: 0x40_0000 }));
        assert_eq!(parse(b"\x7fELF"), None);
        let nameless = [&b"JHCELL\x0d\x00"[..], &[0; 64]].concat();
        assert_eq!(parse(&nameless), None);
        let endless = [&b"JHCELL\x0d\x00"[..], &[b'x'; 64]].concat();
        assert_eq!(parse(&endless), None);
    }

    proptest! {
        #[test]
        fn no_file_makes_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let cell = [b"JHCELL".to_vec(), bytes.clone()].concat();
            let system = [b"JHSYS".to_vec(), bytes].concat();
            let _ = (parse(&cell), parse(&system));
        }
    }
}
