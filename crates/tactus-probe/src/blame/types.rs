//! The offset of a field in a structure of the running kernel, from the kernel's own types (BTF,
//! Documentation/bpf/btf.rst). Truncated or unexpected data gives no offset.

use std::fs::File;
use std::io::Read;

/// The file of the kernel's types.
const KERNEL: &str = "/sys/kernel/btf/vmlinux";
/// Most bytes of types that are read: a kernel with all its drivers built in has some 10 MiB.
const MOST_BYTES: u64 = 64 << 20;
/// Most structures without a name within each other, and most names of one type.
const DEEPEST: u32 = 4;
const MOST_NAMES: u32 = 16;

const STRUCT: u32 = 4;
const UNION: u32 = 5;

/// The types of a kernel.
pub struct Types {
    bytes: Vec<u8>,
    /// The beginnings and ends of the types and of the names.
    types: (usize, usize),
    names: (usize, usize),
}

/// A type.
#[derive(Clone, Copy)]
struct Type {
    name: u32,
    kind: u32,
    /// How many parts it has.
    parts: usize,
    /// Offsets of its members have the size of a bit field above them.
    has_sizes: bool,
    /// The type that it is another name of.
    of: u32,
    /// The beginning of its parts.
    at: usize,
}

impl Types {
    /// The types of the running kernel; `None`: it does not give them.
    pub fn of_kernel() -> Option<Self> {
        let mut bytes = Vec::new();
        File::open(KERNEL).ok()?.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
        Self::of(bytes)
    }

    fn of(bytes: Vec<u8>) -> Option<Self> {
        const MAGIC: u16 = 0xeb9f;
        let own = Self { bytes, types: (0, 0), names: (0, 0) };
        let word = |at| own.word(at).and_then(|word| usize::try_from(word).ok());
        let magic = own.bytes.get(..2)?.try_into().ok()?;
        if u16::from_ne_bytes(magic) != MAGIC || own.bytes.get(2) != Some(&1) {
            return None;
        }
        let head = word(4)?;
        let part = |from: usize, length: usize| {
            let from = head.checked_add(from)?;
            let end = from.checked_add(length)?;
            (end <= own.bytes.len()).then_some((from, end))
        };
        let types = part(word(8)?, word(12)?)?;
        let names = part(word(16)?, word(20)?)?;
        Some(Self { types, names, ..own })
    }

    /// The offset of a field, in bytes: `["node", "expires"]` is that of `node.expires`. `None`: the structure or the
    /// field does not exist, or several of that name differ.
    pub fn offset(&self, structure: &str, path: &[&str]) -> Option<i32> {
        let mut found = None;
        for own in self.all().filter(|own| own.kind == STRUCT && self.is_called(own.name, structure)) {
            let bits = self.bits(own, path)?;
            if found.is_some_and(|found| found != bits) {
                return None;
            }
            found = Some(bits);
        }
        found.filter(|bits| bits % 8 == 0).and_then(|bits| i32::try_from(bits / 8).ok())
    }

    /// The same in bits.
    fn bits(&self, structure: Type, path: &[&str]) -> Option<u64> {
        let (name, rest) = path.split_first()?;
        let (field, at) = self.member(structure, name, 0)?;
        match rest {
            [] => Some(at),
            _ => Some(at + self.bits(self.structure(field)?, rest)?),
        }
    }

    /// The type of a member and its offset in bits, also of one within a member that has no name.
    fn member(&self, structure: Type, name: &str, depth: u32) -> Option<(u32, u64)> {
        let members = (0..structure.parts).map_while(|part| {
            let at = structure.at + part * 12;
            Some((self.word(at)?, self.word(at + 4)?, self.word(at + 8)?))
        });
        for (called, of, place) in members {
            let (size, at) = if structure.has_sizes { (place >> 24, place & 0xff_ffff) } else { (0, place) };
            if self.is_called(called, name) {
                return (size == 0).then_some((of, at.into()));
            }
            if self.is_called(called, "")
                && depth < DEEPEST
                && let Some(within) = self.structure(of)
                && let Some((of, own)) = self.member(within, name, depth + 1)
            {
                return Some((of, u64::from(at) + own));
            }
        }
        None
    }

    /// The structure that a type is, by whatever name.
    fn structure(&self, mut number: u32) -> Option<Type> {
        for _ in 0..MOST_NAMES {
            let own = self.all().nth(usize::try_from(number.checked_sub(1)?).ok()?)?;
            match own.kind {
                STRUCT | UNION => return Some(own),
                // typedef, volatile, const, restrict, type tag.
                8..=11 | 18 => number = own.of,
                _ => return None,
            }
        }
        None
    }

