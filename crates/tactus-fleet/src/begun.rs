//! The fleets that this user has begun on this machine. The machines of a fleet may be able to write to its directory
//! (nodes of Slurm share it), and `fleet.json` there decides which engine is started here with which options. So a
//! checksum of everything that a command has decided, and of the path, is kept where no machine of the fleet can
//! write. A checksum counts for its own fleet only.

use std::io;
use std::path::{Path, PathBuf};

use tactus_system::{System, fleets_dir};

use crate::error::FleetError;
use crate::name::sha256;
use crate::order::{FORMAT, Order};

/// A file whose name is the sum of what the user has said of the fleet at `path`, and its directory.
fn place(order: &Order, path: &Path, system: &dyn System) -> io::Result<(PathBuf, PathBuf)> {
    // A later version of tactus may advance the fleet, and a slash at the end does not change the path.
    let order = Order { format: FORMAT, tactus: String::new(), ..order.clone() };
    let path: PathBuf = path.components().collect();
    let said = serde_json::to_string(&(path.to_string_lossy(), order))?;
    let dir = fleets_dir(system)?;
    Ok((dir.join(sha256(said.as_bytes())), dir))
}

/// Keeps that this is what the user's command says of the fleet at `path`.
///
/// # Errors
/// When it cannot be written.
pub fn keep(order: &Order, path: &Path, system: &dyn System) -> Result<(), FleetError> {
    let written = place(order, path, system).and_then(|(file, dir)| {
        system.make_own_dir(&dir)?;
        system.install(&file, b"", 0o600)
    });
    written.map_err(|error| {
        FleetError::new(
            format!("the description of this fleet cannot be kept beside its directory: {error}"),
            "`tactus fleet status` and `collect` will refuse it; the same `tactus fleet run` continues it",
        )
    })
}

/// Refuses to start anything for a fleet that no command of this user's has described so.
///
/// # Errors
/// When none has, or that cannot be known.
pub fn check(order: &Order, path: &Path, system: &dyn System) -> Result<(), FleetError> {
    let kept = place(order, path, system).and_then(|(file, dir)| {
        system.is_own_dir(&dir)?;
        Ok(system.exists(&file))
    });
    let why = match kept {
        Ok(true) => return Ok(()),
        Ok(false) => {
            "you have not run `tactus fleet run` with them here, and the fleet's machines can write this \
                file"
                .to_owned()
        }
        Err(error) => error.to_string(),
    };
    Err(FleetError::new(
        format!("{}/fleet.json names the engine and its options: {why}", path.display()),
        "repeat the `tactus fleet run` that began it here: it also fetches the bundles so far",
    ))
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;

    #[test]
    fn a_fleet_that_says_something_else_than_its_users_command_is_refused() {
        let order = Order {
            format: FORMAT,
            tactus: "0.1.0".into(),
            id: "0badcafe".into(),
            started: String::new(),
            engine: "slurm".into(),
            select: "partition=lab".into(),
            options: [("program".to_owned(), "tactus".to_owned())].into(),
            plan: "lab".into(),
            plan_sha256: "1".into(),
            arguments: Vec::new(),
            machines: Vec::new(),
        };
        let system = Memory::new().root();
        let path = Path::new("/share/fleet");
        let check = |order: &Order| check(order, path, &system);
        let error = check(&order).unwrap_err();
        assert!(error.to_string().contains("/share/fleet/fleet.json"), "{error}");
        assert!(error.hint.unwrap().contains("tactus fleet run"));
        keep(&order, path, &system).unwrap();
        check(&order).unwrap();
        check(&Order { tactus: "0.2.0".into(), ..order.clone() }).unwrap();
        for other in [
            Order { engine: "ansible".into(), ..order.clone() },
            Order { options: [("inventory".to_owned(), "/share/own".to_owned())].into(), ..order.clone() },
            Order { plan_sha256: "2".into(), ..order.clone() },
            Order { arguments: vec!["--x".into()], ..order.clone() },
            Order { machines: vec!["another".into()], ..order.clone() },
            Order { started: "2026-01-01T00:00:00Z".into(), ..order.clone() },
        ] {
            assert!(check(&other).is_err(), "{other:?}");
        }
        super::check(&order, Path::new("/share/fleet/"), &system).unwrap();
        let elsewhere = super::check(&order, Path::new("/share/other"), &system);
        assert!(elsewhere.is_err(), "what is said of one fleet is not said of a copy of it");
        assert!(keep(&order, path, &Memory::new()).is_err(), "nothing is kept where everybody may write");
    }
}
