//! Whether a bundle has come, and holds.

use std::path::Path;

use tactus_bundle::BundleError;
use tactus_model::bundle::Manifest;
use tactus_model::outcome::RunStatus;
use tactus_model::plan::Plan;
use tactus_system::Directory;

use crate::error::FleetError;
use crate::name::{as_told, sha256};
use crate::pack;
use crate::row::{Home, Row};
use crate::store::Store;

/// The longest manifest, in bytes.
const MOST_MANIFEST: u64 = 16 << 20;
/// The plan of a bundle as its user wrote it, and the longest one, in bytes.
const SOURCE: &str = "source.toml";
const MOST_SOURCE: u64 = 4 << 20;
/// How many seconds the clock of a machine may be behind.
const MOST_BEHIND: i64 = 3600;

/// The bundle that has come from a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Nothing.
    Nothing,
    /// A bundle that is being written, was cut off, or whose run was ended before its rows were.
    Unfinished,
    /// A finished one that holds; it is in `bundles` now.
    Here(Home),
    /// One that does not hold, or is another's; it is in `refused` now.
    Refused(String),
}

/// Whether a run has done all of its rows. Engines also end jobs softly (a drained node, a time limit). The bundle of
/// such a job has an end and checksums, but is resumed all the same.
#[must_use]
pub fn is_complete(manifest: &Manifest) -> bool {
    manifest.finished.is_some() && manifest.status == RunStatus::Complete
}

/// Looks what has come of a machine, and takes home what is finished and holds.
///
/// # Errors
/// When files of the fleet cannot be moved.
pub fn arrival(store: &Store, row: &Row) -> Result<Arrival, FleetError> {
    let dir = store.dir();
    let incoming = format!("incoming/{}", row.key);
    let archive = row.archive();
    let place = format!("bundles/{}", row.key);
    // It was brought home before, by one who ended before he could write that down.
    if let Ok(bundle) = dir.beneath(&place) {
        match held(store, row, &bundle) {
            Ok(home) => {
                store.remove(&archive)?;
                return Ok(Arrival::Here(home));
            }
            Err(_) => store.refuse(&place, &row.key)?,
        }
    }
    if dir.entry(&archive).is_ok() {
        // A directory there was unpacked from an earlier archive.
        store.remove(&incoming)?;
        let unpacked = unpacked(dir, &archive, &incoming);
        if let Err(error) = unpacked {
            store.remove(&incoming)?;
            store.refuse(&archive, &row.key)?;
            return Ok(Arrival::Refused(format!("its bundle arrived as an incomplete archive: {error}")));
        }
        store.remove(&archive)?;
    }
    let Ok(bundle) = dir.beneath(&incoming) else { return Ok(Arrival::Nothing) };
    let Ok(manifest) = tactus_bundle::manifest(&bundle) else { return Ok(Arrival::Unfinished) };
    if !is_complete(&manifest) {
        return Ok(Arrival::Unfinished);
    }
    match held(store, row, &bundle) {
        Ok(home) => {
            if dir.entry(&place).is_ok() {
                store.refuse(&place, &row.key)?;
            }
            store.rename(&incoming, &place)?;
            Ok(Arrival::Here(home))
        }
        Err(reason) => {
            store.refuse(&incoming, &row.key)?;
            Ok(Arrival::Refused(reason))
        }
    }
}

/// Looks again whether a bundle that is here holds; one that does not goes to `refused`.
///
/// # Errors
/// When it cannot be moved.
pub fn still_holds(store: &Store, row: &Row) -> Result<Option<String>, FleetError> {
    let place = format!("bundles/{}", row.key);
    let Ok(bundle) = store.dir().beneath(&place) else {
        return Ok(Some("its bundle was here, but is gone".into()));
    };
    let reason = match held(store, row, &bundle) {
        Ok(home) if row.bundle.as_ref().is_none_or(|known| known.manifest_sha256 == home.manifest_sha256) => {
            return Ok(None);
        }
        Ok(_) => "its bundle differs from the one that was fetched".to_owned(),
        Err(reason) => reason,
    };
    store.refuse(&place, &row.key)?;
    Ok(Some(reason))
}

fn unpacked(dir: &Directory, archive: &str, into: &str) -> std::io::Result<()> {
    dir.make_dir(into)?;
    pack::unpack(dir.file(archive)?, &dir.beneath(into)?)
}

/// Every file of a bundle as its manifest has it, and the bundle this machine's, of this plan.
fn held(store: &Store, row: &Row, bundle: &Directory) -> Result<Home, String> {
    let manifest = tactus_bundle::verify(bundle).map_err(|error: BundleError| error.to_string())?;
    let Manifest { machine, plan, started, .. } = &manifest;
    if machine.name != as_told(&row.machine) {
        return Err(format!("it is of the machine {:?}", machine.name));
    }
    if *plan != store.order.plan {
        return Err(format!("it is of the plan {plan:?}"));
    }
    if !manifest.files.contains_key(SOURCE) {
        return Err(format!("{SOURCE}, the plan that was measured, is not among its files"));
    }
    let source = bundle.read(SOURCE, MOST_SOURCE).map_err(|error| error.to_string())?;
    if !is_plan(store, &source)? {
        return Err(format!("it is of another plan that is also called {plan:?}"));
    }
    if is_before(started, &store.order.started) {
        let begun = &store.order.started;
        return Err(format!(
            "its run began at {started:?}, before the fleet ({begun}): it is an older one, or the machine's clock is wrong"
        ));
    }
    let bytes = bundle.read(Path::new("manifest.json"), MOST_MANIFEST).map_err(|error| error.to_string())?;
    Ok(Home {
        manifest_sha256: sha256(&bytes),
        tactus: manifest.tactus.clone(),
        finished: manifest.finished.clone().unwrap_or_default(),
        machine_id: machine.id.clone(),
    })
}

/// Whether what a bundle keeps as its plan says the same as the fleet's: a run writes it anew, and so do other versions. All of
/// it is compared as it is read here.
pub(crate) fn is_plan(store: &Store, source: &[u8]) -> Result<bool, String> {
    let read = |bytes: &[u8]| toml::from_slice::<Plan>(bytes).map_err(|error| error.message().to_owned());
    let ours = store.dir().read("plan.toml", MOST_SOURCE).map_err(|error| error.to_string())?;
    if sha256(&ours) != store.order.plan_sha256 {
        return Err("plan.toml is not the plan that this fleet was begun with".into());
    }
    Ok(source == ours || read(source).map_err(|error| format!("{SOURCE}: {error}"))? == read(&ours)?)
}

/// Whether a run began before its fleet, where both say when.
fn is_before(run: &str, fleet: &str) -> bool {
    let second = |text: &str| text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second);
    match (second(run), second(fleet)) {
        (Some(run), Some(fleet)) => run < fleet - MOST_BEHIND,
        // It would be believed whatever it says.
        (None, Some(_)) => true,
        (_, None) => false,
    }
}
