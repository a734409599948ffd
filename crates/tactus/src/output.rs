//! Where data goes, and how it may look there.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use tactus_system::Directory;

use tactus_model::text::no_order;
use tactus_report::units::clean;

/// Writes data to stdout; a closed pipe comes back as an error.
pub fn data(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes text to stdout whose words may be anybody's, without what drives a terminal.
pub fn text(text: &str) -> io::Result<()> {
    data(&lines(text))
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
pub fn json(value: &impl serde::Serialize) -> Result<(), crate::exit::Failure> {
    Ok(data(&tactus_report::render::json::text(value)?)?)
}

/// Opens a directory to write into; one that is not there is made, with those above it. No link of another user's leads
/// there, and what is written beneath it stays there, whoever renames what is above it meanwhile.
pub fn directory(path: &Path) -> io::Result<Directory> {
    match Directory::reach(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Directory::create(path),
        reached => reached,
    }
}

/// Puts a file beneath a directory in one step, with the directories above it. Nothing is written through a link, or
/// into what is no file, whoever put it there.
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

/// Width of the terminal in columns; 100 where stdout is none.
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
