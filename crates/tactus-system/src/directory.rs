//! Files beneath an open directory whose contents another user may have made: a downloaded bundle, a directory that
//! others can write to.
//!
//! No name given here leads out of the directory, even if another process renames or exchanges files in it meanwhile. A
//! name is walked part by part from the open directory. `..` and links in any part (`O_NOFOLLOW`) are refused.
//! openat2(2) does the same with its flags `RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS`. This module also works on kernels
//! before 5.6 and in sandboxes. Only regular files are opened. They are checked before, so that no device is opened at
//! all, and again after. With `O_NONBLOCK` a FIFO cannot block the opening. A file to write to must have only one name,
//! so that it is not also a file elsewhere.
#![expect(clippy::disallowed_methods, reason = "a part of the door")]

use std::collections::hash_map::RandomState;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::capped::at_most;
use super::own::{is_mine, is_ours};
use super::reach::reach;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

/// Most entries of one directory that are listed.
const MOST_ENTRIES: usize = 1 << 18;
/// Deepest directory that a walk goes into.
const DEEPEST: usize = 16;
/// How often another name is tried for a file that must be new.
const TRIES: u32 = 16;

/// An open directory.
#[derive(Clone, Debug)]
pub struct Directory {
    fd: Arc<OwnedFd>,
    path: PathBuf,
}

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Anything else, in words.
    Other(&'static str),
}

/// Something beneath a directory.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its path from the directory on.
    pub path: PathBuf,
    /// Its kind.
    pub kind: Kind,
    /// Its size, in bytes.
    pub bytes: u64,
    /// When it was written last, in ns since the epoch.
    pub modified_ns: i128,
    /// Whether it has further names.
    pub hard_linked: bool,
    /// The user who owns it.
    owner: u32,
    mode: u32,
}

