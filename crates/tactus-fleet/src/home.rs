//! Whether a bundle has come, and holds.

use std::path::Path;

use tactus_bundle::BundleError;
use tactus_model::bundle::Manifest;
use tactus_model::outcome::RunStatus;
use tactus_system::Directory;

use crate::error::FleetError;
use crate::name::sha256;
use crate::pack;
use crate::row::{Home, Row};
use crate::store::Store;

/// The longest manifest, in bytes.
const MOST_MANIFEST: u64 = 16 << 20;
/// The longest name of a machine that a bundle keeps, in characters.
const LONGEST_NAME: usize = 64;

/// What has come of a machine.
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

/// Whether a run has done all of its rows: engines end jobs softly, too (a drained node, a time limit), and what such a one
/// leaves has an end and checksums, and is gone on with all the same.
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
    let archive = format!("{incoming}.tar.gz");
    if dir.entry(&archive).is_ok() {
        // What stands there is of an archive that came before.
        store.remove(&incoming)?;
        let unpacked = unpacked(dir, &archive, &incoming);
        if let Err(error) = unpacked {
            store.refuse(&archive, &row.key)?;
            store.remove(&incoming)?;
            return Ok(Arrival::Refused(format!("what came of its bundle is no whole archive: {error}")));
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
            let place = format!("bundles/{}", row.key);
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
        return Ok(Some("its bundle was here, and is not any more".into()));
    };
    let reason = match held(store, row, &bundle) {
        Ok(home) if row.bundle.as_ref().is_none_or(|known| known.manifest_sha256 == home.manifest_sha256) => {
            return Ok(None);
        }
        Ok(_) => "its bundle is another than the one that came".to_owned(),
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
    let Manifest { machine, plan, .. } = &manifest;
    if machine.name != as_named(&row.machine) {
        return Err(format!("it is of the machine {:?}", machine.name));
    }
    if *plan != store.order.plan {
        return Err(format!("it is of the plan {plan:?}"));
    }
    let bytes = bundle.read(Path::new("manifest.json"), MOST_MANIFEST).map_err(|error| error.to_string())?;
    Ok(Home {
        manifest_sha256: sha256(&bytes),
        tactus: manifest.tactus.clone(),
        finished: manifest.finished.clone().unwrap_or_default(),
        machine_id: machine.id.clone(),
    })
}

/// The name of a machine as a run keeps it, which was given it in `TACTUS_MACHINE`.
fn as_named(machine: &str) -> String {
    machine.trim().chars().filter(|letter| !letter.is_control()).take(LONGEST_NAME).collect()
}
