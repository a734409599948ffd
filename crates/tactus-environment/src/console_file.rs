//! Where the console of an environment is kept.

use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, Write};

use tactus_system::Directory;

/// A file that is made with the first byte to keep. It lies beneath a directory that is held open: another user who
/// moves or replaces the directory's name cannot redirect the writes.
#[derive(Clone, Debug)]
pub struct ConsoleFile {
    dir: Directory,
    name: String,
}

impl ConsoleFile {
    /// Of this name in a directory.
    #[must_use]
    pub fn new(dir: &Directory, name: impl Into<String>) -> Self {
        Self { dir: dir.clone(), name: name.into() }
    }

    /// Opens it anew, to write it and to read what was written.
    ///
    /// # Errors
    /// When it cannot be written, or is no regular file of one name.
    pub fn anew(&self) -> io::Result<File> {
        self.dir.anew(&self.name)
    }

    /// Adds to it.
    ///
    /// # Errors
    /// As [`ConsoleFile::anew`].
    pub fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.dir.append(&self.name)?.write_all(bytes)
    }
}

impl Display for ConsoleFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.dir.path().join(&self.name).display())
    }
}
