//! The way between the two ends of an activity that has a peer.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The data that one end needs about the path to the other. It is sent as a text of words: another JSON type would make
/// the probe larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Link {
    /// Which of the two ends this one is.
    pub end: End,
    /// Its address.
    pub own: Ipv4Addr,
    /// The address of the other end.
    pub other: Ipv4Addr,
    /// The TCP port at which the far end awaits the near one.
    pub port: u16,
    /// The end that counts the CPU time of the machine on which both are; `None`: neither does.
    pub machine: Option<End>,
}

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The one that measures.
    Near,
    /// The one that answers it.
    Far,
}

impl End {
    const fn word(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
        }
    }

    fn of(word: &str) -> Option<Self> {
        [Self::Near, Self::Far].into_iter().find(|end| end.word() == word)
    }
}

/// The error for a text that is not a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoLink;

impl fmt::Display for NoLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no link between two ends")
    }
}

impl std::error::Error for NoLink {}

impl From<Link> for String {
    fn from(link: Link) -> Self {
        let machine = link.machine.map_or("-", End::word);
        [link.end.word(), &link.own.to_string(), &link.other.to_string(), &link.port.to_string(), machine]
            .join(" ")
    }
}

impl TryFrom<String> for Link {
    type Error = NoLink;

    fn try_from(text: String) -> Result<Self, NoLink> {
        fn next<'a, T: FromStr>(words: &mut impl Iterator<Item = &'a str>) -> Result<T, NoLink> {
            words.next().and_then(|word| word.parse().ok()).ok_or(NoLink)
        }
        let mut words = text.split(' ');
        let end = words.next().and_then(End::of).ok_or(NoLink)?;
        let (own, other, port) = (next(&mut words)?, next(&mut words)?, next(&mut words)?);
        let machine = match words.next() {
            Some("-") => None,
            Some(word) => Some(End::of(word).ok_or(NoLink)?),
            None => return Err(NoLink),
        };
        if words.next().is_some() { Err(NoLink) } else { Ok(Self { end, own, other, port, machine }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_read_as_it_is_written_and_nothing_else_is_one() {
        let link = Link {
            end: End::Near,
            own: Ipv4Addr::new(10, 0, 0, 1),
            other: Ipv4Addr::new(10, 0, 0, 2),
            port: 5201,
            machine: Some(End::Far),
        };
        for link in [link, Link { end: End::Far, machine: None, ..link }] {
            let text = serde_json::to_string(&link).unwrap();
            assert_eq!(serde_json::from_str::<Link>(&text).unwrap(), link, "{text}");
        }
        assert_eq!(String::from(link), "near 10.0.0.1 10.0.0.2 5201 far");
        for text in [
            "",
            "near",
            "near 10.0.0.1 10.0.0.2 5201",
            "middle 10.0.0.1 10.0.0.2 5201 -",
            "near 10.0.0.1 10.0.0.2 65536 -",
            "near 10.0.0 10.0.0.2 1 -",
            "near 10.0.0.1 10.0.0.2 1 here",
            "near 10.0.0.1 10.0.0.2 1 - more",
        ] {
            assert_eq!(Link::try_from(text.to_owned()), Err(NoLink), "{text}");
        }
    }
}
