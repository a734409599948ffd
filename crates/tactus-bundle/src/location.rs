//! Where a new bundle goes.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tactus_system::Directory;

use super::{BundleError, files};

/// How many names are tried for a directory that must be new.
const TRIES: u32 = 100;

/// A directory for a new bundle, which is made when the bundle is begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// This one. It is made; an existing one must be empty, and no other user may be able to put anything
    /// into it.
    Named(PathBuf),
    /// This one, or `NAME-2`, `NAME-3` and so on: the first that does not exist. Existing ones are left
    /// alone.
    Fresh(PathBuf),
}

impl<P: AsRef<Path>> From<P> for Location {
    fn from(path: P) -> Self {
        Self::Named(path.as_ref().to_owned())
    }
}

impl Location {
    /// Makes it and opens it.
    ///
    /// # Errors
    /// When something is there already, or others could put it there, or it cannot be made.
    pub(super) fn take(self) -> Result<Directory, BundleError> {
        match self {
            Self::Named(path) => named(&path),
            Self::Fresh(path) => fresh(path),
        }
    }
}

fn named(path: &Path) -> Result<Directory, BundleError> {
    match Directory::create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => return made.map_err(|error| BundleError::CannotMake { path: path.to_owned(), error }),
    }
    let dir = Directory::reach(path).map_err(BundleError::io(path))?;
    if !dir.names().map_err(BundleError::io(path))?.is_empty() {
        return Err(BundleError::Exists(path.to_owned()));
    }
    files::only_ours(&dir)?;
    Ok(dir)
}

fn fresh(first: PathBuf) -> Result<Directory, BundleError> {
    let numbered = |n| {
        let mut name = first.clone().into_os_string();
        name.push(format!("-{n}"));
        PathBuf::from(name)
    };
    for path in std::iter::once(first.clone()).chain((2..=TRIES).map(numbered)) {
        match Directory::create(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map_err(|error| BundleError::CannotMake { path, error }),
        }
    }
    Err(BundleError::Exists(first))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "what others plant is planted beside the door")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_others_planted_under_our_name_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("x")).unwrap();
        symlink(at("elsewhere"), at("x-2")).unwrap();
        fs::write(at("x-3"), "kept").unwrap();
        assert_eq!(Location::Fresh(at("x")).take().unwrap().path(), at("x-4"));
        assert!(!at("elsewhere").exists() && fs::read_dir(at("x")).unwrap().count() == 0);
        let none = Location::Fresh(at("x-3/below")).take().unwrap_err();
        assert!(none.hint().unwrap().contains("--out DIR"), "{none}");
    }
}
