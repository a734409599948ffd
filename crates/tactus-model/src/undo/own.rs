//! Checks files and directories that only root or this user can have made or can change. Only those are trusted to name
//! undos or to carry them out.

use std::io;
use std::path::Path;

/// Checks that only root or this user can have made or can exchange the file at a path without links.
///
/// # Errors
/// Those of `look`; `PermissionDenied` if another user could have put it there, or can change it.
pub fn is_believed(real: &Path, user: u32, look: impl Fn(&Path) -> io::Result<Owned>) -> io::Result<()> {
    let refused = |path: &Path, why: String| {
        let words = format!("{} is not trusted: {}: {why}", real.display(), path.display());
        io::Error::new(io::ErrorKind::PermissionDenied, words)
    };
    if look(real)?.mode & (BY_GROUP | BY_OTHERS) != 0 {
        return Err(refused(real, "others may write to it".into()));
    }
    real.ancestors().try_for_each(|step| look(step)?.keeps_names(user).map_err(|why| refused(step, why)))
}

/// The fields of fstat(2) for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owned {
    /// Its owner.
    pub user: u32,
    /// Its mode, type included.
    pub mode: u32,
    /// Its names.
    pub links: u64,
}

const TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const STICKY: u32 = 0o1000;
const BY_GROUP: u32 = 0o020;
const BY_OTHERS: u32 = 0o002;

impl Owned {
    /// Whether a file is this user's alone.
    ///
    /// # Errors
    /// Why it is not.
    pub fn is_own_file(self, user: u32) -> Result<(), String> {
        if self.mode & TYPE != REGULAR {
            return Err("it is not a regular file".into());
        }
        if self.links != 1 {
            return Err(format!("it has {} names", self.links));
        }
        self.is_own(user)
    }

    /// Whether a directory is this user's alone.
    ///
    /// # Errors
    /// Why it is not.
    pub fn is_own_directory(self, user: u32) -> Result<(), String> {
        if self.mode & TYPE != DIRECTORY {
            return Err("it is not a directory".into());
        }
        self.is_own(user)
    }

    /// Whether what lies in this directory under its name stays there: only root and this user could put something
    /// else in its place.
    ///
    /// # Errors
    /// Why it does not.
    pub fn keeps_names(self, user: u32) -> Result<(), String> {
        if self.user != 0 && self.user != user {
            return Err(format!("it belongs to user {}", self.user));
        }
        let changed = self.mode & TYPE == DIRECTORY && self.mode & BY_OTHERS != 0 && self.mode & STICKY == 0;
        if changed { Err("everybody may write to it".into()) } else { Ok(()) }
    }

    fn is_own(self, user: u32) -> Result<(), String> {
        if self.user != user {
            return Err(format!("it belongs to user {}", self.user));
        }
        if self.mode & (BY_GROUP | BY_OTHERS) != 0 {
            return Err(format!("others may write to it (mode {:o})", self.mode & 0o7777));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: Owned = Owned { user: 7, mode: 0o100_600, links: 1 };
    const DIR: Owned = Owned { user: 7, mode: 0o040_700, links: 2 };

    #[test]
    fn only_what_this_user_alone_can_write_is_believed() {
        assert_eq!((FILE.is_own_file(7), DIR.is_own_directory(7)), (Ok(()), Ok(())));
        for forged in [
            Owned { user: 8, ..FILE },
            Owned { user: 0, ..FILE },
            Owned { links: 2, ..FILE },
            Owned { mode: 0o100_620, ..FILE },
            Owned { mode: 0o100_602, ..FILE },
            Owned { mode: 0o120_777, ..FILE },
            Owned { mode: 0o010_600, ..FILE },
            DIR,
        ] {
            assert!(forged.is_own_file(7).is_err(), "{forged:?}");
        }
        for forged in [
            Owned { user: 8, ..DIR },
            Owned { mode: 0o040_770, ..DIR },
            Owned { mode: 0o041_777, ..DIR },
            FILE,
        ] {
            assert!(forged.is_own_directory(7).is_err(), "{forged:?}");
        }
    }

    #[test]
    fn a_program_that_somebody_else_could_exchange_is_not_believed() {
        let of = |file: Owned, dir: Owned| {
            let look = |path: &Path| match path.to_str() {
                Some("/opt/jailhouse") => Ok(file),
                Some("/opt") => Ok(dir),
                Some("/") => Ok(Owned { user: 0, mode: 0o040_755, links: 2 }),
                _ => Err(io::ErrorKind::NotFound.into()),
            };
            is_believed(Path::new("/opt/jailhouse"), 7, look).map_err(|error| error.kind())
        };
        let (file, dir) =
            (Owned { user: 0, mode: 0o100_755, links: 1 }, Owned { user: 7, mode: 0o040_755, links: 2 });
        assert_eq!(of(file, dir), Ok(()));
        for (file, dir) in [
            (Owned { user: 8, ..file }, dir),
            (Owned { mode: 0o100_775, ..file }, dir),
            (file, Owned { user: 8, ..dir }),
            (file, Owned { mode: 0o040_777, ..dir }),
        ] {
            assert_eq!(of(file, dir), Err(io::ErrorKind::PermissionDenied));
        }
    }

    #[test]
    fn the_way_to_it_leads_only_through_what_root_and_this_user_have_made() {
        let way = |user, mode| Owned { user, mode, links: 2 }.keeps_names(7);
        assert_eq!((way(0, 0o040_755), way(7, 0o040_775), way(0, 0o041_777)), (Ok(()), Ok(()), Ok(())));
        assert_eq!(way(0, 0o120_777), Ok(()), "a link of root's");
        assert!(way(8, 0o040_700).is_err() && way(8, 0o120_777).is_err() && way(0, 0o040_777).is_err());
    }
}
