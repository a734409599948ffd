//! The directories of tactus's own files.

use std::io;
use std::path::PathBuf;

use super::System;

/// The directory of files that can be made again at any time: probes, kernels, unpacked kernels. `TACTUS_CACHE_DIR`,
/// else `/var/cache/tactus` for root, else the user's cache directory.
///
/// # Errors
/// When this user has no such directory. A directory that every user may write to is never used instead.
pub fn cache_dir(system: &dyn System) -> io::Result<PathBuf> {
    if let Some(dir) = given(system)? {
        return Ok(dir);
    }
    if system.is_root() {
        return Ok("/var/cache/tactus".into());
    }
    let cache =
        path(system, "XDG_CACHE_HOME").or_else(|| path(system, "HOME").map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("tactus")).ok_or_else(nowhere)
}

/// The directory of files that only matter during a run: the journals. `/run/tactus` for root, else below
/// `XDG_RUNTIME_DIR`, else below the cache.
///
/// # Errors
/// Those of [`cache_dir`].
pub fn state_dir(system: &dyn System) -> io::Result<PathBuf> {
    if given(system)?.is_none() {
        if system.is_root() {
            return Ok("/run/tactus".into());
        }
        if let Some(dir) = path(system, "XDG_RUNTIME_DIR") {
            return Ok(dir.join("tactus"));
        }
    }
    Ok(cache_dir(system)?.join("run"))
}

/// The directory of files that must survive a reboot: the changes of tuning. `/var/lib/tactus`, else below
/// `TACTUS_CACHE_DIR` where that is set.
#[must_use]
pub fn lasting_dir(system: &dyn System) -> PathBuf {
    path(system, "TACTUS_CACHE_DIR").map_or_else(|| "/var/lib/tactus".into(), |dir| dir.join("lib"))
}

/// The directory of bundles to which later runs are compared. `/var/lib/tactus/baselines` for root, else below
/// `XDG_DATA_HOME` (`~/.local/share`); below `TACTUS_CACHE_DIR` where that is set.
///
/// # Errors
/// When this user has no such directory.
pub fn baselines_dir(system: &dyn System) -> io::Result<PathBuf> {
    if given(system)?.is_some() || system.is_root() {
        return Ok(lasting_dir(system).join("baselines"));
    }
    let data =
        path(system, "XDG_DATA_HOME").or_else(|| path(system, "HOME").map(|home| home.join(".local/share")));
    data.map(|data| data.join("tactus/baselines")).ok_or_else(nowhere)
}

/// The directory of the fleets begun here, beside the baselines.
///
/// # Errors
/// Those of [`baselines_dir`].
pub fn fleets_dir(system: &dyn System) -> io::Result<PathBuf> {
    Ok(baselines_dir(system)?.with_file_name("fleets"))
}

fn path(system: &dyn System, variable: &str) -> Option<PathBuf> {
    system.variable(variable).filter(|value| value.starts_with('/')).map(PathBuf::from)
}

/// The directory that the user set. A relative path is an error: it would differ in every directory.
fn given(system: &dyn System) -> io::Result<Option<PathBuf>> {
    match (system.variable("TACTUS_CACHE_DIR"), path(system, "TACTUS_CACHE_DIR")) {
        (Some(value), None) if !value.is_empty() => {
            let words = format!("TACTUS_CACHE_DIR is {value:?}, which is not an absolute path");
            Err(io::Error::new(io::ErrorKind::InvalidInput, words))
        }
        (_, path) => Ok(path),
    }
}

fn nowhere() -> io::Error {
    let words = "there is no directory for the files of tactus: neither HOME nor XDG_CACHE_HOME names one";
    io::Error::new(io::ErrorKind::NotFound, words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    #[test]
    fn root_and_users_have_their_own_places() {
        let places = |system: &Memory| (cache_dir(system).unwrap(), state_dir(system).unwrap());
        assert_eq!(places(&Memory::new().root()), ("/var/cache/tactus".into(), "/run/tactus".into()));
        let user = Memory::new().set("HOME", "/home/ada");
        assert_eq!(places(&user), ("/home/ada/.cache/tactus".into(), "/home/ada/.cache/tactus/run".into()));
        let session = user.set("XDG_RUNTIME_DIR", "/run/user/1000");
        assert_eq!(places(&session).1, PathBuf::from("/run/user/1000/tactus"));
        let elsewhere = session.set("TACTUS_CACHE_DIR", "/x");
        assert_eq!(places(&elsewhere), ("/x".into(), "/x/run".into()));
        assert_eq!(lasting_dir(&elsewhere), PathBuf::from("/x/lib"));
    }

    #[test]
    fn baselines_lie_where_a_user_keeps_data() {
        let baselines = |system: &Memory| baselines_dir(system).unwrap();
        assert_eq!(baselines(&Memory::new().root()), PathBuf::from("/var/lib/tactus/baselines"));
        let user = Memory::new().set("HOME", "/home/ada");
        assert_eq!(baselines(&user), PathBuf::from("/home/ada/.local/share/tactus/baselines"));
        let user = user.set("XDG_DATA_HOME", "/d");
        assert_eq!(baselines(&user), PathBuf::from("/d/tactus/baselines"));
        assert_eq!(baselines(&user.set("TACTUS_CACHE_DIR", "/x")), PathBuf::from("/x/lib/baselines"));
        assert!(baselines_dir(&Memory::new()).is_err());
    }

    #[test]
    fn without_a_home_nothing_is_kept_where_everybody_may_write() {
        for user in [Memory::new(), Memory::new().set("HOME", "home"), Memory::new().set("HOME", "")] {
            assert!(cache_dir(&user).unwrap_err().to_string().contains("neither HOME nor XDG_CACHE_HOME"));
            assert!(state_dir(&user).is_err());
        }
        let relative = Memory::new().root().set("TACTUS_CACHE_DIR", "cache");
        assert!(state_dir(&relative).unwrap_err().to_string().contains("not an absolute path"));
    }
}
