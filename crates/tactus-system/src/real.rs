//! The machine we are on.
#![expect(clippy::disallowed_methods, reason = "this is the door")]

use std::any::Any;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, StatVfsMountFlags, flock, statvfs};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::geteuid;
use rustix::thread::{Pid, sched_setaffinity};
use tactus_model::CpuSet;
use tactus_model::process_files;
use tactus_model::threads::Policy;
use tactus_model::undo::{self, Files};

use super::capped::at_most;
use super::child::RealChild;
use super::command::MOST_OUTPUT;
use super::held::Held;
use super::log::{self, HERE};
use super::output::Output;
use super::{
    Child, Directory, Finished, Invocation, System, UNPLACED, capabilities, house, own, sys, too_large,
};

/// Directories that hold system programs and are missing from many users' PATH.
const SBIN: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];
/// How often a command with limited patience is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The machine we are on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Real;

fn command(invocation: &Invocation) -> io::Result<Command> {
    let (program, arguments) = invocation.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let found = match program.contains('/') {
        true => PathBuf::from(program),
        // Nor does the system look for it, which takes every entry of PATH.
        false => Real.find_program(program).ok_or_else(|| named(&Errno::NOENT.into(), invocation))?,
    };
    let mut command = Command::new(found);
    command.env("PATH", std::env::join_paths(absolute_path()).unwrap_or_else(|_| USUAL.into()));
    command.args(arguments).envs(invocation.env.iter().map(|(name, value)| (name, value)));
    if let Some(dir) = &invocation.dir {
        command.current_dir(dir);
    }
    Ok(command)
}

/// The PATH if no entry of it counts: an empty PATH would mean the current directory.
const USUAL: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// The absolute entries of PATH. Any other entry, also an empty one, depends on the current directory. Programs in
/// another user's directory must not run.
fn absolute_path() -> Vec<PathBuf> {
    absolute(&std::env::var_os("PATH").unwrap_or_default())
}

fn absolute(path: &OsStr) -> Vec<PathBuf> {
    let of = |path: &OsStr| std::env::split_paths(path).filter(|dir| dir.is_absolute()).collect::<Vec<_>>();
    let entries = of(path);
    if entries.is_empty() { of(OsStr::new(USUAL)) } else { entries }
}

/// Adds the name of the program that could not be started, and the reason if it is visible.
fn named(error: &io::Error, invocation: &Invocation) -> io::Error {
    let program = invocation.argv.first().map_or("", String::as_str);
    let noexec = error.kind() == io::ErrorKind::PermissionDenied
        && statvfs(program).is_ok_and(|system| system.f_flag.contains(StatVfsMountFlags::NOEXEC));
    let why = if noexec { ": its file system is mounted noexec" } else { "" };
    io::Error::new(error.kind(), format!("{program}: {error}{why}"))
}

/// For a program that reads nothing. An initramfs that was just started has no /dev/null: a pipe does, whose other end is
/// closed.
fn no_input() -> Stdio {
    fs::File::open("/dev/null").map_or_else(|_| Stdio::piped(), Stdio::from)
}

/// Starts a command. The file of a program just written may still be open in a child that another thread has forked and
/// that has not executed yet. That ends soon, so the start is tried again.
fn begin(command: &mut Command) -> io::Result<process::Child> {
    const TRIES: u32 = 50;
    for _ in 1..TRIES {
        match house::outside(|| command.spawn()) {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(10));
            }
            started => return started,
        }
    }
    house::outside(|| command.spawn())
}

/// A regular file and its length. A pipe would block, and other files have no usable length.
fn regular(path: &Path) -> io::Result<(fs::File, u64)> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok((file, found.len()))
}

