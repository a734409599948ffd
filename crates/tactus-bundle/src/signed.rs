//! The list of checksums that a signature of a bundle covers, as `sha256sum -c` reads it. It names the
//! manifest, which has the checksum of every file of the bundle, and the certificates beside it.

use std::path::Path;

use tactus_model::text::clean;
use tactus_system::{Directory, Kind};

use super::files::{self, MANIFEST, SIGNATURE, SUMS};
use super::{BundleError, Sealed};

/// The files that are signed beside the manifest, if they exist: `report --certificate` writes them. A
/// stranger's bundle may have other files beside them, which the signer has not looked at.
pub const CERTIFICATES: [&str; 2] = ["certificate.html", "certificate.pdf"];
/// Most files that are named as not signed.
const NAMED: usize = 8;

/// The files that a list covers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    /// The certificates that are as they were signed.
    pub certificates: Vec<String>,
    /// Files in the directory of the bundle that no checksum holds; after some of them how many more.
    pub unsigned: Vec<String>,
}

/// The list of a bundle as it is now: a line for each file, `CHECKSUM  NAME`.
///
/// # Errors
/// When a file cannot be read.
pub fn sums(dir: &Directory, sealed: &Sealed) -> Result<String, BundleError> {
    let mut list = line(&sealed.sha256, MANIFEST);
    let mut checked = files::Checked::default();
    for name in beside(dir)? {
        let sum = files::checksum(dir, Path::new(name), &mut checked)
            .map_err(BundleError::io(&dir.path().join(name)))?;
        list += &line(&sum, name);
    }
    Ok(list)
}

/// Checks that every file of a list is as the list says.
///
/// # Errors
/// When one is not, the list is of another bundle, or the directory cannot be read.
pub fn covered(dir: &Directory, sealed: &Sealed, list: &str) -> Result<Covered, BundleError> {
    let altered = |name: &str, reason: &str| BundleError::Altered {
        path: dir.path().join(clean(name)),
        reason: reason.to_owned(),
    };
    let mut lines = list.lines();
    if lines.next().map(|first| format!("{first}\n")) != Some(line(&sealed.sha256, MANIFEST)) {
        return Err(altered(MANIFEST, "its checksum differs from the signed one"));
    }
    let mut covered = Covered::default();
    let mut checked = files::Checked::default();
    for own in lines {
        let named = own.split_once("  ").filter(|(_, name)| CERTIFICATES.contains(name));
        let Some((sum, name)) = named.filter(|_| covered.certificates.len() < CERTIFICATES.len()) else {
            return Err(altered(SUMS, "it is not the list of a bundle"));
        };
        match files::checksum(dir, Path::new(name), &mut checked) {
            Ok(found) if found == sum => covered.certificates.push(name.to_owned()),
            Ok(_) => return Err(altered(name, "its checksum differs from the signed one")),
            Err(error) => return Err(altered(name, &error.to_string())),
        }
    }
    covered.unsigned = unsigned(dir, sealed, &covered.certificates)?;
    Ok(covered)
}

fn line(sum: &str, name: &str) -> String {
    format!("{sum}  {name}\n")
}

/// The certificates that lie beside the manifest.
///
/// # Errors
/// When the directory cannot be read.
pub fn beside(dir: &Directory) -> Result<Vec<&'static str>, BundleError> {
    let all = dir.names().map_err(BundleError::io(dir.path()))?;
    let mut names = Vec::new();
    for name in CERTIFICATES.into_iter().filter(|name| all.iter().any(|own| own == name)) {
        let entry = dir.entry(name).map_err(BundleError::io(&dir.path().join(name)))?;
        names.extend((entry.kind == Kind::File).then_some(name));
    }
    Ok(names)
}

fn unsigned(dir: &Directory, sealed: &Sealed, certificates: &[String]) -> Result<Vec<String>, BundleError> {
    let mut all: Vec<String> = dir
        .walk()
        .map_err(BundleError::io(dir.path()))?
        .into_iter()
        .filter(|entry| entry.kind != Kind::Directory)
        .map(|entry| entry.path.to_string_lossy().into_owned())
        .filter(|name| ![MANIFEST, SIGNATURE, SUMS].contains(&name.as_str()))
        .filter(|name| !sealed.manifest.files.contains_key(name) && !certificates.contains(name))
        .map(|name| clean(&name))
        .collect();
    all.sort();
    if let Some(more) = all.len().checked_sub(NAMED).filter(|more| *more > 0) {
        all.truncate(NAMED);
        all.push(format!("{more} more"));
    }
    Ok(all)
}
