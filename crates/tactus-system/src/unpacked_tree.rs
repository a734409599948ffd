//! The files of an untrusted archive as they are unpacked: all beneath one directory, and up to a limit.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::Directory;

/// The deepest name, in parts: a bundle's own have three, and bundles are not looked for in deeper places than six.
const DEEPEST: usize = 10;

/// Files and the directories above them. It begins with an empty directory.
#[derive(Debug)]
pub struct UnpackedTree<'a> {
    dir: &'a Directory,
    made: BTreeSet<PathBuf>,
    left: usize,
}

impl<'a> UnpackedTree<'a> {
    /// With room for this number of files and directories.
    #[must_use]
    pub const fn new(dir: &'a Directory, room: usize) -> Self {
        Self { dir, made: BTreeSet::new(), left: room }
    }

    /// The number of files and directories that still have room.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.left
    }

    /// Makes a regular file, to be written, and the directories above it.
    ///
    /// # Errors
    /// [`io::ErrorKind::FileTooLarge`] when no room is left. Other errors when its name leads outside or is too deep,
    /// or when it already exists or cannot be made. A refused name makes no directories.
    pub fn file(&mut self, name: &Path) -> io::Result<File> {
        let name = inside(name)?;
        self.count()?;
        let above: Vec<&Path> =
            name.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect();
        for above in above.into_iter().rev() {
            if !self.made.contains(above) {
                self.count()?;
                self.dir.make_dir(above)?;
                self.made.insert(above.to_owned());
            }
        }
        match self.dir.entry(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.dir.anew(&name),
            Err(error) => Err(error),
            Ok(_) => Err(wrong(&name, "is in it twice")),
        }
    }

    fn count(&mut self) -> io::Result<()> {
        let no_room = || {
            let words = "it has more files and directories than there is room for";
            io::Error::new(io::ErrorKind::FileTooLarge, words)
        };
        self.left = self.left.checked_sub(1).ok_or_else(no_room)?;
        Ok(())
    }
}

fn wrong(name: &Path, words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} {words}", name.display()))
}

/// A name without dots.
fn inside(name: &Path) -> io::Result<PathBuf> {
    let mut plain = PathBuf::new();
    for part in name.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(part) => plain.push(part),
            _ => return Err(wrong(name, "lies outside of it")),
        }
    }
    match plain.components().count() {
        0 => Err(wrong(name, "names no file")),
        parts if parts > DEEPEST => Err(wrong(name, "lies deeper than bundles have files")),
        _ => Ok(plain),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn with<T>(room: usize, then: impl FnOnce(&mut UnpackedTree<'_>, &Directory) -> T) -> T {
        let there = tempfile::tempdir().unwrap();
        let dir = Directory::open(there.path()).unwrap();
        then(&mut UnpackedTree::new(&dir, room), &dir)
    }

    #[test]
    fn directories_count_with_the_files_that_are_in_them() {
        with(4, |tree, dir| {
            tree.file(Path::new("./a/b/one")).unwrap().write_all(b"1").unwrap();
            tree.file(Path::new("a/two")).unwrap();
            assert_eq!(tree.left(), 0);
            let error = tree.file(Path::new("three")).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
            assert_eq!(dir.read("a/b/one", 9).unwrap(), b"1");
            assert!(dir.entry("three").is_err());
        });
    }

    #[test]
    fn of_a_name_that_leads_outside_or_deep_or_comes_twice_nothing_is_made() {
        let deep = format!("{}f", "d/".repeat(DEEPEST));
        with(9, |tree, dir| {
            for (name, said) in [
                ("../x", "outside"),
                ("/etc/x", "outside"),
                ("a/../../x", "outside"),
                (".", "names no file"),
                (deep.as_str(), "deeper"),
            ] {
                let error = tree.file(Path::new(name)).unwrap_err().to_string();
                assert!(error.contains(said), "{name}: {error}");
            }
            assert!(dir.walk().unwrap().is_empty());
            tree.file(Path::new("x")).unwrap();
            for (name, said) in [("x", "twice"), ("x/y", "")] {
                let error = tree.file(Path::new(name)).unwrap_err().to_string();
                assert!(error.contains(said), "{name}: {error}");
            }
        });
    }
}
