//! A bundle as one file, for engines that bring files or lines: tar, compressed by gzip. An archive that comes back
//! is not trusted: only regular files of plain names are taken, and no more than a bundle has.

use std::io::{self, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use tactus_system::{Directory, Kind, UnpackedTree};

use crate::name::hex;

/// The most that an archive unpacks to, in bytes. A run of a day has some MB.
pub const MOST_UNPACKED: u64 = 1 << 30;
/// The longest manifest, in bytes.
const MOST_MANIFEST: u64 = 16 << 20;
/// The most files and directories of an archive, and the most headers.
const MOST_ENTRIES: usize = 1 << 16;

/// Writes the files of a bundle, except for reports (which can be drawn again from the rest) and hidden files.
///
/// # Errors
/// Those of the file system, and of `out`.
pub fn pack<W: Write>(dir: &Directory, out: W) -> io::Result<W> {
    let mut archive = tar::Builder::new(GzEncoder::new(out, Compression::default()));
    for entry in dir.walk()? {
        let hidden = entry.path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let derived = entry.path.as_os_str().as_encoded_bytes().starts_with(b"report.");
        if entry.kind != Kind::File || hidden || derived {
            continue;
        }
        let mut header = tar::Header::new_ustar();
        header.set_path(&entry.path)?;
        header.set_size(entry.bytes);
        header.set_mode(0o644);
        header.set_mtime(u64::try_from(entry.modified_ns / 1_000_000_000).unwrap_or(0));
        header.set_entry_type(tar::EntryType::Regular);
        header.set_cksum();
        // A file that grows meanwhile is as long as its header says.
        archive.append(&header, dir.file(&entry.path)?.take(entry.bytes))?;
    }
    archive.into_inner()?.finish()
}

/// Writes on to another writer, and computes the SHA-256 of the bytes that it wrote: a later change of the file does
/// not change the checksum.
pub struct Summed<W> {
    out: W,
    hash: Sha256,
}

impl<W: Write> Summed<W> {
    /// Writes on to `out`.
    pub fn new(out: W) -> Self {
        Self { out, hash: Sha256::new() }
    }

    /// The sum, in hex.
    #[must_use]
    pub fn sum(self) -> String {
        hex(self.hash)
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(bytes.get(..written).unwrap_or(bytes));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Unpacks what [`pack`] wrote into an empty directory.
///
/// # Errors
/// When it is cut, no archive, too large or too deep, or has anything in it but regular files beneath it.
pub fn unpack(bytes: impl Read, into: &Directory) -> io::Result<()> {
    unpack_up_to(MOST_ENTRIES, bytes, into)
}

fn unpack_up_to(most: usize, bytes: impl Read, into: &Directory) -> io::Result<()> {
    let wrong = |words: String| io::Error::new(io::ErrorKind::InvalidData, words);
    // One byte more, to tell a file that is too long from one of the greatest length.
    let mut plain = MultiGzDecoder::new(bytes).take(MOST_UNPACKED + 1);
    let mut archive = tar::Archive::new(&mut plain);
    let mut tree = UnpackedTree::new(into, most);
    // Raw: no name and no length comes from anywhere but an entry's own header. Each is a file's, or the last one.
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let shown = path.display();
        if entry.header().entry_type() != tar::EntryType::Regular {
            return Err(wrong(format!("{shown} is not a regular file")));
        }
        let size = entry.size();
        let copied = io::copy(&mut entry, &mut tree.file(&path)?)?;
        if copied != size {
            return Err(wrong(format!("it is cut within {shown}")));
        }
    }
    if plain.limit() == 0 {
        return Err(wrong(format!("it unpacks to more than {} MiB", MOST_UNPACKED >> 20)));
    }
    // Data after the end of the archive is covered by gzip's checksum, which shows whether everything arrived.
    io::copy(&mut plain, &mut io::sink()).map(drop)
}

/// The manifest of an archive; `None` if it cannot be read.
#[must_use]
pub fn manifest(archive: &[u8]) -> Option<Vec<u8>> {
    let mut archive = tar::Archive::new(MultiGzDecoder::new(archive).take(MOST_UNPACKED));
    let mut found = Vec::new();
    for entry in archive.entries().ok()?.raw(true).take(MOST_ENTRIES) {
        let entry = entry.ok()?;
        if entry.path().is_ok_and(|path| path == Path::new("manifest.json")) {
            entry.take(MOST_MANIFEST).read_to_end(&mut found).ok()?;
            return Some(found);
        }
    }
    None
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a bundle is made beside the door")]
mod tests {
    use super::*;

    fn bundle() -> (tempfile::TempDir, Directory) {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        std::fs::create_dir_all(dir.path().join("scenarios/01-idle")).unwrap();
        file("manifest.json", "{}");
        file("scenarios/01-idle/latency.hlog", &"1,2,3\n".repeat(10_000));
        file("report.html", "drawn");
        file(".tactus-new-1", "half");
        let open = Directory::open(dir.path()).unwrap();
        (dir, open)
    }

    fn into() -> (tempfile::TempDir, Directory) {
        let dir = tempfile::tempdir().unwrap();
        let open = Directory::open(dir.path()).unwrap();
        (dir, open)
    }

    fn archive(entries: &[(&str, tar::EntryType, &str)]) -> Vec<u8> {
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (name, kind, text) in entries {
            let mut header = tar::Header::new_ustar();
            let field = &mut header.as_mut_bytes()[..100];
            field[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(text.len() as u64);
            header.set_entry_type(*kind);
            header.set_cksum();
            archive.append(&header, text.as_bytes()).unwrap();
        }
        archive.into_inner().unwrap().finish().unwrap()
    }

    #[test]
    fn a_bundle_comes_back_as_it_was_without_its_report() {
        let (from, open) = bundle();
        let bytes = pack(&open, Vec::new()).unwrap();
        let (to, there) = into();
        unpack(&bytes[..], &there).unwrap();
        let log = "scenarios/01-idle/latency.hlog";
        assert_eq!(
            std::fs::read(from.path().join(log)).unwrap(),
            std::fs::read(to.path().join(log)).unwrap()
        );
        let names: Vec<_> = there.walk().unwrap().into_iter().map(|entry| entry.path).collect();
        assert!(!names.iter().any(|name| name.ends_with("report.html") || name.starts_with(".tactus-new-1")));
    }

    #[test]
    fn the_sum_of_an_archive_is_that_of_what_was_written() {
        let (_from, open) = bundle();
        let mut bytes = Vec::new();
        let sum = pack(&open, Summed::new(&mut bytes)).unwrap().sum();
        assert_eq!(sum, crate::sha256(&bytes));
        assert!(bytes.len() > 100);
    }

    #[test]
    fn an_archive_that_is_cut_anywhere_is_refused() {
        let bytes = pack(&bundle().1, Vec::new()).unwrap();
        for end in (0..bytes.len()).step_by(3) {
            let (_to, there) = into();
            assert!(unpack(&bytes[..end], &there).is_err(), "cut at {end} of {}", bytes.len());
        }
    }

    #[test]
    fn nothing_of_a_hostile_archive_lands_outside_or_is_no_file() {
        let file = tar::EntryType::Regular;
        for (entries, said) in [
            (&[("../x", file, "x")][..], "outside"),
            (&[("/tmp/tactus-fleet-x", file, "x")], "outside"),
            (&[("a/../../x", file, "x")], "outside"),
            (&[("x", tar::EntryType::Symlink, "")], "not a regular file"),
            (&[("x", tar::EntryType::Link, "")], "not a regular file"),
            (&[("x", tar::EntryType::Char, "")], "not a regular file"),
            (&[("x", tar::EntryType::GNULongName, "../../x")], "not a regular file"),
            (&[("x", file, "1"), ("x", file, "2")], "twice"),
        ] {
            let (_to, there) = into();
            let error = unpack(&archive(entries)[..], &there).unwrap_err().to_string();
            assert!(error.contains(said), "{entries:?}: {error}");
        }
        let (_to, there) = into();
        assert!(unpack(&b"no archive"[..], &there).is_err());
    }

    #[test]
    fn a_deep_name_is_refused_before_a_directory_is_made_of_it() {
        let deep = format!("{}f", "d/".repeat(10));
        let (_to, there) = into();
        let error = unpack(&archive(&[(&deep, tar::EntryType::Regular, "")])[..], &there).unwrap_err();
        assert!(error.to_string().contains("deeper"), "{error}");
        assert!(there.walk().unwrap().is_empty());
    }

    #[test]
    fn directories_count_with_the_files_that_are_in_them() {
        let names: Vec<String> = (0..5).map(|n| format!("{n}/b/c/d/e/f/g/h/i/j")).collect();
        let entries: Vec<(&str, tar::EntryType, &str)> =
            names.iter().map(|name| (name.as_str(), tar::EntryType::Regular, "")).collect();
        let bytes = archive(&entries);
        assert!(unpack_up_to(50, &bytes[..], &into().1).is_ok());
        let error = unpack_up_to(49, &bytes[..], &into().1).unwrap_err();
        assert!(error.to_string().contains("files and directories"), "{error}");
    }

    #[test]
    fn an_archive_that_unpacks_without_an_end_is_refused() {
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        let mut header = tar::Header::new_ustar();
        header.set_path("zeros").unwrap();
        header.set_size(MOST_UNPACKED * 2);
        header.set_entry_type(tar::EntryType::Fifo);
        header.set_cksum();
        archive.append(&header, io::repeat(0).take(1 << 20)).unwrap_or(());
        let bytes = archive.into_inner().unwrap().finish().unwrap();
        let (_to, there) = into();
        assert!(unpack(&bytes[..], &there).is_err());
    }
}
