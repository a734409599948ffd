//! Files that are read up to a length.

use std::fs::File;
use std::io::{self, Read};

use super::too_large;

/// The contents of a file of at most `most` bytes.
///
/// # Errors
/// When it is longer, or cannot be read.
pub fn at_most(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > most { Err(too_large(most)) } else { Ok(bytes) }
}
