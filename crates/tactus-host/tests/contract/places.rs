//! What each kind of environment needs on this machine before it can be tried: a private daemon, a
//! server on the loopback, a stand-in. Most need nothing.

use std::any::Any;

use tactus_model::plan;

/// A place to try a kind of environment in.
pub struct Place {
    /// The plan's table for it.
    pub spec: plan::Environment,
    /// What must live as long as it is tried; dropping it removes it.
    pub _held: Vec<Box<dyn Any>>,
}

/// The place for a kind.
pub fn of(kind: &str) -> Place {
    Place { spec: super::spec(kind, &[]), _held: Vec::new() }
}
