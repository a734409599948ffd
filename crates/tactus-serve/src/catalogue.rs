//! The bundles of a directory, the newest first.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use tactus_model::bundle::Manifest;
use tactus_model::outcome::RunStatus;
use tactus_model::text::clean;
use tactus_report::units::shortened;
use tactus_system::{Directory, Entry, Kind};

use super::{lock, rest};

/// Most bundles of the directory that are looked at. Where there are more those of this user and of root go first.
pub const MOST: usize = 10_000;
/// Most files that are counted at one look, of all bundles whose size is not known yet.
const FILES: usize = 200_000;
/// Time without a write, in ns, after which a run that has not ended no longer counts as running.
const QUIET_NS: i128 = 60_000_000_000;
/// Most columns of a name that is shown.
const NAME: usize = 120;
/// Most columns of an answer, or of the reason for having none.
pub const SENTENCE: usize = 300;

/// The directory.
pub struct Catalogue {
    dir: Directory,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    seen: Option<(Instant, Duration, Arc<Listing>)>,
    found: HashMap<OsString, (Stamp, Found)>,
}

/// The contents of the directory.
#[derive(Debug, Default)]
pub struct Listing {
    /// The bundles, the newest first.
    pub bundles: Vec<Found>,
    /// Directories that may not be looked into.
    pub closed: usize,
    /// The number of bundles beyond the limit.
    pub more: usize,
}

/// When a bundle was written last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stamp {
    modified_ns: i128,
    bytes: u64,
}

/// A bundle.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its name in the directory.
    pub name: OsString,
    /// When it was written last.
    pub stamp: Stamp,
    /// Its state.
    pub stage: Stage,
    /// When it was begun.
    pub began: Option<Timestamp>,
    /// The name of its plan, clean.
    pub plan: String,
    /// Its machine, clean.
    pub machine: String,
    /// The size of all of its files, in bytes; `None` if they cannot be counted.
    pub bytes: Option<u64>,
}

/// The state of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It is written.
    Running,
    /// It has not ended, and nothing was written for a while: it may have died.
    Silent,
    /// It has ended.
    Ended(RunStatus),
    /// It cannot be read, in words.
    Unreadable(String),
}

impl Catalogue {
    pub fn of(dir: Directory) -> Self {
        Self { dir, known: Mutex::default() }
    }

    /// The bundles as they are now, or were a moment ago.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn listing(&self) -> io::Result<Arc<Listing>> {
        let mut known = lock(&self.known);
        if let Some((at, took, listing)) = &known.seen
            && at.elapsed() < rest(*took)
        {
            return Ok(Arc::clone(listing));
        }
        let began = Instant::now();
        let listing = Arc::new(self.look(&mut known.found)?);
        known.seen = Some((Instant::now(), began.elapsed(), Arc::clone(&listing)));
        Ok(listing)
    }

    /// The bundle of this name, if the directory lists one.
    pub fn find(&self, name: &OsStr) -> io::Result<Option<(Found, Directory)>> {
        let listing = self.listing()?;
        let Some(found) = listing.bundles.iter().find(|found| found.name == name) else { return Ok(None) };
        // A link that was put there since is not followed.
        match self.dir.beneath(&found.name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => Ok(Some((found.clone(), opened?))),
        }
    }

    fn look(&self, known: &mut HashMap<OsString, (Stamp, Found)>) -> io::Result<Listing> {
        let mut listing = Listing::default();
        let entries = self.dir.names()?.into_iter().filter_map(|name| self.dir.entry(name).ok());
        let mut entries: Vec<Entry> = entries.filter(|entry| entry.kind == Kind::Directory).collect();
        // Another user who may make directories here must not hide the user's behind them.
        entries.sort_by_key(|entry| !entry.is_ours());
        let (mut before, mut files) = (std::mem::take(known), FILES);
        for name in entries.into_iter().map(|entry| entry.path.into_os_string()) {
            let opened =
                self.dir.beneath(&name).and_then(|dir| dir.entry("manifest.json").map(|entry| (dir, entry)));
            let (dir, manifest) = match opened {
                Ok(opened) => opened,
                Err(error) => {
                    listing.closed += usize::from(error.kind() == io::ErrorKind::PermissionDenied);
                    continue;
                }
            };
            if listing.bundles.len() == MOST {
                listing.more += 1;
                continue;
            }
            let stamp = Stamp { modified_ns: manifest.modified_ns, bytes: manifest.bytes };
            // An ended bundle changes only with its manifest; in others, other files change.
            let as_before = before.remove(&name).filter(|(own, found)| *own == stamp && found.has_ended());
            let found = as_before
                .map_or_else(|| Found::of(name.clone(), stamp, &dir, &mut files), |(_, found)| found);
            known.insert(name, (stamp, found.clone()));
            listing.bundles.push(found);
        }
        listing.bundles.sort_by(|one, other| (other.began, &other.name).cmp(&(one.began, &one.name)));
        Ok(listing)
    }
}

