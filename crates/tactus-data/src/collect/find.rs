//! The bundles in what was named: bundles, directories in which bundles lie, archives of bundles.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tactus_model::bundle::Manifest;
use tactus_system::{Directory, Kind};
use tempfile::TempDir;

use super::archive;

/// What a bundle's directory has.
const MANIFEST: &str = "manifest.json";
/// Deepest directory in which bundles are looked for: below it, what engines leave lies no deeper.
const DEEPEST: usize = 6;
/// What archives end with.
const ARCHIVES: [&str; 2] = [".tar.gz", ".tgz"];

/// A bundle that was found.
#[derive(Debug)]
pub struct Candidate {
    /// As it is called.
    pub path: PathBuf,
    /// Where it lies.
    pub at: PathBuf,
    /// What it says of itself; nothing of it is checked.
    pub manifest: Manifest,
    /// Held while it is needed, where it came out of an archive.
    pub unpacked: Option<Arc<TempDir>>,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// Bundles.
    pub candidates: Vec<Candidate>,
    /// What is none, and why.
    pub refused: Vec<(PathBuf, String)>,
}

/// Looks for bundles.
pub fn find(places: &[PathBuf]) -> Found {
    let mut found = Found::default();
    for place in places {
        if is_archive(place) {
            found.archive(place);
            continue;
        }
        let before = found.candidates.len() + found.refused.len();
        match Directory::open(place) {
            Ok(dir) => found.directory(&dir, place, 0),
            Err(error) => found.refused.push((place.clone(), error.to_string())),
        }
        if found.candidates.len() + found.refused.len() == before {
            found.refused.push((place.clone(), "it is no bundle, and has none in it".into()));
        }
    }
    found
}

fn is_archive(path: &Path) -> bool {
    path.to_str().is_some_and(|path| ARCHIVES.iter().any(|end| path.ends_with(end)))
}

impl Found {
    fn directory(&mut self, dir: &Directory, path: &Path, depth: usize) {
        if dir.entry(MANIFEST).is_ok() {
            return self.bundle(path.to_owned(), dir, None);
        }
        let names = match dir.names() {
            Ok(names) => names,
            Err(error) => return self.refused.push((path.to_owned(), error.to_string())),
        };
        for name in names {
            let own = path.join(&name);
            match dir.entry(&name).map(|entry| entry.kind) {
                // What is hidden is being written, or is somebody's own.
                Ok(Kind::Directory) if depth < DEEPEST && !name.as_encoded_bytes().starts_with(b".") => {
                    match dir.beneath(&name) {
                        Ok(inside) => self.directory(&inside, &own, depth + 1),
                        Err(error) => self.refused.push((own, error.to_string())),
                    }
                }
                Ok(Kind::File) if is_archive(&own) => self.archive(&own),
                _ => {}
            }
        }
    }

    fn bundle(&mut self, path: PathBuf, dir: &Directory, unpacked: Option<Arc<TempDir>>) {
        match tactus_bundle::manifest(dir) {
            Ok(manifest) => {
                self.candidates.push(Candidate { path, at: dir.path().to_owned(), manifest, unpacked });
            }
            Err(error) => self.refused.push((path, reason(&error))),
        }
    }

    /// The bundles of an archive; what was unpacked goes when they were read.
    fn archive(&mut self, path: &Path) {
        let unpacked = archive::unpack(path).and_then(|there| {
            let there = Arc::new(there);
            let mut inside = Self::default();
            let dir = Directory::open(there.path())?;
            inside.directory(&dir, there.path(), 0);
            for one in inside.candidates {
                self.candidates.push(Candidate {
                    path: path.to_owned(),
                    unpacked: Some(there.clone()),
                    ..one
                });
            }
            for (_, reason) in inside.refused {
                self.refused.push((path.to_owned(), reason));
            }
            Ok::<bool, io::Error>(dir.names()?.is_empty())
        });
        match unpacked {
            Ok(false) => {}
            Ok(true) => self.refused.push((path.to_owned(), "there is nothing in it".into())),
            Err(error) => self.refused.push((path.to_owned(), format!("it cannot be unpacked: {error}"))),
        }
    }
}

/// What is wrong with a bundle, without its path, which is said beside it.
pub fn reason(error: &tactus_bundle::BundleError) -> String {
    use tactus_bundle::BundleError;
    match error {
        BundleError::NotABundle { reason, .. } => format!("it is no bundle: {reason}"),
        BundleError::Altered { path, reason } => {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            format!("{name} is not the file that the run wrote: {reason}")
        }
        BundleError::OtherVersion { tactus, found, .. } => format!(
            "it was written by tactus {tactus} in format {}.{}, which this tactus does not read",
            found.major, found.minor
        ),
        other => other.to_string(),
    }
}
