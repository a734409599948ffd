//! Disturbances of a known size.

pub use block::{BlockWay, Off};
pub use hold_vcpu::HoldBy;

/// The family, and what all faults have: a length and how often.
macro_rules! faults {
    ($($file:ident::$word:ident),+) => {
        super::declare::family! {
            /// A fault: a disturbance of known size.
            pub enum Fault, FAULTS { $($file::$word),+ }
        }

        impl Fault {
            /// How long it disturbs each time, and how often, in ns.
            #[must_use]
            pub const fn size(&self) -> (u64, u64) {
                match self {
                    $(Self::$word(table) => (table.length.0, table.every.0)),+
                }
            }
        }
    };
}

faults!(hog::Hog, block::Block, overcommit::Overcommit, hold_vcpu::HoldVcpu);

impl Fault {
    /// Whether the host side carries it out, and not the probe of its environment.
    #[must_use]
    pub const fn from_outside(&self) -> bool {
        matches!(self, Self::HoldVcpu(_))
    }

    /// The fault as it is in an environment whose processor is emulated.
    #[must_use]
    pub fn emulated(&self) -> Self {
        match self {
            Self::Block(block) => {
                Self::Block(Block { length: block.emulated.unwrap_or(block.length), ..block.clone() })
            }
            other => other.clone(),
        }
    }
}
