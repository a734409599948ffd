//! The formats of the field, read and written: what instruments other than the probe print and leave in files, and a
//! bundle as their readers want it. Pure: bytes in, bytes out.

pub mod export;
pub mod hlog;
pub mod import;
pub mod lines;
