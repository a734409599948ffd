//! The audit: rules over facts. Pure: a check reads nothing but a [`Subject`] and says what it thinks of
//! it; `tactus-tune` carries out the changes that a check proposes, and only it does.
//!
//! One file per check or family of like checks; one line in the table of its room.

/// Declares the modules of a room and the one table of their checks. Each module has a
/// `pub static CHECKS: &[Check]`.
macro_rules! room {
    ($($module:ident),+ $(,)?) => {
        $(mod $module;)+
        pub static FILES: &[&[crate::Check]] = &[$($module::CHECKS),+];
        #[cfg(test)]
        pub const MODULES: &[&str] = &[$(stringify!($module)),+];
    };
}

mod actions;
mod arch;
mod asked;
mod catalogue;
mod check;
mod evaluate;
mod fields;
pub mod guard;
mod judgement;
mod possible;
mod release;
mod role;
mod sentence;
pub mod settable;
mod subject;
#[cfg(test)]
mod testing;
mod vm;

mod hypervisor;
mod kernel;
mod memory;
mod platform;
mod sharing;

pub use arch::Arch;
pub use catalogue::{FAMILIES, Family, all, find, looks_twice};
pub use check::{Applies, Check, Reversible, SetBy, Source, no_change};
pub use evaluate::audit;
pub use judgement::{Judgement, Verdict};
pub use kernel::{is_managed, isolcpus_value, rescued};
pub use possible::{Impossible, impossible};
pub use release::Kernel;
pub use role::{likely_role, role_in};
pub use sentence::cpus_or_none;
pub use subject::{Intent, Subject};
