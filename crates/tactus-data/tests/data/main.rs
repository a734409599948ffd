//! Data sets of bundles that were made up, and of recorded ones.
#![expect(clippy::disallowed_methods, reason = "tests make bundles, and look at what was written")]

mod asked;
mod collected;
mod decided;
mod made;
#[path = "../../../tactus-report/tests/report/export/python.rs"]
mod python;
mod random;
mod readers;
mod rivals;
mod tables;
