//! The machine itself.

use tactus_model::finding::Role;
use tactus_model::plan::{self, PathKind};
use tactus_system::{Invocation, System};
use tactus_system::{are_handed_on, probe};

use crate::network::enter;
use crate::support;
use crate::{Environment, Running, Setting, StartError, Usable};

/// See [`Environment::about`].
pub struct Host;

/// The entry of the table.
pub static ENTRY: Host = Host;

impl Environment for Host {
    fn kind(&self) -> &'static str {
        "host"
    }

    fn role(&self) -> Role {
        Role::Host
    }

    fn can_join(&self, path: PathKind) -> bool {
        !path.is_for_guests()
    }

    fn has_devices(&self, _spec: &plan::Environment) -> bool {
        true
    }

    fn about(&self) -> &'static str {
        "The machine itself: the probe runs as a plain process, beside everything else that runs there. \
Every other environment is compared with it. When this machine is itself virtual, its numbers hold as seen \
inside it."
    }

    fn usable(&self, _system: &dyn System) -> Usable {
        Usable::Yes { remark: None }
    }

    fn start(&self, setting: &Setting<'_>) -> Result<Box<dyn Running>, StartError> {
        let program = if are_handed_on() { probe::sealed() } else { probe::installed(setting.system) };
        let program = program.map_err(|error| support::cannot("no probe", error))?;
        let mut words = setting.network.map_or_else(Vec::new, |place| enter(place.holder));
        words.push(program.display().to_string());
        let command = Invocation::new(words).with_capabilities();
        support::start(setting, command, Vec::new(), Vec::new())
    }
}
