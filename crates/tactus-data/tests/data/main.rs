//! Data sets of bundles that were made up, and of recorded ones.
#![expect(clippy::disallowed_methods, reason = "tests make bundles, and look at what was written")]
#![expect(clippy::print_stderr, reason = "what is not tested is said")]

mod asked;
mod collected;
mod made;
mod readers;
