//! The lines of resctrl's files, as the kernel writes them.

/// The mount point that the kernel's tools use.
pub const ROOT: &str = "/sys/fs/resctrl/";

/// The share of a resource that a group may use in one domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// `L3`, `L2CODE`, `MB`, ...
    pub resource: &'a str,
    /// The cache or memory controller.
    pub domain: u32,
    /// A mask or a number.
    pub value: &'a str,
}

impl Entry<'_> {
    /// The level of a cache; `None`: it is not a cache.
    #[must_use]
    pub fn level(&self) -> Option<u32> {
        match self.resource.trim_end_matches("CODE").trim_end_matches("DATA") {
            "L3" => Some(3),
            "L2" => Some(2),
            _ => None,
        }
    }
}

/// The entries of `schemata`: `L3:0=fff;1=fff`, `L3CODE:0=3f`, `MB:0= 100;1=  50`. Unreadable ones are left out.
pub fn entries(schemata: &str) -> impl Iterator<Item = Entry<'_>> {
    schemata.lines().filter_map(|line| line.trim().split_once(':')).flat_map(|(resource, domains)| {
        domains.split(';').filter_map(move |domain| {
            let (id, value) = domain.split_once('=')?;
            Some(Entry { resource: resource.trim(), domain: id.trim().parse().ok()?, value: value.trim() })
        })
    })
}

/// A mask of ways, in hexadecimal digits.
#[must_use]
pub fn mask(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim(), 16).ok()
}
