//! A card that is a PCI device, in its description and in messages to the probe.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::row::{Word, choice};

/// The bytes of a register: all are read and written as one word of 32 bits, of little-endian order.
pub const REGISTER: u32 = 4;
/// The most vectors that a card may have: as many as MSI has.
pub const MOST_VECTORS: u32 = 32;
/// The longest name, in bytes.
pub const LONGEST_NAME: usize = 60;

/// The identity of a device: the numbers of its maker and of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PciId {
    /// The maker's.
    pub vendor: u16,
    /// The device's.
    pub device: u16,
}

/// The address of a device: `0000:03:00.0`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PciAddress(String);

impl PciAddress {
    /// As the kernel writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Reads a text of exactly this many hexadecimal digits.
fn hex(text: &str, digits: usize) -> Option<u16> {
    let all = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    all.then(|| u16::from_str_radix(text, 16).ok()).flatten()
}

impl FromStr for PciId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = text
            .split_once(':')
            .and_then(|(vendor, device)| Some(Self { vendor: hex(vendor, 4)?, device: hex(device, 4)? }));
        id.ok_or("not a PCI id: four hexadecimal digits each for maker and device, as 1234:11e8 (`lspci -n`)")
    }
}

impl FromStr for PciAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = || {
            let (domain, rest) = text.split_once(':')?;
            let (bus, rest) = rest.split_once(':')?;
            let (slot, function) = rest.split_once('.')?;
            let (domain, bus) = (hex(domain, 4)?, hex(bus, 2)?);
            let (slot, function) = (hex(slot, 2)?, hex(function, 1)?);
            (slot < 32 && function < 8).then(|| format!("{domain:04x}:{bus:02x}:{slot:02x}.{function}"))
        };
        parts().map(Self).ok_or("not a PCI address, as 0000:03:00.0 (`lspci -D`)")
    }
}

impl fmt::Display for PciId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:04x}", self.vendor, self.device)
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! as_text {
    ($($name:ident),+) => { $(
        impl TryFrom<String> for $name {
            type Error = &'static str;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.to_string()
            }
        }
    )+ };
}

as_text!(PciId, PciAddress);

choice! {
    /// How a card raises its interrupts.
    pub enum Raises {
        /// Message signalled interrupts.
        Msi = "msi",
        /// The extended ones, which have a table in the card's memory.
        MsiX = "msi-x",
    }
}

choice! {
    /// The meaning of the register with a card's own time.
    pub enum Shows {
        /// How long the last answer took: the card counts from raising to being answered.
        Elapsed = "elapsed",
        /// The time: a counter that always runs, and wraps around after 32 bits.
        Counter = "counter",
    }
}

/// The write that makes the card raise an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trigger {
    /// The register: its place in the BAR, in bytes.
    pub at: u32,
    /// The word.
    pub write: u32,
}

/// The register that the handler writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerRegister {
    /// The register: its place in the BAR, in bytes.
    pub at: u32,
    /// The word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<u32>,
    /// The register whose word is read and written: one with the cause of the interrupt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<u32>,
}

/// The card's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardTime {
    /// The register: its place in the BAR, in bytes.
    pub at: u32,
    /// Its ticks in a microsecond.
    pub ticks_per_us: u32,
    /// Its meaning.
    pub shows: Shows,
}

impl CardTime {
    /// These ticks in ns. Never more than fits: 32 bits of ticks, each 1000 ns at most.
    #[must_use]
    pub fn ns(&self, ticks: u32) -> u64 {
        u64::from(ticks) * 1_000 / u64::from(self.ticks_per_us.max(1))
    }
}

/// The description of a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceCard {
    /// Its name for people.
    pub name: String,
    /// The identity that it reports.
    pub pci: PciId,
    /// Its address, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<PciAddress>,
    /// The base address register behind which its registers are, 0 to 5.
    pub bar: u32,
    /// How it raises interrupts.
    pub interrupt: Raises,
    /// How many vectors it has; whichever of them comes is answered.
    #[serde(default = "one")]
    pub vectors: u32,
    /// Whether it is taken where no IOMMU keeps it in. It may then write to all of the machine's memory.
    #[serde(default)]
    pub without_iommu: bool,
    /// The write that raises an interrupt.
    pub trigger: Trigger,
    /// The action of the handler.
    pub answer: AnswerRegister,
    /// Its clock; `None`: the processor's is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<CardTime>,
}

const fn one() -> u32 {
    1
}

/// An error in a description: the key, the error, and the correct form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardError {
    /// As `trigger.at`.
    pub key: &'static str,
    /// The error.
    pub message: String,
    /// The correct form.
    pub hint: &'static str,
}

impl DeviceCard {
    /// Its registers, each with the key that names it.
    pub fn registers(&self) -> impl Iterator<Item = (&'static str, u32)> {
        let more = [("answer.copies", self.answer.copies), ("time.at", self.time.map(|time| time.at))];
        [("trigger.at", self.trigger.at), ("answer.at", self.answer.at)]
            .into_iter()
            .chain(more.into_iter().filter_map(|(key, at)| Some((key, at?))))
    }

