//! One measurement at a time on a machine: two disturb each other, and neither sees why. The lock is a [name](listening):
//! whoever finds it taken can learn by whom.

use std::io;
use std::os::fd::OwnedFd;

use crate::{System, listening};

/// The name, the same for every user and version. With another one in `TACTUS_LOCK` (which is for tests of tactus) two do
/// not see each other.
const NAME: &str = "tactus/measuring";

/// Held while this machine is measured.
#[derive(Debug)]
pub struct MachineLock {
    _name: OwnedFd,
}

impl MachineLock {
    /// Takes the lock; nothing where somebody has it.
    ///
    /// # Errors
    /// When there are no sockets.
    pub fn take() -> io::Result<Option<Self>> {
        Self::take_named(&name())
    }

    fn take_named(name: &[u8]) -> io::Result<Option<Self>> {
        Ok(listening::take(name)?.map(|name| Self { _name: name }))
    }

    /// Who has it, as `process 4711 (tactus)`. Nothing where nobody has it any more, or in another PID namespace.
    #[must_use]
    pub fn holder(system: &dyn System) -> Option<String> {
        Self::holder_of(&name(), system)
    }

    fn holder_of(name: &[u8], system: &dyn System) -> Option<String> {
        let process = listening::who(name).ok()??.process?;
        let name = system.text(&format!("/proc/{process}/comm"));
        Some(match name {
            Some(name) => format!("process {process} ({})", name.trim()),
            None => format!("process {process}"),
        })
    }
}

fn name() -> Vec<u8> {
    std::env::var("TACTUS_LOCK").map_or_else(|_| NAME.into(), |own| format!("tactus/{own}").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Real;

    #[test]
    fn who_comes_second_learns_who_was_first_and_the_name_is_free_when_that_one_ends() {
        let name = format!("tactus/test/{}", std::process::id());
        let name = name.as_bytes();
        let first = MachineLock::take_named(name).unwrap().unwrap();
        for _ in 0..3 {
            assert!(MachineLock::take_named(name).unwrap().is_none());
            let holder = MachineLock::holder_of(name, &Real).unwrap();
            assert!(holder.starts_with(&format!("process {} (", std::process::id())), "{holder}");
        }
        drop(first);
        assert_eq!(MachineLock::holder_of(name, &Real), None);
        assert!(MachineLock::take_named(name).unwrap().is_some());
    }
}
