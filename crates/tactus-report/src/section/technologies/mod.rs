//! The technologies in words, as a document has them, and the numbers behind each word.

mod entry;
mod judgement;
mod technology_tables;

pub use entry::{ENTRY, Technologies};
pub use judgement::{NOT_KNOWN, about, technologies};
