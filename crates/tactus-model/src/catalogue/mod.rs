//! The words of a plan: every measurement, load and fault, one file each, in the table of its family.
//!
//! A word is declared once, by `word!`: its description and its parameters, each with its type, default and bounds. The
//! macro makes from it the table of a plan, its JSON, its row in messages to a probe and the check of its bounds. It
//! also makes the entry that help, `tactus explain` and the book show.

mod declare;
mod entries;
mod entry;
pub mod fault;
pub mod load;
pub mod measure;
mod table;
#[cfg(test)]
mod tests;
mod value;

pub use entries::{entries, find};
pub use entry::{Entry, Family, Item, OutOfRange, Parameter, PeerKey};
pub use fault::Fault;
pub use load::Load;
pub use measure::Measure;
pub use table::{optional_word_or_table, word_or_table};
pub use value::Value;
