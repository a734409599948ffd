//! Amounts of memory and the pages that they are made of.

use std::fmt;
use std::str::FromStr;

use tactus_model::facts::{Facts, Reading};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

/// An amount of memory in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl Size {
    /// In MiB, rounded up.
    #[must_use]
    pub fn mib(self) -> u64 {
        self.0.div_ceil(MIB)
    }
}

/// Why a text is no amount of memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an amount of memory; write it as in `4G` or `512M`, from 16M to 64T")]
pub struct SizeError(String);

impl FromStr for Size {
    type Err = SizeError;

    /// Reads `4G`, `512M`, `4GiB`.
    fn from_str(text: &str) -> Result<Self, SizeError> {
        let bad = || SizeError(text.chars().take(40).collect());
        let trimmed = text.trim();
        let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
        let unit = match trimmed.get(digits..).unwrap_or_default() {
            "M" | "MiB" => MIB,
            "G" | "GiB" => GIB,
            "T" | "TiB" => 1024 * GIB,
            _ => return Err(bad()),
        };
        let number: u64 = trimmed[..digits].parse().map_err(|_| bad())?;
        number
            .checked_mul(unit)
            .filter(|bytes| (16 * MIB..=64 * 1024 * GIB).contains(bytes))
            .map(Self)
            .ok_or_else(bad)
    }
}

impl fmt::Display for Size {
    /// As QEMU and libvirt take it: `4G`, `512M`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(GIB) { write!(f, "{}G", self.0 / GIB) } else { write!(f, "{}M", self.mib()) }
    }
}

/// The pages that a guest's memory is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Page {
    /// Ordinary pages of 4 KiB: nothing is reserved.
    Base,
    /// Reserved huge pages of 2 MiB.
    M2,
    /// Reserved huge pages of 1 GiB.
    G1,
}

impl Page {
    /// Its size in bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        match self {
            Self::Base => 4 * KIB,
            Self::M2 => 2 * MIB,
            Self::G1 => GIB,
        }
    }

    /// How the kernel's command line writes it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Base => "4K",
            Self::M2 => "2M",
            Self::G1 => "1G",
        }
    }

    /// The largest page that the machine has and the memory is a multiple of. Pages of 1 GiB are only
    /// taken where the facts show that there are such: by the kernel's directory, or x86's flag.
    #[must_use]
    pub fn choose(facts: &Facts, memory: Size) -> Self {
        let directory = "/hugepages-1048576kB/";
        let mut pools = facts.under("/sys/").filter(|(name, _)| name.contains(directory));
        let flags = facts.field("/proc/cpuinfo", "flags", ':').unwrap_or_default();
        let has_1g = pools.any(|(_, reading)| matches!(reading, Reading::Text(_)))
            || flags.split(' ').any(|flag| flag == "pdpe1gb");
        [Self::G1, Self::M2]
            .into_iter()
            .find(|page| (*page != Self::G1 || has_1g) && memory.0.is_multiple_of(page.bytes()))
            .unwrap_or(Self::Base)
    }
}

impl FromStr for Page {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "4K" | "4k" => Ok(Self::Base),
            "2M" => Ok(Self::M2),
            "1G" => Ok(Self::G1),
            _ => Err(format!("`{text}` is not a page size; write 1G, 2M or 4K")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_and_written_as_qemu_does() {
        assert_eq!("4G".parse(), Ok(Size(4 << 30)));
        assert_eq!("512MiB".parse(), Ok(Size(512 << 20)));
        assert_eq!("4096M".parse::<Size>().unwrap().to_string(), "4G");
        assert_eq!("1536M".parse::<Size>().unwrap().to_string(), "1536M");
        for bad in ["", "4", "G", "-1G", "4K", "1.5G", "99999999999999999999G", "65T", "1M", "4 G", "4Gé"] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_largest_page_that_is_there_and_fits_is_taken() {
        let (whole, odd) = ("4G".parse().unwrap(), "1025M".parse().unwrap());
        let mut facts = Facts::default();
        assert_eq!(Page::choose(&facts, whole), Page::M2);
        assert_eq!(Page::choose(&facts, odd), Page::Base);
        facts.keep("/proc/cpuinfo", "flags\t\t: fpu pdpe1gb\n");
        assert_eq!(Page::choose(&facts, whole), Page::G1);
        assert_eq!(Page::choose(&facts, "1536M".parse().unwrap()), Page::M2);
        let mut facts = Facts::default();
        facts.keep("/sys/devices/system/node/node0/hugepages/hugepages-1048576kB/nr_hugepages", "0");
        assert_eq!(Page::choose(&facts, whole), Page::G1);
    }
}
