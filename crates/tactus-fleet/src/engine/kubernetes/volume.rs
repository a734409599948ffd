//! A volume instead of the log: every pod leaves its finished bundle there as an archive, and it is mounted where tactus runs,
//! too. Every node can write all of it, so an archive is believed where the pod's last word has its sum, and there alone.

use std::path::Path;

use serde_json::{Value, json};
use tactus_system::Directory;

use super::refused;
use crate::armor;
use crate::engine::Site;
use crate::error::FleetError;
use crate::name::sha256;
use crate::order::Order;
use crate::pack::MOST_UNPACKED;
use crate::row::Row;

/// The prefix of a claim's name.
const CLAIM: &str = "claim:";
/// Where bundles are made on a node.
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
                "a volume for bundles must be in the pods and mounted here: use --with volume and --with \
here together",
                "use --with volume=claim:NAME (a PersistentVolumeClaim) or volume=/DIRECTORY (of every \
                    node), and here=/DIRECTORY",
            ));
        }
    };
    if Path::new(on_node(order)).starts_with(volume) {
        return Err(FleetError::new(
            format!(
                "--with dir={}: it is on the volume, where every node can change the bundles of others",
                on_node(order)
            ),
            "name a directory on the nodes themselves: --with dir=/DIRECTORY",
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
        format!("--with volume={volume} here={here}: it is neither a claim nor an absolute directory"),
        "use volume=claim:NAME or volume=/DIRECTORY, and here=/DIRECTORY",
    ))
}

/// Where pods make their bundles: on their own node, with a volume, too.
pub fn on_node(order: &Order) -> &str {
    order.option("dir").unwrap_or(ON_NODE)
}

/// The volume, as a pod mounts it; `None` without one.
pub fn source(order: &Order) -> Option<Value> {
    let volume = given(order)?;
    Some(match volume.strip_prefix(CLAIM) {
        Some(claim) => json!({"name": "volume", "persistentVolumeClaim": {"claimName": claim}}),
        // One that is not mounted on a node is not made there: its bundles would be nowhere.
        None => json!({"name": "volume", "hostPath": {"path": volume, "type": "Directory"}}),
    })
}

/// The archive of a machine, beneath the volume.
pub fn archive(order: &Order, row: &Row) -> String {
    format!("{}-archives/{}.tar.gz", order.id, row.key)
}

/// Brings the bundle of a row whose pod has left this last word; else why not.
pub fn fetched(site: &Site<'_>, row: &Row, word: &str) -> Result<(), String> {
    let again = "repeat the command: its job reports the checksum again, and keeps what was measured";
    let told = armor::archive_sum(word).ok_or_else(|| {
        format!(
            "its pod has not reported the checksum of its archive, and any node could have written that: \
            {again}"
        )
    })?;
    let here = site.order.option("here").unwrap_or_default();
    // A node that may write there may put a link there: links are not followed.
    let volume = Directory::reach(Path::new(here)).map_err(|error| format!("{here}: {error}"))?;
    let name = archive(site.order, row);
    if volume.entry(&name).is_err() {
        return Err("no bundle is on the volume".into());
    }
    let bytes = volume.read(&name, MOST_UNPACKED).map_err(|error| format!("{here}/{name}: {error}"))?;
    if sha256(&bytes) != told {
        return Err(format!("{here}/{name} is not the archive whose checksum its pod reported: {again}"));
    }
    let file = site.path(&row.archive());
    site.system.install(&file, &bytes, 0o600).map_err(|error| format!("{}: {error}", file.display()))
}
