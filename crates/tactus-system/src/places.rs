//! Where tactus keeps its own files.

use std::path::PathBuf;

use super::System;

/// What can be made again at any time: probes, kernels, unpacked kernels. `TACTUS_CACHE_DIR`, else
/// `/var/cache/tactus` for root, else the user's cache directory.
#[must_use]
pub fn cache_dir(system: &dyn System) -> PathBuf {
    let variable = |name| system.variable(name).filter(|value| value.starts_with('/')).map(PathBuf::from);
    if let Some(dir) = variable("TACTUS_CACHE_DIR") {
        return dir;
    }
    if system.is_root() {
        return "/var/cache/tactus".into();
    }
    let cache = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("tactus")
}

/// What only matters while runs are on: their journals. `/run/tactus` for root, else below
/// `XDG_RUNTIME_DIR`, else below the cache.
#[must_use]
pub fn state_dir(system: &dyn System) -> PathBuf {
    if system.variable("TACTUS_CACHE_DIR").is_none() {
        if system.is_root() {
            return "/run/tactus".into();
        }
        if let Some(dir) = system.variable("XDG_RUNTIME_DIR").filter(|dir| dir.starts_with('/')) {
            return PathBuf::from(dir).join("tactus");
        }
    }
    cache_dir(system).join("run")
}

/// What must outlive a reboot: what tuning has changed. `/var/lib/tactus`, else below
/// `TACTUS_CACHE_DIR` where that is set.
#[must_use]
pub fn lasting_dir(system: &dyn System) -> PathBuf {
    match system.variable("TACTUS_CACHE_DIR").filter(|dir| dir.starts_with('/')) {
        Some(dir) => PathBuf::from(dir).join("lib"),
        None => "/var/lib/tactus".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    #[test]
    fn root_and_users_have_their_own_places() {
        assert_eq!(cache_dir(&Memory::new().root()), PathBuf::from("/var/cache/tactus"));
        assert_eq!(state_dir(&Memory::new().root()), PathBuf::from("/run/tactus"));
        let user = Memory::new().set("HOME", "/home/ada");
        assert_eq!(cache_dir(&user), PathBuf::from("/home/ada/.cache/tactus"));
        assert_eq!(state_dir(&user), PathBuf::from("/home/ada/.cache/tactus/run"));
        let session = user.set("XDG_RUNTIME_DIR", "/run/user/1000");
        assert_eq!(state_dir(&session), PathBuf::from("/run/user/1000/tactus"));
        let elsewhere = session.set("TACTUS_CACHE_DIR", "/x");
        assert_eq!((cache_dir(&elsewhere), state_dir(&elsewhere)), ("/x".into(), "/x/run".into()));
    }
}
