//! Reads where the command line is from the loader's information: a list of tags by Multiboot2, a structure by PVH.

/// The value of `eax` from a boot loader with Multiboot2.
const MULTIBOOT2: u32 = 0x36d7_6289;
/// The first value of a PVH start info.
const START_INFO: u32 = 0x336e_c578;
/// Where in a start info the address of the command line is.
const START_INFO_COMMAND_LINE: u32 = 24;
/// The type of the tag that is the command line, and of the last.
const TAG_COMMAND_LINE: u32 = 1;
const TAG_END: u32 = 0;
/// The most tags that are looked at.
const MOST_TAGS: u32 = 64;

/// Where the command line is, as text that ends with a zero. `loader`: what `eax` holds; `info`: where the loader's structure
/// is; `byte_at` reads memory.
pub fn command_line_at(loader: u32, info: u32, byte_at: impl Fn(u32) -> u8) -> Option<u32> {
    let word = |at: u32| u32::from_le_bytes([0, 1, 2, 3].map(|byte| byte_at(at.wrapping_add(byte))));
    if loader != MULTIBOOT2 {
        // The address has 64 bits; a loader that puts it beyond 4 GiB has none for this guest.
        let at = info.wrapping_add(START_INFO_COMMAND_LINE);
        let found = word(info) == START_INFO && word(at.wrapping_add(4)) == 0;
        return found.then(|| word(at)).filter(|at| *at != 0);
    }
    let mut tag = info.wrapping_add(8);
    for _ in 0..MOST_TAGS {
        let (kind, size) = (word(tag), word(tag.wrapping_add(4)));
        match kind {
            TAG_COMMAND_LINE => return Some(tag.wrapping_add(8)),
            TAG_END => return None,
            // Each begins where eight bytes do.
            _ => tag = tag.wrapping_add(size.checked_next_multiple_of(8)?.max(8)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(words: &[u32]) -> impl Fn(u32) -> u8 + use<> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        move |at| usize::try_from(at).ok().and_then(|at| bytes.get(at).copied()).unwrap_or(0xff)
    }

    #[test]
    fn a_boot_loaders_command_line_is_found_among_its_tags() {
        // 48 bytes, reserved; the loader's name in 12 bytes, padded; the command line; the end.
        let name = [2, 12, 0x4255_5247, 0];
        let words = [&[48, 0][..], &name, &[1, 13, 0x6a, 0], &[0, 8]].concat();
        assert_eq!(command_line_at(MULTIBOOT2, 0, memory(&words)), Some(32));
        let without = [&[32, 0][..], &name, &[0, 8]].concat();
        assert_eq!(command_line_at(MULTIBOOT2, 0, memory(&without)), None);
    }

    #[test]
    fn a_hypervisors_command_line_is_found_in_its_start_info() {
        let info = |magic, high| memory(&[magic, 1, 0, 0, 0, 0, 0x9000, high]);
        assert_eq!(command_line_at(0, 0, info(START_INFO, 0)), Some(0x9000));
        assert_eq!(command_line_at(0, 0, info(START_INFO, 1)), None, "beyond 4 GiB");
        assert_eq!(command_line_at(0, 0, info(7, 0)), None, "nobody's");
    }

    #[test]
    fn tags_without_an_end_or_with_sizes_that_cannot_be_end_the_search() {
        assert_eq!(command_line_at(MULTIBOOT2, 0, memory(&[8, 0, 5, 0, 5, 0, 5, 0])), None);
        assert_eq!(command_line_at(MULTIBOOT2, 0, memory(&[8, 0, 5, u32::MAX])), None);
        assert_eq!(command_line_at(MULTIBOOT2, 0, |_| 3), None);
    }
}
