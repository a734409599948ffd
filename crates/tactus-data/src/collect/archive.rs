//! Archives of bundles: what a node printed into a log, or was carried on a stick. They are anybody's bytes.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tactus_system::Directory;
use tempfile::TempDir;

/// Length of a header, and of what a file's bytes fill up.
const BLOCK: usize = 512;
/// Most bytes that an archive is unpacked to.
const MOST: u64 = 1 << 30;
/// Most files and directories in one.
const MOST_ENTRIES: usize = 65_536;
/// Most headers in one, those of links and of long names among them.
const MOST_HEADERS: usize = 4 * MOST_ENTRIES;
/// Deepest name: a bundle's own are of three parts, and bundles are not looked for in deeper places than six.
const DEEPEST: usize = 10;
/// Longest name, in bytes.
const LONGEST: u64 = 4096;

/// What there is room for, of one archive and of all that lie unpacked at any time.
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

/// Unpacks the regular files of an archive into a directory of its own within `beneath`, which goes with what is returned.
/// Links, devices and whatever else there is are left out: a bundle has none. Returns also what of the room is left.
///
/// # Errors
/// When it is no archive (gzip, then tar as POSIX.1-1988 and GNU tar write it), is cut, names a place outside or a deep one, or
/// has too much in it; [`io::ErrorKind::FileTooLarge`]: more than there is room for.
pub fn unpack(path: &Path, beneath: &Path, room: Room) -> io::Result<(TempDir, Room)> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = Directory::open(above)?.file(path.file_name().unwrap_or(OsStr::new("")))?;
    let there = tempfile::tempdir_in(beneath)?;
    let into = Directory::open(there.path())?;
    let left = unpack_to(&mut MultiGzDecoder::new(file), &into, room)?;
    Ok((there, left))
}

fn larger(words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, words)
}

fn wrong(words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words)
}

/// Files and the directories above them, as they are made.
struct Into<'a> {
    dir: &'a Directory,
    made: BTreeSet<PathBuf>,
    /// How many there is room for.
    left: usize,
}

impl Into<'_> {
    fn count(&mut self) -> io::Result<()> {
        let larger = || larger("it has more files than any that is unpacked");
        self.left = self.left.checked_sub(1).ok_or_else(larger)?;
        Ok(())
    }

    fn file(&mut self, name: &Path, bytes: &mut impl Read) -> io::Result<()> {
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
        self.dir.install_with(name, 0o644, |file| io::copy(bytes, file).map(drop))
    }
}

fn unpack_to(from: &mut impl Read, into: &Directory, room: Room) -> io::Result<Room> {
    let (mut left, mut headers) = (room.bytes, 0);
    let mut into = Into { dir: into, made: BTreeSet::new(), left: room.entries };
    // The name of what follows, where its own header has no room for it.
    let mut long: Option<PathBuf> = None;
    loop {
        let mut header = [0; BLOCK];
        from.read_exact(&mut header).map_err(|_| wrong("it is cut"))?;
        if header.iter().all(|byte| *byte == 0) {
            return Ok(Room { bytes: left, entries: into.left });
        }
        headers += 1;
        if headers > MOST_HEADERS {
            return Err(wrong("it has more entries than any that is unpacked"));
        }
        let size = octal(&header[124..136]).ok_or_else(|| wrong("it is no tar archive"))?;
        let larger = || larger("it is larger than any that is unpacked");
        left = left.checked_sub(size).ok_or_else(larger)?;
        if octal(&header[148..156]) != Some(sum(&header)) {
            return Err(wrong("it is no tar archive, or damaged"));
        }
        let kind = header[156];
        let mut bytes = from.take(size);
        match kind {
            b'0' | 0 => {
                let name = long.take().unwrap_or_else(|| name(&header));
                let name = inside(&name)?;
                if let Some(name) = name {
                    into.file(&name, &mut bytes)?;
                }
            }
            // GNU tar's long names.
            b'L' => {
                let mut text = Vec::new();
                bytes.by_ref().take(LONGEST).read_to_end(&mut text)?;
                long = Some(path(&text));
            }
            // POSIX: `LENGTH path=NAME\n` among others.
            b'x' => {
                let mut text = Vec::new();
                bytes.by_ref().take(64 * 1024).read_to_end(&mut text)?;
                let lines = text.split(|byte| *byte == b'\n');
                let named = lines
                    .filter_map(|line| line.splitn(2, |byte| *byte == b' ').nth(1)?.strip_prefix(b"path="));
                long = named.map(path).fold(long, |_, last| Some(last));
            }
            _ => long = None,
        }
        let rest = bytes.limit();
        let skipped = io::copy(&mut from.by_ref().take(rest), &mut io::sink())?;
        let filled = usize::try_from(size % BLOCK as u64).unwrap_or(0);
        let filled = (BLOCK - filled) % BLOCK;
        let mut fill = [0; BLOCK];
        let ended = from.read_exact(&mut fill[..filled]);
        if skipped != rest || ended.is_err() {
            return Err(wrong("it is cut"));
        }
    }
}

