//! Enters a running container with no more rights than it has: for containers whose tools have no command for it.
//!
//! Root inside the container may exchange any of its files and look into its processes (ptrace, /proc/PID/exe). So this
//! program runs there from sealed memory, never from a file of the container. It gives up all rights of the machine's
//! root before it enters the container's PID namespace, where the container's processes could see it.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{
    MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create, openat,
};
use rustix::io::Errno;
use rustix::process::{Gid, Pid, Uid, WaitOptions, chdir, chroot, fchdir, waitpid};
use rustix::thread::{
    clear_ambient_capability_set, move_into_link_name_space, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};
use tactus_model::process_files;
use tactus_model::undo::MARKER;

use crate::{capabilities, sys};

/// The word that leads here.
pub const ARGUMENT: &str = "enter";
/// Nothing of it can be changed any more.
const SEALED: SealFlags =
    SealFlags::SEAL.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::WRITE);
/// Namespaces as /proc/PID/ns names them. The one of users is last, because the machine's rights end with it.
const NAMESPACES: [&str; 8] = ["cgroup", "ipc", "uts", "net", "pid", "time", "mnt", "user"];
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The process whose namespaces are entered, and the name to use there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The first process of the container, as the machine numbers it.
    pub process: u32,
    /// When it began, in clock ticks since boot (field 22 of /proc/PID/stat): its number may be another's by now.
    pub started: u64,
    /// The name (argv\[0]) of the probe in there.
    pub name: String,
}

/// Enters, and serves there; returns the exit code of what served.
///
/// # Errors
/// Where the container is another one by now, or cannot be entered. Nothing has run in it then.
pub fn main(target: &Target) -> io::Result<u8> {
    let own = File::open("/proc/self/exe")?;
    if !is_sealed(&own) {
        sys::close_others_on_exec()?;
        let words = std::env::args_os().map(words).collect::<io::Result<Vec<_>>>()?;
        return Err(sys::execute(&sealed(own)?, &words, &environment()?));
    }
    let container = Container::open(target)?;
    set_thread_groups(&[])?;
    let mask = container.bounding;
    container.enter()?;
    set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT)?;
    set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT)?;
    match clear_ambient_capability_set() {
        Ok(()) | Err(Errno::INVAL | Errno::NOSYS) => {}
        Err(error) => return Err(error.into()),
    }
    capabilities::to(mask)?;
    set_no_new_privs(true)?;
    let (name, variables) = (words(target.name.clone().into())?, environment()?);
    // Only a process forked now is in the PID namespace.
    let child = sys::fork(|| {
        let error = sys::execute(&own, &[name], &variables);
        crate::stderr::say!("tactus-probe: cannot begin in the container: {error}");
        std::process::exit(2);
    })?;
    drop(own);
    let (_, status) = waitpid(Pid::from_raw(child), WaitOptions::empty())?.ok_or(io::ErrorKind::NotFound)?;
    Ok(status.exit_status().and_then(|code| u8::try_from(code).ok()).unwrap_or(2))
}

fn words(word: OsString) -> io::Result<CString> {
    Ok(CString::new(word.into_vec())?)
}

/// The environment: the mark of the run and a PATH, without root's variables.
fn environment() -> io::Result<Vec<CString>> {
    let mark = std::env::var_os(MARKER).map(|id| {
        let mut entry = OsString::from(MARKER);
        entry.push("=");
        entry.push(id);
        entry
    });
    mark.into_iter().chain([PATH.into()]).map(words).collect()
}

fn is_sealed(file: &File) -> bool {
    fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SEALED))
}

/// A copy of a program in sealed memory.
fn sealed(mut program: File) -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let made = match memfd_create("tactus-probe", flags | MemfdFlags::EXEC) {
        // Before Linux 6.3 all of them can be executed.
        Err(Errno::INVAL) => memfd_create("tactus-probe", flags)?,
        made => made?,
    };
    let mut copy = File::from(made);
    io::copy(&mut program, &mut copy)?;
    fcntl_add_seals(&copy, SEALED)?;
    // One that was opened for writing cannot be executed.
    File::open(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&copy)))
}

