//! Which fleets this user has begun here. The directory of a fleet may lie where its machines write (nodes of Slurm share it),
//! and what `fleet.json` says of the engine and its options decides what is started here: the sum of what a command has said
//! is kept where no machine of the fleet writes.

use std::io;
use std::path::{Path, PathBuf};

use tactus_system::{System, fleets_dir};

use crate::error::FleetError;
use crate::name::sha256;
use crate::order::Order;

/// A file whose name is the sum of what the user has said of a fleet, and its directory.
fn place(order: &Order, system: &dyn System) -> io::Result<(PathBuf, PathBuf)> {
    let Order { id, engine, select, options, plan_sha256, arguments, .. } = order;
    let said = serde_json::json!([id, engine, select, options, plan_sha256, arguments]);
    let dir = fleets_dir(system)?;
    Ok((dir.join(sha256(said.to_string().as_bytes())), dir))
}

/// Keeps that this is what the user's command says.
///
/// # Errors
/// When it cannot be written.
pub fn keep(order: &Order, system: &dyn System) -> Result<(), FleetError> {
    let written = place(order, system).and_then(|(file, dir)| {
        system.make_own_dir(&dir)?;
        system.install(&file, b"", 0o600)
    });
    written.map_err(|error| {
        FleetError::new(
            format!("what this fleet is cannot be kept beside its directory: {error}"),
            "`tactus fleet status` and `collect` will refuse it; the same `tactus fleet run` goes on with it",
        )
    })
}

/// Refuses to start anything for a fleet that no command of this user's has described so.
///
/// # Errors
/// When none has, or that cannot be known.
pub fn check(order: &Order, path: &Path, system: &dyn System) -> Result<(), FleetError> {
    let kept = place(order, system).and_then(|(file, dir)| {
        system.is_own_dir(&dir)?;
        Ok(system.exists(&file))
    });
    let why = match kept {
        Ok(true) => return Ok(()),
        Ok(false) => {
            "no `tactus fleet run` of yours has said so here, and its machines may write there".to_owned()
        }
        Err(error) => error.to_string(),
    };
    Err(FleetError::new(
        format!("{}/fleet.json names the engine and its options: {why}", path.display()),
        "say the `tactus fleet run` that began it once more here: it brings home what has come, too",
    ))
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;
    use crate::order::FORMAT;

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
        let check = |order: &Order| check(order, Path::new("/share/fleet"), &system);
        let error = check(&order).unwrap_err();
        assert!(error.to_string().contains("/share/fleet/fleet.json"), "{error}");
        assert!(error.hint.unwrap().contains("tactus fleet run"));
        keep(&order, &system).unwrap();
        check(&order).unwrap();
        check(&Order { tactus: "0.2.0".into(), ..order.clone() }).unwrap();
        for other in [
            Order { engine: "ansible".into(), ..order.clone() },
            Order { options: [("inventory".to_owned(), "/share/own".to_owned())].into(), ..order.clone() },
            Order { plan_sha256: "2".into(), ..order.clone() },
            Order { arguments: vec!["--x".into()], ..order.clone() },
        ] {
            assert!(check(&other).is_err(), "{other:?}");
        }
        assert!(keep(&order, &Memory::new()).is_err(), "nothing is kept where everybody may write");
    }
}