    /// All types, the first of which has the number 1, up to one that is not known.
    fn all(&self) -> impl Iterator<Item = Type> {
        let (mut at, end) = self.types;
        std::iter::from_fn(move || {
            let (name, what, of) = (self.word(at)?, self.word(at + 4)?, self.word(at + 8)?);
            let (kind, parts) = (what >> 24 & 0x1f, usize::try_from(what & 0xffff).ok()?);
            let own = Type { name, kind, parts, has_sizes: what >> 31 == 1, of, at: at + 12 };
            let length = match kind {
                1 | 14 | 17 => 4,
                3 => 12,
                STRUCT | UNION | 15 | 19 => parts * 12,
                6 | 13 => parts * 8,
                2 | 7..=12 | 16 | 18 => 0,
                _ => return None,
            };
            at = own.at + length;
            (at <= end).then_some(own)
        })
    }

    fn is_called(&self, at: u32, name: &str) -> bool {
        let (from, end) = self.names;
        let names = self.bytes.get(from..end).unwrap_or_default();
        let own = usize::try_from(at).ok().and_then(|at| names.get(at..));
        own.is_some_and(|own| own.starts_with(name.as_bytes()) && own.get(name.len()) == Some(&0))
    }

    fn word(&self, at: usize) -> Option<u32> {
        let bytes = self.bytes.get(at..at.checked_add(4)?)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAMES: &[u8] = b"\0outer\0node\0expires\0own\0bits\0";

    fn at(name: &str) -> u32 {
        let place = NAMES.windows(name.len() + 1).position(|part| part == [name.as_bytes(), b"\0"].concat());
        u32::try_from(place.unwrap()).unwrap()
    }

    /// `struct outer { int; struct node node; struct { const struct node own; }; int bits:3; }` with `struct node { int;
    /// int expires; }`: numbers 2 and 3, the one without a name 5.
    fn made() -> Vec<u8> {
        let structure = |name: u32, bytes: u32, members: &[[u32; 3]], has_sizes: u32| {
            let parts = u32::try_from(members.len()).unwrap();
            [vec![name, has_sizes << 31 | STRUCT << 24 | parts, bytes], members.concat()].concat()
        };
        let types: Vec<u32> = [
            vec![0, 1 << 24, 4, 32],
            structure(
                at("outer"),
                28,
                &[[0, 1, 0], [at("node"), 3, 32], [0, 5, 96], [at("bits"), 1, 3 << 24 | 160]],
                1,
            ),
            structure(at("node"), 8, &[[0, 1, 0], [at("expires"), 1, 32]], 0),
            vec![0, 10 << 24, 3],
            structure(0, 8, &[[at("own"), 4, 0]], 0),
        ]
        .concat();
        let length = |bytes: usize| u32::try_from(bytes).unwrap();
        let head = [24, 0, length(types.len() * 4), length(types.len() * 4), length(NAMES.len())];
        let words: Vec<u8> = head.into_iter().chain(types).flat_map(u32::to_ne_bytes).collect();
        [&0xeb9f_u16.to_ne_bytes()[..], &[1, 0], &words, NAMES].concat()
    }

    #[test]
    fn a_field_is_found_by_its_names_also_within_what_has_no_name() {
        let types = Types::of(made()).unwrap();
        for (path, offset) in [
            (&["node"][..], Some(4)),
            (&["node", "expires"], Some(8)),
            (&["own"], Some(12)),
            (&["own", "expires"], Some(16)),
            (&["bits"], None),
            (&["expires"], None),
            (&["node", "expires", "more"], None),
            (&[], None),
        ] {
            assert_eq!(types.offset("outer", path), offset, "{path:?}");
        }
        assert_eq!(types.offset("out", &["node"]), None);
    }

    #[test]
    fn cut_types_give_no_offset_or_the_same() {
        let made = made();
        for length in 0..made.len() {
            let own = Types::of(made[..length].to_vec());
            assert!(own.and_then(|own| own.offset("outer", &["node", "expires"])).is_none(), "{length}");
        }
    }

    #[test]
    fn this_kernel_says_where_its_threads_and_timers_keep_what_is_read() {
        let Some(types) = Types::of_kernel() else { return eprintln!("SKIPPED: this kernel has no types") };
        for (structure, path) in [("task_struct", "pid"), ("hrtimer", "function"), ("timer_list", "function")]
        {
            assert!(types.offset(structure, &[path]).is_some_and(|at| at > 0), "{structure}.{path}");
        }
        assert!(types.offset("hrtimer", &["node", "expires"]).is_some());
    }

    proptest! {
        #[test]
        fn hostile_types_are_no_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
            length in any::<prop::sample::Index>(),
        ) {
            let mut bytes = made();
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            let length = length.index(bytes.len() + 1);
            if let Some(types) = Types::of(bytes[..length].to_vec()) {
                let _ = types.offset("outer", &["own", "expires"]);
            }
        }
    }
}
