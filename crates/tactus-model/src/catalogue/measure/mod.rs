//! The measurements of a probe.

pub use application::MarkedValue;
pub use interrupt::AnswerBy;
pub use timerlat::TimerlatValue;

use crate::outcome::Yields;

/// The family, and what its words yield.
macro_rules! measures {
    ($($file:ident::$word:ident),+) => {
        super::declare::family! {
            /// A measurement and its own parameters; what all have in common (interval, priority, policy,
            /// threads) stands in the scenario.
            pub enum Measure, MEASURES { $($file::$word),+ }
        }

        impl Measure {
            /// Whether it measures periods, which can be missed.
            #[must_use]
            pub fn has_periods(&self) -> bool {
                match self {
                    Self::Spin(_) => false,
                    Self::Application(table) => table.value() != MarkedValue::Execution,
                    _ => true,
                }
            }

            /// Whether its thread measures nothing itself, but reads the output of a program or the kernel: it is not a
            /// real-time thread.
            #[must_use]
            pub const fn only_reads(&self) -> bool {
                matches!(self, Self::Application(_) | Self::Timerlat(_))
            }

            /// The kind of its results: values if it names items. It depends on the words rather than the entries, so
            /// that a probe need not contain those.
            #[must_use]
            pub const fn yields(&self) -> Yields {
                let items = match self {
                    $(Self::$word(_) => $word::ITEMS.len()),+
                };
                if items == 0 { Yields::Latency } else { Yields::Values }
            }
        }
    };
}

measures!(
    timer::Timer,
    spin::Spin,
    interrupt::Interrupt,
    application::Application,
    timerlat::Timerlat,
    os::Os,
    exits::Exits,
    cpu::Cpu,
    memory::Memory,
    network::Network
);
