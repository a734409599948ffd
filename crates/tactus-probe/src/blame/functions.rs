//! The names of the kernel's functions by their addresses, as the kernel's own table has them, which BPF may ask: /proc/kallsyms
//! need not be read, and hides no address.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use tactus_model::trace::LONGEST_FUNCTION;

use super::program::{SYMBOL, spell};
use crate::sys::bpf::{self, Mapped};

/// Words of a name with what stands behind it.
const WORDS: usize = 16;

/// Knows them.
pub struct Functions {
    program: OwnedFd,
    text: Mapped,
}

impl Functions {
    /// Asks for it.
    ///
    /// # Errors
    /// Those of bpf(2): before Linux 5.13 no program may ask.
    pub fn new() -> io::Result<Self> {
        let (map, text) = Mapped::new(WORDS)?;
        let format = bpf::constant(SYMBOL)?;
        let program = spell(map.as_raw_fd(), WORDS * size_of::<u64>(), format.as_raw_fd());
        let program = bpf::program(bpf::Kind::RawTracepoint, &program, None, &mut [])?;
        Ok(Self { program, text })
    }

    /// The name of the function that begins at an address; `None`: no named function begins there.
    pub fn name(&self, address: u64) -> Option<String> {
        bpf::run(&self.program, address).ok()?;
        let bytes = self.text.words().iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
        named(&bytes.take_while(|byte| *byte != 0).collect::<Vec<u8>>())
    }
}

/// `hrtimer_wakeup+0x0/0x20 [MODULE]`: the name if the address is the function's beginning, otherwise nothing.
fn named(text: &[u8]) -> Option<String> {
    let (name, place) = std::str::from_utf8(text).ok()?.split_once('+')?;
    let mut name = name.to_owned();
    tactus_model::trace::cut(&mut name, LONGEST_FUNCTION);
    place.starts_with("0x0/").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_named_by_its_first_byte_alone() {
        assert_eq!(named(b"hrtimer_wakeup+0x0/0x20"), Some("hrtimer_wakeup".into()));
        assert_eq!(named(b"own_timer+0x0/0x7a [module]"), Some("own_timer".into()));
        for other in ["hrtimer_wakeup+0x4/0x20", "0xffff888100000000", "", "a+", "\u{e9}+0x", "+0x00"] {
            assert_eq!(named(other.as_bytes()), None, "{other}");
        }
        assert_eq!(named(&[[b'x'; 90].as_slice(), b"+0x0/0x1"].concat()).unwrap().len(), LONGEST_FUNCTION);
        assert_eq!(named(b"\xff\xfe+0x0/0x1"), None);
    }

    #[test]
    fn the_kernel_names_its_functions_by_their_addresses_and_nothing_else() {
        let functions = match Functions::new() {
            Ok(functions) => functions,
            Err(why) => return eprintln!("SKIPPED: {why}"),
        };
        let table = std::fs::read_to_string("/proc/kallsyms").unwrap();
        let known = table.lines().find(|line| line.ends_with(" T hrtimer_start_range_ns"));
        let address = known.and_then(|line| u64::from_str_radix(line.split(' ').next()?, 16).ok());
        match address.filter(|address| *address != 0) {
            Some(address) => {
                assert_eq!(functions.name(address), Some("hrtimer_start_range_ns".into()));
                assert_eq!(functions.name(address + 1), None);
            }
            None => eprintln!("SKIPPED: addresses are hidden here"),
        }
        for nothing in [0, 1, u64::MAX, 0x1234_5678] {
            assert_eq!(functions.name(nothing), None);
        }
    }
}