/// Puts a file in its place in one step.
fn install(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let dir = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(dir)?;
    let mut file = tempfile::Builder::new().prefix(UNPLACED).tempfile_in(dir)?;
    file.write_all(bytes)?;
    file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    file.as_file().sync_data()?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// Runs a command to its end.
fn run(invocation: &Invocation) -> io::Result<Finished> {
    let mut command = command(invocation)?;
    let command = command.stdin(no_input()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = begin(sys::awaited(command)).map_err(|error| named(&error, invocation))?;
    drop(child.stdin.take());
    let stdout = Output::of(child.stdout.take());
    let stderr = Output::of(child.stderr.take());
    let status = match invocation.patience {
        None => child.wait()?,
        Some(patience) => {
            let until = Instant::now() + patience;
            loop {
                if let Some(status) = child.try_wait()? {
                    break status;
                }
                if Instant::now() > until {
                    // It can only fail for a process that has ended.
                    let _ = child.kill();
                    child.wait()?;
                    let words = format!("{} took more than {patience:?}", invocation.argv.join(" "));
                    return Err(io::Error::new(io::ErrorKind::TimedOut, words));
                }
                std::thread::sleep(POLL_INTERVAL);
            }
        }
    };
    let (stdout, mut stderr) = (stdout.end(), stderr.end());
    let most = usize::try_from(MOST_OUTPUT).unwrap_or(usize::MAX);
    if stdout.len() > most {
        return Err(named(&too_large(MOST_OUTPUT), invocation));
    }
    // The beginning of stderr is enough: a command with much output there still continues.
    stderr.truncate(most);
    Ok(Finished { code: status.code(), stdout, stderr })
}

impl System for Real {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        process_files::read(path)
    }

    fn beginning(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        process_files::beginning(path, most)
    }

    fn read_regular(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let (file, length) = regular(path)?;
        if length > most {
            return Err(too_large(most));
        }
        // The file may grow meanwhile.
        at_most(file, most)
    }

    fn read_at_most(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        at_most(fs::File::open(path)?, most)
    }

    fn end(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let (mut file, length) = regular(path)?;
        file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
        process_files::begin_of(file, most)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        log::wrote(HERE, path, bytes, fs::write(path, bytes))
    }

    fn install(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        log::wrote(HERE, path, bytes, install(path, bytes, mode))
    }

    fn install_beneath(&self, dir: &Path, name: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        let installed = Directory::open(dir).and_then(|dir| dir.install_for_others(name, bytes, mode));
        log::wrote(HERE, &dir.join(name), bytes, installed)
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path)?;
        file.write_all(bytes)?;
        file.sync_data()
    }

    fn read_own(&self, path: &Path) -> io::Result<Vec<u8>> {
        own::read(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send>>> {
        let file = own::open(path, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
    }

    fn make_own_dir(&self, path: &Path) -> io::Result<()> {
        own::make_directory(path)
    }

    fn is_own_dir(&self, path: &Path) -> io::Result<()> {
        match own::check_directory(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            checked => checked,
        }
    }

    fn believed(&self, path: &Path) -> io::Result<PathBuf> {
        own::believed(path)
    }

    fn link(&self, path: &Path) -> io::Result<PathBuf> {
        fs::read_link(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(());
        }
        let removed = undo::remove(path, self);
        log::changed(HERE, format_args!("removed {}", path.display()), removed)
    }

    fn remove_empty(&self, path: &Path) -> io::Result<()> {
        log::changed(HERE, format_args!("removed {}", path.display()), fs::remove_dir(path))
    }

    fn unmount(&self, path: &Path) -> io::Result<()> {
        let unmounted = match unmount(path, UnmountFlags::DETACH) {
            // Not a mount point, or not there.
            Err(Errno::INVAL | Errno::NOENT) => return Ok(()),
            unmounted => unmounted.map_err(io::Error::from),
        };
        log::changed(HERE, format_args!("unmounted {}", path.display()), unmounted)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let what = format_args!("renamed {} to {}", from.display(), to.display());
        log::changed(HERE, what, fs::rename(from, to))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>()?;
        entries.sort();
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn opens(&self, path: &Path) -> bool {
        self.device(path).is_ok()
    }

    fn device(&self, path: &Path) -> io::Result<fs::File> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
    }

    fn connect(&self, path: &Path) -> io::Result<UnixStream> {
        // By way of its directory: the whole path may be longer than the name of a socket can be.
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(dir, flags, Mode::empty())?;
        UnixStream::connect(Path::new(&format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name))
    }

    fn listen(&self, path: &Path) -> io::Result<UnixListener> {
        System::remove(self, path)?;
        UnixListener::bind(path)
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        let is_program = |path: &Path| {
            fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        };
        if name.contains('/') {
            return Some(PathBuf::from(name)).filter(|path| is_program(path));
        }
        let dirs = absolute_path().into_iter().chain(SBIN.map(PathBuf::from));
        dirs.map(|dir| dir.join(name)).find(|path| is_program(path))
    }

    fn run(&self, invocation: &Invocation) -> io::Result<Finished> {
        log::run(HERE, invocation, || run(invocation))
    }

    fn spawn(&self, invocation: &Invocation) -> io::Result<Box<dyn Child>> {
        let mut command = command(invocation)?;
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Only this process handles Ctrl-C: it ends its commands in order.
        let command = sys::without_terminal(command);
        let begun = match invocation.with_capabilities {
            true => capabilities::handed_on(|| begin(command)),
            false => begin(command),
        };
        let process = begun.map_err(|error| named(&error, invocation))?;
        log::started(HERE, invocation, process.id());
        Ok(Box::new(RealChild::new(process, log::line(invocation))))
    }

    fn place(&self, thread: u32, cpus: &CpuSet) -> io::Result<()> {
        let mask = house::mask(cpus)?;
        let placed = sched_setaffinity(Some(pid(thread)?), &mask).map_err(io::Error::from);
        log::changed(HERE, format_args!("thread {thread} may run only on CPUs {cpus}"), placed)
    }

    fn pin_to_housekeeping(&self, cpus: &CpuSet) -> Option<Box<dyn Any>> {
        house::keep(cpus).ok().map(|house| Box::new(house) as Box<dyn Any>)
    }

    fn make_fifo(&self, thread: u32, priority: u32) -> io::Result<()> {
        log::scheduled(thread, Policy::Fifo, priority, sys::schedule(thread, Policy::Fifo, priority))
    }

    fn schedule(&self, thread: u32, policy: Policy, priority: u32) -> io::Result<()> {
        // 0 would be this thread.
        pid(thread)?;
        log::scheduled(thread, policy, priority, sys::schedule(thread, policy, priority))
    }

    fn hold(&self, process: u32) -> io::Result<Box<dyn undo::Held + '_>> {
        Ok(Box::new(Held::of(pid(process)?)?))
    }

    fn is_root(&self) -> bool {
        geteuid().is_root()
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn share(&self) -> Arc<dyn System> {
        Arc::new(Self)
    }
}

impl Files for Real {
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    fn mountinfo(&self) -> io::Result<Vec<u8>> {
        fs::read("/proc/self/mountinfo")
    }

    fn is_directory(&self, path: &Path) -> io::Result<bool> {
        Ok(fs::symlink_metadata(path)?.is_dir())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn unmount(&self, path: &Path) -> io::Result<()> {
        System::unmount(self, path)
    }
}

fn pid(thread: u32) -> io::Result<Pid> {
    let raw = i32::try_from(thread).ok().and_then(Pid::from_raw);
    raw.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("{thread} is not a thread")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_names_is_read_up_to_a_length_whatever_it_is() {
        assert_eq!(
            Real.read_at_most(Path::new("/dev/zero"), 4096).unwrap_err().kind(),
            io::ErrorKind::FileTooLarge
        );
        assert_eq!(Real.read_at_most(Path::new("/dev/null"), 4096).unwrap(), b"");
    }

    #[test]
    fn of_a_long_log_the_end_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let mut file = fs::File::create(&log).unwrap();
        // Sparse: a reader of the whole file needs 1 TiB.
        file.set_len(1 << 40).unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(b"the last words\n").unwrap();
        assert_eq!(Real.end(&log, 11).unwrap(), b"last words\n");
        Real.write(&log, b"short").unwrap();
        assert_eq!(Real.end(&log, 11).unwrap(), b"short");
        assert_eq!(Real.end(Path::new("/dev/zero"), 11).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_command_that_takes_too_long_is_killed_and_named() {
        let sleep = Invocation::new(["sleep", "60"]).within(Duration::from_millis(50));
        let error = Real.run(&sleep).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("sleep 60"), "{error}");
    }

    /// One machine of many may write any amount to stderr; the data of the others is on stdout.
    #[test]
    fn what_a_command_says_beside_its_output_is_cut_and_its_output_is_kept() {
        let script = "head -c 70000000 /dev/zero >&2; echo out; exit 3";
        let finished = Real.run(&Invocation::new(["sh", "-c", script])).unwrap();
        assert_eq!((finished.code, finished.text().as_str()), (Some(3), "out\n"));
        assert_eq!(u64::try_from(finished.stderr.len()).unwrap(), MOST_OUTPUT);
        let error = Real.run(&Invocation::new(["head", "-c", "70000000", "/dev/zero"])).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "half of an output is none: {error}");
    }

    #[test]
    fn what_is_started_is_in_a_session_of_its_own_without_a_terminal() {
        // pid (comm) state ppid pgrp session tty_nr
        let script = "(exec 3<>/dev/tty) 2>/dev/null && echo opened; echo $$; cat /proc/$$/stat";
        let look = Invocation::new(["sh", "-c", script]);
        let run = Real.run(&look).unwrap().text();
        let mut child = Real.spawn(&look).unwrap();
        let mut spawned = String::new();
        child.take_stdout().unwrap().read_to_string(&mut spawned).unwrap();
        for said in [run, spawned] {
            let (pid, stat) = said.split_once('\n').unwrap();
            let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
            assert_eq!(fields[2..5], [pid, pid, "0"], "group, session, terminal: {said}");
        }
    }

    #[test]
    fn what_a_command_has_started_and_left_behind_is_not_waited_for() {
        let script = "sleep 600 & echo $!; echo said >&2";
        let finished =
            Real.run(&Invocation::new(["sh", "-c", script]).within(Duration::from_secs(60))).unwrap();
        Real.hold(finished.text().trim().parse().unwrap())
            .and_then(|left| left.kill())
            .expect("it holds both streams, and is there yet");
        assert!(finished.success() && finished.words() == "said", "{finished:?}");
    }

    #[test]
    fn no_program_is_taken_from_where_somebody_stands() {
        let entries = absolute(OsStr::new(":/usr/bin:.:bin:../bin:/bin:"));
        assert_eq!(entries, [Path::new("/usr/bin"), Path::new("/bin")]);
        let usual = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(PathBuf::from);
        for nothing in ["", ":", "bin:."] {
            assert_eq!(absolute(OsStr::new(nothing)), usual);
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = Real.run(&Invocation::new(["no-such-program"])).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().starts_with("no-such-program: "), "{error}");
    }

    #[test]
    fn a_child_keeps_the_end_of_what_it_said_on_stderr() {
        let script = "i=0; while [ $i -lt 9000 ]; do echo line number $i >&2; i=$((i+1)); done; exit 3";
        let mut child = Real.spawn(&Invocation::new(["sh", "-c", script])).unwrap();
        let code = loop {
            if let Some(code) = child.try_wait().unwrap() {
                break code;
            }
            std::thread::sleep(POLL_INTERVAL);
        };
        assert_eq!(code, Some(3));
        assert!(child.stderr().ends_with("line number 8999\n"));
        assert_eq!(child.stderr().len(), 64 * 1024);
    }

    #[test]
    fn a_child_has_the_variables_it_was_given_and_dies_with_its_owner() {
        let invocation = Invocation::new(["sh", "-c", "echo $MARK; exec sleep 60"]).with_env(("MARK", "x1"));
        let mut child = Real.spawn(&invocation).unwrap();
        let pid = child.pid();
        let mut out = [0; 3];
        child.take_stdout().unwrap().read_exact(&mut out).unwrap();
        assert_eq!(&out, b"x1\n");
        drop(child);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn an_installed_file_has_its_mode_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/program");
        Real.install(&path, b"#!/bin/sh\n", 0o755).unwrap();
        Real.install(&path, b"#!/bin/sh\nexit 7\n", 0o755).unwrap();
        assert_eq!(Real.list(path.parent().unwrap()).unwrap(), std::slice::from_ref(&path));
        let finished = Real.run(&Invocation::new([path.to_str().unwrap()])).unwrap();
        assert_eq!(finished.code, Some(7));
    }

    #[test]
    fn nothing_is_put_through_a_link_that_leads_out_of_a_container() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("root"), dir.path().join("etc"));
        for made in [&root.join("run"), &outside] {
            Real.make_dir(made).unwrap();
        }
        let put = |name: &str| Real.install_beneath(&root, Path::new(name), b"x", 0o755);
        put("run/.probe").unwrap();
        assert_eq!(fs::metadata(root.join("run/.probe")).unwrap().permissions().mode() & 0o777, 0o755);
        std::os::unix::fs::symlink(&outside, root.join("tmp")).unwrap();
        assert!(put("tmp/.probe").unwrap_err().to_string().contains("a symbolic link"));
        assert!(put("../etc/.probe").is_err() && Real.list(&outside).unwrap().is_empty());
        // As a process's root is one.
        let own = format!("/proc/{}/root", process::id());
        let name = root.join("run/.another");
        Real.install_beneath(Path::new(&own), name.strip_prefix("/").unwrap(), b"x", 0o755).unwrap();
        assert!(name.exists());
    }

    #[test]
    fn removing_what_is_not_there_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        Real.remove(&dir.path().join("no/such/thing")).unwrap();
        Real.install(&dir.path().join("t/u/v"), b"", 0o600).unwrap();
        Real.remove(&dir.path().join("t")).unwrap();
        assert!(Real.list(dir.path()).unwrap().is_empty());
    }

    #[test]
    fn a_lock_is_had_by_one_and_ends_with_its_value() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = Real.lock(&path).unwrap();
        assert!(held.is_some() && Real.lock(&path).unwrap().is_none());
        drop(held);
        assert!(Real.lock(&path).unwrap().is_some());
    }

    #[test]
    fn what_is_appended_comes_after_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        Real.append(&path, b"a\n").unwrap();
        Real.append(&path, b"b\n").unwrap();
        assert_eq!(Real.read(&path).unwrap(), b"a\nb\n");
    }

    #[test]
    fn a_socket_is_listened_at_again_and_reached_by_a_path_of_any_length() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        drop(Real.listen(&path).unwrap());
        assert_eq!(Real.connect(&path).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        let listener = Real.listen(&path).unwrap();
        let long = dir.path().join("d".repeat(200));
        Real.make_dir(&long).unwrap();
        Real.connect(&long.join("../s")).map(drop).unwrap();
        assert!(listener.accept().is_ok());
        assert!(!Real.opens(&path) && Real.device(Path::new("/dev/null")).is_ok());
    }

    #[test]
    fn a_thread_is_placed_only_where_there_are_cpus() {
        let me = process::id();
        assert!(Real.place(me, &CpuSet::one(8000)).is_err());
        assert!(Real.place(0, &CpuSet::one(0)).is_err());
        assert!(Real.make_fifo(u32::MAX, 1).is_err());
        assert!(Real.schedule(0, Policy::Other, 0).is_err());
        assert!(Real.schedule(me, Policy::Deadline, 0).is_err());
        Real.schedule(me, Policy::Other, 0).unwrap();
    }
}
