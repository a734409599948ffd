//! The part of a bundle's claims that tells it from others. No more is kept of it, because many bundles may
//! be a stranger's inventions.

use tactus_bundle as bundle;
use tactus_model::bundle::{Machine, Manifest};
use tactus_system::Directory;

use super::reason;
use crate::identity::{content_key, cut_machine, run_key};

/// The file that every bundle's directory has.
pub const MANIFEST: &str = "manifest.json";
/// Longest one: the checksums of 40 000 files. A run of 24 hours has much less than 1 MiB.
const MOST: u64 = 4 << 20;

/// The claims of a bundle about itself, all unchecked.
#[derive(Debug)]
pub struct Claim {
    /// Key of its run.
    pub run: String,
    /// Its machine: name and numbers alone.
    pub machine: Machine,
    /// Tells it from another bundle of the same run.
    pub content: String,
    /// The number of its sessions.
    pub sessions: i64,
    /// When it began, in microseconds since 1970.
    pub started_us: i64,
    /// The day on which that was, UTC.
    pub day: String,
}

impl Claim {
    /// The claim of the bundle in an open directory.
    ///
    /// # Errors
    /// Why it is of no use, in a sentence.
    pub fn read(dir: &Directory) -> Result<Self, String> {
        if dir.entry(MANIFEST).is_ok_and(|entry| entry.bytes > MOST) {
            return Err(format!("its {MANIFEST} is longer than any run writes"));
        }
        let manifest = bundle::manifest(dir).map_err(|error| reason::of(&error))?;
        Self::of(&manifest).map_err(str::to_owned)
    }

    fn of(manifest: &Manifest) -> Result<Self, &'static str> {
        if manifest.finished.is_none() {
            return Err(
                "the run is in progress, or died: its files cannot be verified yet (`tactus run --into` ends \
                    it)",
            );
        }
        let started: jiff::Timestamp =
            manifest.started.parse().map_err(|_| "its start is not a valid time")?;
        let Machine { name, id, hardware, .. } = cut_machine(&manifest.machine);
        Ok(Self {
            run: run_key(manifest),
            machine: Machine { name, id, hardware, ..Machine::default() },
            content: content_key(manifest),
            sessions: i64::try_from(manifest.sessions.len().max(1)).unwrap_or(i64::MAX),
            started_us: started.as_microsecond(),
            day: started.strftime("%Y-%m-%d").to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::MOST_NAME;

    /// Of 65 536 manifests of 16 KB each a gigabyte was held.
    #[test]
    fn of_a_long_manifest_a_few_words_are_held() {
        let long = "x".repeat(1 << 20);
        let machine = Machine {
            name: long.clone(),
            id: Some(long.clone()),
            hardware: Some(long.clone()),
            kernel: long.clone(),
            processor: long.clone(),
            ..Machine::default()
        };
        let manifest = Manifest {
            started: "2026-11-01T03:00:00Z".into(),
            finished: Some(long.clone()),
            plan: long.clone(),
            files: (0..1_000).map(|number| (format!("{number}"), "0".repeat(64))).collect(),
            machine,
            ..manifest()
        };
        let held = format!("{:?}", Claim::of(&manifest).unwrap());
        assert!(held.len() < 3 * MOST_NAME + 1_000, "{}", held.len());
    }

    fn manifest() -> Manifest {
        let text = r#"{"format": {"major": 1, "minor": 0}, "tactus": "0.1.0", "plan": "", "started": "", "finished": null,
            "status": "complete", "machine": {"name": "", "processor": "", "cpus": "", "kernel": "", "system": ""}, "files": {}}"#;
        serde_json::from_str(text).unwrap()
    }
}
