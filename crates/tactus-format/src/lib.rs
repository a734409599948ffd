//! The formats of the field, read and written: what instruments other than the probe print. Pure: text in,
//! readings out.

pub mod import;
pub mod lines;