impl Found {
    /// `left`: how many files may be counted yet.
    fn of(name: OsString, stamp: Stamp, dir: &Directory, left: &mut usize) -> Self {
        let short = |text: &str| shortened(&clean(text), NAME);
        let files = dir.walk_within(*left);
        // More than may be counted have been counted to there.
        *left -= files.as_ref().map_or(*left, Vec::len);
        let files = files.unwrap_or_default();
        let bytes = (!files.is_empty())
            .then(|| files.iter().filter(|file| file.kind == Kind::File).map(|file| file.bytes).sum());
        let newest = files.iter().map(|file| file.modified_ns).max().unwrap_or(stamp.modified_ns);
        let (stage, manifest) = match tactus_bundle::manifest(dir) {
            Ok(manifest) => (Stage::of(&manifest, newest), Some(manifest)),
            Err(error) => (Stage::Unreadable(shortened(&clean(&error.to_string()), SENTENCE)), None),
        };
        let stamp = match stage {
            Stage::Running | Stage::Silent => Stamp { modified_ns: newest, bytes: bytes.unwrap_or(0) },
            Stage::Ended(_) | Stage::Unreadable(_) => stamp,
        };
        let manifest = manifest.as_ref();
        Self {
            name,
            stamp,
            stage,
            began: manifest.and_then(|manifest| manifest.started.parse().ok()),
            plan: manifest.map(|manifest| short(&manifest.plan)).unwrap_or_default(),
            machine: manifest.map(|manifest| short(&manifest.machine.name)).unwrap_or_default(),
            bytes,
        }
    }

    /// Its name as it can be shown.
    pub fn shown(&self) -> String {
        shortened(&clean(&self.name.to_string_lossy()), NAME)
    }

    /// Its name, and that of its machine.
    pub fn whose(&self) -> String {
        match self.machine.as_str() {
            "" => self.shown(),
            machine => format!("{} on {machine}", self.shown()),
        }
    }

    /// Whether it stays as it is.
    pub const fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended(_))
    }
}

impl Stage {
    fn of(manifest: &Manifest, newest_ns: i128) -> Self {
        if manifest.finished.is_some() {
            return Self::Ended(manifest.status);
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_nanos());
        let quiet = i128::try_from(now).unwrap_or(i128::MAX).saturating_sub(newest_ns) > QUIET_NS;
        if quiet { Self::Silent } else { Self::Running }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests make the directories")]
mod tests {
    use std::fs;
    use std::os::unix::fs::chown;
    use std::path::Path;

    use super::*;

    fn make(dir: &Path, name: &str) {
        fs::create_dir(dir.join(name)).unwrap();
        fs::write(dir.join(name).join("manifest.json"), "{}").unwrap();
    }

    fn listed(dir: &Path) -> Listing {
        Catalogue::of(Directory::open(dir).unwrap()).look(&mut HashMap::new()).unwrap()
    }

    #[test]
    fn no_number_of_files_and_of_bundles_of_others_hides_ones_own() {
        let dir = tempfile::tempdir().unwrap();
        make(dir.path(), "own");
        for n in 0..=MOST {
            fs::write(dir.path().join(format!("a{n}")), "").unwrap();
        }
        let names =
            |listing: &Listing| listing.bundles.iter().map(|own| own.name.clone()).collect::<Vec<_>>();
        let listing = listed(dir.path());
        assert_eq!((names(&listing), listing.more), (vec![OsString::from("own")], 0));
        for n in 0..MOST {
            make(dir.path(), &format!("b{n}"));
            // Root alone can give a directory away.
            if chown(dir.path().join(format!("b{n}")), Some(65_534), None).is_err() {
                return;
            }
        }
        let listing = listed(dir.path());
        assert_eq!((listing.bundles.len(), listing.more), (MOST, 1));
        assert!(names(&listing).contains(&"own".into()));
    }

    #[test]
    fn the_files_of_a_bundle_are_counted_as_long_as_there_are_few_of_all_bundles_together() {
        let dir = tempfile::tempdir().unwrap();
        make(dir.path(), "own");
        for n in 0..5 {
            fs::write(dir.path().join("own").join(format!("file{n}")), "12").unwrap();
        }
        let own = Directory::open(&dir.path().join("own")).unwrap();
        let mut left = 8;
        let mut counted = || {
            let found = Found::of("own".into(), Stamp::default(), &own, &mut left);
            (found.bytes, left)
        };
        assert_eq!(counted(), (Some(12), 2));
        assert_eq!(counted(), (None, 0), "a stranger's many files keep nobody waiting for the list");
        assert_eq!(counted(), (None, 0));
    }
}
