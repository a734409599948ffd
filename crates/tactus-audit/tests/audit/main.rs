//! The checks, all together: beside the recorded machines and beside the book.
#![expect(
    clippy::disallowed_methods,
    reason = "fixtures and the book are no machine: they are read and written beside the door"
)]

mod audited;
mod catalogue;
mod denied;
mod field;
mod fixtures;
#[path = "../machines/mod.rs"]
mod machines;
mod sources;
mod texts;
mod versions;