impl Directory {
    /// Opens the directory that the user named. Links on the way to it are the user's own.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn open(path: &Path) -> io::Result<Self> {
        let named = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let fd = rustix::fs::open(named, directory(), Mode::empty())?;
        Ok(Self { fd: Arc::new(fd), path: path.to_owned() })
    }

    /// Opens the directory that the user named to write into. No link of another user's leads there.
    ///
    /// # Errors
    /// Those of open(2), and `PermissionDenied` where such a link is on the way.
    pub fn reach(path: &Path) -> io::Result<Self> {
        Ok(Self { fd: Arc::new(reach(path, false)?), path: path.to_owned() })
    }

    /// Makes a directory and opens it; missing parents are made. An existing file, directory or link of this name is an
    /// error.
    ///
    /// # Errors
    /// `AlreadyExists`, those of mkdir(2), and those of [`Directory::reach`] for the path. Those of
    /// [`Directory::is_private`] if another user has put a directory in its place meanwhile.
    pub fn create(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::AlreadyExists)?;
        let above = path.parent().unwrap_or(Path::new(""));
        let above = Self { fd: Arc::new(reach(above, true)?), path: above.to_owned() };
        rustix::fs::mkdirat(&above.fd, name, Mode::from_raw_mode(0o755))?;
        above.just_made(name, path)
    }

    /// Opens the directory just made under this name. The owner of this directory may have put another in its place.
    fn just_made(&self, name: &OsStr, path: &Path) -> io::Result<Self> {
        let fd = rustix::fs::openat(&self.fd, name, directory() | OFlags::NOFOLLOW, Mode::empty())?;
        let made = Self { fd: Arc::new(fd), path: path.to_owned() };
        made.is_private()?;
        if made.names()?.is_empty() { Ok(made) } else { Err(io::ErrorKind::AlreadyExists.into()) }
    }

    /// The path where it was found.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its device and inode, by which it is known whatever the way there is.
    ///
    /// # Errors
    /// Those of fstat(2).
    pub fn identity(&self) -> io::Result<(u64, u64)> {
        let found = rustix::fs::fstat(&*self.fd)?;
        Ok((found.st_dev, found.st_ino))
    }

    /// A directory beneath it.
    ///
    /// # Errors
    /// When it does not exist, or a part of its path is not a directory.
    pub fn beneath(&self, name: impl AsRef<Path>) -> io::Result<Self> {
        let mut found = self.clone();
        for part in parts(name.as_ref())? {
            found = found.enter(part)?;
        }
        Ok(found)
    }

    /// The entry of this name; links are not followed.
    ///
    /// # Errors
    /// `NotFound`, and those of stat(2).
    pub fn entry(&self, name: impl AsRef<Path>) -> io::Result<Entry> {
        let (above, last) = self.above(name.as_ref())?;
        above.look(last).map(|stat| Entry::of(name.as_ref().to_owned(), &stat))
    }

    /// Opens a regular file to read it.
    ///
    /// # Errors
    /// When it does not exist, is not a regular file, or cannot be read.
    pub fn file(&self, name: impl AsRef<Path>) -> io::Result<File> {
        let (above, last) = self.above(name.as_ref())?;
        regular(&above.look(last)?)?;
        let file = above.openat(last, OFlags::RDONLY, Mode::empty())?;
        regular(&rustix::fs::fstat(&file)?)?;
        Ok(file)
    }

    /// The bytes of a regular file of at most `most` bytes.
    ///
    /// # Errors
    /// When it does not exist, is longer, or cannot be read.
    pub fn read(&self, name: impl AsRef<Path>, most: u64) -> io::Result<Vec<u8>> {
        at_most(self.file(name)?, most)
    }

    /// The same, of a file that only this user can write to or read (see [`Entry::is_secret`]).
    ///
    /// # Errors
    /// Those of [`Directory::read`], and of [`Entry::is_secret`] for the opened file.
    pub fn read_secret(&self, name: impl AsRef<Path>, most: u64) -> io::Result<Vec<u8>> {
        let file = self.file(name.as_ref())?;
        Entry::of(name.as_ref().to_owned(), &rustix::fs::fstat(&file)?).is_secret()?;
        at_most(file, most)
    }

    /// Opens a regular file to add to it, making it if need be.
    ///
    /// # Errors
    /// When there is something else, or a file with a second name, or it cannot be written.
    pub fn append(&self, name: impl AsRef<Path>) -> io::Result<File> {
        self.made(name.as_ref(), OFlags::WRONLY | OFlags::APPEND)
    }

    /// The same, of a file that only this user can write to. The file can also be read.
    ///
    /// # Errors
    /// Those of [`Directory::append`], and of [`Entry::is_private`] for the opened file.
    pub fn append_private(&self, name: impl AsRef<Path>) -> io::Result<File> {
        let file = self.made(name.as_ref(), OFlags::RDWR | OFlags::APPEND)?;
        Entry::of(name.as_ref().to_owned(), &rustix::fs::fstat(&file)?).is_private()?;
        Ok(file)
    }

    /// Makes a file to append to and to read, under a hidden, unpredictable name with this beginning. Also returns the
    /// name.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn append_new(&self, beginning: &str) -> io::Result<(File, OsString)> {
        self.fresh(OsStr::new(beginning), OFlags::APPEND, Mode::from_raw_mode(0o644))
    }

    /// Opens a regular file to replace its contents and to read them back; makes it if needed.
    ///
    /// # Errors
    /// Those of [`Directory::append`].
    pub fn anew(&self, name: impl AsRef<Path>) -> io::Result<File> {
        let file = self.made(name.as_ref(), OFlags::RDWR)?;
        file.set_len(0)?;
        Ok(file)
    }

    /// Replaces a file in one step: a reader sees the old or the new one, also after a power cut. The new file is
    /// written under an unpredictable name, then renamed. The old one must be a regular file.
    ///
    /// # Errors
    /// When the name belongs to another kind of file, or the file cannot be written. The old file then stays.
    pub fn replace(&self, name: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
        self.install(name, bytes, 0o644)
    }

    /// The same, of a file with these permissions as chmod(2) has them, as far as the user's mask allows.
    ///
    /// # Errors
    /// As [`Directory::replace`].
    pub fn install(&self, name: impl AsRef<Path>, bytes: &[u8], mode: u32) -> io::Result<()> {
        self.install_with(name, mode, |file| file.write_all(bytes))
    }

    /// The same with these permissions whatever the user's mask is: for others.
    ///
    /// # Errors
    /// As [`Directory::replace`].
    pub fn install_for_others(&self, name: impl AsRef<Path>, bytes: &[u8], mode: u32) -> io::Result<()> {
        self.install_with(name, mode, |file| {
            file.write_all(bytes)?;
            Ok(rustix::fs::fchmod(&*file, Mode::from_raw_mode(mode))?)
        })
    }

    /// The same, of a file of any length, which is written as it comes.
    ///
    /// # Errors
    /// As [`Directory::replace`], and those of `write`.
    pub fn install_with<E: From<io::Error>>(
        &self,
        name: impl AsRef<Path>,
        mode: u32,
        write: impl FnOnce(&mut File) -> Result<(), E>,
    ) -> Result<(), E> {
        let (above, last) = self.above(name.as_ref())?;
        match above.look(last) {
            Ok(stat) => regular(&stat)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        let (mut file, fresh) = above.fresh(last, OFlags::empty(), Mode::from_raw_mode(mode))?;
        let placed = |file: &File| {
            file.sync_data()?;
            io::Result::Ok(rustix::fs::renameat(&above.fd, &fresh, &above.fd, last)?)
        };
        let written = write(&mut file).and_then(|()| Ok(placed(&file)?));
        if written.is_err() {
            // A partly written file must not stay beside the old one.
            let _ = rustix::fs::unlinkat(&above.fd, &fresh, AtFlags::empty());
        }
        written
    }

    /// Removes the temporary files that a killed process left. The caller must be the only writer in this directory.
    ///
    /// # Errors
    /// When the directory cannot be read, or one of them cannot be removed.
    pub fn remove_unfinished(&self) -> io::Result<()> {
        for name in self.names()?.into_iter().filter(|name| is_fresh(name.as_bytes())) {
            rustix::fs::unlinkat(&self.fd, &name, AtFlags::empty())?;
        }
        Ok(())
    }

    /// Makes a directory beneath it, unless there is one.
    ///
    /// # Errors
    /// When there is something else of this name, or it cannot be made.
    pub fn make_dir(&self, name: impl AsRef<Path>) -> io::Result<()> {
        let (above, last) = self.above(name.as_ref())?;
        match rustix::fs::mkdirat(&above.fd, last, Mode::from_raw_mode(0o755)) {
            Err(Errno::EXIST) => above.enter(last).map(drop),
            done => Ok(done?),
        }
    }

    /// Renames a file to a free name beneath this directory. A link is renamed itself, and links in the path are
    /// refused.
    ///
    /// # Errors
    /// Those of renameat2(2): `AlreadyExists`, and `InvalidInput` on a file system without `RENAME_NOREPLACE`.
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        let ((from, old), (to, new)) = (self.above(from.as_ref())?, self.above(to.as_ref())?);
        Ok(rustix::fs::renameat_with(&from.fd, old, &to.fd, new, RenameFlags::NOREPLACE)?)
    }

    /// Removes a file, or a link itself. A missing file is not an error.
    ///
    /// # Errors
    /// Those of unlink(2).
    pub fn remove(&self, name: impl AsRef<Path>) -> io::Result<()> {
        let (above, last) = match self.above(name.as_ref()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found?,
        };
        match rustix::fs::unlinkat(&above.fd, last, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a directory and everything beneath it. A missing directory is not an error.
    ///
    /// # Errors
    /// When it has more entries, or lies deeper, than [`Self::walk`] goes, or something cannot be removed.
    pub fn remove_tree(&self, name: impl AsRef<Path>) -> io::Result<()> {
        let inside = match self.beneath(name.as_ref()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            inside => inside?,
        };
        // The contents of a directory are removed before it.
        for entry in inside.walk()?.iter().rev() {
            match entry.kind {
                Kind::Directory => inside.remove_empty(&entry.path)?,
                _ => inside.remove(&entry.path)?,
            }
        }
        self.remove_empty(name.as_ref())
    }

    fn remove_empty(&self, name: &Path) -> io::Result<()> {
        let (above, last) = self.above(name)?;
        Ok(rustix::fs::unlinkat(&above.fd, last, AtFlags::REMOVEDIR)?)
    }

    /// The names in it, sorted.
    ///
    /// # Errors
    /// When it cannot be read, or has more entries than anybody needs.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&*self.fd)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            if names.len() == MOST_ENTRIES {
                return Err(io::Error::other(format!("more than {MOST_ENTRIES} entries")));
            }
            names.push(OsString::from_vec(name.to_vec()));
        }
        names.sort();
        Ok(names)
    }

    /// All entries beneath it; a directory comes before its contents.
    ///
    /// # Errors
    /// When an entry cannot be read, or directories are nested too deeply.
    pub fn walk(&self) -> io::Result<Vec<Entry>> {
        self.walk_within(MOST_ENTRIES)
    }

    /// The same, up to `most` entries.
    ///
    /// # Errors
    /// Those of [`Directory::walk`], and when there are more entries.
    pub fn walk_within(&self, most: usize) -> io::Result<Vec<Entry>> {
        let (mut found, mut open) = (Vec::new(), vec![(self.clone(), PathBuf::new())]);
        while let Some((dir, at)) = open.pop() {
            for name in dir.names()? {
                let entry = Entry::of(at.join(&name), &dir.look(&name)?);
                if entry.kind == Kind::Directory {
                    if entry.path.components().count() > DEEPEST {
                        return Err(io::Error::other(format!(
                            "{} is nested too deeply",
                            entry.path.display()
                        )));
                    }
                    open.push((dir.enter(&name)?, entry.path.clone()));
                }
                if found.len() >= most {
                    return Err(io::Error::other(format!("more than {most} entries")));
                }
                found.push(entry);
            }
        }
        Ok(found)
    }

    /// Whether only this user can put files into it. It must belong to this user, or for root also to the user who
    /// called sudo, and its mode must not let others write.
    ///
    /// # Errors
    /// When it has another owner, or others may write to it; the error says which.
    pub fn is_private(&self) -> io::Result<()> {
        Entry::of(PathBuf::new(), &rustix::fs::fstat(&*self.fd)?).is_private()
    }

    /// Whether it belongs to this user or root: its contents may then be trusted like the user's files.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        rustix::fs::fstat(&*self.fd).is_ok_and(|stat| is_ours(stat.st_uid))
    }

    fn look(&self, name: &OsStr) -> io::Result<Stat> {
        Ok(rustix::fs::statat(&*self.fd, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    fn enter(&self, name: &OsStr) -> io::Result<Self> {
        match kind(&self.look(name)?) {
            Kind::Directory => {}
            other => return Err(instead(other, "a directory")),
        }
        let fd = rustix::fs::openat(&*self.fd, name, directory() | OFlags::NOFOLLOW, Mode::empty())?;
        Ok(Self { fd: Arc::new(fd), path: self.path.join(name) })
    }

    /// A file of one name, made if need be.
    fn made(&self, name: &Path, flags: OFlags) -> io::Result<File> {
        let (above, last) = self.above(name)?;
        match above.look(last) {
            Ok(stat) => ours_alone(&stat)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let file = above.openat(last, flags | OFlags::CREATE, Mode::from_raw_mode(0o644))?;
        ours_alone(&rustix::fs::fstat(&file)?)?;
        Ok(file)
    }

    /// The directory that a name lies in, and its last part.
    fn above<'a>(&self, name: &'a Path) -> io::Result<(Self, &'a OsStr)> {
        let mut parts = parts(name)?;
        let last = parts.pop().ok_or(io::ErrorKind::InvalidInput)?;
        let mut above = self.clone();
        for part in parts {
            above = above.enter(part)?;
        }
        Ok((above, last))
    }

    fn openat(&self, name: &OsStr, flags: OFlags, mode: Mode) -> io::Result<File> {
        let careful = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&*self.fd, name, flags | careful, mode)?.into())
    }

    /// A new file beside `name`.
    fn fresh(&self, name: &OsStr, further: OFlags, mode: Mode) -> io::Result<(File, OsString)> {
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..TRIES {
            // Its keys are from the system's random numbers.
            let random = RandomState::new().build_hasher().finish();
            let beginning = &name.as_bytes()[..name.len().min(100)];
            let fresh = [b".", beginning, format!(".{random:016x}.new").as_bytes()].concat();
            let fresh = OsString::from_vec(fresh);
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
            match self.openat(&fresh, flags | further, mode) {
                Ok(file) => return Ok((file, fresh)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }
}

/// Whether [`Directory::fresh`] makes files of this name: `.NAME.0123456789abcdef.new`.
fn is_fresh(name: &[u8]) -> bool {
    let random = name.strip_prefix(b".").and_then(|rest| rest.strip_suffix(b".new"));
    let random = random
        .and_then(|rest| rest.rsplit(|byte| *byte == b'.').next().filter(|last| last.len() < rest.len()));
    random.is_some_and(|random| random.len() == 16 && random.iter().all(u8::is_ascii_hexdigit))
}

impl Entry {
    fn of(path: PathBuf, stat: &Stat) -> Self {
        Self {
            path,
            kind: kind(stat),
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            modified_ns: i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec),
            hard_linked: stat.st_nlink > 1,
            owner: stat.st_uid,
            mode: stat.st_mode,
        }
    }

    /// Whether only this user can write to it (see [`Directory::is_private`]).
    ///
    /// # Errors
    /// When it has another owner, or others may write to it; the error says which.
    pub fn is_private(&self) -> io::Result<()> {
        if !is_mine(self.owner) {
            return Err(denied(format!("it belongs to another user (uid {})", self.owner)));
        }
        if self.mode & 0o022 != 0 {
            return Err(denied(format!("others may write to it (mode {:03o})", self.mode & 0o777)));
        }
        Ok(())
    }

    /// Whether it belongs to this user or root (see [`Directory::is_ours`]).
    #[must_use]
    pub fn is_ours(&self) -> bool {
        is_ours(self.owner)
    }

    /// Whether only this user can write to it and read it.
    ///
    /// # Errors
    /// Those of [`Entry::is_private`], and when others may read it.
    pub fn is_secret(&self) -> io::Result<()> {
        self.is_private()?;
        if self.mode & 0o044 != 0 {
            return Err(denied(format!("others may read it (mode {:03o})", self.mode & 0o777)));
        }
        Ok(())
    }
}

fn denied(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}

fn directory() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC
}

/// The parts of a name. A part that leads elsewhere, such as `..`, is an error.
fn parts(name: &Path) -> io::Result<Vec<&OsStr>> {
    let part = |part| match part {
        Component::Normal(part) => Ok(part),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "the name leads out of its directory")),
    };
    name.components().map(part).collect()
}

fn kind(stat: &Stat) -> Kind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Other("a symbolic link"),
        FileType::Fifo => Kind::Other("a FIFO"),
        FileType::Socket => Kind::Other("a socket"),
        FileType::CharacterDevice | FileType::BlockDevice => Kind::Other("a device"),
        FileType::Unknown => Kind::Other("of an unknown kind"),
    }
}

fn regular(stat: &Stat) -> io::Result<()> {
    match kind(stat) {
        Kind::File => Ok(()),
        other => Err(instead(other, "a regular file")),
    }
}

/// A file to write to must have only one name.
fn ours_alone(stat: &Stat) -> io::Result<()> {
    regular(stat)?;
    if stat.st_nlink > 1 {
        return Err(io::Error::other("it is a hard link: the file has another name elsewhere"));
    }
    Ok(())
}

fn instead(found: Kind, wanted: &str) -> io::Error {
    let found = match found {
        Kind::File => "a regular file",
        Kind::Directory => "a directory",
        Kind::Other(words) => words,
    };
    io::Error::other(format!("it is {found}, where {wanted} should be"))
}

#[cfg(test)]
mod tests;