/// A number as headers have it: octal digits, then a blank or NUL.
fn octal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?;
    let text = text.trim_matches(|c| c == ' ' || c == '\0');
    if text.is_empty() { Some(0) } else { u64::from_str_radix(text, 8).ok() }
}

/// The checksum of a header: its bytes added up, its own field taken for blanks.
fn sum(header: &[u8; BLOCK]) -> u64 {
    let own = 148..156;
    let bytes = header.iter().enumerate();
    bytes.map(|(at, byte)| u64::from(if own.contains(&at) { b' ' } else { *byte })).sum()
}

/// Up to the first NUL.
fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    PathBuf::from(OsStr::from_bytes(&bytes[..end]))
}

fn name(header: &[u8; BLOCK]) -> PathBuf {
    let own = path(&header[..100]);
    // POSIX has the beginning of a long one apart; GNU tar has other things there.
    match &header[257..263] {
        b"ustar\0" if header[345] != 0 => path(&header[345..500]).join(own),
        _ => own,
    }
}

/// A name without dots; nothing: it is the archive's own directory.
fn inside(name: &Path) -> io::Result<Option<PathBuf>> {
    let mut plain = PathBuf::new();
    for part in name.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(part) => plain.push(part),
            _ => return Err(wrong("it names a place outside of it")),
        }
    }
    if plain.components().count() > DEEPEST {
        return Err(wrong("it names a place deeper than bundles lie"));
    }
    Ok(Some(plain).filter(|plain| !plain.as_os_str().is_empty()))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "archives are made and looked at beside their door")]
mod tests {
    use std::io::Write;
    use std::process::Command;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

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

    fn unpacked(bytes: &[u8]) -> io::Result<TempDir> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tar.gz");
        std::fs::write(&path, packed(bytes)).unwrap();
        unpacked_from(&path)
    }

    fn unpacked_from(path: &Path) -> io::Result<TempDir> {
        unpack(path, &std::env::temp_dir(), Room::WHOLE).map(|(there, _)| there)
    }

    /// A header of a regular file, or of another kind, whose name is this.
    fn header(name: &str, kind: u8, size: usize) -> [u8; BLOCK] {
        let mut header = [0; BLOCK];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
        header[156] = kind;
        let sum = sum(&header);
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        header
    }

    #[test]
    fn a_name_of_very_many_parts_is_refused_before_anything_is_made_of_it() {
        let deep = "d/".repeat(2000);
        let mut name = deep.clone().into_bytes();
        name.resize(4096, b'x');
        let whole = [&header("long", b'L', name.len())[..], &name, &header("f", b'0', 0), &[0; 2 * BLOCK]];
        let error = unpacked(&whole.concat()).unwrap_err();
        assert!(error.to_string().contains("deeper than bundles lie"), "{error}");
    }

    #[test]
    fn an_archive_of_headers_without_end_is_refused() {
        let one = header("d", b'5', 0);
        let whole = one.repeat(MOST_HEADERS + 1);
        assert!(unpacked(&whole).unwrap_err().to_string().contains("more entries"));
    }

    #[test]
    fn directories_count_with_the_files_that_are_in_them() {
        let mut whole = Vec::new();
        for number in 0..=MOST_ENTRIES / 9 {
            whole.extend(header(&format!("{number}/b/c/d/e/f/g/h/i"), b'0', 0));
        }
        whole.extend([0; 2 * BLOCK]);
        assert!(unpacked(&whole).unwrap_err().to_string().contains("more files"));
    }

    #[test]
    fn what_is_larger_than_there_is_room_for_is_told_from_what_is_wrong() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tar.gz");
        std::fs::write(&path, packed(&tar("gnu", &[("b/manifest.json", &[b' '; 3000])]))).unwrap();
        // A file, and the directory that it is in.
        for room in [Room { bytes: 2999, entries: 2 }, Room { bytes: 3000, entries: 1 }] {
            let error = unpack(&path, dir.path(), room).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing of it stays");
        }
        let room = Room { bytes: 3001, entries: 7 };
        assert_eq!(unpack(&path, dir.path(), room).unwrap().1, Room { bytes: 1, entries: 5 });
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
        let mut link = whole.clone();
        let at = whole.windows(15).position(|some| some == b"b/manifest.json").unwrap();
        link[at + 156 - 2] = b'2';
        // The name stands at the beginning of its header, behind `./`.
        let header = &mut link[at - 2..at - 2 + BLOCK];
        let sum = sum(header.try_into().as_ref().unwrap());
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        let there = unpacked(&link).unwrap();
        assert!(there.path().join("b/more").exists() && !there.path().join("b/manifest.json").exists());
    }

    #[test]
    fn no_name_leads_out_of_an_archive() {
        for name in ["../evil", "/etc/evil", "a/../../evil"] {
            let error = unpacked(&[&header(name, b'0', 0)[..], &[0; 2 * BLOCK]].concat()).unwrap_err();
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
