//! The two ends of an interrupt card.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::device_card::DeviceCard;

/// The data that one end must know of the other. It is sent as a text of words, like a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum CardEnd {
    /// It raises interrupts and times the answers.
    Card {
        /// Another CPU than the card's own, for the thread that stands for a guest while the card's own part is
        /// measured.
        beside: Option<u32>,
        /// The socket that passes the memory and the vector (QEMU's ivshmem protocol).
        socket: String,
    },
    /// It answers them.
    Answers,
    /// It raises interrupts of a device, and also answers them.
    Device {
        /// Whether to take the device from its driver and give it to vfio-pci: on a machine that belongs to the run.
        binds: bool,
        /// The device.
        card: Box<DeviceCard>,
    },
}

/// The error for a text that does not name an end of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoCardEnd;

impl fmt::Display for NoCardEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no end of an interrupt card")
    }
}

impl std::error::Error for NoCardEnd {}

impl From<CardEnd> for String {
    fn from(end: CardEnd) -> Self {
        match end {
            CardEnd::Card { beside, socket } => {
                ["card", &beside.map_or_else(|| "-".into(), |cpu| cpu.to_string()), &socket].join(" ")
            }
            CardEnd::Answers => "answers".into(),
            CardEnd::Device { binds, card } => {
                [if binds { "binds" } else { "bound" }, " ", &card.to_string()].concat()
            }
        }
    }
}

impl TryFrom<String> for CardEnd {
    type Error = NoCardEnd;

    fn try_from(text: String) -> Result<Self, NoCardEnd> {
        if text == "answers" {
            return Ok(Self::Answers);
        }
        for (word, binds) in [("binds ", true), ("bound ", false)] {
            if let Some(card) = text.strip_prefix(word) {
                let card = card.parse().map_err(|_| NoCardEnd)?;
                return Ok(Self::Device { binds, card: Box::new(card) });
            }
        }
        let (beside, socket) =
            text.strip_prefix("card ").and_then(|rest| rest.split_once(' ')).ok_or(NoCardEnd)?;
        let beside = if beside == "-" { None } else { Some(beside.parse().map_err(|_| NoCardEnd)?) };
        if socket.is_empty() { Err(NoCardEnd) } else { Ok(Self::Card { beside, socket: socket.to_owned() }) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::device_card::{AnswerRegister, CardTime, Raises, Shows, Trigger};
    use super::*;

    #[test]
    fn an_end_of_a_card_is_read_as_it_is_written_and_nothing_else_is_one() {
        let card = |beside, socket: &str| CardEnd::Card { beside, socket: socket.to_owned() };
        let device = |binds, timed: bool| {
            let card = DeviceCard {
                name: "QEMU's edu".into(),
                pci: "1234:11e8".parse().unwrap(),
                address: timed.then(|| "0000:03:00.0".parse().unwrap()),
                bar: 0,
                interrupt: Raises::Msi,
                vectors: 1,
                without_iommu: false,
                trigger: Trigger { at: 0x60, write: 1 },
                answer: AnswerRegister {
                    at: 0x64,
                    write: timed.then_some(1),
                    copies: (!timed).then_some(0x24),
                },
                time: timed.then_some(CardTime { at: 16, ticks_per_us: 125, shows: Shows::Elapsed }),
            };
            CardEnd::Device { binds, card: Box::new(card) }
        };
        for (end, text) in [
            (card(Some(3), "/run/a b/card.sock"), "card 3 /run/a b/card.sock"),
            (card(None, "/c"), "card - /c"),
            (CardEnd::Answers, "answers"),
            (device(false, false), "bound iommu 1234:11e8 - 0 msi 1 96 1 100 - 36 - - - QEMU's edu"),
            (
                device(true, true),
                "binds iommu 1234:11e8 0000:03:00.0 0 msi 1 96 1 100 1 - 16 125 elapsed QEMU's edu",
            ),
        ] {
            assert_eq!(String::from(end.clone()), text);
            assert_eq!(CardEnd::try_from(text.to_owned()), Ok(end));
        }
        for text in [
            "",
            "card",
            "card 3",
            "card 3 ",
            "card x /c",
            "card -1 /c",
            "answers 3",
            "binds",
            "bound x",
            "binds iommu 1234:11e8",
        ] {
            assert_eq!(CardEnd::try_from(text.to_owned()), Err(NoCardEnd), "{text}");
        }
    }
}
