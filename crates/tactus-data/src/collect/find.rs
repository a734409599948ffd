//! The bundles in what was named: bundles, directories in which bundles lie, archives of bundles.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tactus_model::bundle::Manifest;
use tactus_system::{Directory, Kind};
use tempfile::TempDir;

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
    /// Archives, which are not opened yet.
    pub archives: Vec<PathBuf>,
    /// What is none, and why.
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
            found.refused.push((place.clone(), "it is no bundle, and has none in it".into()));
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

    fn directory(&mut self, dir: &Directory, path: &Path, depth: usize) {
        if dir.entry(MANIFEST).is_ok() {
            return self.bundle(path.to_owned(), dir);
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
                Ok(Kind::File) if is_archive(&own) => self.archives.push(own),
                _ => {}
            }
        }
    }

    fn bundle(&mut self, path: PathBuf, dir: &Directory) {
        match tactus_bundle::manifest(dir) {
            Ok(manifest) => {
                self.candidates.push(Candidate { path, at: dir.path().to_owned(), manifest, unpacked: None });
            }
            Err(error) => self.refused.push((path, reason(&error))),
        }
    }
}

/// The bundles of an archive that was unpacked there, which goes when they were read. An archive within it is none.
pub fn within(archive: &Path, there: TempDir) -> Found {
    let there = Arc::new(there);
    let mut inside = Found::default();
    match Directory::open(there.path()) {
        Ok(dir) => inside.directory(&dir, there.path(), 0),
        Err(error) => inside.refused.push((archive.to_owned(), error.to_string())),
    }
    let held = |one: Candidate| Candidate { path: archive.to_owned(), unpacked: Some(there.clone()), ..one };
    let candidates: Vec<Candidate> = inside.candidates.into_iter().map(held).collect();
    let mut refused: Vec<_> =
        inside.refused.into_iter().map(|(_, reason)| (archive.to_owned(), reason)).collect();
    if candidates.is_empty() && refused.is_empty() {
        let reason = match inside.archives.is_empty() {
            true => "there is no bundle in it",
            false => "there are archives in it, and no bundle: those are not opened",
        };
        refused.push((archive.to_owned(), reason.to_owned()));
    }
    Found { candidates, archives: Vec::new(), refused }
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
