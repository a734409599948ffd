//! Audits, one or several, as text, JSON, Markdown and JUnit.

mod json;
mod junit;
mod markdown;
mod text;

use tactus_model::finding::Audit;

pub use crate::row::{intended, judged_as, read_nothing, summary};
pub use json::{AuditDocument, document};
pub use junit::junit;
pub use markdown::markdown;
pub use text::{Detail, text};

/// The audit of one environment.
#[derive(Clone, Copy, Debug)]
pub struct Audited<'a> {
    /// The environment's name.
    pub environment: &'a str,
    /// Its audit.
    pub audit: &'a Audit,
}
