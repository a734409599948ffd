//! `tactus fleet status` and `tactus fleet collect`.

use tactus_fleet::{Advance, Store, begun};
use tactus_system::Real;

use super::bundles;
use super::run::{engine, told};
use crate::cli::{FleetCollect, FleetStatus};
use crate::exit::{Exit, Failure};
use crate::say::say;

pub fn status(arguments: &FleetStatus) -> Result<Exit, Failure> {
    // While another command advances the fleet, its rows have that command's last news.
    let mut store = match Store::open(&arguments.fleet) {
        Ok(store) => store,
        Err(_) => Store::look(&arguments.fleet)?,
    };
    if store.is_ours() {
        begun::check(&store.order, store.path(), &Real)?;
        let engine = engine(&store.order.engine)?;
        Advance::new(engine, &Real).look(&mut store, false)?;
    }
    told(&store, arguments.json, arguments.all)
}

pub fn collect(arguments: &FleetCollect) -> Result<Exit, Failure> {
    if let Some(data) = &arguments.into {
        return bundles::collect(arguments, data);
    }
    let [fleet] = &arguments.from[..] else {
        return Err(Failure::say(
            "only one fleet at a time can be collected",
            "name one directory of a fleet; or put bundles into a data set: --into DATA",
        ));
    };
    let mut store = Store::open(fleet)?;
    begun::check(&store.order, store.path(), &Real)?;
    let engine = engine(&store.order.engine)?;
    let came = Advance::new(engine, &Real).look(&mut store, true)?;
    say(format_args!(
        "{came} bundles arrived; the valid ones are in {}",
        store.path().join("bundles").display()
    ));
    told(&store, arguments.json, false)
}
