//! One plan on many machines, by the engine that they have already: Slurm, Ansible, Kubernetes. tactus has no
//! scheduler and no daemon. A fleet uses the engine's own objects and the engine's own client, and its bundles are
//! brought home.
//!
//! The state is a directory: the list of machines, the plan, a row for each machine, and their bundles ([`Store`]).
//! Everything that follows from these files is computed ([`row`], [`waves`]). Engines are one file each
//! ([`ENGINES`]), and touch the world only through [`tactus_system::System`].

mod advance;
pub mod armor;
pub mod begun;
mod engine;
mod error;
mod home;
mod name;
mod order;
pub mod pack;
mod pending;
pub mod row;
mod status;
mod store;
pub mod waves;

pub use advance::{Advance, Moved};
pub use engine::{ENGINES, Engine, File, Machine, OptionEntry, Ready, Site, Submitted, find};
pub use error::FleetError;
pub use home::{Arrival, is_complete};
pub use name::{file_name, quoted, sha256};
pub use order::{FORMAT, Order, listed};
pub use pending::JobState;
pub use row::{Row, State};
pub use status::{Counts, Status};
pub use store::Store;
