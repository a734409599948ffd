//! Finds the bundles at the given paths: bundles, directories with bundles, archives of bundles.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tactus_bundle as bundle;
use tactus_system::{Directory, Kind};

use super::archive::Unpacked;
use super::claim::{Claim, MANIFEST};
use super::reason;

/// Deepest directory in which bundles are looked for: below it, what engines leave lies no deeper.
const DEEPEST: usize = 6;
/// Endings of archives.
const ARCHIVES: [&str; 2] = [".tar.gz", ".tgz"];
/// The file that marks the directory of a fleet, and the directory in it with the bundles that the fleet
/// took. Refused bundles, and those that have not arrived yet, lie beside that directory.
const FLEET: (&str, &str) = ("fleet.json", "bundles");

/// Where a bundle lies.
#[derive(Debug)]
pub enum At {
    /// At a given path, or beneath it.
    Named(PathBuf),
    /// In an unpacked archive, which is removed with the last of its bundles.
    Unpacked(Arc<Unpacked>, PathBuf),
}

impl At {
    /// Opens its directory.
    ///
    /// # Errors
    /// Why that cannot be, in a sentence.
    pub fn open(&self) -> Result<Directory, String> {
        match self {
            Self::Named(path) => bundle::open(path).map_err(|error| reason::of(&error)),
            Self::Unpacked(there, inside) => {
                let dir = there.open().and_then(|dir| dir.beneath(inside));
                dir.map_err(|error| error.to_string())
            }
        }
    }
}

/// A bundle that was found.
#[derive(Debug)]
pub struct Candidate {
    /// As it is called.
    pub path: PathBuf,
    /// Where it lies.
    pub at: At,
    /// Its claims about itself.
    pub claim: Claim,
}

/// The result of the search.
#[derive(Debug, Default)]
pub struct Found {
    /// Bundles.
    pub candidates: Vec<Candidate>,
    /// Archives, which are not opened yet.
    pub archives: Vec<PathBuf>,
    /// Places that are not bundles, and why.
    pub refused: Vec<(PathBuf, String)>,
}

/// Looks for bundles.
pub fn find(places: &[PathBuf]) -> Found {
    let mut found = Found::default();
    for place in places {
        if is_archive(place) {
            found.archives.push(place.clone());
            continue;
        }
        let before = found.count();
        match Directory::open(place) {
            Ok(dir) => found.directory(&dir, place, 0),
            Err(error) => found.refused.push((place.clone(), error.to_string())),
        }
        if found.count() == before {
            found.refused.push((place.clone(), "it is not a bundle, and contains none".into()));
        }
    }
    found
}

fn is_archive(path: &Path) -> bool {
    path.to_str().is_some_and(|path| ARCHIVES.iter().any(|end| path.ends_with(end)))
}

impl Found {
    fn count(&self) -> usize {
        self.candidates.len() + self.archives.len() + self.refused.len()
    }

    /// Searches a directory, which is called `path`.
    fn directory(&mut self, dir: &Directory, path: &Path, depth: usize) {
        if dir.entry(MANIFEST).is_ok() {
            return self.bundle(path.to_owned(), dir);
        }
        let names = match dir.names() {
            Ok(names) => names,
            Err(error) => return self.refused.push((path.to_owned(), error.to_string())),
        };
        let of_fleet = dir.entry(FLEET.0).is_ok_and(|entry| entry.kind == Kind::File);
        for name in names.into_iter().filter(|name| !of_fleet || name == FLEET.1) {
            let own = path.join(&name);
            match dir.entry(&name).map(|entry| entry.kind) {
                // A hidden directory is being written, or is private.
                Ok(Kind::Directory) if depth < DEEPEST && !name.as_encoded_bytes().starts_with(b".") => {
                    match dir.beneath(&name) {
                        Ok(inside) => self.directory(&inside, &own, depth + 1),
                        Err(error) => self.refused.push((own, error.to_string())),
                    }
                }
                Ok(Kind::File) if is_archive(&own) => self.archives.push(own),
                _ => {}
            }
        }
    }

    fn bundle(&mut self, path: PathBuf, dir: &Directory) {
        match Claim::read(dir) {
            Ok(claim) => self.candidates.push(Candidate { at: At::Named(path.clone()), path, claim }),
            Err(reason) => self.refused.push((path, reason)),
        }
    }
}

/// The bundles of an archive that was unpacked there; the directory is removed once they are read. An archive
/// within it is not unpacked.
pub fn within(archive: &Path, there: Unpacked) -> Found {
    within_open(archive, there).unwrap_or_else(|error| Found {
        refused: vec![(archive.to_owned(), error.to_string())],
        ..Found::default()
    })
}

fn within_open(archive: &Path, there: Unpacked) -> io::Result<Found> {
    let mut inside = Found::default();
    inside.directory(&there.open()?, Path::new(""), 0);
    let there = Arc::new(there);
    let held = |one: Candidate| Candidate {
        path: archive.to_owned(),
        at: At::Unpacked(there.clone(), one.path),
        claim: one.claim,
    };
    let candidates: Vec<Candidate> = inside.candidates.into_iter().map(held).collect();
    let mut refused: Vec<_> =
        inside.refused.into_iter().map(|(_, reason)| (archive.to_owned(), reason)).collect();
    if candidates.is_empty() && refused.is_empty() {
        let reason = match inside.archives.is_empty() {
            true => "it contains no bundle",
            false => "it contains archives, but no bundle: those archives are not opened",
        };
        refused.push((archive.to_owned(), reason.to_owned()));
    }
    Ok(Found { candidates, archives: Vec::new(), refused })
}
