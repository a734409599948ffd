//! The kinds of evidence of a result.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where the numbers come from, and so what they may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Evidence {
    /// No hypervisor below: the numbers speak of this hardware.
    #[serde(rename = "bare metal")]
    BareMetal,
    /// A hypervisor lies below, and the processor executes the code itself: the numbers hold as
    /// seen inside that virtual machine.
    #[serde(rename = "virtual host")]
    VirtualHost,
    /// The processor is emulated (QEMU TCG): shows that the path works, says nothing about hardware.
    #[serde(rename = "emulated")]
    Emulated,
    /// Read from another tool's output.
    #[serde(rename = "imported")]
    Imported,
}

impl Evidence {
    /// The evidence of a figure from two environments: the weaker of the two.
    #[must_use]
    pub const fn weaker(self, other: Self) -> Self {
        if (self as u8) < other as u8 { other } else { self }
    }

    /// As programs read it: in JSON, tables and labels.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::BareMetal => "bare metal",
            Self::VirtualHost => "virtual host",
            Self::Emulated => "emulated",
            Self::Imported => "imported",
        }
    }

    /// In a column of a table: its legend is [`Evidence::meaning`].
    #[must_use]
    pub const fn mark(self) -> &'static str {
        match self {
            Self::BareMetal => "B",
            Self::VirtualHost => "V",
            Self::Emulated => "E",
            Self::Imported => "I",
        }
    }

    /// One sentence that says what a reader may conclude from such a number.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::BareMetal => "No hypervisor below: a verdict applies to this machine.",
            Self::VirtualHost => {
                "A verdict holds inside this virtual machine, not for the hardware below it."
            }
            Self::Emulated => {
                "The path works, but the times say nothing about hardware: there is no verdict."
            }
            Self::Imported => "Read from another tool's output: tactus did not measure it.",
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::BareMetal => "bare metal",
            Self::VirtualHost => "inside a VM",
            Self::Emulated => "emulated",
            Self::Imported => "imported",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_read_the_words_that_they_always_did() {
        for kind in [Evidence::BareMetal, Evidence::VirtualHost, Evidence::Emulated, Evidence::Imported] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.key());
            assert!(kind.to_string().to_uppercase().contains(kind.mark()), "{kind}");
        }
    }
}