    /// Checks the description for contradictions.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self) -> Result<(), CardError> {
        let wrong = |key, message, hint| Err(CardError { key, message, hint });
        if self.name.is_empty() || self.name.len() > LONGEST_NAME || self.name.chars().any(char::is_control) {
            let message = format!("a name has 1 to {LONGEST_NAME} bytes, and none that controls a terminal");
            return wrong("name", message, "a few words, as \"timer card, second prototype\"");
        }
        if self.bar > 5 {
            return wrong(
                "bar",
                format!("a device has no BAR {}", self.bar),
                "0 to 5; `lspci -v` lists them",
            );
        }
        if !(1..=MOST_VECTORS).contains(&self.vectors) {
            let message = format!("{} vectors are out of range", self.vectors);
            return wrong("vectors", message, "1 to 32");
        }
        for (key, at) in self.registers() {
            if at % REGISTER != 0 {
                let message = format!("a register of 32 bits cannot be at {at:#x}");
                return wrong(key, message, "registers are words: their places are multiples of 4");
            }
        }
        if self.answer.write.is_some() == self.answer.copies.is_some() {
            let message = match self.answer.write {
                Some(_) => "the handler writes a fixed word (`write`) or that of a register (`copies`)",
                None => "the word that the handler writes is missing",
            };
            let hint = "`write = 1`, or `copies = 0x24` for a register that shows what the interrupt was for";
            return wrong("answer", message.into(), hint);
        }
        if self.time.is_some_and(|time| time.ticks_per_us == 0) {
            let hint = "ticks in a microsecond: 125 for a clock of 125 MHz; a clock slower than 1 MHz cannot \
                        time an interrupt";
            return wrong("time.ticks_per_us", "a clock that never ticks shows no time".into(), hint);
        }
        Ok(())
    }
}

/// `-` for a missing value.
fn or_none(value: Option<impl fmt::Display>) -> String {
    value.map_or_else(|| "-".into(), |value| value.to_string())
}

impl fmt::Display for DeviceCard {
    /// In words of one line, the name last: so it goes to a probe, which reads no TOML.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let iommu = if self.without_iommu { "bare" } else { "iommu" };
        write!(f, "{iommu} {} {} {} ", self.pci, or_none(self.address.as_ref()), self.bar)?;
        write!(f, "{} {} ", self.interrupt.word(), self.vectors)?;
        write!(f, "{} {} {} ", self.trigger.at, self.trigger.write, self.answer.at)?;
        write!(f, "{} {} ", or_none(self.answer.write), or_none(self.answer.copies))?;
        match self.time {
            None => f.write_str("- - - ")?,
            Some(time) => write!(f, "{} {} {} ", time.at, time.ticks_per_us, time.shows.word())?,
        }
        f.write_str(&self.name)
    }
}

/// A text that describes no card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoDeviceCard;

impl FromStr for DeviceCard {
    type Err = NoDeviceCard;

    fn from_str(text: &str) -> Result<Self, NoDeviceCard> {
        let mut words = text.splitn(15, ' ');
        read(&mut words).filter(|card| card.check().is_ok()).ok_or(NoDeviceCard)
    }
}

