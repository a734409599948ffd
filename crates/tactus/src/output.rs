//! Output: where data goes, and how it may look there.
//!
//! If a reader of stdout leaves early, the rest of the output is lost, and the command ends as it would have. Any
//! other error of stdout is a failure with a separate type, so that no broken pipe elsewhere is taken for it.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use tactus_system::Directory;

use tactus_model::text::no_order;
use tactus_report::units::clean;

use crate::exit::Failure;

/// Data could not be written to stdout, and its reader had not left.
#[derive(Debug)]
pub struct Unwritten(pub io::Error);

impl Unwritten {
    /// The result of writing to stdout. A reader that left is not a failure.
    pub fn of(written: io::Result<()>) -> Result<(), Self> {
        match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Self(error)),
            _ => Ok(()),
        }
    }
}

impl From<Unwritten> for Failure {
    fn from(Unwritten(error): Unwritten) -> Self {
        Self::new(
            anyhow::Error::new(error).context("standard output"),
            "send it to a file on a disk with free space, or to a program that reads it",
        )
    }
}

/// Writes data to stdout.
pub fn data(text: &str) -> Result<(), Unwritten> {
    bytes(text.as_bytes())
}

/// Writes data to stdout that need not be text.
pub fn bytes(data: &[u8]) -> Result<(), Unwritten> {
    let mut out = io::stdout().lock();
    Unwritten::of(out.write_all(data).and_then(|()| out.flush()))
}

/// Writes text that is not trusted to stdout, without control characters for a terminal.
pub fn text(text: &str) -> Result<(), Unwritten> {
    data(&lines(text))
}

/// Stdout for data that is written piece by piece. Writing fails when its reader has left, so that the program stops
/// making more; [`Stdout::was_left`] tells that from other failures.
#[derive(Default)]
pub struct Stdout {
    was_left: bool,
}

impl Stdout {
    /// Whether the reader has left.
    pub const fn was_left(&self) -> bool {
        self.was_left
    }

    fn seen<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|error| self.was_left |= error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = io::stdout().write(bytes);
        self.seen(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = io::stdout().flush();
        self.seen(flushed)
    }
}

/// Lines and columns stay.
fn lines(text: &str) -> String {
    text.split_inclusive(['\n', '\t'])
        .map(|part| match part.char_indices().next_back() {
            Some((at, end @ ('\n' | '\t'))) => format!("{}{end}", clean(&part[..at])),
            _ => clean(part),
        })
        .collect::<String>()
        .split_inclusive('\n')
        .map(no_order)
        .collect()
}

/// Writes a JSON document to stdout.
pub fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    Ok(data(&tactus_report::render::json::text(value)?)?)
}

/// Opens a directory to write into; a missing one is made, with those above it. The path contains no link of another
/// user. Files beneath it stay there, even if another user renames a directory above it meanwhile.
pub fn directory(path: &Path) -> io::Result<Directory> {
    match Directory::reach(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Directory::create(path),
        reached => reached,
    }
}

/// Puts a file beneath a directory in one step, with the directories above it. It never writes through a link or into
/// a special file, even if another user has put one there.
pub fn file(dir: &Directory, name: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let above: Vec<&Path> = name.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect();
    above.into_iter().rev().try_for_each(|above| dir.make_dir(above))?;
    dir.install(name, bytes, mode)
}

/// The same, of a file by its whole path.
pub fn file_at(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    file(&directory(path.parent().unwrap_or(Path::new("")))?, Path::new(name), bytes, mode)
}

/// Whether stdout may have colour: a terminal, and NO_COLOR not set (no-color.org).
pub fn colour() -> bool {
    io::stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Width of the terminal in columns; 100 if stdout is not a terminal.
pub fn width() -> usize {
    if !io::stdout().is_terminal() {
        return 100;
    }
    console::Term::stdout().size_checked().map_or(100, |(_, columns)| usize::from(columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_stay_and_what_drives_a_terminal_goes() {
        assert_eq!(lines("a\n ::error::x\n"), "a\n \u{fffd}:error::x\n");
        assert_eq!(lines("a\tb\u{1b}[31m\n\u{202e}c\n\nd"), "a\tb\u{fffd}[31m\n\u{fffd}c\n\nd");
    }
}
