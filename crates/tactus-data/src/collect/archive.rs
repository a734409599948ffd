//! Archives of bundles: printed into a log by a node, or carried on a stick. Their bytes may come from a
//! stranger.

use std::collections::hash_map::RandomState;
use std::ffi::OsStr;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tactus_system::{Directory, UnpackedTree};
use tar::EntryType;

/// Most bytes that an archive is unpacked to.
const MOST: u64 = 1 << 30;
/// Most files and directories in one.
const MOST_ENTRIES: usize = 65_536;
/// Most headers in one, those of links and of long names among them.
const MOST_HEADERS: usize = 4 * MOST_ENTRIES;
/// Longest name, in bytes, and longest text that has one in it.
const LONGEST: u64 = 64 * 1024;

/// The room for one archive, and for all that lie unpacked at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    bytes: u64,
    /// Files and directories.
    entries: usize,
}

impl Room {
    /// While nothing lies there.
    pub const WHOLE: Self = Self { bytes: MOST, entries: MOST_ENTRIES };
}

/// The directory to which an archive was unpacked; it is removed when this is dropped. It is found by its
/// name in an open directory to which no other user can write. Renaming a directory above it therefore leads
/// nowhere else.
#[derive(Debug)]
pub struct Unpacked {
    beneath: Directory,
    name: String,
}

impl Unpacked {
    /// Nothing yet.
    fn within(beneath: &Directory) -> io::Result<Self> {
        // Its keys are from the system's random numbers.
        let name = format!("{:016x}", RandomState::new().build_hasher().finish());
        match beneath.entry(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => beneath.make_dir(&name)?,
            Err(error) => return Err(error),
            Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
        }
        Ok(Self { beneath: beneath.clone(), name })
    }

    /// Opens it. It is not kept open: there may be more of them than a process may have open files.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn open(&self) -> io::Result<Directory> {
        self.beneath.beneath(&self.name)
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        // A rest is removed with the data set's working directory, now or by the next collection.
        let _ = self.beneath.remove_tree(&self.name);
    }
}

/// Unpacks the regular files of an archive into a new directory within `beneath`, which is removed when the
/// returned value is dropped. Links, devices and other entries are left out: a bundle has none. Also returns
/// the room that is left.
///
/// # Errors
/// When it is not an archive (gzip, then tar as POSIX.1-1988 and GNU tar write it), is cut off, or names a
/// place outside or a deep one. [`io::ErrorKind::FileTooLarge`]: it has more in it than there is room for.
pub fn unpack(path: &Path, beneath: &Directory, room: Room) -> io::Result<(Unpacked, Room)> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = Directory::open(above)?.file(path.file_name().unwrap_or(OsStr::new("")))?;
    let there = Unpacked::within(beneath)?;
    let left = unpack_to(&mut MultiGzDecoder::new(file), &there.open()?, room)?;
    Ok((there, left))
}

fn larger(words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, words)
}

fn wrong(words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words)
}

/// A reader that knows whether it has come to its end.
struct ToItsEnd<R> {
    from: R,
    ended: bool,
}

impl<R: Read> Read for ToItsEnd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.ended |= read == 0 && !buffer.is_empty();
        Ok(read)
    }
}

fn unpack_to(from: &mut impl Read, into: &Directory, room: Room) -> io::Result<Room> {
    let mut left = room.bytes;
    let mut tree = UnpackedTree::new(into, room.entries);
    let mut from = ToItsEnd { from, ended: false };
    let mut archive = tar::Archive::new(&mut from);
    // The name of the next entry, if its header has no room for it. It is limited here, because an archive
    // may claim any length.
    let mut long: Option<PathBuf> = None;
    for (number, entry) in archive.entries()?.raw(true).enumerate() {
        let mut entry = entry?;
        if number >= MOST_HEADERS {
            return Err(wrong("it has more entries than tactus unpacks"));
        }
        let size = entry.size();
        let larger = || larger("it is larger than tactus unpacks");
        left = left.checked_sub(size).ok_or_else(larger)?;
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous => {
                let name = long.take().map_or_else(|| entry.path().map(Into::into), Ok)?;
                if io::copy(&mut entry, &mut tree.file(&name)?)? != size {
                    return Err(wrong("it is cut"));
                }
            }
            EntryType::GNULongName => long = Some(path(&text(&mut entry)?)),
            EntryType::XHeader => {
                let text = text(&mut entry)?;
                let named = tar::PaxExtensions::new(&text)
                    .filter_map(Result::ok)
                    .filter(|one| one.key_bytes() == b"path");
                long = named.map(|one| path(one.value_bytes())).last().or(long);
            }
            _ => long = None,
        }
    }
    // An archive marks its end: without the mark it is cut off, perhaps between two files.
    if from.ended {
        return Err(wrong("it is cut"));
    }
    Ok(Room { bytes: left, entries: tree.left() })
}

