//! A tracepoint of KVM, as its file in tracefs describes it.

use crate::tracefs;

/// A tracepoint.
pub struct Tracepoint {
    /// Its number.
    pub id: u64,
    format: String,
}

impl Tracepoint {
    /// The tracepoint of this name, such as `kvm/kvm_exit`.
    ///
    /// # Errors
    /// Why it cannot be used, in words.
    pub fn of(name: &str) -> Result<Self, String> {
        let format = tracefs::read_first(&["events/", name, "/format"].concat())?;
        Self::parse(format).ok_or_else(|| ["the tracefs description of ", name, " cannot be read"].concat())
    }

    fn parse(format: String) -> Option<Self> {
        let id = format.lines().find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok())?;
        Some(Self { id, format })
    }

    /// The offset of a field of this size, in bytes; `None`: no such field.
    pub fn field(&self, name: &str, size: i16) -> Option<i16> {
        let parts = |line: &'_ str| {
            let mut parts = line.trim().split(';').map(str::trim);
            let named = parts.next()?.strip_prefix("field:")?.rsplit(' ').next()? == name;
            let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse::<i16>().ok();
            let (offset, bytes) = (number("offset:")?, number("size:")?);
            (named && bytes == size && offset >= 0 && offset % size == 0).then_some(offset)
        };
        self.format.lines().find_map(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(format: &str) -> Option<Tracepoint> {
        Tracepoint::parse(format.to_owned())
    }

    #[test]
    fn the_fields_of_linux_6_18_are_found_where_it_says() {
        let exit = parse(include_str!("../../tests/fixtures/kvm_exit.format")).unwrap();
        assert_eq!((exit.id, exit.field("exit_reason", 4), exit.field("isa", 4)), (103, Some(8), Some(24)));
        assert_eq!(exit.field("guest_rip", 4), None, "it has eight bytes");
        assert_eq!(exit.field("reason", 4), None, "part of a name");
    }

    #[test]
    fn what_is_no_description_has_no_fields() {
        assert!(parse("").is_none() && parse("ID: x\n").is_none());
        for line in [
            "",
            "field:u32 isa",
            "field:u32 isa; offset:x; size:4;",
            "field:u32 isa; offset:3; size:4;",
            "field:u32 isa; offset:-4; size:4;",
        ] {
            let strange = parse(&["ID: 5\n", line].concat()).unwrap();
            assert_eq!(strange.field("isa", 4), None, "{line}");
        }
    }
}
