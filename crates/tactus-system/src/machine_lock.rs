//! One measurement at a time on a machine: two would disturb each other, and neither would see why. The lock is a
//! [name](listening), so that a process that finds it taken can look up its owner.

use std::io;
use std::os::fd::OwnedFd;

use crate::own::is_mine;
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
    /// Takes the lock; `None` if it is taken.
    ///
    /// # Errors
    /// When no socket can be made.
    pub fn take() -> io::Result<Option<Self>> {
        Self::take_named(&name())
    }

    fn take_named(name: &[u8]) -> io::Result<Option<Self>> {
        Ok(listening::take(name)?.map(|name| Self { _name: name }))
    }

    /// The owner of the lock, as `process 4711 (tactus)`. The kernel knows which process listens; the owner does not
    /// need to answer. A process of another user is named as well, because every user may take the name and block
    /// measurements. `None` if the lock is free by now, or the owner is unknown.
    #[must_use]
    pub fn holder(system: &dyn System) -> Option<String> {
        Self::holder_of(&name(), system)
    }

    fn holder_of(name: &[u8], system: &dyn System) -> Option<String> {
        let listening::Listener { process, user, .. } = listening::who(name).ok()??;
        let comm = process.and_then(|process| system.text(&format!("/proc/{process}/comm")));
        Some(said(process, comm.as_deref(), (!is_mine(user)).then_some(user)))
    }
}

/// The owner in words; without a process, it is in another PID namespace. `user`: its user, if that is another one.
fn said(process: Option<u32>, name: Option<&str>, user: Option<u32>) -> String {
    let who = match (process, name.map(str::trim)) {
        (None, _) => "a process of a container".to_owned(),
        (Some(process), Some(name)) => format!("process {process} ({name})"),
        (Some(process), None) => format!("process {process}"),
    };
    user.map_or_else(|| who.clone(), |user| format!("{who} of user {user}"))
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
            assert!(!holder.contains("user"), "{holder}");
        }
        drop(first);
        assert_eq!(MachineLock::holder_of(name, &Real), None);
        assert!(MachineLock::take_named(name).unwrap().is_some());
    }

    #[test]
    fn another_user_and_a_container_that_hold_it_are_named() {
        assert_eq!(said(Some(4711), Some("tactus\n"), None), "process 4711 (tactus)");
        assert_eq!(said(Some(4711), Some("nc\n"), Some(1000)), "process 4711 (nc) of user 1000");
        assert_eq!(said(Some(4711), None, Some(1000)), "process 4711 of user 1000");
        assert_eq!(said(None, None, Some(65_534)), "a process of a container of user 65534");
    }
}