fn read<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<DeviceCard> {
    let without_iommu = match words.next()? {
        "bare" => true,
        "iommu" => false,
        _ => return None,
    };
    let pci = words.next()?.parse().ok()?;
    let address = match words.next()? {
        "-" => None,
        address => Some(address.parse().ok()?),
    };
    let mut number = || words.next()?.parse::<u32>().ok();
    let bar = number()?;
    let interrupt = Raises::of(words.next()?)?;
    let mut number = || match words.next()? {
        "-" => Some(None),
        number => number.parse::<u32>().ok().map(Some),
    };
    let (vectors, trigger) = (number()??, Trigger { at: number()??, write: number()?? });
    let answer = AnswerRegister { at: number()??, write: number()?, copies: number()? };
    let time = number()?.zip(number()?);
    let shows = Shows::of(words.next()?);
    let time = match (time, shows) {
        (None, None) => None,
        (Some((at, ticks_per_us)), Some(shows)) => Some(CardTime { at, ticks_per_us, shows }),
        _ => return None,
    };
    let name = words.next()?.to_owned();
    Some(DeviceCard { name, pci, address, bar, interrupt, vectors, without_iommu, trigger, answer, time })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn card() -> DeviceCard {
        DeviceCard {
            name: "a card of two words".into(),
            pci: "1234:11e8".parse().unwrap(),
            address: None,
            bar: 0,
            interrupt: Raises::Msi,
            vectors: 1,
            without_iommu: false,
            trigger: Trigger { at: 0x60, write: 1 },
            answer: AnswerRegister { at: 0x64, write: None, copies: Some(0x24) },
            time: None,
        }
    }

    #[test]
    fn what_cannot_be_is_said_with_its_key() {
        type Change = fn(&mut DeviceCard);
        let cases: [(Change, &str, &str); 11] = [
            (|card| card.name.clear(), "name", "1 to 60 bytes"),
            (|card| card.name = "x".repeat(61), "name", "1 to 60 bytes"),
            (|card| card.name = "a\u{1b}[2J".into(), "name", "controls a terminal"),
            (|card| card.bar = 6, "bar", "no BAR 6"),
            (|card| card.vectors = 0, "vectors", "0 vectors"),
            (|card| card.vectors = 33, "vectors", "33 vectors"),
            (|card| card.trigger.at = 0x61, "trigger.at", "0x61"),
            (|card| card.answer.copies = Some(2), "answer.copies", "0x2"),
            (|card| card.answer.write = Some(1), "answer", "or that of a register"),
            (|card| card.answer.copies = None, "answer", "handler writes is missing"),
            (
                |card| card.time = Some(CardTime { at: 8, ticks_per_us: 0, shows: Shows::Elapsed }),
                "time.ticks_per_us",
                "never ticks",
            ),
        ];
        assert_eq!(card().check(), Ok(()));
        for (change, key, said) in cases {
            let mut wrong = card();
            change(&mut wrong);
            let error = wrong.check().unwrap_err();
            assert_eq!(error.key, key);
            assert!(error.message.contains(said) && !error.hint.is_empty(), "{error:?}");
            assert_eq!(
                wrong.to_string().parse::<DeviceCard>(),
                Err(NoDeviceCard),
                "nor does a probe take it"
            );
        }
    }

    #[test]
    fn numbers_and_places_of_devices_are_read_as_the_kernel_writes_them() {
        assert_eq!("1AF4:1110".parse::<PciId>().unwrap().to_string(), "1af4:1110");
        assert_eq!("0000:0A:1f.7".parse::<PciAddress>().unwrap().as_str(), "0000:0a:1f.7");
        for wrong in ["", "1234", "1234:", ":11e8", "12345:11e8", "+234:11e8", "0x1234:0x11e8", "1234:11e8 "]
        {
            assert!(wrong.parse::<PciId>().is_err(), "{wrong}");
        }
        for wrong in
            ["", "03:00.0", "0000:03:00", "0000:03:20.0", "0000:03:00.8", "0000:03:00.0/..", "../x:y.z"]
        {
            assert!(wrong.parse::<PciAddress>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn ticks_are_what_the_description_says_they_are() {
        let time = |ticks_per_us| CardTime { at: 0, ticks_per_us, shows: Shows::Elapsed };
        assert_eq!(time(125).ns(625), 5_000);
        assert_eq!(time(3).ns(10), 3_333);
        assert_eq!(time(1).ns(u32::MAX), 4_294_967_295_000);
    }

    prop_compose! {
        fn any_card()(
            name in "[a-zA-Z0-9 ,.'-]{1,60}",
            ids in any::<(u16, u16)>(),
            address in proptest::option::of((any::<u16>(), any::<u8>(), 0u8..32, 0u8..8)),
            (bar, msi, vectors, without_iommu) in (0u32..6, any::<bool>(), 1u32..=32, any::<bool>()),
            registers in any::<[u32; 4]>(),
            (write, copied) in any::<(u32, bool)>(),
            time in proptest::option::of((1u32.., any::<bool>())),
        ) -> DeviceCard {
            let at = |number: usize| registers[number] & !3;
            DeviceCard {
                name,
                pci: PciId { vendor: ids.0, device: ids.1 },
                address: address.map(|(a, b, c, d)| format!("{a:04x}:{b:02x}:{c:02x}.{d}").parse().unwrap()),
                bar,
                interrupt: if msi { Raises::Msi } else { Raises::MsiX },
                vectors,
                without_iommu,
                trigger: Trigger { at: at(0), write },
                answer: AnswerRegister {
                    at: at(1),
                    write: (!copied).then_some(write),
                    copies: copied.then_some(at(2)),
                },
                time: time.map(|(ticks_per_us, elapsed)| CardTime {
                    at: at(3),
                    ticks_per_us,
                    shows: if elapsed { Shows::Elapsed } else { Shows::Counter },
                }),
            }
        }
    }

    proptest! {
        #[test]
        fn a_description_is_read_as_it_is_written(card in any_card()) {
            prop_assert_eq!(card.check(), Ok(()));
            prop_assert_eq!(card.to_string().parse(), Ok(card));
        }

        #[test]
        fn any_text_can_be_read_and_a_truncated_one_gives_at_most_a_shorter_name(text in ".{0,80}", cut in 0usize..80) {
            let _ = text.parse::<DeviceCard>();
            let whole = card().to_string();
            let cut = cut.min(whole.len());
            // The name is the last word: cut short, it is a shorter name.
            if let Ok(read) = whole[..cut].parse::<DeviceCard>() {
                prop_assert!(card().name.starts_with(&read.name));
            }
        }
    }
}
