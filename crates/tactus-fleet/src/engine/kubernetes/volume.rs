//! A volume instead of the log: every pod makes its bundle there, and it is mounted where tactus runs, too.

use std::path::Path;

use serde_json::{Value, json};
use tactus_system::Directory;

use super::refused;
use crate::engine::Site;
use crate::error::FleetError;
use crate::order::Order;
use crate::pack::MOST_UNPACKED;
use crate::row::Row;

/// What stands before the name of a claim.
const CLAIM: &str = "claim:";
/// Where bundles are made on a node whose fleet has no volume.
const ON_NODE: &str = "/var/lib/tactus-fleet";

/// The volume that was given, if bundles come by one.
pub fn given(order: &Order) -> Option<&str> {
    order.option("volume")
}

/// Refuses what is no volume, or one that is not mounted here.
pub fn check(order: &Order) -> Result<(), FleetError> {
    let (volume, here) = match (given(order), order.option("here")) {
        (None, None) => return Ok(()),
        (Some(volume), Some(here)) => (volume, here),
        _ => {
            return Err(FleetError::new(
                "bundles come by a volume that the pods have and that is mounted here: --with volume and --with here \
belong together",
                "say --with volume=claim:NAME (a PersistentVolumeClaim) or volume=/DIRECTORY (of every node), and here=/DIRECTORY",
            ));
        }
    };
    if order.option("dir").is_some() {
        return Err(FleetError::new(
            "--with dir: with a volume the bundles are made on it, and not on the nodes",
            "leave one of the two out",
        ));
    }
    let holds = match volume.strip_prefix(CLAIM) {
        Some(claim) => refused(claim).is_none(),
        None => Path::new(volume).is_absolute(),
    };
    if holds && Path::new(here).is_absolute() {
        return Ok(());
    }
    Err(FleetError::new(
        format!("--with volume={volume} here={here}: it is no claim and no absolute directory"),
        "say volume=claim:NAME or volume=/DIRECTORY, and here=/DIRECTORY",
    ))
}

/// Where pods make their bundles.
pub fn source(order: &Order) -> Value {
    match given(order) {
        None => {
            json!({"hostPath": {"path": order.option("dir").unwrap_or(ON_NODE), "type": "DirectoryOrCreate"}})
        }
        Some(volume) => match volume.strip_prefix(CLAIM) {
            Some(claim) => json!({"persistentVolumeClaim": {"claimName": claim}}),
            // One that is not mounted on a node is not made there: its bundles would be nowhere.
            None => json!({"hostPath": {"path": volume, "type": "Directory"}}),
        },
    }
}

/// The archive of a machine, beneath the volume: apart from the bundles, whose machines may be called anything.
pub fn archive(order: &Order, row: &Row) -> String {
    format!("{}-archives/{}.tar.gz", order.id, row.key)
}

/// Brings the bundle of a row; else why not.
pub fn fetched(site: &Site<'_>, row: &Row) -> Result<(), String> {
    let here = site.order.option("here").unwrap_or_default();
    // Whoever may write there may put a link there: none is followed.
    let volume = Directory::reach(Path::new(here)).map_err(|error| format!("{here}: {error}"))?;
    let name = archive(site.order, row);
    if volume.entry(&name).is_err() {
        return Err("no bundle is on the volume".into());
    }
    let bytes = volume.read(&name, MOST_UNPACKED).map_err(|error| format!("{here}/{name}: {error}"))?;
    let file = site.path(&row.archive());
    site.system.install(&file, &bytes, 0o600).map_err(|error| format!("{}: {error}", file.display()))
}