/// A text in an archive, as long as one may be.
fn text(entry: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    entry.take(LONGEST).read_to_end(&mut text)?;
    Ok(text)
}

/// Up to the first NUL.
fn path(bytes: &[u8]) -> PathBuf {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    PathBuf::from(OsStr::from_bytes(&bytes[..end]))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "archives are made and looked at beside their door")]
mod tests {
    use std::io::Write;
    use std::process::Command;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// A tar archive of these files, as GNU tar or another format writes it.
    fn tar(format: &str, files: &[(&str, &[u8])]) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        let out = Command::new("tar")
            .args(["--format", format, "-cf", "-", "-C"])
            .arg(dir.path())
            .arg(".")
            .output();
        out.unwrap().stdout
    }

    /// An unpacked archive, and the directory above it.
    #[derive(Debug)]
    struct There {
        unpacked: Unpacked,
        _beneath: TempDir,
    }

    impl There {
        fn path(&self) -> PathBuf {
            self.unpacked.open().unwrap().path().to_owned()
        }
    }

    fn unpacked(bytes: &[u8]) -> io::Result<There> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tar.gz");
        std::fs::write(&path, packed(bytes)).unwrap();
        unpacked_from(&path)
    }

    fn unpacked_from(path: &Path) -> io::Result<There> {
        let beneath = tempfile::tempdir().unwrap();
        let (unpacked, _) = unpack(path, &Directory::open(beneath.path()).unwrap(), Room::WHOLE)?;
        Ok(There { unpacked, _beneath: beneath })
    }

    /// Length of a header.
    const BLOCK: usize = 512;

    /// A header of a regular file, or of another kind, whose name is this.
    fn header(name: &str, kind: EntryType, size: usize) -> [u8; BLOCK] {
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(size as u64);
        header.set_entry_type(kind);
        header.set_cksum();
        *header.as_bytes()
    }

    #[test]
    fn a_name_of_very_many_parts_is_refused_before_anything_is_made_of_it() {
        let deep = "d/".repeat(2000);
        let mut name = deep.clone().into_bytes();
        name.resize(4096, b'x');
        let whole = [
            &header("long", EntryType::GNULongName, name.len())[..],
            &name,
            &header("f", EntryType::Regular, 0),
            &[0; 2 * BLOCK],
        ];
        let error = unpacked(&whole.concat()).unwrap_err();
        assert!(error.to_string().contains("deeper than bundles have files"), "{error}");
    }

    #[test]
    fn an_archive_of_headers_without_end_is_refused() {
        let one = header("d", EntryType::Directory, 0);
        let whole = one.repeat(MOST_HEADERS + 1);
        assert!(unpacked(&whole).unwrap_err().to_string().contains("more entries"));
    }

    #[test]
    fn directories_count_with_the_files_that_are_in_them() {
        let mut whole = Vec::new();
        for number in 0..=MOST_ENTRIES / 9 {
            whole.extend(header(&format!("{number}/b/c/d/e/f/g/h/i"), EntryType::Regular, 0));
        }
        whole.extend([0; 2 * BLOCK]);
        assert!(unpacked(&whole).unwrap_err().to_string().contains("more files and directories"));
    }

    #[test]
    fn what_is_larger_than_there_is_room_for_is_told_from_what_is_wrong() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tar.gz");
        std::fs::write(&path, packed(&tar("gnu", &[("b/manifest.json", &[b' '; 3000])]))).unwrap();
        let beneath = Directory::open(dir.path()).unwrap();
        // A file, and the directory that it is in.
        for room in [Room { bytes: 2999, entries: 2 }, Room { bytes: 3000, entries: 1 }] {
            let error = unpack(&path, &beneath, room).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing of it stays");
        }
        let room = Room { bytes: 3001, entries: 7 };
        assert_eq!(unpack(&path, &beneath, room).unwrap().1, Room { bytes: 1, entries: 5 });
    }

    /// Another user owns the directory above, and puts a link to another place there.
    #[test]
    fn whoever_renames_what_is_above_gets_nothing_unpacked_elsewhere_and_nothing_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (data, moved, evil) =
            (dir.path().join("data"), dir.path().join("moved"), dir.path().join("evil"));
        let path = dir.path().join("a.tar.gz");
        std::fs::write(&path, packed(&tar("gnu", &[("b/one", b"1"), ("b/two", b"2")]))).unwrap();
        for place in [&data, &evil] {
            std::fs::create_dir_all(place.join("working")).unwrap();
        }
        let beneath = Directory::open(&data.join("working")).unwrap();
        std::fs::rename(&data, &moved).unwrap();
        std::os::unix::fs::symlink(&evil, &data).unwrap();
        let (there, _) = unpack(&path, &beneath, Room::WHOLE).unwrap();
        let bait = evil.join("working").join(&there.name).join("b");
        assert!(!bait.exists());
        std::fs::create_dir_all(&bait).unwrap();
        std::fs::write(bait.join("one"), "of somebody else").unwrap();
        assert_eq!(there.open().unwrap().read("b/one", 9).unwrap(), b"1");
        assert!(moved.join("working").join(&there.name).join("b/two").exists());
        drop(there);
        assert_eq!(std::fs::read_dir(moved.join("working")).unwrap().count(), 0);
        assert!(bait.join("one").exists());
    }

    #[test]
    fn what_tar_packs_is_unpacked_long_names_too() {
        let long = format!("{}/{}.txt", "d".repeat(90), "f".repeat(120));
        let files = [("b/manifest.json", &b"{}"[..]), (long.as_str(), &[7; 1000][..]), ("b/empty", b"")];
        for format in ["gnu", "ustar", "posix"] {
            let there = unpacked(&tar(format, &files)).unwrap();
            for (name, bytes) in files.iter().filter(|(name, _)| format != "ustar" || name.len() < 100) {
                assert_eq!(std::fs::read(there.path().join(name)).unwrap(), *bytes, "{format}: {name}");
            }
        }
    }

    #[test]
    fn an_archive_that_is_cut_anywhere_is_refused_and_links_are_left_out() {
        let whole = tar("gnu", &[("b/manifest.json", b"{}"), ("b/more", &[1; 700])]);
        let end = whole.len() - whole.iter().rev().take_while(|byte| **byte == 0).count();
        for cut in [1, 100, 511, 512, 600, 1024, 1500, end - 1] {
            assert!(unpacked(&whole[..cut]).is_err(), "{cut}");
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tar.gz");
        let bytes = packed(&whole);
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert!(unpacked_from(&path).is_err());
        let mut link = header("b/manifest.json", EntryType::Symlink, 0).to_vec();
        link.extend(&whole);
        let there = unpacked(&link).unwrap();
        let made = there.path().join("b/manifest.json");
        assert!(there.path().join("b/more").exists() && std::fs::symlink_metadata(made).unwrap().is_file());
    }

    #[test]
    fn no_name_leads_out_of_an_archive() {
        for name in ["../evil", "/etc/evil", "a/../../evil"] {
            let error =
                unpacked(&[&header(name, EntryType::Regular, 0)[..], &[0; 2 * BLOCK]].concat()).unwrap_err();
            assert!(error.to_string().contains("outside"), "{name}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(at in 0..2048_usize, bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut whole = tar("gnu", &[("b/manifest.json", b"{}"), ("b/more", &[1; 700])]);
            for (old, new) in whole.iter_mut().skip(at).zip(&bytes) {
                *old = *new;
            }
            let _ = unpacked(&whole);
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join("a.tgz"), &bytes).unwrap();
            prop_assert!(unpacked_from(&dir.path().join("a.tgz")).is_err());
        }
    }
}
