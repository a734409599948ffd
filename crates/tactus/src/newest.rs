//! The bundle that is meant where none is named: the newest of this directory.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tactus_bundle::limits;
use tactus_model::outcome::RunStatus;
use tactus_system::{Directory, System};

use crate::exit::Failure;
use crate::say::say;

/// A file that every bundle contains.
pub const MANIFEST: &str = "manifest.json";

/// The fields of a manifest that are needed here.
#[derive(Deserialize)]
struct Begun {
    started: String,
    #[serde(default)]
    status: Option<RunStatus>,
    #[serde(default)]
    sessions: Vec<Sat>,
}

#[derive(Deserialize)]
struct Sat {
    started: String,
}

/// The bundle that was named, else the newest below the working directory, which is said.
pub fn bundle(named: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    let found = newest(Path::new("."), |_| true).map_err(|error| {
        Failure::say(
            format!("the bundles of this directory cannot be listed: {error}"),
            "name the bundle that you mean",
        )
    })?;
    let found = found.ok_or_else(|| {
        Failure::say("there is no bundle in this directory", "name one, or make one: `tactus run`")
    })?;
    say(format_args!("bundle: {}", found.display()));
    Ok(found)
}

/// The newest bundles below `dir` that were measured to their end, at most `most` of them, the newest first.
pub fn all_complete(dir: &Path, most: usize) -> Vec<PathBuf> {
    let is_complete = |begun: &Begun| begun.status == Some(RunStatus::Complete);
    let mut all = by_time(dir, is_complete).unwrap_or_default();
    all.truncate(most);
    all
}

fn newest(dir: &Path, is_meant: impl Fn(&Begun) -> bool) -> io::Result<Option<PathBuf>> {
    Ok(by_time(dir, is_meant)?.into_iter().next())
}

/// The directories below `dir` that are bundles, the one whose manifest has the latest beginning first; of equal ones, the
/// last by name. Where all users may write, another user could put one there: links, and files that belong to neither this
/// user nor root, are passed over.
fn by_time(dir: &Path, is_meant: impl Fn(&Begun) -> bool) -> io::Result<Vec<PathBuf>> {
    let above = Directory::open(dir)?;
    let begun = |name: OsString| -> Option<(jiff::Timestamp, OsString)> {
        let own = above.beneath(&name).ok().filter(Directory::is_ours)?;
        let manifest: Begun = serde_json::from_slice(&own.read(MANIFEST, limits::PLAN).ok()?).ok()?;
        is_meant(&manifest).then_some(())?;
        Some((manifest.started.parse().ok()?, name))
    };
    let mut all: Vec<(jiff::Timestamp, OsString)> = above.names()?.into_iter().filter_map(begun).collect();
    all.sort_unstable_by(|one, other| other.cmp(one));
    let path = |(_, name): (_, OsString)| if dir == Path::new(".") { name.into() } else { dir.join(name) };
    Ok(all.into_iter().map(path).collect())
}

/// The time of the last session of this bundle, in which it was begun or resumed.
pub fn session(bundle: &Path, system: &dyn System) -> Option<jiff::Timestamp> {
    let bytes = system.read_regular(&bundle.join(MANIFEST), limits::PLAN).ok()?;
    let begun: Begun = serde_json::from_slice(&bytes).ok()?;
    begun.sessions.last().map_or(begun.started.as_str(), |last| last.started.as_str()).parse().ok()
}

#[cfg(test)]
mod tests {
    use tactus_system::Real;

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "the test makes the directories")]
    fn with(entries: &[(&str, &str)]) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        for (name, manifest) in entries {
            std::fs::create_dir(dir.path().join(name)).unwrap();
            std::fs::write(dir.path().join(name).join("manifest.json"), manifest).unwrap();
        }
        std::fs::write(dir.path().join("tactus-file"), "no directory").unwrap();
        let found = newest(dir.path(), |_| true).unwrap()?;
        Some(found.file_name().unwrap().to_string_lossy().into_owned())
    }

    #[test]
    fn the_bundle_that_was_begun_last_is_the_newest_whatever_its_name_and_its_zone() {
        let found = with(&[
            ("z-first", r#"{"started": "2026-03-01T10:00:00Z"}"#),
            ("a-last", r#"{"started": "2026-03-01T12:00:00+01:00"}"#),
            ("m-between", r#"{"started": "2026-03-01T10:30:00Z"}"#),
        ]);
        assert_eq!(found.as_deref(), Some("a-last"));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test makes the directories")]
    fn a_bundle_of_another_user_and_a_link_to_one_are_not_the_newest() {
        use std::os::unix::fs::{chown, symlink};
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str, year: u32| {
            std::fs::create_dir(dir.path().join(name)).unwrap();
            let manifest = format!(r#"{{"started": "{year}-03-01T10:00:00Z"}}"#);
            std::fs::write(dir.path().join(name).join("manifest.json"), manifest).unwrap();
        };
        let found = || newest(dir.path(), |_| true).unwrap().map(|path| path.file_name().unwrap().to_owned());
        make("own", 2026);
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::write(elsewhere.path().join("manifest.json"), r#"{"started": "2029-03-01T10:00:00Z"}"#)
            .unwrap();
        symlink(elsewhere.path(), dir.path().join("link")).unwrap();
        assert_eq!(found().unwrap(), "own", "and not what the link leads to");
        make("planted", 2028);
        // Root alone can give a directory away.
        let given = chown(dir.path().join("planted"), Some(65_534), None).is_ok();
        assert_eq!(found().unwrap(), if given { "own" } else { "planted" });
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test makes the directories")]
    fn files_before_it_by_name_hide_no_bundle() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..10_001 {
            std::fs::write(dir.path().join(format!("a{n}")), "").unwrap();
        }
        std::fs::create_dir(dir.path().join("own")).unwrap();
        std::fs::write(dir.path().join("own").join(MANIFEST), r#"{"started": "2026-03-01T10:00:00Z"}"#)
            .unwrap();
        assert_eq!(newest(dir.path(), |_| true).unwrap(), Some(dir.path().join("own")));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test makes the directory")]
    fn the_last_session_is_when_somebody_began() {
        let dir = tempfile::tempdir().unwrap();
        let manifest = r#"{"started": "2026-03-01T10:00:00Z", "sessions": [{"started": "2026-03-01T10:00:00Z"}, {"started": "2026-03-02T09:00:00Z"}]}"#;
        std::fs::write(dir.path().join(MANIFEST), manifest).unwrap();
        assert_eq!(session(dir.path(), &Real), "2026-03-02T09:00:00Z".parse().ok());
    }

    #[test]
    fn a_directory_without_a_valid_manifest_is_not_a_bundle() {
        assert_eq!(with(&[]), None);
        let found = with(&[
            ("cut", r#"{"started": "2026-03-0"#),
            ("other", "{}"),
            ("never", r#"{"started": "soon"}"#),
        ]);
        assert_eq!(found, None);
        assert!(newest(Path::new("/nonexistent"), |_| true).is_err());
    }
}
