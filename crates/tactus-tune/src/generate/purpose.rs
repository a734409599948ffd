//! The purpose of generated files: it sets the defaults.

use super::Page;

/// The purpose of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The machine itself.
    Machine,
    /// Containers.
    Container,
    /// Virtual machines.
    Guest,
}

impl Purpose {
    /// The profile, which the audit recommends, too.
    #[must_use]
    pub const fn profile(self) -> &'static str {
        match self {
            Self::Machine | Self::Container => "realtime",
            Self::Guest => "realtime-virtual-host",
        }
    }

    /// The name of the guest or container.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Container => "rt-container",
            Self::Machine | Self::Guest => "rt-guest",
        }
    }

    /// The pages of its memory; `None`: the largest that the machine has. A container's memory is not in large pages.
    #[must_use]
    pub const fn page(self) -> Option<Page> {
        match self {
            Self::Container => Some(Page::Base),
            Self::Machine | Self::Guest => None,
        }
    }
}
