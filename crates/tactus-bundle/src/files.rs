//! The files of a bundle: all that this crate touches, and what makes them whole or not there.
#![expect(clippy::disallowed_methods, reason = "a bundle's directory is its own door")]

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::BundleError;

/// Name of the file that lists the others.
pub const MANIFEST: &str = "manifest.json";

/// The bytes of a file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path)
}

/// The text of a file.
pub fn text(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

/// A file to be read bit by bit.
pub fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// A file to be added to, which is made if need be.
pub fn append(path: &Path) -> Result<File, BundleError> {
    OpenOptions::new().create(true).append(true).open(path).map_err(BundleError::io(path))
}

/// Whether there is something of this name.
pub fn exists(path: &Path) -> bool {
    path.exists()
}

/// What is in a directory.
pub fn list(dir: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect()
}

/// Makes a directory, with those above it.
pub fn make_dir(path: &Path) -> Result<(), BundleError> {
    fs::create_dir_all(path).map_err(BundleError::io(path))
}

/// Removes a file; what is not there is no error.
pub fn remove(path: &Path) -> Result<(), BundleError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(BundleError::io(path)(error)),
        _ => Ok(()),
    }
}

/// Replaces a file so that a reader sees the old or the new one, also after a power cut.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), BundleError> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let fresh = path.with_file_name(format!(".{name}.new"));
    let written = File::create(&fresh)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_data()
        })
        .and_then(|()| fs::rename(&fresh, path));
    if written.is_err() {
        // Half a file beside the old one would be litter; the old one stays.
        let _ = fs::remove_file(&fresh);
    }
    written.map_err(BundleError::io(path))
}

/// SHA-256 of a file, in hex.
pub fn checksum(path: &Path) -> io::Result<String> {
    let mut file = open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        hash.update(&buffer[..n]);
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Checksums of every file below `dir` but the manifest and reports drawn from the rest, by path.
pub fn checksums(dir: &Path) -> Result<BTreeMap<String, String>, BundleError> {
    let mut sums = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(current) = open.pop() {
        for entry in fs::read_dir(&current).map_err(BundleError::io(&current))? {
            let entry = entry.map_err(BundleError::io(&current))?;
            let path = entry.path();
            if entry.file_type().map_err(BundleError::io(&path))?.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.strip_prefix(dir).unwrap_or(&path).to_string_lossy().into_owned();
            let derived = name == MANIFEST || name.starts_with("report.") || name.starts_with('.');
            if !derived {
                sums.insert(name, checksum(&path).map_err(BundleError::io(&path))?);
            }
        }
    }
    Ok(sums)
}