/// A container as it is found from outside; all of it is of one process.
struct Container {
    bounding: u64,
    root: File,
    namespaces: Vec<(&'static str, File)>,
}

impl Container {
    fn open(target: &Target) -> io::Result<Self> {
        // Files opened beneath it belong to this process or fail, even if another process gets its number.
        let process = File::open(format!("/proc/{}", target.process))?;
        let at = |name: &str, flags: OFlags| {
            openat(&process, name, flags | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map(File::from)
        };
        let text = |name: &str| {
            let mut text = Vec::new();
            at(name, OFlags::empty())?.take(process_files::OTHERS).read_to_end(&mut text)?;
            io::Result::Ok(String::from_utf8_lossy(&text).into_owned())
        };
        if started(&text("stat")?) != Some(target.started) {
            let words = format!("process {} is no longer the one that was examined", target.process);
            return Err(io::Error::other(words));
        }
        let bounding =
            bounding(&text("status")?).ok_or_else(|| io::Error::other("its capabilities cannot be read"))?;
        let root = at("root", OFlags::DIRECTORY)?;
        let mut namespaces = Vec::new();
        for name in NAMESPACES {
            let path = format!("ns/{name}");
            let theirs = match at(&path, OFlags::empty()) {
                // This kernel has none of the kind.
                Err(Errno::NOENT) => continue,
                opened => opened?,
            };
            let (found, ours) = (theirs.metadata()?, std::fs::metadata(format!("/proc/self/{path}"))?);
            if (found.dev(), found.ino()) != (ours.dev(), ours.ino()) {
                namespaces.push((name, theirs));
            }
        }
        // In those of the machine a process has the machine.
        for needed in ["pid", "mnt"] {
            if !namespaces.iter().any(|(name, _)| *name == needed) {
                let words = format!("process {} has no separate {needed} namespace", target.process);
                return Err(io::Error::other(words));
            }
        }
        Ok(Self { bounding, root, namespaces })
    }

    fn enter(self) -> io::Result<()> {
        for (name, namespace) in &self.namespaces {
            move_into_link_name_space(namespace.as_fd(), None)
                .map_err(|error| io::Error::other(format!("its {name} namespace: {error}")))?;
            if *name == "mnt" {
                fchdir(&self.root)?;
                chroot(".")?;
                chdir("/")?;
            }
        }
        Ok(())
    }
}

/// When a process began, from its /proc/PID/stat.
fn started(stat: &str) -> Option<u64> {
    // Fields from the third on stand behind the name, which may have anything in it.
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

fn bounding(status: &str) -> Option<u64> {
    capabilities::mask(status.lines().find_map(|line| line.strip_prefix("CapBnd:"))?.trim())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_is_started_in_a_container_is_memory_that_nobody_can_write_to() {
        let own = File::open("/proc/self/exe").unwrap();
        assert!(!is_sealed(&own));
        let copy = sealed(own).unwrap();
        assert!(is_sealed(&copy));
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&copy));
        let again = std::fs::OpenOptions::new().write(true).open(path);
        assert!(again.and_then(|mut file| file.write_all(b"x")).is_err());
    }

    #[test]
    fn a_process_that_is_another_by_now_or_has_no_namespaces_of_its_own_is_not_entered() {
        let me = std::process::id();
        let began = started(&std::fs::read_to_string("/proc/self/stat").unwrap()).unwrap();
        let error = |process, started| {
            let target = Target { process, started, name: "x".into() };
            Container::open(&target).err().unwrap().to_string()
        };
        assert!(error(me, began + 1).contains("no longer the one"));
        assert!(error(me, began).contains("has no separate pid namespace"));
        error(u32::MAX, 1);
    }

    #[test]
    fn what_cannot_be_read_gives_no_capabilities_and_no_time() {
        assert_eq!(bounding("CapEff:\t1\nCapBnd:\t00000000fdecbfff\n"), Some(0xfdec_bfff));
        let stat = "11 (a) b) S 10 11 11 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0";
        assert_eq!(started(stat), Some(4711));
        for text in ["", "CapBnd:\tx", ") ", "1 (a) S"] {
            assert_eq!((bounding(text), started(text)), (None, None), "{text}");
        }
    }
}
