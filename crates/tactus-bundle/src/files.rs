//! The files of a bundle by their names, and their checksums.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};
use tactus_model::bundle::Manifest;
use tactus_system::{Directory, Kind, has_hole};

use super::{BundleError, limits};

/// Name of the file that lists the others.
pub const MANIFEST: &str = "manifest.json";
/// Name of the file with the plan as the user wrote it.
pub const SOURCE: &str = "source.toml";
/// Name of the file with the plan as the machine could do it.
pub const PLAN: &str = "plan.toml";
/// Name of the file with the events of a run.
pub const EVENTS: &str = "events.jsonl";
/// Name of the file with the last log lines of a run that broke.
pub const LOG: &str = "log.txt";
/// Name of the file with a signature of [`SUMS`].
pub const SIGNATURE: &str = "signature.sig";
/// Name of the file with the checksums that are signed.
pub const SUMS: &str = "SHA256SUMS";
/// How names of files begin that are made from the rest, and that no checksum holds.
const DERIVED: [&str; 2] = ["report.", "certificate."];
/// The directory with one of each row.
pub const SCENARIOS: &str = "scenarios";
/// The directories with one file of each environment.
pub const FACTS: &str = "facts";
/// The same of the audits.
pub const AUDIT: &str = "audit";
/// Name of the directory with the console output of environments.
pub const CONSOLES: &str = "console";

/// The text of a file that is no longer than `most`.
pub fn text(dir: &Directory, name: &str, most: u64) -> io::Result<String> {
    String::from_utf8(dir.read(name, most)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// How much is read to compare checksums.
pub struct Checked {
    left: u64,
    /// Of files with holes, which are as long as their maker likes and take no place. A console may have some where the
    /// file system makes holes of zeros.
    sparse: u64,
}

impl Default for Checked {
    fn default() -> Self {
        Self { left: limits::CHECKED, sparse: limits::SPARSE }
    }
}

/// SHA-256 of a file, in hex; `checked` may be read of it and of those that follow.
pub fn checksum(dir: &Directory, name: &Path, checked: &mut Checked) -> io::Result<String> {
    let file = dir.file(name)?;
    if has_hole(&file)? {
        let left = checked.sparse.checked_sub(file.metadata()?.len());
        let words = "it has holes, and is longer than a run can write";
        checked.sparse = left.ok_or_else(|| io::Error::new(io::ErrorKind::FileTooLarge, words))?;
    }
    let mut file = limits::Capped::new(file, limits::LOG.min(checked.left));
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        checked.left = checked.left.saturating_sub(u64::try_from(n).unwrap_or(u64::MAX));
        hash.update(&buffer[..n]);
    }
    Ok(hex(&hash.finalize()))
}

/// Bytes in hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Checksums of every file in `dir`, by path. It leaves out the manifest and its signature, reports and
/// certificates made from the rest, and files that were being written when the power failed.
pub fn checksums(dir: &Directory) -> Result<BTreeMap<String, String>, BundleError> {
    let mut sums = BTreeMap::new();
    let mut checked = Checked::default();
    for entry in dir.walk().map_err(BundleError::io(dir.path()))? {
        let name = entry.path.to_string_lossy().into_owned();
        let derived = [MANIFEST, SIGNATURE, SUMS].contains(&name.as_str())
            || DERIVED.iter().any(|beginning| name.starts_with(beginning))
            || is_hidden(&entry.path);
        if derived || entry.kind == Kind::Directory {
            continue;
        }
        let sum = checksum(dir, &entry.path, &mut checked)
            .map_err(BundleError::io(&dir.path().join(&entry.path)))?;
        sums.insert(name, sum);
    }
    Ok(sums)
}

/// A file that is being written, or was when the power failed: readers open no file of such a name.
fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// The first file of a finished bundle that lies where readers look, and that its manifest does not name: it was added
/// later, and no checksum covers it. The same holds for a directory in which the manifest names no file: a reader would take
/// it for a row.
pub fn added(dir: &Directory, manifest: &Manifest) -> Option<BundleError> {
    manifest.finished.as_ref()?;
    let refused = |path: &Path, reason: String| BundleError::Altered { path: dir.path().join(path), reason };
    let is_named = |path: &Path, kind: Kind| {
        let path = path.to_string_lossy();
        match kind {
            Kind::Directory => {
                let beneath = format!("{path}/");
                let mut from = manifest.files.range(beneath.clone()..);
                from.next().is_some_and(|(name, _)| name.starts_with(&beneath))
            }
            _ => manifest.files.contains_key(&*path),
        }
    };
    let unnamed = |path: &Path, kind: Kind| {
        let reason = match manifest.files.contains_key(&*path.to_string_lossy()) {
            true => "the manifest names a regular file here",
            false => "the manifest does not name it",
        };
        (!is_named(path, kind)).then(|| refused(path, reason.into()))
    };
    let alone = [SOURCE, PLAN, EVENTS, LOG].into_iter().filter(|name| dir.entry(name).is_ok());
    let alone = alone.filter_map(|name| unnamed(Path::new(name), Kind::File)).next();
    alone.or_else(|| {
        [SCENARIOS, FACTS, AUDIT, CONSOLES].into_iter().find_map(|sub| {
            match dir.beneath(sub).and_then(|own| own.walk()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => Some(refused(Path::new(sub), error.to_string())),
                Ok(all) => {
                    let shown = all.into_iter().filter(|entry| !is_hidden(&entry.path));
                    let (directories, files): (Vec<_>, Vec<_>) =
                        shown.partition(|entry| entry.kind == Kind::Directory);
                    let mut all = files.into_iter().chain(directories);
                    all.find_map(|entry| unnamed(&Path::new(sub).join(entry.path), entry.kind))
                }
            }
        })
    })
}

/// Refuses a directory in which written data could land elsewhere. It may contain only files of one name, and
/// directories into which no other user can put files.
pub fn only_ours(dir: &Directory) -> Result<(), BundleError> {
    let unsafe_to_write =
        |path: &Path, reason: String| BundleError::Unsafe { path: dir.path().join(path), reason };
    dir.is_private().map_err(|error| unsafe_to_write(Path::new(""), error.to_string()))?;
    for entry in dir.walk().map_err(BundleError::io(dir.path()))? {
        let reason = match entry.kind {
            Kind::File if entry.hard_linked => {
                Some("it is a hard link: the file has another name elsewhere".to_owned())
            }
            Kind::File | Kind::Directory => entry.is_private().err().map(|error| error.to_string()),
            Kind::Other(words) => Some(format!("it is {words}, but a run writes only files and directories")),
        };
        if let Some(reason) = reason {
            return Err(unsafe_to_write(&entry.path, reason));
        }
    }
    Ok(())
}
